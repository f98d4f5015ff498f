#pragma once

#include <cstddef>
#include <span>

#include "sconce/tensor.h"

namespace sconce::runner {

// The elements of a contiguous tensor in host memory, which the tensor keeps.
inline std::span<const std::byte> packed_bytes(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data()), tensor.bytes()};
}

}  // namespace sconce::runner
