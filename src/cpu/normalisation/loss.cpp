#include "src/cpu/normalisation/loss.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "sconce/check.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/elementwise/binary_functions.h"
#include "src/cpu/elementwise/computed.h"
#include "src/cpu/elementwise/functions.h"
#include "src/cpu/reduction/moments.h"
#include "src/cpu/reduction/sum.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

bool is_small(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

// The strides of target * exp(-target * self) if ATen computes one operation after the other. Each operation chooses
// its result's strides anew, so that expanded operands hardly matter.
Shape gradient_strides(const Shape& shape, const Tensor& self, const Tensor& target) {
  const auto made = [&](IntSpan sizes, std::initializer_list<const Tensor*> operands) {
    return elementwise_strides(sizes, {operands.begin(), operands.size()});
  };
  if (self.is_contiguous() && target.is_contiguous()) return made(shape, {&target, &self});
  const Tensor negated = Tensor::empty_strided(target.sizes(), made(target.sizes(), {&target}), target.dtype());
  const Shape both = broadcast_shapes("soft_margin_loss_backward", self.sizes(), target.sizes());
  const Tensor power = Tensor::empty_strided(both, made(both, {&negated, &self}), target.dtype());
  return made(shape, {&target, &power});
}

// exp(-target * self), rounded to the dtype at each step, as ATen's operators in a row: in half precision it overflows.
Tensor inverse_odds(const Tensor& self, const Tensor& target) { return exp(multiply(neg(target), self)); }

}  // namespace

// Of mean (reduction 1) or sum of log(1 + exp(-target self)), times grad_output; floating, operands broadcast.
Tensor soft_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                 int64_t reduction) {
  constexpr std::string_view kName = "soft_margin_loss_backward";
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), kName);
  const Shape shape =
      broadcast_shapes(kName, broadcast_shapes(kName, self.sizes(), target.sizes()), grad_output.sizes());
  if (is_small(self.dtype())) {
    const Tensor z = inverse_odds(self, target);
    const double norm = reduction == 1 ? -1.0 / static_cast<double>(self.numel()) : -1.0;
    const Tensor slope = multiply_number(multiply(target, z), Scalar(norm));
    return multiply(divide(slope, add_number(z, Scalar(int64_t{1}), Scalar(int64_t{1}))), grad_output);
  }
  const DType dtype = self.dtype();
  Tensor out = Tensor::empty_strided(shape, gradient_strides(shape, self, target), dtype);
  const Tensor x = to_dtype(self, dtype), y = to_dtype(target, dtype), g = to_dtype(grad_output, dtype);
  const Shape xs = broadcast_strides(kName, x, shape), ys = broadcast_strides(kName, y, shape),
              gs = broadcast_strides(kName, g, shape);
  dispatch_float_double(dtype, kName, [&]<class T>() {
    const T norm = reduction == 1 ? static_cast<T>(-1.0 / static_cast<double>(self.numel())) : T(-1);
    const StridedLoop<4> loop(shape, {out.strides(), xs, ys, gs}, {sizeof(T), sizeof(T), sizeof(T), sizeof(T)});
    const auto at = [](const Tensor& t) { return static_cast<char*>(t.data()); };
    loop.run({at(out), at(x), at(y), at(g)}, [norm](char* const* p, const int64_t* stride, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const T a = *reinterpret_cast<const T*>(p[1] + i * stride[1]),
                b = *reinterpret_cast<const T*>(p[2] + i * stride[2]);
        const T z = std::exp(-b * a);
        *reinterpret_cast<T*>(p[0] + i * stride[0]) =
            norm * b * z / (z + 1) * *reinterpret_cast<const T*>(p[3] + i * stride[3]);
      }
    });
  });
  return to_dtype(out, self.dtype());
}

