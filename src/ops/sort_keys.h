// Unsigned integers that order as elements do: the form in which slices are sorted and searched.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "sconce/float_types.h"

namespace sconce {

// 32 bits for elements of up to 4 bytes, else 64.
template <class T>
using SortKey = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;

// NaNs become one key above infinity, zeros of either sign one key.
template <class T>
SortKey<T> sort_key(T value) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    constexpr U kSign = std::is_signed_v<T> ? U{1} << (8 * sizeof(T) - 1) : U{0};
    return static_cast<SortKey<T>>(static_cast<U>(static_cast<U>(value) ^ kSign));
  } else {
    using U = std::conditional_t<sizeof(T) == 2, uint16_t, SortKey<T>>;
    constexpr U kSign = U{1} << (8 * sizeof(T) - 1);
    constexpr U kInfinity = std::is_same_v<T, float>    ? U(0x7F800000u)
                            : std::is_same_v<T, double> ? U(uint64_t{0x7FF} << 52)
                            : std::is_same_v<T, Half>   ? U(0x7C00)
                                                        : U(0x7F80);
    const U bits = std::bit_cast<U>(value);
    const U magnitude = bits & static_cast<U>(~kSign);
    const U ordered = static_cast<U>(bits & kSign ? ~bits : bits | kSign);
    return magnitude > kInfinity ? static_cast<U>(~U{0}) : magnitude == 0 ? kSign : ordered;
  }
}

// Significant bits of a key.
template <class T>
inline constexpr int kSortKeyBits = std::is_same_v<T, bool> ? 1 : 8 * sizeof(T);

// Inverts a key where bigger elements come first.
template <class T>
SortKey<T> directed(SortKey<T> key, bool descending) noexcept {
  constexpr SortKey<T> kAll =
      static_cast<SortKey<T>>(~SortKey<T>{0}) >> (8 * sizeof(SortKey<T>) - static_cast<size_t>(kSortKeyBits<T>));
  return descending ? key ^ kAll : key;
}

}  // namespace sconce
