// std::sort and std::nth_element over keys with positions, to the last swap: the order in which the standard library
// (libstdc++, which PyTorch uses) leaves equal elements is part of ATen's results. Only the implementation differs:
// partitions are formed by blocks of comparisons instead of a branch per element.
#pragma once

#include <cstdint>

namespace sconce {

// A key above its position. Items compare by key alone.
using TieItem = int64_t;
constexpr TieItem tie_item(uint32_t key, uint32_t position) noexcept {
  return static_cast<int64_t>(uint64_t{key ^ 0x80000000u} << 32 | position);
}
constexpr uint32_t tie_key(TieItem item) noexcept {
  return static_cast<uint32_t>(static_cast<uint64_t>(item) >> 32) ^ 0x80000000u;
}
constexpr uint32_t tie_position(TieItem item) noexcept { return static_cast<uint32_t>(item); }

// The expected number of n neighbouring keys that are equal to another, where `density` is keys per step of their
// range.
constexpr double expected_ties(int64_t n, double density) noexcept { return static_cast<double>(n) * density / 2; }

// As std::sort(items, items + n) by key. density: of the keys, to choose the faster algorithm; any value gives the
// same result.
void tie_sort(TieItem* items, int64_t n, double density) noexcept;
// As std::nth_element(items, items + nth, items + n) by key; nth < n.
void tie_nth_element(TieItem* items, int64_t nth, int64_t n) noexcept;

}  // namespace sconce
