// QR by Householder reflectors: H_i = I - tau_i v_i v_i^T, a block of them I - V T V^T.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/cpu/linalg/factorise.h"
#include "src/cpu/linalg/factorise_blocks.h"

namespace sconce::factorise {
template <class T>
T reflector(int64_t n, T* x) {
  double squares = 0;
  for (int64_t i = 1; i < n; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  double scale = 1;
  // If the sum of squares leaves the range of the type, everything is scaled and computed again. The first element is
  // scaled too: it may be so near to 0 that it has lost its digits.
  if (!(squares > 1e-280 && squares < 1e280)) {
    double largest = 0;
    for (int64_t i = 1; i < n; ++i) largest = std::max(largest, std::abs(static_cast<double>(x[i])));
    if (largest == 0 && squares == 0) return 0;
    largest = std::max(largest, std::abs(static_cast<double>(x[0])));
    if (std::isfinite(largest) && largest > 0) {
      scale = largest;
      squares = 0;
      for (int64_t i = 1; i < n; ++i) {
        const double part = static_cast<double>(x[i]) / scale;
        squares += part * part;
      }
    }
  }
  const double alpha = static_cast<double>(x[0]) / scale;
  const double beta = -std::copysign(std::hypot(alpha, std::sqrt(squares)), alpha);
  const double factor = 1 / (scale * (alpha - beta));
  if (std::isfinite(factor) && std::abs(factor) < static_cast<double>(std::numeric_limits<T>::max())) {
    const T narrow = static_cast<T>(factor);
    for (int64_t i = 1; i < n; ++i) x[i] *= narrow;
  } else {
    for (int64_t i = 1; i < n; ++i) x[i] = static_cast<T>(static_cast<double>(x[i]) / scale / (alpha - beta));
  }
  x[0] = static_cast<T>(beta * scale);
  return static_cast<T>((beta - alpha) / beta);
}

template float reflector(int64_t, float*);
template double reflector(int64_t, double*);

namespace {

constexpr int64_t kBlock = 32;

template <class T>
void factor_panel(int64_t m, int64_t n, View<T> a, T* tau) {
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    T* const v = &a(j, j);
    const int64_t rows = m - j;
    tau[j] = reflector(rows, v);
    if (tau[j] == 0) continue;
    const T diagonal = v[0];
    v[0] = 1;
    for (int64_t c = j + 1; c < n; ++c) {
      T* const to = &a(j, c);
      const T factor = tau[j] * dot(v, to, rows);
#pragma GCC ivdep
      for (int64_t i = 0; i < rows; ++i) to[i] -= factor * v[i];
    }
    v[0] = diagonal;
  }
}

// V [rows, k] of reflectors below the diagonal, and T [k, k], upper.
template <class T>
void load_block(int64_t rows, int64_t k, View<const T> a, const T* tau, T* v, T* t) {
  for (int64_t c = 0; c < k; ++c) {
    std::fill_n(v + c * rows, c, T(0));
    v[c * rows + c] = 1;
    std::copy_n(&a(0, c) + c + 1, rows - c - 1, v + c * rows + c + 1);
  }
  T products[kBlock];
  for (int64_t c = 0; c < k; ++c) {
    for (int64_t i = 0; i < c; ++i) products[i] = dot(v + i * rows + c, v + c * rows + c, rows - c);
    for (int64_t i = 0; i < k; ++i) t[c * k + i] = T(0);
    for (int64_t i = 0; i < c; ++i) {
      T sum = 0;
      for (int64_t l = i; l < c; ++l) sum += t[l * k + i] * products[l];
      t[c * k + i] = -tau[c] * sum;
    }
    t[c * k + c] = tau[c];
  }
}

// C [m, n] = op(I - V T V^T) C, or C op(I - V T V^T). `w` holds twice k times the other size of C.
template <class T>
void apply_block(bool left, bool transposed, int64_t m, int64_t n, int64_t k, const T* v, const T* t, View<T> c, T* w) {
  // From the right: on the transpose, with the other form.
  if (!left) return apply_block(true, !transposed, n, m, k, v, t, c.transposed(), w);
  const View<const T> vectors = columns_of(v, m);
  View<const T> triangle = columns_of(t, k);
  if (transposed) triangle = triangle.transposed();
  const View<T> first = columns_of(w, k), second = columns_of(w + k * n, k);
  product(first, vectors.transposed(), c.read(), k, n, m, 1, 0);
  product(second, triangle, first.read(), k, n, k, 1, 0);
  product(c, vectors, second.read(), m, n, k, -1, 1);
}

template <class T>
bool asked_size(int lwork, int64_t size, T* work, int& info) {
  info = 0;
  if (lwork == -1) *work = static_cast<T>(size);
  return lwork == -1;
}

}  // namespace

template <class T>
void geqrf(int m, int n, T* a, T* tau, T* work, int lwork, int& info) {
  if (asked_size(lwork, kBlock * (int64_t{m} + 2 * int64_t{n} + kBlock), work, info)) return;
  const View<T> all = columns_of(a, m);
  const int64_t steps = std::min(m, n);
  T *const v = work, *const t = v + kBlock * m, *const w = t + kBlock * kBlock;
  for (int64_t begin = 0; begin < steps; begin += kBlock) {
    const int64_t k = std::min(kBlock, steps - begin), rows = m - begin, rest = n - begin - k;
    if (steps <= 2 * kBlock && n <= 2 * kBlock) return factor_panel(m, n, all, tau);
    factor_panel(rows, k, all.at(begin, begin), tau + begin);
    if (rest == 0) continue;
    load_block(rows, k, all.at(begin, begin).read(), tau + begin, v, t);
    apply_block(true, true, rows, rest, k, v, t, all.at(begin, begin + k), w);
  }
}

template <class T>
void orgqr(int m, int n, int k, T* a, const T* tau, T* work, int lwork, int& info) {
  if (asked_size(lwork, int64_t{m} * k + kBlock * (int64_t{m} + 2 * int64_t{n} + kBlock), work, info)) return;
  T *const kept = work, *const v = kept + int64_t{m} * k, *const t = v + kBlock * m, *const w = t + kBlock * kBlock;
  const View<T> all = columns_of(a, m), reflectors = columns_of(kept, m);
  std::copy_n(a, int64_t{m} * k, kept);
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = 0; r < m; ++r) all(r, c) = T(r == c);
  for (int64_t begin = k == 0 ? -1 : (k - 1) / kBlock * kBlock; begin >= 0; begin -= kBlock) {
    const int64_t width = std::min(kBlock, k - begin);
    load_block(m - begin, width, reflectors.at(begin, begin).read(), tau + begin, v, t);
    apply_block(true, false, m - begin, n - begin, width, v, t, all.at(begin, begin), w);
  }
}

