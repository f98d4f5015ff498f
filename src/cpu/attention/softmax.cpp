#include "src/cpu/attention/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sconce/check.h"
#include "src/cpu/elementwise/binary_functions.h"
#include "src/cpu/vector/exponential_rows.h"
#include "src/cpu/vector/row_extrema.h"
#include "src/cpu/vector/row_sums.h"
#include "src/device/cpu_isa.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/rows/slices.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

// Rows along a dimension, packed, in the type of computation.
struct SoftmaxRows {
  Tensor values;
  int64_t count = 0, width = 1;
};
SoftmaxRows rows_along(const Tensor& tensor, int64_t dim, DType dtype) {
  SoftmaxRows rows;
  rows.values = contiguous(to_dtype(tensor.dim() ? move_last(tensor, dim) : tensor, dtype));
  if (tensor.dim()) rows.width = tensor.size(dim);
  rows.count = rows.width ? tensor.numel() / rows.width : 0;
  return rows;
}
// Rows along the dimension back in their places, row-major.
Tensor in_place(const Tensor& rows, const Tensor& like, int64_t dim, DType dtype) {
  if (like.dim() == 0 || dim == like.dim() - 1) return to_dtype(rows, dtype);
  Tensor out = Tensor::empty(like.sizes(), dtype);
  Tensor view = move_last(out, dim);
  copy(rows, view);
  return out;
}

// Columns done side by side.
constexpr int64_t kSide = 256;

template <class F, class T>
[[gnu::flatten]] void columns_narrow(const T* x, const T* y, T* to, int64_t n, int64_t stride, int64_t count) noexcept {
  F::of_columns(x, y, to, n, stride, count);
}
template <class F, class T>
[[gnu::flatten]] __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) void
columns_wide(const T* x, const T* y, T* to, int64_t n, int64_t stride, int64_t count) noexcept {
  F::of_columns(x, y, to, n, stride, count);
}

// Like convert(), but short rows of bfloat16 skip its choice of a loop.
void widen(DType from, const char* source, float* to, int64_t n) noexcept {
  if (from != DType::kBFloat16) return convert(from, source, DType::kFloat32, to, n);
  const auto* const values = reinterpret_cast<const BFloat16*>(source);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(values[i]);
}
void narrow(const float* from, DType dtype, char* to, int64_t n) noexcept {
  if (dtype != DType::kBFloat16) return convert(DType::kFloat32, from, dtype, to, n);
  auto* const values = reinterpret_cast<BFloat16*>(to);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) values[i] = BFloat16(from[i]);
}

// Computes packed rows of half types and converts each beside its computation. Does nothing for other dtypes and for
// long rows.
template <class F>
std::optional<Tensor> small_rows(const Tensor& first, const Tensor* second, int64_t dim, DType result, const F& f) {
  constexpr int64_t kWidest = 2048;
  const DType dtype = first.dtype();
  if (dtype == summed_dtype(dtype) || first.dim() == 0 || dim != first.dim() - 1 || first.size(dim) > kWidest ||
      first.numel() == 0 || !first.is_contiguous() ||
      (second && (second->dtype() != dtype || !second->is_contiguous())))
    return std::nullopt;
  const int64_t width = first.size(dim), bytes = width * static_cast<int64_t>(first.itemsize());
  Tensor out = Tensor::empty(first.sizes(), result);
  const int64_t out_bytes = width * static_cast<int64_t>(out.itemsize());
  const auto *const x = static_cast<const char*>(first.data()), *const y =
                                                                    second ? static_cast<const char*>(second->data())
                                                                           : nullptr;
  auto* const to = static_cast<char*>(out.data());
  for_planes(first.numel() / width, width * 8, [&](int64_t row) noexcept {
    float a[kWidest], b[kWidest], computed[kWidest];
    widen(dtype, x + row * bytes, a, width);
    if (y) widen(dtype, y + row * bytes, b, width);
    f(static_cast<const float*>(a), static_cast<const float*>(y ? b : nullptr), computed, width);
    narrow(computed, result, to + row * out_bytes, width);
  });
  return out;
}

