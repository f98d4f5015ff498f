// Scatters elements of planes to positions in other planes: gradients of pooling, unpooling.
#pragma once

#include <atomic>
#include <cstring>
#include <string_view>

#include "sconce/check.h"
#include "src/tensor/rows/planes.h"

namespace sconce {

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
