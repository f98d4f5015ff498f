// Distances between rows. Match aten::_cdist_forward, _cdist_backward, _pdist_forward, _pdist_backward (torch 2.15,
// CPU).
//
// Float and double, any strides, row-major results. p >= 0: 0 counts differing elements, infinity takes the largest
// difference. kInvalidArgument for ranks, columns or batches that do not fit; kUnsupported for dtypes.
#include <algorithm>
#include <cmath>

#include "sconce/check.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/rules/distance_norms.h"
#include "src/tensor/rules/row_sets.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

constexpr int64_t kElementsPerThread = 16384;
constexpr int64_t kLanes = 16;  // accumulators, so that sums vectorise

template <class Norm, class T>
T distance(const T* a, const T* b, int64_t m, T p) noexcept {
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= m; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = Norm::join(lanes[l], Norm::map(std::abs(a[i + l] - b[i + l]), p));
  for (int64_t l = 0; i < m; ++i, ++l) lanes[l] = Norm::join(lanes[l], Norm::map(std::abs(a[i] - b[i]), p));
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l) lanes[l] = Norm::join(lanes[l], lanes[l + half]);
  return Norm::finish(lanes[0], p);
}

// Rows of b side by side: element i of row j at [i * pitch + j], pitch a multiple of kWide. Zeros where there is no
// row.
constexpr int64_t kWide = 32;
int64_t pitch_of(int64_t rows) noexcept { return (rows + kWide - 1) / kWide * kWide; }
template <class T>
Tensor side_by_side(const T* rows, int64_t batches, int64_t r, int64_t m) {
  const int64_t pitch = pitch_of(r), sizes[] = {batches, m, pitch};
  Tensor packed = Tensor::empty(sizes, kDType<T>);
  T* const to = packed.data_as<T>();
  for (int64_t n = 0; n < batches; ++n)
    for (int64_t i = 0; i < m; ++i) {
      T* const line = to + (n * m + i) * pitch;
      for (int64_t j = 0; j < r; ++j) line[j] = rows[(n * r + j) * m + i];
      std::fill(line + r, line + pitch, T(0));
    }
  return packed;
}

// From a to kWide rows that lie side by side; the first `count` are stored.
template <class Norm, class T>
void distances(const T* a, const T* lines, int64_t pitch, int64_t m, int64_t count, T* to, T p) noexcept {
  constexpr int64_t kSteps = 128;  // sums of so many differences are added up, for precision
  T totals[kWide] = {};
  for (int64_t begin = 0; begin < m; begin += kSteps) {
    T sums[kWide] = {};
    const int64_t end = std::min(m, begin + kSteps);
    for (int64_t i = begin; i < end; ++i) {
      const T x = a[i], *const y = lines + i * pitch;
      for (int64_t j = 0; j < kWide; ++j) sums[j] = Norm::join(sums[j], Norm::map(std::abs(x - y[j]), p));
    }
    for (int64_t j = 0; j < kWide; ++j) totals[j] = Norm::join(totals[j], sums[j]);
  }
  for (int64_t j = 0; j < kWide; ++j) totals[j] = Norm::finish(totals[j], p);
  std::copy_n(totals, count, to);
}

int64_t rows_per_thread(int64_t work) { return std::max<int64_t>(1, kElementsPerThread / std::max<int64_t>(1, work)); }