// f(in rows..., out row, width) for every row of tensors of one shape. F::of_columns does rows that lie side by side,
// as columns.
template <class F>
Tensor over_rows(const char* name, const Tensor& first, const Tensor* second, int64_t dim, DType result, const F& f) {
  require_library(sleef_library());
  dim = wrap_dim(name, dim, first.dim());
  const DType dtype = summed_dtype(first.dtype());
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < first.dim(); ++d) inner *= first.size(d);
  if constexpr (requires { F::template of_columns<float>; })
    if (inner >= 16 && first.numel() > 0) {
      const Tensor a = contiguous(to_dtype(first, dtype)), b = second ? contiguous(to_dtype(*second, dtype)) : Tensor();
      const int64_t width = first.size(dim), outer = first.numel() / (inner * width),
                    blocks = (inner + kSide - 1) / kSide;
      Tensor out = Tensor::empty(first.sizes(), dtype);
      dispatch_float_double(dtype, name, [&]<class T>() -> void {
        const T *const x = a.data_as<T>(), *const y = second ? b.data_as<T>() : nullptr;
        T* const to = out.data_as<T>();
        const auto run = has_avx512() ? columns_wide<F, T> : columns_narrow<F, T>;
        for_planes(outer * blocks, std::min(kSide, inner) * width * 8, [&](int64_t block) noexcept {
          const int64_t column = block % blocks * kSide, at = block / blocks * width * inner + column;
          run(x + at, y ? y + at : nullptr, to + at, width, inner, std::min(kSide, inner - column));
        });
      });
      return to_dtype(out, result);
    }
  if (const auto done = small_rows(first, second, dim, result, f)) return *done;
  const SoftmaxRows a = rows_along(first, dim, dtype), b = second ? rows_along(*second, dim, dtype) : SoftmaxRows();
  Tensor out = Tensor::empty(a.values.sizes(), dtype);
  dispatch_float_double(dtype, name, [&]<class T>() -> void {
    const T* const x = a.values.template data_as<T>();
    const T* const y = second ? b.values.template data_as<T>() : nullptr;
    T* const to = out.data_as<T>();
    for_planes(a.count, a.width * 8, [&](int64_t row) noexcept {
      f(x + row * a.width, y ? y + row * a.width : y, to + row * a.width, a.width);
    });
  });
  return in_place(out, first, dim, result);
}

void check_softmax(const char* name, const Tensor& self, bool half_to_float) {
  SCONCE_CHECK(!half_to_float, kInvalidArgument, name,
               ": softmax with half to float conversion is not supported on CPU");
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), name);
}

