// Sizes and strides of operators that give another view of a tensor's storage, or that change a tensor's own sizes or
// storage, as ATen computes them (torch 2.15).
#pragma once

#include <optional>

#include "src/tensor/factory.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

// Strides with which a tensor of these sizes and strides can be read as `shape`; nullopt where it must be copied.
// The element counts are equal.
std::optional<Shape> view_strides(IntSpan sizes, IntSpan strides, IntSpan shape);
// `shape` with its -1 replaced. kInvalidArgument where the sizes do not fit numel.
Shape infer_shape(IntSpan shape, int64_t numel);
// Sizes of `self` become `size`, row-major unless they are equal already; its storage grows, keeping its bytes, where
// it is too small. kFailedPrecondition where the storage would have to grow but is a constant's.
void resize(Tensor& self, IntSpan size);

}  // namespace sconce
