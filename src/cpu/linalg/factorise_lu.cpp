// LU with partial pivoting, by halves of the columns.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "src/cpu/linalg/factorise.h"
#include "src/cpu/linalg/factorise_blocks.h"

namespace sconce::factorise {
namespace {

// Rows of `columns` columns: row i and row pivots[i] - 1 change places, in order or backwards.
template <class T>
void swap_rows(View<T> a, int64_t columns, const int* pivots, int64_t count, bool backwards = false) {
  for (int64_t c = 0; c < columns; ++c) {
    T* const column = &a(0, c);
    if (backwards)
      for (int64_t i = count; i-- > 0;) std::swap(column[i], column[pivots[i] - 1]);
    else
      for (int64_t i = 0; i < count; ++i) std::swap(column[i], column[pivots[i] - 1]);
  }
}

template <class T>
void factor_base(int64_t m, int64_t n, View<T> a, int* pivots, int& info) {
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    T* const column = &a(0, j);
    int64_t best = j;
    T largest = std::abs(column[j]);
    for (int64_t i = j + 1; i < m; ++i)
      if (std::abs(column[i]) > largest) largest = std::abs(column[i]), best = i;
    pivots[j] = static_cast<int>(best) + 1;
    if (column[best] == 0) {
      if (info == 0) info = static_cast<int>(j) + 1;
    } else {
      if (best != j)
        for (int64_t c = 0; c < n; ++c) std::swap(a(j, c), a(best, c));
      if (std::abs(column[j]) >= std::numeric_limits<T>::min()) {
        const T scale = 1 / column[j];
        for (int64_t i = j + 1; i < m; ++i) column[i] *= scale;
      } else {
        for (int64_t i = j + 1; i < m; ++i) column[i] /= column[j];
      }
    }
    for (int64_t c = j + 1; c < n; ++c) {
      T* const to = &a(0, c);
      const T factor = to[j];
#pragma GCC ivdep
      for (int64_t i = j + 1; i < m; ++i) to[i] -= factor * column[i];
    }
  }
}

template <class T>
void factor(int64_t m, int64_t n, View<T> a, int* pivots, int& info) {
  const int64_t steps = std::min(m, n);
  if (n <= 8 || m * n <= 1024) return factor_base(m, n, a, pivots, info);
  const int64_t half = steps <= 16 ? steps / 2 : (steps / 2 + 7) / 8 * 8, rest = n - half;
  factor(m, half, a, pivots, info);
  swap_rows(a.at(0, half), rest, pivots, half);
  solve(false, true, half, rest, a.read(), a.at(0, half));
  product(a.at(half, half), a.at(half, 0).read(), a.at(0, half).read(), m - half, rest, half, -1, 1);
  int below = 0;
  factor(m - half, rest, a.at(half, half), pivots + half, below);
  if (info == 0 && below) info = below + static_cast<int>(half);
  swap_rows(a.at(half, 0), half, pivots + half, steps - half);
  for (int64_t i = half; i < steps; ++i) pivots[i] += static_cast<int>(half);
}

}  // namespace

template <class T>
void getrf(int m, int n, T* a, int* pivots, int& info) {
  info = 0;
  if (m > 0 && n > 0) factor(m, n, columns_of(a, m), pivots, info);
}

template <class T>
void getrs(char trans, int n, int columns, const T* lu, const int* pivots, T* b, int& info) {
  info = 0;
  const View<T> x = columns_of(b, n);
  if (trans == 'N') {
    swap_rows(x, columns, pivots, n);
    trsm('L', 'L', 'U', n, columns, lu, b, 'N');
    trsm('L', 'U', 'N', n, columns, lu, b, 'N');
  } else {
    trsm('L', 'U', 'N', n, columns, lu, b, 'T');
    trsm('L', 'L', 'U', n, columns, lu, b, 'T');
    swap_rows(x, columns, pivots, n, true);
  }
}

#define SCONCE_FACTORISE(T)                      \
  template void getrf(int, int, T*, int*, int&); \
  template void getrs(char, int, int, const T*, const int*, T*, int&);
SCONCE_FACTORISE(float)
SCONCE_FACTORISE(double)

}  // namespace sconce::factorise
