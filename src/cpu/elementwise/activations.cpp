#include "src/cpu/elementwise/activations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "sconce/check.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/elementwise/comparisons.h"
#include "src/cpu/elementwise/computed.h"
#include "src/cpu/elementwise/functions.h"
#include "src/device/cpu_isa.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"

namespace sconce::cpu {
namespace {

void check_floats(const char* name, const Tensor& self) {
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), name);
}
// f(T) -> T of floats, and only of floats.
template <class F>
Tensor activated(const char* name, const Tensor& self, F f) {
  check_floats(name, self);
  return map_floats(name, self, f);
}
// f(grad, x) -> T
template <class F>
Tensor slope(const char* name, const Tensor& grad, const Tensor& self, F f) {
  const DType dtype = promoted(grad, self);
  if (!is_floating(dtype)) fail_dispatch(dtype, name);
  return map_floats(name, grad, self, dtype, f);
}
// f(T) -> T of all ordered dtypes except bool.
template <class F>
Tensor cut(const char* name, const Tensor& self, F f) {
  if (self.dtype() == DType::kBool) fail_dispatch(self.dtype(), name);
  Tensor out = make_result(name, {&self}, self.dtype(), self.dtype());
  dispatch_ordered(self.dtype(), name, [&]<class T>() -> void { map_elements<T, T>(name, out, f, {&self}); });
  return out;
}

// A number rounded to the dtype.
double rounded_number(const Scalar& number, DType dtype) {
  const Tensor rounded = to_dtype(to_dtype(number_tensor(Scalar(number.to_double())), dtype), DType::kFloat64);
  return *rounded.data_as<double>();
}

bool is_tanh(const char* name, std::string_view approximate) {
  SCONCE_CHECK(approximate == "none" || approximate == "tanh", kInvalidArgument, name,
               ": approximate argument must be either none or tanh, got ", approximate);
  return approximate == "tanh";
}

using simd::choose;
using simd::quick_exp;
using simd::quick_sigmoid;
using simd::quick_tanh;

// e^x for x below 0, but at least 2^-126: exact enough where 1 or more is added to it.
[[gnu::always_inline]] inline float power_of_negative(float x) {
  const float clamped = x < -87.0f ? -87.0f : x;
  const PowerOfE power = power_of_e(clamped);
  return power.mantissa * std::bit_cast<float>((static_cast<int32_t>(power.n) + 127) << 23);
}
[[gnu::always_inline]] inline double power_of_negative(double x) { return simd::exp(x); }

// (1 + erf(x / sqrt 2)) / 2, of x and e^(-x^2 / 2): coarse_error_function's polynomial, halved.
[[gnu::always_inline]] inline float coarse_normal_cdf(float x, float power) {
  const float t = 1.0f / std::fma(0.231641888f, std::fabs(x), 1.0f);
  float p = 0.5307027145f;
  p = std::fma(p, t, -0.7265760135f);
  p = std::fma(p, t, 0.7107068705f);
  p = std::fma(p, t, -0.142248368f);
  p = std::fma(p, t, 0.127414796f);
  const float beyond = p * t * power;
  return x < 0.0f ? beyond : 1.0f - beyond;
}

// log(1 + e^x); x itself if e^x is too large for log1p.
template <class T>
[[gnu::always_inline]] inline T log_one_and_power(T x) {
  constexpr T kMost = std::is_same_v<T, float> ? T(80) : T(700);
  return choose(x > kMost, x, simd::quick_log1p(quick_exp(x)));
}

}  // namespace

