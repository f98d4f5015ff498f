// Weights packed as PyTorch packs them with oneDNN.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "tests/cpu/convolution_reference.h"

namespace sconce::testing {

using Bytes = std::vector<std::byte>;

template <class T>
void put(Bytes& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

struct Block {
  int64_t size, dim;
};

// Opaque, of layout kMkldnn and constant.
struct Packed {
  Bytes metadata;
  Tensor tensor;
};
// A weight whose elements are those of `dims` in row-major order (groups first where there are several) in blocks, the
// last of them innermost. Padding, in the data and in the description, is garbage.
Packed pack(const Tensor& weight, const Ints& dims, const std::vector<Block>& blocks, int64_t groups,
            size_t metadata_bytes = 772);

}  // namespace sconce::testing
