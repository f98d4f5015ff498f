#include "src/cuda/attention/flash/flash_launch.cuh"

namespace sconce::cuda {

cudaError_t launch_flash_bfloat16(const FlashAttention& a, cudaStream_t stream) {
  return launch_flash_of<__nv_bfloat16>(a, stream);
}

}  // namespace sconce::cuda
