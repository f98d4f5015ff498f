// Operators on factors that were computed before, through LAPACK, over batches. Match aten's operators of the same
// names (torch 2.15, CPU with LAPACK), result strides among them; float32, float64 and their complex dtypes; any
// strides.
#include <algorithm>
#include <numeric>
#include <vector>

#include "sconce/check.h"
#include "src/cpu/linalg/lapack_calls.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/fill.h"
#include "src/tensor/matrices/linalg_errors.h"
#include "src/tensor/matrices/matrix_batch.h"

namespace sconce::cpu {
// X of A X = self, input2 [..., n, n] the Cholesky factor of A: its upper triangle U with A = U^H U, or its lower.
Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper) {
  const char* const name = "cholesky_solve";
  check_solvable(name, self, input2);
  const Shape batch = broadcast_shapes(name, batch_shape(self), batch_shape(input2));
  const Tensor factor = column_major_copy(broadcast_matrices(name, input2, batch));
  Tensor out = column_major_copy(broadcast_matrices(name, self, batch));
  if (out.numel() == 0) return out;
  const int n = int_size(name, input2.size(input2.dim() - 1)), columns = int_size(name, self.size(self.dim() - 1));
  dispatch_lapack(self.dtype(), name, [&]<class T>() -> void {
    for (int64_t i = 0, count = count_of(batch); i < count; ++i) {
      int info = 0;
      Lapack<T>::potrs(upper ? 'U' : 'L', n, columns, factor.data_as<T>() + i * n * n,
                       out.data_as<T>() + i * n * columns, info);
    }
  });
  return out;
}

// The inverse of the matrix whose Cholesky factor self is. kInvalidArgument where it is singular.
Tensor cholesky_inverse(const Tensor& self, bool upper) {
  const char* const name = "cholesky_inverse";
  check_square(name, self);
  Tensor out = column_major_copy(self);
  if (out.numel() == 0) return out;
  const int n = int_size(name, self.size(self.dim() - 1));
  Tensor info = Tensor::empty(batch_shape(self), DType::kInt32);
  dispatch_lapack(self.dtype(), name, [&]<class T>() -> void {
    for (int64_t i = 0; i < info.numel(); ++i) {
      T* const a = out.data_as<T>() + i * n * n;
      Lapack<T>::potri(upper ? 'U' : 'L', n, a, info.data_as<int32_t>()[i]);
      // LAPACK writes one triangle.
      for (int64_t c = 0; c < n; ++c)
        for (int64_t r = 0; r < c; ++r) {
          T& above = a[c * n + r];
          T& below = a[r * n + c];
          (upper ? below : above) = conjugate(upper ? above : below);
        }
    }
  });
  _linalg_check_errors(info, name, self.dim() == 2);
  return out;
}

// {a, tau}: R on and above the diagonal of a [..., m, n], the reflectors of Q below.
std::array<Tensor, 2> geqrf(const Tensor& self) {
  const char* const name = "geqrf";
  SCONCE_CHECK(self.dim() >= 2, kInvalidArgument, "torch.geqrf: input must have at least 2 dimensions.");
  check_matrices(name, self);
  const int m = int_size(name, self.size(self.dim() - 2)), n = int_size(name, self.size(self.dim() - 1));
  const int k = std::min(m, n);
  Tensor a = column_major_copy(self), tau = Tensor::empty(with_last(batch_shape(self), k), self.dtype());
  if (a.numel() == 0) return {a, tau};
  dispatch_lapack(self.dtype(), name, [&]<class T>() -> void {
    T answer{};
    int info = 0;
    Lapack<T>::geqrf(m, n, a.data_as<T>(), tau.data_as<T>(), &answer, -1, info);
    const int lwork = std::max(workspace_size(answer), std::max(n, 1));
    const Workspace<T> work(lwork);
    for (int64_t i = 0, count = a.numel() / (int64_t{m} * n); i < count; ++i)
      Lapack<T>::geqrf(m, n, a.data_as<T>() + i * m * n, tau.data_as<T>() + i * k, work.data(), lwork, info);
  });
  return {a, tau};
}

