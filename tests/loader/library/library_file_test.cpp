#include "src/loader/library/library_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

using namespace sconce::loader;

namespace {

constexpr size_t kBytes = 8192;

void* mapping_of(const LibraryFile& file) {
  const int fd = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  void* const data = ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  REQUIRE(data != MAP_FAILED);
  return data;
}
bool is_mapped(void* data) { return ::msync(data, kBytes, MS_ASYNC) == 0; }

// While an object of this class lives, the process cannot open files.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("library file: what is left of it is unmapped") {
  LibraryFile file({LibraryFile::Kind::kMemory, ""}, "left", kBytes);
  void* const data = mapping_of(file);
  file.unmap_leftovers();
  CHECK(!is_mapped(data));
}

TEST_CASE("library file: what is left of it is unmapped by a later one, where the system does not tell of it") {
  void* data = nullptr;
  {
    LibraryFile file({LibraryFile::Kind::kMemory, ""}, "left", kBytes);
    data = mapping_of(file);
    const NoDescriptors none;
    file.unmap_leftovers();
  }
  CHECK(is_mapped(data));
  {
    const LibraryFile next({LibraryFile::Kind::kMemory, ""}, "next", kBytes);
    CHECK(next.error() == "");
  }
  CHECK(!is_mapped(data));
}
