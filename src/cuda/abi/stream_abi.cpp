// C ABI for the streams and devices of the calling thread: c/shim.h, torch 2.6 to 2.15.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "src/aoti_abi/abi_types.h"
#include "src/aoti_abi/guard.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"

using sconce::Device;
using sconce::DeviceType;
using sconce::aoti_abi::guard;
using sconce::cuda::current;
using sconce::cuda::Current;

namespace {

Device device_of(int32_t index) {
  return {DeviceType::kCuda, static_cast<int8_t>(index < 0 ? current().device : index)};
}

// The thread's state before a guard was made.
struct Before {
  Current state;
};

void enter(int device, cudaStream_t stream, bool with_stream) {
  Current& now = current();
  if (device != now.device || now.astray) {
    SCONCE_CUDA(cudaSetDevice(device));
    now.astray = false;
  }
  if (device != now.device) now = {.device = device, .allow_tf32 = now.allow_tf32};
  // Our allocator caches memory for the replica's own stream only.
  if (with_stream && stream != now.stream) now = {.device = device, .stream = stream, .allow_tf32 = now.allow_tf32};
}
void leave(const Before& before) noexcept {
  const bool moved = before.state.device != current().device || current().astray;
  current() = before.state;
  if (moved || before.state.astray) sconce::cuda::go_back();
}

}  // namespace

extern "C" {

AOTITorchError aoti_torch_create_cuda_guard(int32_t device_index, CUDAGuardOpaque** ret) {
  return guard("aoti_torch_create_cuda_guard", [&] {
    auto before = std::make_unique<Before>(Before{current()});
    enter(device_of(device_index).index, nullptr, false);
    *ret = reinterpret_cast<CUDAGuardOpaque*>(before.release());
  });
}
AOTITorchError aoti_torch_delete_cuda_guard(CUDAGuardOpaque* handle) {
  const std::unique_ptr<Before> before(reinterpret_cast<Before*>(handle));
  if (before) leave(*before);
  return 0;
}
AOTITorchError aoti_torch_cuda_guard_set_index(CUDAGuardOpaque*, int32_t device_index) {
  return guard("aoti_torch_cuda_guard_set_index", [&] { enter(device_of(device_index).index, nullptr, false); });
}

AOTITorchError aoti_torch_create_cuda_stream_guard(void* stream, int32_t device_index, CUDAStreamGuardOpaque** ret) {
  return guard("aoti_torch_create_cuda_stream_guard", [&] {
    auto before = std::make_unique<Before>(Before{current()});
    enter(device_of(device_index).index, static_cast<cudaStream_t>(stream), true);
    *ret = reinterpret_cast<CUDAStreamGuardOpaque*>(before.release());
  });
}
AOTITorchError aoti_torch_delete_cuda_stream_guard(CUDAStreamGuardOpaque* handle) {
  const std::unique_ptr<Before> before(reinterpret_cast<Before*>(handle));
  if (before) leave(*before);
  return 0;
}

AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index, void** ret) {
  return guard("aoti_torch_get_current_cuda_stream", [&] {
    const int device = device_of(device_index).index;
    *ret = device == current().device ? static_cast<void*>(current().stream) : nullptr;
  });
}
AOTITorchError torch_set_current_cuda_stream(void* stream, int32_t device_index) {
  return guard("torch_set_current_cuda_stream",
               [&] { enter(device_of(device_index).index, static_cast<cudaStream_t>(stream), true); });
}
AOTITorchError torch_cuda_stream_synchronize(void* stream, int32_t) {
  return guard("torch_cuda_stream_synchronize", [&] {
    sconce::cuda::refuse_capture("a wait for the stream");
    SCONCE_CUDA(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
  });
}

// Allocates in the order of the current stream.
AOTITorchError aoti_torch_cuda_caching_allocator_raw_alloc(uint64_t bytes, void** ret) {
  return guard("aoti_torch_cuda_caching_allocator_raw_alloc", [&] {
    sconce::cuda::refuse_capture("memory that the model allocates itself");
    SCONCE_CUDA(cudaMallocAsync(ret, bytes ? bytes : 1, current().stream));
  });
}
AOTITorchError aoti_torch_cuda_caching_allocator_raw_delete(void* data) {
  // The model calls this in destructors and would abort on an error.
  SCONCE_CUDA_RELEASE(cudaFreeAsync(data, current().stream));
  return 0;
}

AOTITorchError torch_c10_cuda_check_msg(int32_t error, const char* file, const char* function, uint32_t line, bool,
                                        char** message) {
  *message = nullptr;
  if (error == cudaSuccess) return 0;
  char text[512];
  std::snprintf(text, sizeof text, "CUDA error: %s (%s at %s:%u)", cudaGetErrorString(static_cast<cudaError_t>(error)),
                function ? function : "", file ? file : "", line);
  *message = ::strdup(text);
  return 0;
}
void torch_c10_cuda_free_error_msg(char* message) { std::free(message); }

}  // extern "C"
