// Eigenvalues of general matrices, pseudo-inverses.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sconce/check.h"
#include "src/cpu/linalg/lapack_calls.h"
#include "src/cpu/linalg/linalg.h"
#include "src/cpu/matmul/products.h"
#include "src/tensor/copy.h"
#include "src/tensor/factory.h"
#include "src/tensor/fill.h"
#include "src/tensor/matrices/linalg_errors.h"
#include "src/tensor/matrices/matrix_batch.h"

namespace sconce::cpu {
namespace {

template <class T>
bool all_finite(const T* values, int64_t count) {
  return std::all_of(values, values + count, [](const T& value) {
    if constexpr (kIsComplex<T>)
      return std::isfinite(value.real()) && std::isfinite(value.imag());
    else
      return std::isfinite(value);
  });
}

// A real matrix' eigenvectors come as columns; those of a conjugate pair as real and imaginary part.
template <class R>
void unpack_pairs(int n, const R* imaginary, const R* packed, std::complex<R>* vectors) {
  for (int j = 0; j < n; ++j) {
    const R* const re = packed + static_cast<int64_t>(j) * n;
    std::complex<R>* const out = vectors + static_cast<int64_t>(j) * n;
    if (imaginary[j] == 0) {
      std::copy_n(re, n, out);
      continue;
    }
    const R* const im = re + n;
    for (int i = 0; i < n; ++i) {
      out[i] = {re[i], im[i]};
      out[n + i] = {re[i], -im[i]};
    }
    ++j;
  }
}

std::array<Tensor, 2> eig(const Tensor& self, bool wanted) {
  check_square("linalg.eig", self);
  const int n = int_size("linalg.eig", self.size(self.dim() - 1));
  const Shape batch = batch_shape(self);
  const DType dtype = self.dtype() == DType::kFloat32   ? DType::kComplex64
                      : self.dtype() == DType::kFloat64 ? DType::kComplex128
                                                        : self.dtype();
  Tensor values = Tensor::empty(with_last(batch, n), dtype);
  Tensor vectors = wanted ? empty_matrices(with_matrix(batch, n, n), dtype) : no_matrix(dtype);
  if (self.numel() == 0) return {values, vectors};
  const Tensor work_matrices = column_major_copy(self);
  Tensor infos = Tensor::empty(batch, DType::kInt32);
  zero(infos);
  const char job = wanted ? 'V' : 'N';
  const int64_t square = static_cast<int64_t>(n) * n;
  dispatch_lapack(self.dtype(), "linalg.eig", [&]<class T>() -> void {
    using R = typename Lapack<T>::Real;
    T* const a = work_matrices.data_as<T>();
    SCONCE_CHECK(all_finite(a, work_matrices.numel()), kInvalidArgument,
                 "torch.linalg.eig: input tensor should not contain infs or NaNs.");
    auto* const w = values.data_as<std::complex<R>>();
    auto* const v = vectors.data_as<std::complex<R>>();
    T answer{};
    int info = 0;
    if constexpr (kIsComplex<T>) {
      const Workspace<R> rwork(2 * n);
      Lapack<T>::geev(job, n, a, w, v, &answer, -1, rwork.data(), info);
      const int lwork = std::max(workspace_size(answer), 2 * n);
      const Workspace<T> work(lwork);
      for (int64_t i = 0; i < infos.numel(); ++i)
        Lapack<T>::geev(job, n, a + i * square, w + i * n, v + (wanted ? i * square : 0), work.data(), lwork,
                        rwork.data(), infos.data_as<int32_t>()[i]);
    } else {
      const Workspace<R> real(n), imaginary(n), packed(wanted ? square : 1);
      Lapack<T>::geev(job, n, a, real.data(), imaginary.data(), packed.data(), &answer, -1, info);
      const int lwork = std::max(workspace_size(answer), 4 * n);
      const Workspace<T> work(lwork);
      for (int64_t i = 0; i < infos.numel(); ++i) {
        Lapack<T>::geev(job, n, a + i * square, real.data(), imaginary.data(), packed.data(), work.data(), lwork,
                        infos.data_as<int32_t>()[i]);
        for (int j = 0; j < n; ++j) w[i * n + j] = {real.data()[j], imaginary.data()[j]};
        if (wanted) unpack_pairs(n, imaginary.data(), packed.data(), v + i * square);
      }
    }
  });
  _linalg_check_errors(infos, "linalg.eig", self.dim() == 2);
  return {values, vectors};
}

// A tolerance for each matrix.
Tensor tolerances(const Tensor& given, const Shape& batch) {
  SCONCE_CHECK(!is_complex(given.dtype()), kInvalidArgument,
               "torch.linalg.pinv: atol and rtol tensors of complex type are not supported.");
  return clone_contiguous(expand("torch.linalg.pinv", to_dtype(given, DType::kFloat64), batch));
}

}  // namespace

std::array<Tensor, 2> linalg_eig(const Tensor& self) { return eig(self, true); }
Tensor _linalg_eigvals(const Tensor& self) { return eig(self, false)[0]; }

Tensor linalg_pinv(const Tensor& self, const Tensor* atol, const Tensor* rtol, bool hermitian) {
  hermitian ? check_square("linalg.pinv", self) : check_matrices("linalg.pinv", self);
  const int64_t m = self.size(self.dim() - 2), n = self.size(self.dim() - 1);
  const Shape batch = batch_shape(self);
  if (self.numel() == 0) return Tensor::empty(with_matrix(batch, n, m), self.dtype());
  // self = left * diag(values) * right^H
  Tensor left, right, values;
  if (hermitian) {
    const auto [eigenvalues, vectors] = _linalg_eigh(self, "L", true);
    left = right = vectors;
    values = eigenvalues;
  } else {
    const auto [u, s, vh] = _linalg_svd(self, false, true, std::nullopt);
    left = u;
    right = vh;
    values = s;
  }
  const int64_t k = values.size(values.dim() - 1), count = count_of(batch);
  const bool single = value_dtype(self.dtype()) == DType::kFloat32;
  const double epsilon = single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  Tensor absolute, relative;
  if (atol) absolute = tolerances(*atol, batch);
  if (rtol) relative = tolerances(*rtol, batch);
  Tensor scaled = Tensor::empty(with_matrix(batch, n, k), self.dtype());
  Tensor adjoint = Tensor::empty(with_matrix(batch, k, m), self.dtype());
  dispatch_lapack(self.dtype(), "linalg.pinv", [&]<class T>() -> void {
    using R = typename Lapack<T>::Real;
    const Tensor s = contiguous(values), u = contiguous(left), v = contiguous(right);
    for (int64_t b = 0; b < count; ++b) {
      const R* const singular = s.data_as<R>() + b * k;
      R largest = 0;
      for (int64_t j = 0; j < k; ++j) largest = std::max(largest, std::abs(singular[j]));
      const double floor = atol ? absolute.data_as<double>()[b] : 0.0;
      const double ratio = rtol                ? relative.data_as<double>()[b]
                           : atol && floor > 0 ? 0.0
                                               : epsilon * static_cast<double>(std::max(m, n));
      const R bound = std::max(static_cast<R>(ratio) * largest, static_cast<R>(floor));
      T* const to = scaled.data_as<T>() + b * n * k;
      T* const turned = adjoint.data_as<T>() + b * k * m;
      const T *const from = v.data_as<T>() + b * n * k, *const rows = u.data_as<T>() + b * m * k;
      for (int64_t j = 0; j < k; ++j) {
        const R inverse = std::abs(singular[j]) > bound ? R(1) / singular[j] : R(0);
        for (int64_t i = 0; i < n; ++i)
          to[i * k + j] = (hermitian ? from[i * k + j] : conjugate(from[j * n + i])) * inverse;
        for (int64_t i = 0; i < m; ++i) turned[j * m + i] = conjugate(rows[i * k + j]);
      }
    }
  });
  return matmul(scaled, adjoint);
}

}  // namespace sconce::cpu
