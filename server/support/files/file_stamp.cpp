#include "server/support/files/file_stamp.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>

namespace sconce::server {
namespace {

uint64_t mix(uint64_t a, uint64_t b) noexcept { return (a ^ b) * 0x9e3779b97f4a7c15 + (a >> 29); }

}  // namespace

std::optional<FileStamp> FileStamp::of(const char* path) noexcept {
  struct stat now {};
  if (::stat(path, &now) != 0) return std::nullopt;
  return FileStamp{now.st_dev, now.st_ino, static_cast<uint64_t>(now.st_size),
                   int64_t{now.st_mtim.tv_sec} * 1'000'000'000 + now.st_mtim.tv_nsec};
}

void FileStamps::add(std::string_view validator, uint64_t size) noexcept {
  identity = mix(identity, std::hash<std::string_view>()(validator));
  bytes += size;
}

void FileStamps::add(const char* path) noexcept {
  const std::optional<FileStamp> stamp = FileStamp::of(path);
  if (!stamp) return;
  identity = mix(mix(identity, stamp->inode), stamp->device);
  bytes += stamp->bytes;
  modified_ns = std::max(modified_ns, stamp->modified_ns);
}

bool StampedFile::changed() noexcept {
  const std::optional<FileStamp> now = FileStamp::of(path_.c_str());
  if (!now || *now == stamp_) return false;
  stamp_ = *now;
  return true;
}

}  // namespace sconce::server
