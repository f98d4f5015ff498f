// Positions of non-zero elements. Matches aten::nonzero and nonzero_static (torch 2.15, CPU).
#pragma once

#include <cstdint>

#include "sconce/tensor.h"

namespace sconce {

// One bit per element in row-major order, set if the element is not zero (NaN is not zero). Several threads may read
// it.
class NonzeroBits {
 public:
  // Any dtype that has values, any strides.
  explicit NonzeroBits(const Tensor& tensor);
  int64_t count() const noexcept { return count_; }
  int64_t words() const noexcept { return words_; }
  uint64_t word(int64_t i) const noexcept { return bits_.data_as<uint64_t>()[i]; }
  // The number of set bits before word i * kBlock: the start of the i-th block's positions in the result.
  static constexpr int64_t kBlock = 512;
  int64_t before_block(int64_t i) const noexcept { return before_.data_as<int64_t>()[i]; }
  int64_t blocks() const noexcept { return (words_ + kBlock - 1) / kBlock; }

 private:
  int64_t words_ = 0, count_ = 0;
  Tensor bits_, before_;
};

// The coordinates of every set bit, for a tensor of these sizes: column d of the result holds the d-th coordinate;
// int64 [count, rank] with strides [1, count].
Tensor nonzero_positions(const NonzeroBits& bits, IntSpan sizes);

}  // namespace sconce
