// C ABI of attention over [B, H, T, D] and of its gradients, declared in generated/c_shim_cuda.h. Matches
// aten::_scaled_dot_product_efficient_attention, _flash_attention, _flash_attention.quantized and _cudnn_attention
// (torch 2.15) and their gradients, including the random numbers of dropout. cuDNN draws its own, so there we refuse
// dropout.
#include <limits>

#include "src/aoti_abi/guard.h"
#include "src/aoti_abi/op_args.h"
#include "src/aoti_abi/results.h"
#include "src/cuda/attention/quantised_attention.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/stream.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

// Seed and offset when nothing was drawn: uninitialised, as PyTorch's are.
Tensor no_random_state(const Tensor& like, IntSpan sizes, DType dtype) {
  return Tensor::empty(sizes, dtype, like.device());
}

Tensor with_sizes(const Tensor& t, IntSpan sizes) {
  Shape strides(sizes);
  contiguous_strides(sizes, strides.data());
  return t.as_strided(sizes, strides, t.storage_offset());
}

void check_rank(const char* name, const Tensor& query, const Tensor& key) {
  SCONCE_CHECK(query.dim() == 4 && key.dim() == 4, kInvalidArgument, name, ": expected tensors of 4 dimensions, got ",
               describe(query), " and ", describe(key));
}

struct FlashResults {
  AtenTensorHandle *out, *logsumexp, *cum_seq_q, *cum_seq_k;
  int64_t *max_q, *max_k;
  AtenTensorHandle *rng_state, *unused, *debug_mask;
};

// Sets the fields of `call` that follow from the tensors; the caller has set the others.
void flash(AttentionCall& call, const Descale& descale, const Tensor& q, const Tensor& k, const Tensor& v,
           bool is_causal, const FlashResults& results, const Tensor& state, const Tensor& unused) {
  call.causal = is_causal && q.size(2) > 1;
  call.from_end = true;
  call.layout = OutLayout::kOfQuery;
  call.logsumexp_rows = q.size(2);
  const Attention done = attend_wide(call, descale, q, k, v);
  if (results.max_q) *results.max_q = q.size(2);
  if (results.max_k) *results.max_k = k.size(2);
  const int64_t none = 0;
  aoti_abi::deliver(std::array<Tensor, 7>{done.out, done.logsumexp, Tensor(), Tensor(), state, unused,
                                          Tensor::empty(IntSpan(&none, 1), done.out.dtype(), q.device())},
                    results.out, results.logsumexp, results.cum_seq_q, results.cum_seq_k, results.rng_state,
                    results.unused, results.debug_mask);
}

void check_no_dropout(const char* name, double p) {
  SCONCE_CHECK(p == 0, kUnsupported, name, ": dropout is not supported, because cuDNN draws its own random numbers");
}

}  // namespace
}  // namespace sconce::cuda

using namespace sconce;
using aoti_abi::deliver;
using aoti_abi::guard;
using aoti_abi::in;
using aoti_abi::optional_in;
using aoti_abi::optional_value;

