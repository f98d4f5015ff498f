// Ranges of channels that follow the data, and rounding to their grids, for host code. float32, packed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// self [outer, channels, inner]. Flags are on the device, one element each; so are the ranges and grids of channels.
struct FakeQuantisation {
  int64_t outer, channels, inner;
  const int64_t *observe, *quantise;
  float *low, *high, *scale;
  int32_t* zero_point;
  float averaging;
  int64_t least, most;
  bool symmetric;
};
// Moves ranges towards those of `values` where told to, and makes grids of them. ranges: memory for two numbers for
// each of range_parts() parts of each channel.
int64_t range_parts(const FakeQuantisation& quantisation);
void launch_observe(const FakeQuantisation& quantisation, const float* values, float* ranges, cudaStream_t stream);
// Rounds to the grids, or copies; mask: what lies within.
void launch_quantise(const FakeQuantisation& quantisation, const float* values, float* out, bool* mask,
                     cudaStream_t stream);

}  // namespace sconce::cuda
