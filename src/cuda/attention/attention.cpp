// Attention takes one of three ways. Large problems on Hopper and later use cuDNN. Others use our single kernel
// (flash_attention.h) where it can. The rest (any layout, dropout, windows, ALiBi slopes) is products and a softmax,
// for as many heads at once as have scores that fit kScoreBytes: half types multiply on tensor cores, with float32
// scores and half probabilities; all else computes in float32.
#include "src/cuda/attention/attention.h"

#include <cmath>
#include <limits>

#include "src/cuda/attention/attention_heads.h"
#include "src/cuda/attention/attention_softmax.h"
#include "src/cuda/attention/flash/flash_attention.h"
#include "src/cuda/matmul/cublaslt_matmul.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/device_properties.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

constexpr int64_t kScoreBytes = 256 << 20;

// Returns t if its rows are contiguous and start at multiples of 16 bytes, else a packed copy.
Tensor in_rows(const Tensor& t) {
  const auto item = static_cast<int64_t>(t.itemsize());
  bool fits = (t.size(3) == 1 || t.stride(3) == 1) && reinterpret_cast<uintptr_t>(t.data()) % 16 == 0;
  for (int64_t d = 0; d < 3; ++d) fits &= t.size(d) == 1 || t.stride(d) * item % 16 == 0;
  return fits ? t : contiguous(t);
}

void take_strides(const Tensor& t, int64_t (&strides)[3]) {
  for (int64_t d = 0; d < 3; ++d) strides[d] = t.size(d) == 1 ? 0 : t.stride(d);
}

// A bias [B, H, Tq, Tk] of that dtype whose rows fit in_rows(). A packed copy stores broadcast dimensions once.
Tensor bias_in_rows(const char* name, const Tensor& bias, DType dtype, IntSpan sizes) {
  const Tensor all = expand(name, bias, sizes);
  const auto item = static_cast<int64_t>(dtype_bytes(dtype));
  bool fits = bias.dtype() == dtype && (sizes[3] == 1 || all.stride(3) == 1) &&
              reinterpret_cast<uintptr_t>(all.data()) % 16 == 0;
  for (int64_t d = 0; d < 3; ++d) fits &= sizes[static_cast<size_t>(d)] == 1 || all.stride(d) * item % 16 == 0;
  if (fits) return all;
  int64_t own[4], strides[4], repeated[4], next = (sizes[3] * item + 15) / 16 * 16 / item;
  own[3] = sizes[3];
  strides[3] = repeated[3] = 1;
  for (size_t d = 3; d-- > 0;) {
    own[d] = all.stride(static_cast<int64_t>(d)) == 0 ? 1 : sizes[d];
    strides[d] = next;
    repeated[d] = own[d] == 1 ? 0 : next;
    next *= own[d];
  }
  Tensor packed = Tensor::empty_strided(own, strides, dtype, bias.device());
  copy(all.as_strided(own, all.strides(), all.storage_offset()), packed, false);
  return packed.as_strided(sizes, repeated, 0);
}

// False if there is no such kernel; `result` is unchanged then.
bool flash(const AttentionCall& call, const Tensor& query, const Tensor& key, const Tensor& value, Attention& result) {
  if (call.bounded || call.slopes || call.dropout.stream != AttentionDropout::Stream::kNone) return false;
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
  a.diagonal = static_cast<int>(call.base(a.queries, a.keys) + call.right);
  a.empty_logsumexp = call.empty_logsumexp;
  if (call.bias) {
    const int64_t sizes[] = {a.batch, a.heads, a.queries, a.keys};
    bias = bias_in_rows(call.name, *call.bias, q.dtype(), sizes);
    a.bias = bias.data();
    for (int64_t i = 0; i < 3; ++i) a.bias_strides[i] = bias.size(i) == 1 ? 0 : bias.stride(i);
    a.bias_strides[3] = 1;
  }
  const DeviceProperties& device = device_properties(q.device().index);
  const auto dtype = static_cast<int>(q.dtype());
  const FlashDevice what{device.multiprocessors, device.shared_bytes, device.capability};
  if (prefers_dnn(a, dtype, what) && launch_dnn_attention(a, dtype, q.device().index)) {
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

// Writes a packed logsumexp [B, H, T].
void by_products(const AttentionCall& call, const Tensor& query, const Tensor& key, const Tensor& value, Tensor& out,
                 Tensor& logsumexp) {
  const int64_t b = query.size(0), h = query.size(1), tq = query.size(2), tk = key.size(2);
  const DType dtype = query.dtype();
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  const DType factors = half ? dtype : DType::kFloat32;
  const Tensor q = half ? by_head(query) : as_float(query, query.sizes()), k = per_head(key, h, factors),
               v = per_head(value, h, factors);
  // float64 attends in float32, into a temporary result.
  const bool direct = half && (b == 1 || out.stride(0) == out.stride(1) * h);
  Tensor product = direct ? out : Tensor::empty(out.sizes(), factors, query.device());
  SoftmaxRows rows{};
  const Tensor additive = describe_rows(rows, call, b, h, tq, tk);
  rows.scale = static_cast<float>(call.scale.value_or(1 / std::sqrt(static_cast<double>(query.size(3)))));
  rows.empty_logsumexp = call.empty_logsumexp;
  rows.half_type = half ? static_cast<int>(dtype) : 0;
  if (call.slopes) {
    const bool by_batch = call.slopes->dim() == 2;
    rows.slopes = call.slopes->data_as<float>();
    rows.slope_strides[0] = by_batch ? call.slopes->stride(0) : 0;
    rows.slope_strides[1] = call.slopes->stride(by_batch ? 1 : 0);
    // FlashAttention adds the same number to all keys of a causal query that sees every key before it, so sums differ
    // by it.
    rows.slope_by_key = call.causal && !call.bounded && call.right == 0;
    rows.slope_base = call.base(tq, tk);
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

}  // namespace

Attention attend(const AttentionCall& call, const Tensor& query, const Tensor& key, const Tensor& value) {
  check_attention(call.name, query, key, value);
  const int64_t b = query.size(0), h = query.size(1), tq = query.size(2), tk = key.size(2), dv = value.size(3);
  SCONCE_CHECK(!call.slopes || (call.slopes->dtype() == DType::kFloat32 && !call.slopes->is_cpu() &&
                                (call.slopes->dim() == 1 || (call.slopes->dim() == 2 && call.slopes->size(0) == b)) &&
                                call.slopes->size(call.slopes->dim() - 1) == h),
               kInvalidArgument, call.name, ": slopes of ALiBi should be float32 [", h, "] or [", b, ", ", h,
               "] on the device, got ", describe(*call.slopes));
  const DeviceScope scope(query.device());
  const int64_t out_sizes[] = {b, h, tq, dv}, by_token[] = {tq * h * dv, dv, h * dv, 1};
  const Shape out_strides =
      call.layout == OutLayout::kByToken ? Shape(IntSpan(by_token)) : dense_strides(out_sizes, query.strides());
  const int64_t lse_sizes[] = {b, h, call.logsumexp_rows}, packed_sizes[] = {b, h, tq};
  Attention result{
      call.into ? *call.into : Tensor::empty_strided(out_sizes, out_strides, query.dtype(), query.device()),
      Tensor::empty(lse_sizes, DType::kFloat32, query.device())};
  if (result.out.numel() == 0) return result;
  if (tk == 0) {
    fill_zero(result.out);
    fill(result.logsumexp, &call.empty_logsumexp);
    return result;
  }
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

}  // namespace sconce::cuda
