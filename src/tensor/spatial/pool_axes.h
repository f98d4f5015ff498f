// The windows of pooling, from the arguments of its operators. Match ATen, torch 2.15.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "src/tensor/strided_loop.h"

namespace sconce {

// One pooled dimension. Two-dimensional pooling has a depth of 1.
struct PoolAxis {
  int64_t input = 1, output = 1;
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  bool adaptive = false;  // windows from the sizes alone; the settings above hold if `uniform`

  struct Window {
    int64_t begin, end;  // of the input, in steps of dilation
    bool empty() const { return begin >= end; }
  };
  Window window(int64_t o) const {
    if (adaptive) return {o * input / output, ((o + 1) * input + output - 1) / output};
    const int64_t begin = o * stride - padding;
    return {begin < 0 ? begin + (-begin + dilation - 1) / dilation * dilation : begin,
            std::min(begin + (kernel - 1) * dilation + 1, input)};
  }
  // Size of the window including padding.
  int64_t padded_size(int64_t o) const {
    const int64_t begin = o * stride - padding;
    return std::min(begin + kernel, input + padding) - begin;
  }
  // All windows have the same size and distance.
  bool uniform() const { return !adaptive || input % output == 0; }
};

// Checks the arguments, and returns depth, height and width of an input [N, C, (D,) H, W] (N optional) with the
// windows over them. `dims` pooled dimensions. kInvalidArgument "NAME: ..." where ATen refuses.
std::array<PoolAxis, 3> pool_axes(std::string_view name, const Tensor& self, int dims, IntSpan kernel_size,
                                  IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode);
// For averages, which have no dilation. A divisor must not be 0.
std::array<PoolAxis, 3> average_axes(std::string_view name, const Tensor& self, int dims, IntSpan kernel_size,
                                     IntSpan stride, IntSpan padding, bool ceil_mode, std::optional<int64_t> divisor);
std::array<PoolAxis, 3> adaptive_axes(std::string_view name, const Tensor& self, int dims, IntSpan output_size,
                                      bool channels_may_be_empty);
// As above, for the gradient of adaptive pooling, whose output sizes are those of grad_output.
std::array<PoolAxis, 3> adaptive_gradient_axes(std::string_view name, const Tensor& grad_output, const Tensor& self,
                                               int dims);
// Sizes of the results.
Shape pooled_sizes(const Tensor& self, const std::array<PoolAxis, 3>& axes, int dims);

// The dtype and the sizes of a gradient, and those of the indices beside it.
void check_pool_gradient(std::string_view name, const Tensor& grad_output, const Tensor& self,
                         const std::array<PoolAxis, 3>& axes, int dims);
void check_pool_indices(std::string_view name, const Tensor& indices, const Tensor& grad_output);

// The arguments of max_unpool; returns the sizes of its result.
Shape unpooled_sizes(std::string_view name, const Tensor& self, const Tensor& indices, IntSpan output_size, int dims);
// Stride and padding of max_unpool3d, whose result does not depend on them.
void check_unpool3d(IntSpan stride, IntSpan padding);

}  // namespace sconce
