// Elements of planes sent to places of other planes: gradients of pooling, unpooling.
#pragma once

#include <atomic>
#include <cstring>
#include <string_view>

#include "sconce/check.h"
#include "src/device/threads.h"
#include "src/ops/copy.h"
#include "src/ops/dispatch.h"
#include "src/ops/factory.h"
#include "src/ops/fill.h"

namespace sconce {

// Elements per plane and how many planes: the last `dims` dimensions are a plane's.
struct Planes {
  int64_t count = 1, size = 1;
};
inline Planes planes_of(IntSpan sizes, int dims) noexcept {
  Planes planes;
  for (size_t d = 0; d < sizes.size(); ++d)
    (d + static_cast<size_t>(dims) < sizes.size() ? planes.count : planes.size) *= sizes[d];
  return planes;
}

// A row-major tensor in the dtype and memory format asked for.
inline Tensor in_format(std::string_view name, const Tensor& computed, DType dtype, MemoryFormat format) {
  const bool row_major = format == MemoryFormat::kContiguous || format == MemoryFormat::kPreserve;
  if (row_major) return to_dtype(computed, dtype);
  Tensor out = empty_in_format(name, computed, dtype, format);
  copy(computed, out);
  return out;
}

// The dtype that half types are summed in.
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

// to[plane] = 0, then to[plane][index] += (Add) or = from[plane][k] for every k, where index = indices[plane][k]. All
// packed. kInvalidArgument for an index outside of the plane.
template <class T, bool Add>
void scatter_planes(std::string_view name, const T* from, const int64_t* indices, Planes source, T* to,
                    int64_t plane_size) {
  std::atomic<bool> outside{false};
  std::atomic<int64_t> worst{0};
  for_planes(source.count, source.size + plane_size / 8, [&](int64_t plane) noexcept {
    const T* values = from + plane * source.size;
    const int64_t* index = indices + plane * source.size;
    T* target = to + plane * plane_size;
    std::memset(static_cast<void*>(target), 0, static_cast<size_t>(plane_size) * sizeof(T));
    for (int64_t k = 0; k < source.size; ++k) {
      if (static_cast<uint64_t>(index[k]) >= static_cast<uint64_t>(plane_size)) [[unlikely]] {
        worst.store(index[k], std::memory_order_relaxed);
        outside.store(true, std::memory_order_relaxed);
        continue;
      }
      if constexpr (Add)
        target[index[k]] += values[k];
      else
        target[index[k]] = values[k];
    }
  });
  SCONCE_CHECK(!outside, kInvalidArgument, name, ": Found an invalid max index: ", worst.load(), " (planes have ",
               plane_size, " elements)");
}

}  // namespace sconce
