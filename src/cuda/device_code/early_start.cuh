// Kernels that start before the previous kernel has ended (compute capability 9.0), which saves a microsecond: the
// time between two kernels is as long as a small kernel itself.
#pragma once

#include <cuda_runtime.h>

namespace sconce::cuda {

// Lets the next kernel of the stream start as soon as all blocks of this one run, if its launch allows it.
__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Waits until the previous kernel has ended and its writes are visible. Every thread of a kernel that launch_early()
// may start early calls it, before it reads the output of another kernel and before it writes anything.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// early: the device has compute capability 9.0 or later.
template <class Arguments>
cudaError_t launch_early(bool early, void (*kernel)(Arguments), dim3 blocks, unsigned threads,
                         const Arguments& arguments, cudaStream_t stream) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = dim3(threads);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, arguments);
}

}  // namespace sconce::cuda
