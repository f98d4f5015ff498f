// Root mean square normalisation. Matches aten::_fused_rms_norm (torch 2.15, CUDA).
#include <limits>

#include "src/cuda/normalisation/rms_norm_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/rules/rms_rows.h"

namespace sconce::cuda {

std::array<Tensor, 2> _fused_rms_norm(const Tensor& input, IntSpan normalized_shape, const Tensor* weight,
                                      std::optional<double> eps) {
  const DType dtype = input.dtype();
  const auto [kept, rows, length, root_sizes] = rms_rows(input, normalized_shape);
  const DeviceScope scope(input.device());
  const bool wide = dtype == DType::kFloat64;
  const DType computed = wide ? DType::kFloat64 : DType::kFloat32;
  const Tensor x = contiguous(input);
  Tensor out = Tensor::empty(input.sizes(), dtype, input.device()),
         roots = Tensor::empty(root_sizes, computed, input.device()), w;
  if (weight) {
    w = Tensor::empty(input.sizes().last(static_cast<size_t>(input.dim() - kept)), computed, input.device());
    copy(*weight, w, false);
  }
  const double least = wide ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const RmsNorm problem{x.data(), w.data(), out.data(), roots.data(), rows, length, eps.value_or(least)};
  check_launch("rms_norm", launch_rms_norm(problem, static_cast<int>(dtype), current_stream()), dtype);
  return {out, roots};
}

}  // namespace sconce::cuda
