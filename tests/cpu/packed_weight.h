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

// An opaque constant tensor of layout kMkldnn, and its description.
struct Packed {
  Bytes metadata;
  Tensor tensor;
};
// Packs a weight, seen as a row-major tensor of sizes `dims` (with groups first if there are several), in blocks, of
// which the last is innermost. Padding in data and description gets random values.
Packed pack(const Tensor& weight, const Ints& dims, const std::vector<Block>& blocks, int64_t groups,
            size_t metadata_bytes = 772);

}  // namespace sconce::testing
