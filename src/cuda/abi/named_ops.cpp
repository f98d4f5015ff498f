#include "src/cuda/abi/named_ops.h"

#include <algorithm>

#include "src/cuda/elementwise/elementwise.h"
#include "src/cuda/linalg/fft.h"
#include "src/cuda/linalg/linalg.h"
#include "src/cuda/matmul/matmul.h"
#include "src/cuda/pooling/resample.h"
#include "src/cuda/random/sampling.h"
#include "src/cuda/reduction/sum.h"
#include "src/cuda/sorting/sets.h"
#include "src/cuda/tensor/factory.h"
#include "src/cuda/vision/vision.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cuda_ops.h"

namespace sconce::cuda {
namespace {

using custom_ops::boxed_anywhere;

struct Row {
  std::string_view name;
  DeviceBackend::NamedKernel kernel;
};

// Sorted by name. Parameters follow the schemas in src/custom_ops.
constexpr Row kRows[] = {
    {"aten::_addmm_activation", boxed_anywhere<_addmm_activation>},
    {"aten::_conj", boxed_anywhere<conj>},
    {"aten::_conj_copy", boxed_anywhere<_conj_physical>},
    {"aten::_conj_physical", boxed_anywhere<_conj_physical>},
    {"aten::_fft_c2c", boxed_anywhere<_fft_c2c>},
    {"aten::_fft_c2r", boxed_anywhere<_fft_c2r>},
    {"aten::_fft_r2c", boxed_anywhere<_fft_r2c>},
    {"aten::_fused_rms_norm", boxed_anywhere<_fused_rms_norm>},
    {"aten::_grouped_mm", boxed_anywhere<_grouped_mm>},
    {"aten::_int_mm", boxed_anywhere<_int_mm>},
    {"aten::_linalg_det", boxed_anywhere<_linalg_det>},
    {"aten::_linalg_eigh", boxed_anywhere<_linalg_eigh>},
    {"aten::_linalg_eigvals", boxed_anywhere<_linalg_eigvals>},
    {"aten::_linalg_slogdet", boxed_anywhere<_linalg_slogdet>},
    {"aten::_linalg_solve_ex", boxed_anywhere<_linalg_solve_ex>},
    {"aten::_linalg_svd", boxed_anywhere<_linalg_svd>},
    {"aten::_neg_view", boxed_anywhere<neg>},
    {"aten::_scaled_mm", boxed_anywhere<_scaled_mm>},
    {"aten::_segment_reduce_backward", boxed_anywhere<_segment_reduce_backward>},
    {"aten::_unique2", boxed_anywhere<_unique2>},
    {"aten::_unsafe_index.Tensor", boxed_anywhere<index_Tensor>},
    {"aten::_unsafe_index_put", boxed_anywhere<index_put>},
    {"aten::_upsample_bicubic2d_aa", boxed_anywhere<upsample_aa<low_pass, LowPass::kBicubic>>},
    {"aten::_upsample_bicubic2d_aa_backward",
     boxed_anywhere<upsample_aa_backward<low_pass_backward, LowPass::kBicubic>>},
    {"aten::_upsample_bilinear2d_aa", boxed_anywhere<upsample_aa<low_pass, LowPass::kBilinear>>},
    {"aten::_upsample_bilinear2d_aa_backward",
     boxed_anywhere<upsample_aa_backward<low_pass_backward, LowPass::kBilinear>>},
    {"aten::_upsample_lanczos2d_aa", boxed_anywhere<upsample_aa<low_pass, LowPass::kLanczos>>},
    {"aten::_upsample_lanczos2d_aa_backward",
     boxed_anywhere<upsample_aa_backward<low_pass_backward, LowPass::kLanczos>>},
    {"aten::abs", boxed_anywhere<abs>},
    {"aten::add.Scalar", boxed_anywhere<add_number>},
    {"aten::add.Tensor", boxed_anywhere<add>},
    {"aten::addbmm", boxed_anywhere<addbmm>},
    {"aten::addmv", boxed_anywhere<addmv>},
    {"aten::angle", boxed_anywhere<angle>},
    {"aten::bernoulli", boxed_anywhere<bernoulli>},
    {"aten::bernoulli.Tensor", boxed_anywhere<bernoulli_tensor>},
    {"aten::bernoulli.p", boxed_anywhere<bernoulli_number>},
    {"aten::bincount", boxed_anywhere<bincount>},
    {"aten::bmm", boxed_anywhere<bmm>},
    {"aten::cat", boxed_anywhere<cat>},
    {"aten::complex", boxed_anywhere<complex>},
    {"aten::conj_physical", boxed_anywhere<conj_physical>},
    {"aten::cos", boxed_anywhere<cos>},
    {"aten::cumprod", boxed_anywhere<cumprod>},
    {"aten::cumsum", boxed_anywhere<cumsum>},
    {"aten::div.Scalar", boxed_anywhere<divide_number>},
    {"aten::div.Tensor", boxed_anywhere<divide>},
    {"aten::exp", boxed_anywhere<exp>},
    {"aten::full", boxed_anywhere<full>},
    {"aten::full_like", boxed_anywhere<full_like>},
    {"aten::gcd", boxed_anywhere<gcd>},
    {"aten::grid_sampler_3d", boxed_anywhere<grid_sampler_3d>},
    {"aten::grid_sampler_3d_backward", boxed_anywhere<grid_sampler_3d_backward>},
    {"aten::hann_window", boxed_anywhere<hann_window>},
    {"aten::histc", boxed_anywhere<histc>},
    {"aten::linalg_cholesky_ex", boxed_anywhere<linalg_cholesky_ex>},
    {"aten::linalg_eig", boxed_anywhere<linalg_eig>},
    {"aten::linalg_householder_product", boxed_anywhere<linalg_householder_product>},
    {"aten::linalg_inv_ex", boxed_anywhere<linalg_inv_ex>},
    {"aten::linalg_lu", boxed_anywhere<linalg_lu>},
    {"aten::linalg_lu_factor_ex", boxed_anywhere<linalg_lu_factor_ex>},
    {"aten::linalg_lu_solve", boxed_anywhere<linalg_lu_solve>},
    {"aten::linalg_matrix_exp", boxed_anywhere<linalg_matrix_exp>},
    {"aten::linalg_matrix_sqrth", boxed_anywhere<linalg_matrix_sqrth>},
    {"aten::linalg_pinv.atol_rtol_tensor", boxed_anywhere<linalg_pinv>},
    {"aten::linalg_polar", boxed_anywhere<linalg_polar>},
    {"aten::linalg_qr", boxed_anywhere<linalg_qr>},
    {"aten::linalg_solve_triangular", boxed_anywhere<linalg_solve_triangular>},
    {"aten::log", boxed_anywhere<log>},
    {"aten::masked_select", boxed_anywhere<masked_select>},
    {"aten::mean", boxed_anywhere<mean_all>},
    {"aten::mean.dim", boxed_anywhere<mean>},
    {"aten::mm", boxed_anywhere<mm>},
    {"aten::mul.Scalar", boxed_anywhere<multiply_number>},
    {"aten::mul.Tensor", boxed_anywhere<multiply>},
    {"aten::multinomial", boxed_anywhere<multinomial>},
    {"aten::neg", boxed_anywhere<neg>},
    {"aten::new_full", boxed_anywhere<new_full>},
    {"aten::new_ones", boxed_anywhere<new_ones>},
    {"aten::new_zeros", boxed_anywhere<new_zeros>},
    {"aten::nonzero", boxed_anywhere<nonzero>},
    {"aten::nonzero_static", boxed_anywhere<nonzero_static>},
    {"aten::normal.Tensor_Tensor", boxed_anywhere<normal_tensors>},
    {"aten::normal.Tensor_float", boxed_anywhere<normal_tensor_number>},
    {"aten::normal.float_Tensor", boxed_anywhere<normal_number_tensor>},
    {"aten::normal.float_float", boxed_anywhere<normal_numbers>},
    {"aten::ones", boxed_anywhere<made_ones>},
    {"aten::ones_like", boxed_anywhere<ones_like>},
    {"aten::pad", boxed_anywhere<pad>},
    {"aten::polar", boxed_anywhere<polar>},
    {"aten::pow.Scalar", boxed_anywhere<number_power>},
    {"aten::pow.Tensor_Scalar", boxed_anywhere<power_of_number>},
    {"aten::pow.Tensor_Tensor", boxed_anywhere<pow_Tensor_Tensor>},
    {"aten::rand", boxed_anywhere<rand>},
    {"aten::rand_like", boxed_anywhere<rand_like>},
    {"aten::randint.low_generator", boxed_anywhere<randint_low_generator>},
    {"aten::randint_like", boxed_anywhere<randint_like>},
    {"aten::randint_like.Tensor", boxed_anywhere<randint_like_tensor>},
    {"aten::randint_like.Tensor_generator", boxed_anywhere<randint_like_tensor_generator>},
    {"aten::randint_like.generator", boxed_anywhere<randint_like_generator>},
    {"aten::randint_like.low_dtype", boxed_anywhere<randint_like_low_dtype>},
    {"aten::randint_like.low_generator_dtype", boxed_anywhere<randint_like_low_generator>},
    {"aten::randn", boxed_anywhere<randn>},
    {"aten::randn_like", boxed_anywhere<randn_like>},
    {"aten::reciprocal", boxed_anywhere<reciprocal>},
    {"aten::replication_pad1d_backward", boxed_anywhere<replication_pad1d_backward>},
    {"aten::replication_pad2d_backward", boxed_anywhere<replication_pad2d_backward>},
    {"aten::scalar_tensor", boxed_anywhere<scalar_tensor>},
    {"aten::searchsorted.Scalar", boxed_anywhere<searchsorted_Scalar>},
    {"aten::searchsorted.Tensor", boxed_anywhere<searchsorted_Tensor>},
    {"aten::segment_reduce", boxed_anywhere<segment_reduce>},
    {"aten::sigmoid", boxed_anywhere<sigmoid>},
    {"aten::sin", boxed_anywhere<sin>},
    {"aten::sort", boxed_anywhere<sort>},
    {"aten::sort.stable", boxed_anywhere<sort_stable>},
    {"aten::sqrt", boxed_anywhere<sqrt>},
    {"aten::sub.Scalar", boxed_anywhere<subtract_number>},
    {"aten::sub.Tensor", boxed_anywhere<subtract>},
    {"aten::subtract.Scalar", boxed_anywhere<subtract_number>},
    {"aten::subtract.Tensor", boxed_anywhere<subtract>},
    {"aten::sum", boxed_anywhere<sum_all>},
    {"aten::sum.dim_IntList", boxed_anywhere<sum>},
    {"aten::tanh", boxed_anywhere<tanh>},
    {"aten::topk", boxed_anywhere<topk>},
    {"aten::zeros", boxed_anywhere<made_zeros>},
    {"aten::zeros_like", boxed_anywhere<zeros_like>},
    {"prims::inductor_randint", boxed_anywhere<inductor_randint>},
    {"prims::inductor_random", boxed_anywhere<inductor_random>},
    {"prims::inductor_seed", boxed_anywhere<inductor_seed>},
    {"prims::inductor_seeds", boxed_anywhere<inductor_seeds>},
    {"torchvision::deform_conv2d", boxed_anywhere<deform_conv2d>},
    {"torchvision::nms", boxed_anywhere<nms>},
    {"torchvision::ps_roi_align", boxed_anywhere<ps_roi_align>},
    {"torchvision::ps_roi_pool", boxed_anywhere<ps_roi_pool>},
    {"torchvision::roi_align", boxed_anywhere<roi_align>},
    {"torchvision::roi_pool", boxed_anywhere<roi_pool>},
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
