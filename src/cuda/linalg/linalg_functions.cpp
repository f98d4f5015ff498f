// Functions of matrices by decompositions and products. Match aten operators of the same names (torch 2.15): float32,
// float64 and their complex dtypes, any strides, row-major results.
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

Tensor adjoint(const Tensor& matrices) {
  const Tensor view = cpu::transpose(matrices, -2, -1);
  Tensor turned = Tensor::empty(view.sizes(), view.dtype(), view.device());
  copy(view, turned, false);
  conjugate(turned);
  return turned;
}

// [..., m, k] times [..., k, n] with equal batch dimensions.
Tensor matrix_product(const Tensor& a, const Tensor& b) {
  const Shape batch = batch_shape(a);
  const int64_t m = a.size(a.dim() - 2), k = a.size(a.dim() - 1), n = b.size(b.dim() - 1), count = count_of(batch);
  const int64_t left[] = {count, m, k}, right[] = {count, k, n};
  return reshape(bmm(reshape(a, left), reshape(b, right)), with_matrix(batch, m, n));
}

// V diag(values) V^H
Tensor spectral(const Tensor& v, const Tensor& values) {
  return matrix_product(multiply(v, cpu::unsqueeze(values, -2)), adjoint(v));
}

// One float64 tolerance per matrix.
Tensor tolerances(const Tensor* given, const Shape& batch, Device device) {
  if (!given) return {};
  SCONCE_CHECK(!is_complex(given->dtype()), kInvalidArgument,
               "torch.linalg.pinv: atol and rtol tensors of complex type are not supported.");
  Tensor each = Tensor::empty(batch, DType::kFloat64, device);
  copy(expand("torch.linalg.pinv", *given, batch), each, given->is_cpu());
  return each;
}

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

Tensor linalg_pinv(const Tensor& self, const Tensor* atol, const Tensor* rtol, bool hermitian) {
  hermitian ? check_square("linalg.pinv", self) : check_matrices("linalg.pinv", self);
  const DeviceScope scope(self.device());
  const int64_t m = self.size(self.dim() - 2), n = self.size(self.dim() - 1);
  const Shape batch = batch_shape(self);
  if (self.numel() == 0) return Tensor::empty(with_matrix(batch, n, m), self.dtype(), self.device());
  // self = left diag(values) right^H
  Tensor left, right, values;
  if (hermitian) {
    const auto [eigenvalues, vectors] = _linalg_eigh(self, "L", true);
    left = right = vectors;
    values = eigenvalues;
  } else {
    const auto [u, s, vh] = _linalg_svd(self, false, true, std::nullopt);
    left = u;
    right = adjoint(vh);
    values = s;
  }
  const Tensor floors = tolerances(atol, batch, self.device()), ratios = tolerances(rtol, batch, self.device());
  const double epsilon = values.dtype() == DType::kFloat32 ? std::numeric_limits<float>::epsilon()
                                                           : std::numeric_limits<double>::epsilon();
  const Tensor of = cuda::contiguous(values);
  const Tensor inverses = Tensor::empty(of.sizes(), of.dtype(), of.device());
  launch_inverses(of.data(), inverses.data(), static_cast<int>(of.dtype()), count_of(batch), of.size(of.dim() - 1),
                  floors.defined() ? floors.data_as<double>() : nullptr,
                  ratios.defined() ? ratios.data_as<double>() : nullptr, epsilon * static_cast<double>(std::max(m, n)),
                  current_stream());
  SCONCE_CUDA(cudaGetLastError());
  return matrix_product(multiply(right, cpu::unsqueeze(inverses, -2)), adjoint(left));
}

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
