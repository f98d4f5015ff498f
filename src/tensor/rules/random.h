// The arguments of random operators, checked. Match ATen, torch 2.15. kInvalidArgument.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "sconce/float_types.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

// The largest finite number of a floating type.
template <class T>
constexpr double kMaxOf = std::is_same_v<T, double>  ? std::numeric_limits<double>::max()
                          : std::is_same_v<T, float> ? std::numeric_limits<float>::max()
                          : std::is_same_v<T, Half>  ? 65504.0
                                                     : 0x1.fep127;

struct IntegerRange {
  uint64_t range;
  int64_t base;
};
// What integers of [from, to) are drawn from as the dtype: bounds that a float rounds out of the range move inwards.
// kInvalidArgument for bounds that the dtype does not hold.
IntegerRange integer_range(DType dtype, int64_t from, int64_t to);
// The same up to the last integer that counts as the dtype's.
IntegerRange integer_range_from(DType dtype, int64_t from);
// The largest integer that counts as the dtype's: up to which floats hold every one.
int64_t last_integer(DType dtype);

// Sizes of the result of multinomial.
Shape multinomial_sizes(const Tensor& self, int64_t num_samples, bool replacement);

}  // namespace sconce
