// Attention over float8 (e4m3) tensors: computed in bfloat16, with scale factors.
#pragma once

#include "src/aoti_abi/op_args.h"
#include "src/cuda/attention/attention.h"

namespace sconce::cuda {

// Factors for tensors [B, H, T, D], each float32 [B, key heads]; undefined means 1. Only float8 has factors.
struct Descale {
  Tensor query, key, value;
};

inline Descale descale_of(AtenTensorHandle* query, AtenTensorHandle* key, AtenTensorHandle* value) {
  const auto taken = [](AtenTensorHandle* handle) {
    const Tensor* t = aoti_abi::optional_in(handle);
    return t ? *t : Tensor();
  };
  return {taken(query), taken(key), taken(value)};
}

// The result's dtype for operands of `dtype`: bfloat16 for float8, else the same.
DType attended_dtype(DType dtype);
// attend() that also takes float8. Throws kInvalidArgument for factors of other sizes.
Attention attend_wide(const AttentionCall& call, const Descale& descale, const Tensor& query, const Tensor& key,
                      const Tensor& value);

// Refuses what FlashAttention 3 refuses, on which PyTorch's operators for float8 rely.
void check_quantized(const char* name, double dropout_p, bool return_debug_mask);

}  // namespace sconce::cuda
