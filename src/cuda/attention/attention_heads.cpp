#include "src/cuda/attention/attention_heads.h"

#include "sconce/check.h"
#include "src/cuda/runtime/copy.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {

void check_attention(const char* name, const Tensor& query, const Tensor& key, const Tensor& value) {
  for (const Tensor* t : {&query, &key, &value})
    SCONCE_CHECK(t->dim() == 4 && !t->is_cpu() && t->dtype() == query.dtype() && is_floating(t->dtype()),
                 kInvalidArgument, name, ": expected floating CUDA tensors of 4 dimensions and one dtype, got ",
                 describe(*t));
  SCONCE_CHECK(key.size(0) == query.size(0) && value.size(0) == query.size(0) && key.size(3) == query.size(3) &&
                   value.size(2) == key.size(2),
               kInvalidArgument, name, ": query ", describe(query), ", key ", describe(key), " and value ",
               describe(value), " do not fit");
}

Tensor as_float(const Tensor& t, IntSpan sizes) {
  Tensor packed = Tensor::empty(sizes, DType::kFloat32, t.device());
  copy(t, packed, false);
  return packed;
}

Tensor by_head(const Tensor& t) {
  if (t.size(0) == 1 || (t.size(1) > 1 && t.stride(0) == t.stride(1) * t.size(1))) return t;
  const Tensor even = t.size(1) == 1 ? t : contiguous(t);
  // A single head may have any stride. Then the head stride is the batch stride.
  const int64_t strides[] = {even.stride(0), even.size(1) == 1 ? even.stride(0) : even.stride(1), even.stride(2),
                             even.stride(3)};
  return even.as_strided(even.sizes(), strides, even.storage_offset());
}

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

Tensor heads_of(const Tensor& t, int64_t first, int64_t count, bool transposed) {
  const int64_t sizes[] = {count, t.size(transposed ? 3 : 2), t.size(transposed ? 2 : 3)};
  const int64_t strides[] = {t.stride(1), t.stride(transposed ? 3 : 2), t.stride(transposed ? 2 : 3)};
  return t.as_strided(sizes, strides, t.storage_offset() + first * t.stride(1));
}

}  // namespace sconce::cuda
