// Searching, counting and selection by position on a device, for host code. dtype: c10::ScalarType. `noted`: where
// `note` goes for what only kernels see.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sconce::cuda {

struct SearchCall {
  int dtype;                    // float32, float64, int32 or int64, of both
  const void* sequence;         // packed [rows, n], or [n] with one row
  const void* values;           // packed [rows, each], or any number of them with one row
  const int64_t* sorter;        // null: none; of the sequence's sizes
  int64_t n, each, count;       // count: of all values
  bool one_row, right, narrow;  // narrow: int32 results
  void* out;
  int* noted;
  int note;
};
void launch_search(const SearchCall& call, cudaStream_t stream);

// out[i] = the first j with sums[j] > i: sums are inclusive and of n > 0 numbers. Elements of `itemsize` bytes; a total
// other than `count` is noted.
void launch_repeat(const int64_t* sums, int64_t n, int64_t count, int itemsize, void* out, int* noted, int note,
                   cudaStream_t stream);

// The lowest and the highest of count > 0 elements, as two doubles.
cudaError_t launch_range(int dtype, const void* in, int64_t count, double* range, cudaStream_t stream);
// counts[b] += 1 for each element in one of `bins` of [range[0], range[1]], widened by 1 where they are equal.
cudaError_t launch_count_bins(int dtype, const void* in, int64_t count, int64_t bins, const double* range,
                              unsigned long long* counts, cudaStream_t stream);

// Of sorted [rows, length] with NaNs last: the middle one, or with skip_nans that of the others; packed.
cudaError_t launch_middle(int dtype, const void* sorted, int64_t rows, int64_t length, bool skip_nans, void* values,
                          cudaStream_t stream);
// Of stably sorted [rows, length]: the most frequent, the first of several, and where it stood last.
cudaError_t launch_most_frequent(int dtype, const void* sorted, const int64_t* positions, int64_t rows, int64_t length,
                                 void* values, int64_t* at, cudaStream_t stream);

// Which of `count` ordered elements are not as the one before them; NaN never is. dtype: no complex ones.
cudaError_t launch_starts(const void* sorted, int dtype, int64_t count, bool* starts, cudaStream_t stream);

}  // namespace sconce::cuda
