// Gradients of attention by products, from scores that are computed again: any layout, bias, dropout and window. Half
// types multiply on tensor cores with float32 scores, all else in float32; as many heads at once as fit kScoreBytes.
#include <algorithm>
#include <cmath>

#include "src/cuda/attention/attention.h"
#include "src/cuda/attention/attention_gradient_kernels.h"
#include "src/cuda/attention/attention_heads.h"
#include "src/cuda/matmul/cublaslt_matmul.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

constexpr int64_t kScoreBytes = 256 << 20;

Tensor result_like(const GradientCall& call, const Tensor& t) {
  const int64_t by_token[] = {t.size(1) * t.size(2) * t.size(3), t.size(3), t.size(1) * t.size(3), 1};
  return Tensor::empty_strided(t.sizes(),
                               call.by_token ? Shape(IntSpan(by_token)) : dense_strides(t.sizes(), t.strides()),
                               t.dtype(), t.device());
}

// Copies packed [B, heads, T, D] into `out`, summing heads that share one of its heads.
void deliver_heads(const Tensor& packed, Tensor& out) {
  const int64_t shared = packed.size(1) / std::max<int64_t>(out.size(1), 1);
  if (shared <= 1) return copy(packed, out, false);
  Tensor summed = Tensor::empty(out.sizes(), packed.dtype(), packed.device());
  launch_sum_groups(static_cast<int>(packed.dtype()), packed.data(), summed.data(), out.size(0) * out.size(1), shared,
                    out.size(2) * out.size(3), current_stream());
  SCONCE_CUDA(cudaGetLastError());
  copy(summed, out, false);
}

}  // namespace

Gradients attention_gradients(const GradientCall& call) {
  const Tensor &query = call.query, &key = call.key, &value = call.value;
  check_attention(call.name, query, key, value);
  const int64_t b = query.size(0), h = query.size(1), tq = query.size(2), d = query.size(3), tk = key.size(2),
                dv = value.size(3);
  const int64_t result_sizes[] = {b, h, tq, dv};
  SCONCE_CHECK(
      !call.grad.is_cpu() && call.grad.dtype() == query.dtype() && std::ranges::equal(call.grad.sizes(), result_sizes),
      kInvalidArgument, call.name, ": grad_out ", describe(call.grad), " does not fit query ", describe(query),
      " and value ", describe(value));
  SCONCE_CHECK(call.logsumexp.dim() >= 3 && call.logsumexp.size(0) == b && call.logsumexp.size(1) == h &&
                   call.logsumexp.size(2) >= tq && call.logsumexp.dtype() == DType::kFloat32,
               kInvalidArgument, call.name, ": logsumexp ", describe(call.logsumexp), " does not fit query ",
               describe(query));
  const DeviceScope scope(query.device());
  Gradients result{result_like(call, query), result_like(call, key), result_like(call, value), {}};
  Tensor of_bias;
  if (call.of_bias && call.bias) {
    const int64_t sizes[] = {b, h, tq, tk};
    of_bias = Tensor::empty(sizes, DType::kFloat32, query.device());
  }
  if (b * h * tq * tk == 0) {
    for (Tensor* t : {&result.query, &result.key, &result.value}) fill_zero(*t);
    return result;
  }
  const DType dtype = query.dtype();
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  const DType factors = half ? dtype : DType::kFloat32;
  const auto taken = [&](const Tensor& t) { return half ? by_head(t) : as_float(t, t.sizes()); };
  const Tensor q = taken(query), grad = taken(call.grad), k = per_head(key, h, factors),
               v = per_head(value, h, factors);
  const Tensor logsumexp = contiguous(call.logsumexp);
  const auto packed = [&](int64_t tokens, int64_t size) {
    const int64_t sizes[] = {b, h, tokens, size};
    return Tensor::empty(sizes, factors, query.device());
  };
  Tensor grad_q = packed(tq, d), grad_k = packed(tk, d), grad_v = packed(tk, dv);
  GradientRows rows{};
  const Tensor additive = describe_rows(rows, call, b, h, tq, tk);
  const double scale = call.scale.value_or(1 / std::sqrt(static_cast<double>(d)));
  rows.scale = static_cast<float>(scale);
  rows.logsumexp = logsumexp.data_as<float>();
  rows.logsumexp_rows = logsumexp.size(2);
  rows.type = static_cast<int>(factors);
  const int64_t together = std::clamp<int64_t>(kScoreBytes / (tq * tk * 8), 1, b * h);
  const int64_t score_sizes[] = {together, tq, tk};
  const Tensor all_scores = Tensor::empty(score_sizes, DType::kFloat32, query.device());
  const Tensor all_changes = Tensor::empty(score_sizes, DType::kFloat32, query.device());
  const Tensor half_scores = half ? Tensor::empty(score_sizes, dtype, query.device()) : all_scores;
  const Tensor half_changes = half ? Tensor::empty(score_sizes, dtype, query.device()) : all_changes;
  for (int64_t first = 0; first < b * h; first += together) {
    const int64_t count = std::min(together, b * h - first);
    const int64_t sizes[] = {count, tq, tk}, turned_sizes[] = {count, tk, tq}, turned_strides[] = {tq * tk, 1, tk};
    const auto part = [&](const Tensor& t) { return t.as_strided(sizes, t.strides(), 0); };
    const auto turned = [&](const Tensor& t) { return t.as_strided(turned_sizes, turned_strides, 0); };
    const auto target = [&](Tensor& t) { return heads_of(t, first, count); };
    Tensor scores = part(all_scores), changes = part(all_changes);
    product(call.name, heads_of(q, first, count), heads_of(k, first, count, true), nullptr, 0, 1, scores);
    product(call.name, heads_of(grad, first, count), heads_of(v, first, count, true), nullptr, 0, 1, changes);
    rows.rows = count * tq;
    rows.first_head = first;
    launch_gradient_rows(rows, scores.data_as<float>(), changes.data_as<float>(), half_scores.data(),
                         half_changes.data(), current_stream());
    SCONCE_CUDA(cudaGetLastError());
    Tensor to_q = target(grad_q), to_k = target(grad_k), to_v = target(grad_v);
    product(call.name, part(half_changes), heads_of(k, first, count), nullptr, 0, scale, to_q);
    product(call.name, turned(half_changes), heads_of(q, first, count), nullptr, 0, scale, to_k);
    product(call.name, turned(half_scores), heads_of(grad, first, count), nullptr, 0, 1, to_v);
    if (of_bias.defined()) {
      Tensor place = heads_of(of_bias, first, count);
      copy(part(half_changes), place, false);
    }
  }
  copy(grad_q, result.query, false);
  deliver_heads(grad_k, result.key);
  deliver_heads(grad_v, result.value);
  if (of_bias.defined()) {
    // Rows are padded to multiples of 16 elements, as PyTorch's forward kernels require.
    Shape sizes(of_bias.sizes()), strides(of_bias.sizes());
    sizes[3] = (tk + 15) / 16 * 16;
    contiguous_strides(sizes, strides.data());
    const Tensor room = Tensor::empty(sizes, call.bias->dtype(), query.device());
    result.bias = room.as_strided(of_bias.sizes(), strides, 0);
    copy(of_bias, result.bias, false);
  }
  return result;
}

}  // namespace sconce::cuda
