#include "src/custom_ops/aten/refusals.h"

namespace sconce::custom_ops {
namespace {

struct Refusal {
  std::string_view prefix, text;
};

constexpr std::string_view kSparse = "sparse tensors, a layout that compiled code cannot use further";
constexpr std::string_view kQuantised = "tensors of quantised element types, which compiled code does not have";
constexpr std::string_view kNested = "nested tensors, which compiled code takes apart before it calls an operator";
constexpr std::string_view kTraining = "steps of optimisers, which belong to training";
constexpr std::string_view kForward = "forward-mode differentiation, which leaves no trace in a compiled model";
constexpr std::string_view kTests = "an operator of PyTorch's own tests";
constexpr std::string_view kUntraced =
    "an operator whose result has sizes or values that torch.export cannot record, so that no package can hold it";
constexpr std::string_view kThirdParty =
    "an operator for third-party backends, which PyTorch itself has neither for the CPU nor for CUDA";
constexpr std::string_view kFile = "reading files, which a served model must not do";

constexpr std::string_view kNoCpu = "an operator that PyTorch itself does not have for CPUs";

// The first matching prefix decides.
constexpr Refusal kRefusals[] = {
    {"aten::_amp_", kTraining},
    {"aten::_coalesced", kSparse},
    {"aten::_convert_indices_from_c", kSparse},
    {"aten::_ctc_loss", kUntraced},
    {"aten::_empty_affine_quantized", kQuantised},
    {"aten::_empty_per_channel_affine_quantized", kQuantised},
    {"aten::_fake_quantize_learnable_", kTraining},
    {"aten::_foobar", kTests},
    {"aten::_fused_adagrad", kTraining},
    {"aten::_fused_adam", kTraining},
    {"aten::_fused_sgd", kTraining},
    {"aten::_fused_sdp_choice", kUntraced},
    {"aten::_fw_primal", kForward},
    {"aten::_has_same_storage_numel", kUntraced},
    {"aten::_indices_copy", kSparse},
    {"aten::_local_scalar_dense", kUntraced},
    {"aten::_make_dual", kForward},
    {"aten::_make_per_", kQuantised},
    {"aten::_nested_", kNested},
    {"aten::_nnpack_spatial_convolution", kNoCpu},
    {"aten::_resize_output", kNoCpu},
    {"aten::_scaled_addmm", kNoCpu},
    {"aten::_scaled_dot_product_fused_attention_overrideable", kThirdParty},
    {"aten::_scaled_grouped_mm_v2", kNoCpu},
    {"aten::_sparse_", kSparse},
    {"aten::_spdiags", kSparse},
    {"aten::_test_", kTests},
    {"aten::_to_sparse", kSparse},
    {"aten::_validate_compressed_sparse_indices", kSparse},
    {"aten::_values_copy", kSparse},
    {"aten::allclose", kUntraced},
    {"aten::ccol_indices", kSparse},
    {"aten::col_indices", kSparse},
    {"aten::convolution_backward_overrideable", kThirdParty},
    {"aten::convolution_overrideable", kThirdParty},
    {"aten::copy_sparse_to_sparse", kSparse},
    {"aten::crow_indices", kSparse},
    {"aten::dense_dim", kSparse},
    {"aten::equal", kUntraced},
    {"aten::from_file", kFile},
    {"aten::glu_backward_jvp", kForward},
    {"aten::glu_jvp", kForward},
    {"aten::indices", kSparse},
    {"aten::is_coalesced", kSparse},
    {"aten::is_same_size", kUntraced},
    {"aten::is_set_to", kUntraced},
    {"aten::linalg_lstsq", kUntraced},
    {"aten::mkldnn_rnn_layer_backward", "gradients by the weights of a recurrent layer, which belong to training"},
    {"aten::quantize_per_", kQuantised},
    {"aten::quantized_", kQuantised},
    {"aten::resize_as_sparse", kSparse},
    {"aten::row_indices", kSparse},
    {"aten::set.source_Storage", "an operator on storages, which no package can hold"},
    {"aten::sparse_", kSparse},
    {"aten::to_mkldnn", "tensors in oneDNN's layout outside of packed weights, which compiled code does not have"},
    {"aten::to_sparse", kSparse},
    {"aten::values", kSparse},
};

}  // namespace

std::string_view refusal_of_operator(std::string_view name) noexcept {
  for (const Refusal& refusal : kRefusals)
    if (name.starts_with(refusal.prefix)) return refusal.text;
  return {};
}

}  // namespace sconce::custom_ops
