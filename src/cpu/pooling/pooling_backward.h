// Gradients of pooling, and the inverse of max pooling. [N, C, (D,) H, W], N optional; settings as in pooling.cpp.
//
// Any strides; a result is channels-last where ATen's is. Half types are summed in float and rounded once. Indices are
// int64 offsets into a plane; one outside of it is kInvalidArgument (ATen's kernels write out of bounds). Match ATen's
// CPU kernels, torch 2.15.
#pragma once

#include <string_view>

#include "sconce/tensor.h"

namespace sconce::cpu {

// Of max_unpool3d, whose result does not depend on them.
void check_unpool3d(IntSpan stride, IntSpan padding);
void check_gradient_dtype(std::string_view name, const Tensor& grad_output, const Tensor& self);

}  // namespace sconce::cpu
