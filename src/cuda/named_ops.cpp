#include "src/cuda/named_ops.h"

#include <algorithm>

#include "src/cuda/fft.h"
#include "src/cuda/linalg.h"
#include "src/cuda/ops.h"
#include "src/custom_ops/boxed.h"

namespace sconce::cuda {
namespace {

using custom_ops::boxed_anywhere;

struct Row {
  std::string_view name;
  DeviceBackend::NamedKernel kernel;
};

// Sorted. Parameters are those of the schemas in src/custom_ops.
constexpr Row kRows[] = {
    {"aten::_fft_c2c", boxed_anywhere<_fft_c2c>},
    {"aten::_fft_c2r", boxed_anywhere<_fft_c2r>},
    {"aten::_fft_r2c", boxed_anywhere<_fft_r2c>},
    {"aten::_linalg_det", boxed_anywhere<_linalg_det>},
    {"aten::_linalg_eigh", boxed_anywhere<_linalg_eigh>},
    {"aten::_linalg_eigvals", boxed_anywhere<_linalg_eigvals>},
    {"aten::_linalg_slogdet", boxed_anywhere<_linalg_slogdet>},
    {"aten::_linalg_solve_ex", boxed_anywhere<_linalg_solve_ex>},
    {"aten::_linalg_svd", boxed_anywhere<_linalg_svd>},
    {"aten::linalg_cholesky_ex", boxed_anywhere<linalg_cholesky_ex>},
    {"aten::linalg_eig", boxed_anywhere<linalg_eig>},
    {"aten::linalg_householder_product", boxed_anywhere<linalg_householder_product>},
    {"aten::linalg_inv_ex", boxed_anywhere<linalg_inv_ex>},
    {"aten::linalg_lu", boxed_anywhere<linalg_lu>},
    {"aten::linalg_lu_factor_ex", boxed_anywhere<linalg_lu_factor_ex>},
    {"aten::linalg_lu_solve", boxed_anywhere<linalg_lu_solve>},
    {"aten::linalg_qr", boxed_anywhere<linalg_qr>},
    {"aten::linalg_solve_triangular", boxed_anywhere<linalg_solve_triangular>},
};
static_assert(std::is_sorted(std::begin(kRows), std::end(kRows),
                             [](const Row& a, const Row& b) { return a.name < b.name; }));

}  // namespace

DeviceBackend::NamedKernel kernel_named(std::string_view name) noexcept {
  const Row* row = std::lower_bound(std::begin(kRows), std::end(kRows), name,
                                    [](const Row& r, std::string_view wanted) { return r.name < wanted; });
  return row != std::end(kRows) && row->name == name ? row->kernel : nullptr;
}

}  // namespace sconce::cuda
