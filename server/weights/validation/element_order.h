// The order of elements that torch.argmax uses: NaN is above all numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "sconce/float_types.h"

namespace sconce::server::weights {

// The type in which an element is read. The bytes of a bool may have any value.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

// Complex numbers and pairs of float4 are not ordered.
template <class T>
constexpr bool kHasOrder = !kIsComplex<T> && !std::is_same_v<T, Float4E2M1FNx2>;

template <class T>
bool is_less(Stored<T> a, Stored<T> b) noexcept {
  if constexpr (std::is_integral_v<T>) {
    return a < b;
  } else {
    const ComputeType<T> x = a, y = b;
    return !std::isnan(x) && (std::isnan(y) || x < y);
  }
}

// The position of the first of the largest elements. stride: in elements; size: 1 or more.
template <class T>
int64_t argmax(const Stored<T>* row, int64_t size, int64_t stride = 1) noexcept {
  int64_t at = 0;
  for (int64_t i = 1; i < size; ++i)
    if (is_less<T>(row[at * stride], row[i * stride])) at = i;
  return at;
}

}  // namespace sconce::server::weights
