// Copies and clones. ABI: c/shim.h, torch 2.6 to 2.15. Note the order of arguments: tensor_copy_ takes (src, dst),
// copy_ takes (self, src).
#include "src/aoti_abi/guard.h"
#include "src/aoti_abi/op_args.h"
#include "src/tensor/copy.h"
#include "src/tensor/fill.h"

using sconce::aoti_abi::guard;
using sconce::aoti_abi::in;
using sconce::aoti_abi::new_handle;

extern "C" {

AOTITorchError aoti_torch_clone(AtenTensorHandle self, AtenTensorHandle* ret) {
  return guard("aoti_torch_clone", [&] { *ret = new_handle(sconce::clone(in(self, "self"))); });
}

AOTITorchError aoti_torch_clone_preserve_strides(AtenTensorHandle self, AtenTensorHandle* ret) {
  return guard("aoti_torch_clone_preserve_strides",
               [&] { *ret = new_handle(sconce::clone_preserve_strides(in(self, "self"))); });
}

AOTITorchError aoti_torch_copy_(AtenTensorHandle self, AtenTensorHandle src, int32_t) {
  return guard("aoti_torch_copy_", [&] { sconce::copy(in(src, "src"), in(self, "self")); });
}

AOTITorchError aoti_torch_tensor_copy_(AtenTensorHandle src, AtenTensorHandle dst) {
  return guard("aoti_torch_tensor_copy_", [&] { sconce::copy(in(src, "src"), in(dst, "dst")); });
}

AOTITorchError aoti_torch_zero_(AtenTensorHandle self) {
  return guard("aoti_torch_zero_", [&] { sconce::zero(in(self, "self")); });
}

}  // extern "C"
