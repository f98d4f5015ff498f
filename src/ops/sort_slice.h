// Stable sorting of one slice of keys into positions. Single thread; scratch memory is the caller's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sconce {

// Bytes of scratch, 64-byte aligned, that a slice of n needs.
size_t sort_scratch_bytes(size_t key_bytes, int64_t n) noexcept;

// order[i]: position in `keys` of the i-th smallest; equal keys keep their order. Only the low `bits` of keys differ.
// n below 2^32. keys has room for 16 keys beyond n.
void sort_slice(const uint32_t* keys, int bits, int64_t n, int64_t* order, void* scratch) noexcept;
void sort_slice(const uint64_t* keys, int bits, int64_t n, int64_t* order, void* scratch) noexcept;

}  // namespace sconce
