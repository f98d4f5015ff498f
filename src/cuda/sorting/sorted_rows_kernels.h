// Selects the first elements of rows in an order without sorting the rows. For host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sconce::cuda {

// in [rows, length] is packed; no size is 0; length is at most INT32_MAX. Selects the `count` elements of each row that
// a stable sort puts first (NaN greatest, zeros equal), keeps their order in the row, and writes values and indices,
// packed [rows, count]. With `last_only`, writes only the one that would be sorted last, packed [rows].
struct SelectCall {
  int dtype;  // c10::ScalarType
  const void* in;
  int64_t rows, length, count;
  bool descending, last_only;
  void* values;
  int64_t* indices;
  int multiprocessors;  // of the device
};
// With a null scratch, only returns its size. cudaErrorNotSupported for dtypes without an order.
cudaError_t launch_select(void* scratch, size_t& scratch_bytes, const SelectCall& call, cudaStream_t stream);

}  // namespace sconce::cuda