Tensor relu(const Tensor& self) {
  SCONCE_CHECK(self.dtype() != DType::kBool, kInvalidArgument, "relu: Boolean inputs not supported for relu");
  if (is_floating(self.dtype()))
    return activated("relu", self, []<class T>(T x) -> T { return x < T(0) ? T(0) : x; });  // NaN stays
  return clamp_min(self, Scalar(int64_t{0}));
}
Tensor elu(const Tensor& self, Scalar alpha, Scalar scale, Scalar input_scale) {
  return activated("elu", self,
                   [a = alpha.to_double() * scale.to_double(), s = scale.to_double(),
                    n = input_scale.to_double()]<class T>(T x) -> T {
                     return choose(x < T(0), simd::expm1(x * static_cast<T>(n)) * static_cast<T>(a),
                                   x * static_cast<T>(s));
                   });
}
Tensor elu_backward(const Tensor& grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result,
                    const Tensor& self_or_result) {
  SCONCE_CHECK(!is_result || alpha.to_double() >= 0, kInvalidArgument,
               "elu_backward: In-place elu backward calculation is triggered with a negative slope which is not "
               "supported.");
  return slope("elu_backward", grad_output, self_or_result,
               [a = alpha.to_double() * scale.to_double(), s = scale.to_double(), n = input_scale.to_double(),
                is_result]<class T>(T grad, T x) -> T {
                 const T power = static_cast<T>(a) * quick_exp(x * static_cast<T>(n));
                 const T inner = choose(is_result, x + static_cast<T>(a), power);
                 // NaN is no less than 0.
                 return choose(x <= T(0), grad * static_cast<T>(n) * inner, grad * static_cast<T>(s));
               });
}
Tensor celu(const Tensor& self, Scalar alpha) {
  SCONCE_CHECK(alpha.to_double() != 0, kInvalidArgument, "celu: ZeroDivisionError: alpha cannot be 0 for CELU");
  return elu(self, alpha, Scalar(1.0), Scalar(1 / alpha.to_double()));
}

Tensor gelu(const Tensor& self, std::string_view approximate) {
  if (is_tanh("gelu", approximate))
    return activated("gelu", self, []<class T>(T x) -> T {
      const T inner = static_cast<T>(M_SQRT2 * M_2_SQRTPI * 0.5) * (x + static_cast<T>(0.044715) * x * x * x);
      return T(0.5) * x * (T(1) + quick_tanh(inner));
    });
  return activated("gelu", self, []<class T>(T x) -> T {
    if constexpr (std::is_same_v<T, float>)
      return x * coarse_normal_cdf(x, power_of_negative(-0.5f * x * x));
    else
      return x * T(0.5) * (T(1) + simd::quick_erf(x * static_cast<T>(M_SQRT1_2)));
  });
}
Tensor gelu_backward(const Tensor& grad_output, const Tensor& self, std::string_view approximate) {
  if (is_tanh("gelu_backward", approximate))
    return slope("gelu_backward", grad_output, self, []<class T>(T grad, T x) -> T {
      constexpr T kBeta = static_cast<T>(M_SQRT2 * M_2_SQRTPI * 0.5), kKappa = static_cast<T>(0.044715);
      const T tanh = quick_tanh(kBeta * (x + kKappa * x * x * x));
      const T left = T(0.5) * x, right = T(1) + tanh;
      return grad * (T(0.5) * right + left * (T(1) - tanh * tanh) * kBeta * (T(1) + T(3) * kKappa * x * x));
    });
  return slope("gelu_backward", grad_output, self, []<class T>(T grad, T x) -> T {
    const T power = quick_exp(T(-0.5) * x * x);
    const T cdf = T(0.5) * (T(1) + simd::coarse_erf(x * static_cast<T>(M_SQRT1_2), power));
    const T pdf = power * static_cast<T>(M_2_SQRTPI * M_SQRT1_2 * 0.5);
    return grad * (cdf + x * pdf);
  });
}

