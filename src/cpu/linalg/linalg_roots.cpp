// Square roots of positive matrices and polar decompositions.
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/elementwise/comparisons.h"
#include "src/cpu/elementwise/functions.h"
#include "src/cpu/linalg/linalg.h"
#include "src/cpu/matmul/products.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/matrices/matrix_batch.h"

namespace sconce::cpu {
namespace {

Tensor adjoint(const Tensor& matrices) { return conj(transpose(matrices, -1, -2)); }
// V diag(values) V^H
Tensor spectral(const Tensor& v, const Tensor& values) {
  return matmul(multiply(v, unsqueeze(values, -2)), adjoint(v));
}

}  // namespace

Tensor linalg_matrix_sqrth(const Tensor& self) {
  check_square("linalg.matrix_sqrth", self);
  const auto [values, vectors] = _linalg_eigh(self, "L", true);
  return spectral(vectors, sqrt(clamp_min(values, Scalar(0.0))));
}

std::array<Tensor, 2> linalg_polar(const Tensor& A) {
  check_polar(A);
  const auto [u, s, vh] = _linalg_svd(A, false, true, std::nullopt);
  return {matmul(u, vh), spectral(adjoint(vh), s)};
}

}  // namespace sconce::cpu
