// The inner loops of matrix products, one table per element type, chosen for this CPU.
//
// Element types: float, double, Half, BFloat16, ComplexFloat, ComplexDouble. Sums are kept in Sum<S>: float for the
// small floats, else the type itself. No function here allocates or throws; all may run on any thread.
#pragma once

#include <cstdint>
#include <type_traits>

#include "sconce/float_types.h"

namespace sconce {

template <class S>
using Sum = ComputeType<S>;

// The final step for a sum: c = alpha * sum + beta * self. Without self: c = alpha * sum.
template <class S>
struct GemmEpilogue {
  double alpha = 1, beta = 1;
  const S* self = nullptr;
  int64_t self_rs = 0, self_cs = 0;  // row and column stride, 0 if self is broadcast
};

constexpr int kStreamRows = 8;

// Factor is the type in which A is read: Sum<S>, or BFloat16 itself if the CPU multiplies pairs of them. With pairs, A
// has unit column stride and, except for `dot`, an even k, with a zero at the end; `stream` is null.
template <class S, class Factor = Sum<S>>
struct GemmKernels {
  static constexpr int kSteps = std::is_same_v<Factor, BFloat16> ? 2 : 1;  // k is rounded up to these in panels
  // Columns of a full panel, and of the narrow one for the last columns of a matrix if they fit.
  int wide, narrow;
  int rows;  // of the register tile: products with fewer rows waste part of the registers
  int panel_width(int64_t columns) const noexcept { return columns > narrow ? wide : narrow; }

  // c[m, columns] from a[m, k] and b[k, columns], columns <= wide. Rows of b are b_rs apart and hold
  // panel_width(columns) readable elements; with pairs, b is the output of `pack`, and k is even. Strides in elements.
  // c's column stride is 1.
  void (*panel)(int64_t m, int64_t k, const Factor* a, int64_t a_rs, int64_t a_cs, const S* b, int64_t b_rs,
                int64_t columns, const GemmEpilogue<S>& epilogue, S* c, int64_t c_rs) noexcept;

  // c[m, n] from a[m, k] with unit column stride and b[k, n] with unit row stride: each element is a dot product of
  // two runs of memory, nothing is repacked. For few rows.
  void (*dot)(int64_t m, int64_t n, int64_t k, const Factor* a, int64_t a_rs, const S* b, int64_t b_cs,
              const GemmEpilogue<S>& epilogue, S* c, int64_t c_rs) noexcept;
  int dot_rows;  // rows that share a pass over b

  // c[m, n] from a[m, k] and b[k, n] with unit column stride, reading b row by row; m <= kStreamRows. For few rows and
  // a b that is larger than the caches near the core. Null for complex.
  void (*stream)(int64_t m, int64_t n, int64_t k, const Factor* a, int64_t a_rs, int64_t a_cs, const S* b, int64_t b_rs,
                 const GemmEpilogue<S>& epilogue, S* c, int64_t c_rs) noexcept;

  // panel[k, panel_width(columns)] from b[k, columns] of any strides; the extra columns are zeros.
  void (*pack)(int64_t k, int64_t columns, const S* b, int64_t b_rs, int64_t b_cs, S* panel) noexcept;
};

// For this CPU.
template <class S>
const GemmKernels<S>& gemm_kernels() noexcept;
// Null if this CPU has no instructions for pairs (AVX512_BF16).
const GemmKernels<BFloat16, BFloat16>* gemm_pair_kernels() noexcept;

}  // namespace sconce
