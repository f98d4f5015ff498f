// Calls of CUDA that must succeed.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "sconce/check.h"

namespace sconce::cuda {

// kOutOfMemory for memory, kDevice for all else: "cudaMemcpyAsync(...): an illegal memory access was encountered".
[[noreturn, gnu::cold]] void fail(cudaError_t error, const char* expression);
[[noreturn, gnu::cold]] void fail(CUresult error, const char* expression);

inline void check(cudaError_t error, const char* expression) {
  if (error != cudaSuccess) [[unlikely]]
    fail(error, expression);
}
inline void check(CUresult error, const char* expression) {
  if (error != CUDA_SUCCESS) [[unlikely]]
    fail(error, expression);
}

}  // namespace sconce::cuda

#define SCONCE_CUDA(expression) ::sconce::cuda::check((expression), #expression)
