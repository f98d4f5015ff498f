#include "src/ops/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sconce/check.h"
#include "src/ops/binary_functions.h"
#include "src/ops/convolution_activations.h"
#include "src/ops/copy.h"
#include "src/ops/dimensions.h"
#include "src/ops/gemm_isa.h"
#include "src/ops/plane_scatter.h"
#include "src/ops/pooling_lanes.h"
#include "src/ops/row_sums.h"
#include "src/ops/slices.h"
#include "src/ops/strided_loop.h"

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

// run(in rows..., out row, width) for every row of tensors of one shape.
template <class F>
Tensor over_rows(const char* name, const Tensor& first, const Tensor* second, int64_t dim, DType result, const F& f) {
  dim = wrap_dim(name, dim, first.dim());
  const DType dtype = summed_dtype(first.dtype());
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

template <class T>
[[gnu::always_inline]] inline T power_of_e(T x) noexcept {
  if constexpr (std::is_same_v<T, float>)
    return exponential(x);
  else
    return std::exp(x);
}

// The largest of a row, or a NaN in it.
template <class T>
T largest(const T* x, int64_t n) noexcept {
  using L = PoolLanes<T>;
  T most = x[0];
  int64_t i = 0;
  if (n >= L::kLanes) {
    typename L::Values lanes = L::load(x);
    for (i = L::kLanes; i + L::kLanes <= n; i += L::kLanes) {
      const auto v = L::load(x + i);
      lanes = (v > lanes) | (v != v) ? v : lanes;  // nothing is above a NaN
    }
    for (int lane = 0; lane < L::kLanes; ++lane)
      most = lanes[lane] > most || lanes[lane] != lanes[lane] ? lanes[lane] : most;
  }
  for (; i < n; ++i) most = x[i] > most || x[i] != x[i] ? x[i] : most;
  return most;
}

// to[i] = e^(x[i] - most); returns their sum.
template <class T>
[[gnu::always_inline]] inline double exponentials_any(const T* x, T most, T* to, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) to[i] = power_of_e(x[i] - most);
  return row_sum(to, n);
}
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) inline double exponentials_wide(
    const float* x, float most, float* to, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) to[i] = exponential(x[i] - most);
  return row_sum(to, n);
}
template <class T>
double exponentials(const T* x, T most, T* to, int64_t n) noexcept {
  if constexpr (std::is_same_v<T, float>)
    if (has_avx512()) return exponentials_wide(x, most, to, n);
  return exponentials_any(x, most, to, n);
}

struct Softmax {
  template <class T>
  void operator()(const T* x, const T*, T* to, int64_t n) const noexcept {
    const T scale = static_cast<T>(1 / exponentials(x, largest(x, n), to, n));
    for (int64_t i = 0; i < n; ++i) to[i] *= scale;
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
  return over_rows("_log_softmax", self, nullptr, dim, self.dtype(),
                   []<class T>(const T* x, const T*, T* to, int64_t n) noexcept {
                     const T most = largest(x, n), rest = static_cast<T>(std::log(exponentials(x, most, to, n)));
                     for (int64_t i = 0; i < n; ++i) to[i] = x[i] - most - rest;
                   });
}
Tensor _softmax_backward_data(const Tensor& grad_output, const Tensor& output, int64_t dim, DType input_dtype) {
  constexpr const char* kName = "_softmax_backward_data";
  check_gradient(kName, grad_output, output);
  return over_rows(kName, grad_output, &output, dim, input_dtype,
                   []<class T>(const T* grad, const T* y, T* to, int64_t n) noexcept {
                     T total = 0;
                     for (int64_t i = 0; i < n; ++i) total += grad[i] * y[i];
                     for (int64_t i = 0; i < n; ++i) to[i] = y[i] * (grad[i] - total);
                   });
}
Tensor _log_softmax_backward_data(const Tensor& grad_output, const Tensor& output, int64_t dim, DType input_dtype) {
  constexpr const char* kName = "_log_softmax_backward_data";
  check_gradient(kName, grad_output, output);
  return over_rows(kName, grad_output, &output, dim, input_dtype,
                   []<class T>(const T* grad, const T* y, T* to, int64_t n) noexcept {
                     T total = 0;
                     for (int64_t i = 0; i < n; ++i) total += grad[i];
                     for (int64_t i = 0; i < n; ++i) to[i] = grad[i] - std::exp(y[i]) * total;
                   });
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
  // Rows without any weight are NaN, as the softmax of nothing but -infinity is.
  return _softmax(masked_fill_number(self, placed, Scalar(-std::numeric_limits<double>::infinity())), dim.value_or(-1),
                  false);
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
  return _softmax_backward_data(grads, weights, dim.value_or(-1), output.dtype());
}

}  // namespace sconce::cpu
