// Operators that take a dimension apart: their slices as the rows of a packed matrix.
#pragma once

#include "sconce/tensor.h"

namespace sconce {

// A view with dimension `dim` last.
Tensor move_last(const Tensor& tensor, int64_t dim);

// Into how many pieces, one per thread, to cut `count` slices of that much work each. For loops whose threads need
// memory of their own, which the caller must allocate before.
int64_t slice_parts(int64_t count, int64_t work_per_slice);

}  // namespace sconce
