// Unsigned integers in the order of the elements: the form in which slices are sorted and searched.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "sconce/float_types.h"

namespace sconce {

// Keys have 32 bits for elements of up to 4 bytes, else 64.
template <class T>
using SortKey = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;

// NaNs become one key above infinity, zeros of either sign one key. Written without branches: loops of it vectorise.
template <class T>
SortKey<T> sort_key(T value) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    constexpr U kSign = std::is_signed_v<T> ? U{1} << (8 * sizeof(T) - 1) : U{0};
    return static_cast<SortKey<T>>(static_cast<U>(static_cast<U>(value) ^ kSign));
  } else if constexpr (std::is_floating_point_v<T>) {
    using U = SortKey<T>;
    using S = std::make_signed_t<U>;
    constexpr int kShift = 8 * sizeof(T) - 1;
    const U bits = std::bit_cast<U>(value + T(0));  // -0 + 0 is 0
    const U ordered = bits ^ (static_cast<U>(static_cast<S>(bits) >> kShift) | U{1} << kShift);
    return value != value ? ~U{0} : ordered;
  } else {
    constexpr uint16_t kInfinity = std::is_same_v<T, Half> ? 0x7C00 : 0x7F80;
    const uint16_t magnitude = value.bits & 0x7FFF;
    const auto sign = static_cast<uint16_t>(static_cast<int16_t>(value.bits) >> 15);
    const auto ordered = static_cast<uint16_t>(value.bits ^ (sign | 0x8000));
    return magnitude > kInfinity ? 0xFFFF : magnitude == 0 ? 0x8000 : ordered;
  }
}

// Significant bits of a key.
template <class T>
inline constexpr int kSortKeyBits = std::is_same_v<T, bool> ? 1 : 8 * sizeof(T);

template <class Key>
struct KeyRange {
  Key least, greatest;
};

// Keys of n >= 1 elements, inverted for descending order. Returns the smallest and the largest key.
template <class T>
KeyRange<SortKey<T>> make_keys(const T* in, int64_t n, bool descending, SortKey<T>* keys) noexcept {
  using Key = SortKey<T>;
  constexpr Key kAll = static_cast<Key>(~Key{0}) >> (8 * sizeof(Key) - static_cast<size_t>(kSortKeyBits<T>));
  const Key flip = descending ? kAll : Key{0};
  Key least = ~Key{0}, greatest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Key key = sort_key(in[i]) ^ flip;
    keys[i] = key;
    least = std::min(least, key);
    greatest = std::max(greatest, key);
  }
  return {least, greatest};
}

}  // namespace sconce
