// The smallest and largest elements over dimensions, and their positions; in addition to amax of elementwise_ops.h.
// NaN wins; of equal elements the first wins. No complex numbers. Row-major results. Match aten's of the same names
// (torch 2.15, CPU).
#pragma once

#include <array>
#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

Tensor amin(const Tensor& self, IntSpan dims, bool keepdim);
std::array<Tensor, 2> aminmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim);  // {least, greatest}
// {values, int64 positions}
std::array<Tensor, 2> max_dim(const Tensor& self, int64_t dim, bool keepdim);
std::array<Tensor, 2> min_dim(const Tensor& self, int64_t dim, bool keepdim);
// Over all elements, by their row-major number, if no dimension is given. No bool.
Tensor argmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim);
Tensor argmin(const Tensor& self, std::optional<int64_t> dim, bool keepdim);

}  // namespace sconce::cpu
