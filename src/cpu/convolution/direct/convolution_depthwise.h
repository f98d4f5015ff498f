// Depthwise convolution over channels-last float32 tensors: one filter per channel, SIMD lanes along the channels, no
// copy of the input.
#pragma once

#include <cstdint>

#include "src/cpu/convolution/direct/convolution_operands.h"

namespace sconce {

// Whether convolve_depthwise() supports the convolution: as many groups as input and output channels; not transposed;
// float32 with adjacent channels on both sides.
bool depthwise_suits(const ConvolutionShape& shape, const ConvolutionOperands& operands, const Tensor& output) noexcept;

// Writes all of the output. Uses the calling thread's team.
void convolve_depthwise(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output);

// The inner loop, one table per instruction set: some pixels of a row, one vector of channels.
struct DepthwiseRow {
  const float* input;              // the address that tap 0 of the first pixel would read if `row_input` were 0
  int64_t column;                  // from one input column to the next
  int64_t step, dilation;          // in columns, from pixel to pixel and from tap to tap
  const int64_t* row_input;        // per row of the kernel: offset of the input row
  const float* const* row_weight;  // per row of the kernel: the weights of tap 0
  int64_t rows;
  int64_t weight_pitch;  // from tap to tap
  const float* bias;     // a vector, or null
  float* output;
  int64_t output_pixel;
  int64_t lanes;  // number of SIMD lanes with channels
  bool accumulate, relu;
};

struct DepthwiseTiles {
  // Taps [first, last) of each row, for `pixels` pixels.
  void (*run)(const DepthwiseRow& row, int64_t pixels, int64_t first, int64_t last, int64_t kernel) noexcept;
};

}  // namespace sconce
