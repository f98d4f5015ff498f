// The device properties that decide grid and block sizes.
#pragma once

#include <cuda_runtime_api.h>

#include <array>

#include "src/cuda/runtime/error.h"

namespace sconce::cuda {

struct DeviceProperties {
  int multiprocessors = 0, threads_per_multiprocessor = 0;
  int shared_bytes = 0;  // the most that a block can request
  int capability = 0;    // 90 for 9.0
};

// `device` must be the current one.
inline const DeviceProperties& device_properties(int device) {
  static thread_local std::array<DeviceProperties, 128> known;
  DeviceProperties& properties = known[static_cast<size_t>(device) % known.size()];
  if (!properties.multiprocessors) {
    SCONCE_CUDA(
        cudaDeviceGetAttribute(&properties.threads_per_multiprocessor, cudaDevAttrMaxThreadsPerMultiProcessor, device));
    SCONCE_CUDA(cudaDeviceGetAttribute(&properties.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    int minor = 0;
    SCONCE_CUDA(cudaDeviceGetAttribute(&properties.capability, cudaDevAttrComputeCapabilityMajor, device));
    SCONCE_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    properties.capability = 10 * properties.capability + minor;
    SCONCE_CUDA(cudaDeviceGetAttribute(&properties.multiprocessors, cudaDevAttrMultiProcessorCount, device));
  }
  return properties;
}

}  // namespace sconce::cuda
