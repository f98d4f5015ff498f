// SharedMemory: shared-memory regions that clients registered (Triton's extension): POSIX objects ("system") and memory
// of CUDA devices, with one namespace. Thread-safe.
//
// An unregistered region lives until the last request that uses it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/mutex.h"
#include "sconce/tensor.h"

namespace sconce::server::codecs {

class PosixRegion;
class DeviceRegion;

class SharedRegion {
 public:
  virtual ~SharedRegion() = default;
  SharedRegion(const SharedRegion&) = delete;

  const std::string name;
  const uint64_t bytes;

  virtual const PosixRegion* posix() const noexcept { return nullptr; }
  virtual const DeviceRegion* device() const noexcept { return nullptr; }

  // kInvalidArgument if [at, at + count) is not inside the region.
  void check_range(uint64_t at, uint64_t count) const;
  // Call check_range() first. kInvalidArgument if the region cannot be read.
  virtual void read(uint64_t at, std::byte* to, size_t count) const = 0;

 protected:
  SharedRegion(std::string name, uint64_t bytes) : name(std::move(name)), bytes(bytes) {}
};

// Bytes are copied through the descriptor and never mapped: if the owner shrinks the object, the copy fails with an
// error and the server is not affected.
class PosixRegion final : public SharedRegion {
 public:
  // Opens the object. kInvalidArgument.
  PosixRegion(std::string name, std::string key, uint64_t offset, uint64_t bytes);
  ~PosixRegion() override;

  const std::string key;
  const uint64_t offset;  // of the region, in the object

  const PosixRegion* posix() const noexcept override { return this; }
  void read(uint64_t at, std::byte* to, size_t count) const override;
  // Call check_range() first. kInvalidArgument if the object has shrunk.
  void write(uint64_t at, const std::byte* from, size_t count) const;

 private:
  int descriptor_ = -1;
};

class DeviceRegion final : public SharedRegion {
 public:
  // Opens the handle's memory. kInvalidArgument.
  DeviceRegion(std::string name, std::string_view handle, uint64_t device, uint64_t bytes);

  const DeviceRegion* device() const noexcept override { return this; }
  Device where() const noexcept { return storage_->device(); }
  void read(uint64_t at, std::byte* to, size_t count) const override;
  // A contiguous tensor over the region's own bytes if their address has the alignment that models need, else a copy on
  // the device. Call check_range() first.
  Tensor tensor(uint64_t at, DType dtype, IntSpan sizes) const;
  // Copies a tensor of any device and strides, packed. Call check_range() first.
  void write(uint64_t at, const Tensor& tensor) const;

 private:
  Tensor view(uint64_t at, DType dtype, IntSpan sizes) const;

  const StoragePtr storage_;
};

class SharedMemory {
 public:
  enum class Kind : int8_t { kPosix, kDevice };

  explicit SharedMemory(bool allowed) : allowed_(allowed) {}

  bool allowed() const noexcept { return allowed_; }
  // body: {"key", "offset"?, "byte_size"}, or {"raw_handle": {"b64"}, "device_id", "byte_size"}. kUnsupported if the
  // settings do not allow shared memory; kInvalidArgument.
  void add(Kind kind, std::string_view name, std::string_view body);
  // Empty name: all regions of the kind. Does nothing for an unknown name or a region of the other kind.
  void remove(Kind kind, std::string_view name);
  // kNotFound.
  std::shared_ptr<const SharedRegion> find(std::string_view name) const;
  // The region of this name and kind (kNotFound); empty name: all regions of the kind.
  std::vector<std::shared_ptr<const SharedRegion>> list(Kind kind, std::string_view name) const;

 private:
  void check_new(std::string_view name) const;

  const bool allowed_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const SharedRegion>, std::less<>> regions_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server::codecs