extern "C" {

AOTITorchError aoti_torch_cuda__scaled_dot_product_efficient_attention(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, AtenTensorHandle* attn_bias,
    int32_t compute_log_sumexp, double dropout_p, int32_t is_causal, double* scale, AtenTensorHandle* ret0,
    AtenTensorHandle* ret1, AtenTensorHandle* ret2, AtenTensorHandle* ret3) {
  return guard("aoti_torch_cuda__scaled_dot_product_efficient_attention", [&] {
    const Tensor& q = in(query, "query");
    cuda::AttentionCall call("efficient attention");
    const Tensor& k = in(key, "key");
    cuda::check_rank(call.name, q, k);
    const cuda::DeviceScope scope(q.device());
    call.bias = optional_in(attn_bias);
    call.dropout = cuda::draw_efficient_dropout(call.name, dropout_p, q.size(0) * q.size(1) * q.size(2) * k.size(2),
                                                q.size(1), q.size(2), k.size(2));
    call.causal = is_causal;
    call.scale = optional_value<double>(scale);
    // Rows are padded to a multiple of 32 per head.
    call.logsumexp_rows = compute_log_sumexp ? (q.size(2) + 31) / 32 * 32 : 0;
    call.empty_logsumexp = -std::numeric_limits<float>::infinity();
    cuda::Attention done = cuda::attend(call, q, k, in(value, "value"));
    const cuda::EfficientState state = cuda::efficient_state(call.dropout, q.device());
    deliver(std::array<Tensor, 4>{done.out, done.logsumexp, state.seed, state.offset}, ret0, ret1, ret2, ret3);
  });
}

AOTITorchError aoti_torch_cuda__scaled_dot_product_flash_attention(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, double dropout_p, int32_t is_causal,
    int32_t return_debug_mask, double* scale, AtenTensorHandle* ret0, AtenTensorHandle* ret1, AtenTensorHandle* ret2,
    AtenTensorHandle* ret3, int64_t* ret4, int64_t* ret5, AtenTensorHandle* ret6, AtenTensorHandle* ret7,
    AtenTensorHandle* ret8) {
  return guard("aoti_torch_cuda__scaled_dot_product_flash_attention", [&] {
    const Tensor& q = in(query, "query");
    cuda::AttentionCall call("flash attention");
    const Tensor& k = in(key, "key");
    cuda::check_rank(call.name, q, k);
    SCONCE_CHECK(dropout_p == 0 || !return_debug_mask, kUnsupported, call.name,
                 ": return_debug_mask with dropout is not supported");
    const cuda::DeviceScope scope(q.device());
    call.dropout = cuda::draw_flash_dropout(call.name, dropout_p, q.size(0), q.size(1));
    call.scale = optional_value<double>(scale);
    call.empty_logsumexp = std::numeric_limits<float>::infinity();
    cuda::flash(call, {}, q, k, in(value, "value"), is_causal, {ret0, ret1, ret2, ret3, ret4, ret5, ret6, ret7, ret8},
                cuda::flash_state(call.dropout, q.device()), cuda::no_random_state(q, {}, DType::kUInt64));
  });
}

AOTITorchError aoti_torch_cuda__scaled_dot_product_flash_attention_quantized(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, AtenTensorHandle* q_descale,
    AtenTensorHandle* k_descale, AtenTensorHandle* v_descale, double dropout_p, int32_t is_causal,
    int32_t return_debug_mask, double* scale, AtenTensorHandle* ret0, AtenTensorHandle* ret1, AtenTensorHandle* ret2,
    AtenTensorHandle* ret3, int64_t* ret4, int64_t* ret5, AtenTensorHandle* ret6, AtenTensorHandle* ret7,
    AtenTensorHandle* ret8) {
  return guard("aoti_torch_cuda__scaled_dot_product_flash_attention_quantized", [&] {
    const Tensor &q = in(query, "query"), &k = in(key, "key");
    cuda::AttentionCall call("_scaled_dot_product_flash_attention.quantized");
    cuda::check_rank(call.name, q, k);
    cuda::check_quantized(call.name, dropout_p, return_debug_mask);
    const cuda::DeviceScope scope(q.device());
    call.scale = optional_value<double>(scale);
    call.empty_logsumexp = -std::numeric_limits<float>::infinity();
    const int64_t two = 2;
    cuda::flash(call, cuda::descale_of(q_descale, k_descale, v_descale), q, k, in(value, "value"), is_causal,
                {ret0, ret1, ret2, ret3, ret4, ret5, ret6, ret7, ret8},
                cuda::zeros(IntSpan(&two, 1), DType::kUInt64, q.device()), cuda::zeros({}, DType::kUInt64, q.device()));
  });
}

AOTITorchError aoti_torch_cuda__scaled_dot_product_cudnn_attention(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, AtenTensorHandle* attn_bias,
    int32_t compute_log_sumexp, double dropout_p, int32_t is_causal, int32_t, double* scale, AtenTensorHandle* ret0,
    AtenTensorHandle* ret1, AtenTensorHandle* ret2, AtenTensorHandle* ret3, int64_t* ret4, int64_t* ret5,
    AtenTensorHandle* ret6, AtenTensorHandle* ret7, AtenTensorHandle* ret8) {
  return guard("aoti_torch_cuda__scaled_dot_product_cudnn_attention", [&] {
    const Tensor& q = in(query, "query");
    cuda::AttentionCall call("cuDNN attention");
    call.bias = optional_in(attn_bias);
    cuda::check_no_dropout(call.name, dropout_p);
    call.causal = is_causal;
    call.scale = optional_value<double>(scale);
    call.layout = cuda::OutLayout::kOfQuery;
    call.logsumexp_rows = compute_log_sumexp && q.dim() == 4 ? q.size(2) : 0;
    call.empty_logsumexp = -std::numeric_limits<float>::infinity();
    cuda::Attention done = cuda::attend(call, q, in(key, "key"), in(value, "value"));
    if (ret4) *ret4 = q.size(2);
    if (ret5) *ret5 = in(key, "key").size(2);
    const int64_t sizes[] = {q.size(0), q.size(1), q.size(2), 1};
    const int64_t none = 0;
    const Tensor state = cuda::no_random_state(q, {}, DType::kInt64);
    const Tensor logsumexp = compute_log_sumexp ? cuda::with_sizes(done.logsumexp, sizes) : Tensor();
    deliver(std::array<Tensor, 7>{done.out, logsumexp, Tensor(), Tensor(), state, state,
                                  Tensor::empty(IntSpan(&none, 1), q.dtype(), q.device())},
            ret0, ret1, ret2, ret3, ret6, ret7, ret8);
  });
}

AOTITorchError aoti_torch_cuda__scaled_dot_product_flash_attention_backward(
    AtenTensorHandle grad_out, AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, AtenTensorHandle,
    AtenTensorHandle logsumexp, AtenTensorHandle, AtenTensorHandle, int64_t, int64_t, double dropout_p,
    int32_t is_causal, AtenTensorHandle philox_seed, AtenTensorHandle, double* scale, AtenTensorHandle* ret0,
    AtenTensorHandle* ret1, AtenTensorHandle* ret2) {
  return guard("aoti_torch_cuda__scaled_dot_product_flash_attention_backward", [&] {
    const Tensor& q = in(query, "query");
    cuda::GradientCall call("flash attention backward", in(grad_out, "grad_out"), q, in(key, "key"), in(value, "value"),
                            in(logsumexp, "logsumexp"));
    cuda::check_rank(call.name, q, call.key);
    const cuda::DeviceScope scope(q.device());
    if (dropout_p != 0)
      call.dropout = cuda::flash_dropout(call.name, dropout_p, q.size(1), in(philox_seed, "philox_seed"));
    call.causal = is_causal && q.size(2) > 1;
    call.from_end = true;
    call.scale = optional_value<double>(scale);
    cuda::Gradients done = cuda::attention_gradients(call);
    deliver(std::array<Tensor, 3>{done.query, done.key, done.value}, ret0, ret1, ret2);
  });
}

AOTITorchError aoti_torch_cuda__scaled_dot_product_efficient_attention_backward(
    AtenTensorHandle grad_out, AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value,
    AtenTensorHandle attn_bias, AtenTensorHandle, AtenTensorHandle logsumexp, AtenTensorHandle philox_seed,
    AtenTensorHandle philox_offset, double dropout_p, const int32_t* grad_input_mask, int64_t grad_input_mask_len,
    int32_t is_causal, double* scale, AtenTensorHandle* ret0, AtenTensorHandle* ret1, AtenTensorHandle* ret2,
    AtenTensorHandle* ret3) {
  return guard("aoti_torch_cuda__scaled_dot_product_efficient_attention_backward", [&] {
    cuda::GradientCall call("efficient attention backward", in(grad_out, "grad_out"), in(query, "query"),
                            in(key, "key"), in(value, "value"), in(logsumexp, "logsumexp"));
    call.bias = optional_in(&attn_bias);
    const Tensor& q = call.query;
    cuda::check_rank(call.name, q, call.key);
    const cuda::DeviceScope scope(q.device());
    if (dropout_p != 0)
      call.dropout = cuda::efficient_dropout(call.name, dropout_p, q.size(1), q.size(2), call.key.size(2),
                                             in(philox_seed, "philox_seed"), in(philox_offset, "philox_offset"));
    call.causal = is_causal;
    call.scale = optional_value<double>(scale);
    call.by_token = true;
    call.of_bias = grad_input_mask_len == 4 && grad_input_mask[3];
    cuda::Gradients done = cuda::attention_gradients(call);
    deliver(std::array<Tensor, 4>{done.query, done.key, done.value, done.bias}, ret0, ret1, ret2, ret3);
  });
}

AOTITorchError aoti_torch_cuda__scaled_dot_product_cudnn_attention_backward(
    AtenTensorHandle grad_out, AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, AtenTensorHandle,
    AtenTensorHandle logsumexp, AtenTensorHandle, AtenTensorHandle, AtenTensorHandle attn_bias, AtenTensorHandle,
    AtenTensorHandle, int64_t, int64_t, double dropout_p, int32_t is_causal, double* scale, AtenTensorHandle* ret0,
    AtenTensorHandle* ret1, AtenTensorHandle* ret2) {
  return guard("aoti_torch_cuda__scaled_dot_product_cudnn_attention_backward", [&] {
    cuda::GradientCall call("cuDNN attention backward", in(grad_out, "grad_out"), in(query, "query"), in(key, "key"),
                            in(value, "value"), in(logsumexp, "logsumexp"));
    call.bias = optional_in(&attn_bias);
    cuda::check_no_dropout(call.name, dropout_p);
    call.causal = is_causal;
    call.scale = optional_value<double>(scale);
    cuda::Gradients done = cuda::attention_gradients(call);
    deliver(std::array<Tensor, 3>{done.query, done.key, done.value}, ret0, ret1, ret2);
  });
}

}  // extern "C"
