// LibraryFile: the file that a model's code is mapped from. It lies in memory and has no name, where the machine allows
// that, and stays open as long as the mapping: its path holds the number of the descriptor, and the dynamic linker
// takes two files with equal paths for one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "package_format/files/byte_range.h"

namespace sconce::loader {

class LibraryFile {
 public:
  enum class Kind {
    kMemory,   // memfd, opened through /proc/self/fd
    kUnnamed,  // O_TMPFILE in a directory, opened through /proc/self/fd
    kNamed,    // a temporary file, removed with this object; for a process without /proc
  };
  struct Place {
    Kind kind;
    std::string directory;  // "" for kMemory
  };
  // In the order to be tried: memory first, then /dev/shm, $TMPDIR, /tmp and /var/tmp.
  static std::vector<Place> places();

  LibraryFile() = default;
  // Creates an empty file of `size` bytes, all a hole. `name` shows in /proc/PID/maps. What fails is kept as error(),
  // and makes the rest do nothing, so that the caller can try the next place.
  LibraryFile(const Place& place, std::string_view name, uint64_t size);
  LibraryFile(LibraryFile&& other) noexcept;
  LibraryFile& operator=(LibraryFile&& other) noexcept;
  ~LibraryFile() { close(); }

  void write(uint64_t offset, std::span<const std::byte> bytes);
  // No more writes, by anyone, where the kind allows to enforce that.
  void seal() noexcept;
  // "" or "memory: Function not implemented".
  const std::string& error() const noexcept { return error_; }
  // Sets error() if the dynamic linker could not open and map the file.
  void check_loadable();
  // What the dynamic linker has mapped of it and left behind when it gave up (glibc does, where it cannot map all).
  // Where the system does not say what that is, the next LibraryFile that is created unmaps it.
  void unmap_leftovers() noexcept;

  const std::string& path() const noexcept { return path_; }
  // Leaves the descriptor open for good.
  void abandon() noexcept;

 private:
  void fail(const char* action, int error);
  void close() noexcept;
  int fd_ = -1;
  bool left_ = false;  // something may be mapped still that is to be unmapped
  Place place_{Kind::kMemory, ""};
  std::string path_, error_;
};

std::string to_string(const LibraryFile::Place& place);  // "memory", "an unnamed file in /tmp"

}  // namespace sconce::loader
