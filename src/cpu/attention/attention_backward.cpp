// Gradients of attention. Match aten::_scaled_dot_product_flash_attention_for_cpu_backward (torch 2.15).
#include <cmath>
#include <limits>

#include "sconce/check.h"
#include "src/cpu/matmul/gemm/gemm.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

constexpr const char* kName = "flash attention backward";

// Row-major [rows, columns] of an operand or, transposed, [columns, rows].
MatrixView matrix(const void* data, int64_t columns, bool transposed = false) {
  return transposed ? MatrixView{data, 0, 1, columns} : MatrixView{data, 0, columns, 1};
}

// c (+)= alpha a @ b, all packed.
template <class T>
void product(int64_t m, int64_t n, int64_t k, MatrixView a, MatrixView b, T* c, double alpha, bool add) {
  MatrixProduct p{};
  p.dtype = kDType<T>;
  p.batch = 1;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = a;
  p.b = b;
  p.c = c;
  p.c_row_stride = n;
  p.c_column_stride = 1;
  p.alpha = alpha;
  p.beta = add ? 1 : 0;
  if (add) p.self = matrix(c, n);
  matrix_product(kName, p);
}

// [B, T, H, D] read as [B, H, T, D].
Tensor empty_by_token(const Tensor& like) {
  const int64_t strides[] = {like.size(1) * like.size(2) * like.size(3), like.size(3), like.size(1) * like.size(3), 1};
  return Tensor::empty_strided(like.sizes(), strides, like.dtype());
}

struct Sizes {
  int64_t batch, heads, kv_heads, tq, tk, d;
};

// The mask's share in the scores of one head: [Tq, Tk] of T, zeros and minus infinities for bool.
template <class T>
Tensor head_mask(const Tensor& mask, const Sizes& s) {
  const int64_t sizes[] = {s.batch, s.heads, s.tq, s.tk};
  Tensor scores = Tensor::empty(mask.sizes(), kDType<T>);
  if (mask.dtype() == DType::kBool) {
    const Tensor flags = contiguous(mask);
    for (int64_t i = 0; i < mask.numel(); ++i)
      scores.data_as<T>()[i] = flags.data_as<bool>()[i] ? T(0) : -std::numeric_limits<T>::infinity();
  } else {
    copy(mask, scores);
  }
  return expand(kName, scores, sizes);
}

template <class T>
std::array<Tensor, 3> gradients(const Sizes& s, const Tensor& grad_out, const Tensor& query, const Tensor& key,
                                const Tensor& value, const Tensor& out, const Tensor& logsumexp, bool is_causal,
                                const Tensor* attn_mask, double scale) {
  const auto packed = [](const Tensor& t) { return contiguous(to_dtype(t, kDType<T>)); };
  const Tensor go = packed(grad_out), q = packed(query), k = packed(key), v = packed(value), o = packed(out),
               lse = packed(logsumexp);
  Tensor dq = Tensor::empty(query.sizes(), kDType<T>), dk = Tensor::empty(key.sizes(), kDType<T>),
         dv = Tensor::empty(value.sizes(), kDType<T>);
  zero(dk);
  zero(dv);
  const int64_t score_sizes[] = {s.tq, s.tk};
  Tensor weights = Tensor::empty(score_sizes, kDType<T>), slopes = Tensor::empty(score_sizes, kDType<T>);
  const Tensor mask = attn_mask ? head_mask<T>(*attn_mask, s) : Tensor();
  T *p = weights.data_as<T>(), *ds = slopes.data_as<T>();
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h) {
      const int64_t at = (b * s.heads + h) * s.tq, kv = (b * s.kv_heads + h / (s.heads / s.kv_heads)) * s.tk * s.d;
      const T *qh = q.data_as<T>() + at * s.d, *gh = go.data_as<T>() + at * s.d, *oh = o.data_as<T>() + at * s.d;
      product<T>(s.tq, s.tk, s.d, matrix(qh, s.d), matrix(k.data_as<T>() + kv, s.d, true), p, scale, false);
      product<T>(s.tq, s.tk, s.d, matrix(gh, s.d), matrix(v.data_as<T>() + kv, s.d, true), ds, 1, false);
      const T* m = mask.defined() ? mask.data_as<T>() + b * mask.stride(0) + h * mask.stride(1) : nullptr;
      parallel_for(0, s.tq, std::max<int64_t>(1, 8192 / std::max<int64_t>(s.tk, 1)),
                   [&](int64_t begin, int64_t end) noexcept {
                     for (int64_t i = begin; i < end; ++i) {
                       const T row_lse = lse.data_as<T>()[at + i];
                       T dot = 0;
                       for (int64_t c = 0; c < s.d; ++c) dot += gh[i * s.d + c] * oh[i * s.d + c];
                       for (int64_t j = 0; j < s.tk; ++j) {
                         T score = p[i * s.tk + j];
                         if (m) score += m[i * mask.stride(2) + j * mask.stride(3)];
                         // A row that sees no key has weights of 0.
                         const bool seen = !(is_causal && j > i) && row_lse != -std::numeric_limits<T>::infinity();
                         const T weight = seen ? std::exp(score - row_lse) : T(0);
                         p[i * s.tk + j] = weight;
                         ds[i * s.tk + j] = weight * (ds[i * s.tk + j] - dot);
                       }
                     }
                   });
      product<T>(s.tk, s.d, s.tq, matrix(p, s.tk, true), matrix(gh, s.d), dv.data_as<T>() + kv, 1, true);
      product<T>(s.tq, s.d, s.tk, matrix(ds, s.tk), matrix(k.data_as<T>() + kv, s.d), dq.data_as<T>() + at * s.d, scale,
                 false);
      product<T>(s.tk, s.d, s.tq, matrix(ds, s.tk, true), matrix(qh, s.d), dk.data_as<T>() + kv, scale, true);
    }
  std::array<Tensor, 3> results{empty_by_token(query), empty_by_token(key), empty_by_token(value)};
  copy(dq, results[0]);
  copy(dk, results[1]);
  copy(dv, results[2]);
  return results;
}

}  // namespace

