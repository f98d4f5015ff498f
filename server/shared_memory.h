// SharedMemory: the POSIX shared-memory regions that clients registered, Triton's extension. Thread-safe.
//
// Bytes are copied in and out through the descriptor and never mapped: an owner that makes its object smaller gets an
// error, and cannot end the server. A region that was unregistered lives until the last request that uses it is over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace sconce {

class SharedRegion {
 public:
  // Opens the object. kInvalidArgument.
  SharedRegion(std::string name, std::string key, uint64_t offset, uint64_t bytes);
  SharedRegion(const SharedRegion&) = delete;
  ~SharedRegion();

  const std::string name, key;
  const uint64_t offset, bytes;  // the part of the object that the region is

  // kInvalidArgument if [at, at + count) is not within the region.
  void check_range(uint64_t at, uint64_t count) const;
  // check_range() held. kInvalidArgument where the object has become smaller.
  void read(uint64_t at, std::byte* to, size_t count) const;
  void write(uint64_t at, const std::byte* from, size_t count) const;

 private:
  int descriptor_ = -1;
};

class SharedMemory {
 public:
  explicit SharedMemory(bool allowed) : allowed_(allowed) {}

  bool allowed() const noexcept { return allowed_; }
  // body: {"key", "offset"?, "byte_size"}. kUnsupported if it is not allowed, kInvalidArgument.
  void add(std::string_view name, std::string_view body);
  // Of a name that is not there: nothing.
  void remove(std::string_view name);
  void remove_all();
  // kNotFound.
  std::shared_ptr<const SharedRegion> find(std::string_view name) const;
  std::vector<std::shared_ptr<const SharedRegion>> list() const;

 private:
  const bool allowed_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const SharedRegion>, std::less<>> regions_;  // guarded by mutex_
};

}  // namespace sconce
