// Linear algebra and Fourier transforms.
#include "src/cpu/linalg/linalg.h"

#include "src/cpu/linalg/fft.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/matrices/linalg_errors.h"

namespace sconce::custom_ops {
namespace {

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor", boxed<cpu::cholesky_solve>},
    {"aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", boxed<cpu::_fft_c2c>},
    {"aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor", boxed<cpu::_fft_c2r>},
    {"aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", boxed<cpu::_fft_r2c>},
    {"aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()", boxed<_linalg_check_errors>},
    {"aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", boxed<cpu::_linalg_det>},
    {"aten::_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)", boxed<cpu::_linalg_eigh>},
    {"aten::_linalg_eigvals(Tensor self) -> Tensor", boxed<cpu::_linalg_eigvals>},
    {"aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)", boxed<cpu::_linalg_slogdet>},
    {"aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)", boxed<cpu::_linalg_solve_ex>},
    {"aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)", boxed<cpu::_linalg_svd>},
    {"aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)", boxed<cpu::linalg_cholesky_ex>},
    {"aten::linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", boxed<cpu::linalg_eig>},
    {"aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor", boxed<cpu::linalg_householder_product>},
    {"aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", boxed<cpu::linalg_inv_ex>},
    {"aten::linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)", boxed<cpu::linalg_ldl_factor_ex>},
    {"aten::linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor", boxed<cpu::linalg_ldl_solve>},
    {"aten::linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", boxed<cpu::linalg_lu>},
    {"aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)", boxed<cpu::linalg_lu_factor_ex>},
    {"aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor", boxed<cpu::linalg_lu_solve>},
    {"aten::linalg_matrix_exp(Tensor self) -> Tensor", boxed<cpu::linalg_matrix_exp>},
    {"aten::linalg_matrix_sqrth(Tensor self) -> Tensor", boxed<cpu::linalg_matrix_sqrth>},
    {"aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor", boxed<cpu::linalg_pinv>},
    {"aten::linalg_polar(Tensor A) -> (Tensor U, Tensor H)", boxed<cpu::linalg_polar>},
    {"aten::linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)", boxed<cpu::linalg_qr>},
    {"aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor", boxed<cpu::linalg_solve_triangular>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_linalg_rows() { return kRows; }

}  // namespace sconce::custom_ops
