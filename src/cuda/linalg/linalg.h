// Linear algebra that is called by name only, by cuSOLVER, cuBLAS and, for small matrices, our own kernels. Signatures
// and results follow src/cpu/linalg/linalg.h, but last bits differ from the host's, and vectors may have other signs.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce::cuda {

// Without pivot, rows are not exchanged.
std::array<Tensor, 3> linalg_lu_factor_ex(const Tensor& A, bool pivot, bool check_errors);
std::array<Tensor, 3> linalg_lu(const Tensor& A, bool pivot);
Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint);
std::array<Tensor, 4> _linalg_solve_ex(const Tensor& A, const Tensor& B, bool left, bool check_errors);
std::array<Tensor, 2> linalg_inv_ex(const Tensor& A, bool check_errors);
std::array<Tensor, 3> _linalg_det(const Tensor& A);
std::array<Tensor, 4> _linalg_slogdet(const Tensor& A);
Tensor linalg_solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left, bool unitriangular);

std::array<Tensor, 2> linalg_cholesky_ex(const Tensor& self, bool upper, bool check_errors);
std::array<Tensor, 2> linalg_qr(const Tensor& A, std::string_view mode);
Tensor linalg_householder_product(const Tensor& input, const Tensor& tau);
std::array<Tensor, 2> _linalg_eigh(const Tensor& A, std::string_view UPLO, bool compute_v);
std::array<Tensor, 2> linalg_eig(const Tensor& self);
Tensor _linalg_eigvals(const Tensor& self);
// Ignores `driver`: Jacobi's rotations for small matrices, else gesvd; on the conjugate transpose if there are more
// columns than rows.
std::array<Tensor, 3> _linalg_svd(const Tensor& A, bool full_matrices, bool compute_uv,
                                  std::optional<std::string_view> driver);

// Tolerances, if given, broadcast to the batch and may be on the host.
Tensor linalg_pinv(const Tensor& self, const Tensor* atol, const Tensor* rtol, bool hermitian);
// Waits for the device to read norms of the matrices.
Tensor linalg_matrix_exp(const Tensor& self);
Tensor linalg_matrix_sqrth(const Tensor& self);
std::array<Tensor, 2> linalg_polar(const Tensor& A);

// Defined in linalg_lu.cpp for all files. Zeroed int32.
Tensor zeroed_info(IntSpan batch, Device device);
// Waits for the device.
void check_info(const Tensor& info, std::string_view name, bool is_matrix);
void conjugate(Tensor& t);  // packed
// Defined in linalg_general.cpp for all files. Row-major.
Tensor adjoint(const Tensor& matrices);
// [..., m, k] times [..., k, n] with equal batch dimensions.
Tensor matrix_product(const Tensor& a, const Tensor& b);

}  // namespace sconce::cuda
