// Convolution with SIMD lanes along output channels: for results whose channels are adjacent (channels-last tensors,
// rows of a linear layer). Sums are float32; tensors float32, float16 or bfloat16.
#pragma once

#include <cstdint>

#include "src/cpu/convolution/direct/convolution_operands.h"

namespace sconce {

struct DepthwiseTiles;  // src/cpu/convolution/direct/convolution_depthwise.h

// Writes all of the output. Any strides: inputs that are not float32 with adjacent channels, or that need padding, are
// copied to scratch memory a band of rows at a time; such outputs likewise. Uses the calling thread's team.
void convolve_channels(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output);

// The inner loop, one table per instruction set.

// `length` adjacent inputs, `offset` from a pixel's first one.
struct ChannelRun {
  int64_t offset, length;
};

struct ChannelTile {
  const float* input;
  const int64_t* input_at;  // offset of each pixel
  const ChannelRun* runs;
  int64_t run_count;
  const void* weight;  // [sum of lengths][vectors * width] of weight_dtype
  DType weight_dtype;  // float32; dense: float16 and bfloat16 too
  const float* bias;   // [vectors * width], or null
  float* output;
  const int64_t* output_at;
  int64_t lanes;    // existing output channels, at most vectors * width
  bool accumulate;  // adds to the output's content
  bool relu;
};

struct ChannelTiles {
  int width;      // floats in a vector
  int vectors;    // maximum in a tile
  int pixels[5];  // maximum in a tile of 1..vectors vectors
  // Products with every input of the runs: vectors 1..`vectors`, pixels 1..pixels[vectors].
  void (*dense)(int vectors, int64_t pixels, const ChannelTile& tile) noexcept;
  // Depthwise: each run is one input per SIMD lane; weight [runs][vectors * width].
  void (*depthwise)(int vectors, int64_t pixels, const ChannelTile& tile) noexcept;
  // to[row[k] * apart + j] = from[j * from_apart + k] for j < columns, k < rows; row null: k itself. With pad, columns
  // up to the next multiple of eight are also written.
  void (*transpose)(const float* from, int64_t from_apart, int64_t columns, int64_t rows, const int64_t* row, bool pad,
                    float* to, int64_t apart) noexcept;
  const DepthwiseTiles* rows;
};

// The best table for this number of output channels on this CPU.
const ChannelTiles& channel_tiles(int64_t channels) noexcept;

}  // namespace sconce
