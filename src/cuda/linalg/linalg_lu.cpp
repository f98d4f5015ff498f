// Operators built on LU factorisations, and triangular systems. Match aten operators of the same names (torch 2.15,
// CUDA with cuSOLVER) and their result strides; float32, float64 and their complex dtypes; any strides. The info of a
// factorisation is read, with a wait, only if an error is asked for.
#include <algorithm>

#include "src/cuda/linalg/linalg.h"
#include "src/cuda/linalg/linalg_kernels.h"
#include "src/cuda/linalg/linalg_library.h"
#include "src/cuda/linalg/small_matrices.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/factory.h"
#include "src/tensor/matrices/linalg_errors.h"
#include "src/tensor/matrices/matrix_batch.h"

namespace sconce::cuda {

Tensor zeroed_info(IntSpan batch, Device device) {
  Tensor info = Tensor::empty(batch, DType::kInt32, device);
  fill_zero(info);
  return info;
}

void check_info(const Tensor& info, std::string_view name, bool is_matrix) {
  Tensor here = Tensor::empty(info.sizes(), DType::kInt32);
  copy(info, here, true);
  _linalg_check_errors(here, name, is_matrix);
}

void conjugate(Tensor& t) {
  if (!is_complex(t.dtype())) return;
  launch_conjugate(t.data(), static_cast<int>(t.dtype()), t.numel(), current_stream());
  SCONCE_CUDA(cudaGetLastError());
}

namespace {

int number(const Tensor& t) { return static_cast<int>(t.dtype()); }

void exchange_rows(Tensor& b, int64_t rows, int64_t columns, const Tensor& pivots, bool backwards) {
  launch_exchange_rows(b.data(), number(b), b.numel() / (rows * columns), rows, columns, pivots.data_as<int32_t>(),
                       rows, backwards, current_stream());
  SCONCE_CUDA(cudaGetLastError());
}

Tensor int_pivots(const char* name, const Tensor& pivots, const Shape& sizes) {
  Tensor packed = Tensor::empty(sizes, DType::kInt32, pivots.device());
  copy(sconce::expand(name, pivots, sizes), packed, false);
  return packed;
}

// ATen factors, and returns, the transpose of a row-major real matrix.
Tensor as_factored(const Tensor& A) {
  return A.is_contiguous() && !is_complex(A.dtype()) ? cpu::transpose(A, -2, -1) : A;
}

void determinant(const Tensor& lu, const Tensor& pivots, Tensor& result, Tensor* logarithm) {
  launch_determinant(lu.data(), pivots.data_as<int32_t>(), result.numel(), lu.size(lu.dim() - 1), result.data(),
                     logarithm ? logarithm->data() : nullptr, number(lu), current_stream());
  SCONCE_CUDA(cudaGetLastError());
}

}  // namespace

std::array<Tensor, 3> linalg_lu_factor_ex(const Tensor& A, bool pivot, bool check_errors) {
  check_matrices("torch.linalg.lu_factor_ex", A);
  const LinalgScope scope("torch.linalg.lu_factor_ex", A);
  const int64_t k = std::min(A.size(A.dim() - 2), A.size(A.dim() - 1));
  const Shape batch = batch_shape(A);
  Tensor pivots = Tensor::empty(with_last(batch, k), DType::kInt32, A.device());
  // A factorisation writes all of it.
  Tensor info = A.numel() == 0 ? zeroed_info(batch, A.device()) : Tensor::empty(batch, DType::kInt32, A.device());
  if (!pivot)
    launch_plain_pivots(pivots.data_as<int32_t>(), pivots.numel() / std::max<int64_t>(k, 1), k, current_stream());
  int32_t* const exchanges = pivot ? pivots.data_as<int32_t>() : nullptr;
  const int64_t m = A.size(A.dim() - 2), n = A.size(A.dim() - 1);
  Tensor lu;
  if (A.numel() > 0 && A.is_contiguous() && small_lu_fits(m, n, static_cast<int64_t>(A.itemsize()))) {
    lu = empty_matrices(Shape(A.sizes()), A.dtype(), true, A.device());
    launch_small_lu(
        {A.data(), true, lu.data(), number(A), int_size("linalg.lu_factor", count_of(batch)), static_cast<int>(m),
         static_cast<int>(n), exchanges, info.data_as<int32_t>(), pivots_by_length(count_of(batch), m, n)},
        current_stream());
    SCONCE_CUDA(cudaGetLastError());
  } else {
    lu = column_major_copy(A);
    if (lu.numel() > 0) factor_lu(Matrices(lu), exchanges, info.data_as<int32_t>());
  }
  if (check_errors) check_info(info, "torch.linalg.lu_factor_ex", A.dim() == 2);
  return {lu, pivots, info};
}

std::array<Tensor, 3> linalg_lu(const Tensor& A, bool pivot) {
  check_matrices("linalg.lu", A);
  const auto [lu, pivots, info] = linalg_lu_factor_ex(A, pivot, false);
  auto [P, L, U] = lu_unpack(lu, pivots, true, pivot);
  return {P, L, U};
}

Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint) {
  const char* const name = "linalg.lu_solve";
  check_square(name, LU);
  check_equation(name, LU, B, left);
  check_pivots(name, LU, pivots);
  const LinalgScope scope(name, LU);
  const Shape batch = broadcast_shapes(name, batch_shape(LU), batch_shape(B));
  const int64_t n = LU.size(LU.dim() - 1), right = B.size(left ? B.dim() - 1 : B.dim() - 2);
  const Tensor wanted = broadcast_matrices(name, B, batch);
  Tensor out = empty_matrices(Shape(wanted.sizes()), B.dtype(), left, B.device());
  copy(wanted, out, false);
  if (out.numel() == 0) return out;
  const Tensor lu = column_major_copy(broadcast_matrices(name, LU, batch));
  const Tensor p = int_pivots(name, pivots, with_last(batch, n));
  // X op(A) = B means op(A)^T X^T = B^T, and a row-major X is a column-major X^T.
  const bool conjugates = !left && adjoint;
  const Form form = left == adjoint ? (left ? Form::kAdjoint : Form::kTransposed) : Form::kPlain;
  const Matrices a(lu), x(out.data(), count_of(batch), n, right, out);
  if (conjugates) conjugate(out);
  if (form == Form::kPlain) {
    exchange_rows(out, n, right, p, false);
    solve_triangular(a, x, Side::kLeft, Triangle::kLower, form, true);
    solve_triangular(a, x, Side::kLeft, Triangle::kUpper, form, false);
  } else {
    solve_triangular(a, x, Side::kLeft, Triangle::kUpper, form, false);
    solve_triangular(a, x, Side::kLeft, Triangle::kLower, form, true);
    exchange_rows(out, n, right, p, true);
  }
  if (conjugates) conjugate(out);
  return out;
}

