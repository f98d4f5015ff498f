// Eigenvalues of general matrices, pseudo-inverses. Match aten operators of the same names (torch 2.15, CUDA with
// cuSOLVER) except for the signs of vectors; float32, float64 and their complex dtypes; any strides.
#include <limits>

#include "src/cuda/elementwise/elementwise.h"
#include "src/cuda/linalg/linalg.h"
#include "src/cuda/linalg/linalg_kernels.h"
#include "src/cuda/linalg/linalg_library.h"
#include "src/cuda/matmul/matmul.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/factory.h"
#include "src/tensor/matrices/matrix_batch.h"

namespace sconce::cuda {
namespace {

DType complex_of(DType dtype) {
  return dtype == DType::kFloat32 ? DType::kComplex64 : dtype == DType::kFloat64 ? DType::kComplex128 : dtype;
}

// Returns {eigenvalues, eigenvectors if asked for}.
std::array<Tensor, 2> eigen(const char* name, const Tensor& self, bool vectors) {
  check_square(name, self);
  const LinalgScope scope(name, self);
  const DType dtype = complex_of(self.dtype());
  const Shape batch = batch_shape(self);
  const int64_t n = self.size(self.dim() - 1);
  Tensor a = empty_matrices(Shape(self.sizes()), dtype, true, self.device());
  copy(self, a, false);
  Tensor values = Tensor::empty(with_last(batch, n), dtype, self.device());
  Tensor result = vectors ? empty_matrices(Shape(self.sizes()), dtype, true, self.device()) : Tensor{};
  Tensor info = zeroed_info(batch, self.device());
  if (a.numel() > 0)
    eigen_general(Matrices(a), values.data(), vectors ? result.data() : nullptr, info.data_as<int32_t>());
  check_info(info, name, self.dim() == 2);
  return {values, result};
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

}  // namespace

Tensor adjoint(const Tensor& matrices) {
  const Tensor view = cpu::transpose(matrices, -2, -1);
  Tensor turned = Tensor::empty(view.sizes(), view.dtype(), view.device());
  copy(view, turned, false);
  conjugate(turned);
  return turned;
}

Tensor matrix_product(const Tensor& a, const Tensor& b) {
  const Shape batch = batch_shape(a);
  const int64_t m = a.size(a.dim() - 2), k = a.size(a.dim() - 1), n = b.size(b.dim() - 1), count = count_of(batch);
  const int64_t left[] = {count, m, k}, right[] = {count, k, n};
  return reshape(bmm(reshape(a, left), reshape(b, right)), with_matrix(batch, m, n));
}

std::array<Tensor, 2> linalg_eig(const Tensor& self) { return eigen("torch.linalg.eig", self, true); }
Tensor _linalg_eigvals(const Tensor& self) { return eigen("torch.linalg.eigvals", self, false)[0]; }

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

}  // namespace sconce::cuda
