// Square roots and polar decompositions of matrices, by eigenvalues and singular values. Match aten operators of the
// same names (torch 2.15): float32, float64 and their complex dtypes, any strides, row-major results.
#include "src/cuda/elementwise/elementwise.h"
#include "src/cuda/linalg/linalg.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/matrices/matrix_batch.h"

namespace sconce::cuda {
namespace {

// V diag(values) V^H
Tensor spectral(const Tensor& v, const Tensor& values) {
  return matrix_product(multiply(v, cpu::unsqueeze(values, -2)), adjoint(v));
}

}  // namespace

Tensor linalg_matrix_sqrth(const Tensor& self) {
  check_square("linalg.matrix_sqrth", self);
  const DeviceScope scope(self.device());
  const auto [values, vectors] = _linalg_eigh(self, "L", true);
  const Tensor positive = multiply_number(add(values, abs(values), int64_t{1}), 0.5);
  return spectral(vectors, pow_Tensor_Scalar(positive, 0.5));
}

std::array<Tensor, 2> linalg_polar(const Tensor& A) {
  check_polar(A);
  const DeviceScope scope(A.device());
  const auto [u, s, vh] = _linalg_svd(A, false, true, std::nullopt);
  return {matrix_product(u, vh), spectral(adjoint(vh), s)};
}

}  // namespace sconce::cuda
