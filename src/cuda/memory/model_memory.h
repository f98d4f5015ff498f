// Replacements for the runtime's memory functions in models. While a container is made, its constants' memory is a
// placeholder address and copies to it are only recorded (DeviceLoading). Other calls go to the runtime.
#pragma once

#include <cuda_runtime_api.h>

namespace sconce::cuda {

cudaError_t model_malloc(void** address, size_t bytes) noexcept;
cudaError_t model_free(void* address) noexcept;
cudaError_t model_memcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) noexcept;
cudaError_t model_memcpy_async(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                               cudaStream_t stream) noexcept;

}  // namespace sconce::cuda