// query, out and grad_out [B, H, Tq, D], key and value [B, Hkv, Tk, D] with H a multiple of Hkv, logsumexp [B, H, Tq]
// float32 (float64 for doubles), attn_mask bool or floating that broadcasts to [B, H, Tq, Tk]. Floating, any strides;
// half types are computed in float. Results by query, key and value, laid out [B, T, H, D]. dropout_p must be 0.
std::array<Tensor, 3> _scaled_dot_product_flash_attention_for_cpu_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& out,
    const Tensor& logsumexp, double dropout_p, bool is_causal, const Tensor* attn_mask, std::optional<double> scale) {
  for (const Tensor* t : {&grad_out, &query, &key, &value, &out})
    SCONCE_CHECK(t->dim() == 4 && t->dtype() == query.dtype(), kInvalidArgument, kName,
                 ": expected tensors of 4 dimensions and one dtype, got ", describe(*t));
  const Sizes s{query.size(0), query.size(1), key.size(1), query.size(2), key.size(2), query.size(3)};
  const auto sized = [](const Tensor& t, const Tensor& like) {
    return std::equal(t.sizes().begin(), t.sizes().end(), like.sizes().begin(), like.sizes().end());
  };
  SCONCE_CHECK(sized(grad_out, query) && sized(out, query) && sized(value, key) && key.size(0) == s.batch &&
                   key.size(3) == s.d && s.kv_heads > 0 && s.heads % s.kv_heads == 0,
               kInvalidArgument, kName, ": query ", describe(query), ", key ", describe(key), ", value ",
               describe(value), ", out ", describe(out), " and grad_out ", describe(grad_out), " do not fit");
  SCONCE_CHECK(logsumexp.numel() == s.batch * s.heads * s.tq, kInvalidArgument, kName, ": logsumexp ",
               describe(logsumexp), " does not fit query ", describe(query));
  SCONCE_CHECK(dropout_p == 0, kInvalidArgument, kName, ": Currently do not support dropout > 0");
  SCONCE_CHECK(!attn_mask || attn_mask->dtype() == DType::kBool || is_floating(attn_mask->dtype()), kInvalidArgument,
               kName, ": the mask must be bool or floating, got ", attn_mask ? describe(*attn_mask) : "");
  if (!is_floating(query.dtype())) fail_dispatch(query.dtype(), kName);
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(s.d)));
  if (query.dtype() == DType::kFloat64)
    return gradients<double>(s, grad_out, query, key, value, out, logsumexp, is_causal, attn_mask, factor);
  return gradients<float>(s, grad_out, query, key, value, out, logsumexp, is_causal, attn_mask, factor);
}

}  // namespace sconce::cpu
