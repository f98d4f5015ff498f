#include "src/loader/refusals.h"

namespace sconce::loader {
namespace {

struct Refusal {
  std::string_view prefix, text;
};

constexpr std::string_view kSparse = "conversions to sparse tensors, a layout that compiled code cannot use further";
constexpr std::string_view kCollective = "collective operations between processes: a served model is one process";
constexpr std::string_view kOverrideable =
    "an attention operator for third-party backends, which PyTorch itself has neither for the CPU nor for CUDA";
constexpr std::string_view kGenericAttention =
    "attention operators that PyTorch has for CUDA tensors only; their generic names are those of packages older than "
    "torch 2.6 (compile with torch 2.6 or later)";
constexpr std::string_view kPython = "Python objects: there is no Python in this process";

constexpr Refusal kRefusals[] = {
    {"aoti_torch__scaled_dot_product_efficient_attention", kGenericAttention},
    {"aoti_torch__scaled_dot_product_flash_attention", kGenericAttention},
    {"aoti_torch_cpu_to_sparse", kSparse},
    {"aoti_torch_cpu__to_sparse", kSparse},
    {"aoti_torch_cpu__c10d_functional_", kCollective},
    {"aoti_torch_cpu__scaled_dot_product_fused_attention_overrideable", kOverrideable},
    {"aoti_torch_cuda_to_sparse", kSparse},
    {"aoti_torch_cuda__to_sparse", kSparse},
    {"aoti_torch_cuda__scaled_dot_product_fused_attention_overrideable", kOverrideable},
    {"aoti_torch_mps_", "operators for MPS devices, on which sconce does not run"},
    {"aoti_torch_xpu_", "operators for XPU devices, on which sconce does not run"},
    {"torch_device_from_pyobject", kPython},
    {"torch_device_to_pyobject", kPython},
    {"torch_dtype_from_pyobject", kPython},
    {"torch_dtype_to_pyobject", kPython},
    {"torch_is_tensor_pyobject", kPython},
    {"torch_tensor_from_pyobject", kPython},
    {"torch_tensor_to_pyobject", kPython},
};

}  // namespace

std::string_view refusal_of(std::string_view symbol) noexcept {
  for (const Refusal& refusal : kRefusals)
    if (symbol.starts_with(refusal.prefix)) return refusal.text;
  return {};
}

}  // namespace sconce::loader
