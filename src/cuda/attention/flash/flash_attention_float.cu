#include "src/cuda/attention/flash/flash_launch.cuh"

namespace sconce::cuda {

cudaError_t launch_flash_float(const FlashAttention& a, cudaStream_t stream) {
  return launch_flash_of<float>(a, stream);
}

}  // namespace sconce::cuda
