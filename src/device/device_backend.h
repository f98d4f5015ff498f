// DeviceBackend: the runtime's interface to a device other than the CPU. libsconce_cuda implements one. libsconce
// opens that library at the first use of such a device, so hosts without one do not need it.
//
// Work on a device happens in the order of the calling thread's stream (DeviceStream). Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sconce/device_memory.h"
#include "sconce/tensor.h"

namespace sconce::custom_ops {
class Value;
}

namespace sconce {

// A copy of memory on the device, or pinned on the host. 0 bytes: no copy.
struct DeviceCopy {
  const void* from = nullptr;
  void* to = nullptr;
  size_t bytes = 0;
  friend bool operator==(const DeviceCopy&, const DeviceCopy&) = default;
};

// Recorded work of a stream that one call can repeat, on the same memory, some of which it owns.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  // Runs it on its stream, with copies before and after it in the same call: at most as many as were reserved.
  virtual void launch(std::span<const DeviceCopy> before, std::span<const DeviceCopy> after) = 0;
};

// Bytes to copy to device memory, from the host (for example a mapped file) or from an open file.
struct Upload {
  const std::byte* from;  // null: from the file
  size_t bytes;
  void* to;
  int file = -1;
  uint64_t offset = 0;
};

struct LaneOptions {
  bool allow_tf32 = false;  // as in LoadOptions
};

// The stream of a replica, and the memory cached for it. Used by one thread at a time.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  // Makes device and stream current on the calling thread, until leave().
  virtual void enter() = 0;
  virtual void leave() noexcept = 0;
  // The cudaStream_t to pass to AOTInductor's runs.
  virtual void* stream() const noexcept = 0;
  // Waits for all work of the stream. kDevice with the device's error.
  virtual void synchronize() = 0;
  // Why this process can no longer use the device, after an error that is permanent; null if it can. The text is never
  // freed. Waits for this stream only, so other streams of the device may run and record meanwhile.
  virtual const char* fault() noexcept = 0;
  // Returns unused cached memory to the device. Called by the thread that uses the stream.
  virtual void trim() noexcept = 0;

  // Between these calls, on the thread that entered, the stream's work is recorded and not executed, with memory of
  // its own. Throws for work that cannot be recorded, and kUnsupported if a value would be read or drawn only once;
  // then call drop_capture(). Reserved: the number of copies that a launch may make before and after.
  virtual void begin_capture(size_t reserved_before) = 0;
  virtual std::unique_ptr<DeviceGraph> end_capture(size_t reserved_after) = 0;
  virtual void drop_capture() noexcept = 0;

  class Scope {
   public:
    explicit Scope(DeviceStream* lane) : lane_(lane) {
      if (lane_) lane_->enter();
    }
    ~Scope() {
      if (lane_) lane_->leave();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    DeviceStream* lane_;
  };
};

struct DeviceMemory {
  uint64_t total = 0, free = 0;     // of the device
  uint64_t in_use = 0, cached = 0;  // by this process, through the backend
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  virtual int count() = 0;
  // kInvalidArgument if the device does not exist.
  virtual void check(Device device) = 0;
  // 90 for compute capability 9.0.
  virtual int capability(Device device) = 0;
  virtual std::string name(Device device) = 0;
  // See device_uuid().
  virtual std::string uuid(Device device) = 0;
  virtual DeviceMemory memory(Device device) = 0;
  // Returns cached memory of the device and the host that belongs to no stream. Does not wait.
  virtual void trim(Device device) noexcept = 0;

