// Elementwise operators of the ABI. Numbers arrive as double, so that they are of the floating category as in ATen:
// an integer tensor and a number give float32, and alpha is refused for integer results.
// Strides accepted: any, operands broadcast. Matches ATen's CPU kernels, torch 2.15.
#pragma once

#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

Tensor add_Tensor(const Tensor& self, const Tensor& other, double alpha);  // self + alpha * other
Tensor add_Scalar(const Tensor& self, double other, double alpha);
Tensor subtract_Tensor(const Tensor& self, const Tensor& other, double alpha);
Tensor mul_Tensor(const Tensor& self, const Tensor& other);
Tensor mul_Scalar(const Tensor& self, double other);
Tensor pow_Tensor_Tensor(const Tensor& self, const Tensor& exponent);
Tensor pow_Tensor_Scalar(const Tensor& self, double exponent);
Tensor pow_Scalar(double self, const Tensor& exponent);
Tensor abs(const Tensor& self);    // of complex numbers: real
Tensor angle(const Tensor& self);  // of integers: float32
Tensor gcd(const Tensor& self, const Tensor& other);
Tensor polar(const Tensor& abs, const Tensor& angle);  // float32, float64 or float16 to complex
Tensor hann_window(int64_t window_length, std::optional<DType> dtype, std::optional<int32_t> layout,
                   std::optional<Device> device, std::optional<int32_t> pin_memory);  // periodic
Tensor hann_window_periodic(int64_t window_length, bool periodic, std::optional<DType> dtype,
                            std::optional<int32_t> layout, std::optional<Device> device,
                            std::optional<int32_t> pin_memory);
// Maximum over `dims`, all where there are none; NaN wins. Row-major result.
Tensor amax(const Tensor& self, IntSpan dims, bool keepdim);

}  // namespace sconce::cpu
