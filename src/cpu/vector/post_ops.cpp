#include "src/cpu/vector/post_ops.h"

#include <cmath>
#include <cstring>

#include "sconce/check.h"
#include "sconce/float_types.h"
#include "src/cpu/vector/vector_math.h"
#include "src/tensor/elements/convert.h"

namespace sconce {
namespace {

template <class F>
void each(float* values, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) values[i] = f(values[i]);
}

void activate(const Fusion& fusion, float* v, int64_t n) {
  const float a = fusion.a, b = fusion.b;
  switch (fusion.activation) {
    case Activation::kNone:
      return;
    case Activation::kRelu:  // NaN stays NaN, here and below
      return each(v, n, [](float x) { return x < 0.0f ? 0.0f : x; });
    case Activation::kSigmoid:
      return each(v, n, [](float x) { return sigmoid(x); });
    case Activation::kTanh:
      return each(v, n, [](float x) { return hyperbolic_tangent(x); });
    case Activation::kHardswish:
      return each(v, n, [](float x) {
        const float y = x + 3.0f;
        return x * (y < 0.0f ? 0.0f : y > 6.0f ? 6.0f : y) * (1.0f / 6.0f);
      });
    case Activation::kSwish:
      return each(v, n, [](float x) { return x / (1.0f + exponential(-x)); });
    case Activation::kHardsigmoid:
      return each(v, n, [](float x) {
        const float y = x + 3.0f;
        return (y < 0.0f ? 0.0f : y > 6.0f ? 6.0f : y) * (1.0f / 6.0f);
      });
    case Activation::kGelu:
      return each(v, n, [](float x) { return 0.5f * x * (1.0f + error_function(x * 0.70710678f)); });
    case Activation::kGeluTanh:
      return each(v, n, [](float x) {
        const float inner = 0.797884561f * x * std::fma(0.044715f * x, x, 1.0f);
        return 0.5f * x * (1.0f + hyperbolic_tangent(inner));
      });
    case Activation::kLeakyRelu:
      return each(v, n, [a](float x) { return x < 0.0f ? x * a : x; });
    case Activation::kHardtanh:
      return each(v, n, [a, b](float x) { return x < a ? a : x > b ? b : x; });
  }
}

void combine(Combination combination, float* __restrict v, const float* __restrict o, int64_t n) {
  switch (combination) {
    case Combination::kNone:
      return;
    case Combination::kAdd:
      for (int64_t i = 0; i < n; ++i) v[i] += o[i];
      return;
    case Combination::kSubtract:
      for (int64_t i = 0; i < n; ++i) v[i] -= o[i];
      return;
    case Combination::kMultiply:
      for (int64_t i = 0; i < n; ++i) v[i] *= o[i];
      return;
    case Combination::kDivide:
      for (int64_t i = 0; i < n; ++i) v[i] /= o[i];
      return;
  }
}

}  // namespace

void parse_activation(std::string_view name, std::string_view attribute, std::span<const double* const> scalars,
                      std::optional<std::string_view> algorithm, Fusion& fusion) {
  const auto scalar = [&](size_t i, std::string_view what) {
    SCONCE_CHECK(i < scalars.size() && scalars[i], kInvalidArgument, name, ": ", attribute, " needs the scalar ", what);
    return static_cast<float>(*scalars[i]);
  };
  static constexpr std::pair<std::string_view, Activation> kPlain[] = {{"none", Activation::kNone},
                                                                       {"relu", Activation::kRelu},
                                                                       {"sigmoid", Activation::kSigmoid},
                                                                       {"tanh", Activation::kTanh},
                                                                       {"swish", Activation::kSwish},
                                                                       {"hardswish", Activation::kHardswish},
                                                                       {"hardsigmoid", Activation::kHardsigmoid}};
  for (const auto& [spelling, activation] : kPlain)
    if (attribute == spelling) {
      fusion.activation = activation;
      return;
    }
  if (attribute == "gelu") {
    const std::string_view how = algorithm.value_or("");
    SCONCE_CHECK(how == "none" || how == "tanh", kInvalidArgument, name, ": unsupported gelu algorithm '", how, "'");
    fusion.activation = how == "tanh" ? Activation::kGeluTanh : Activation::kGelu;
  } else if (attribute == "leaky_relu") {
    fusion.activation = Activation::kLeakyRelu;
    fusion.a = scalar(0, "negative_slope");
  } else if (attribute == "hardtanh") {
    fusion.activation = Activation::kHardtanh;
    fusion.a = scalar(0, "min_val");
    fusion.b = scalar(1, "max_val");
  } else {
    SCONCE_FAIL(kInvalidArgument, name, ": unknown fused activation '", attribute, "'");
  }
}

Combination parse_combination(std::string_view name, std::string_view attribute) {
  if (attribute == "add") return Combination::kAdd;
  if (attribute == "sub") return Combination::kSubtract;
  if (attribute == "mul") return Combination::kMultiply;
  if (attribute == "div") return Combination::kDivide;
  SCONCE_FAIL(kInvalidArgument, name, ": unknown fused binary operation '", attribute, "'");
}

void apply_fusion(const Fusion& fusion, float* values, const float* others, int64_t n) noexcept {
  combine(fusion.combination, values, others, n);
  activate(fusion, values, n);
}

namespace {

void widen(const float* from, float* to, int64_t n) noexcept {
  std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
}
void widen(const BFloat16* from, float* to, int64_t n) noexcept { bfloat16_to_float(from, to, n); }
void widen(const Half* from, float* to, int64_t n) noexcept { half_to_float(from, to, n); }
void narrow(const float* from, float* to, int64_t n) noexcept { widen(from, to, n); }
void narrow(const float* from, BFloat16* to, int64_t n) noexcept { bfloat16_from_float(from, to, n); }
void narrow(const float* from, Half* to, int64_t n) noexcept { half_from_float(from, to, n); }

template <class F>
void dispatch_float_or_half(DType dtype, const F& f) noexcept {
  if (dtype == DType::kFloat32) return f.template operator()<float>();
  dtype == DType::kBFloat16 ? f.template operator()<BFloat16>() : f.template operator()<Half>();
}

}  // namespace

void gather_floats(DType dtype, const void* source, int64_t stride, float* values, int64_t n) noexcept {
  dispatch_float_or_half(dtype, [=]<class T>() {
    const auto* const from = static_cast<const T*>(source);
    if (stride == 1) return widen(from, values, n);
    for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(from[i * stride]);
  });
}

void scatter_floats(const float* values, DType dtype, void* destination, int64_t stride, int64_t n) noexcept {
  dispatch_float_or_half(dtype, [=]<class T>() {
    auto* const to = static_cast<T*>(destination);
    if (stride == 1) return narrow(values, to, n);
    for (int64_t i = 0; i < n; ++i) to[i * stride] = T(values[i]);
  });
}

}  // namespace sconce
