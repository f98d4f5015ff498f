// What rests on the LU factorisation, and triangular systems.
#include <cmath>

#include "sconce/check.h"
#include "src/cpu/linalg/lapack_calls.h"
#include "src/cpu/linalg/linalg.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/fill.h"
#include "src/tensor/matrices/linalg_errors.h"
#include "src/tensor/matrices/matrix_batch.h"

namespace sconce::cpu {
namespace {

// Row-major real matrices are factored as their transposes, without a transposing copy. ATen does the same, which its
// result LU shows.
bool takes_transpose(const Tensor& A) { return A.is_contiguous() && !is_complex(A.dtype()); }
Tensor transposed(const Tensor& A) { return transpose(A, -2, -1); }

// The diagonal's product with the sign of the permutation.
template <class T>
int permutation_sign(const int32_t* pivots, int64_t n) {
  int sign = 1;
  for (int64_t i = 0; i < n; ++i)
    if (pivots[i] != i + 1) sign = -sign;
  return sign;
}

}  // namespace

std::array<Tensor, 3> linalg_lu_factor_ex(const Tensor& A, bool pivot, bool check_errors) {
  check_matrices("torch.linalg.lu_factor_ex", A);
  SCONCE_CHECK(pivot, kUnsupported, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  const int m = int_size("linalg.lu_factor", A.size(A.dim() - 2)),
            n = int_size("linalg.lu_factor", A.size(A.dim() - 1));
  const Shape batch = batch_shape(A);
  Tensor lu = column_major_copy(A), pivots = Tensor::empty(with_last(batch, std::min(m, n)), DType::kInt32),
         info = Tensor::empty(batch, DType::kInt32);
  zero(info);
  if (lu.numel() > 0)
    dispatch_lapack(A.dtype(), "linalg.lu_factor", [&]<class T>() -> void {
      for (int64_t i = 0; i < info.numel(); ++i)
        Lapack<T>::getrf(m, n, lu.data_as<T>() + i * m * n, pivots.data_as<int32_t>() + i * std::min(m, n),
                         info.data_as<int32_t>()[i]);
    });
  if (check_errors) _linalg_check_errors(info, "torch.linalg.lu_factor_ex", A.dim() == 2);
  return {lu, pivots, info};
}

std::array<Tensor, 3> linalg_lu(const Tensor& A, bool pivot) {
  check_matrices("linalg.lu", A);
  const auto [lu, pivots, info] = linalg_lu_factor_ex(A, pivot, false);
  return lu_unpack(lu, pivots, true, true);
}

Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint) {
  check_square("linalg.lu_solve", LU);
  check_equation("linalg.lu_solve", LU, B, left);
  check_pivots("linalg.lu_solve", LU, pivots);
  const Shape batch = broadcast_shapes("linalg.lu_solve", batch_shape(LU), batch_shape(B));
  const int n = int_size("linalg.lu_solve", LU.size(LU.dim() - 1));
  const int64_t right = B.size(left ? B.dim() - 1 : B.dim() - 2);
  const Tensor lu = column_major_copy(broadcast_matrices("linalg.lu_solve", LU, batch));
  const Tensor p = contiguous(sconce::expand("linalg.lu_solve", pivots, with_last(batch, n)));
  for (int64_t i = 0; i < p.numel(); ++i)
    SCONCE_CHECK(p.data_as<int32_t>()[i] >= 1 && p.data_as<int32_t>()[i] <= n, kInvalidArgument,
                 "linalg.lu_solve: pivots given to lu_solve must all be greater or equal to 1 and at most ", n);
  const Tensor wanted = broadcast_matrices("linalg.lu_solve", B, batch);
  Tensor out = empty_matrices(Shape(wanted.sizes()), B.dtype(), left);
  copy(wanted, out);
  if (out.numel() == 0) return out;
  dispatch_lapack(LU.dtype(), "linalg.lu_solve", [&]<class T>() -> void {
    // X op(A) = B is op(A)^T X^T = B^T, and the row-major X is a column-major X^T.
    const bool conjugates = !left && adjoint && kIsComplex<T>;
    const char trans = left ? (adjoint ? 'C' : 'N') : (adjoint ? 'N' : 'T');
    T* const x = out.data_as<T>();
    const auto conjugate_all = [&] {
      for (int64_t i = 0; i < out.numel(); ++i) x[i] = conjugate(x[i]);
    };
    if (conjugates) conjugate_all();
    for (int64_t i = 0, count = count_of(batch); i < count; ++i) {
      int info = 0;
      Lapack<T>::getrs(trans, n, int_size("linalg.lu_solve", right), lu.data_as<T>() + i * n * n,
                       p.data_as<int32_t>() + i * n, x + i * n * right, info);
    }
    if (conjugates) conjugate_all();
  });
  return out;
}

std::array<Tensor, 4> _linalg_solve_ex(const Tensor& A, const Tensor& B, bool left, bool check_errors) {
  check_square("linalg.solve", A);
  check_same_dtype("linalg.solve", A, B);
  const bool vector = is_vector_for(A, B);
  const Tensor b = vector ? unsqueeze(B, -1) : B;
  SCONCE_CHECK(left || !vector, kInvalidArgument,
               "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False");
  check_equation("linalg.solve", A, b, left);
  const auto [lu, pivots, info] = linalg_lu_factor_ex(A, true, false);
  if (check_errors) _linalg_check_errors(info, "torch.linalg.solve_ex", A.dim() == 2);
  Tensor x = linalg_lu_solve(lu, pivots, b, left, false);
  if (vector) {
    Tensor out = empty_matrices(Shape(select(x, -1, 0).sizes()), x.dtype(), left);
    copy(select(x, -1, 0), out);
    x = out;
  }
  return {x, lu, pivots, info};
}

std::array<Tensor, 2> linalg_inv_ex(const Tensor& A, bool check_errors) {
  check_square("linalg.inv", A);
  Tensor identity = empty_matrices(Shape(A.sizes()), A.dtype());
  fill_identity(identity);
  auto [inverse, lu, pivots, info] = _linalg_solve_ex(A, identity, true, false);
  if (check_errors) _linalg_check_errors(info, "linalg.inv_ex", A.dim() == 2);
  return {inverse, info};
}

std::array<Tensor, 3> _linalg_det(const Tensor& A) {
  check_square("linalg.det", A);
  const auto [lu, pivots, info] = linalg_lu_factor_ex(takes_transpose(A) ? transposed(A) : A, true, false);
  Tensor result = Tensor::empty(batch_shape(A), A.dtype());
  const int64_t n = A.size(A.dim() - 1);
  dispatch_lapack(A.dtype(), "linalg.det", [&]<class T>() -> void {
    for (int64_t i = 0; i < result.numel(); ++i) {
      T product = 1;
      for (int64_t d = 0; d < n; ++d) product *= lu.data_as<T>()[i * n * n + d * (n + 1)];
      result.data_as<T>()[i] =
          product * static_cast<typename Lapack<T>::Real>(permutation_sign<T>(pivots.data_as<int32_t>() + i * n, n));
    }
  });
  return {result, lu, pivots};
}

std::array<Tensor, 4> _linalg_slogdet(const Tensor& A) {
  check_square("linalg.slogdet", A);
  const auto [lu, pivots, info] = linalg_lu_factor_ex(takes_transpose(A) ? transposed(A) : A, true, false);
  const Shape batch = batch_shape(A);
  Tensor sign = Tensor::empty(batch, A.dtype()), logarithm = Tensor::empty(batch, value_dtype(A.dtype()));
  const int64_t n = A.size(A.dim() - 1);
  dispatch_lapack(A.dtype(), "linalg.slogdet", [&]<class T>() -> void {
    using R = typename Lapack<T>::Real;
    for (int64_t i = 0; i < sign.numel(); ++i) {
      T direction = static_cast<R>(permutation_sign<T>(pivots.data_as<int32_t>() + i * n, n));
      R sum = 0;
      for (int64_t d = 0; d < n; ++d) {
        const T value = lu.data_as<T>()[i * n * n + d * (n + 1)];
        const R size = std::abs(value);
        direction *= size == R(0) ? T(0) : value / size;
        sum += std::log(size);
      }
      sign.data_as<T>()[i] = direction;
      logarithm.data_as<R>()[i] = sum;
    }
  });
  return {sign, logarithm, lu, pivots};
}

Tensor linalg_solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left, bool unitriangular) {
  check_square("linalg.solve_triangular", self);
  check_equation("linalg.solve_triangular", self, B, left);
  const Shape batch = broadcast_shapes("linalg.solve_triangular", batch_shape(self), batch_shape(B));
  const Tensor a = column_major_copy(broadcast_matrices("linalg.solve_triangular", self, batch));
  Tensor out = column_major_copy(broadcast_matrices("linalg.solve_triangular", B, batch));
  if (out.numel() == 0) return out;
  const int n = int_size("linalg.solve_triangular", self.size(self.dim() - 1));
  const int rows = int_size("linalg.solve_triangular", B.size(B.dim() - 2));
  const int columns = int_size("linalg.solve_triangular", B.size(B.dim() - 1));
  dispatch_lapack(self.dtype(), "linalg.solve_triangular", [&]<class T>() -> void {
    for (int64_t i = 0, count = count_of(batch); i < count; ++i)
      Lapack<T>::trsm(left ? 'L' : 'R', upper ? 'U' : 'L', unitriangular ? 'U' : 'N', rows, columns,
                      a.data_as<T>() + i * n * n, out.data_as<T>() + i * rows * columns);
  });
  return out;
}

}  // namespace sconce::cpu
