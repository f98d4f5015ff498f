// Shared by quantised linear layers and convolutions: their weights, and the finishing step for their sums.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sconce/tensor.h"
#include "src/cpu/convolution/direct/convolution_bytes.h"
#include "src/cpu/vector/post_ops.h"

namespace sconce {

// The second tensor of a fused operation.
struct QuantisedOther {
  enum class How { kNone, kSum, kAdd } how = How::kNone;  // kSum: it holds the result
  Tensor tensor;
  double scale = 1, zero_point = 0;
};

// result = activation(sum * scale[n] + bias[n] + other), times 1 / output_scale plus the zero point if the result is
// quantised.
struct QuantisedResult {
  Tensor scale;  // float32 [n], contiguous: input times weight
  Tensor bias;   // the same, or undefined
  Fusion fusion;
  QuantisedOther other;
  bool quantised = false;
  double output_scale = 1;
  int64_t output_zero_point = 0;
};

// sums [m, n] of int32 or float32, contiguous; output of m rows: uint8, int8, float32, float16, bfloat16 or float8.
// other, if any, has one of these dtypes and the output's row layout.
void finish_quantised(const QuantisedResult& result, const Tensor& sums, int64_t m, int64_t n, Tensor& output);

// The same in the form of convolve_bytes(), which applies it in its own pass; none if it cannot. Refers to `result`.
std::optional<ByteFinish> byte_finish(const QuantisedResult& result, DType output);

// Only integers are scaled. kInvalidArgument.
void check_sum(std::string_view name, const QuantisedOther& other, DType output);

}  // namespace sconce
