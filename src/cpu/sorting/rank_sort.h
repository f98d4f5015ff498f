// Sorting of short slices: each element's rank is counted against all others. Quadratic, but without branches on the
// data. Stable.
#pragma once

#include <cstdint>

namespace sconce {

// Up to these lengths it is the fastest way.
constexpr int64_t kRankSort32 = 160;
constexpr int64_t kRankSort64 = 96;

// order[i]: position of the i-th smallest key. keys has room for 8 keys beyond n, of any value.
void rank_sort(const uint32_t* keys, int64_t n, int64_t* order) noexcept;
void rank_sort(const uint64_t* keys, int64_t n, int64_t* order) noexcept;

}  // namespace sconce