int64_t reflectors_work(int64_t order, int64_t other) { return kBlock * (order + 2 * other + kBlock); }

template <class T>
void apply_reflectors(bool left, bool transposed, int64_t m, int64_t n, int64_t k, View<const T> reflectors,
                      const T* tau, View<T> c, T* work) {
  const int64_t order = left ? m : n;
  T *const v = work, *const t = v + kBlock * order, *const w = t + kBlock * kBlock;
  const int64_t blocks = (k + kBlock - 1) / kBlock;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t begin = (left == transposed ? i : blocks - 1 - i) * kBlock, width = std::min(kBlock, k - begin);
    load_block(order - begin, width, reflectors.at(begin, begin), tau + begin, v, t);
    if (left)
      apply_block(true, transposed, m - begin, n, width, v, t, c.at(begin, 0), w);
    else
      apply_block(false, transposed, m, n - begin, width, v, t, c.at(0, begin), w);
  }
}
template void apply_reflectors(bool, bool, int64_t, int64_t, int64_t, View<const float>, const float*, View<float>,
                               float*);
template void apply_reflectors(bool, bool, int64_t, int64_t, int64_t, View<const double>, const double*, View<double>,
                               double*);

template <class T>
void ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c, T* work, int lwork,
           int& info) {
  const bool left = side == 'L';
  if (asked_size(lwork, reflectors_work(left ? m : n, left ? n : m), work, info)) return;
  apply_reflectors(left, trans != 'N', m, n, k, View<const T>{a, 1, lda}, tau, columns_of(c, m), work);
}

#define SCONCE_FACTORISE(T)                                        \
  template void geqrf(int, int, T*, T*, T*, int, int&);            \
  template void orgqr(int, int, int, T*, const T*, T*, int, int&); \
  template void ormqr(char, char, int, int, int, const T*, int, const T*, T*, T*, int, int&);
SCONCE_FACTORISE(float)
SCONCE_FACTORISE(double)

}  // namespace sconce::factorise
