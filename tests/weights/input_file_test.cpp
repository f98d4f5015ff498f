#include "src/weights/input_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/errors.h"
#include "tests/files.h"

using namespace sconce;
using weights::InputFile;

namespace {

std::string content(const InputFile& file) {
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  file.check_unchanged();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("input file: one that is being written is waited for") {
  const TempFolder folder;
  const auto path = folder.write("w", "old content");
  const int writer = ::open(path.c_str(), O_WRONLY);
  REQUIRE(::pwrite(writer, "new", 3, 0) == 3);
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(::pwrite(writer, "ideas and", 9, 4) == 9);
    ::close(writer);
  });
  // The writer's pause leaves no trace in the file's times: without a look at who has it open, "new content" is read.
  const std::string read = content(InputFile(path));
  end.join();
  CHECK(read == "new ideas and");
}

TEST_CASE("input file: one that stays open for writing, or mapped so, is refused") {
  const TempFolder folder;
  const auto path = folder.write("w", std::string(4096, 'a'));
  const int writer = ::open(path.c_str(), O_RDWR);
  CHECK_THROWS_WITH_AS(InputFile{path}, ("file is open for writing: " + path.string()).c_str(), Error);
  void* const mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, writer, 0);
  REQUIRE(mapped != MAP_FAILED);
  ::close(writer);
  try {
    const InputFile file(path);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kFailedPrecondition);
  }
  ::munmap(mapped, 4096);
  CHECK(content(InputFile(path)) == std::string(4096, 'a'));
}

TEST_CASE("input file: readers and earlier descriptors do not matter, and none keeps a lease") {
  const TempFolder folder;
  const auto path = folder.write("w", "text");
  const InputFile first(path), second(path);
  CHECK(content(first) == "text");
  // O_NONBLOCK: a lease would fail this at once.
  const int writer = ::open(path.c_str(), O_WRONLY | O_NONBLOCK);
  CHECK(writer >= 0);
  CHECK(::pwrite(writer, "T", 1, 0) == 1);
  ::close(writer);
  CHECK_THROWS_AS(first.check_unchanged(), Error);
}
