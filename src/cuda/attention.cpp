// Attention: cuDNN's where it has Hopper's instructions and there is much to do, else one kernel of our own where it
// can (flash_attention.h); else products and a softmax, of any layout: products of half
// types on tensor cores with float32 scores and probabilities of the half type, all else in float32, scores of as many
// heads as fit kScoreBytes in memory at once. ABI: generated/c_shim_cuda.h; match
// aten::_scaled_dot_product_efficient_attention, _flash_attention and _cudnn_attention (torch 2.11) without dropout.
#include <cmath>
#include <limits>

#include "src/cuda/attention_heads.h"
#include "src/cuda/copy.h"
#include "src/cuda/device_kernels.h"
#include "src/cuda/device_properties.h"
#include "src/cuda/error.h"
#include "src/cuda/flash_attention.h"
#include "src/cuda/ops.h"
#include "src/cuda/products.h"
#include "src/cuda/stream.h"
#include "src/ops/strided_loop.h"
#include "src/shim/guard.h"
#include "src/shim/op_args.h"
#include "src/shim/results.h"

namespace sconce::cuda {
namespace {

struct Attention {
  Tensor out;        // [B, H, T, D]
  Tensor logsumexp;  // [B, H, T] float32
};

constexpr int64_t kScoreBytes = 256 << 20;

enum class OutLayout {
  kByToken,  // [B, T, H, D] in memory
  kOfQuery   // the order of the query's dimensions
};

struct AttentionCall {
  const char* name;
  const Tensor* bias = nullptr;
  double dropout_p = 0;
  bool causal = false, from_end = false;  // from_end: the last query sees all keys, not the first one only one
  std::optional<double> scale = std::nullopt;
  OutLayout layout = OutLayout::kByToken;
  int64_t logsumexp_rows = 0;  // for each head: infinity behind the last query
  float empty_logsumexp = 0;   // of a query that sees nothing
};

// Rows at multiples of 16 bytes, their elements next to each other: as it is, or packed.
Tensor in_rows(const Tensor& t) {
  const auto item = static_cast<int64_t>(t.itemsize());
  bool fits = (t.size(3) == 1 || t.stride(3) == 1) && reinterpret_cast<uintptr_t>(t.data()) % 16 == 0;
  for (int64_t d = 0; d < 3; ++d) fits &= t.size(d) == 1 || t.stride(d) * item % 16 == 0;
  return fits ? t : contiguous(t);
}

void take_strides(const Tensor& t, int64_t (&strides)[3]) {
  for (int64_t d = 0; d < 3; ++d) strides[d] = t.size(d) == 1 ? 0 : t.stride(d);
}

// False where there is no such kernel; `result` is as it was, then.
bool flash(const AttentionCall& call, const Tensor& query, const Tensor& key, const Tensor& value, Attention& result) {
  const int64_t most = std::numeric_limits<int>::max() / 2;
  for (const Tensor* t : {&query, &key, &value})
    for (const int64_t size : t->sizes())
      if (size > most) return false;
  if (key.size(1) != value.size(1) || key.size(1) == 0 || query.size(1) % key.size(1) != 0) return false;
  const Tensor q = in_rows(query), k = in_rows(key), v = in_rows(value);
  Tensor out = in_rows(result.out), bias;
  FlashAttention a{};
  a.q = q.data();
  a.k = k.data();
  a.v = v.data();
  a.out = out.data();
  take_strides(q, a.q_strides);
  take_strides(k, a.k_strides);
  take_strides(v, a.v_strides);
  take_strides(out, a.out_strides);
  a.batch = static_cast<int>(q.size(0));
  a.heads = static_cast<int>(q.size(1));
  a.kv_heads = static_cast<int>(k.size(1));
  a.queries = static_cast<int>(q.size(2));
  a.keys = static_cast<int>(k.size(2));
  a.d = static_cast<int>(q.size(3));
  a.dv = static_cast<int>(v.size(3));
  a.logsumexp = result.logsumexp.data_as<float>();
  a.logsumexp_rows = static_cast<int>(call.logsumexp_rows);
  a.scale = static_cast<float>(call.scale.value_or(1 / std::sqrt(static_cast<double>(a.d))));
  a.causal = call.causal;
  a.diagonal = call.from_end ? a.keys - a.queries : 0;
  a.empty_logsumexp = call.empty_logsumexp;
  if (call.bias) {
    const int64_t sizes[] = {a.batch, a.heads, a.queries, a.keys};
    bias = *call.bias;
    if (bias.dtype() != q.dtype()) {
      bias = Tensor::empty(call.bias->sizes(), q.dtype(), q.device());
      copy(*call.bias, bias, false);
    }
    bias = expand(call.name, bias, sizes);
    a.bias = bias.data();
    for (int64_t i = 0; i < 4; ++i) a.bias_strides[i] = bias.stride(i);
  }
  const DeviceProperties& device = device_properties(q.device().index);
  const auto dtype = static_cast<int>(q.dtype());
  const FlashDevice what{device.multiprocessors, device.shared_bytes, device.capability};
  if (!call.bias && prefers_dnn(a, dtype, what) && launch_dnn_attention(a, dtype, q.device().index)) {
    if (out.data() != result.out.data()) copy(out, result.out, false);
    return true;
  }
  pack_heads(a);
  if (!plan_flash(a, dtype, what)) return false;
  Tensor parts, part_sums;
  if (a.splits > 1) {
    const int64_t rows = int64_t{a.splits} * a.batch * a.heads * a.queries, elements = rows * a.dv;
    parts = Tensor::empty(IntSpan(&elements, 1), DType::kFloat32, q.device());
    part_sums = Tensor::empty(IntSpan(&rows, 1), DType::kFloat32, q.device());
    a.partial = parts.data_as<float>();
    a.partial_logsumexp = part_sums.data_as<float>();
  }
  SCONCE_CUDA(launch_flash(a, dtype, current_stream()));
  if (out.data() != result.out.data()) copy(out, result.out, false);
  return true;
}

// Into a packed logsumexp [B, H, T].
void by_products(const AttentionCall& call, const Tensor& query, const Tensor& key, const Tensor& value, Tensor& out,
                 Tensor& logsumexp) {
  const int64_t b = query.size(0), h = query.size(1), tq = query.size(2), tk = key.size(2);
  const DType dtype = query.dtype();
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  const DType factors = half ? dtype : DType::kFloat32;
  const Tensor q = half ? by_head(query) : as_float(query, query.sizes()), k = per_head(key, h, factors),
               v = per_head(value, h, factors);
  // float64 is attended to in float32, as a result of its own.
  const bool direct = half && (b == 1 || out.stride(0) == out.stride(1) * h);
  Tensor product = direct ? out : Tensor::empty(out.sizes(), factors, query.device());
  Tensor additive;
  SoftmaxRows rows{};
  rows.columns = tk;
  rows.queries = tq;
  rows.scale = static_cast<float>(call.scale.value_or(1 / std::sqrt(static_cast<double>(query.size(3)))));
  rows.causal = call.causal;
  rows.diagonal = call.from_end ? tk - tq : 0;
  rows.empty_logsumexp = call.empty_logsumexp;
  rows.heads = h;
  rows.half_type = half ? static_cast<int>(dtype) : 0;
  if (call.bias) {
    const int64_t sizes[] = {b, h, tq, tk};
    additive = expand(call.name, as_float(*call.bias, call.bias->sizes()), sizes);
    rows.bias = additive.data_as<float>();
    for (int64_t i = 0; i < 4; ++i) rows.bias_strides[i] = additive.stride(i);
  }
  const int64_t together = std::clamp<int64_t>(kScoreBytes / std::max<int64_t>(tq * tk * 4, 1), 1, b * h);
  const int64_t score_sizes[] = {together, tq, tk};
  Tensor all_scores = Tensor::empty(score_sizes, DType::kFloat32, query.device());
  Tensor all_halves = half ? Tensor::empty(score_sizes, dtype, query.device()) : Tensor();
  for (int64_t first = 0; first < b * h; first += together) {
    const int64_t count = std::min(together, b * h - first);
    const int64_t sizes[] = {count, tq, tk};
    const auto part = [&](const Tensor& t) { return t.as_strided(sizes, t.strides(), 0); };
    Tensor scores = part(all_scores);
    cuda::product(call.name, heads_of(q, first, count), heads_of(k, first, count, true), nullptr, 0, 1, scores);
    rows.rows = count * tq;
    rows.first_head = first;
    rows.halves = half ? all_halves.data() : nullptr;
    launch_softmax(rows, scores.data_as<float>(), logsumexp.data_as<float>() + first * tq, current_stream());
    SCONCE_CUDA(cudaGetLastError());
    Tensor target = heads_of(product, first, count);
    cuda::product(call.name, half ? part(all_halves) : scores, heads_of(v, first, count), nullptr, 0, 1, target);
  }
  if (!direct) copy(product, out, false);
}

Attention attend(const AttentionCall& call, const Tensor& query, const Tensor& key, const Tensor& value) {
  for (const Tensor* t : {&query, &key, &value})
    SCONCE_CHECK(t->dim() == 4 && !t->is_cpu() && t->dtype() == query.dtype() && is_floating(t->dtype()),
                 kInvalidArgument, call.name, ": expected floating CUDA tensors of 4 dimensions and one dtype, got ",
                 describe(*t));
  SCONCE_CHECK(call.dropout_p == 0, kUnsupported, call.name, ": dropout");
  const int64_t b = query.size(0), h = query.size(1), tq = query.size(2), d = query.size(3), tk = key.size(2),
                dv = value.size(3);
  SCONCE_CHECK(key.size(0) == b && value.size(0) == b && key.size(3) == d && value.size(2) == tk, kInvalidArgument,
               call.name, ": query ", describe(query), ", key ", describe(key), " and value ", describe(value),
               " do not fit");
  const DeviceScope scope(query.device());
  const int64_t out_sizes[] = {b, h, tq, dv}, by_token[] = {tq * h * dv, dv, h * dv, 1};
  const Shape out_strides =
      call.layout == OutLayout::kByToken ? Shape(IntSpan(by_token)) : dense_strides(out_sizes, query.strides());
  const int64_t lse_sizes[] = {b, h, call.logsumexp_rows}, packed_sizes[] = {b, h, tq};
  Attention result{Tensor::empty_strided(out_sizes, out_strides, query.dtype(), query.device()),
                   Tensor::empty(lse_sizes, DType::kFloat32, query.device())};
  if (result.out.numel() == 0) return result;
  if (flash(call, query, key, value, result)) return result;
  Tensor packed =
      call.logsumexp_rows == tq ? result.logsumexp : Tensor::empty(packed_sizes, DType::kFloat32, query.device());
  by_products(call, query, key, value, result.out, packed);
  if (call.logsumexp_rows != tq && call.logsumexp_rows > 0) {
    const float most = std::numeric_limits<float>::infinity();
    fill(result.logsumexp, &most);
    Tensor used = result.logsumexp.as_strided(packed_sizes, result.logsumexp.strides(), 0);
    copy(packed, used, false);
  }
  return result;
}

// Seed and offset where nothing was drawn: as PyTorch's, memory that nobody has written.
Tensor no_random_state(const Tensor& like, IntSpan sizes, DType dtype) {
  return Tensor::empty(sizes, dtype, like.device());
}

Tensor with_sizes(const Tensor& t, IntSpan sizes) {
  Shape strides(sizes);
  contiguous_strides(sizes, strides.data());
  return t.as_strided(sizes, strides, t.storage_offset());
}

}  // namespace
}  // namespace sconce::cuda

