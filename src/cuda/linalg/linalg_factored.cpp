// Operators on factors that were computed before. Match aten operators of the same names (torch 2.15, CUDA with
// cuSOLVER) and their result strides; float32, float64 and their complex dtypes; any strides.
#include <algorithm>

#include "src/cuda/linalg/linalg_kernels.h"
#include "src/cuda/linalg/linalg_library.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/factory.h"
#include "src/tensor/matrices/linalg_errors.h"
#include "src/tensor/matrices/matrix_batch.h"

namespace sconce::cuda {

Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper) {
  const char* const name = "cholesky_solve";
  check_solvable(name, self, input2);
  check_matrices(name, self);
  const LinalgScope scope(name, self);
  const Shape batch = broadcast_shapes(name, batch_shape(self), batch_shape(input2));
  const Tensor factor = column_major_copy(broadcast_matrices(name, input2, batch));
  Tensor out = column_major_copy(broadcast_matrices(name, self, batch));
  if (out.numel() == 0) return out;
  const Matrices a(factor), x(out);
  const Triangle triangle = upper ? Triangle::kUpper : Triangle::kLower;
  solve_triangular(a, x, Side::kLeft, triangle, upper ? Form::kAdjoint : Form::kPlain, false);
  solve_triangular(a, x, Side::kLeft, triangle, upper ? Form::kPlain : Form::kAdjoint, false);
  return out;
}

// A singular factor gives infinities, as in ATen on CUDA.
Tensor cholesky_inverse(const Tensor& self, bool upper) {
  check_square("cholesky_inverse", self);
  const LinalgScope scope("cholesky_inverse", self);
  Tensor identity = empty_matrices(Shape(self.sizes()), self.dtype(), true, self.device());
  fill_identity(identity);
  return cholesky_solve(identity, self, upper);
}

std::array<Tensor, 2> geqrf(const Tensor& self) {
  SCONCE_CHECK(self.dim() >= 2, kInvalidArgument, "torch.geqrf: input must have at least 2 dimensions.");
  check_matrices("geqrf", self);
  const LinalgScope scope("geqrf", self);
  const int64_t k = std::min(self.size(self.dim() - 2), self.size(self.dim() - 1));
  Tensor a = column_major_copy(self), tau = Tensor::empty(with_last(batch_shape(self), k), self.dtype(), self.device());
  if (a.numel() > 0) factor_qr(Matrices(a), tau.data());
  return {a, tau};
}

Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left, bool transpose) {
  const char* const name = "torch.ormqr";
  const Tensor &tau = input2, &other = input3;
  check_reflectors(name, self, tau, other, left);
  const LinalgScope scope(name, self);
  Tensor out = column_major_copy(other);
  const int64_t reflectors = tau.size(tau.dim() - 1);
  if (out.numel() == 0 || reflectors == 0) return out;
  const Tensor a = column_major_copy(self), packed = contiguous(tau);
  apply_q(Matrices(a), packed.data(), reflectors, Matrices(out), left ? Side::kLeft : Side::kRight,
          transpose ? Form::kAdjoint : Form::kPlain);
  return out;
}

std::array<Tensor, 3> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data, bool unpack_pivots) {
  check_factored("torch.lu_unpack", LU_data, unpack_pivots ? &LU_pivots : nullptr);
  const DeviceScope scope(LU_data.device());
  const int64_t m = LU_data.size(LU_data.dim() - 2), n = LU_data.size(LU_data.dim() - 1), k = std::min(m, n);
  const Shape batch = batch_shape(LU_data);
  const int64_t count = count_of(batch);
  const DType dtype = LU_data.dtype();
  const int number = static_cast<int>(dtype);
  const Device device = LU_data.device();
  Tensor P = no_matrix(dtype, device), L = no_matrix(dtype, device), U = no_matrix(dtype, device);
  if (unpack_data) {
    L = Tensor::empty(with_matrix(batch, m, k), dtype, device);
    U = Tensor::empty(with_matrix(batch, k, n), dtype, device);
    const Tensor lu = contiguous(LU_data);
    launch_part({Part::kUnitLower, count, m, k, m * k, k, 1, m * n, n, 1}, L.data(), lu.data(), number,
                current_stream());
    launch_part({Part::kUpper, count, k, n, k * n, n, 1, m * n, n, 1}, U.data(), lu.data(), number, current_stream());
  }
  if (unpack_pivots) {
    const Tensor pivots = contiguous(LU_pivots);
    P = Tensor::empty(with_matrix(batch, m, m), dtype, device);
    const Tensor order = Tensor::empty(with_last(batch, m), DType::kInt32, device);
    launch_permutations(pivots.data_as<int32_t>(), count, m, k, order.data_as<int32_t>(), P.data(), number,
                        current_stream());
  }
  SCONCE_CUDA(cudaGetLastError());
  return {P, L, U};
}

std::array<Tensor, 2> triangular_solve(const Tensor& self, const Tensor& A, bool upper, bool transpose,
                                       bool unitriangular) {
  const char* const name = "triangular_solve";
  check_solvable(name, self, A);
  const LinalgScope scope(name, self);
  const Shape batch = broadcast_shapes(name, batch_shape(self), batch_shape(A));
  Tensor x = column_major_copy(broadcast_matrices(name, self, batch)),
         a = column_major_copy(broadcast_matrices(name, A, batch));
  if (x.numel() > 0)
    solve_triangular(Matrices(a), Matrices(x), Side::kLeft, upper ? Triangle::kUpper : Triangle::kLower,
                     transpose ? Form::kTransposed : Form::kPlain, unitriangular);
  return {x, a};
}

}  // namespace sconce::cuda
