// Means, variances, products and truth over dimensions; over all of them if none is named. Row-major results. Floats
// and complex are accumulated in double. Any strides. Match aten's mean, prod, var, var_mean, any (torch 2.15, CPU).
#pragma once

#include <array>
#include <optional>

#include "src/tensor/scalar.h"

namespace sconce::cpu {

Tensor mean(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype);  // no integers
// Integers and bool give int64 if no dtype is given.
Tensor prod(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype);
// Divided by the count less `correction` (1 if none is given); real, also for complex numbers.
Tensor var(const Tensor& self, std::optional<IntSpan> dim, std::optional<Scalar> correction, bool keepdim);
std::array<Tensor, 2> var_mean(const Tensor& self, std::optional<IntSpan> dim, std::optional<Scalar> correction,
                               bool keepdim);
// Whether any element is not zero, and whether none is zero. The results are bool, or uint8 if self is.
Tensor any(const Tensor& self, std::optional<IntSpan> dim, bool keepdim);
Tensor all(const Tensor& self, std::optional<IntSpan> dim, bool keepdim);

}  // namespace sconce::cpu
