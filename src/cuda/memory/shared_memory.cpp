#include "src/cuda/memory/shared_memory.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"

namespace sconce::cuda {
namespace {

constexpr std::chrono::seconds kMaxWait{60};

void close(void* data, Device device) noexcept {
  const ReleaseScope scope(device.index);
  SCONCE_CUDA_RELEASE(cudaIpcCloseMemHandle(data));
}

}  // namespace

StoragePtr open_shared_memory(std::span<const std::byte, kDeviceMemoryHandleBytes> bytes, Device device) {
  cudaIpcMemHandle_t handle;
  static_assert(sizeof handle == kDeviceMemoryHandleBytes);
  std::memcpy(&handle, bytes.data(), sizeof handle);
  const DeviceScope scope(device);
  SCONCE_CUDA(cudaSetDevice(device.index));  // on a thread's first use this makes the device's context current
  void* data = nullptr;
  if (const cudaError_t error = cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess);
      error != cudaSuccess) {
    cudaGetLastError();
    SCONCE_CHECK(error != cudaErrorMemoryAllocation, kOutOfMemory, "failed to open CUDA IPC handle: out of memory");
    SCONCE_FAIL(kInvalidArgument, "failed to open CUDA IPC handle: ", cudaGetErrorString(error));
  }
  struct Guard {
    void* data;
    Device device;
    ~Guard() {
      if (data) close(data, device);
    }
  } guard{data, device};
  // The memory must belong to the device that the request names.
  cudaPointerAttributes attributes{};
  SCONCE_CUDA(cudaPointerGetAttributes(&attributes, data));
  SCONCE_CHECK(attributes.device == device.index, kInvalidArgument, "failed to open CUDA IPC handle: its memory is on ",
               "device ", attributes.device, ", not on ", device.index);
  CUdeviceptr base = 0;
  size_t size = 0;
  const auto at = reinterpret_cast<CUdeviceptr>(data);
  SCONCE_CUDA(cuMemGetAddressRange(&base, &size, at));
  StoragePtr storage = StoragePtr::adopt(new Storage(
      data, size - (at - base), device,
      [](void* address, size_t, void* index) noexcept {
        close(address, Device{DeviceType::kCuda, static_cast<int8_t>(reinterpret_cast<intptr_t>(index))});
      },
      reinterpret_cast<void*>(static_cast<intptr_t>(device.index))));
  guard.data = nullptr;
  return storage;
}

void wait_for_shared_event(std::span<const std::byte, kDeviceEventHandleBytes> bytes, Device device) {
  cudaIpcEventHandle_t handle;
  static_assert(sizeof handle == kDeviceEventHandleBytes);
  std::memcpy(&handle, bytes.data(), sizeof handle);
  const DeviceScope scope(device);
  SCONCE_CUDA(cudaSetDevice(device.index));  // as above
  cudaEvent_t event = nullptr;
  if (const cudaError_t error = cudaIpcOpenEventHandle(&event, handle); error != cudaSuccess) {
    cudaGetLastError();
    SCONCE_CHECK(error != cudaErrorMemoryAllocation, kOutOfMemory, "failed to open CUDA IPC event: out of memory");
    SCONCE_FAIL(kInvalidArgument, "failed to open CUDA IPC event: ", cudaGetErrorString(error));
  }
  struct Guard {
    cudaEvent_t event;
    ~Guard() { SCONCE_CUDA_RELEASE(cudaEventDestroy(event)); }
  } const guard{event};
  // On the host, because copies from that device may go in streams of several devices. Not for ever: the other process
  // may never get there.
  const auto end = std::chrono::steady_clock::now() + kMaxWait;
  for (cudaError_t state = cudaEventQuery(event); state != cudaSuccess; state = cudaEventQuery(event)) {
    if (state != cudaErrorNotReady) fail(state, "waiting for another process's event");
    cudaGetLastError();
    SCONCE_CHECK(std::chrono::steady_clock::now() < end, kInvalidArgument, "CUDA IPC event: it did not happen within ",
                 kMaxWait.count(), " seconds");
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace sconce::cuda
