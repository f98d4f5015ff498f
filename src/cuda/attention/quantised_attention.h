// Attention of float8 (e4m3) tensors: as bfloat16, with what they are to be multiplied by.
#pragma once

#include "src/cuda/attention/attention.h"
#include "src/shim/op_args.h"

namespace sconce::cuda {

// Factors of tensors [B, H, T, D], float32 [B, heads of keys] for all three; undefined: 1. Only float8 has any.
struct Descale {
  Tensor query, key, value;
};

inline Descale descale_of(AtenTensorHandle* query, AtenTensorHandle* key, AtenTensorHandle* value) {
  const auto taken = [](AtenTensorHandle* handle) {
    const Tensor* t = shim::optional_in(handle);
    return t ? *t : Tensor();
  };
  return {taken(query), taken(key), taken(value)};
}

// Of what attention to tensors of that dtype gives: bfloat16 of float8, its own else.
DType attended_dtype(DType dtype);
// attend(), of float8 as well. kInvalidArgument for factors of other sizes.
Attention attend_wide(const AttentionCall& call, const Descale& descale, const Tensor& query, const Tensor& key,
                      const Tensor& value);

// What the operators for float8 refuse, as FlashAttention 3 does, without which PyTorch has them not.
void check_quantized(const char* name, double dropout_p, bool return_debug_mask);

}  // namespace sconce::cuda
