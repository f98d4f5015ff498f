// C ABI of attention for models that batch sequences themselves, declared in generated/c_shim_cuda.h. Matches
// aten::_flash_attention_forward, _efficient_attention_forward and their gradients (torch 2.15), including the random
// numbers of dropout. ALiBi slopes follow FlashAttention (PyTorch is built without them). The debug mask of dropped
// elements is not supported.
#include <limits>

#include "src/aoti_abi/guard.h"
#include "src/aoti_abi/op_args.h"
#include "src/aoti_abi/results.h"
#include "src/cuda/attention/sequence_attention.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/stream.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

// A window that covers all keys counts as none.
AttentionSight flash_sight(bool causal, const int64_t* left, const int64_t* right, int64_t keys) {
  AttentionSight sight;
  sight.from_end = true;
  const auto side = [keys](const int64_t* given) { return !given || *given >= keys ? int64_t{-1} : *given; };
  sight.left = side(left);
  sight.right = causal ? 0 : side(right);
  sight.bounded = sight.left >= 0;
  sight.causal = sight.right >= 0;
  return sight;
}

AttentionSight efficient_sight(const char* name, int64_t mask, const int64_t* window) {
  SCONCE_CHECK(mask >= 0 && mask <= 2, kInvalidArgument, name, ": custom_mask_type ", mask);
  AttentionSight sight;
  sight.causal = mask != 0;
  sight.from_end = mask == 2;
  sight.bounded = window && *window > 0;
  sight.left = sight.bounded ? *window - 1 : 0;
  return sight;
}

// most_queries and most_keys are one common length or, with several lengths, the longest.
int64_t sequences_in(const SequenceCall& call) {
  return call.cumulative_q ? std::max<int64_t>(call.cumulative_q->numel() - 1, 0) : call.query.size(0);
}
int64_t heads_in(const SequenceCall& call) {
  SCONCE_CHECK(call.query.dim() >= 3, kInvalidArgument, call.name, ": query is ", describe(call.query));
  return call.query.size(call.query.dim() - 2);
}
// Counted as PyTorch does: all pairs of tokens in a row, across sequence boundaries.
int64_t score_count(const SequenceCall& call) {
  const Tensor &q = call.query, &k = call.key;
  return (q.dim() == 4 ? q.size(0) : 1) * heads_in(call) * q.size(q.dim() - 3) * k.size(k.dim() - 3);
}
// If no lengths are given, takes them from the tensors.
void take_lengths(SequenceCall& call) {
  SCONCE_CHECK(call.query.dim() >= 3 && call.key.dim() >= 3, kInvalidArgument, call.name, ": query is ",
               describe(call.query), " and key ", describe(call.key));
  if (call.cumulative_q) return;
  call.most_queries = call.query.size(call.query.dim() - 3);
  call.most_keys = call.key.size(call.key.dim() - 3);
}

struct FlashGiven {
  AtenTensorHandle query, key, value;
  AtenTensorHandle *cum_seq_q, *cum_seq_k;
  int64_t max_q, max_k;
  double* scale;
  int64_t *window_left, *window_right;
  AtenTensorHandle* seqused_k;
  bool causal;
  AtenTensorHandle* alibi_slopes = nullptr;
  AtenTensorHandle* block_table = nullptr;
  Descale descale = {};
};

SequenceCall flash_call(const char* name, const FlashGiven& given) {
  SequenceCall call{name, aoti_abi::in(given.query, "query"), aoti_abi::in(given.key, "key"),
                    aoti_abi::in(given.value, "value")};
  call.cumulative_q = aoti_abi::optional_in(given.cum_seq_q);
  call.cumulative_k = aoti_abi::optional_in(given.cum_seq_k);
  call.used_keys = aoti_abi::optional_in(given.seqused_k);
  call.slopes = aoti_abi::optional_in(given.alibi_slopes);
  call.pages = aoti_abi::optional_in(given.block_table);
  call.descale = given.descale;
  call.most_queries = given.max_q;
  call.most_keys = given.max_k;
  take_lengths(call);
  call.scale = aoti_abi::optional_value<double>(given.scale);
  // With one query, causality hides no key.
  const bool causal = given.causal && (call.most_queries > 1 || call.slopes);
  call.sight = flash_sight(causal, given.window_left, given.window_right, call.most_keys);
  call.empty_logsumexp = std::numeric_limits<float>::infinity();
  return call;
}

