// Triangular systems, Cholesky.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/cpu/linalg/factorise.h"
#include "src/cpu/linalg/factorise_blocks.h"
#include "src/cpu/linalg/lapack_calls.h"

namespace sconce::factorise {
namespace {

constexpr int64_t kBase = 64;    // solved and factored in one piece, without products
constexpr int64_t kStripe = 16;  // columns of B at a time

// A stripe of B with its columns side by side, so that a step of the substitution is one vector for all of them.
template <class T>
void solve_base(bool upper, bool unit, int64_t n, int64_t columns, View<const T> a, View<T> b) {
  alignas(64) T packed[kBase * kBase], diagonal[kBase];
  for (int64_t k = 0; k < n; ++k) {
    diagonal[k] = unit ? T(1) : a(k, k);
    for (int64_t i = upper ? 0 : k + 1; i < (upper ? k : n); ++i) packed[k * n + i] = a(i, k);
  }
  constexpr int64_t kLanes = 32 / sizeof(T), kVectors = kStripe / kLanes;
  typedef T Vector __attribute__((vector_size(32)));
  Vector x[kBase][kVectors];
  for (int64_t begin = 0; begin < columns; begin += kStripe) {
    const int64_t count = std::min(kStripe, columns - begin);
    T* const packed_x = reinterpret_cast<T*>(x);
    if (count == kStripe && b.cs == 1) {
      for (int64_t i = 0; i < n; ++i) std::memcpy(x[i], &b(i, begin), sizeof x[i]);
    } else {
      for (int64_t j = 0; j < kStripe; ++j)
        for (int64_t i = 0; i < n; ++i) packed_x[i * kStripe + j] = j < count ? b(i, begin + j) : T(0);
    }
    for (int64_t step = 0; step < n; ++step) {
      const int64_t k = upper ? n - 1 - step : step;
      Vector row[kVectors];
      for (int v = 0; v < kVectors; ++v) row[v] = x[k][v];
      if (!unit)
        for (int v = 0; v < kVectors; ++v) x[k][v] = row[v] = row[v] / diagonal[k];
      const T* const column = packed + k * n;
      for (int64_t i = upper ? 0 : k + 1; i < (upper ? k : n); ++i)
        for (int v = 0; v < kVectors; ++v) x[i][v] -= column[i] * row[v];
    }
    if (count == kStripe && b.cs == 1) {
      for (int64_t i = 0; i < n; ++i) std::memcpy(&b(i, begin), x[i], sizeof x[i]);
    } else {
      for (int64_t j = 0; j < count; ++j)
        for (int64_t i = 0; i < n; ++i) b(i, begin + j) = packed_x[i * kStripe + j];
    }
  }
}

// Solves for one column, which is contiguous, as are those of A.
template <class T>
void solve_column(bool upper, bool unit, int64_t n, View<const T> a, T* x) {
  for (int64_t step = 0; step < n; ++step) {
    const int64_t k = upper ? n - 1 - step : step;
    if (!unit) x[k] /= a(k, k);
    const T factor = x[k], *const column = &a(0, k);
    const int64_t from = upper ? 0 : k + 1, to = upper ? k : n;
    for (int64_t i = from; i < to; ++i) x[i] -= factor * column[i];
  }
}

}  // namespace

template <class T>
void solve(bool upper, bool unit, int64_t n, int64_t columns, View<const T> a, View<T> b) {
  if (n == 0 || columns == 0) return;
  if (columns <= 3 && a.rs == 1 && b.rs == 1) {
    for (int64_t j = 0; j < columns; ++j) solve_column(upper, unit, n, a, &b(0, j));
    return;
  }
  if (n <= kBase) return solve_base(upper, unit, n, columns, a, b);
  const int64_t half = (n / 2 + 15) / 16 * 16, rest = n - half;
  if (upper) {
    solve(upper, unit, rest, columns, a.at(half, half), b.at(half, 0));
    product(b, a.at(0, half), b.at(half, 0).read(), half, columns, rest, -1, 1);
    solve(upper, unit, half, columns, a, b);
  } else {
    solve(upper, unit, half, columns, a, b);
    product(b.at(half, 0), a.at(half, 0), b.read(), rest, columns, half, -1, 1);
    solve(upper, unit, rest, columns, a.at(half, half), b.at(half, 0));
  }
}
template void solve(bool, bool, int64_t, int64_t, View<const float>, View<float>);
template void solve(bool, bool, int64_t, int64_t, View<const double>, View<double>);

namespace {

// Factors the lower triangle of a small matrix. Returns the number, from 1, of the first column whose pivot is not
// positive; 0 if there is none.
template <class T>
int cholesky_base(int64_t n, View<T> a) {
  alignas(64) T l[kBase * kBase];
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = c; r < n; ++r) l[c * n + r] = a(r, c);
  int info = 0;
  for (int64_t c = 0; c < n && info == 0; ++c) {
    T* const column = l + c * n;
    for (int64_t k = 0; k < c; ++k) {
      const T factor = l[k * n + c], *const before = l + k * n;
#pragma GCC ivdep
      for (int64_t r = c; r < n; ++r) column[r] -= factor * before[r];
    }
    if (!(column[c] > 0)) {
      info = static_cast<int>(c) + 1;
      break;
    }
    const T root = std::sqrt(column[c]), scale = 1 / root;
    column[c] = root;
    for (int64_t r = c + 1; r < n; ++r) column[r] *= scale;
  }
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = c; r < n; ++r) a(r, c) = l[c * n + r];
  return info;
}

