// Operators that give another view of a tensor's storage, and those that change a tensor's own sizes or storage.
// Results share the storage of `self` except where reshape must copy. Strides as ATen computes them (torch 2.15).
#pragma once

#include <optional>
#include <string_view>

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

namespace cpu {

Tensor permute(const Tensor& self, IntSpan dims);
Tensor reshape(const Tensor& self, IntSpan shape);
Tensor slice_Tensor(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                    int64_t step);
Tensor squeeze_dim(const Tensor& self, int64_t dim);
Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length);
Tensor view_dtype(const Tensor& self, DType dtype);
Tensor view_as_real(const Tensor& self);
Tensor view_as_complex(const Tensor& self);
void resize_(Tensor& self, IntSpan size, std::optional<int32_t> memory_format);
void resize_as_(Tensor& self, const Tensor& the_template, std::optional<int32_t> memory_format);
void set__source_Tensor(Tensor& self, const Tensor& source);

}  // namespace cpu
}  // namespace sconce
