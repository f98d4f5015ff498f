// Elementwise functions without a C function, called by name.
#include "tests/bench/ops/calls.h"

namespace bench {
namespace {

const Sizes kSizes{256, 768};

std::string short_name(const std::string& name) { return name.substr(6); }  // without "aten::"

struct Unary {
  const char* name;
  double from, to;
  DType dtype = kF32;
};
void add(Cases& cases, const Unary& f, const char* suffix = " f32 256x768") {
  cases.add(short_name(f.name) + suffix, [=] { return named<1>(f.name, "", uniform(kSizes, f.from, f.to, f.dtype)); });
}
struct Binary {
  const char *name, *overload;
  double from, to;  // range of the second operand; the first is from -3 to 3
};
void add(Cases& cases, const Binary& f) {
  cases.add(short_name(f.name) + " f32 256x768 twice",
            [=] { return named<1>(f.name, f.overload, uniform(kSizes, -3, 3), uniform(kSizes, f.from, f.to)); });
}
// Takes an input, or a gradient and an input, and numbers.
template <class... A>
void add_with(Cases& cases, const char* name, A... numbers) {
  cases.add(short_name(name) + " f32 256x768", [=] { return named<1>(name, "", randn(kSizes), numbers...); });
}
template <class... A>
void add_gradient(Cases& cases, const char* name, A... numbers) {
  cases.add(short_name(name) + " f32 256x768",
            [=] { return named<1>(name, "", randn(kSizes), randn(kSizes), numbers...); });
}

void add_activations(Cases& cases) {
  cases.family("activations");
  for (const char* name : {"aten::relu", "aten::silu", "aten::mish", "aten::hardswish", "aten::hardsigmoid"})
    add(cases, {name, -4, 4});
  for (const char* approximate : {"none", "tanh"}) {
    const std::string tail = std::string(" f32 256x768 ") + approximate;
    cases.add("gelu" + tail, [=] { return named<1>("aten::gelu", "", randn(kSizes), approximate); });
    cases.add("gelu_backward" + tail,
              [=] { return named<1>("aten::gelu_backward", "", randn(kSizes), randn(kSizes), approximate); });
  }
  cases.add("gelu bf16 256x768", [=] { return named<1>("aten::gelu", "", randn(kSizes, kBF16), "none"); });
  add(cases, {"aten::silu", -4, 4, kBF16}, " bf16 256x768");
  add(cases, {"aten::relu", -4, 4, kBF16}, " bf16 256x768");
  add_with(cases, "aten::elu", 1.0, 1.0, 1.0);
  add_with(cases, "aten::celu", 1.5);
  add_with(cases, "aten::softplus", 1.0, 20.0);
  add_with(cases, "aten::hardtanh", -1.0, 1.0);
  add_with(cases, "aten::hardshrink", 0.5);
  add_with(cases, "aten::softshrink", 0.5);
  add_with(cases, "aten::leaky_relu", 0.1);
  add_with(cases, "aten::threshold", 0.1, 2.0);
  add_with(cases, "aten::glu", -1);
  cases.add("_prelu_kernel f32 256x768",
            [] { return named<1>("aten::_prelu_kernel", "", randn(kSizes), randn({768})); });
  cases.add("log_sigmoid_forward f32 256x768", [] { return named<2>("aten::log_sigmoid_forward", "", randn(kSizes)); });
  cases.add("log_sigmoid_backward f32 256x768", [] {
    return named<1>("aten::log_sigmoid_backward", "", randn(kSizes), randn(kSizes), uniform(kSizes, 0.1, 1));
  });
  for (const char* name : {"aten::silu_backward", "aten::mish_backward", "aten::hardswish_backward",
                           "aten::hardsigmoid_backward", "aten::sigmoid_backward", "aten::tanh_backward"})
    add_gradient(cases, name);
  cases.add("elu_backward f32 256x768",
            [] { return named<1>("aten::elu_backward", "", randn(kSizes), 1.0, 1.0, 1.0, false, randn(kSizes)); });
  add_gradient(cases, "aten::softplus_backward", 1.0, 20.0);
  add_gradient(cases, "aten::leaky_relu_backward", 0.1, false);
  add_gradient(cases, "aten::threshold_backward", 0.0);
  cases.add("glu_backward f32 256x768", [] {
    return named<1>("aten::glu_backward", "", randn({256, 384}), randn(kSizes), -1);
  });
}

void add_functions(Cases& cases) {
  cases.family("functions");
  for (const Unary& f : std::initializer_list<Unary>{
           {"aten::acos", -1, 1},     {"aten::acosh", 1, 10},       {"aten::asin", -1, 1},
           {"aten::asinh", -5, 5},    {"aten::atan", -5, 5},        {"aten::atanh", -1, 1},
           {"aten::cos", -10, 10},    {"aten::cosh", -5, 5},        {"aten::sin", -10, 10},
           {"aten::sinh", -5, 5},     {"aten::tan", -10, 10},       {"aten::exp", -5, 5},
           {"aten::exp2", -5, 5},     {"aten::expm1", -2, 2},       {"aten::log", 0.01, 10},
           {"aten::log10", 0.01, 10}, {"aten::log1p", -0.9, 10},    {"aten::log2", 0.01, 10},
           {"aten::sqrt", 0, 10},     {"aten::rsqrt", 0.1, 10},     {"aten::reciprocal", 1, 10},
           {"aten::erf", -3, 3},      {"aten::erfc", -3, 3},        {"aten::lgamma", 0.1, 10},
           {"aten::ceil", -10, 10},   {"aten::frac", -10, 10},      {"aten::round", -10, 10},
           {"aten::trunc", -10, 10},  {"aten::neg", -10, 10},       {"aten::sgn", -10, 10},
           {"aten::isnan", -10, 10},  {"aten::logical_not", -1, 1}, {"aten::deg2rad", -10, 10},
           {"aten::sinc", -10, 10},   {"aten::sign", -10, 10},      {"aten::signbit", -10, 10}})
    add(cases, f);
  for (const Unary& f : std::initializer_list<Unary>{{"aten::exp", -5, 5, kF64},
                                                     {"aten::log", 0.01, 10, kF64},
                                                     {"aten::sin", -10, 10, kF64},
                                                     {"aten::tanh", -3, 3, kF64},
                                                     {"aten::sigmoid", -3, 3, kF64},
                                                     {"aten::erf", -3, 3, kF64}})
    add(cases, f, " f64 256x768");
  for (const Unary& f : std::initializer_list<Unary>{{"aten::exp", -5, 5, kBF16},
                                                     {"aten::cos", -10, 10, kBF16},
                                                     {"aten::neg", -10, 10, kBF16},
                                                     {"aten::tanh", -3, 3, kBF16},
                                                     {"aten::rsqrt", 0.1, 10, kBF16}})
    add(cases, f, " bf16 256x768");
  cases.add("logit f32 256x768 eps", [] { return named<1>("aten::logit", "", uniform(kSizes, 0, 1), 1e-6); });
  cases.add("nan_to_num f32 256x768", [] { return named<1>("aten::nan_to_num", "", randn(kSizes), none, none, none); });
  cases.add("clamp f32 256x768", [] { return named<1>("aten::clamp", "", randn(kSizes), -1.0, 1.0); });

  cases.family("functions of two or three");
  for (const Binary& f : std::initializer_list<Binary>{{"aten::atan2", "", -3, 3},
                                                       {"aten::hypot", "", -3, 3},
                                                       {"aten::logaddexp", "", -3, 3},
                                                       {"aten::logaddexp2", "", -3, 3},
                                                       {"aten::xlogy", "Tensor", 0.1, 3},
                                                       {"aten::copysign", "Tensor", -3, 3},
                                                       {"aten::fmod", "Tensor", 0.5, 3},
                                                       {"aten::remainder", "Tensor", 0.5, 3},
                                                       {"aten::div", "Tensor", 0.5, 3},
                                                       {"aten::sub", "Tensor", 0.5, 3},
                                                       {"aten::maximum", "", -3, 3},
                                                       {"aten::fmin", "", -3, 3},
                                                       {"aten::eq", "Tensor", -3, 3},
                                                       {"aten::lt", "Tensor", -3, 3},
                                                       {"aten::logical_and", "", -3, 3},
                                                       {"aten::nextafter", "", -3, 3}})
    if (std::string(f.name) == "aten::sub")
      cases.add("sub f32 256x768 twice",
                [] { return named<1>("aten::sub", "Tensor", randn(kSizes), randn(kSizes), 1.0); });
    else
      add(cases, f);
  cases.add("div f32 256x768 twice, floor",
            [] { return named<1>("aten::div", "Tensor_mode", randn(kSizes), uniform(kSizes, 0.5, 3), "floor"); });
  cases.add("lerp f32 256x768, number",
            [] { return named<1>("aten::lerp", "Scalar", randn(kSizes), randn(kSizes), 0.3); });
  for (const char* name : {"aten::addcmul", "aten::addcdiv"})
    cases.add(short_name(name) + " f32 256x768",
              [=] { return named<1>(name, "", randn(kSizes), randn(kSizes), uniform(kSizes, 0.5, 3), 0.5); });
  cases.add("masked_fill f32 256x768",
            [] { return named<1>("aten::masked_fill", "Scalar", randn(kSizes), integers(kSizes, 0, 2, kBool), 0.5); });
}

void add_special(Cases& cases) {
  cases.family("special functions");
  for (const Unary& f : std::initializer_list<Unary>{{"aten::digamma", 0.1, 10},
                                                     {"aten::erfinv", -1, 1},
                                                     {"aten::i0", -5, 5},
                                                     {"aten::special_i0e", -5, 5},
                                                     {"aten::special_i1", -5, 5},
                                                     {"aten::special_i1e", -5, 5},
                                                     {"aten::special_bessel_j0", 0, 20},
                                                     {"aten::special_bessel_j1", 0, 20},
                                                     {"aten::special_bessel_y0", 0.1, 20},
                                                     {"aten::special_bessel_y1", 0.1, 20},
                                                     {"aten::special_entr", 0, 2},
                                                     {"aten::special_erfcx", -2, 10},
                                                     {"aten::special_log_ndtr", -5, 5},
                                                     {"aten::special_ndtri", 0, 1},
                                                     {"aten::special_airy_ai", -5, 5},
                                                     {"aten::special_modified_bessel_i0", -5, 5},
                                                     {"aten::special_modified_bessel_i1", -5, 5},
                                                     {"aten::special_modified_bessel_k0", 0.1, 10},
                                                     {"aten::special_modified_bessel_k1", 0.1, 10},
                                                     {"aten::special_scaled_modified_bessel_k0", 0.1, 10},
                                                     {"aten::special_scaled_modified_bessel_k1", 0.1, 10},
                                                     {"aten::special_spherical_bessel_j0", 0, 20}})
    cases.add(short_name(f.name) + " f32 64x256", [=] {
      return named<1>(f.name, "", uniform({64, 256}, f.from, f.to));
    });
  cases.add("polygamma f32 64x256, 2", [] { return named<1>("aten::polygamma", "", 2, uniform({64, 256}, 0.1, 10)); });
  for (const char* name : {"aten::igamma", "aten::igammac"})
    cases.add(short_name(name) + " f32 64x256", [=] {
      return named<1>(name, "", uniform({64, 256}, 0.1, 10), uniform({64, 256}, 0.1, 10));
    });
  cases.add("special_zeta f32 64x256", [] {
    return named<1>("aten::special_zeta", "", uniform({64, 256}, 1.1, 10), uniform({64, 256}, 0.1, 10));
  });
  for (const char* name : {"aten::special_chebyshev_polynomial_t", "aten::special_hermite_polynomial_h",
                           "aten::special_laguerre_polynomial_l", "aten::special_legendre_polynomial_p"})
    cases.add(short_name(name) + " f32 64x256, degree 8", [=] {
      return named<1>(name, "", uniform({64, 256}, -0.9, 0.9), uniform({64, 256}, 8, 8));
    });
}

}  // namespace

void add_function_cases(Cases& cases) {
  add_activations(cases);
  add_functions(cases);
  add_special(cases);
}

}  // namespace bench