template <class T>
int cholesky(int64_t n, View<T> a) {
  if (n <= kBase) return cholesky_base(n, a);
  const int64_t half = (n / 2 + 15) / 16 * 16, rest = n - half;
  if (const int info = cholesky(half, a)) return info;
  solve(false, false, half, rest, a.read(), a.at(half, 0).transposed());
  lower_square(a.at(half, half), a.at(half, 0).read(), rest, half, -1, 1);
  const int info = cholesky(rest, a.at(half, half));
  return info ? info + static_cast<int>(half) : 0;
}

// L's inverse in its place; the elements above the diagonal are 0 and stay so.
template <class T>
void invert(int64_t n, View<T> l) {
  if (n <= kBase) {
    alignas(64) T inverse[kBase * kBase];
    for (int64_t i = 0; i < n * n; ++i) inverse[i] = T(i % (n + 1) == 0);
    solve_base(false, false, n, n, l.read(), columns_of(inverse, n));
    for (int64_t c = 0; c < n; ++c)
      for (int64_t r = c; r < n; ++r) l(r, c) = inverse[c * n + r];
    return;
  }
  const int64_t half = (n / 2 + 15) / 16 * 16, rest = n - half;
  const View<T> below = l.at(half, 0);
  solve(false, false, rest, half, l.at(half, half).read(), below);
  // X L11 = below is L11^T X^T = below^T.
  solve(true, false, half, rest, l.read().transposed(), below.transposed());
  for (int64_t c = 0; c < half; ++c)
    for (int64_t r = 0; r < rest; ++r) below(r, c) = -below(r, c);
  invert(half, l);
  invert(rest, l.at(half, half));
}

}  // namespace

template <class T>
void trsm(char side, char uplo, char diagonal, int m, int n, const T* a, T* b, char trans) {
  const bool left = side == 'L', transposed = trans != 'N';
  View<const T> triangle = columns_of(a, left ? m : n);
  View<T> x = columns_of(b, m);
  bool upper = uplo == 'U';
  // X op(A) = B is op(A)^T X^T = B^T.
  if (transposed == left) triangle = triangle.transposed(), upper = !upper;
  solve(upper, diagonal == 'U', left ? m : n, left ? n : m, triangle, left ? x : x.transposed());
}

template <class T>
void potrf(char uplo, int n, T* a, int& info) {
  const View<T> whole = columns_of(a, n);
  info = cholesky(n, uplo == 'L' ? whole : whole.transposed());
}

template <class T>
void potrs(char uplo, int n, int columns, const T* factor, T* b, int& info) {
  info = 0;
  trsm('L', uplo, 'N', n, columns, factor, b, uplo == 'L' ? 'N' : 'T');
  trsm('L', uplo, 'N', n, columns, factor, b, uplo == 'L' ? 'T' : 'N');
}

template <class T>
void potri(char uplo, int n, T* a, int& info) {
  const View<T> whole = columns_of(a, n), lower = uplo == 'L' ? whole : whole.transposed();
  for (int i = 0; i < n; ++i)
    if (a[int64_t{i} * (n + 1)] == 0) {
      info = i + 1;
      return;
    }
  info = 0;
  const Workspace<T> memory(int64_t{n} * n);
  const View<T> l = columns_of(memory.data(), n);
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = 0; r < n; ++r) l(r, c) = r < c ? T(0) : lower(r, c);
  invert(n, l);
  lower_square(lower, l.read().transposed(), n, n, 1, 0);
}

#define SCONCE_FACTORISE(T)                                           \
  template void trsm(char, char, char, int, int, const T*, T*, char); \
  template void potrf(char, int, T*, int&);                           \
  template void potrs(char, int, int, const T*, T*, int&);            \
  template void potri(char, int, T*, int&);
SCONCE_FACTORISE(float)
SCONCE_FACTORISE(double)

}  // namespace sconce::factorise
