// The geometry of a convolution, with every argument checked: sizes, groups, and the memory format of its result.
// Matches at::convolution and ConvParams (aten/src/ATen/native/Convolution.cpp), torch 2.15.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce {

using Dims3 = std::array<int64_t, 3>;  // depth, height, width

// A convolution of fewer than three dimensions has leading dimensions of size 1.
struct ConvolutionShape {
  int spatial = 0;  // 1, 2 or 3
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  Dims3 input{1, 1, 1}, kernel{1, 1, 1}, output{1, 1, 1};
  Dims3 stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1}, output_padding{0, 0, 0};
  bool transposed = false;

  int64_t in_group() const noexcept { return in_channels / groups; }
  int64_t out_group() const noexcept { return out_channels / groups; }
  int64_t taps() const noexcept { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t pixels() const noexcept { return output[0] * output[1] * output[2]; }
  // Multiplications, roughly.
  double work() const noexcept {
    const Dims3& from = transposed ? input : output;
    return static_cast<double>(batch * from[0] * from[1] * from[2]) * static_cast<double>(taps()) *
           static_cast<double>(transposed ? in_channels * out_group() : out_channels * in_group());
  }
};

struct ConvolutionArguments {
  std::string_view name;  // of the operator, for messages
  IntSpan stride, padding, dilation;
  IntSpan output_padding;  // empty: zeros
  bool transposed = false;
  int64_t groups = 1;
};

// input [N, C, L] to [N, C, D, H, W]; weight_sizes [O, C/groups, ...], transposed [C, O/groups, ...]; bias [O] or
// null. kInvalidArgument where ATen refuses.
ConvolutionShape convolution_shape(const ConvolutionArguments& arguments, IntSpan input_sizes, IntSpan weight_sizes,
                                   const Tensor* bias);

// Whether ATen treats these strides as channels-last: at::Tensor::suggest_memory_format() is ChannelsLast or
// ChannelsLast3d. Rank 4 and 5; false for any other.
bool is_channels_last(IntSpan sizes, IntSpan strides) noexcept;

// Whether ATen computes this convolution over channels-last tensors; its gradients then have that format.
bool convolution_operands_are_channels_last(const ConvolutionShape& shape, const Tensor& input, const Tensor& weight);

// Strides of a dense tensor with the channels innermost.
void channels_last_strides(IntSpan sizes, int64_t* strides);
// Uninitialised, dense. Channels last in one dimension: strides (C*L, 1, C).
Tensor empty_of_format(IntSpan sizes, DType dtype, bool channels_last, Device device = {});

// [N, O, ...] of the format, as empty_of_format.
Tensor convolution_output(const ConvolutionShape& shape, DType dtype, bool channels_last, Device device = {});

}  // namespace sconce
