// Sorting of rows on a device, for host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sconce::cuda {

// in [rows, length] is packed; no size is 0. Sorts rows stably (NaN greatest, zeros equal) and writes `kept` elements
// from `first` on to values and indices, packed [rows, kept]. An index is the position in the row, or the label there.
struct SortCall {
  int dtype;  // c10::ScalarType
  const void* in;
  const int64_t* labels;  // packed [rows, length], or null
  int64_t rows, length, first, kept;
  bool descending;
  void* values;
  int64_t* indices;
};
// With a null scratch, only returns its size. cudaErrorNotSupported for dtypes without an order.
cudaError_t launch_sort(void* scratch, size_t& scratch_bytes, const SortCall& call, cudaStream_t stream);

}  // namespace sconce::cuda
