// Sorting of rows on a device, for host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sconce::cuda {

// Packed [rows, length], none is 0; sorted stably, NaN greatest, zeros equal. Of each sorted row `kept` elements from
// `first` on go to values and indices, packed [rows, kept]; an index is the position in its row, or the label there.
struct SortCall {
  int dtype;  // c10::ScalarType
  const void* in;
  const int64_t* labels;  // packed [rows, length], or null
  int64_t rows, length, first, kept;
  bool descending;
  void* values;
  int64_t* indices;
};
// A null scratch asks for its size and does nothing else. cudaErrorNotSupported for dtypes without an order.
cudaError_t launch_sort(void* scratch, size_t& scratch_bytes, const SortCall& call, cudaStream_t stream);

}  // namespace sconce::cuda