struct Softmax {
  template <class T>
  void operator()(const T* x, const T*, T* to, int64_t n) const noexcept {
    const T scale = static_cast<T>(1 / exponentials(x, best_of<true>(x, n), to, n));
    for (int64_t i = 0; i < n; ++i) to[i] *= scale;
  }
  template <class T>
  [[gnu::always_inline]] static inline void of_columns(const T* x, const T*, T* to, int64_t n, int64_t stride,
                                                       int64_t columns) noexcept {
    T most[kSide], total[kSide];
    powers(x, to, n, stride, columns, most, total);
    for (int64_t j = 0; j < columns; ++j) total[j] = T(1) / total[j];
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < columns; ++j) to[i * stride + j] *= total[j];
  }
  // For each column: its largest element, e^(x - largest), and their sum.
  template <class T>
  [[gnu::always_inline]] static inline void powers(const T* x, T* to, int64_t n, int64_t stride, int64_t columns,
                                                   T* most, T* total) noexcept {
    for (int64_t j = 0; j < columns; ++j) most[j] = x[j];
    for (int64_t i = 1; i < n; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        const T v = x[i * stride + j], m = most[j];
        most[j] = (v > m) | (v != v) ? v : m;  // nothing is above a NaN
      }
    std::fill_n(total, columns, T(0));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        const T power = falling_power(x[i * stride + j] - most[j]);
        to[i * stride + j] = power;
        total[j] += power;
      }
  }
};
struct LogSoftmax {
  template <class T>
  void operator()(const T* x, const T*, T* to, int64_t n) const noexcept {
    const T most = best_of<true>(x, n), rest = static_cast<T>(std::log(exponentials(x, most, to, n)));
    for (int64_t i = 0; i < n; ++i) to[i] = x[i] - most - rest;
  }
  template <class T>
  [[gnu::always_inline]] static inline void of_columns(const T* x, const T*, T* to, int64_t n, int64_t stride,
                                                       int64_t columns) noexcept {
    T most[kSide], total[kSide];
    Softmax::powers(x, to, n, stride, columns, most, total);
    for (int64_t j = 0; j < columns; ++j) total[j] = simd::log(total[j]);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < columns; ++j) to[i * stride + j] = x[i * stride + j] - most[j] - total[j];
  }
};
struct SoftmaxGradient {
  template <class T>
  void operator()(const T* grad, const T* y, T* to, int64_t n) const noexcept {
    const T total = static_cast<T>(row_dot(grad, y, n));
    for (int64_t i = 0; i < n; ++i) to[i] = y[i] * (grad[i] - total);
  }
  template <class T>
  [[gnu::always_inline]] static inline void of_columns(const T* grad, const T* y, T* to, int64_t n, int64_t stride,
                                                       int64_t columns) noexcept {
    T total[kSide] = {};
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < columns; ++j) total[j] += grad[i * stride + j] * y[i * stride + j];
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < columns; ++j) to[i * stride + j] = y[i * stride + j] * (grad[i * stride + j] - total[j]);
  }
};
struct LogSoftmaxGradient {
  template <class T>
  void operator()(const T* grad, const T* y, T* to, int64_t n) const noexcept {
    less_exponentials(grad, y, static_cast<T>(row_sum(grad, n)), to, n);
  }
  template <class T>
  [[gnu::always_inline]] static inline void of_columns(const T* grad, const T* y, T* to, int64_t n, int64_t stride,
                                                       int64_t columns) noexcept {
    T total[kSide] = {};
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < columns; ++j) total[j] += grad[i * stride + j];
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < columns; ++j)
        to[i * stride + j] = grad[i * stride + j] - simd::quick_exp(y[i * stride + j]) * total[j];
  }
};

void check_gradient(const char* name, const Tensor& grad, const Tensor& output) {
  SCONCE_CHECK(std::equal(grad.sizes().begin(), grad.sizes().end(), output.sizes().begin(), output.sizes().end()),
               kInvalidArgument, name, ": grad ", describe(grad), " does not go with output ", describe(output));
  if (!is_floating(grad.dtype())) fail_dispatch(grad.dtype(), name);
}

void check_bool(const Tensor& mask) {
  SCONCE_CHECK(mask.dtype() == DType::kBool, kInvalidArgument, "_masked_softmax: Mask should be a boolean tensor, got ",
               dtype_name(mask.dtype()));
}

}  // namespace

