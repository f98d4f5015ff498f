// How entries take what they are given: a file of it, and which errors are a refusal. Any other is a bug.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sconce/error.h"

namespace sconce::fuzz {

[[noreturn]] inline void broken(const char* what) {
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

// A file in memory with these bytes.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n <= 0) broken("memfd_create or write failed");
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// False if `work` refused the bytes. Ends the process if the error blames us rather than the bytes.
template <class F>
bool accepted(F&& work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal || error.code() == ErrorCode::kDevice || error.what()[0] == '\0')
      broken(error.what());
    if (std::getenv("FUZZ_VERBOSE")) std::fprintf(stderr, "refused: %s\n", error.what());
    return false;
  }
}

// A request may only be refused as a client's mistake or because something does not exist.
template <class F>
bool accepted_request(F&& work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    const int status = http_status(error.code());
    if ((status < 400 || status > 499) && error.code() != ErrorCode::kUnsupported) broken(error.what());
    if (std::getenv("FUZZ_VERBOSE")) std::fprintf(stderr, "refused: %s\n", error.what());
    return false;
  }
}

}  // namespace sconce::fuzz
