#include "src/cuda/runtime/error.h"

#include <atomic>
#include <bit>
#include <cstdio>

namespace sconce::cuda {
namespace {

std::atomic<uint64_t> failures{0};

void count_failure(const char* expression, const char* text) noexcept {
  const uint64_t count = failures.fetch_add(1, std::memory_order_relaxed) + 1;
  // A lost device fails every call, so we warn only at powers of two.
  if (std::has_single_bit(count))
    std::fprintf(stderr, "[WARNING] %s: %s (%llu such errors so far)\n", expression, text,
                 static_cast<unsigned long long>(count));
}

}  // namespace

const char* text_of(cudaError_t error) noexcept {
  return error == cudaErrorInitializationError
             ? "initialization error (CUDA was in use before this process was forked, and cannot be used in it: start "
               "processes by \"spawn\" or \"forkserver\")"
             : cudaGetErrorString(error);
}

void fail(cudaError_t error, const char* expression) {
  cudaGetLastError();  // clears an error that does not persist
  if (error == cudaErrorMemoryAllocation) SCONCE_FAIL(kOutOfMemory, expression, ": ", text_of(error));
  SCONCE_FAIL(kDevice, expression, ": ", text_of(error));
}

void fail(CUresult error, const char* expression) {
  const char* text = nullptr;
  cuGetErrorString(error, &text);
  if (error == CUDA_ERROR_NOT_INITIALIZED) text = text_of(cudaErrorInitializationError);
  if (error == CUDA_ERROR_OUT_OF_MEMORY) SCONCE_FAIL(kOutOfMemory, expression, ": ", text ? text : "out of memory");
  SCONCE_FAIL(kDevice, expression, ": ", text ? text : "error ", text ? "" : std::to_string(error));
}

bool ends_device(cudaError_t error) noexcept {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
      return true;
    default:
      return false;
  }
}

void note_failure(cudaError_t error, const char* expression) noexcept {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  count_failure(expression, cudaGetErrorString(error));
}
void note_failure(CUresult error, const char* expression) noexcept {
  if (error == CUDA_SUCCESS) return;
  const char* text = nullptr;
  cuGetErrorString(error, &text);
  count_failure(expression, text ? text : "a driver error");
}
uint64_t noted_failures() noexcept { return failures.load(std::memory_order_relaxed); }

void check_launch(const char* name, cudaError_t error, DType dtype) {
  SCONCE_CHECK(error != cudaErrorNotSupported, kUnsupported, name, ": not implemented for '", dtype_name(dtype),
               "' on CUDA");
  check(error, name);
}

}  // namespace sconce::cuda