// Two batches of rows as [batch, rows, columns], packed.
struct Pair {
  Tensor x1, x2;
  Shape batch;
  int64_t batches = 1, p = 0, r = 0, m = 0;
};
Pair broadcast_pair(std::string_view name, const Tensor& x1, const Tensor& x2) {
  const auto batch_sizes = [](const Tensor& x) { return x.sizes().first(static_cast<size_t>(x.dim() - 2)); };
  Pair pair;
  pair.batch = broadcast_shapes(name, batch_sizes(x1), batch_sizes(x2));
  pair.p = x1.size(x1.dim() - 2);
  pair.r = x2.size(x2.dim() - 2);
  pair.m = x1.size(x1.dim() - 1);
  for (const int64_t size : IntSpan(pair.batch)) pair.batches *= size;
  const auto packed = [&](const Tensor& x, int64_t rows) {
    Shape sizes = pair.batch;
    sizes.push_back(rows);
    sizes.push_back(x.size(x.dim() - 1));
    return contiguous(expand(name, x, sizes));
  };
  pair.x1 = packed(x1, pair.p);
  pair.x2 = packed(x2, pair.r);
  return pair;
}

Shape with_matrix(const Shape& batch, int64_t rows, int64_t columns) {
  Shape sizes = batch;
  sizes.push_back(rows);
  sizes.push_back(columns);
  return sizes;
}

// sqrt(|a|^2 + |b|^2 - 2 ab) as one product: [-2 a, |a|^2, 1] [b, 1, |b|^2]^T.
template <class T>
void euclidean_by_product(const Pair& pair, Tensor& out) {
  const auto augmented = [&](const Tensor& x, int64_t rows, bool first) {
    const int64_t sizes[] = {pair.batches, rows, pair.m + 2};
    Tensor wide = Tensor::empty(sizes, x.dtype());
    const T* from = x.data_as<T>();
    T* to = wide.data_as<T>();
    for (int64_t row = 0; row < pair.batches * rows; ++row, from += pair.m, to += pair.m + 2) {
      T norm = 0;
      for (int64_t i = 0; i < pair.m; ++i) {
        norm += from[i] * from[i];
        to[i] = first ? -2 * from[i] : from[i];
      }
      to[pair.m] = first ? norm : T(1);
      to[pair.m + 1] = first ? T(1) : norm;
    }
    return wide;
  };
  const Tensor a = augmented(pair.x1, pair.p, true), b = augmented(pair.x2, pair.r, false);
  const int64_t order[] = {0, 2, 1}, sizes[] = {pair.batches, pair.p, pair.r};
  Tensor product = reshape(out, sizes);
  bmm_out(product, a, permute(b, order));
  T* value = out.data_as<T>();
  parallel_for(0, out.numel(), kElementsPerThread, [value](int64_t begin, int64_t end) noexcept {
    for (int64_t i = begin; i < end; ++i) value[i] = std::sqrt(value[i] < 0 ? T(0) : value[i]);
  });
}

}  // namespace

