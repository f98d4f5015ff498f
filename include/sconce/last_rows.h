// The last rows of a tensor: of a model's logits, all that picking a token needs. Thread-safe.
#pragma once

#include <bit>
#include <cstdint>

#include "sconce/tensor.h"

namespace sconce {

// What is wanted of a tensor [N, ..., V] of float32, float16 or bfloat16, on any device, in any strides. Its first
// dimension is divided into `parts` equal parts. Of each part one row counts, that of the last index in all dimensions
// but the last one. A tensor [V] is one part. V is at most 2^32 - 1.
struct LastRows {
  int64_t parts = 1;
  // 0: the rows as they are, [parts, V] of the tensor's dtype. Otherwise, up to kMostLargest: the ranks of each row's
  // largest numbers, in descending order, [parts, largest] of uint64. Rows that are not longer than that come as they
  // are.
  int64_t largest = 0;
};
inline constexpr int64_t kMostLargest = 128;

// A number of a row, and its index there.
struct Ranked {
  float value = 0;
  uint32_t index = 0;
};
// Of two numbers of a row, the one with the higher rank comes first: the larger one, of equal ones that of the lower
// index. NaN is above infinity, and all NaN are equal; so are both zeros. No rank is 0.
constexpr uint64_t rank_of(float value, uint32_t index) noexcept {
  const auto bits = std::bit_cast<uint32_t>(value);
  uint32_t key = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  if ((bits & 0x7fffffffu) > 0x7f800000u) key = 0xffffffffu;
  if ((bits & 0x7fffffffu) == 0) key = 0x80000000u;
  return uint64_t{key} << 32 | (0xffffffffu - index);
}
// The number of a rank: 0 for both zeros, one NaN for all.
constexpr Ranked ranked(uint64_t rank) noexcept {
  const auto key = static_cast<uint32_t>(rank >> 32);
  return {std::bit_cast<float>((key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key),
          0xffffffffu - static_cast<uint32_t>(rank)};
}

// What is wanted of the tensor, on the host. All work on it must be over. RunRequest::last_rows does the same right
// behind a run. kInvalidArgument says what the tensor or `wanted` lacks; kOutOfMemory.
Tensor last_rows(const Tensor& tensor, const LastRows& wanted);

}  // namespace sconce
