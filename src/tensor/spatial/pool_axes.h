// The windows of pooling, from the arguments of its operators. Match ATen, torch 2.15.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce {

// One pooled dimension. Two-dimensional pooling has a depth of 1.
struct PoolAxis {
  int64_t input = 1, output = 1;
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  bool adaptive = false;  // windows from the sizes alone; the settings above hold where `uniform`

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
  // Size of the window with the padding that it covers.
  int64_t padded_size(int64_t o) const {
    const int64_t begin = o * stride - padding;
    return std::min(begin + kernel, input + padding) - begin;
  }
  // All windows have the same size and distance.
  bool uniform() const { return !adaptive || input % output == 0; }
};

// Depth, height and width of an input [N, C, (D,) H, W] (N optional) and the windows over them, checked. `dims` pooled
// dimensions. kInvalidArgument "NAME: ..." for what ATen refuses.
std::array<PoolAxis, 3> pool_axes(std::string_view name, const Tensor& self, int dims, IntSpan kernel_size,
                                  IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode);
std::array<PoolAxis, 3> adaptive_axes(std::string_view name, const Tensor& self, int dims, IntSpan output_size,
                                      bool channels_may_be_empty);

// Stride and padding of max_unpool3d, whose result does not depend on them.
void check_unpool3d(IntSpan stride, IntSpan padding);
void check_gradient_dtype(std::string_view name, const Tensor& grad_output, const Tensor& self);

}  // namespace sconce
