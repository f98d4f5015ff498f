#include "src/cuda/attention/flash/flash_launch.cuh"

namespace sconce::cuda {

cudaError_t launch_flash_half(const FlashAttention& a, cudaStream_t stream) {
  return launch_flash_of<__half>(a, stream);
}

}  // namespace sconce::cuda
