// DeviceBackend: what a kind of device other than the CPU does for the runtime. libsconce_cuda brings one; libsconce
// opens that library when a device of its kind is first asked for, so that hosts without one need nothing of it.
//
// Work on a device is done in the order of the calling thread's stream (DeviceLane). Thread-safe.
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

// A piece of memory to be copied: of the device, or pinned on the host. 0 bytes: nothing.
struct DeviceCopy {
  const void* from = nullptr;
  void* to = nullptr;
  size_t bytes = 0;
  friend bool operator==(const DeviceCopy&, const DeviceCopy&) = default;
};

// Work of a stream that was recorded once and is done again with one call, on the same memory, part of which is its
// own.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  // On the stream it was recorded on, with what is copied before and after it in the same call: as many pieces as were
  // reserved, at most.
  virtual void launch(std::span<const DeviceCopy> before, std::span<const DeviceCopy> after) = 0;
};

// Plain bytes to memory of a device: of the host, which may be a file's mapping, or of an open file.
struct Upload {
  const std::byte* from;  // null: of the file
  size_t bytes;
  void* to;
  int file = -1;
  uint64_t offset = 0;
};

struct LaneOptions {
  bool allow_tf32 = false;  // as LoadOptions has it
};

// What a replica runs with: a stream, and the memory cached for it. Used by one thread at a time.
class DeviceLane {
 public:
  virtual ~DeviceLane() = default;
  // Makes device and stream those of the calling thread, until leave().
  virtual void enter() = 0;
  virtual void leave() noexcept = 0;
  // As AOTInductor's runs take it: cudaStream_t.
  virtual void* stream() const noexcept = 0;
  // Waits for all work of the stream. kDevice: what went wrong on the device.
  virtual void synchronize() = 0;
  // Why the device can do nothing more for this process, null while it can: an error that does not go away. The
  // text lives for ever. Waits for the stream alone, so that what other lanes of the device do, and record, goes on.
  virtual const char* fault() noexcept = 0;
  // Gives back to the device what is kept for the lane and not in use. By the thread that uses the lane.
  virtual void trim() noexcept = 0;

  // Between these, on the thread that entered, work of the stream is recorded instead of done, with memory of its own.
  // What cannot be recorded throws, kUnsupported where a value would be read or drawn only once; drop_capture() then.
  // Reserved: how many pieces a launch may copy before and after.
  virtual void begin_capture(size_t reserved_before) = 0;
  virtual std::unique_ptr<DeviceGraph> end_capture(size_t reserved_after) = 0;
  virtual void drop_capture() noexcept = 0;

  class Scope {
   public:
    explicit Scope(DeviceLane* lane) : lane_(lane) {
      if (lane_) lane_->enter();
    }
    ~Scope() {
      if (lane_) lane_->leave();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    DeviceLane* lane_;
  };
};

struct DeviceMemory {
  uint64_t total = 0, free = 0;     // of the device
  uint64_t in_use = 0, cached = 0;  // by this process through the backend
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  virtual int count() = 0;
  // kInvalidArgument for a device that does not exist.
  virtual void check(Device device) = 0;
  // 90 for compute capability 9.0.
  virtual int capability(Device device) = 0;
  virtual std::string name(Device device) = 0;
  virtual DeviceMemory memory(Device device) = 0;
  // Gives back to the device and the host what is kept for later and belongs to no lane. Waits for nothing of others.
  virtual void trim(Device device) noexcept = 0;

  virtual std::unique_ptr<DeviceLane> make_lane(Device device, LaneOptions options = {}) = 0;
  // 256-byte aligned, uninitialised, ready in the order of the calling thread's stream. kOutOfMemory.
  virtual StoragePtr allocate(size_t bytes, Device device) = 0;
  // For what stays: of exactly this size, and ready for any stream.
  virtual StoragePtr allocate_lasting(size_t bytes, Device device) = 0;
  // Pinned memory of the host. kOutOfMemory.
  virtual StoragePtr allocate_host(size_t bytes) = 0;
  // destination = source, of any strides and dtypes, broadcast; at least one is on a device. Host memory may be touched
  // again when the call returns, and has its bytes then.
  virtual void copy(const Tensor& source, Tensor& destination) = 0;
  // The same without waiting: memory of the host must be pinned and stay until the stream has passed.
  virtual void copy_async(const Tensor& source, Tensor& destination) = 0;
  // Every element becomes the given one, of the tensor's dtype.
  virtual void fill(Tensor& self, const void* element) = 0;
  // Waits for all work of the calling thread's stream for that device.
  virtual void wait(Device device) = 0;
  // See open_device_memory(). The device was checked.
  virtual StoragePtr open_shared(std::span<const std::byte, kDeviceMemoryHandleBytes> handle, Device device) = 0;
  // Streams constants to the device; they are there when it returns. `tick`, where there is one, is called on this
  // thread with the bytes done so far, and may throw to stop. Of files: kIo, kFailedPrecondition (ends too early).
  virtual void upload(std::span<const Upload> uploads, Device device,
                      const std::function<void(uint64_t done)>& tick = {}) = 0;

  // Functions that take the place of a model's imports.
  struct Replacement {
    const char* imported;
    void* function;
  };
  virtual std::span<const Replacement> replacements() = 0;
  // The device's kernel of an operator called by name ("aten::linalg_qr"); null where it has none.
  using NamedKernel = void (*)(std::span<custom_ops::Value> arguments, std::span<custom_ops::Value> results);
  virtual NamedKernel kernel_named(std::string_view name) noexcept = 0;
  // The model's files are gone: modules loaded from them may go.
  virtual void forget(const class DeviceFiles& files) noexcept = 0;
};

// Files that a model asks for by path while it runs: its compiled device code. Immutable.
class DeviceFiles {
 public:
  virtual ~DeviceFiles() = default;
  // By the last part of the path. Empty if there is no such file.
  virtual std::span<const std::byte> find(std::string_view name) const = 0;

  // Those of the model that the calling thread runs; null: none.
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

// While a container is made on a thread, it takes device memory for its constants and copies them there. The memory it
// gets is an address that nothing reads, and the copies are only noted.
class DeviceLoading {
 public:
  // False if there is no memory to note it.
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

// Opens the library of the device's kind. kUnsupported for a kind that has none; kUnavailable says why it cannot be
// used.
DeviceBackend& device_backend(DeviceType type);
// Why it would throw; empty where it would not.
std::string why_no_device(DeviceType type);
inline DeviceBackend& device_backend(Device device) { return device_backend(device.type); }

// The SONAME takes the place of libtorch_cuda.so in a package's string table: 16 characters.
inline constexpr std::string_view kCudaLibrary = "libsconcecu.so.0";
// What the library exports: the backend, made at the first call. Null and a reason where there is no usable device.
using MakeBackend = DeviceBackend* (*)(const char** reason);
inline constexpr const char* kMakeBackend = "sconce_cuda_backend";

}  // namespace sconce
