// grid_loop(): calls a function on the device for every number below a count.
#pragma once

#include <cstdint>

namespace sconce::cuda {

template <class F>
__global__ void grid_loop_kernel(int64_t count, F body) {
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x)
    body(i);
}

template <class F>
void grid_loop(int64_t count, cudaStream_t stream, F body) {
  constexpr int64_t kThreads = 256, kMaxBlocks = 1 << 20;
  if (count == 0) return;
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  grid_loop_kernel<<<static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks), kThreads, 0, stream>>>(count,
                                                                                                              body);
}

}  // namespace sconce::cuda
