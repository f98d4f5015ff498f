// Sorting of one slice of keys into positions. Single thread; scratch memory is the caller's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/cpu/sorting/sort_keys.h"

namespace sconce {

// Slices longer than that cannot be sorted: positions have 32 bits.
constexpr int64_t kMaxSortLength = (int64_t{1} << 32) - 1;

// Bytes of scratch, 64-byte aligned, that a slice of n needs.
size_t sort_scratch_bytes(size_t key_bytes, int64_t n) noexcept;

// order[i]: position in `keys` of the i-th smallest. Equal keys keep their order where `stable`, else they come in the
// order in which std::sort leaves them, as ATen's do. keys has room for 16 keys beyond n, and is overwritten.
void sort_slice(uint32_t* keys, KeyRange<uint32_t> range, int64_t n, bool stable, int64_t* order,
                void* scratch) noexcept;
void sort_slice(uint64_t* keys, KeyRange<uint64_t> range, int64_t n, bool stable, int64_t* order,
                void* scratch) noexcept;

}  // namespace sconce
