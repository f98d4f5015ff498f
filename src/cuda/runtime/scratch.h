// Device memory for the duration of one operator.
#pragma once

#include <algorithm>

#include "sconce/tensor.h"

namespace sconce::cuda {

inline Tensor scratch(size_t bytes, Device device) {
  const auto count = static_cast<int64_t>(std::max<size_t>(bytes, 1));
  return Tensor::empty(IntSpan(&count, 1), DType::kUInt8, device);
}

}  // namespace sconce::cuda
