// Checks the arguments of the gradients of padding by the border or its reflection. Match ATen, torch 2.15.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce {

struct PaddedSides {
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, before{0, 0, 0};
  // The input's coordinate that the padded one repeats.
  int64_t source(size_t axis, int64_t at, bool reflect) const noexcept {
    at -= before[axis];
    if (reflect) at = at < 0 ? -at : at >= in[axis] ? 2 * (in[axis] - 1) - at : at;
    return std::clamp<int64_t>(at, 0, in[axis] - 1);
  }
};
// kInvalidArgument "NAME: ..."; kUnsupported for dtypes.
PaddedSides padded_sides(std::string_view name, const Tensor& grad_output, const Tensor& self, IntSpan padding,
                         int dims);

}  // namespace sconce
