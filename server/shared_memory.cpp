#include "server/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sconce/check.h"
#include "server/json_cursor.h"

namespace sconce {
namespace {

constexpr size_t kMostRegions = 1024;
constexpr size_t kLongestName = 256;
constexpr size_t kLongestKey = 255;

// "/name", no other slash: what shm_open() takes without ambiguity.
bool is_key(std::string_view key) noexcept {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '[' || c == ']';
  };
  return key.size() > 1 && key.size() <= kLongestKey && key[0] == '/' && key[1] != '.' &&
         std::all_of(key.begin() + 1, key.end(), plain);
}

}  // namespace

SharedRegion::SharedRegion(std::string name, std::string key, uint64_t offset, uint64_t bytes)
    : name(std::move(name)), key(std::move(key)), offset(offset), bytes(bytes) {
  descriptor_ = shm_open(this->key.c_str(), O_RDWR | O_CLOEXEC, 0);
  SCONCE_CHECK(descriptor_ >= 0, kInvalidArgument, "unable to open shared memory region '", this->name,
               "': ", std::strerror(errno));
  struct stat status {};
  const bool known = fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= 0;
  const uint64_t size = known ? static_cast<uint64_t>(status.st_size) : 0;
  if (known && offset <= size && bytes <= size - offset) return;
  close(descriptor_);  // no destructor runs for what was not made
  SCONCE_FAIL(kInvalidArgument, "shared memory region '", this->name, "': offset ", offset, " and byte_size ", bytes,
              " are beyond the object's ", size, " bytes");
}

SharedRegion::~SharedRegion() { close(descriptor_); }

void SharedRegion::check_range(uint64_t at, uint64_t count) const {
  SCONCE_CHECK(at <= bytes && count <= bytes - at, kInvalidArgument, "invalid offset ", at, " and byte size ", count,
               " for shared memory region '", name, "' of ", bytes, " bytes");
}

void SharedRegion::read(uint64_t at, std::byte* to, size_t count) const {
  while (count > 0) {
    const ssize_t got = pread(descriptor_, to, count, static_cast<off_t>(offset + at));
    if (got < 0 && errno == EINTR) continue;
    SCONCE_CHECK(got > 0, kInvalidArgument, "shared memory region '", name, "' has become smaller");
    to += got;
    at += static_cast<uint64_t>(got);
    count -= static_cast<size_t>(got);
  }
}

void SharedRegion::write(uint64_t at, const std::byte* from, size_t count) const {
  // A write would make the object larger again.
  struct stat status {};
  SCONCE_CHECK(fstat(descriptor_, &status) == 0 && offset + at + count <= static_cast<uint64_t>(status.st_size),
               kInvalidArgument, "shared memory region '", name, "' has become smaller");
  while (count > 0) {
    const ssize_t put = pwrite(descriptor_, from, count, static_cast<off_t>(offset + at));
    if (put < 0 && errno == EINTR) continue;
    SCONCE_CHECK(put > 0, kInvalidArgument, "shared memory region '", name,
                 "' cannot be written: ", std::strerror(errno));
    from += put;
    at += static_cast<uint64_t>(put);
    count -= static_cast<size_t>(put);
  }
}

void SharedMemory::add(std::string_view name, std::string_view body) {
  SCONCE_CHECK(allowed_, kUnsupported, "shared memory is not allowed on this server (setting allow_shared_memory)");
  SCONCE_CHECK(name.size() <= kLongestName, kInvalidArgument, "name of a shared memory region is longer than ",
               kLongestName, " bytes");
  std::string key;
  uint64_t offset = 0;
  bool has_size = false;
  uint64_t bytes = 0;
  JsonCursor json(body);
  json.object("the request", [&](std::string_view member) {
    if (member == "key") {
      key = json.string("'key'");
    } else if (member == "offset") {
      offset = json.unsigned_integer("'offset'");
    } else if (member == "byte_size") {
      bytes = json.unsigned_integer("'byte_size'");
      has_size = true;
    } else {
      json.skip();
    }
  });
  json.finish();
  SCONCE_CHECK(is_key(key), kInvalidArgument, "'key' must be '/' and a name of letters, digits, '_-.[]': '", key, "'");
  SCONCE_CHECK(has_size && bytes > 0, kInvalidArgument, "'byte_size' must be given and not 0");
  const auto check = [&] {
    SCONCE_CHECK(regions_.find(name) == regions_.end(), kInvalidArgument, "shared memory region '", name,
                 "' already in manager");
    SCONCE_CHECK(regions_.size() < kMostRegions, kInvalidArgument, "more than ", kMostRegions,
                 " shared memory regions");
  };
  {
    const std::lock_guard lock(mutex_);
    check();
  }
  auto region = std::make_shared<const SharedRegion>(std::string(name), std::move(key), offset, bytes);
  const std::lock_guard lock(mutex_);
  check();
  regions_.emplace(name, std::move(region));
}

void SharedMemory::remove(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto it = regions_.find(name); it != regions_.end()) regions_.erase(it);
}

void SharedMemory::remove_all() {
  const std::lock_guard lock(mutex_);
  regions_.clear();
}

std::shared_ptr<const SharedRegion> SharedMemory::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto it = regions_.find(name);
  SCONCE_CHECK(it != regions_.end(), kNotFound, "Unable to find shared memory region: '", name, "'");
  return it->second;
}

std::vector<std::shared_ptr<const SharedRegion>> SharedMemory::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const SharedRegion>> regions;
  for (const auto& [name, region] : regions_) regions.push_back(region);
  return regions;
}

}  // namespace sconce
