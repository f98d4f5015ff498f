// Post operations of a convolution or a linear layer, in the same pass: an operation with a second tensor, then an
// activation. Matches the attributes of mkldnn::_convolution_pointwise and mkldnn::_linear_pointwise, torch 2.15.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce {

enum class Activation : int8_t {
  kNone,
  kRelu,
  kSigmoid,
  kTanh,
  kHardswish,
  kSwish,
  kHardsigmoid,
  kGelu,
  kGeluTanh,
  kLeakyRelu,  // a: slope
  kHardtanh    // a: minimum, b: maximum
};

enum class Combination : int8_t { kNone, kAdd, kSubtract, kMultiply, kDivide };

struct Fusion {
  Activation activation = Activation::kNone;
  float a = 0, b = 0;
  Combination combination = Combination::kNone;  // sum = sum COMBINATION other

  bool none() const noexcept { return activation == Activation::kNone && combination == Combination::kNone; }
};

// attribute "none", "relu", ...; kInvalidArgument "NAME: ..." if it is unknown or lacks its scalars.
void parse_activation(std::string_view name, std::string_view attribute, std::span<const double* const> scalars,
                      std::optional<std::string_view> algorithm, Fusion& fusion);
// "add", "sub", "mul", "div".
Combination parse_combination(std::string_view name, std::string_view attribute);

// values[n] in place, with others[n]; null if there is no combination.
void apply_fusion(const Fusion& fusion, float* values, const float* others, int64_t n) noexcept;

// n elements `stride` apart, as floats. dtype float32, float16 or bfloat16.
void gather_floats(DType dtype, const void* source, int64_t stride, float* values, int64_t n) noexcept;
// The reverse; rounds to nearest even.
void scatter_floats(const float* values, DType dtype, void* destination, int64_t stride, int64_t n) noexcept;

}  // namespace sconce
