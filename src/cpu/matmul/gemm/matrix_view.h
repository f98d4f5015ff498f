// Views of matrices, and products of them in place.
#pragma once

#include <cstdint>

#include "src/cpu/matmul/gemm/gemm.h"
#include "src/tensor/elements/dispatch.h"

namespace sconce::factorise {

template <class T>
struct View {
  T* data;
  int64_t rs, cs;  // between rows, between columns
  T& operator()(int64_t r, int64_t c) const { return data[r * rs + c * cs]; }
  View at(int64_t r, int64_t c) const { return {data + r * rs + c * cs, rs, cs}; }
  View transposed() const { return {data, cs, rs}; }
  View<const T> read() const { return {data, rs, cs}; }
};
template <class T>
View<T> columns_of(T* data, int64_t rows) {
  return {data, 1, rows > 1 ? rows : 1};
}

// C [m, n] = beta C + alpha A B.
template <class T>
void product(View<T> c, View<const T> a, View<const T> b, int64_t m, int64_t n, int64_t k, double alpha, double beta) {
  if (m == 0 || n == 0) return;
  MatrixProduct p{.dtype = kDType<T>,
                  .m = m,
                  .n = n,
                  .k = k,
                  .a = {a.data, 0, a.rs, a.cs},
                  .b = {b.data, 0, b.rs, b.cs},
                  .self = {},
                  .c = c.data,
                  .c_row_stride = c.rs,
                  .c_column_stride = c.cs};
  if (beta != 0) p.self = {c.data, 0, c.rs, c.cs};
  p.alpha = alpha;
  p.beta = beta;
  matrix_product("linear algebra", p);
}

// Sums of packed rows, in a few vectors at once.
template <class T>
T dot(const T* x, const T* y, int64_t n) {
  constexpr int kLanes = 32 / sizeof(T);
  typedef T Vector __attribute__((vector_size(32), aligned(sizeof(T))));
  Vector sums[2] = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes)
    for (int v = 0; v < 2; ++v)
      sums[v] +=
          *reinterpret_cast<const Vector*>(x + i + v * kLanes) * *reinterpret_cast<const Vector*>(y + i + v * kLanes);
  sums[0] += sums[1];
  T sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += sums[0][lane];
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

}  // namespace sconce::factorise
