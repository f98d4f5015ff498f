// Operators that packages of earlier versions (from torch 2.6) call by name. Some have since got a C function; others
// no longer exist.
#include "src/cpu/elementwise/elementwise_ops.h"
#include "src/cpu/linalg/linalg.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/matrices/linalg_errors.h"

namespace sconce::custom_ops {
namespace {

Tensor int4_product(const Tensor& self, const Tensor& mat2, int64_t group, const Tensor& scales_and_zeros) {
  Tensor size = Tensor::empty({}, DType::kInt64);
  *size.data_as<int64_t>() = group;
  return cpu::_weight_int4pack_mm_cpu_tensor(self, mat2, size, scales_and_zeros);
}

Tensor cholesky(const Tensor& self, bool upper) {
  auto [factor, info] = cpu::linalg_cholesky_ex(self, upper, false);
  _linalg_check_errors(info, "cholesky", self.dim() == 2);
  return factor;
}

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_dyn_quant_matmul_4bit(Tensor inp, Tensor packed_weights, int block_size, int in_features, int out_features) -> Tensor", boxed<cpu::_dyn_quant_matmul_4bit>},
    {"aten::_dyn_quant_pack_4bit_weight(Tensor weights, Tensor scales_zeros, Tensor? bias, int block_size, int in_features, int out_features) -> Tensor", boxed<cpu::_dyn_quant_pack_4bit_weight>},
    {"aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)", boxed<cpu::_fused_rms_norm>},
    {"aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor", boxed<cpu::_grouped_mm>},
    {"aten::_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor", boxed<cpu::_scaled_mm>},
    {"aten::_weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor", boxed<int4_product>},
    {"aten::cholesky(Tensor self, bool upper=False) -> Tensor", boxed<cholesky>},
    {"aten::grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor", boxed<cpu::grid_sampler_3d>},
    {"aten::grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)", boxed<cpu::grid_sampler_3d_backward>},
    {"aten::hann_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::hann_window>},
    {"aten::hann_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::hann_window_periodic>},
    {"aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor", boxed<cpu::nonzero_static>},
    {"aten::rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", boxed<cpu::rand_like>, kRandom},
    {"aten::randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", boxed<cpu::randint_like>, kRandom},
    {"aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", boxed<cpu::randint_like_low_dtype>, kRandom},
    {"aten::randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", boxed<cpu::randn_like>, kRandom},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_earlier_rows() { return kRows; }

}  // namespace sconce::custom_ops