// Q C, C Q or their forms with Q^H: self [..., m, k] and input2 [..., k] as geqrf makes them, input3 = C.
Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left, bool transpose) {
  const char* const name = "torch.ormqr";
  const Tensor &tau = input2, &other = input3;
  check_reflectors(name, self, tau, other, left);
  const int64_t order = other.size(other.dim() - (left ? 2 : 1)), reflectors = tau.size(tau.dim() - 1);
  Tensor out = column_major_copy(other);
  if (out.numel() == 0 || reflectors == 0) return out;
  const Tensor a = column_major_copy(self), packed = contiguous(tau);
  const int m = int_size(name, other.size(other.dim() - 2)), n = int_size(name, other.size(other.dim() - 1));
  const int k = int_size(name, reflectors), lda = int_size(name, order);
  const int64_t step = order * self.size(self.dim() - 1), matrix = int64_t{m} * n;
  dispatch_lapack(self.dtype(), name, [&]<class T>() -> void {
    const char side = left ? 'L' : 'R', trans = !transpose ? 'N' : kIsComplex<T> ? 'C' : 'T';
    T answer{};
    int info = 0;
    Lapack<T>::ormqr(side, trans, m, n, k, a.data_as<T>(), lda, packed.data_as<T>(), out.data_as<T>(), &answer, -1,
                     info);
    const int lwork = std::max(workspace_size(answer), std::max(left ? n : m, 1));
    const Workspace<T> work(lwork);
    for (int64_t i = 0, count = out.numel() / matrix; i < count; ++i)
      Lapack<T>::ormqr(side, trans, m, n, k, a.data_as<T>() + i * step, lda, packed.data_as<T>() + i * k,
                       out.data_as<T>() + i * matrix, work.data(), lwork, info);
  });
  return out;
}

// {P, L, U} of what linalg_lu_factor made; empty [0] for what is not asked for. pivots: int32 from 1, packed.
std::array<Tensor, 3> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data, bool unpack_pivots) {
  const char* const name = "torch.lu_unpack";
  check_factored(name, LU_data, unpack_pivots ? &LU_pivots : nullptr);
  const int64_t m = LU_data.size(LU_data.dim() - 2), n = LU_data.size(LU_data.dim() - 1), k = std::min(m, n);
  const Shape batch = batch_shape(LU_data);
  const int64_t count = count_of(batch);
  const DType dtype = LU_data.dtype();
  Tensor P = no_matrix(dtype), L = no_matrix(dtype), U = no_matrix(dtype);
  if (unpack_data) {
    L = Tensor::empty(with_matrix(batch, m, k), dtype);
    U = Tensor::empty(with_matrix(batch, k, n), dtype);
    const Tensor lu = contiguous(LU_data);
    detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128>(
        dtype, name, [&]<class T>() -> void {
          for (int64_t i = 0; i < count; ++i) {
            const T* const from = lu.data_as<T>() + i * m * n;
            T *const l = L.data_as<T>() + i * m * k, *const u = U.data_as<T>() + i * k * n;
            for (int64_t r = 0; r < m; ++r)
              for (int64_t c = 0; c < k; ++c) l[r * k + c] = r > c ? from[r * n + c] : T(r == c);
            for (int64_t r = 0; r < k; ++r)
              for (int64_t c = 0; c < n; ++c) u[r * n + c] = r <= c ? from[r * n + c] : T(0);
          }
        });
  }
  if (unpack_pivots) {
    const Tensor pivots = contiguous(LU_pivots);
    P = Tensor::empty(with_matrix(batch, m, m), dtype);
    zero(P);
    std::vector<int64_t> rows(static_cast<size_t>(m));
    detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128>(
        dtype, name, [&]<class T>() -> void {
          for (int64_t i = 0; i < count; ++i) {
            std::iota(rows.begin(), rows.end(), 0);
            for (int64_t r = 0; r < k; ++r) {
              const int64_t pivot = pivots.data_as<int32_t>()[i * k + r];
              SCONCE_CHECK(pivot >= 1 && pivot <= m, kInvalidArgument, name,
                           ": pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive. Did you properly "
                           "pass the result of lu_factor?");
              std::swap(rows[static_cast<size_t>(r)], rows[static_cast<size_t>(pivot - 1)]);
            }
            for (int64_t r = 0; r < m; ++r) P.data_as<T>()[i * m * m + rows[static_cast<size_t>(r)] * m + r] = T(1);
          }
        });
  }
  return {P, L, U};
}

// {X, a copy of A}: op(A) X = self with A triangular; transpose: op(A) is A's transpose, not conjugated.
std::array<Tensor, 2> triangular_solve(const Tensor& self, const Tensor& A, bool upper, bool transpose,
                                       bool unitriangular) {
  const char* const name = "triangular_solve";
  check_solvable(name, self, A);
  const Shape batch = broadcast_shapes(name, batch_shape(self), batch_shape(A));
  Tensor x = column_major_copy(broadcast_matrices(name, self, batch)),
         a = column_major_copy(broadcast_matrices(name, A, batch));
  if (x.numel() == 0) return {x, a};
  const int n = int_size(name, A.size(A.dim() - 1)), columns = int_size(name, self.size(self.dim() - 1));
  dispatch_lapack(self.dtype(), name, [&]<class T>() -> void {
    for (int64_t i = 0, count = count_of(batch); i < count; ++i)
      Lapack<T>::trsm('L', upper ? 'U' : 'L', unitriangular ? 'U' : 'N', n, columns, a.data_as<T>() + i * n * n,
                      x.data_as<T>() + i * n * columns, transpose ? 'T' : 'N');
  });
  return {x, a};
}

}  // namespace sconce::cpu
