#include "server/scheduling/signature/recorded_strides.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "sconce/check.h"

namespace sconce::server::scheduling {

bool lies_as_recorded(const Tensor& tensor, const TensorSpec& spec) noexcept {
  if (tensor.is_contiguous()) return row_major_is_recorded(tensor.sizes(), spec);
  const auto rank = static_cast<size_t>(tensor.dim());
  if (spec.strides.size() != rank || !tensor.is_dense()) return false;
  // Strides that depend on sizes are not recorded: their dimensions are outside the others, in order.
  int64_t dense = 1;
  for (size_t d = 0; d < rank; ++d) {
    if (!spec.strides[d]) continue;
    if (tensor.size(static_cast<int64_t>(d)) > 1 && tensor.stride(static_cast<int64_t>(d)) != *spec.strides[d])
      return false;
    dense = std::max(dense, *spec.strides[d] * tensor.size(static_cast<int64_t>(d)));
  }
  for (size_t d = rank; d-- > 0;) {
    if (spec.strides[d]) continue;
    if (tensor.size(static_cast<int64_t>(d)) > 1 && tensor.stride(static_cast<int64_t>(d)) != dense) return false;
    dense *= tensor.size(static_cast<int64_t>(d));
  }
  return true;
}

bool row_major_is_recorded(IntSpan sizes, const TensorSpec& spec) noexcept {
  const size_t rank = sizes.size();
  if (spec.strides.size() != rank) return true;
  std::array<int64_t, Tensor::kMaxRank> strides;
  contiguous_strides(sizes, strides.data());
  for (size_t d = 0; d < rank; ++d) {
    if (sizes[d] == 0) return true;
  }
  for (size_t d = 0; d < rank; ++d) {
    if (spec.strides[d] && sizes[d] > 1 && *spec.strides[d] != strides[d]) return false;
  }
  return true;
}

Tensor in_recorded_strides(Tensor tensor, const TensorSpec& spec, TensorScratch& scratch) {
  const size_t rank = static_cast<size_t>(tensor.dim());
  if (row_major_is_recorded(tensor.sizes(), spec)) return tensor;

  // Recorded strides are used unchanged. Strides that depend on sizes are not recorded; their dimensions are outside
  // the others, in order.
  std::array<int64_t, Tensor::kMaxRank> strides;
  int64_t dense = 1;
  for (size_t d = 0; d < rank; ++d) {
    if (!spec.strides[d]) continue;
    strides[d] = *spec.strides[d];
    int64_t extent = 0;
    SCONCE_CHECK(strides[d] >= 0 && !__builtin_mul_overflow(strides[d], tensor.sizes()[d], &extent), kInvalidArgument,
                 "input '", spec.name, "' is too large for its recorded strides: ", describe(tensor));
    dense = std::max(dense, extent);
  }
  for (size_t d = rank; d-- > 0;) {
    if (spec.strides[d]) continue;
    strides[d] = dense;
    SCONCE_CHECK(!__builtin_mul_overflow(dense, tensor.sizes()[d], &dense), kInvalidArgument, "input '", spec.name,
                 "' is too large for its recorded strides: ", describe(tensor));
  }
  const IntSpan span{strides.data(), rank};
  const TensorScratch::Piece piece = scratch.allocate(storage_bytes_needed(tensor.sizes(), span, 0, tensor.itemsize()));
  Tensor laid_out = scratch.over(piece.storage, piece.data, tensor.dtype(), tensor.sizes(), span);
  copy_from_contiguous(static_cast<const std::byte*>(tensor.data()), laid_out);
  if (!laid_out.is_dense()) {
    // Elements may share memory (an expanded example input); then their values must be equal.
    const TensorScratch::Piece back = scratch.allocate(tensor.bytes());
    copy_to_contiguous(laid_out, back.data);
    SCONCE_CHECK(std::memcmp(back.data, tensor.data(), tensor.bytes()) == 0, kInvalidArgument, "input '", spec.name,
                 "' has elements that share memory in the strides the package was compiled for, but differ in the "
                 "request: strides ",
                 to_string(span));
  }
  return laid_out;
}

Tensor laid_as_recorded(const Tensor& tensor, const TensorSpec& spec, TensorScratch& scratch) {
  if (lies_as_recorded(tensor, spec)) return tensor;
  if (tensor.is_contiguous()) return in_recorded_strides(tensor, spec, scratch);
  Tensor copy = scratch.tensor(tensor.sizes(), tensor.dtype());
  copy_to_contiguous(tensor, static_cast<std::byte*>(copy.data()));
  return in_recorded_strides(std::move(copy), spec, scratch);
}

Tensor copy_in_recorded_strides(const std::byte* values, IntSpan sizes, DType dtype, const TensorSpec& spec,
                                TensorScratch& scratch) {
  Tensor copy = scratch.tensor(sizes, dtype);
  if (copy.bytes() > 0) std::memcpy(copy.data(), values, copy.bytes());
  return in_recorded_strides(std::move(copy), spec, scratch);
}

}  // namespace sconce::server::scheduling
