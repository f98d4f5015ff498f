// Convolutions of uint8 inputs and int8 weights with exact sums, and the finishing step of a quantised layer, in one
// pass. SIMD lanes along the output channels; depthwise, along the channels of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "src/cpu/convolution/direct/convolution_operands.h"

namespace sconce {

// The finishing step for a sum of channel c: sum * scale[c] + bias[c] + (old - old_zero) * old_scale within [low,
// high], where old is the previous value of the output. For a result in bytes: this value times inverse plus zero,
// rounded to even, within the type.
struct ByteFinish {
  const float* scale = nullptr;
  const float* bias = nullptr;  // or null
  bool add_old = false;
  float old_scale = 1, old_zero = 0;
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  float inverse = 1, zero = 0;
};

// sums = conv(input - zero_point, weight), which wrap; `operands` without bias and fusion. Writes all of the output,
// which is channels-last and dense: int32 without `finish`, else uint8, int8 or float32. Not transposed.
void convolve_bytes(const ConvolutionShape& shape, const ConvolutionOperands& operands, int32_t zero_point,
                    const ByteFinish* finish, Tensor& output);

// The inner loops, one table per instruction set.

// Adjacent inputs of a pixel: their start relative to the pixel, and their number in groups of kQuad.
struct ByteRun {
  int64_t input;  // in elements
  int64_t quads;
};

// The destination of the sums of neighbouring pixels. Arrays start at the first channel, padded to whole vectors.
struct ByteOutput {
  const ByteFinish* finish;  // or null
  DType dtype;
  const int32_t* start;  // initial values of the sums
  const float* scale;
  const float* bias;
  std::byte* to;
  int64_t pitch;  // from pixel to pixel, in bytes
  int64_t lanes;  // channels
};

constexpr int kBytePixels = 6;

struct ByteTile {
  const std::byte* pixels[kBytePixels];
  const ByteRun* runs;
  int64_t run_count;
  const std::byte* weight;  // for each vector of channels: [quads of all runs][lanes][elements of a quad]
  int64_t weight_pitch;     // from vector to vector, in bytes
  ByteOutput output;
};

// One vector of channels, some pixels of a row.
struct ByteDepthwiseRow {
  const uint8_t* input;    // tap 0 of the first pixel
  int64_t column;          // from one input column to the next
  int64_t step, dilation;  // in columns, from pixel to pixel and from tap to tap
  const ByteRun* runs;     // per row of the kernel: `input` is the offset of the input's row
  int64_t rows, taps;      // of the kernel
  const int32_t* weight;   // [rows][taps][lanes]
  ByteOutput output;
};

struct ByteTiles {
  int64_t width;     // channels of a vector
  int64_t vectors;   // maximum in a tile
  int64_t quad;      // inputs that one instruction multiplies and adds
  int64_t itemsize;  // of inputs and weights as the tiles read them: uint8 and int8, or int16
  void (*run)(const ByteTile& tile, int pixels, int vectors) noexcept;
  void (*depthwise)(const ByteDepthwiseRow& row, int64_t pixels) noexcept;
};

const ByteTiles& byte_tiles() noexcept;  // for the CPU's instruction sets

}  // namespace sconce
