// Sums over each channel, for gradients of biases. For host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sconce::cuda {

// Sums a packed, non-empty [batch, channels, inner] (channels_last: [batch, inner, channels]) into out [channels] of
// the same dtype: float16, bfloat16, float32 or float64. Adds in float32 or float64, in the same order every time.
// `scratch` has channel_sum_bytes().
struct ChannelSums {
  const void* in;
  void* out;
  int64_t batch, channels, inner;
  bool channels_last;
  int dtype;
};
size_t channel_sum_bytes(const ChannelSums& sums);
cudaError_t launch_channel_sums(const ChannelSums& sums, void* scratch, cudaStream_t stream);

}  // namespace sconce::cuda
