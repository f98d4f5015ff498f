// HostServices: the interface of libsconce for a device's library (libsconce_cuda), besides the C ABI and the public
// API. Code that has state, or that must exist once per process, is called through this interface; code without state
// (src/tensor) is linked into both libraries. Thread-safe; per-thread state is that of the calling thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "src/aoti_abi/guard.h"
#include "src/device/device_backend.h"
#include "src/device/philox.h"
#include "src/device/threads.h"

namespace sconce {

class HostServices {
 public:
  // device_backend.h
  virtual DeviceBackend& device_backend(DeviceType type) = 0;
  virtual const DeviceFiles* device_files() noexcept = 0;
  virtual DeviceLoading* device_loading() noexcept = 0;
  // philox.h
  virtual PhiloxGenerator& philox_generator(int device) = 0;
  // cpu_arena.h, cpu_isa.h, threads.h
  virtual StoragePtr allocate_cpu(size_t bytes) = 0;
  virtual bool has_avx512() noexcept = 0;
  virtual int kernel_threads() noexcept = 0;
  virtual void parallel_ranges(int64_t begin, int64_t end, int64_t grain, detail::RangeBody body,
                               const void* context) noexcept = 0;
  // abi_types.h, guard.h
  virtual void* take_handle_memory() = 0;
  virtual void keep_handle_memory(void* memory) noexcept = 0;
  virtual AOTITorchError record_failure(const char* function) noexcept = 0;
  virtual std::optional<aoti_abi::ShimError> take_error() noexcept = 0;

 protected:
  ~HostServices() = default;
};

}  // namespace sconce

// The only name that libsconce exports for a device's library. The object lives as long as the process.
extern "C" sconce::HostServices* sconce_host_services() noexcept;