namespace {

// The mean, the sum, or all of them.
Tensor reduced(const Tensor& losses, int64_t reduction) {
  if (reduction == 1) return mean(losses, std::nullopt, false, std::nullopt);
  return reduction == 2 ? sum(losses, std::nullopt, false, std::nullopt) : losses;
}

// f(T, T) -> T of floats, reduced.
template <class F>
Tensor loss_of(const char* name, const Tensor& self, const Tensor& target, int64_t reduction, F f) {
  const DType dtype = promoted(self, target);
  if (!is_floating(dtype)) fail_dispatch(dtype, name);
  return reduced(map_floats(name, self, target, dtype, f), reduction);
}
// f(T, T) -> T written to `out`.
template <class F>
void map_into(const char* name, Tensor& out, const Tensor& self, const Tensor& target, F f) {
  require_library(sleef_library());
  const Tensor a = met(self, out.dtype()), b = met(target, out.dtype());
  dispatch_computed_float(out.dtype(), name, [&]<class T>() -> void {
    map_elements<T, T, T>(name, out, InLanes<F>{f}, {&a, &b});
  });
}
// Losses in the memory order of `like`, as ATen makes them where it writes into a result of its own.
Tensor result_like(const char* name, const Tensor& like, const Tensor& self, const Tensor& target, DType dtype) {
  const Shape sizes = broadcast_shapes(name, self.sizes(), target.sizes());
  const bool same = std::ranges::equal(IntSpan(sizes), like.sizes());
  return same ? empty_like(like, dtype) : Tensor::empty(sizes, dtype);
}
// f(self, target) -> T, times the gradient, and over how many there are for the mean; row-major, or in `like`'s order.
template <class F>
Tensor slope_of(const char* name, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                int64_t reduction, F f, const Tensor* like = nullptr) {
  const DType dtype = promoted(self, target);
  if (!is_floating(dtype)) fail_dispatch(dtype, name);
  Tensor out = like ? result_like(name, *like, self, target, dtype)
                    : Tensor::empty(broadcast_shapes(name, self.sizes(), target.sizes()), dtype);
  const Tensor a = met(self, dtype), b = met(target, dtype), grad = to_dtype(grad_output, dtype);
  dispatch_computed_float(dtype, name, [&]<class T>() -> void {
    const T norm = reduction == 1 ? static_cast<T>(1.0 / static_cast<double>(self.numel())) : T(1);
    const auto slope = [=](T x, T y, T g) { return norm * f(x, y) * g; };
    map_elements<T, T, T, T>(name, out, InLanes<decltype(slope)>{slope}, {&a, &b, &grad});
  });
  return out;
}

// The cross entropy of probabilities; `outside` is set if an input is not between 0 and 1.
template <class T>
struct CrossEntropy {
  std::atomic<bool>* outside;
  static T of(T x, T y) {
    return (y - T(1)) * std::max(simd::log1p(-x), T(-100)) - y * std::max(simd::log(x), T(-100));
  }
  T operator()(T x, T y) const { return of(x, y); }
  void row(int64_t count, T* out, const T* x, const T* y) const noexcept {
    int all = 1;
    for (int64_t i = 0; i < count; ++i) all &= static_cast<int>(x[i] >= T(0)) & static_cast<int>(x[i] <= T(1));
    if (!all) outside->store(true, std::memory_order_relaxed);
    const auto loss = [](T a, T b) { return of(a, b); };
    InLanes<decltype(loss)>{loss}.row(count, out, x, y);
  }
};

}  // namespace