void flash_forward(const FlashGiven& given, double dropout_p, bool return_debug_mask, AtenTensorHandle* ret0,
                   AtenTensorHandle* ret1, AtenTensorHandle* ret2, AtenTensorHandle* ret3, AtenTensorHandle* ret4) {
  SequenceCall call = flash_call("_flash_attention_forward", given);
  SCONCE_CHECK(dropout_p == 0 || !return_debug_mask, kUnsupported, call.name,
               ": return_debug_mask with dropout is not supported");
  const Device device = call.query.device();
  const DeviceScope scope(device);
  call.dropout = draw_flash_dropout(call.name, dropout_p, sequences_in(call), heads_in(call));
  const Attention done = attend_sequences(call, {}, nullptr);
  const int64_t none = 0;
  aoti_abi::deliver(std::array<Tensor, 5>{done.out, done.logsumexp, flash_state(call.dropout, device),
                                          Tensor::empty({}, DType::kUInt64, device),
                                          Tensor::empty(IntSpan(&none, 1), call.query.dtype(), device)},
                    ret0, ret1, ret2, ret3, ret4);
}

void flash_quantized(const FlashGiven& given, double dropout_p, bool return_debug_mask, AtenTensorHandle* ret0,
                     AtenTensorHandle* ret1, AtenTensorHandle* ret2, AtenTensorHandle* ret3, AtenTensorHandle* ret4) {
  SequenceCall call = flash_call("_flash_attention_forward.quantized", given);
  check_quantized(call.name, dropout_p, return_debug_mask);
  SCONCE_CHECK(!call.slopes, kInvalidArgument, call.name, ": alibi_slopes are not supported");
  const Device device = call.query.device();
  const DeviceScope scope(device);
  call.empty_logsumexp = -std::numeric_limits<float>::infinity();
  const Attention done = attend_sequences(call, {}, nullptr);
  const int64_t two = 2, none = 0;
  aoti_abi::deliver(std::array<Tensor, 5>{done.out, done.logsumexp, zeros(IntSpan(&two, 1), DType::kUInt64, device),
                                          zeros({}, DType::kUInt64, device),
                                          Tensor::empty(IntSpan(&none, 1), done.out.dtype(), device)},
                    ret0, ret1, ret2, ret3, ret4);
}

void flash_inplace(const FlashGiven& given, const Tensor& out, double dropout_p, AtenTensorHandle* ret0) {
  const SequenceCall call = flash_call("_flash_attention_forward_no_dropout_inplace", given);
  SCONCE_CHECK(dropout_p == 0, kInvalidArgument, call.name, ": dropout_p ", dropout_p);
  aoti_abi::deliver(attend_sequences(call, {}, &out).logsumexp, ret0);
}

int64_t rows_of_sums(int64_t queries) { return (queries + 31) / 32 * 32; }

