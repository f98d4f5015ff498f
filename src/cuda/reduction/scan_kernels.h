// Scans on a device, for host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sconce::cuda {

enum class Scan { kSum, kProduct, kMost, kLeast, kLogSumExp };

// Scans packed [outer, length, inner] along the middle; no size is 0. dtype: c10::ScalarType. kMost and kLeast also
// write positions, which are below 2^32.
struct ScanCall {
  Scan scan;
  int dtype;
  const void* in;
  void* out;
  int64_t* positions;
  int64_t outer, length, inner;
};
// With a null scratch, only returns its size. cudaErrorNotSupported for other dtypes.
cudaError_t launch_scan(void* scratch, size_t& scratch_bytes, const ScanCall& call, cudaStream_t stream);

}  // namespace sconce::cuda
