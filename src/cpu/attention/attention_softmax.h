// The softmax of flash attention: one block of scores at a time, keeping each row's maximum and sum between blocks.
// One table per compute type (float, double), chosen for the CPU at hand. Nothing here allocates or throws.
#pragma once

#include <cstdint>

#include "sconce/float_types.h"

namespace sconce {

// scores[rows, columns] become weights exp(score - maximum of the row so far).
template <class T>
struct SoftmaxBlock {
  T* scores;
  int64_t stride;  // of scores, in elements
  int64_t rows, columns;
  int64_t padded;       // columns from `columns` up to this one are set to 0
  int64_t visible;      // row i sees the columns below visible + i, and at most `columns`; all others have weight 0
  const T* mask;        // added to the scores, [rows, columns] with unit column stride, or null
  int64_t mask_stride;  // 0 if all rows share one
  T* maximum;           // [rows], -infinity before the first block; it stays for a row with only -infinity
  T* sum;               // [rows], of the weights; 0 before the first block
  T* correction;        // [rows], out: the factor for the sums and products of earlier blocks
};

template <class T>
struct SoftmaxKernels {
  // A row with all scores -infinity gets weights 0. NaN in a score makes the row's sum NaN.
  void (*block)(const SoftmaxBlock<T>& block) noexcept;
  // to[i] = factor * from[i].
  void (*scale)(const T* from, T factor, T* to, int64_t n) noexcept;
};

// For few queries, which read each key and each value once: keys and values of a half type are read in place.
template <class S>
struct FewRowsKernels {
  // scores[rows, columns] = query[rows, depth], packed, times keys[columns, depth], `stride` apart.
  void (*score)(int64_t rows, int64_t columns, int64_t depth, const float* query, const S* keys, int64_t stride,
                float* scores, int64_t score_stride) noexcept;
  // sums[rows, depth] += weights[rows, columns] times values[columns, depth].
  void (*weigh)(int64_t rows, int64_t columns, int64_t depth, const float* weights, int64_t weight_stride,
                const S* values, int64_t stride, float* sums, int64_t sum_stride) noexcept;
};

// The kernels for this CPU's instruction set.
template <class T>
const SoftmaxKernels<T>& softmax_kernels() noexcept;
template <class S>
const FewRowsKernels<S>& few_rows_kernels() noexcept;

extern const FewRowsKernels<Half> kFewRowsF16Avx2, kFewRowsF16Avx512;
extern const FewRowsKernels<BFloat16> kFewRowsBf16Avx2, kFewRowsBf16Avx512;

extern const SoftmaxKernels<float> kSoftmaxF32Avx2, kSoftmaxF32Avx512;
extern const SoftmaxKernels<double> kSoftmaxF64Avx2, kSoftmaxF64Avx512;

}  // namespace sconce