// Moves the gradients into one tensor [B, T, 3, H, D], of which they become views.
void share(Gradients& gradients) {
  const Tensor& q = gradients.query;
  const int64_t rank = q.dim();
  Shape sizes;
  for (int64_t d = 0; d + 2 < rank; ++d) sizes.push_back(q.size(d));
  sizes.push_back(3);
  sizes.push_back(q.size(rank - 2));
  sizes.push_back(q.size(rank - 1));
  const Tensor chunk = Tensor::empty(sizes, q.dtype(), q.device());
  Shape strides;
  for (int64_t d = 0; d <= rank; ++d)
    if (d != rank - 2) strides.push_back(chunk.stride(d));
  int64_t number = 0;
  for (Tensor* t : {&gradients.query, &gradients.key, &gradients.value}) {
    SCONCE_CHECK(std::equal(t->sizes().begin(), t->sizes().end(), q.sizes().begin(), q.sizes().end()), kInvalidArgument,
                 "_efficient_attention_backward: tensors of ", to_string(t->sizes()), " and ", to_string(q.sizes()),
                 " cannot share storage");
    Tensor part = chunk.as_strided(q.sizes(), strides, number++ * chunk.stride(rank - 2));
    copy(*t, part, false);
    *t = part;
  }
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

AOTITorchError aoti_torch_cuda__flash_attention_forward(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, AtenTensorHandle* cum_seq_q,
    AtenTensorHandle* cum_seq_k, int64_t max_q, int64_t max_k, double dropout_p, int32_t is_causal,
    int32_t return_debug_mask, double* scale, int64_t* window_size_left, int64_t* window_size_right,
    AtenTensorHandle* seqused_k, AtenTensorHandle* alibi_slopes, AtenTensorHandle* ret0, AtenTensorHandle* ret1,
    AtenTensorHandle* ret2, AtenTensorHandle* ret3, AtenTensorHandle* ret4) {
  return guard("aoti_torch_cuda__flash_attention_forward", [&] {
    cuda::flash_forward({query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, scale, window_size_left,
                         window_size_right, seqused_k, is_causal != 0, alibi_slopes},
                        dropout_p, return_debug_mask, ret0, ret1, ret2, ret3, ret4);
  });
}

AOTITorchError aoti_torch_cuda__flash_attention_forward_v2(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, AtenTensorHandle* cum_seq_q,
    AtenTensorHandle* cum_seq_k, int64_t max_q, int64_t max_k, double dropout_p, int32_t is_causal,
    int32_t return_debug_mask, double* scale, int64_t* window_size_left, int64_t* window_size_right,
    AtenTensorHandle* seqused_k, AtenTensorHandle* alibi_slopes, AtenTensorHandle* block_table, int64_t*,
    AtenTensorHandle* ret0, AtenTensorHandle* ret1, AtenTensorHandle* ret2, AtenTensorHandle* ret3,
    AtenTensorHandle* ret4) {
  return guard("aoti_torch_cuda__flash_attention_forward_v2", [&] {
    cuda::flash_forward({query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, scale, window_size_left,
                         window_size_right, seqused_k, is_causal != 0, alibi_slopes, block_table},
                        dropout_p, return_debug_mask, ret0, ret1, ret2, ret3, ret4);
  });
}

AOTITorchError aoti_torch_cuda__flash_attention_forward_quantized(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, AtenTensorHandle* cum_seq_q,
    AtenTensorHandle* cum_seq_k, int64_t max_q, int64_t max_k, double dropout_p, int32_t is_causal,
    int32_t return_debug_mask, AtenTensorHandle* q_descale, AtenTensorHandle* k_descale, AtenTensorHandle* v_descale,
    double* scale, int64_t* window_size_left, int64_t* window_size_right, AtenTensorHandle* seqused_k,
    AtenTensorHandle* alibi_slopes, AtenTensorHandle* ret0, AtenTensorHandle* ret1, AtenTensorHandle* ret2,
    AtenTensorHandle* ret3, AtenTensorHandle* ret4) {
  return guard("aoti_torch_cuda__flash_attention_forward_quantized", [&] {
    cuda::flash_quantized(
        {query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, scale, window_size_left, window_size_right, seqused_k,
         is_causal != 0, alibi_slopes, nullptr, cuda::descale_of(q_descale, k_descale, v_descale)},
        dropout_p, return_debug_mask, ret0, ret1, ret2, ret3, ret4);
  });
}

AOTITorchError aoti_torch_cuda__flash_attention_forward_no_dropout_inplace(
    AtenTensorHandle out, AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value,
    AtenTensorHandle* cum_seq_q, AtenTensorHandle* cum_seq_k, int64_t max_q, int64_t max_k, double dropout_p,
    int32_t is_causal, int32_t, double* scale, int64_t* window_size_left, int64_t* window_size_right,
    AtenTensorHandle* seqused_k, AtenTensorHandle* alibi_slopes, AtenTensorHandle* block_table,
    AtenTensorHandle* ret0) {
  return guard("aoti_torch_cuda__flash_attention_forward_no_dropout_inplace", [&] {
    cuda::flash_inplace({query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, scale, window_size_left,
                         window_size_right, seqused_k, is_causal != 0, alibi_slopes, block_table},
                        in(out, "out"), dropout_p, ret0);
  });
}

AOTITorchError aoti_torch_cuda__flash_attention_forward_no_dropout_inplace_v2(
    AtenTensorHandle out, AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value,
    AtenTensorHandle* cum_seq_q, AtenTensorHandle* cum_seq_k, int64_t max_q, int64_t max_k, double dropout_p,
    int32_t is_causal, int32_t return_debug_mask, double* scale, int64_t* window_size_left, int64_t* window_size_right,
    AtenTensorHandle* seqused_k, AtenTensorHandle* alibi_slopes, AtenTensorHandle* block_table, int64_t*,
    AtenTensorHandle* ret0) {
  return aoti_torch_cuda__flash_attention_forward_no_dropout_inplace(
      out, query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, return_debug_mask, scale,
      window_size_left, window_size_right, seqused_k, alibi_slopes, block_table, ret0);
}

AOTITorchError aoti_torch_cuda__flash_attention_backward(
    AtenTensorHandle grad_out, AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, AtenTensorHandle,
    AtenTensorHandle logsumexp, AtenTensorHandle cum_seq_q, AtenTensorHandle cum_seq_k, int64_t max_q, int64_t max_k,
    double dropout_p, int32_t is_causal, AtenTensorHandle rng_state, AtenTensorHandle, double* scale,
    int64_t* window_size_left, int64_t* window_size_right, AtenTensorHandle* ret0, AtenTensorHandle* ret1,
    AtenTensorHandle* ret2) {
  return guard("aoti_torch_cuda__flash_attention_backward", [&] {
    cuda::SequenceCall call =
        cuda::flash_call("_flash_attention_backward", {query, key, value, &cum_seq_q, &cum_seq_k, max_q, max_k, scale,
                                                       window_size_left, window_size_right, nullptr, is_causal != 0});
    const cuda::DeviceScope scope(call.query.device());
    if (dropout_p != 0)
      call.dropout = cuda::flash_dropout(call.name, dropout_p, cuda::heads_in(call), in(rng_state, "rng_state"));
    const cuda::Gradients done =
        cuda::sequence_gradients(call, in(grad_out, "grad_out"), in(logsumexp, "logsumexp"), false, false);
    deliver(std::array<Tensor, 3>{done.query, done.key, done.value}, ret0, ret1, ret2);
  });
}

AOTITorchError aoti_torch_cuda__efficient_attention_forward(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, AtenTensorHandle* bias,
    AtenTensorHandle* cu_seqlens_q, AtenTensorHandle* cu_seqlens_k, int64_t* max_seqlen_q, int64_t* max_seqlen_k,
    double dropout_p, int64_t custom_mask_type, int32_t compute_log_sumexp, double* scale, AtenTensorHandle* seqlen_k,
    int64_t* window_size, AtenTensorHandle* ret0, AtenTensorHandle* ret1, AtenTensorHandle* ret2,
    AtenTensorHandle* ret3, int64_t* ret4, int64_t* ret5) {
  return guard("aoti_torch_cuda__efficient_attention_forward", [&] {
    cuda::SequenceCall call{"_efficient_attention_forward", in(query, "query"), in(key, "key"), in(value, "value")};
    call.cumulative_q = optional_in(cu_seqlens_q);
    call.cumulative_k = optional_in(cu_seqlens_k);
    if (call.cumulative_q) {
      SCONCE_CHECK(max_seqlen_q && max_seqlen_k, kInvalidArgument, call.name,
                   ": max_seqlen_q or max_seqlen_k is missing");
      call.used_keys = optional_in(seqlen_k);
      call.most_queries = *max_seqlen_q;
      call.most_keys = *max_seqlen_k;
    }
    cuda::take_lengths(call);
    call.bias = optional_in(bias);
    call.scale = optional_value<double>(scale);
    call.sight = cuda::efficient_sight(call.name, custom_mask_type, window_size);
    call.empty_logsumexp = -std::numeric_limits<float>::infinity();
    const cuda::DeviceScope scope(call.query.device());
    // With several lengths, ATen gives each head of each sequence the same first random number.
    call.dropout = cuda::draw_efficient_dropout(call.name, dropout_p, cuda::score_count(call), cuda::heads_in(call),
                                                call.cumulative_q ? 0 : call.most_queries, call.most_keys);
    const cuda::Attention done =
        cuda::attend_sequences(call, {false, compute_log_sumexp ? cuda::rows_of_sums(call.most_queries) : 0}, nullptr);
    const cuda::EfficientState state = cuda::efficient_state(call.dropout, call.query.device());
    if (ret4) *ret4 = call.most_queries;
    if (ret5) *ret5 = call.most_keys;
    deliver(std::array<Tensor, 4>{done.out, done.logsumexp, state.seed, state.offset}, ret0, ret1, ret2, ret3);
  });
}

AOTITorchError aoti_torch_cuda__efficient_attention_backward(
    AtenTensorHandle grad_out, AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value,
    AtenTensorHandle* bias, AtenTensorHandle, AtenTensorHandle* cu_seqlens_q, AtenTensorHandle* cu_seqlens_k,
    int64_t max_seqlen_q, int64_t max_seqlen_k, AtenTensorHandle logsumexp, double dropout_p,
    AtenTensorHandle philox_seed, AtenTensorHandle philox_offset, int64_t custom_mask_type, int32_t bias_requires_grad,
    double* scale, int64_t*, int64_t* window_size, int32_t shared_storage_dqdkdv, AtenTensorHandle* ret0,
    AtenTensorHandle* ret1, AtenTensorHandle* ret2, AtenTensorHandle* ret3) {
  return guard("aoti_torch_cuda__efficient_attention_backward", [&] {
    cuda::SequenceCall call{"_efficient_attention_backward", in(query, "query"), in(key, "key"), in(value, "value")};
    call.cumulative_q = optional_in(cu_seqlens_q);
    call.cumulative_k = optional_in(cu_seqlens_k);
    call.most_queries = max_seqlen_q;
    call.most_keys = max_seqlen_k;
    cuda::take_lengths(call);
    call.bias = optional_in(bias);
    call.scale = optional_value<double>(scale);
    call.sight = cuda::efficient_sight(call.name, custom_mask_type, window_size);
    const cuda::DeviceScope scope(call.query.device());
    // Drops what the forward call dropped. ATen's own gradient, with several lengths, starts each head at another
    // number than its forward call and so drops other elements.
    if (dropout_p != 0)
      call.dropout =
          cuda::efficient_dropout(call.name, dropout_p, cuda::heads_in(call), call.cumulative_q ? 0 : call.most_queries,
                                  call.most_keys, in(philox_seed, "philox_seed"), in(philox_offset, "philox_offset"));
    cuda::Gradients done = cuda::sequence_gradients(call, in(grad_out, "grad_out_"), in(logsumexp, "logsumexp"),
                                                    bias_requires_grad != 0, true);
    if (shared_storage_dqdkdv) cuda::share(done);
    deliver(std::array<Tensor, 4>{done.query, done.key, done.value, done.bias}, ret0, ret1, ret2, ret3);
  });
}

}  // extern "C"
