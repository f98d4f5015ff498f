// Distinct elements and counts. Match aten::_unique2, unique_consecutive, unique_dim, unique_dim_consecutive and
// bincount (torch 2.15, CPU). NaNs are distinct from each other.
#pragma once

#include <array>
#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

// {values, inverse, counts}: values [n] of self's dtype; inverse int64 of self's sizes, counts int64 [n]; results that
// were not requested have no elements.
std::array<Tensor, 3> _unique2(const Tensor& self, bool sorted, bool return_inverse, bool return_counts);
// Without `dim` over all elements, else over the slices along it.
std::array<Tensor, 3> unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts,
                                         std::optional<int64_t> dim);
// Distinct slices along dim. Inverse [size(dim)] and counts [n] are always returned.
std::array<Tensor, 3> unique_dim(const Tensor& self, int64_t dim, bool sorted, bool return_inverse, bool return_counts);
std::array<Tensor, 3> unique_dim_consecutive(const Tensor& self, int64_t dim, bool return_inverse, bool return_counts);
// self: [n] of integers from 0. [max(minlength, largest + 1)], int64, or float32 or float64 with weights [n].
Tensor bincount(const Tensor& self, const Tensor* weights, int64_t minlength);

}  // namespace sconce::cpu
