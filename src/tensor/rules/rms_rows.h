// The dimensions that root mean square normalisation covers. Matches aten::_fused_rms_norm, torch 2.15.
#pragma once

#include <cstdint>

#include "sconce/check.h"
#include "sconce/tensor.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

// The normalised rows, of `length` elements, over the dimensions from `kept` on.
struct RmsRows {
  int64_t kept, rows = 1, length = 1;
  Shape root_sizes;  // of the reciprocal roots
};
inline RmsRows rms_rows(const Tensor& input, IntSpan normalized_shape) {
  const auto reduced = static_cast<int64_t>(normalized_shape.size());
  SCONCE_CHECK(reduced <= input.dim(), kInvalidArgument, "rms_norm: normalized_shape ", to_string(normalized_shape),
               " has more dimensions than input of size ", to_string(input.sizes()));
  RmsRows all{reduced == 0 ? 0 : input.dim() - reduced, 1, 1, Shape(input.sizes())};
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (d < all.kept) {
      all.rows *= input.size(d);
    } else {
      all.length *= input.size(d);
      all.root_sizes[static_cast<int>(d)] = 1;
    }
  }
  return all;
}

}  // namespace sconce
