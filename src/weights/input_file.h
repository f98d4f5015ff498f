// InputFile: a regular file that is read at given offsets and not mapped: if it is truncated meanwhile, that is an
// error, not a signal. Thread-safe. kIo names path and reason.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

#include "package_format/files/content_stamp.h"
#include "sconce/weight_sources.h"

namespace sconce::weights {

class InputFile {
 public:
  // Waits up to one second until no process has the file open for writing. Otherwise a writer that pauses would leave
  // no trace, and check_unchanged() could not detect a half-written file. kFailedPrecondition if it is still open.
  explicit InputFile(const std::filesystem::path& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  int descriptor() const noexcept { return fd_; }
  uint64_t size() const noexcept { return static_cast<uint64_t>(status_.st_size); }
  const std::filesystem::path& path() const noexcept { return path_; }

  // Reads exactly out.size() bytes. kFailedPrecondition if the file has become shorter.
  void read(uint64_t offset, std::span<std::byte> out) const;
  // kFailedPrecondition if the file was written since it was opened.
  void check_unchanged() const;
  // kFailedPrecondition if the path now names another file.
  void check_same_path() const;
  Sha256Digest sha256() const;

 private:
  void settle();

  std::filesystem::path path_;
  int fd_ = -1;
  struct stat status_ {};
  ContentStamp stamp_;
};

// kInvalidArgument if they differ.
void check_digest(const Sha256Digest& found, const Sha256Digest& expected, const std::string& where);

}  // namespace sconce::weights