// [B..., P, M], [B..., R, M] -> [B..., P, R]; batches broadcast. compute_mode: 0 (and none) takes the way over a matrix
// product for p = 2 where P or R is above 25, 1 always, 2 never.
Tensor _cdist_forward(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode) {
  check_row_sets("cdist", x1, x2);
  SCONCE_CHECK(p >= 0, kInvalidArgument, "cdist only supports non-negative p values");
  SCONCE_CHECK(is_floating(x1.dtype()), kInvalidArgument,
               "cdist only supports floating-point dtypes, X1 got: ", dtype_name(x1.dtype()));
  const int64_t mode = compute_mode.value_or(0);
  SCONCE_CHECK(mode >= 0 && mode <= 2, kInvalidArgument, "cdist: possible modes: 0, 1, 2, but was: ", mode);
  const Pair pair = broadcast_pair("cdist", x1, x2);
  Tensor out = Tensor::empty(with_matrix(pair.batch, pair.p, pair.r), x1.dtype());
  if (out.numel() == 0) return out;
  if (pair.m == 0) {
    zero(out);
    return out;
  }
  dispatch_float_double(x1.dtype(), "cdist", [&]<class T>() {
    if (p == 2 && (mode == 1 || (mode == 0 && (pair.p > 25 || pair.r > 25)))) return euclidean_by_product<T>(pair, out);
    const T *a = pair.x1.data_as<T>(), *b = pair.x2.data_as<T>();
    T* to = out.data_as<T>();
    with_norm<T>(p, [&]<class Norm>(Norm) {
      // Packing the rows of x2 pays if several rows of x1 are compared with them. General powers take far longer than
      // packing.
      if (pair.p >= 4 && pair.r >= 8 && !std::is_same_v<Norm, NormPower<T>>) {
        const Tensor packed = side_by_side(b, pair.batches, pair.r, pair.m);
        const int64_t pitch = pitch_of(pair.r);
        return parallel_for(
            0, pair.batches * pair.p, rows_per_thread(pair.r * pair.m), [&](int64_t begin, int64_t end) noexcept {
              for (int64_t row = begin; row < end; ++row)
                for (int64_t j = 0; j < pair.r; j += kWide)
                  distances<Norm>(a + row * pair.m, packed.data_as<T>() + row / pair.p * pair.m * pitch + j, pitch,
                                  pair.m, std::min(kWide, pair.r - j), to + row * pair.r + j, static_cast<T>(p));
            });
      }
      parallel_for(0, pair.batches * pair.p, rows_per_thread(pair.r * pair.m),
                   [&](int64_t begin, int64_t end) noexcept {
                     for (int64_t row = begin; row < end; ++row)
                       for (int64_t j = 0; j < pair.r; ++j)
                         to[row * pair.r + j] = distance<Norm>(
                             a + row * pair.m, b + (row / pair.p * pair.r + j) * pair.m, pair.m, static_cast<T>(p));
                   });
    });
  });
  return out;
}

// Gradient by x1, of the batches' common shape.
Tensor _cdist_backward(const Tensor& grad_output, const Tensor& x1, const Tensor& x2, double p, const Tensor& cdist) {
  check_row_sets("_cdist_backward", x1, x2);
  const Pair pair = broadcast_pair("_cdist_backward", x1, x2);
  if (pair.p == 0 || pair.r == 0 || pair.m == 0 || pair.batches == 0) {
    Tensor none = empty_like(x1);
    zero(none);
    return none;
  }
  Tensor out = Tensor::empty(with_matrix(pair.batch, pair.p, pair.m), x1.dtype());
  zero(out);
  const Shape sizes = with_matrix(pair.batch, pair.p, pair.r);
  for (const Tensor* t : {&grad_output, &cdist})
    SCONCE_CHECK(t->numel() == pair.batches * pair.p * pair.r && t->dtype() == x1.dtype(), kInvalidArgument,
                 "_cdist_backward: expected ", dtype_name(x1.dtype()), " of shape ", to_string(sizes), ", got ",
                 describe(*t));
  const Tensor grads = contiguous(grad_output), distances = contiguous(cdist);
  dispatch_float_double(x1.dtype(), "_cdist_backward", [&]<class T>() {
    if (p == 0) return;
    const T *a = pair.x1.data_as<T>(), *b = pair.x2.data_as<T>(), *g = grads.data_as<T>(), *d = distances.data_as<T>();
    T* to = out.data_as<T>();
    with_slope<T>(p, [&]<class Norm>(Norm) {
      parallel_for(
          0, pair.batches * pair.p, rows_per_thread(pair.r * pair.m), [&](int64_t begin, int64_t end) noexcept {
            for (int64_t row = begin; row < end; ++row)
              for (int64_t j = 0; j < pair.r; ++j) {
                const T* other = b + (row / pair.p * pair.r + j) * pair.m;
                const T grad = g[row * pair.r + j], dist = d[row * pair.r + j];
                for (int64_t i = 0; i < pair.m; ++i)
                  to[row * pair.m + i] += Norm::slope(a[row * pair.m + i] - other[i], grad, dist, static_cast<T>(p));
              }
          });
    });
  });
  return out;
}

