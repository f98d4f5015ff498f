// Small matrix products on the calling thread alone, for kernels that split their work over threads themselves: c[m,
// n] = a[m, k] @ b[k, n], or that added to c. Matches at::native::cpublas::brgemm, torch 2.6 to 2.15.
//
// float, Half, BFloat16, Float8E4M3FN and Float8E5M2 into float, sums in float; bytes into int32, which wraps. Scratch
// memory belongs to the thread, grows to the size of its largest product and is freed with the thread: no allocation
// after that.
#pragma once

#include <cstdint>

#include "sconce/float_types.h"

namespace sconce {

struct BlockProduct {
  int64_t m, n, k;
  int64_t a_rs, b_rs, c_rs;  // elements from row to row; columns are adjacent
  bool add;                  // adds to c's content
  // b is [k / v, n, v], the v elements of a column (4 bytes) adjacent, b_rs * v from one such row to the next. k is
  // rounded up to v in b; elements of a beyond k are not read.
  bool interleaved;
};

// S: float, Half, BFloat16, Float8E4M3FN, Float8E5M2. kOutOfMemory.
template <class S>
void block_product(const BlockProduct& product, const S* a, const S* b, float* c);

// A, B: uint8_t or int8_t. kOutOfMemory.
template <class A, class B>
void block_product(const BlockProduct& product, const A* a, const B* b, int32_t* c);

// to[(k + 1) / 2, columns, 2] from b[k, columns] of 2-byte elements; a last odd row is paired with zeros.
void interleave_pairs(int64_t k, int64_t columns, const uint16_t* b, int64_t b_rs, uint16_t* to,
                      int64_t to_rs) noexcept;

}  // namespace sconce
