// Tracks ranges of channels and rounds to their grids, for host code. float32, packed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// self is [outer, channels, inner]. Flags (one element each), ranges and grids are on the device.
struct FakeQuantisation {
  int64_t outer, channels, inner;
  const int64_t *observe, *quantise;
  float *low, *high, *scale;
  int32_t* zero_point;
  float averaging;
  int64_t least, most;
  bool symmetric;
};
// If `observe` is set, moves ranges towards those of `values` and computes their grids. `ranges` is scratch of two
// numbers for each of range_parts() parts of each channel.
int64_t range_parts(const FakeQuantisation& quantisation);
void launch_observe(const FakeQuantisation& quantisation, const float* values, float* ranges, cudaStream_t stream);
// Rounds to the grids or, if `quantise` is not set, copies. mask: which values lie within the grid.
void launch_quantise(const FakeQuantisation& quantisation, const float* values, float* out, bool* mask,
                     cudaStream_t stream);

}  // namespace sconce::cuda
