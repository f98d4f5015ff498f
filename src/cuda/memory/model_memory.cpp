#include "src/cuda/memory/model_memory.h"

#include <sys/mman.h>

#include <map>

#include "sconce/mutex.h"
#include "src/aoti_abi/guard.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/device/device_backend.h"

namespace sconce::cuda {
namespace {

Mutex mutex;
std::map<const char*, size_t>& reserved() SCONCE_REQUIRES(mutex) {
  static std::map<const char*, size_t> ranges;
  return ranges;
}

bool is_reserved(const void* address) noexcept {
  const MutexLock lock(mutex);
  const auto after = reserved().upper_bound(static_cast<const char*>(address));
  if (after == reserved().begin()) return false;
  const auto range = std::prev(after);
  return static_cast<const char*>(address) < range->first + range->second;
}

bool noted(void* to, const void* from, size_t bytes, cudaError_t& error) noexcept {
  if (!is_reserved(to)) return false;
  DeviceLoading* loading = DeviceLoading::current();
  error = loading && loading->note_copy(to, from, bytes) ? cudaSuccess : cudaErrorInvalidValue;
  return true;
}

// The thread keeps our error, which says more than the model's own.
bool refused(const char* what) noexcept {
  return current().capturing && aoti_abi::guard("cudaMemcpy", [&] { refuse_capture(what); }) != 0;
}

// The model throws the error that it gets. We clear it, so that a later kernel launch does not report it.
cudaError_t told(cudaError_t error) noexcept {
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}

}  // namespace

cudaError_t model_malloc(void** address, size_t bytes) noexcept {
  if (!DeviceLoading::current() || bytes == 0) return told(cudaMalloc(address, bytes));
  void* range = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return cudaErrorMemoryAllocation;
  const auto keep = [&] {
    const MutexLock lock(mutex);
    reserved().emplace(static_cast<const char*>(range), bytes);
  };
  if (aoti_abi::guard("cudaMalloc", keep) != 0) {
    ::munmap(range, bytes);
    return cudaErrorMemoryAllocation;
  }
  *address = range;
  return cudaSuccess;
}

cudaError_t model_free(void* address) noexcept {
  {
    const MutexLock lock(mutex);
    if (const auto range = reserved().find(static_cast<const char*>(address)); range != reserved().end()) {
      ::munmap(address, range->second);
      reserved().erase(range);
      return cudaSuccess;
    }
  }
  // The model frees in destructors and would abort on an error.
  SCONCE_CUDA_RELEASE(cudaFree(address));
  return cudaSuccess;
}

cudaError_t model_memcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) noexcept {
  cudaError_t error;
  if (noted(to, from, bytes, error)) return error;
  if (refused("a copy that the host waits for")) return cudaErrorStreamCaptureUnsupported;
  return told(cudaMemcpy(to, from, bytes, kind));
}

cudaError_t model_memcpy_async(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                               cudaStream_t stream) noexcept {
  cudaError_t error;
  if (noted(to, from, bytes, error)) return error;
  if (kind != cudaMemcpyDeviceToDevice && refused("a copy from or to the host"))
    return cudaErrorStreamCaptureUnsupported;
  return told(cudaMemcpyAsync(to, from, bytes, kind, stream));
}

}  // namespace sconce::cuda
