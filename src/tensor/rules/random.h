// Checks the arguments of random operators. Match ATen, torch 2.15. kInvalidArgument.
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
// The range from which integers of [from, to) are drawn for the dtype: bounds that a float rounds out of the range
// move inwards. kInvalidArgument for bounds that the dtype cannot hold.
IntegerRange integer_range(DType dtype, int64_t from, int64_t to);
// As above, up to last_integer().
IntegerRange integer_range_from(DType dtype, int64_t from);
// The largest integer of the dtype; for floats, the largest up to which they hold every integer.
int64_t last_integer(DType dtype);

// Sizes of the result of multinomial.
Shape multinomial_sizes(const Tensor& self, int64_t num_samples, bool replacement);

}  // namespace sconce
