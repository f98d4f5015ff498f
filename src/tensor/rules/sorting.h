// Checks the arguments of searches, order statistics and counts. Match ATen, torch 2.15. kInvalidArgument.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/tensor/strided_loop.h"

namespace sconce {

// Combines both arguments of a binary search. kInvalidArgument if they contradict each other.
bool right_side(bool right, std::optional<std::string_view> side);
// Checks the sequence of a binary search with its values and the sorter (null: none), and that of bucketize.
void check_searched(const Tensor& sequence, const Tensor& values, bool out_int32, const Tensor* sorter);
void check_boundaries(const Tensor& boundaries);
// The dtype to search in, which holds all values of smaller types.
DType searched_dtype(DType dtype) noexcept;
// Sizes of a result over dim.
Shape without_dim(const Tensor& self, int64_t dim, bool keepdim);
void check_dim_not_empty(std::string_view name, const Tensor& self, int64_t dim);
// For bincount, except for values below 0, which kernels detect.
void check_bincount(const Tensor& self, const Tensor* weights, int64_t minlength);

}  // namespace sconce
