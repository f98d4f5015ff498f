// Operators that only move elements, in addition to those of op_table.def and dimensions.h; views, if a comment says
// so. Any dtypes, any strides. Match aten's of the same names (torch 2.15, CPU).
#pragma once

#include <string_view>

#include "src/operators/arguments.h"
#include "src/tensor/scalar.h"

namespace sconce::cpu {

Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2);   // a view
Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step);  // a view
Tensor squeeze_dims(const Tensor& self, IntSpan dims);                             // a view
Tensor flip(const Tensor& self, IntSpan dims);
Tensor repeat(const Tensor& self, IntSpan repeats);
Tensor constant_pad_nd(const Tensor& self, IntSpan pad, Scalar value);

// A copy of self in which a part, described as a view, is replaced by src. Results have self's strides.
Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step);
Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index);
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2);
Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntSpan size, IntSpan stride,
                          std::optional<int64_t> storage_offset);
Tensor copied(const Tensor& self, const Tensor& src);  // self's sizes, dtype and strides, src's elements

// index: int64 or int32, no larger than self except along dim; kInvalidArgument if it is out of bounds.
Tensor gather(const Tensor& self, int64_t dim, const Tensor& index);
Tensor scatter_src(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Tensor scatter_value(const Tensor& self, int64_t dim, const Tensor& index, Scalar value);
void scatter_value_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, Scalar value);
Tensor scatter_reduce_by(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                         std::string_view reduce);  // "add", "multiply"
Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha);
// Positions with a false mask get `fill`, or add nothing; their indices are not read.
Tensor _unsafe_masked_index(const Tensor& self, const Tensor& mask, OptTensorList indices, Scalar fill);
Tensor _unsafe_masked_index_put_accumulate(const Tensor& self, const Tensor& mask, OptTensorList indices,
                                           const Tensor& values);
// Rows of weight [n, ...] by number: indices' sizes, then a row's.
Tensor embedding(const Tensor& weight, const Tensor& indices);

// A copy of weight [n, ...] whose rows named by indices have a norm of at most max_norm.
Tensor embedding_renorm(const Tensor& weight, const Tensor& indices, double max_norm, double norm_type);

}  // namespace sconce::cpu
