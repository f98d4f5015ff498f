// Searching, counting and selection by position on a device, for host code. dtype: c10::ScalarType. Kernels write
// `note` to `noted` for errors that only they see.
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

// out[i] = the first j with sums[j] > i, for inclusive sums of n > 0 numbers. Elements have `itemsize` bytes. Notes a
// total other than `count`.
void launch_repeat(const int64_t* sums, int64_t n, int64_t count, int itemsize, void* out, int* noted, int note,
                   cudaStream_t stream);

// Writes the least and the greatest of count > 0 elements as two doubles.
cudaError_t launch_range(int dtype, const void* in, int64_t count, double* range, cudaStream_t stream);
// counts[b] += 1 for each element in one of `bins` over [range[0], range[1]], widened by 1 if both are equal.
cudaError_t launch_count_bins(int dtype, const void* in, int64_t count, int64_t bins, const double* range,
                              unsigned long long* counts, cudaStream_t stream);

// The middle element of each sorted row [rows, length], where NaNs come last; skip_nans ignores them. Packed.
cudaError_t launch_middle(int dtype, const void* sorted, int64_t rows, int64_t length, bool skip_nans, void* values,
                          cudaStream_t stream);
// The most frequent element of each stably sorted row (the first of several), and its last position before sorting.
cudaError_t launch_most_frequent(int dtype, const void* sorted, const int64_t* positions, int64_t rows, int64_t length,
                                 void* values, int64_t* at, cudaStream_t stream);

// Marks the ordered elements that differ from their predecessor; a NaN always does. dtype: not complex.
cudaError_t launch_starts(const void* sorted, int dtype, int64_t count, bool* starts, cudaStream_t stream);

}  // namespace sconce::cuda
