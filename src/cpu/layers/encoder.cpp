#include "src/cpu/layers/encoder.h"

#include <cmath>

#include "sconce/check.h"
#include "src/cpu/attention/softmax.h"
#include "src/cpu/elementwise/activations.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/matmul/products.h"
#include "src/cpu/normalisation/normalization.h"
#include "src/cpu/reduction/moments.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/view.h"

namespace sconce::cpu {
namespace {

const Scalar kOne{int64_t{1}};

// x W^T + bias of the last dimension.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const int64_t rows[] = {-1, x.size(x.dim() - 1)};
  Shape sizes(x.sizes());
  sizes[static_cast<int>(x.dim()) - 1] = weight.size(0);
  return reshape(addmm(bias, reshape(x, rows), t(weight), kOne, kOne), sizes);
}

// [B, T, D] to [B, H, T, D / H], contiguous.
Tensor heads_of(const Tensor& x, int64_t heads) {
  const int64_t sizes[] = {x.size(0), x.size(1), heads, x.size(2) / heads};
  return contiguous(transpose(reshape(x, sizes), 1, 2));
}

void check_qkv(const char* name, int64_t width, int64_t heads) {
  SCONCE_CHECK(width % 3 == 0 && heads > 0 && width / 3 % heads == 0, kInvalidArgument, name, ": a width of ", width,
               " is not three times a multiple of ", heads, " heads");
}

}  // namespace

std::array<Tensor, 3> _transform_bias_rescale_qkv(const Tensor& qkv, const Tensor& qkv_bias, int64_t num_heads) {
  constexpr const char* kName = "_transform_bias_rescale_qkv";
  SCONCE_CHECK(qkv.dim() == 3 && qkv_bias.dim() == 1 && qkv_bias.size(0) == qkv.size(2), kInvalidArgument, kName,
               ": qkv ", describe(qkv), " does not go with a bias ", describe(qkv_bias));
  check_qkv(kName, qkv.size(2), num_heads);
  const int64_t width = qkv.size(2) / 3;
  const Tensor biased = add(qkv, qkv_bias, kOne);
  std::array<Tensor, 3> parts;
  for (size_t i = 0; i < 3; ++i)
    parts[i] = heads_of(narrow(biased, 2, static_cast<int64_t>(i) * width, width), num_heads);
  parts[0] = multiply_number(parts[0], Scalar(1 / std::sqrt(static_cast<double>(width / num_heads))));
  return parts;
}

std::array<Tensor, 2> _native_multi_head_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                                   int64_t embed_dim, int64_t num_head, const Tensor& qkv_weight,
                                                   const Tensor& qkv_bias, const Tensor& proj_weight,
                                                   const Tensor& proj_bias, const Tensor* mask, bool need_weights,
                                                   bool average_attn_weights, std::optional<int64_t> mask_type) {
  constexpr const char* kName = "_native_multi_head_attention";
  SCONCE_CHECK(query.dim() == 3, kInvalidArgument, kName, ": expected 3-D `query`, got ", query.dim(), "-D tensor");
  SCONCE_CHECK(query.size(2) == embed_dim && num_head > 0 && embed_dim % num_head == 0, kInvalidArgument, kName,
               ": passed-in embed_dim ", embed_dim, " and ", num_head, " heads do not go with ", describe(query));
  for (const Tensor* other : {&key, &value})
    SCONCE_CHECK(std::equal(query.sizes().begin(), query.sizes().end(), other->sizes().begin(), other->sizes().end()),
                 kInvalidArgument, kName, ": expected `query`/`key`/`value` shapes to match");
  SCONCE_CHECK(qkv_weight.dim() == 2 && qkv_weight.size(0) == 3 * embed_dim && qkv_weight.size(1) == embed_dim,
               kInvalidArgument, kName, ": expected `qkv_weight` of ", 3 * embed_dim, " x ", embed_dim, ", got ",
               describe(qkv_weight));
  SCONCE_CHECK(qkv_bias.dim() == 1 && qkv_bias.size(0) == 3 * embed_dim, kInvalidArgument, kName,
               ": expected `qkv_bias` of ", 3 * embed_dim, " elements, got ", describe(qkv_bias));
  const Tensor* const given[] = {&query, &key, &value};
  std::array<Tensor, 3> parts;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t from = static_cast<int64_t>(i) * embed_dim;
    parts[i] = heads_of(linear(*given[i], narrow(qkv_weight, 0, from, embed_dim), narrow(qkv_bias, 0, from, embed_dim)),
                        num_head);
  }
  const auto& [q, k, v] = parts;
  const double scale = 1 / std::sqrt(static_cast<double>(embed_dim / num_head));
  const Tensor scores = matmul(multiply_number(q, Scalar(scale)), transpose(k, -1, -2));
  const Tensor weights = mask ? _masked_softmax(scores, *mask, 3, mask_type) : _softmax(scores, 3, false);
  const Tensor merged = reshape(contiguous(transpose(matmul(weights, v), 1, 2)), query.sizes());
  const Tensor output = linear(merged, proj_weight, proj_bias);
  if (!need_weights) return {output, Tensor()};
  const int64_t heads[] = {1};
  return {output, average_attn_weights ? mean(weights, IntSpan(heads), false, std::nullopt) : weights};
}

Tensor _transformer_encoder_layer_fwd(const Tensor& src, int64_t embed_dim, int64_t num_heads, const Tensor& qkv_weight,
                                      const Tensor& qkv_bias, const Tensor& proj_weight, const Tensor& proj_bias,
                                      bool use_gelu, bool norm_first, double eps, const Tensor& norm_weight_1,
                                      const Tensor& norm_bias_1, const Tensor& norm_weight_2, const Tensor& norm_bias_2,
                                      const Tensor& ffn_weight_1, const Tensor& ffn_bias_1, const Tensor& ffn_weight_2,
                                      const Tensor& ffn_bias_2, const Tensor* mask, std::optional<int64_t> mask_type) {
  const int64_t width[] = {embed_dim};
  const auto norm = [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return native_layer_norm(x, width, &weight, &bias, eps)[0];
  };
  Tensor x = norm_first ? norm(src, norm_weight_1, norm_bias_1) : src;
  x = _native_multi_head_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask,
                                   false, true, mask_type)[0];
  x = add(x, src, kOne);
  if (!norm_first) x = norm(x, norm_weight_1, norm_bias_1);
  Tensor inner = linear(norm_first ? norm(x, norm_weight_2, norm_bias_2) : x, ffn_weight_1, ffn_bias_1);
  inner = use_gelu ? gelu(inner, "none") : relu(inner);
  x = add(linear(inner, ffn_weight_2, ffn_bias_2), x, kOne);
  return norm_first ? x : norm(x, norm_weight_2, norm_bias_2);
}

}  // namespace sconce::cpu
