// Distances between rows. Match aten::_cdist_forward, _cdist_backward, _pdist_forward and _pdist_backward (torch 2.15,
// CUDA).
#include "src/cuda/normalisation/distance_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/matrices/matrix_batch.h"
#include "src/tensor/rules/row_sets.h"

namespace sconce::cuda {
namespace {

void check_sets(const char* name, const Tensor& x1, const Tensor& x2) {
  check_row_sets(name, x1, x2);
  SCONCE_CHECK(x1.device() == x2.device(), kInvalidArgument, name, ": X1 is ", describe(x1), ", X2 ", describe(x2));
}

int64_t pairs_of(int64_t rows) { return rows > 1 ? rows * (rows - 1) / 2 : 0; }

}  // namespace

// Sums differences directly in every mode: ATen's matrix product for large inputs is less exact.
Tensor _cdist_forward(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode) {
  check_sets("cdist", x1, x2);
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

Tensor _cdist_backward(const Tensor& grad_output, const Tensor& x1, const Tensor& x2, double p, const Tensor& cdist) {
  check_sets("_cdist_backward", x1, x2);
  const DeviceScope scope(x1.device());
  const Shape batch = broadcast_shapes("cdist", batch_shape(x1), batch_shape(x2));
  const int64_t rows = x1.size(x1.dim() - 2), columns = x2.size(x2.dim() - 2), m = x1.size(x1.dim() - 1);
  const Shape sizes = with_matrix(batch, rows, columns);
  if (count_of(sizes) == 0 || m == 0) return zeros(x1.sizes(), x1.dtype(), x1.device());
  for (const Tensor* t : {&grad_output, &cdist})
    SCONCE_CHECK(t->numel() == count_of(sizes) && t->dtype() == x1.dtype(), kInvalidArgument,
                 "_cdist_backward: expected ", dtype_name(x1.dtype()), " of shape ", to_string(sizes), ", got ",
                 describe(*t));
  Tensor out = Tensor::empty(with_matrix(batch, rows, m), x1.dtype(), x1.device());
  if (p == 0) {
    fill_zero(out);
    return out;
  }
  const Tensor a = contiguous(broadcast_matrices("cdist", x1, batch)),
               b = contiguous(broadcast_matrices("cdist", x2, batch)), grads = contiguous(grad_output),
               found = contiguous(cdist);
  check_launch("_cdist_backward",
               launch_distance_slopes({a.data(), b.data(), count_of(batch), rows, columns, m, p}, grads.data(),
                                      found.data(), out.data(), static_cast<int>(x1.dtype()), current_stream()),
               x1.dtype());
  return out;
}

Tensor _pdist_forward(const Tensor& self, double p) {
  SCONCE_CHECK(self.dim() == 2, kInvalidArgument, "pdist only supports 2D tensors, got: ", self.dim(), "D");
  SCONCE_CHECK(p >= 0, kInvalidArgument, "pdist only supports non-negative p values");
  const DeviceScope scope(self.device());
  const int64_t pairs = pairs_of(self.size(0));
  Tensor out = Tensor::empty(IntSpan(&pairs, 1), self.dtype(), self.device());
  if (pairs == 0) return out;
  const Tensor rows = contiguous(self);
  check_launch("pdist",
               launch_pair_distances({rows.data(), self.size(0), self.size(1), p}, out.data(),
                                     static_cast<int>(self.dtype()), current_stream()),
               self.dtype());
  return out;
}

Tensor _pdist_backward(const Tensor& grad_output, const Tensor& self, double p, const Tensor& pdist) {
  SCONCE_CHECK(self.dim() == 2, kInvalidArgument, "_pdist_backward: expected a matrix, got ", describe(self));
  const int64_t pairs = pairs_of(self.size(0));
  for (const Tensor* t : {&grad_output, &pdist})
    SCONCE_CHECK(t->numel() == pairs && t->dtype() == self.dtype(), kInvalidArgument, "_pdist_backward: expected ",
                 pairs, " of ", dtype_name(self.dtype()), ", got ", describe(*t));
  const DeviceScope scope(self.device());
  Tensor out = Tensor::empty(self.sizes(), self.dtype(), self.device());
  if (p == 0 || pairs == 0) {
    fill_zero(out);
    return out;
  }
  const Tensor rows = contiguous(self), grads = contiguous(grad_output), found = contiguous(pdist);
  check_launch("_pdist_backward",
               launch_pair_slopes({rows.data(), self.size(0), self.size(1), p}, grads.data(), found.data(), out.data(),
                                  static_cast<int>(self.dtype()), current_stream()),
               self.dtype());
  return out;
}

}  // namespace sconce::cuda
