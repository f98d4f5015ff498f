// Calls of CUDA that must succeed.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

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

// Whether CUDA says of the error that the process can use the device for nothing any more. Any other may come and go.
bool ends_device(cudaError_t error) noexcept;

// For what gives back and cannot throw: errors other than none are counted, and told now and then.
void note_failure(cudaError_t error, const char* expression) noexcept;
void note_failure(CUresult error, const char* expression) noexcept;
uint64_t noted_failures() noexcept;

// Of a kernel that is written for some dtypes: kUnsupported for cudaErrorNotSupported.
void check_launch(const char* name, cudaError_t error, DType dtype);

}  // namespace sconce::cuda

#define SCONCE_CUDA_RELEASE(expression) ::sconce::cuda::note_failure((expression), #expression)
#define SCONCE_CUDA(expression) ::sconce::cuda::check((expression), #expression)
