// The exponential of matrices, one after the other.
#include <cmath>

#include "sconce/check.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/elementwise/functions.h"
#include "src/cpu/linalg/linalg.h"
#include "src/cpu/matmul/products.h"
#include "src/tensor/copy.h"
#include "src/tensor/fill.h"
#include "src/tensor/matrices/matrix_batch.h"
#include "src/tensor/matrices/matrix_exponential.h"

namespace sconce::cpu {
namespace {

// The largest sum of absolute values in a column.
template <class T>
double norm_of(const Tensor& matrix) {
  const int64_t n = matrix.size(0);
  const T* const a = matrix.data_as<T>();
  double norm = 0;
  for (int64_t c = 0; c < n; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < n; ++r) sum += std::abs(a[r * n + c]);
    if (!(sum <= norm)) norm = sum;
  }
  return norm;
}

Tensor exponential(const Tensor& matrix, double norm) {
  const int squarings = exponential_squarings(matrix.dtype(), norm);
  Tensor identity = Tensor::empty(matrix.sizes(), matrix.dtype());
  fill_identity(identity);
  Tensor result =
      exponential_polynomial(multiply_number(matrix, std::ldexp(1.0, -squarings)), identity, mm, multiply_number, add);
  for (int i = 0; i < squarings; ++i) result = mm(result, result);
  return result;
}

}  // namespace

Tensor linalg_matrix_exp(const Tensor& self) {
  SCONCE_CHECK(self.dim() >= 2, kInvalidArgument,
               "linalg.matrix_exp: The input tensor A must have at least 2 dimensions.");
  const DType dtype = self.dtype();
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16)
    return to_dtype(linalg_matrix_exp(to_dtype(self, DType::kFloat32)), dtype);
  check_square("linalg.matrix_exp", self);
  const Tensor in = contiguous(self);
  Tensor out = empty_matrices(Shape(self.sizes()), dtype, false);
  const int64_t n = self.size(self.dim() - 1);
  if (self.numel() == 0) return out;
  if (n == 1) return exp(self);  // numbers, which lie in memory as they did
  const int64_t sizes[] = {n, n}, strides[] = {n, 1};
  for (int64_t at = 0; at < in.numel(); at += n * n) {
    const Tensor matrix = in.as_strided(sizes, strides, in.storage_offset() + at);
    Tensor target = out.as_strided(sizes, strides, at);
    double norm = 0;
    detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128>(
        dtype, "linalg.matrix_exp", [&]<class T>() -> void { norm = norm_of<T>(matrix); });
    if (std::isfinite(norm))
      copy(exponential(matrix, norm), target);
    else
      fill(target, std::nan(""));
  }
  return out;
}

}  // namespace sconce::cpu
