// Sorting of one slice of keys into positions. Single thread; the caller provides scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/cpu/sorting/sort_keys.h"

namespace sconce {

// Longer slices cannot be sorted: positions have 32 bits.
constexpr int64_t kMaxSortLength = (int64_t{1} << 32) - 1;

// Bytes of scratch, 64-byte aligned, that a slice of n needs.
size_t sort_scratch_bytes(size_t key_bytes, int64_t n) noexcept;

// order[i]: position in `keys` of the i-th smallest. Equal keys keep their order if `stable`, else they get the order
// of std::sort, as in ATen. keys has room for 16 keys beyond n, and is overwritten.
void sort_slice(uint32_t* keys, KeyRange<uint32_t> range, int64_t n, bool stable, int64_t* order,
                void* scratch) noexcept;
void sort_slice(uint64_t* keys, KeyRange<uint64_t> range, int64_t n, bool stable, int64_t* order,
                void* scratch) noexcept;

}  // namespace sconce
