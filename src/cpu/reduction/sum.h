// Sums. Match aten::sum, sum.dim_IntList and sum.IntList_out (torch 2.15); floats are summed in double, so the last
// bits may be better than ATen's. Result row-major; int64 for integers and bool if no dtype is given.
#pragma once

#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

// An empty `dim` means all dimensions.
Tensor sum(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype);
void sum_out(Tensor& out, const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype);

}  // namespace sconce::cpu
