// Sums of each channel, for host code: gradients of biases.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sconce::cuda {

// in [batch, channels, inner], or with channels_last [batch, inner, channels], packed and not empty, into out
// [channels] of the same dtype: float16, bfloat16, float32 or float64, summed in float32 or float64, in the same order
// every time. scratch: channel_sum_bytes() of memory.
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
