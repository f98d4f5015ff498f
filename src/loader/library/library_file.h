// LibraryFile: the file from which a model's code is mapped. If the system allows, it is in memory and has no name. It
// stays open as long as the mapping, because its path has the descriptor's number, and the dynamic linker treats two
// files with equal paths as one.
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
    kNamed,    // a temporary file that this object removes; for processes without /proc
  };
  struct Place {
    Kind kind;
    std::string directory;  // "" for kMemory
  };
  // In the order to try them: memory, /dev/shm, $TMPDIR, /tmp, /var/tmp.
  static std::vector<Place> places();

  LibraryFile() = default;
  // Creates an empty, sparse file of `size` bytes. `name` appears in /proc/PID/maps. A failure is kept as error() and
  // turns all other calls into no-ops, so that the caller can try the next place.
  LibraryFile(const Place& place, std::string_view name, uint64_t size);
  LibraryFile(LibraryFile&& other) noexcept;
  LibraryFile& operator=(LibraryFile&& other) noexcept;
  ~LibraryFile() { close(); }

  void write(uint64_t offset, std::span<const std::byte> bytes);
  // Forbids all further writes, if this kind of file supports that.
  void seal() noexcept;
  // "" or "memory: Function not implemented".
  const std::string& error() const noexcept { return error_; }
  // Sets error() if the dynamic linker could not open and map the file.
  void check_loadable();
  // Unmaps segments that the dynamic linker left mapped after a failure (glibc does so if it cannot map everything).
  // If the system cannot list the mappings, the next new LibraryFile tries again.
  void unmap_leftovers() noexcept;

  const std::string& path() const noexcept { return path_; }
  // Never closes the descriptor.
  void abandon() noexcept;

 private:
  void fail(const char* action, int error);
  void close() noexcept;
  int fd_ = -1;
  bool left_ = false;  // mappings may have to be unmapped
  Place place_{Kind::kMemory, ""};
  std::string path_, error_;
};

std::string to_string(const LibraryFile::Place& place);  // "memory", "an unnamed file in /tmp"

}  // namespace sconce::loader