namespace {

std::array<Tensor, 2> halves(const char* name, const Tensor& self, int64_t dim) {
  SCONCE_CHECK(self.dim() > 0, kInvalidArgument, name, ": glu does not support 0-dimensional tensors");
  const int64_t d = wrap_dim(name, dim, self.dim()), size = self.size(d);
  SCONCE_CHECK(size % 2 == 0, kInvalidArgument, name, ": Halving dimension must be even, but dimension ", d,
               " is size ", size);
  return {narrow(self, d, 0, size / 2), narrow(self, d, size / 2, size / 2)};
}

// Applies the function to n elements and their n gates in one pass.
template <class T>
[[gnu::always_inline]] inline void glu_slope_row(const T* grad, const T* x, const T* gate, T* to, T* gate_to,
                                                 int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T s = quick_sigmoid(gate[i]), g = grad[i];
    to[i] = g * s;
    gate_to[i] = (T(1) - s) * s * g * x[i];
  }
}
template <class T>
[[gnu::flatten]] void glu_slope_narrow(const T* grad, const T* x, const T* gate, T* to, T* gate_to,
                                       int64_t n) noexcept {
  glu_slope_row(grad, x, gate, to, gate_to, n);
}
template <class T>
[[gnu::flatten]] __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) void
glu_slope_wide(const T* grad, const T* x, const T* gate, T* to, T* gate_to, int64_t n) noexcept {
  glu_slope_row(grad, x, gate, to, gate_to, n);
}
// Everything packed.
void glu_slopes(const Tensor& grad, const Tensor& self, int64_t dim, Tensor& out) {
  int64_t run = self.size(dim) / 2;
  for (int64_t d = dim + 1; d < self.dim(); ++d) run *= self.size(d);
  if (run == 0) return;
  dispatch_float_double(self.dtype(), "glu_backward", [&]<class T>() -> void {
    const auto row = has_avx512() ? glu_slope_wide<T> : glu_slope_narrow<T>;
    const T *const g = grad.data_as<T>(), *const x = self.data_as<T>();
    T* const to = out.data_as<T>();
    parallel_for(0, grad.numel() / run, std::max<int64_t>(1, 8192 / run), [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = 2 * i * run;
        row(g + i * run, x + at, x + at + run, to + at, to + at + run, run);
      }
    });
  });
}

}  // namespace

Tensor glu(const Tensor& self, int64_t dim) {
  check_floats("glu", self);
  const auto [first, second] = halves("glu", self, dim);
  return map_floats("glu", first, second, []<class T>(T a, T b) -> T { return a * quick_sigmoid(b); });
}
Tensor glu_backward(const Tensor& grad_output, const Tensor& self, int64_t dim) {
  check_floats("glu_backward", self);
  require_library(sleef_library());
  const auto [first, second] = halves("glu_backward", self, dim);
  Tensor out = Tensor::empty(self.sizes(), self.dtype());
  if (self.is_contiguous() && grad_output.is_contiguous() && grad_output.dtype() == self.dtype() &&
      (self.dtype() == DType::kFloat32 || self.dtype() == DType::kFloat64) &&
      std::ranges::equal(grad_output.sizes(), first.sizes())) {
    glu_slopes(grad_output, self, wrap_dim("glu_backward", dim, self.dim()), out);
    return out;
  }
  auto [a, b] = halves("glu_backward", out, dim);
  // ATen stores the sigmoid in the elements' dtype before it goes on; in half types that rounding changes the result.
  const Tensor sigmoids = sigmoid(second);
  dispatch_computed_float(self.dtype(), "glu_backward", [&]<class T>() -> void {
    const auto of_first = [](T g, T s) { return g * s; };
    const auto of_second = [](T g, T s, T x) { return (T(1) - s) * s * g * x; };
    map_elements<T, T, T>("glu_backward", a, InLanes<decltype(of_first)>{of_first}, {&grad_output, &sigmoids});
    map_elements<T, T, T, T>("glu_backward", b, InLanes<decltype(of_second)>{of_second},
                             {&grad_output, &sigmoids, &first});
  });
  return out;
}

