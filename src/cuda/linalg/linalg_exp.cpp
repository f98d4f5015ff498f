// The exponential of matrices by products. Matches aten::linalg_matrix_exp (torch 2.15): float32, float64 and their
// complex dtypes, half types by way of float32; any strides, row-major results.
#include <cmath>
#include <limits>
#include <vector>

#include "src/cuda/elementwise/elementwise.h"
#include "src/cuda/linalg/linalg.h"
#include "src/cuda/linalg/linalg_kernels.h"
#include "src/cuda/matmul/matmul.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cpu_ops.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/factory.h"
#include "src/tensor/matrices/matrix_batch.h"
#include "src/tensor/matrices/matrix_exponential.h"

namespace sconce::cuda {
namespace {

// The largest column sum of absolute values, for each matrix of [count, n, n].
std::vector<double> column_norms(const Tensor& matrices) {
  const int64_t count = matrices.size(0), n = matrices.size(1), sizes[] = {count, 1, n};
  Tensor ones = Tensor::empty(sizes, value_dtype(matrices.dtype()), matrices.device());
  cpu::fill__Scalar(ones, 1);
  Tensor sums = Tensor::empty(sizes, DType::kFloat64);
  copy(converted(bmm(ones, abs(matrices)), DType::kFloat64), sums, true);
  std::vector<double> norms(static_cast<size_t>(count), 0.0);
  for (int64_t i = 0; i < sums.numel(); ++i) {
    double& norm = norms[static_cast<size_t>(i / n)];
    const double sum = sums.data_as<double>()[i];
    if (!(sum <= norm)) norm = sum;
  }
  return norms;
}

}  // namespace

Tensor linalg_matrix_exp(const Tensor& self) {
  SCONCE_CHECK(self.dim() >= 2, kInvalidArgument,
               "linalg.matrix_exp: The input tensor A must have at least 2 dimensions.");
  const DType dtype = self.dtype();
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16)
    return converted(linalg_matrix_exp(converted(self, DType::kFloat32)), dtype);
  check_square("linalg.matrix_exp", self);
  const DeviceScope scope(self.device());
  if (self.numel() == 0) return empty_matrices(Shape(self.sizes()), dtype, false, self.device());
  const int64_t n = self.size(self.dim() - 1), count = self.numel() / (n * n), sizes[] = {count, n, n};
  const Tensor in = cuda::contiguous(reshape(self, sizes));  // makes everything below row-major
  const std::vector<double> norms = column_norms(in);
  std::vector<int> squarings(norms.size(), 0);
  const int64_t single[] = {count, 1, 1};
  Tensor factors = Tensor::empty(single, DType::kFloat64);
  int most = 0;
  for (size_t i = 0; i < norms.size(); ++i) {
    if (std::isfinite(norms[i])) squarings[i] = exponential_squarings(dtype, norms[i]);
    most = std::max(most, squarings[i]);
    factors.data_as<double>()[i] = std::ldexp(1.0, -squarings[i]);
  }
  Tensor scale = Tensor::empty(single, value_dtype(dtype), self.device());
  copy(factors, scale, true);
  const int64_t square[] = {n, n};
  Tensor identity = Tensor::empty(square, dtype, self.device());
  fill_identity(identity);
  Tensor result = exponential_polynomial(multiply(in, scale), identity, bmm, multiply_number, add);
  const auto part = [&](size_t begin, size_t end) {
    const int64_t each[] = {static_cast<int64_t>(end - begin), n, n};
    return result.as_strided(each, result.strides(), result.storage_offset() + static_cast<int64_t>(begin) * n * n);
  };
  for (int round = 0; round < most; ++round)
    for (size_t begin = 0; begin < squarings.size();) {
      size_t end = begin;
      while (end < squarings.size() && squarings[end] > round) ++end;
      if (end > begin) {
        Tensor some = part(begin, end);
        copy(bmm(some, some), some, false);
      }
      begin = end + 1;
    }
  for (size_t i = 0; i < norms.size(); ++i)
    if (!std::isfinite(norms[i])) {
      Tensor one = part(i, i + 1);
      cpu::fill__Scalar(one, std::numeric_limits<double>::quiet_NaN());
    }
  return reshape(result, self.sizes());
}

}  // namespace sconce::cuda
