// Searching in sorted rows on a device, for host code. dtype: c10::ScalarType. Kernels write `note` to `noted` for
// errors that only they see.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

struct SearchCall {
  int dtype;                    // float32, float64, int32 or int64; of sequence and values
  const void* sequence;         // packed [rows, n], or [n] with one row
  const void* values;           // packed [rows, each], or any number of them with one row
  const int64_t* sorter;        // null: none; has the sequence's sizes
  int64_t n, each, count;       // count: of all values
  bool one_row, right, narrow;  // narrow: int32 results
  void* out;
  int* noted;
  int note;
};
void launch_search(const SearchCall& call, cudaStream_t stream);

// Marks the ordered elements that differ from their predecessor; a NaN always does. dtype: not complex.
cudaError_t launch_starts(const void* sorted, int dtype, int64_t count, bool* starts, cudaStream_t stream);

}  // namespace sconce::cuda
