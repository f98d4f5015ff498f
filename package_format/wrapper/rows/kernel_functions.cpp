#include "package_format/wrapper/rows/kernel_functions.h"

#include <algorithm>

namespace sconce::rows {
namespace {

template <size_t N>
bool among(std::string_view name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

bool crosses_lanes(std::string_view function) {
  return function.find("reduce_all") != std::string_view::npos || function == "all_zero" || function == "all_masked";
}

bool is_random(std::string_view function) {
  return function.starts_with("normalized_rand") || function.starts_with("randn") || function.starts_with("randint");
}

bool is_pure(std::string_view qualifier, std::string_view function) {
  static constexpr std::string_view kMath[] = {
      "abs",      "acos",      "acosh", "asin",  "asinh",   "atan",     "atan2",    "atanh",  "cbrt",      "ceil",
      "copysign", "cos",       "cosh",  "erf",   "erfc",    "exp",      "exp2",     "expm1",  "fabs",      "floor",
      "fma",      "fmod",      "frexp", "hypot", "imag",    "infinity", "isfinite", "isinf",  "isnan",     "ldexp",
      "lgamma",   "log",       "log10", "log1p", "log2",    "lowest",   "max",      "min",    "nearbyint", "nextafter",
      "pow",      "quiet_NaN", "real",  "rint",  "round",   "signbit",  "sin",      "sinh",   "sqrt",      "tan",
      "tanh",     "tgamma",    "trunc", "conj",  "epsilon", "arg",      "polar",    "complex"};
  // Of c10, at::native and the prefix header.
  static constexpr std::string_view kNumbers[] = {"convert",
                                                  "div_floor_integer",
                                                  "div_floor_floating",
                                                  "div_mod",
                                                  "mod",
                                                  "round_half_to_even",
                                                  "bit_cast",
                                                  "calc_erfcx",
                                                  "calc_erfinv",
                                                  "calc_i0",
                                                  "calc_i0e",
                                                  "calc_i1",
                                                  "calc_i1e",
                                                  "calc_digamma",
                                                  "calc_igamma",
                                                  "calc_igammac",
                                                  "calc_polygamma",
                                                  "zeta",
                                                  "calc_ndtri",
                                                  "calc_log_ndtr",
                                                  "max_propagate_nan",
                                                  "min_propagate_nan",
                                                  "welford_combine",
                                                  "welford_vec_reduce_all",
                                                  "argmax_combine",
                                                  "argmin_combine",
                                                  "argmax_combine_vec",
                                                  "argmin_combine_vec",
                                                  "argmax_vec_reduce_all",
                                                  "argmin_vec_reduce_all",
                                                  "cascade_sum_combine",
                                                  "cascade_sum_final",
                                                  "inductor_vec_mask_cast",
                                                  "sum_masked_reduce",
                                                  "prod_masked_reduce",
                                                  "max_masked_reduce",
                                                  "min_masked_reduce",
                                                  "any_masked_reduce",
                                                  "xor_sum_masked_reduce",
                                                  "vec_reduce_all",
                                                  "Welford",
                                                  "IndexValue",
                                                  "IndexValueVec",
                                                  "WelfordHelper",
                                                  "CascadeSumHelper",
                                                  "welford_combine_weights",
                                                  "omp_get_thread_num",
                                                  "omp_get_num_threads",
                                                  "bool",
                                                  "uint8_t",
                                                  "int8_t",
                                                  "int16_t",
                                                  "decltype",
                                                  "Vectorized",
                                                  "VectorizedN",
                                                  "VecMask",
                                                  "half",
                                                  "bfloat16",
                                                  "Half",
                                                  "BFloat16",
                                                  "is_nan",
                                                  "inductor_div_floor_integer",
                                                  "inductor_integer_div",
                                                  "modified_bessel_i0_forward",
                                                  "size",
                                                  "isnan"};
  static constexpr std::string_view kVectors[] = {
      "clamp",         "clamp_min", "clamp_max", "maximum", "minimum",
      "convert",       "fmadd",     "fmsub",     "fnmadd",  "vec_reduce_all",
      "blendv",        "from",      "set",       "cast",    "to",
      "deinterleave2", "blend",     "size",      "isnan",   "convert_to_int_of_same_size"};
  if (qualifier.starts_with("std::")) return among(function, kMath);
  if (qualifier.starts_with("at::vec::") || qualifier.starts_with("decltype"))
    return among(function, kVectors) || among(function, kMath) || among(function, kNumbers);
  return among(function, kNumbers) || among(function, kMath);
}

bool is_pure_method(std::string_view function) {
  static constexpr std::string_view kOthers[] = {
      "neg",   "rsqrt",       "reciprocal", "sgn",         "sign",    "frac",     "erfinv",   "digamma",
      "i0",    "i0e",         "igamma",     "igammac",     "to",      "cast",     "all_zero", "all_masked",
      "angle", "bitwise_not", "isnan",      "has_inf_nan", "eq",      "ne",       "lt",       "le",
      "gt",    "ge",          "value",      "index",       "mean",    "m2",       "weight",   "real",
      "imag",  "get",         "data",       "size",        "exp_u20", "fexp_u20", "acc"};
  return std::find(std::begin(kOthers), std::end(kOthers), function) != std::end(kOthers) || is_pure("std::", function);
}

}  // namespace sconce::rows
