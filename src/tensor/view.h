// Sizes and strides for operators that return another view of a tensor's storage, or that change a tensor's own sizes
// or storage, as ATen computes them (torch 2.15).
#pragma once

#include <optional>

#include "src/tensor/factory.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

// Strides with which a tensor of these sizes and strides can be read as `shape`; nullopt if it must be copied. The
// element counts are equal.
std::optional<Shape> view_strides(IntSpan sizes, IntSpan strides, IntSpan shape);
// `shape` with its -1 replaced. kInvalidArgument if the sizes do not match numel.
Shape infer_shape(IntSpan shape, int64_t numel);
// Sets the sizes of `self` to `size`, row-major unless they are equal already. If the storage is too small, it grows
// and keeps its bytes. kFailedPrecondition if the storage would have to grow but is a constant's.
void resize(Tensor& self, IntSpan size);

}  // namespace sconce
