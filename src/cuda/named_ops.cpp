#include "src/cuda/named_ops.h"

#include <algorithm>

#include "src/cuda/elementwise.h"
#include "src/cuda/fft.h"
#include "src/cuda/linalg.h"
#include "src/cuda/matmul.h"
#include "src/cuda/ops.h"
#include "src/custom_ops/boxed.h"
#include "src/ops/dimensions.h"
#include "src/ops/movement.h"
#include "src/ops/view.h"

namespace sconce::cuda {
namespace {

using custom_ops::boxed_anywhere;

// Views, and copies that know devices.
Tensor itself(const Tensor& self) { return self; }
Tensor expanded(const Tensor& self, IntSpan size, bool) { return cpu::expand(self, size); }

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
    {"aten::_stack", boxed_anywhere<cpu::stack>},
    {"aten::_unsafe_index.Tensor", boxed_anywhere<index_Tensor>},
    {"aten::_unsafe_index_put", boxed_anywhere<index_put>},
    {"aten::add.Tensor", boxed_anywhere<add>},
    {"aten::alias", boxed_anywhere<itself>},
    {"aten::angle", boxed_anywhere<angle>},
    {"aten::as_strided", boxed_anywhere<cpu::as_strided>},
    {"aten::bmm", boxed_anywhere<bmm>},
    {"aten::cat", boxed_anywhere<cat>},
    {"aten::cumprod", boxed_anywhere<cumprod>},
    {"aten::cumsum", boxed_anywhere<cumsum>},
    {"aten::detach", boxed_anywhere<itself>},
    {"aten::diagonal", boxed_anywhere<cpu::diagonal>},
    {"aten::diagonal_scatter", boxed_anywhere<cpu::diagonal_scatter>},
    {"aten::expand", boxed_anywhere<expanded>},
    {"aten::flatten.using_ints", boxed_anywhere<cpu::flatten>},
    {"aten::gcd", boxed_anywhere<gcd>},
    {"aten::lift_fresh", boxed_anywhere<itself>},
    {"aten::linalg_cholesky_ex", boxed_anywhere<linalg_cholesky_ex>},
    {"aten::linalg_eig", boxed_anywhere<linalg_eig>},
    {"aten::linalg_householder_product", boxed_anywhere<linalg_householder_product>},
    {"aten::linalg_inv_ex", boxed_anywhere<linalg_inv_ex>},
    {"aten::linalg_lu", boxed_anywhere<linalg_lu>},
    {"aten::linalg_lu_factor_ex", boxed_anywhere<linalg_lu_factor_ex>},
    {"aten::linalg_lu_solve", boxed_anywhere<linalg_lu_solve>},
    {"aten::linalg_qr", boxed_anywhere<linalg_qr>},
    {"aten::linalg_solve_triangular", boxed_anywhere<linalg_solve_triangular>},
    {"aten::masked_select", boxed_anywhere<masked_select>},
    {"aten::mm", boxed_anywhere<mm>},
    {"aten::mul.Scalar", boxed_anywhere<multiply_number>},
    {"aten::mul.Tensor", boxed_anywhere<multiply>},
    {"aten::narrow", boxed_anywhere<cpu::narrow>},
    {"aten::nonzero", boxed_anywhere<nonzero>},
    {"aten::pad", boxed_anywhere<pad>},
    {"aten::permute", boxed_anywhere<cpu::permute>},
    {"aten::polar", boxed_anywhere<polar>},
    {"aten::pow.Tensor_Tensor", boxed_anywhere<pow_Tensor_Tensor>},
    {"aten::repeat", boxed_anywhere<cpu::repeat>},
    {"aten::reshape", boxed_anywhere<cpu::reshape>},
    {"aten::resolve_conj", boxed_anywhere<itself>},
    {"aten::searchsorted.Tensor", boxed_anywhere<searchsorted_Tensor>},
    {"aten::select.int", boxed_anywhere<cpu::select>},
    {"aten::select_scatter", boxed_anywhere<cpu::select_scatter>},
    {"aten::slice.Tensor", boxed_anywhere<cpu::slice_Tensor>},
    {"aten::slice_scatter", boxed_anywhere<cpu::slice_scatter>},
    {"aten::sort", boxed_anywhere<sort>},
    {"aten::sort.stable", boxed_anywhere<sort_stable>},
    {"aten::split.Tensor", boxed_anywhere<cpu::split>},
    {"aten::split_with_sizes", boxed_anywhere<cpu::split_with_sizes>},
    {"aten::squeeze", boxed_anywhere<cpu::squeeze>},
    {"aten::squeeze.dim", boxed_anywhere<cpu::squeeze_dim>},
    {"aten::squeeze.dims", boxed_anywhere<cpu::squeeze_dims>},
    {"aten::stack", boxed_anywhere<cpu::stack>},
    {"aten::sub.Tensor", boxed_anywhere<subtract>},
    {"aten::subtract.Tensor", boxed_anywhere<subtract>},
    {"aten::t", boxed_anywhere<cpu::t>},
    {"aten::topk", boxed_anywhere<topk>},
    {"aten::transpose.int", boxed_anywhere<cpu::transpose>},
    {"aten::unbind.int", boxed_anywhere<cpu::unbind>},
    {"aten::unfold", boxed_anywhere<cpu::unfold>},
    {"aten::unsqueeze", boxed_anywhere<cpu::unsqueeze>},
    {"aten::view", boxed_anywhere<cpu::view>},
    {"aten::view.dtype", boxed_anywhere<cpu::view_dtype>},
    {"aten::view_as_complex", boxed_anywhere<cpu::view_as_complex>},
    {"aten::view_as_real", boxed_anywhere<cpu::view_as_real>},
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
