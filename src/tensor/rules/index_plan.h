// IndexPlan: advanced indexing with tensors, for reading and for writing.
//
// Follows aten/native/TensorAdvancedIndexing (torch 2.15): masks become positions, index tensors broadcast together,
// and if they are not adjacent the indexed dimensions move to the front. The result has three groups of dimensions:
//   before [B...] · index [I...] · after [A...]
// Element (b, i, a) of the result is self's element at b, a and the offset that the index tensors give for i.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "sconce/tensor.h"
#include "src/operators/arguments.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

class IndexPlan {
 public:
  // indices: at most as many as self's dimensions; null for a dimension that is not indexed. Index tensors are int64,
  // int32, bool or uint8 (masks). `positions_of` returns the positions of a mask: int64 [n, rank], strides [1, n].
  // kInvalidArgument where ATen raises. On a device only int64: values are not read.
  using PositionsOf = Tensor(const Tensor& mask);
  IndexPlan(const Tensor& self, std::span<const Tensor* const> indices, PositionsOf* positions_of);

  const Shape& result_sizes() const noexcept { return result_sizes_; }
  // Strides, in elements, of a result that ATen would allocate. On a device, index tensors of different strides count
  // as contiguous, because ATen makes them contiguous there.
  Shape result_strides() const;

  // Orders the walk for the tensor that holds the result or the values: `other_strides`, in elements, over
  // result_sizes(). Index dimensions are sorted by its memory order as TensorIterator sorts them: walking positions in
  // sequence then meets duplicates in ATen's order.
  void order_by(IntSpan other_strides, size_t other_itemsize);

  // After order_by: positions are numbered along the sorted index dimensions.
  int64_t positions() const noexcept { return positions_; }
  // Byte offsets in self and in the other tensor of positions [begin, end). Returns the number of the first index
  // tensor that holds an index out of bounds, or -1.
  int offsets(int64_t begin, int64_t end, int64_t* self_offsets, int64_t* other_offsets) const noexcept;
  // After order_by, for callers with their own walk: dimensions of positions, [0] innermost; the index tensors, and
  // sizes and byte strides of the dimensions they index.
  int index_rank() const noexcept { return index_rank_; }
  int64_t index_size(int d) const noexcept { return sizes_[static_cast<size_t>(d)]; }
  int64_t other_stride(int d) const noexcept { return other_strides_[static_cast<size_t>(d)]; }
  size_t index_count() const noexcept { return indices_.size(); }
  const Tensor& index(size_t k) const noexcept { return indices_[k]; }
  int64_t index_stride(size_t k, int d) const noexcept { return strides_[k][static_cast<size_t>(d)]; }
  int64_t indexed_size(size_t k) const noexcept { return self_.size(before_ + static_cast<int64_t>(k)); }
  int64_t indexed_stride(size_t k) const noexcept {
    return self_.stride(before_ + static_cast<int64_t>(k)) * static_cast<int64_t>(self_.itemsize());
  }
  // Throws ATen's error for that index tensor.
  [[noreturn]] void fail_out_of_bounds(int number) const;

  // The other dimensions: a walk over (other, self).
  const StridedLoop<2>& rest() const noexcept { return *rest_; }  // of order_by
  char* self_data() const noexcept { return static_cast<char*>(self_.data()); }
  // Largest byte offset that an index can give, exclusive.
  int64_t offset_limit() const noexcept;

 private:
  void add(const Tensor& index, size_t number, PositionsOf* positions_of);
  void broadcast_indices();
  void group_dimensions();

  Tensor self_;                       // dimensions in the order of the result's groups
  std::vector<Tensor> by_dimension_;  // one per dimension of the given self; undefined: not indexed
  int before_ = 0;                    // dimensions before the indexed ones
  std::vector<Tensor> indices_;       // one per indexed dimension, expanded to index_sizes_
  Shape index_sizes_;
  Shape result_sizes_;

  // After order_by.
  int64_t positions_ = 0;
  int index_rank_ = 0;
  std::array<int64_t, Tensor::kMaxRank> sizes_;                 // [0] is innermost
  std::array<int64_t, Tensor::kMaxRank> other_strides_;         // bytes
  std::vector<std::array<int64_t, Tensor::kMaxRank>> strides_;  // per index tensor, in bytes
  std::optional<StridedLoop<2>> rest_;
};

// Borrowed pointers of an argument list, null where absent.
class IndexList {
 public:
  explicit IndexList(const OptTensorList& list);
  operator std::span<const Tensor* const>() const noexcept { return {items_.data(), size_}; }

 private:
  std::array<const Tensor*, Tensor::kMaxRank> items_;
  size_t size_;
};

}  // namespace sconce
