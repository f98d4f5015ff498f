// Device memory for the duration of one operator.
#pragma once

#include <algorithm>

#include "sconce/tensor.h"
#include "src/cuda/runtime/error.h"

namespace sconce::cuda {

inline Tensor scratch(size_t bytes, Device device) {
  const auto count = static_cast<int64_t>(std::max<size_t>(bytes, 1));
  return Tensor::empty(IntSpan(&count, 1), DType::kUInt8, device);
}

// Calls call(memory, bytes) twice: with null memory it only writes the required size, then it gets that much. `name`
// and `dtype` are for errors, as in check_launch().
template <class F>
void with_scratch(const char* name, DType dtype, Device device, F&& call) {
  size_t bytes = 0;
  check_launch(name, call(nullptr, bytes), dtype);
  const Tensor memory = scratch(bytes, device);
  check_launch(name, call(memory.data(), bytes), dtype);
}

}  // namespace sconce::cuda
