// The functions of CUDA's runtime that our host code calls, on a device that is made up: what they answer follows the
// rules of CUDA for streams that are recorded, and a test says what fails. Memory of the device is the host's.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

namespace sconce::test {

struct FakeRuntime {
  std::atomic<cudaError_t> sticks{cudaSuccess};     // what every call gives
  std::atomic<cudaError_t> of_stream{cudaSuccess};  // what the next wait for a stream gives, once
  std::atomic<int> memory_fails{0};                 // so many of the next calls that take memory
  std::atomic<int64_t> live_device{0}, live_pinned{0}, live_streams{0}, live_graphs{0};  // pieces
  std::atomic<int> device_waits{0};                                                      // cudaDeviceSynchronize
};
FakeRuntime& fake_runtime();

}  // namespace sconce::test
