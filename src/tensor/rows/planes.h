// Tensors as planes: the last dimensions of each, one plane after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "src/device/threads.h"
#include "src/tensor/copy.h"
#include "src/tensor/factory.h"

namespace sconce {

// Elements per plane and number of planes: the last `dims` dimensions form a plane.
struct Planes {
  int64_t count = 1, size = 1;
};
inline Planes planes_of(IntSpan sizes, int dims) noexcept {
  Planes planes;
  for (size_t d = 0; d < sizes.size(); ++d)
    (d + static_cast<size_t>(dims) < sizes.size() ? planes.count : planes.size) *= sizes[d];
  return planes;
}

// A row-major tensor, converted to this dtype and memory format.
inline Tensor in_format(std::string_view name, const Tensor& computed, DType dtype, MemoryFormat format) {
  const bool row_major = format == MemoryFormat::kContiguous || format == MemoryFormat::kPreserve;
  if (row_major) return to_dtype(computed, dtype);
  Tensor out = empty_in_format(name, computed, dtype, format);
  copy(computed, out);
  return out;
}

// The dtype in which half types are summed.
inline DType summed_dtype(DType dtype) noexcept {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? DType::kFloat32 : dtype;
}

// Calls body(plane) for every plane, on the calling thread's team; work: elements touched per plane.
template <class F>
void for_planes(int64_t count, int64_t work, const F& body) {
  parallel_for(0, count, std::max<int64_t>(1, 32768 / std::max<int64_t>(work, 1)),
               [&](int64_t begin, int64_t end) noexcept {
                 for (int64_t plane = begin; plane < end; ++plane) body(plane);
               });
}

}  // namespace sconce
