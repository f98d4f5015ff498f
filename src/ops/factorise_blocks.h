// Views of matrices and what the factorisations of factorise.h do with them.
#pragma once

#include <cstdint>

#include "src/ops/dispatch.h"
#include "src/ops/gemm.h"

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

// X of A X = B in the place of B [n, columns], with A's lower or upper triangle.
template <class T>
void solve(bool upper, bool unit, int64_t n, int64_t columns, View<const T> a, View<T> b);
// The lower triangle of C [n, n] = beta C + alpha A A^T, A [n, k]; the other one is overwritten in part.
template <class T>
void lower_square(View<T> c, View<const T> a, int64_t n, int64_t k, double alpha, double beta) {
  constexpr int64_t kWhole = 96;
  if (n <= kWhole) return product(c, a, a.transposed(), n, n, k, alpha, beta);
  const int64_t half = (n / 2 + 15) / 16 * 16;
  lower_square(c, a, half, k, alpha, beta);
  product(c.at(half, 0), a.at(half, 0), a.transposed(), n - half, half, k, alpha, beta);
  lower_square(c.at(half, half), a.at(half, 0), n - half, k, alpha, beta);
}

// Turns (x[0], rest) into (beta, v), where H = I - tau (1, v) (1, v)^T takes it to (beta, 0); returns tau.
template <class T>
T reflector(int64_t n, T* x);
// Products of C [m, n] with Q of k reflectors, as ormqr's; work of reflectors_work(rows of Q, the other size of C).
int64_t reflectors_work(int64_t order, int64_t other);
template <class T>
void apply_reflectors(bool left, bool transposed, int64_t m, int64_t n, int64_t k, View<const T> reflectors,
                      const T* tau, View<T> c, T* work);

}  // namespace sconce::factorise
