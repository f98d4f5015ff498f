// Operations of factorise.h on views of matrices.
#pragma once

#include <cstdint>

#include "src/cpu/matmul/gemm/matrix_view.h"

namespace sconce::factorise {

// Solves A X = B in place of B [n, columns], with A's lower or upper triangle.
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

// Turns (x[0], rest) into (beta, v), where H = I - tau (1, v) (1, v)^T maps it to (beta, 0); returns tau.
template <class T>
T reflector(int64_t n, T* x);
// Products of C [m, n] with Q of k reflectors, as ormqr's; the size of work is reflectors_work(rows of Q, the other
// size of C).
int64_t reflectors_work(int64_t order, int64_t other);
template <class T>
void apply_reflectors(bool left, bool transposed, int64_t m, int64_t n, int64_t k, View<const T> reflectors,
                      const T* tau, View<T> c, T* work);

}  // namespace sconce::factorise
