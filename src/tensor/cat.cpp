// Matches aten::cat (torch 2.15, CPU). All tensors are on one device, which may be a GPU.
#include <algorithm>
#include <vector>

#include "sconce/check.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/block_copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/factory.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/type_promotion.h"

namespace sconce {
namespace {

bool is_skipped(const Tensor& t) { return t.dim() == 1 && t.size(0) == 0; }

Tensor part_of(const Tensor& t, int64_t dim, int64_t start, int64_t length) {
  Shape sizes(t.sizes());
  sizes[static_cast<int>(dim)] = length;
  return t.as_strided(sizes, t.strides(), length ? t.storage_offset() + start * t.stride(dim) : t.storage_offset());
}

// Short rows of many tensors: the result is written once, in sequence, rather than once per tensor.
void interleave_rows(const std::vector<const Tensor*>& tensors, int64_t outer, const std::vector<int64_t>& row_bytes,
                     Tensor& out) {
  const auto count = tensors.size();
  const int64_t out_row = static_cast<int64_t>(out.bytes()) / outer;
  auto* to = static_cast<char*>(out.data());
  std::vector<const char*> from;
  from.reserve(count);
  for (const Tensor* t : tensors) from.push_back(static_cast<const char*>(t->data()));
  const auto item = static_cast<int64_t>(out.itemsize());
  const bool single = std::all_of(row_bytes.begin(), row_bytes.end(), [&](int64_t bytes) { return bytes == item; });
  parallel_for(0, outer, std::max<int64_t>((64 << 10) / out_row, 1), [&](int64_t begin, int64_t end) noexcept {
    if (single) {
      dispatch_bytes(static_cast<size_t>(item), [&]<class E>() {
        for (int64_t o = begin; o < end; ++o) {
          char* at = to + o * out_row;
          for (size_t i = 0; i < count; ++i, at += sizeof(E))
            store_unaligned(at, load_unaligned<E>(from[i] + o * static_cast<int64_t>(sizeof(E))));
        }
      });
      return;
    }
    for (int64_t o = begin; o < end; ++o) {
      char* at = to + o * out_row;
      for (size_t i = 0; i < count; ++i) {
        copy_block(from[i] + o * row_bytes[i], at, row_bytes[i]);
        at += row_bytes[i];
      }
    }
  });
}

}  // namespace

namespace cpu {

// Tensors of equal shape except in `dim`, any dtypes; 1-D tensors without elements are skipped. Memory order as in
// ATen: channels-last if all inputs are, else row-major.
Tensor cat(TensorList tensors, int64_t dim) {
  SCONCE_CHECK(tensors.size() > 0, kInvalidArgument, "cat: expected a non-empty list of Tensors");
  DType dtype = tensors[0].dtype();
  MemoryFormat format = suggested_format(tensors[0]);
  const Tensor* first = nullptr;
  std::vector<const Tensor*> used;
  used.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    SCONCE_CHECK(t.device() == tensors[0].device(), kInvalidArgument, "cat: tensors on ",
                 to_string(tensors[0].device()), " and ", to_string(t.device()));
    SCONCE_CHECK(t.dim() > 0, kInvalidArgument, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
    dtype = promote_types(dtype, t.dtype());
    if (suggested_format(t) != format) format = MemoryFormat::kContiguous;
    if (is_skipped(t)) continue;
    if (!first) first = &t;
  }
  if (!first) {
    const int64_t none = 0;
    return Tensor::empty({&none, 1}, dtype, tensors[0].device());
  }
  dim = wrap_dim("cat", dim, first->dim());
  Shape sizes(first->sizes());
  const auto at = static_cast<int>(dim);
  sizes[at] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (is_skipped(t)) continue;
    SCONCE_CHECK(t.dim() == first->dim(), kInvalidArgument, "Tensors must have same number of dimensions: got ",
                 first->dim(), " and ", t.dim());
    for (int64_t d = 0; d < t.dim(); ++d)
      SCONCE_CHECK(d == dim || t.size(d) == first->size(d), kInvalidArgument,
                   "Sizes of tensors must match except in dimension ", dim, ". Expected size ", first->size(d),
                   " but got size ", t.size(d), " for tensor number ", i, " in the list.");
    sizes[at] += t.size(dim);
    if (t.numel() > 0) used.push_back(&t);
  }
  Shape strides(sizes);
  format_strides("cat", sizes, format, strides.data());
  Tensor out = Tensor::empty_strided(sizes, strides, dtype, first->device());
  if (out.numel() == 0) return out;

  int64_t outer = 1, inner = static_cast<int64_t>(out.itemsize());
  for (int d = 0; d < at; ++d) outer *= sizes[d];
  for (int d = at + 1; d < sizes.rank(); ++d) inner *= sizes[d];
  const bool packed =
      out.is_cpu() && format == MemoryFormat::kContiguous &&
      std::all_of(used.begin(), used.end(), [&](const Tensor* t) { return t->dtype() == dtype && t->is_contiguous(); });
  if (packed && outer > 1 && inner * sizes[at] / static_cast<int64_t>(used.size()) < 512) {
    std::vector<int64_t> row_bytes;
    row_bytes.reserve(used.size());
    for (const Tensor* t : used) row_bytes.push_back(t->size(dim) * inner);
    interleave_rows(used, outer, row_bytes, out);
    return out;
  }
  int64_t start = 0;
  for (const Tensor* t : used) {
    Tensor part = part_of(out, dim, start, t->size(dim));
    copy(*t, part);
    start += t->size(dim);
  }
  return out;
}

}  // namespace cpu

}  // namespace sconce
