// Symmetric eigenvalue problems: A = Q T Q^T by reflectors, T's eigenvectors by LAPACK, and back.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/cpu/linalg/factorise_blocks.h"
#include "src/cpu/linalg/lapack.h"
#include "src/cpu/linalg/lapack_calls.h"

namespace sconce::factorise {
namespace {

// Reduces the whole symmetric matrix M and leaves the reflectors below its diagonal.
template <class T>
void make_tridiagonal(int64_t n, View<T> m, T* diagonal, T* beside, T* tau, T* product) {
  for (int64_t j = 0; j + 1 < n; ++j) {
    diagonal[j] = m(j, j);
    T* const v = &m(j + 1, j);
    const int64_t rows = n - j - 1;
    tau[j] = reflector(rows, v);
    beside[j] = v[0];
    if (tau[j] == 0) continue;
    v[0] = 1;
    // M - v w^T - w v^T, w = p - (tau / 2) (p . v) v, p = tau M v.
    std::fill_n(product, rows, T(0));
    for (int64_t c = 0; c < rows; ++c) {
      const T factor = tau[j] * v[c], *const column = &m(j + 1, j + 1 + c);
#pragma GCC ivdep
      for (int64_t r = 0; r < rows; ++r) product[r] += factor * column[r];
    }
    const T half = tau[j] / 2 * dot(product, v, rows);
    for (int64_t r = 0; r < rows; ++r) product[r] -= half * v[r];
    for (int64_t c = 0; c < rows; ++c) {
      T* const column = &m(j + 1, j + 1 + c);
      const T by_v = product[c], by_w = v[c];
#pragma GCC ivdep
      for (int64_t r = 0; r < rows; ++r) column[r] -= by_v * v[r] + by_w * product[r];
    }
  }
  diagonal[n - 1] = m(n - 1, n - 1);
}

}  // namespace

template <class T>
bool syevd(char job, char uplo, int n, T* a, T* w, int& info) {
  if (n < 3) return false;
  const int64_t size = n;
  const View<T> given = columns_of(a, size);
  double largest = 0;
  bool finite = true;
  for (int64_t c = 0; c < size; ++c)
    for (int64_t r = uplo == 'L' ? c : 0; r < (uplo == 'L' ? size : c + 1); ++r) {
      const double magnitude = std::abs(static_cast<double>(given(r, c)));
      finite &= std::isfinite(magnitude);
      largest = std::max(largest, magnitude);
    }
  const double least = std::sqrt(static_cast<double>(std::numeric_limits<T>::min()) /
                                 static_cast<double>(std::numeric_limits<T>::epsilon()));
  if (!finite || largest < least || largest > 1 / least) return false;

  const bool vectors = job == 'V';
  const Workspace<T> whole(size * size), rest(3 * size);
  const View<T> m = columns_of(whole.data(), size);
  T *const beside = rest.data(), *const tau = beside + size, *const product = tau + size;
  for (int64_t c = 0; c < size; ++c)
    for (int64_t r = c; r < size; ++r) m(r, c) = m(c, r) = uplo == 'L' ? given(r, c) : given(c, r);
  make_tridiagonal(size, m, w, beside, tau, product);

  T answer{};
  int int_answer = 0;
  Lapack<T>::stedc(vectors ? 'I' : 'N', n, w, beside, a, &answer, -1, &int_answer, -1, info);
  const int lwork = std::max(workspace_size(answer), 1), liwork = std::max(int_answer, 1);
  {
    const Workspace<T> work(lwork);
    const Workspace<int> iwork(liwork);
    Lapack<T>::stedc(vectors ? 'I' : 'N', n, w, beside, a, work.data(), lwork, iwork.data(), liwork, info);
  }
  if (!vectors || info != 0) return true;
  const Workspace<T> work(reflectors_work(size - 1, size));
  apply_reflectors(true, false, size - 1, size, size - 1, m.at(1, 0).read(), tau, given.at(1, 0), work.data());
  return true;
}
template bool syevd(char, char, int, float*, float*, int&);
template bool syevd(char, char, int, double*, double*, int&);

}  // namespace sconce::factorise