// [N, M] -> [N (N - 1) / 2]: rows 0-1, 0-2, ..., 1-2, ...
Tensor _pdist_forward(const Tensor& self, double p) {
  SCONCE_CHECK(self.dim() == 2, kInvalidArgument, "pdist only supports 2D tensors, got: ", self.dim(), "D");
  SCONCE_CHECK(p >= 0, kInvalidArgument, "pdist only supports non-negative p values");
  const int64_t n = self.size(0), m = self.size(1), pairs = n > 1 ? n * (n - 1) / 2 : 0;
  Tensor out = Tensor::empty(IntSpan(&pairs, 1), self.dtype());
  if (pairs == 0) return out;
  if (m == 0) {
    zero(out);
    return out;
  }
  const Tensor rows = contiguous(self);
  dispatch_float_double(self.dtype(), "pdist", [&]<class T>() {
    const T* in = rows.data_as<T>();
    T* to = out.data_as<T>();
    const Tensor packed = side_by_side(in, 1, n, m);
    const int64_t pitch = pitch_of(n);
    with_norm<T>(p, [&]<class Norm>(Norm) {
      parallel_for(0, pairs, rows_per_thread(m), [&](int64_t begin, int64_t end) noexcept {
        RowPair at = row_pair(begin, n);
        if constexpr (!std::is_same_v<Norm, NormPower<T>>) {
          // Row i is compared with rows from a multiple of kWide on, whatever i is.
          for (int64_t k = begin; k < end;) {
            const int64_t block = at.j / kWide * kWide, last = std::min({block + kWide, n, at.j + end - k});
            T found[kWide];
            distances<Norm>(in + at.i * m, packed.data_as<T>() + block, pitch, m, last - block, found,
                            static_cast<T>(p));
            std::copy(found + (at.j - block), found + (last - block), to + k);
            k += last - at.j;
            at.j = last;
            if (at.j == n) at = {at.i + 1, at.i + 2};
          }
          return;
        }
        for (int64_t k = begin; k < end; ++k) {
          to[k] = distance<Norm>(in + at.i * m, in + at.j * m, m, static_cast<T>(p));
          if (++at.j == n) at = {at.i + 1, at.i + 2};
        }
      });
    });
  });
  return out;
}

Tensor _pdist_backward(const Tensor& grad_output, const Tensor& self, double p, const Tensor& pdist) {
  SCONCE_CHECK(self.dim() == 2, kInvalidArgument, "_pdist_backward: expected a matrix, got ", describe(self));
  const int64_t n = self.size(0), m = self.size(1), pairs = n > 1 ? n * (n - 1) / 2 : 0;
  Tensor out = Tensor::empty(self.sizes(), self.dtype());
  zero(out);
  for (const Tensor* t : {&grad_output, &pdist})
    SCONCE_CHECK(t->numel() == pairs && t->dtype() == self.dtype(), kInvalidArgument, "_pdist_backward: expected ",
                 pairs, " of ", dtype_name(self.dtype()), ", got ", describe(*t));
  const Tensor rows = contiguous(self), grads = contiguous(grad_output), distances = contiguous(pdist);
  dispatch_float_double(self.dtype(), "_pdist_backward", [&]<class T>() {
    if (p == 0) return;
    const T *in = rows.data_as<T>(), *g = grads.data_as<T>(), *d = distances.data_as<T>();
    T* to = out.data_as<T>();
    // Threads take columns: every pair adds to two rows.
    with_slope<T>(p, [&]<class Norm>(Norm) {
      parallel_for(0, m, rows_per_thread(pairs), [&](int64_t begin, int64_t end) noexcept {
        int64_t k = 0;
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = i + 1; j < n; ++j, ++k)
            for (int64_t c = begin; c < end; ++c) {
              const T slope = Norm::slope(in[i * m + c] - in[j * m + c], g[k], d[k], static_cast<T>(p));
              to[i * m + c] += slope;
              to[j * m + c] -= slope;
            }
      });
    });
  });
  return out;
}

}  // namespace sconce::cpu
