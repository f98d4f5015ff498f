// The exponential of matrices: a Taylor polynomial of degree 18 (by Paterson and Stockmeyer) of the matrix scaled by a
// power of two, squared as often.
#include <cmath>

#include "sconce/check.h"
#include "src/ops/arithmetic.h"
#include "src/ops/copy.h"
#include "src/ops/fill.h"
#include "src/ops/linalg.h"
#include "src/ops/matrix_batch.h"
#include "src/ops/products.h"

namespace sconce::cpu {
namespace {

constexpr int kDegree = 18, kBlock = 4;

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
  // Where degree 18 is exact to the dtype's precision (Bader, Blanes, Casas 2019).
  const double exact_below =
      matrix.dtype() == DType::kFloat32 || matrix.dtype() == DType::kComplex64 ? 3.010066362817634 : 1.090863719290036;
  const int squarings = norm > exact_below ? static_cast<int>(std::ceil(std::log2(norm / exact_below))) : 0;
  const Tensor a = multiply_number(matrix, std::ldexp(1.0, -squarings));
  Tensor powers[kBlock];  // a to the 1 ... 4
  powers[0] = a;
  for (int i = 1; i < kBlock; ++i) powers[i] = mm(powers[i - 1], a);
  Tensor identity = Tensor::empty(a.sizes(), a.dtype());
  zero(identity);
  const int64_t n = a.size(0), step = n + 1;
  Tensor diagonal = identity.as_strided(IntSpan(&n, 1), IntSpan(&step, 1), 0);
  fill(diagonal, int64_t{1});

  double factorials[kDegree + 1] = {1};
  for (int i = 1; i <= kDegree; ++i) factorials[i] = factorials[i - 1] * i;
  const auto block = [&](int first) {  // sum of a^j / (first + j)!
    Tensor sum = multiply_number(identity, 1 / factorials[first]);
    for (int j = 1; j < kBlock && first + j <= kDegree; ++j) sum = add(sum, powers[j - 1], 1 / factorials[first + j]);
    return sum;
  };
  int first = kDegree / kBlock * kBlock;
  Tensor result = block(first);
  while (first > 0) {
    first -= kBlock;
    result = add(block(first), mm(result, powers[kBlock - 1]), int64_t{1});
  }
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