std::array<Tensor, 4> _linalg_solve_ex(const Tensor& A, const Tensor& B, bool left, bool check_errors) {
  check_square("linalg.solve", A);
  check_same_dtype("linalg.solve", A, B);
  const bool vector = is_vector_for(A, B);
  SCONCE_CHECK(left || !vector, kInvalidArgument,
               "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False");
  const Tensor b = vector ? cpu::unsqueeze(B, -1) : B;
  check_equation("linalg.solve", A, b, left);
  const LinalgScope scope("linalg.solve", A);
  const auto [lu, pivots, info] = linalg_lu_factor_ex(A, true, false);
  if (check_errors) check_info(info, "torch.linalg.solve_ex", A.dim() == 2);
  Tensor x = linalg_lu_solve(lu, pivots, b, left, false);
  if (vector) {
    const Tensor column = cpu::select(x, -1, 0);
    x = empty_matrices(Shape(column.sizes()), x.dtype(), left, x.device());
    copy(column, x, false);
  }
  return {x, lu, pivots, info};
}

std::array<Tensor, 2> linalg_inv_ex(const Tensor& A, bool check_errors) {
  check_square("linalg.inv", A);
  const LinalgScope scope("linalg.inv", A);
  Tensor identity = empty_matrices(Shape(A.sizes()), A.dtype(), true, A.device());
  fill_identity(identity);
  auto [inverse, lu, pivots, info] = _linalg_solve_ex(A, identity, true, false);
  if (check_errors) check_info(info, "linalg.inv_ex", A.dim() == 2);
  return {inverse, info};
}

std::array<Tensor, 3> _linalg_det(const Tensor& A) {
  check_square("linalg.det", A);
  const LinalgScope scope("linalg.det", A);
  const auto [lu, pivots, info] = linalg_lu_factor_ex(as_factored(A), true, false);
  Tensor result = Tensor::empty(batch_shape(A), A.dtype(), A.device());
  determinant(lu, pivots, result, nullptr);
  return {result, lu, pivots};
}

std::array<Tensor, 4> _linalg_slogdet(const Tensor& A) {
  check_square("linalg.slogdet", A);
  const LinalgScope scope("linalg.slogdet", A);
  const auto [lu, pivots, info] = linalg_lu_factor_ex(as_factored(A), true, false);
  const Shape batch = batch_shape(A);
  Tensor sign = Tensor::empty(batch, A.dtype(), A.device()),
         logarithm = Tensor::empty(batch, value_dtype(A.dtype()), A.device());
  determinant(lu, pivots, sign, &logarithm);
  return {sign, logarithm, lu, pivots};
}

Tensor linalg_solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left, bool unitriangular) {
  const char* const name = "linalg.solve_triangular";
  check_square(name, self);
  check_equation(name, self, B, left);
  const LinalgScope scope(name, self);
  const Shape batch = broadcast_shapes(name, batch_shape(self), batch_shape(B));
  const Tensor a = column_major_copy(broadcast_matrices(name, self, batch));
  Tensor out = column_major_copy(broadcast_matrices(name, B, batch));
  if (out.numel() > 0)
    solve_triangular(Matrices(a), Matrices(out), left ? Side::kLeft : Side::kRight,
                     upper ? Triangle::kUpper : Triangle::kLower, Form::kPlain, unitriangular);
  return out;
}

}  // namespace sconce::cuda