using namespace sconce;
using shim::deliver;
using shim::guard;
using shim::in;
using shim::optional_in;
using shim::optional_value;

extern "C" {

AOTITorchError aoti_torch_cuda__scaled_dot_product_efficient_attention(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, AtenTensorHandle* attn_bias,
    int32_t compute_log_sumexp, double dropout_p, int32_t is_causal, double* scale, AtenTensorHandle* ret0,
    AtenTensorHandle* ret1, AtenTensorHandle* ret2, AtenTensorHandle* ret3) {
  return guard("aoti_torch_cuda__scaled_dot_product_efficient_attention", [&] {
    const Tensor& q = in(query, "query");
    cuda::AttentionCall call{"efficient attention"};
    call.bias = optional_in(attn_bias);
    call.dropout_p = dropout_p;
    call.causal = is_causal;
    call.scale = optional_value<double>(scale);
    // A multiple of 32 rows a head, or none.
    call.logsumexp_rows = compute_log_sumexp && q.dim() == 4 ? (q.size(2) + 31) / 32 * 32 : 0;
    call.empty_logsumexp = -std::numeric_limits<float>::infinity();
    cuda::Attention done = cuda::attend(call, q, in(key, "key"), in(value, "value"));
    const Tensor state = cuda::no_random_state(q, {}, DType::kInt64);
    deliver(std::array<Tensor, 4>{done.out, done.logsumexp, state, state}, ret0, ret1, ret2, ret3);
  });
}

AOTITorchError aoti_torch_cuda__scaled_dot_product_flash_attention(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, double dropout_p, int32_t is_causal, int32_t,
    double* scale, AtenTensorHandle* ret0, AtenTensorHandle* ret1, AtenTensorHandle* ret2, AtenTensorHandle* ret3,
    int64_t* ret4, int64_t* ret5, AtenTensorHandle* ret6, AtenTensorHandle* ret7, AtenTensorHandle* ret8) {
  return guard("aoti_torch_cuda__scaled_dot_product_flash_attention", [&] {
    const Tensor& q = in(query, "query");
    cuda::AttentionCall call{"flash attention"};
    call.dropout_p = dropout_p;
    call.causal = is_causal && q.dim() == 4 && q.size(2) > 1;
    call.from_end = true;
    call.scale = optional_value<double>(scale);
    call.layout = cuda::OutLayout::kOfQuery;
    call.logsumexp_rows = q.dim() == 4 ? q.size(2) : 0;
    call.empty_logsumexp = std::numeric_limits<float>::infinity();
    cuda::Attention done = cuda::attend(call, q, in(key, "key"), in(value, "value"));
    if (ret4) *ret4 = q.size(2);
    if (ret5) *ret5 = in(key, "key").size(2);
    const int64_t none = 0, two = 2;
    deliver(std::array<Tensor, 7>{done.out, done.logsumexp, Tensor(), Tensor(),
                                  cuda::no_random_state(q, IntSpan(&two, 1), DType::kUInt64),
                                  cuda::no_random_state(q, {}, DType::kUInt64),
                                  Tensor::empty(IntSpan(&none, 1), q.dtype(), q.device())},
            ret0, ret1, ret2, ret3, ret6, ret7, ret8);
  });
}

AOTITorchError aoti_torch_cuda__scaled_dot_product_cudnn_attention(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, AtenTensorHandle* attn_bias,
    int32_t compute_log_sumexp, double dropout_p, int32_t is_causal, int32_t, double* scale, AtenTensorHandle* ret0,
    AtenTensorHandle* ret1, AtenTensorHandle* ret2, AtenTensorHandle* ret3, int64_t* ret4, int64_t* ret5,
    AtenTensorHandle* ret6, AtenTensorHandle* ret7, AtenTensorHandle* ret8) {
  return guard("aoti_torch_cuda__scaled_dot_product_cudnn_attention", [&] {
    const Tensor& q = in(query, "query");
    cuda::AttentionCall call{"cuDNN attention"};
    call.bias = optional_in(attn_bias);
    call.dropout_p = dropout_p;
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

}  // extern "C"
