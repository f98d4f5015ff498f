// Attention as products and a softmax, of any layout and bias: products of half types on tensor cores with float32
// scores and probabilities of the half type, all else in float32. ABI: generated/c_shim_cuda.h; match
// aten::_scaled_dot_product_efficient_attention, _flash_attention and _cudnn_attention (torch 2.11) without dropout.
// Scores of as many heads as fit kScoreBytes are in memory at once; a fused kernel would not need that.
#include <cmath>
#include <limits>

#include "src/cuda/copy.h"
#include "src/cuda/device_kernels.h"
#include "src/cuda/error.h"
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

Tensor as_float(const Tensor& t, IntSpan sizes) {
  Tensor packed = Tensor::empty(sizes, DType::kFloat32, t.device());
  copy(t, packed, false);
  return packed;
}

constexpr int64_t kScoreBytes = 256 << 20;

// All heads of all batches one stride apart: as it is, or packed.
Tensor by_head(const Tensor& t) { return t.size(0) == 1 || t.stride(0) == t.stride(1) * t.size(1) ? t : contiguous(t); }

// Heads of keys that several heads of queries share are repeated.
Tensor per_head(const Tensor& t, int64_t heads, DType dtype) {
  const int64_t own = t.size(1);
  SCONCE_CHECK(own > 0 && heads % own == 0, kInvalidArgument, "attention: ", heads, " heads of queries and ", own,
               " of keys do not fit");
  const int64_t all[] = {t.size(0), heads, t.size(2), t.size(3)};
  if (own == heads) return dtype == t.dtype() ? by_head(t) : as_float(t, all);
  const int64_t sizes[] = {t.size(0), own, heads / own, t.size(2), t.size(3)};
  const int64_t strides[] = {t.stride(0), t.stride(1), 0, t.stride(2), t.stride(3)};
  Tensor repeated = Tensor::empty(sizes, dtype, t.device());
  copy(t.as_strided(sizes, strides, t.storage_offset()), repeated, false);
  Shape packed(IntSpan{all});
  contiguous_strides(all, packed.data());
  return repeated.as_strided(all, packed, 0);
}

// Heads [first, first + count) of a tensor that by_head() gave, as matrices.
Tensor heads_of(const Tensor& t, int64_t first, int64_t count, bool transposed = false) {
  const int64_t sizes[] = {count, t.size(transposed ? 3 : 2), t.size(transposed ? 2 : 3)};
  const int64_t strides[] = {t.stride(1), t.stride(transposed ? 3 : 2), t.stride(transposed ? 2 : 3)};
  return t.as_strided(sizes, strides, t.storage_offset() + first * t.stride(1));
}

enum class OutLayout {
  kByToken,  // [B, T, H, D] in memory
  kOfQuery   // the order of the query's dimensions
};

Attention attend(const char* name, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor* bias,
                 double dropout_p, bool is_causal, std::optional<double> scale, OutLayout layout) {
  for (const Tensor* t : {&query, &key, &value})
    SCONCE_CHECK(t->dim() == 4 && !t->is_cpu() && t->dtype() == query.dtype() && is_floating(t->dtype()),
                 kInvalidArgument, name, ": expected floating CUDA tensors of 4 dimensions and one dtype, got ",
                 describe(*t));
  SCONCE_CHECK(dropout_p == 0, kUnsupported, name, ": dropout");
  const int64_t b = query.size(0), h = query.size(1), tq = query.size(2), d = query.size(3), tk = key.size(2),
                dv = value.size(3);
  SCONCE_CHECK(key.size(0) == b && value.size(0) == b && key.size(3) == d && value.size(2) == tk, kInvalidArgument,
               name, ": query ", describe(query), ", key ", describe(key), " and value ", describe(value),
               " do not fit");
  const DeviceScope scope(query.device());
  const int64_t out_sizes[] = {b, h, tq, dv}, by_token[] = {tq * h * dv, dv, h * dv, 1};
  const Shape out_strides =
      layout == OutLayout::kByToken ? Shape(IntSpan(by_token)) : dense_strides(out_sizes, query.strides());
  const int64_t lse_sizes[] = {b, h, tq};
  Attention result{Tensor::empty_strided(out_sizes, out_strides, query.dtype(), query.device()),
                   Tensor::empty(lse_sizes, DType::kFloat32, query.device())};
  if (result.out.numel() == 0) return result;
  const DType dtype = query.dtype();
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  const DType factors = half ? dtype : DType::kFloat32;
  const Tensor q = half ? by_head(query) : as_float(query, query.sizes()), k = per_head(key, h, factors),
               v = per_head(value, h, factors);
  // float64 is attended to in float32, as a result of its own.
  const bool direct = half && (b == 1 || result.out.stride(0) == result.out.stride(1) * h);
  Tensor product = direct ? result.out : Tensor::empty(out_sizes, factors, query.device());
  Tensor additive;
  SoftmaxRows rows{};
  rows.columns = tk;
  rows.queries = tq;
  rows.scale = static_cast<float>(scale.value_or(1 / std::sqrt(static_cast<double>(d))));
  rows.causal = is_causal;
  rows.heads = h;
  rows.half_type = half ? static_cast<int>(dtype) : 0;
  if (bias) {
    const int64_t sizes[] = {b, h, tq, tk};
    additive = expand(name, as_float(*bias, bias->sizes()), sizes);
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
    cuda::product(name, heads_of(q, first, count), heads_of(k, first, count, true), nullptr, 0, 1, scores);
    rows.rows = count * tq;
    rows.first_head = first;
    rows.halves = half ? all_halves.data() : nullptr;
    launch_softmax(rows, scores.data_as<float>(), result.logsumexp.data_as<float>() + first * tq, current_stream());
    SCONCE_CUDA(cudaGetLastError());
    Tensor target = heads_of(product, first, count);
    cuda::product(name, half ? part(all_halves) : scores, heads_of(v, first, count), nullptr, 0, 1, target);
  }
  if (!direct) copy(product, result.out, false);
  return result;
}

