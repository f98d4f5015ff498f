// Dense linear algebra through LAPACK, over batches. Match aten's operators of the same names, result strides included
// (torch 2.15, CPU with LAPACK); float32, float64 and their complex dtypes; any strides. `info` results: int32, one
// per matrix, as LAPACK reports it; check_errors throws for it (linalg_errors.h).
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce::cpu {

// {LU, pivots, info}: pivots int32 from 1.
std::array<Tensor, 3> linalg_lu_factor_ex(const Tensor& A, bool pivot, bool check_errors);
std::array<Tensor, 3> linalg_lu(const Tensor& A, bool pivot);  // {P, L, U}
// Solves op(A) X = B, or X op(A) = B if not left; adjoint: op(A) is A's conjugate transpose.
Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint);
std::array<Tensor, 4> _linalg_solve_ex(const Tensor& A, const Tensor& B, bool left, bool check_errors);
std::array<Tensor, 2> linalg_inv_ex(const Tensor& A, bool check_errors);
std::array<Tensor, 3> _linalg_det(const Tensor& A);      // {determinant, LU, pivots}
std::array<Tensor, 4> _linalg_slogdet(const Tensor& A);  // {sign, log of the absolute value, LU, pivots}
Tensor linalg_solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left, bool unitriangular);

std::array<Tensor, 2> linalg_cholesky_ex(const Tensor& self, bool upper, bool check_errors);
std::array<Tensor, 2> linalg_qr(const Tensor& A, std::string_view mode);  // "reduced", "complete", "r"
Tensor linalg_householder_product(const Tensor& input, const Tensor& tau);
std::array<Tensor, 2> _linalg_eigh(const Tensor& A, std::string_view UPLO, bool compute_v);
// For general matrices. Results are complex; kInvalidArgument for infinities and NaNs.
std::array<Tensor, 2> linalg_eig(const Tensor& self);  // {eigenvalues, eigenvectors of norm 1}
Tensor _linalg_eigvals(const Tensor& self);
// Singular values not above max(atol, rtol * the largest) count as 0. The tolerances are real and broadcast to the
// batch; 0 and epsilon * max(m, n) if not given.
Tensor linalg_pinv(const Tensor& self, const Tensor* atol, const Tensor* rtol, bool hermitian);
std::array<Tensor, 3> _linalg_svd(const Tensor& A, bool full_matrices, bool compute_uv,
                                  std::optional<std::string_view> driver);
std::array<Tensor, 3> linalg_ldl_factor_ex(const Tensor& self, bool hermitian, bool check_errors);
Tensor linalg_ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian);
Tensor linalg_matrix_exp(const Tensor& self);
// For Hermitian matrices, of which only the lower triangle is read. Negative eigenvalues count as 0.
Tensor linalg_matrix_sqrth(const Tensor& self);
// {U, H}: self = U H with orthonormal columns of U and Hermitian H; no fewer rows than columns.
std::array<Tensor, 2> linalg_polar(const Tensor& A);

}  // namespace sconce::cpu
