// Calls of CUDA that must succeed.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "sconce/check.h"
#include "sconce/dtype.h"

namespace sconce::cuda {

// CUDA's text; for the error in a child of fork(), with the reason and the remedy.
const char* text_of(cudaError_t error) noexcept;

// Throws kOutOfMemory or kDevice, with text like "cudaMemcpyAsync(...): an illegal memory access was encountered".
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

// True for errors after which the process can no longer use the device. Other errors may pass.
bool ends_device(cudaError_t error) noexcept;

// For functions that free and cannot throw: counts the error and warns about some of them.
void note_failure(cudaError_t error, const char* expression) noexcept;
void note_failure(CUresult error, const char* expression) noexcept;
uint64_t noted_failures() noexcept;

// For a kernel that supports some dtypes only: cudaErrorNotSupported becomes kUnsupported.
void check_launch(const char* name, cudaError_t error, DType dtype);

}  // namespace sconce::cuda

#define SCONCE_CUDA_RELEASE(expression) ::sconce::cuda::note_failure((expression), #expression)
#define SCONCE_CUDA(expression) ::sconce::cuda::check((expression), #expression)
