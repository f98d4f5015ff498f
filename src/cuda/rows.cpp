// Distances between rows and their normalisation. Match aten::_cdist_forward and _fused_rms_norm (torch 2.15, CUDA).
#include <limits>

#include "src/cuda/copy.h"
#include "src/cuda/error.h"
#include "src/cuda/ops.h"
#include "src/cuda/row_kernels.h"
#include "src/cuda/stream.h"
#include "src/ops/matrix_batch.h"

namespace sconce::cuda {

// Differences are summed as they are, whatever the mode: ATen's product of large matrices is less exact.
Tensor _cdist_forward(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode) {
  for (const Tensor* x : {&x1, &x2})
    SCONCE_CHECK(x->dim() >= 2, kInvalidArgument, "cdist: only supports at least 2D tensors, got: ", x->dim(), "D");
  SCONCE_CHECK(x1.size(x1.dim() - 1) == x2.size(x2.dim() - 1), kInvalidArgument,
               "cdist: X1 and X2 must have the same number of columns. X1: ", x1.size(x1.dim() - 1),
               " X2: ", x2.size(x2.dim() - 1));
  SCONCE_CHECK(x1.dtype() == x2.dtype() && x1.device() == x2.device(), kInvalidArgument, "cdist: X1 is ", describe(x1),
               ", X2 ", describe(x2));
  SCONCE_CHECK(p >= 0, kInvalidArgument, "cdist only supports non-negative p values");
  const int64_t mode = compute_mode.value_or(0);
  SCONCE_CHECK(mode >= 0 && mode <= 2, kInvalidArgument, "cdist: possible modes: 0, 1, 2, but was: ", mode);
  const DeviceScope scope(x1.device());
  const Shape batch = broadcast_shapes("cdist", batch_shape(x1), batch_shape(x2));
  const int64_t rows = x1.size(x1.dim() - 2), columns = x2.size(x2.dim() - 2);
  Tensor out = Tensor::empty(with_matrix(batch, rows, columns), x1.dtype(), x1.device());
  if (out.numel() == 0) return out;
  const Tensor a = contiguous(broadcast_matrices("cdist", x1, batch)),
               b = contiguous(broadcast_matrices("cdist", x2, batch));
  const Distances problem{a.data(), b.data(), count_of(batch), rows, columns, x1.size(x1.dim() - 1), p};
  check_launch("cdist", launch_distances(problem, out.data(), static_cast<int>(x1.dtype()), current_stream()),
               x1.dtype());
  return out;
}

std::array<Tensor, 2> _fused_rms_norm(const Tensor& input, IntSpan normalized_shape, const Tensor* weight,
                                      std::optional<double> eps) {
  const DType dtype = input.dtype();
  const auto reduced = static_cast<int64_t>(normalized_shape.size());
  SCONCE_CHECK(reduced <= input.dim(), kInvalidArgument, "rms_norm: normalized_shape ", to_string(normalized_shape),
               " has more dimensions than input of size ", to_string(input.sizes()));
  const DeviceScope scope(input.device());
  const int64_t kept = reduced == 0 ? 0 : input.dim() - reduced;
  Shape root_sizes(input.sizes());
  int64_t rows = 1, length = 1;
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (d < kept) {
      rows *= input.size(d);
    } else {
      length *= input.size(d);
      root_sizes[static_cast<int>(d)] = 1;
    }
  }
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
