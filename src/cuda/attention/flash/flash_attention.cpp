#include "src/cuda/attention/flash/flash_attention.h"

namespace sconce::cuda {

cudaError_t launch_flash_half(const FlashAttention& a, cudaStream_t stream);
cudaError_t launch_flash_bfloat16(const FlashAttention& a, cudaStream_t stream);
cudaError_t launch_flash_float(const FlashAttention& a, cudaStream_t stream);

cudaError_t launch_flash(const FlashAttention& a, int dtype, cudaStream_t stream) {
  switch (dtype) {
    case 5:  // c10::ScalarType::Half
      return launch_flash_half(a, stream);
    case 15:  // BFloat16
      return launch_flash_bfloat16(a, stream);
    default:
      return launch_flash_float(a, stream);
  }
}

}  // namespace sconce::cuda
