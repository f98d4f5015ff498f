// Properties of a tensor that a model reads. ABI: c/shim.h, torch 2.6 to 2.15; semantics of shim_common.cpp. Pointers
// to sizes and strides stay valid and do not move while the handle lives.
#include "src/aoti_abi/guard.h"
#include "src/aoti_abi/op_args.h"

using sconce::Tensor;
using sconce::aoti_abi::guard;
using sconce::aoti_abi::in;

namespace {

int64_t wrap_dim(const Tensor& t, int64_t d, const char* what) {
  SCONCE_CHECK(d >= -t.dim() && d < t.dim(), kInvalidArgument, what, ": dimension ", d, " out of range for rank ",
               t.dim());
  return d < 0 ? d + t.dim() : d;
}

}  // namespace

// Models call these tens of times per run, so success is the straight path and a null argument is the only failure.
#define SCONCE_GETTER(name, type, expression)                                                     \
  extern "C" AOTITorchError aoti_torch_##name(AtenTensorHandle tensor, type* result) {            \
    if (!tensor || !result) [[unlikely]]                                                          \
      return guard("aoti_torch_" #name, [&] { SCONCE_FAIL(kInvalidArgument, "null argument"); }); \
    const Tensor& t = *sconce::aoti_abi::tensor_of(tensor);                                       \
    *result = expression;                                                                         \
    return 0;                                                                                     \
  }

SCONCE_GETTER(get_data_ptr, void*, t.data())
SCONCE_GETTER(get_dim, int64_t, t.dim())
SCONCE_GETTER(get_numel, int64_t, t.numel())
SCONCE_GETTER(get_storage_size, int64_t, t.defined() ? static_cast<int64_t>(t.storage()->bytes()) : 0)
SCONCE_GETTER(get_storage_numel, int64_t, t.defined() ? static_cast<int64_t>(t.storage()->bytes() / t.itemsize()) : 0)
SCONCE_GETTER(get_sizes, int64_t*, const_cast<int64_t*>(t.sizes().data()))
SCONCE_GETTER(get_strides, int64_t*, const_cast<int64_t*>(t.strides().data()))
SCONCE_GETTER(get_dtype, int32_t, static_cast<int32_t>(t.dtype()))
SCONCE_GETTER(get_device_type, int32_t, static_cast<int32_t>(t.device().type))
SCONCE_GETTER(get_device_index, int32_t, t.device().index)
SCONCE_GETTER(get_layout, int32_t, static_cast<int32_t>(t.layout()))
SCONCE_GETTER(get_storage_offset, int64_t, t.storage_offset())
SCONCE_GETTER(is_contiguous, bool, t.is_contiguous())
SCONCE_GETTER(is_defined, bool, t.defined())

extern "C" {

AOTITorchError aoti_torch_get_size(AtenTensorHandle tensor, int64_t d, int64_t* result) {
  return guard("aoti_torch_get_size", [&] {
    const Tensor& t = in(tensor, "tensor");
    *result = t.size(wrap_dim(t, d, "size"));
  });
}

AOTITorchError aoti_torch_get_stride(AtenTensorHandle tensor, int64_t d, int64_t* result) {
  return guard("aoti_torch_get_stride", [&] {
    const Tensor& t = in(tensor, "tensor");
    *result = t.stride(wrap_dim(t, d, "stride"));
  });
}

AOTITorchError torch_get_const_data_ptr(AtenTensorHandle tensor, const void** result) {
  return guard("torch_get_const_data_ptr", [&] { *result = in(tensor, "tensor").data(); });
}
AOTITorchError torch_get_mutable_data_ptr(AtenTensorHandle tensor, void** result) {
  return guard("torch_get_mutable_data_ptr", [&] { *result = in(tensor, "tensor").data(); });
}
AOTITorchError torch_has_storage(AtenTensorHandle tensor, bool* result) {
  return guard("torch_has_storage", [&] { *result = in(tensor, "tensor").defined(); });
}
// Sconce computes no gradients of its own, so this only checks the handle.
AOTITorchError torch_set_requires_grad(AtenTensorHandle tensor, bool) {
  return guard("torch_set_requires_grad", [&] { in(tensor, "tensor"); });
}

}  // extern "C"