  virtual std::unique_ptr<DeviceStream> make_lane(Device device, LaneOptions options = {}) = 0;
  // 256-byte aligned, uninitialised, usable in the order of the calling thread's stream. kOutOfMemory.
  virtual StoragePtr allocate(size_t bytes, Device device) = 0;
  // Long-lived memory, of exactly this size. Any stream may use it at once.
  virtual StoragePtr allocate_lasting(size_t bytes, Device device) = 0;
  // Pinned memory of the host. kOutOfMemory.
  virtual StoragePtr allocate_host(size_t bytes) = 0;
  // destination = source, with any strides and dtypes, and broadcast; at least one is on a device. On return, host
  // memory may be reused and has its new bytes.
  virtual void copy(const Tensor& source, Tensor& destination) = 0;
  // As copy(), without waiting: host memory must be pinned and stay alive until the stream has done the copy.
  virtual void copy_async(const Tensor& source, Tensor& destination) = 0;
  // Sets every element to the given one, of the tensor's dtype.
  virtual void fill(Tensor& self, const void* element) = 0;
  // Waits for all work of the calling thread's stream for that device.
  virtual void wait(Device device) = 0;
  // See open_device_memory(). The device was checked before.
  virtual StoragePtr open_shared(std::span<const std::byte, kDeviceMemoryHandleBytes> handle, Device device) = 0;
  // See wait_for_device_event(). The device was checked before.
  virtual void wait_for_shared(std::span<const std::byte, kDeviceEventHandleBytes> handle, Device device) = 0;
  // Copies constants to the device before it returns. `tick`, if set, is called on this thread with the bytes done so
  // far, and may throw to stop. For files: kIo, kFailedPrecondition (the file ends too early).
  virtual void upload(std::span<const Upload> uploads, Device device,
                      const std::function<void(uint64_t done)>& tick = {}) = 0;

  // A function that replaces one of a model's imports.
  struct Replacement {
    const char* imported;
    void* function;
  };
  virtual std::span<const Replacement> replacements() = 0;
  // The device's kernel of an operator that is called by name ("aten::linalg_qr"); null if it has none.
  using NamedKernel = void (*)(std::span<custom_ops::Value> arguments, std::span<custom_ops::Value> results);
  virtual NamedKernel kernel_named(std::string_view name) noexcept = 0;
  // The model's files are about to be freed, so modules loaded from them may be unloaded.
  virtual void forget(const class DeviceFiles& files) noexcept = 0;
  // Writes the largest numbers of each row as ranks (sconce/device_memory.h), in the order of the thread's stream and
  // without waiting. rows: [R, V] of float32, float16 or bfloat16 on a device, with any strides. ranks: [R, k] of
  // uint64, packed, on the device or pinned, with 0 < k <= kMaxLargest and k <= V. `kept` stays alive until the stream
  // has finished.
  virtual void rank_largest(const Tensor& rows, Tensor& ranks, Tensor& kept) = 0;
};

// A model's compiled device code, which the model requests by path while it runs. Immutable.
class DeviceFiles {
 public:
  virtual ~DeviceFiles() = default;
  // Finds a file by the last part of its path. Empty if there is no such file.
  virtual std::span<const std::byte> find(std::string_view name) const = 0;

  // The files of the model that the calling thread runs; null: none.
  static const DeviceFiles* current() noexcept;
  class Scope {
   public:
    explicit Scope(const DeviceFiles* files) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const DeviceFiles* previous_;
  };
};

// Active while a thread makes a container. The container allocates device memory for its constants and copies them
// there; instead, Sconce returns a placeholder address and records the copies.
class DeviceLoading {
 public:
  // Returns false if no memory is left for the record.
  virtual bool note_copy(void* to, const void* from, size_t bytes) noexcept = 0;
  static DeviceLoading* current() noexcept;

 protected:
  DeviceLoading() noexcept;
  ~DeviceLoading();
  DeviceLoading(const DeviceLoading&) = delete;
  DeviceLoading& operator=(const DeviceLoading&) = delete;

 private:
  DeviceLoading* previous_;
};

// Opens the library for this type of device. kUnsupported if there is no such library; kUnavailable with the reason if
// it cannot be used.
DeviceBackend& device_backend(DeviceType type);
// The reason why device_backend() would throw; empty if it would not.
std::string why_no_device(DeviceType type);
inline DeviceBackend& device_backend(Device device) { return device_backend(device.type); }

// This SONAME replaces libtorch_cuda.so in a package's string table: 16 characters.
inline constexpr std::string_view kCudaLibrary = "libsconcecu.so.0";
// The library's export: makes the backend at the first call. Null with a reason if there is no usable device.
using MakeBackend = DeviceBackend* (*)(const char** reason);
inline constexpr const char* kMakeBackend = "sconce_cuda_backend";

}  // namespace sconce