Tensor _softmax(const Tensor& self, int64_t dim, bool half_to_float) {
  check_softmax("_softmax", self, half_to_float);
  return over_rows("_softmax", self, nullptr, dim, self.dtype(), Softmax());
}
Tensor _log_softmax(const Tensor& self, int64_t dim, bool half_to_float) {
  check_softmax("_log_softmax", self, half_to_float);
  return over_rows("_log_softmax", self, nullptr, dim, self.dtype(), LogSoftmax());
}
Tensor _softmax_backward_data(const Tensor& grad_output, const Tensor& output, int64_t dim, DType input_dtype) {
  constexpr const char* kName = "_softmax_backward_data";
  check_gradient(kName, grad_output, output);
  return over_rows(kName, grad_output, &output, dim, input_dtype, SoftmaxGradient());
}
Tensor _log_softmax_backward_data(const Tensor& grad_output, const Tensor& output, int64_t dim, DType input_dtype) {
  constexpr const char* kName = "_log_softmax_backward_data";
  check_gradient(kName, grad_output, output);
  return over_rows(kName, grad_output, &output, dim, input_dtype, LogSoftmaxGradient());
}
Tensor _safe_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  const Tensor given = to_dtype(self, dtype.value_or(self.dtype()));
  check_softmax("_safe_softmax", given, false);
  return over_rows("_safe_softmax", given, nullptr, dim, given.dtype(),
                   []<class T>(const T* x, const T* none, T* to, int64_t n) noexcept {
                     if (std::all_of(x, x + n, [](T v) { return v == -std::numeric_limits<T>::infinity(); }))
                       return void(std::fill_n(to, n, T(0)));
                     Softmax()(x, none, to, n);
                   });
}

Tensor _masked_softmax(const Tensor& self, const Tensor& mask, std::optional<int64_t> dim,
                       std::optional<int64_t> mask_type) {
  constexpr const char* kName = "_masked_softmax";
  check_bool(mask);
  SCONCE_CHECK(mask_type, kInvalidArgument, kName, ": Mask Type should be defined");
  SCONCE_CHECK(*mask_type >= 0 && *mask_type <= 2, kInvalidArgument, kName,
               ": Mask Type should be 0 (src_mask), 1 (src_key_padding_mask), or 2 (default_mask)");
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), kName);
  Tensor placed = mask;
  if (*mask_type != 2) {
    SCONCE_CHECK(self.dim() == 4, kInvalidArgument, kName, ": expected input of 4 dimensions, got ", describe(self));
    const int64_t batch = self.size(0), rows = self.size(2), columns = self.size(3);
    const bool fits = mask.dim() == 2 && mask.size(1) == columns && mask.size(0) == (*mask_type == 0 ? rows : batch);
    SCONCE_CHECK(fits, kInvalidArgument, kName, ": For mask_type == ", *mask_type, " mask shape should be (",
                 *mask_type == 0 ? "L" : "B", ", L), got ", to_string(mask.sizes()));
    if (*mask_type == 1) placed = unsqueeze(unsqueeze(mask, 1), 1);
    placed = sconce::expand(kName, placed, self.sizes());
  }
  SCONCE_CHECK(std::equal(self.sizes().begin(), self.sizes().end(), placed.sizes().begin(), placed.sizes().end()),
               kInvalidArgument, kName, ": Mask shape should match input. mask: ", to_string(mask.sizes()),
               " input: ", to_string(self.sizes()));
  // Rows without any weight become NaN, like the softmax of a row of -infinity.
  const Tensor rows = _softmax(masked_fill_number(self, placed, Scalar(-std::numeric_limits<double>::infinity())),
                               dim.value_or(-1), false);
  if (self.is_contiguous()) return rows;
  Tensor out = empty_like(self);  // unlike softmax's own, in self's memory order
  copy(rows, out);
  return out;
}

Tensor _masked_softmax_backward(const Tensor& grad_output, const Tensor& output, const Tensor& mask,
                                std::optional<int64_t> dim) {
  constexpr const char* kName = "_masked_softmax_backward";
  check_bool(mask);
  SCONCE_CHECK(std::equal(mask.sizes().begin(), mask.sizes().end(), output.sizes().begin(), output.sizes().end()),
               kInvalidArgument, kName, ": Mask shape should match grad shape");
  check_gradient(kName, grad_output, output);
  const Tensor weights = masked_fill_number(output, mask, Scalar(0.0)),
               grads = masked_fill_number(grad_output, mask, Scalar(0.0));
  const Tensor gradient = _softmax_backward_data(grads, weights, dim.value_or(-1), output.dtype());
  return output.dim() == 0 ? unsqueeze(gradient, 0) : gradient;  // ATen's has a dimension then
}

}  // namespace sconce::cpu
