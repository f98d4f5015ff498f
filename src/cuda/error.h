// Calls of CUDA that must succeed.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "sconce/check.h"
#include "sconce/dtype.h"

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

// Of a kernel that is written for some dtypes: kUnsupported for cudaErrorNotSupported.
void check_launch(const char* name, cudaError_t error, DType dtype);

}  // namespace sconce::cuda

#define SCONCE_CUDA(expression) ::sconce::cuda::check((expression), #expression)