Tensor soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  constexpr const char* kName = "soft_margin_loss";
  const DType dtype = promoted(self, target);
  if (!is_floating(dtype) && !is_complex(dtype)) fail_dispatch(dtype, kName);
  require_library(sleef_library());
  Tensor losses = result_like(kName, self, self, target, dtype);
  // SLEEF's log1p fails for the largest numbers of the type.
  const auto logarithm = []<class T>(T odds) -> T {
    return simd::choose(odds > (std::is_same_v<T, float> ? T(1e37) : T(1e300)), simd::log(odds), simd::log1p(odds));
  };
  if (is_complex(dtype)) {
    copy(log1p(inverse_odds(self, target)), losses);
  } else if (is_small(dtype)) {
    const Tensor odds = inverse_odds(self, target);
    const auto loss = [=](float x) { return logarithm(x); };
    map_elements<float, float>(kName, losses, InLanes<decltype(loss)>{loss}, {&odds});
  } else {
    dispatch_float_double(dtype, kName, [&]<class T>() -> void {
      const auto loss = [](T x, T y) { return simd::quick_log1p(power(-y * x)); };
      const auto outside = [](T x, T y) { return !(std::fabs(y * x) <= kMaxOfExponent<T>); };
      const auto general = [=](T x, T y) { return logarithm(simd::quick_exp(-y * x)); };
      map_elements<T, T, T>(kName, losses, InLanesUnless{loss, outside, general}, {&self, &target});
    });
  }
  return reduced(losses, reduction);
}
Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return loss_of("mse_loss", self, target, reduction, []<class T>(T x, T y) -> T { return (x - y) * (x - y); });
}
Tensor mse_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction) {
  return slope_of("mse_loss_backward", grad_output, self, target, reduction,
                  []<class T>(T x, T y) -> T { return T(2) * (x - y); });
}
Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  SCONCE_CHECK(beta >= 0, kInvalidArgument, "smooth_l1_loss: does not support negative values for beta.");
  return loss_of("smooth_l1_loss", self, target, reduction, [beta]<class T>(T x, T y) -> T {
    const T z = std::fabs(x - y), b = static_cast<T>(beta);
    return z < b ? T(0.5) * z * z / b : z - T(0.5) * b;
  });
}
Tensor smooth_l1_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction,
                               double beta) {
  return slope_of("smooth_l1_loss_backward", grad_output, self, target, reduction, [beta]<class T>(T x, T y) -> T {
    const T z = x - y, b = static_cast<T>(beta);
    return z <= -b ? T(-1) : z >= b ? T(1) : z / b;
  });
}
Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  SCONCE_CHECK(delta > 0, kInvalidArgument, "huber_loss: does not support non-positive values for delta.");
  const DType dtype = promoted(self, target);
  if (!is_floating(dtype)) fail_dispatch(dtype, "huber_loss");
  Tensor losses = result_like("huber_loss", self, self, target, dtype);
  map_into("huber_loss", losses, self, target, [delta]<class T>(T x, T y) -> T {
    const T z = std::fabs(x - y), d = static_cast<T>(delta);
    return z <= d ? T(0.5) * z * z : d * (z - T(0.5) * d);
  });
  return reduced(losses, reduction);
}
Tensor huber_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction,
                           double delta) {
  return slope_of("huber_loss_backward", grad_output, self, target, reduction, [delta]<class T>(T x, T y) -> T {
    const T z = x - y, d = static_cast<T>(delta);
    return z <= -d ? -d : z >= d ? d : z;
  });
}

Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const Tensor* weight, int64_t reduction) {
  constexpr const char* kName = "binary_cross_entropy";
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), kName);
  require_library(sleef_library());
  std::atomic<bool> outside = false;
  Tensor losses = result_like(kName, self, self, target, self.dtype());
  const Tensor a = met(self, self.dtype()), b = met(target, self.dtype());
  dispatch_computed_float(self.dtype(), kName, [&]<class T>() -> void {
    map_elements<T, T, T>(kName, losses, CrossEntropy<T>{&outside}, {&a, &b});
  });
  SCONCE_CHECK(!outside.load(), kInvalidArgument, kName, ": all elements of input should be between 0 and 1");
  if (weight) losses = multiply(losses, *weight);
  return reduced(losses, reduction);
}
Tensor binary_cross_entropy_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                     const Tensor* weight, int64_t reduction) {
  // ATen also takes the least denominator as a float.
  const Tensor slopes = slope_of(
      "binary_cross_entropy_backward", grad_output, self, target, reduction,
      []<class T>(T x, T y) -> T { return (x - y) / std::max((T(1) - x) * x, static_cast<T>(1e-12F)); }, &self);
  return weight ? multiply(slopes, *weight) : slopes;
}
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target, const Tensor* weight,
                                        const Tensor* pos_weight, int64_t reduction) {
  constexpr const char* kName = "binary_cross_entropy_with_logits";
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), kName);
  require_library(sleef_library());
  const auto log_sigmoid = []<class T>(T x) -> T {
    return std::min(x, T(0)) - simd::quick_log1p(simd::quick_exp(-std::fabs(x)));
  };
  // The result has the memory order of the target, on which ATen's first operation works.
  ResultType result = ResultType().add(self).add(target);
  if (pos_weight) result.add(*pos_weight);
  const DType dtype = result.get();
  const bool as_target =
      std::ranges::equal(IntSpan(broadcast_shapes(kName, self.sizes(), target.sizes())), target.sizes());
  Tensor losses;
  if (pos_weight) {
    losses = as_target ? make_result(kName, {&target}, dtype, dtype)
                       : make_result(kName, {&target, &self, pos_weight}, dtype, dtype);
    dispatch_computed_float(dtype, kName, [&]<class T>() -> void {
      const auto loss = [=](T x, T y, T w) { return (T(1) - y) * x - ((w - T(1)) * y + T(1)) * log_sigmoid(x); };
      map_elements<T, T, T, T>(kName, losses, InLanes<decltype(loss)>{loss}, {&self, &target, pos_weight});
    });
  } else {
    losses =
        as_target ? make_result(kName, {&target}, dtype, dtype) : make_result(kName, {&target, &self}, dtype, dtype);
    map_into(kName, losses, self, target, [=]<class T>(T x, T y) -> T { return (T(1) - y) * x - log_sigmoid(x); });
  }
  if (weight) losses = multiply(losses, *weight);
  return reduced(losses, reduction);
}

}  // namespace sconce::cpu
