// Matches FlashAttention 3 as PyTorch 2.15 calls it (torch/nn/attention/_fa3.py), except that probabilities are not
// rounded to float8. bfloat16 holds float8 exactly; the factors of the keys are applied to the queries.
#include "src/cuda/attention/quantised_attention.h"

#include "src/cuda/elementwise/elementwise.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/stream.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

constexpr DType kFloat8 = DType::kFloat8E4M3FN, kWide = DType::kBFloat16;

void check_factors(const char* name, const char* what, const Tensor& factors, int64_t batch, int64_t heads) {
  if (!factors.defined()) return;
  SCONCE_CHECK(factors.dtype() == DType::kFloat32 && !factors.is_cpu() && factors.dim() == 2 &&
                   factors.size(0) == batch && factors.size(1) == heads,
               kInvalidArgument, name, ": ", what, " should be float32 [", batch, ", ", heads, "] on the device, got ",
               describe(factors));
}

// Keeps the order of t's dimensions. Heads that share a factor are adjacent.
Tensor widened(const Tensor& t, const Tensor& factors) {
  Tensor wide = Tensor::empty_strided(t.sizes(), dense_strides(t.sizes(), t.strides()), kWide, t.device());
  if (!factors.defined() || t.numel() == 0) {
    copy(t, wide, false);
    return wide;
  }
  const int64_t shared = t.size(1) / factors.size(1);
  const auto grouped = [&](const Tensor& x) {
    const int64_t sizes[] = {x.size(0), factors.size(1), shared, x.size(2), x.size(3)},
                  strides[] = {x.stride(0), x.stride(1) * shared, x.stride(1), x.stride(2), x.stride(3)};
    return x.as_strided(sizes, strides, x.storage_offset());
  };
  const int64_t sizes[] = {factors.size(0), factors.size(1), 1, 1, 1},
                strides[] = {factors.stride(0), factors.stride(1), 0, 0, 0};
  Tensor place = grouped(wide);
  copy(multiply(grouped(converted(t, DType::kFloat32)), factors.as_strided(sizes, strides, factors.storage_offset())),
       place, false);
  return wide;
}

}  // namespace

DType attended_dtype(DType dtype) { return dtype == kFloat8 ? kWide : dtype; }

Attention attend_wide(const AttentionCall& call, const Descale& descale, const Tensor& query, const Tensor& key,
                      const Tensor& value) {
  if (query.defined() && query.dtype() != kFloat8) return attend(call, query, key, value);
  for (const Tensor* t : {&query, &key, &value})
    SCONCE_CHECK(t->dim() == 4 && !t->is_cpu() && t->dtype() == kFloat8, kInvalidArgument, call.name,
                 ": expected CUDA tensors of 4 dimensions and one dtype, got ", describe(*t));
  const int64_t batch = query.size(0), heads = key.size(1);
  SCONCE_CHECK(key.size(0) == batch && value.size(0) == batch && value.size(1) == heads && heads > 0 &&
                   query.size(1) % heads == 0,
               kInvalidArgument, call.name, ": query ", describe(query), ", key ", describe(key), " and value ",
               describe(value), " do not fit");
  check_factors(call.name, "q_descale", descale.query, batch, heads);
  check_factors(call.name, "k_descale", descale.key, batch, heads);
  check_factors(call.name, "v_descale", descale.value, batch, heads);
  const DeviceScope scope(query.device());
  const Tensor of_scores = !descale.key.defined()     ? descale.query
                           : !descale.query.defined() ? descale.key
                                                      : multiply(descale.query, descale.key);
  return attend(call, widened(query, of_scores), widened(key, Tensor()), widened(value, descale.value));
}

void check_quantized(const char* name, double dropout_p, bool return_debug_mask) {
  SCONCE_CHECK(dropout_p == 0, kInvalidArgument, name, ": dropout_p must be 0, got ", dropout_p);
  SCONCE_CHECK(!return_debug_mask, kInvalidArgument, name, ": return_debug_mask must be false");
}

}  // namespace sconce::cuda
