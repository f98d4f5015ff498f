#include "src/cuda/error.h"

namespace sconce::cuda {

void fail(cudaError_t error, const char* expression) {
  cudaGetLastError();  // an error that does not stick is gone with this
  if (error == cudaErrorMemoryAllocation) SCONCE_FAIL(kOutOfMemory, expression, ": ", cudaGetErrorString(error));
  SCONCE_FAIL(kDevice, expression, ": ", cudaGetErrorString(error));
}

void fail(CUresult error, const char* expression) {
  const char* text = nullptr;
  cuGetErrorString(error, &text);
  if (error == CUDA_ERROR_OUT_OF_MEMORY) SCONCE_FAIL(kOutOfMemory, expression, ": ", text ? text : "out of memory");
  SCONCE_FAIL(kDevice, expression, ": ", text ? text : "error ", text ? "" : std::to_string(error));
}

void check_launch(const char* name, cudaError_t error, DType dtype) {
  SCONCE_CHECK(error != cudaErrorNotSupported, kUnsupported, name, ": not implemented for '", dtype_name(dtype),
               "' on CUDA");
  check(error, name);
}

}  // namespace sconce::cuda
