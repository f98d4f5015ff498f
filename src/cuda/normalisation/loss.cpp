// Matches aten::soft_margin_loss_backward (torch 2.15, CUDA).
#include "src/cuda/elementwise/elementwise_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {

Tensor soft_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                 int64_t reduction) {
  constexpr const char* kName = "soft_margin_loss_backward";
  const DeviceScope scope(self.device());
  const Shape shape =
      broadcast_shapes(kName, broadcast_shapes(kName, self.sizes(), target.sizes()), grad_output.sizes());
  const Tensor* const operands[] = {&target, &self};
  Tensor out = Tensor::empty_strided(shape, elementwise_strides(shape, operands), self.dtype(), self.device());
  if (out.numel() == 0) return out;
  const auto packed = [&](const Tensor& t) {
    Tensor like_out = Tensor::empty_strided(shape, out.strides(), self.dtype(), self.device());
    copy(t, like_out, t.is_cpu());
    return like_out;
  };
  const Tensor x = packed(self), y = packed(target), g = packed(grad_output);
  check_launch(kName,
               launch_soft_margin_slopes(static_cast<int>(self.dtype()), x.data(), y.data(), g.data(),
                                         reduction == 1 ? -1.0 / static_cast<double>(self.numel()) : -1.0, out.numel(),
                                         out.data(), current_stream()),
               self.dtype());
  return out;
}

}  // namespace sconce::cuda
