#include "package_format/files/fault_guard.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "sconce/mapped_files.h"
#include "tests/package_format/in_child.h"
#include "tests/package_format/raw_zip.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("fault guard: faults of others go to who had the handler before") {
  const TempFolder folder;
  const auto fault = [&] {
    const int file = ::open(folder.write("foreign", std::string(8192, 'x')).c_str(), O_RDWR);
    const auto* data = static_cast<const char*>(::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, file, 0));
    if (::ftruncate(file, 0) != 0) return 9;
    return *const_cast<const volatile char*>(data) == 0 ? 8 : 7;
  };
  const auto reset = [] {
    struct sigaction none {};
    none.sa_handler = SIG_DFL;
    ::sigaction(SIGBUS, &none, nullptr);
  };
  int status = in_child([&] {
    reset();
    std::signal(SIGBUS, [](int) { ::_exit(42); });
    guard_mapped_files();
    return fault();
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 42);
  status = in_child([&] {
    reset();
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    guard_mapped_files();
    return fault();
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGBUS);
  status = in_child([&] {
    std::signal(SIGBUS, SIG_IGN);
    guard_mapped_files();
    ::raise(SIGBUS);
    return 5;
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 5);
}

TEST_CASE("fault guard: a range reads zeros where it cannot be read, and says so once") {
  guard_mapped_files();
  const TempFolder folder;
  const int file = ::open(folder.write("guarded", std::string(3 * 4096, 'x')).c_str(), O_RDWR);
  REQUIRE(file >= 0);
  auto* data = static_cast<char*>(::mmap(nullptr, size_t{3} * 4096, PROT_READ, MAP_PRIVATE, file, 0));
  REQUIRE(data != MAP_FAILED);
  std::atomic<uint32_t> state{0}, concern{0};
  GuardedRange* const range = guard_range(data, size_t{3} * 4096, {&state, &concern, kFirstFault + 5});
  REQUIRE(range);
  const auto at = [&](size_t i) { return const_cast<const volatile char*>(data)[i]; };
  CHECK(at(5000) == 'x');
  CHECK(state == 0);
  REQUIRE(::ftruncate(file, 4096) == 0);
  CHECK(at(4095) == 'x');
  CHECK(at(9000) == 0);
  CHECK(state == kFirstFault + 5);
  CHECK(concern == 1);
  CHECK(at(0) == 0);  // all of it is of no use any more
  CHECK(concern == 1);
  forget_range(range);
  ::munmap(data, size_t{3} * 4096);
  ::close(file);
}