Tensor hardsigmoid(const Tensor& self) {
  return activated("hardsigmoid", self,
                   []<class T>(T x) -> T { return std::min(std::max(x + T(3), T(0)), T(6)) / T(6); });
}
Tensor hardsigmoid_backward(const Tensor& grad_output, const Tensor& self) {
  return slope("hardsigmoid_backward", grad_output, self,
               []<class T>(T grad, T x) -> T { return x > T(-3) && x < T(3) ? grad * T(1.0f / 6.0f) : T(0); });
}
Tensor hardswish(const Tensor& self) {
  return activated("hardswish", self,
                   []<class T>(T x) -> T { return x * std::min(std::max(x + T(3), T(0)), T(6)) / T(6); });
}
Tensor hardswish_backward(const Tensor& grad_output, const Tensor& self) {
  return slope("hardswish_backward", grad_output, self, []<class T>(T grad, T x) -> T {
    if (x <= T(-3)) return T(0);
    return x >= T(3) ? grad : grad * (x / T(3) + T(0.5));  // NaN stays
  });
}
Tensor hardtanh(const Tensor& self, Scalar min_val, Scalar max_val) {
  SCONCE_CHECK(self.dtype() != DType::kBool, kInvalidArgument, "hardtanh: Bool inputs not supported for hardtanh");
  if (is_floating(self.dtype())) return clamp(self, Scalar(min_val.to_double()), Scalar(max_val.to_double()));
  Tensor low = Tensor::empty({}, self.dtype()), high = Tensor::empty({}, self.dtype());
  fill(low, min_val);
  fill(high, max_val);
  return clamp_tensor(self, &low, &high);
}
Tensor hardtanh_backward(const Tensor& grad_output, const Tensor& self, Scalar min_val, Scalar max_val) {
  return slope("hardtanh_backward", grad_output, self,
               [low = min_val.to_double(), high = max_val.to_double()]<class T>(T grad, T x) -> T {
                 return x > static_cast<T>(low) && x < static_cast<T>(high) ? grad : T(0);
               });
}
Tensor hardshrink(const Tensor& self, Scalar lambd) {
  check_floats("hardshrink", self);
  return activated("hardshrink", self, [l = rounded_number(lambd, self.dtype())]<class T>(T x) -> T {
    return x >= static_cast<T>(-l) && x <= static_cast<T>(l) ? T(0) : x;
  });
}
Tensor softshrink(const Tensor& self, Scalar lambd) {
  SCONCE_CHECK(lambd.to_double() >= 0, kInvalidArgument,
               "softshrink: lambda must be greater or equal to 0, but found to be ", lambd.to_double());
  return activated("softshrink", self, [l = lambd.to_double()]<class T>(T x) -> T {
    const T bound = static_cast<T>(l);
    return x > bound ? x - bound : x < -bound ? x + bound : x * T(0);
  });
}
Tensor leaky_relu(const Tensor& self, Scalar negative_slope) {
  return activated("leaky_relu", self, [s = negative_slope.to_double()]<class T>(T x) -> T {
    return x > T(0) ? x : x * static_cast<T>(s);
  });
}
Tensor leaky_relu_backward(const Tensor& grad_output, const Tensor& self, Scalar negative_slope, bool) {
  // ATen passes its operands in this order, which decides the layout of the result.
  return slope("leaky_relu_backward", self, grad_output, [s = negative_slope.to_double()]<class T>(T x, T grad) -> T {
    return x > T(0) ? grad : grad * static_cast<T>(s);
  });
}
std::array<Tensor, 2> log_sigmoid_forward(const Tensor& given) {
  const Tensor self = contiguous(given);
  return {activated("log_sigmoid", self,
                    []<class T>(T x) -> T { return std::min(T(0), x) - log_one_and_power(-std::fabs(x)); }),
          activated("log_sigmoid", self, []<class T>(T x) -> T { return quick_exp(-std::fabs(x)); })};
}
Tensor log_sigmoid_backward(const Tensor& grad_output, const Tensor& self, const Tensor& buffer) {
  // z is exp(-|x|), which the buffer holds.
  const auto f = []<class T>(T grad, T x, T z) -> T {
    const bool negative = x < T(0);
    return ((negative ? T(1) : T(0)) - (negative ? T(1) : T(-1)) * (z / (T(1) + z))) * grad;
  };
  if (std::equal(buffer.sizes().begin(), buffer.sizes().end(), self.sizes().begin(), self.sizes().end()) &&
      buffer.dtype() == self.dtype() && grad_output.dtype() == self.dtype()) {
    check_floats("log_sigmoid_backward", self);
    Tensor out = empty_like(grad_output);
    dispatch_computed_float(self.dtype(), "log_sigmoid_backward", [&]<class T>() -> void {
      map_elements<T, T, T, T>("log_sigmoid_backward", out, InLanes<decltype(f)>{f}, {&grad_output, &self, &buffer});
    });
    return out;
  }
  return slope("log_sigmoid_backward", grad_output, self,
               [f]<class T>(T grad, T x) -> T { return f(grad, x, quick_exp(-std::fabs(x))); });
}
Tensor mish(const Tensor& self) {
  return activated("mish", self, []<class T>(T x) -> T { return x * quick_tanh(log_one_and_power(x)); });
}
Tensor mish_backward(const Tensor& grad_output, const Tensor& self) {
  const Tensor out = slope("mish_backward", grad_output, self, []<class T>(T grad, T x) -> T {
    const T s = quick_sigmoid(x), tanh = quick_tanh(log_one_and_power(x));
    return grad * (tanh + x * s * (T(1) - tanh * tanh));
  });
  return to_dtype(out, self.dtype());
}
Tensor _prelu_kernel(const Tensor& self, const Tensor& weight) {
  check_floats("prelu", self);
  Tensor out = empty_like(self);
  dispatch_computed_float(self.dtype(), "prelu", [&]<class T>() -> void {
    map_elements<T, T, T>("prelu", out, [](T x, T w) { return x > T(0) ? x : w * x; }, {&self, &weight});
  });
  return out;
}
std::array<Tensor, 2> _prelu_kernel_backward(const Tensor& grad_output, const Tensor& self, const Tensor& weight) {
  const DType dtype = self.dtype();
  check_floats("prelu_backward", self);
  std::array<Tensor, 2> out{make_result("prelu_backward", {&self, &weight, &grad_output}, dtype, dtype),
                            make_result("prelu_backward", {&self, &weight, &grad_output}, dtype, dtype)};
  dispatch_computed_float(dtype, "prelu_backward", [&]<class T>() -> void {
    map_elements<T, T, T, T>("prelu_backward", out[0], [](T x, T w, T g) { return x > T(0) ? g : w * g; },
                             {&self, &weight, &grad_output});
    map_elements<T, T, T>("prelu_backward", out[1], [](T x, T g) { return x > T(0) ? T(0) : x * g; },
                          {&self, &grad_output});
  });
  return out;
}
Tensor silu_backward(const Tensor& grad_output, const Tensor& self) {
  const DType dtype = promoted(grad_output, self);
  if (is_floating(dtype))
    return slope("silu_backward", grad_output, self, []<class T>(T grad, T x) -> T {
      const T s = quick_sigmoid(x);
      return grad * s * (T(1) + x * (T(1) - s));
    });
  Tensor out = make_result("silu_backward", {&grad_output, &self}, dtype, dtype);
  dispatch_inexact(dtype, "silu_backward", [&]<class T>() -> void {
    map_elements<T, T, T>("silu_backward", out,
                          [](T grad, T x) -> T {
                            const T s = T(1) / (T(1) + std::exp(-x));
                            return grad * s * (T(1) + x * (T(1) - s));
                          },
                          {&grad_output, &self});
  });
  return out;
}
Tensor softplus(const Tensor& self, Scalar beta, Scalar threshold) {
  return activated("softplus", self, [b = beta.to_double(), t = threshold.to_double()]<class T>(T x) -> T {
    const T z = x * static_cast<T>(b);
    return choose(z > static_cast<T>(t), x, log_one_and_power(z) / static_cast<T>(b));
  });
}
Tensor softplus_backward(const Tensor& grad_output, const Tensor& self, Scalar beta, Scalar threshold) {
  return slope("softplus_backward", grad_output, self,
               [b = beta.to_double(), t = threshold.to_double()]<class T>(T grad, T x) -> T {
                 const T z = quick_exp(x * static_cast<T>(b));
                 return choose(x * static_cast<T>(b) > static_cast<T>(t), grad, grad * z / (z + T(1)));
               });
}
Tensor threshold(const Tensor& self, Scalar threshold, Scalar value) {
  Tensor bound = Tensor::empty({}, self.dtype()), other = Tensor::empty({}, self.dtype());
  fill(bound, threshold);
  fill(other, value);
  if (self.dtype() == DType::kBool) fail_dispatch(self.dtype(), "threshold");
  Tensor out = make_result("threshold", {&self}, self.dtype(), self.dtype());
  dispatch_ordered(self.dtype(), "threshold", [&]<class T>() -> void {
    map_elements<T, T, T, T>("threshold", out, [](T x, T b, T v) { return x <= b ? v : x; }, {&self, &bound, &other});
  });
  return out;
}
Tensor threshold_backward(const Tensor& grad_output, const Tensor& self, Scalar threshold) {
  const DType dtype = promoted(grad_output, self);
  Tensor bound = Tensor::empty({}, dtype);
  fill(bound, threshold);
  Tensor out = make_result("threshold_backward", {&self, &grad_output}, dtype, dtype);
  dispatch_ordered(dtype, "threshold_backward", [&]<class T>() -> void {
    map_elements<T, T, T, T>("threshold_backward", out, [](T x, T g, T b) { return x <= b ? T(0) : g; },
                             {&self, &grad_output, &bound});
  });
  return out;
}

