// For operators over slices of a dimension: the slices as the rows of a packed matrix.
#pragma once

#include "sconce/tensor.h"

namespace sconce {

// A view with dimension `dim` last.
Tensor move_last(const Tensor& tensor, int64_t dim);

// The number of pieces, one per thread, into which to cut `count` slices of that much work each. For loops whose
// threads need their own memory, which the caller must allocate before.
int64_t slice_parts(int64_t count, int64_t work_per_slice);

}  // namespace sconce
