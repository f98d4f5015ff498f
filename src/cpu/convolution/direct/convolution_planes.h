// Convolution with SIMD lanes along the pixels of a row: for results whose channels are not adjacent (row-major
// tensors), and for every element type. No weight is repacked.
#pragma once

#include <cstdint>

#include "src/cpu/convolution/direct/convolution_operands.h"

namespace sconce {

// uint8, int8, int16, int32, int64 (sums wrap), float32, float64; float16 and bfloat16 are summed in float32. Writes
// all of the output. Uses the calling thread's team.
void convolve_planes(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output);

// The inner loop, one table per element type and instruction set.
struct PlaneSteps {
  int64_t channels;  // of the input
  int64_t taps;
  const int64_t* tap_x;                 // offset of each tap from a pixel
  const int64_t* tap_w;                 // and from the weights of a channel
  int64_t x_channel, w_channel, w_out;  // strides
};

template <class T>
struct PlaneTiles {
  int rows;  // output channels that share a pass over the input
  // out[r * out_row + q] = bias[r] + sum over channels and taps, for r < rows and q < length. Reads nothing beyond
  // x[length - 1 + tap]. bias may be null.
  void (*run)(const PlaneSteps& steps, const T* x, const T* w, const T* bias, int64_t rows, int64_t length, T* out,
              int64_t out_row) noexcept;
};

template <class T>
const PlaneTiles<T>& plane_tiles() noexcept;

}  // namespace sconce
