#include "src/tensor/matrices/trilinear.h"

#include "src/cuda/matmul/matmul.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"

namespace sconce::cuda {

// Matches aten::_trilinear (torch 2.11, CUDA).
Tensor _trilinear(const Tensor& i1, const Tensor& i2, const Tensor& i3, IntSpan expand1, IntSpan expand2,
                  IntSpan expand3, IntSpan sumdim, int64_t) {
  const DeviceScope scope(i1.device());
  return trilinear_by(bmm, i1, i2, i3, expand1, expand2, expand3, sumdim);
}

}  // namespace sconce::cuda
