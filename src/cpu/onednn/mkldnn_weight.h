// Weights that PyTorch packed with oneDNN when it compiled a package: blocks of channels, described by a copy of
// oneDNN 3's own memory descriptor. Decoded here, since that structure is not part of oneDNN's interface.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sconce/tensor.h"

namespace sconce {

struct BlockedWeight {
  DType dtype = DType::kFloat32;  // float32, float16, bfloat16 or int8
  std::vector<int64_t> dims;      // [groups,] out, in, kernel; linear: out, in; RNN: layers, directions, in, gates, out
  int64_t groups = 1;             // if there are several, dims has a first dimension of groups
  int64_t first = 0;              // element index of the first element
  // The offset of an element with index i[d] in dimension d is `first` plus the sum of at[d][i[d]].
  std::vector<std::vector<int64_t>> at;

  // The same as blocks: strides between them, and each block's size and dimension, the last block innermost. None if
  // the weight has padding before its elements.
  std::vector<int64_t> padded, strides, block_sizes, block_dims;
  uint64_t layout_hash = 0;  // of all of the above

  float scale_adjust = 1;  // int8: the elements have been multiplied by this
  int64_t extent = 0;      // elements of the storage, padding included

  int64_t numel() const noexcept;
  size_t bytes() const noexcept { return static_cast<size_t>(extent) * dtype_bytes(dtype); }
  // Row-major float32. `data` is aligned for the dtype.
  void to_floats(const void* data, float* out) const;
  // Row-major; int8 only.
  void to_bytes(const void* data, int8_t* out) const;
};

// Descriptor and group count as PyTorch 2.6 to 2.15 writes them (668 or 772 bytes). kCorruptPackage if they are
// inconsistent or describe elements or padding beyond `storage_bytes`; kUnsupported for layouts that are not blocks.
// Extra data of int8 weights (sums for some of oneDNN's kernels) follows the elements and is ignored.
BlockedWeight parse_blocked_weight(std::span<const std::byte> metadata, size_t storage_bytes);

// For a tensor of layout kMkldnn. Kept with the storage if its bytes never change, else in `own`.
const BlockedWeight& blocked_weight(const Tensor& tensor, BlockedWeight& own);

}  // namespace sconce