// What a model may ask for beside: nothing was drawn.
Tensor no_random_state(const Tensor& like) {
  Tensor state = Tensor::empty({}, DType::kInt64, like.device());
  const int64_t zero = 0;
  fill(state, &zero);
  return state;
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
    cuda::Attention done =
        cuda::attend("efficient attention", q, in(key, "key"), in(value, "value"), optional_in(attn_bias), dropout_p,
                     is_causal, optional_value<double>(scale), cuda::OutLayout::kByToken);
    // A multiple of 32 rows a head, or none.
    const int64_t rows = compute_log_sumexp ? (q.size(2) + 31) / 32 * 32 : 0, sizes[] = {q.size(0), q.size(1), rows};
    Tensor logsumexp = Tensor::empty(sizes, DType::kFloat32, q.device());
    if (rows > 0) {
      const float most = std::numeric_limits<float>::infinity();
      cuda::fill(logsumexp, &most);
      Tensor used = logsumexp.as_strided(done.logsumexp.sizes(), logsumexp.strides(), 0);
      cuda::copy(done.logsumexp, used, false);
    }
    deliver(std::array<Tensor, 4>{done.out, logsumexp, cuda::no_random_state(q), cuda::no_random_state(q)}, ret0, ret1,
            ret2, ret3);
  });
}

AOTITorchError aoti_torch_cuda__scaled_dot_product_flash_attention(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, double dropout_p, int32_t is_causal, int32_t,
    double* scale, AtenTensorHandle* ret0, AtenTensorHandle* ret1, AtenTensorHandle* ret2, AtenTensorHandle* ret3,
    int64_t* ret4, int64_t* ret5, AtenTensorHandle* ret6, AtenTensorHandle* ret7, AtenTensorHandle* ret8) {
  return guard("aoti_torch_cuda__scaled_dot_product_flash_attention", [&] {
    const Tensor& q = in(query, "query");
    cuda::Attention done = cuda::attend("flash attention", q, in(key, "key"), in(value, "value"), nullptr, dropout_p,
                                        is_causal, optional_value<double>(scale), cuda::OutLayout::kByToken);
    if (ret4) *ret4 = q.size(2);
    if (ret5) *ret5 = in(key, "key").size(2);
    const int64_t none = 0;
    const Tensor state = Tensor::empty(IntSpan(&none, 1), q.dtype(), q.device());
    deliver(std::array<Tensor, 7>{done.out, done.logsumexp, Tensor(), Tensor(), cuda::no_random_state(q),
                                  cuda::no_random_state(q), state},
            ret0, ret1, ret2, ret3, ret6, ret7, ret8);
  });
}

AOTITorchError aoti_torch_cuda__scaled_dot_product_cudnn_attention(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, AtenTensorHandle* attn_bias, int32_t,
    double dropout_p, int32_t is_causal, int32_t, double* scale, AtenTensorHandle* ret0, AtenTensorHandle* ret1,
    AtenTensorHandle* ret2, AtenTensorHandle* ret3, int64_t* ret4, int64_t* ret5, AtenTensorHandle* ret6,
    AtenTensorHandle* ret7, AtenTensorHandle* ret8) {
  return guard("aoti_torch_cuda__scaled_dot_product_cudnn_attention", [&] {
    const Tensor& q = in(query, "query");
    cuda::Attention done =
        cuda::attend("cuDNN attention", q, in(key, "key"), in(value, "value"), optional_in(attn_bias), dropout_p,
                     is_causal, optional_value<double>(scale), cuda::OutLayout::kOfQuery);
    if (ret4) *ret4 = q.size(2);
    if (ret5) *ret5 = in(key, "key").size(2);
    const int64_t sizes[] = {q.size(0), q.size(1), q.size(2), 1};
    const int64_t none = 0;
    const Tensor state = Tensor::empty(IntSpan(&none, 1), q.dtype(), q.device());
    deliver(std::array<Tensor, 7>{done.out, cuda::with_sizes(done.logsumexp, sizes), Tensor(), Tensor(),
                                  cuda::no_random_state(q), cuda::no_random_state(q), state},
            ret0, ret1, ret2, ret3, ret6, ret7, ret8);
  });
}

}  // extern "C"