namespace {

// grad * conj(f(output))
template <class F>
Tensor output_slope(const char* name, const Tensor& grad, const Tensor& output, F f) {
  const DType dtype = promoted(grad, output);
  Tensor out = make_result(name, {&grad, &output}, dtype, dtype);
  dispatch_inexact(dtype, name, [&]<class T>() -> void {
    map_elements<T, T, T>(name, out,
                          [f](T g, T y) -> T {
                            T factor = f(y);
                            if constexpr (kIsComplex<T>) factor = std::conj(factor);
                            return g * factor;
                          },
                          {&grad, &output});
  });
  return out;
}

}  // namespace

Tensor sigmoid_backward(const Tensor& grad_output, const Tensor& output) {
  return output_slope("sigmoid_backward", grad_output, output, []<class T>(T y) -> T { return (T(1) - y) * y; });
}
Tensor tanh_backward(const Tensor& grad_output, const Tensor& output) {
  return output_slope("tanh_backward", grad_output, output, []<class T>(T y) -> T { return T(1) - y * y; });
}
Tensor logit_backward(const Tensor& grad_output, const Tensor& self, std::optional<double> eps) {
  return slope("logit_backward", grad_output, self, [eps]<class T>(T grad, T x) -> T {
    if (!eps || *eps < 0)
      return x < T(0) || x > T(1)     ? std::numeric_limits<T>::quiet_NaN()
             : x == T(0) || x == T(1) ? grad * std::numeric_limits<T>::infinity()
                                      : grad / (x * (T(1) - x));
    const T low = static_cast<T>(*eps);
    return x < low || x > T(1) - low ? T(0) : grad / (x * (T(1) - x));
  });
}
Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, double scale) {
  return multiply(grad_output, multiply_number(to_dtype(mask, grad_output.dtype()), Scalar(scale)));
}

Tensor _add_relu(const Tensor& self, const Tensor& other, Scalar alpha) {
  // alpha counts as a number of the result's dtype, whatever its own kind.
  const bool whole = is_integral(promoted(self, other), true) && !alpha.is_integral();
  const Tensor sum = add(self, other,
                         whole             ? Scalar(alpha.to_int())
                         : alpha.is_bool() ? Scalar(alpha.to_double())
                                           : alpha);
  // The upper bound is the largest finite number of the first operand's dtype.
  const DType first = self.dtype();
  if (first == DType::kBool || first == DType::kUInt8) fail_dispatch(first, "_add_relu");
  const Scalar most = dispatch_ordered(first, "_add_relu", []<class T>() -> Scalar {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<double>(std::numeric_limits<T>::max());
    else
      return static_cast<int64_t>(std::numeric_limits<T>::max());
  });
  // NaN stays.
  return clamp_max(cut("_add_relu", sum, []<class T>(T x) -> T { return x < T(0) ? T(0) : x; }), most);
}
Tensor _add_relu_number(const Tensor& self, Scalar other, Scalar alpha) {
  return _add_relu(self, to_dtype(number_tensor(other), promoted(self, other)), alpha);
}

}  // namespace sconce::cpu
