// Scans along a dimension. Match aten::cumsum, cumprod, cummax, cummin, logcumsumexp (torch 2.15, CPU).
//
// Any strides; results are row-major. Elements are combined in sequence, in ATen's accumulator types (float in double,
// half and bfloat16 in float, integers in int64), so that results equal ATen's to the bit; but for the long single
// slices of cumsum in float, where the sums of four elements are formed first.
#pragma once

#include <array>
#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

// dtype: of the result; by default self's, int64 for integers and bool.
Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype);
Tensor cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype);
// Values and int64 positions, of equal values the last one. A NaN stays.
std::array<Tensor, 2> cummax(const Tensor& self, int64_t dim);
std::array<Tensor, 2> cummin(const Tensor& self, int64_t dim);
Tensor logcumsumexp(const Tensor& self, int64_t dim);

}  // namespace sconce::cpu
