// Views that only rearrange dimensions, in addition to those of op_table.def, and tensors made like another. Match
// aten::select.int, transpose.int, t, unsqueeze, squeeze, flatten.using_ints, view, expand, as_strided, conj,
// split_with_sizes, unbind, empty_like, full_like, to (torch 2.15). Results share the storage of `self` unless they
// are named as copies.
#pragma once

#include <optional>
#include <vector>

#include "src/operators/arguments.h"
#include "src/tensor/factory.h"
#include "src/tensor/scalar.h"

namespace sconce::cpu {

Tensor select(const Tensor& self, int64_t dim, int64_t index);
Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1);
Tensor t(const Tensor& self);  // of rank 2 or less
Tensor unsqueeze(const Tensor& self, int64_t dim);
Tensor squeeze(const Tensor& self);
Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim);  // copies if necessary
// kInvalidArgument if a copy would be necessary.
Tensor view(const Tensor& self, IntSpan size);
Tensor expand(const Tensor& self, IntSpan size);  // -1: unchanged
Tensor as_strided(const Tensor& self, IntSpan size, IntSpan stride, std::optional<int64_t> storage_offset);
std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim);
std::vector<Tensor> split_with_sizes(const Tensor& self, IntSpan sizes, int64_t dim);
std::vector<Tensor> unbind(const Tensor& self, int64_t dim);
Tensor _stack(TensorList tensors, int64_t dim);
Tensor stack(TensorList tensors, int64_t dim);  // as _stack, except for strides
// Copies of the tensors.
std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntSpan sizes, int64_t dim);

// A copy with the imaginary parts negated; ATen marks a view instead, with the same values for every reader. Real
// tensors are returned unchanged.
Tensor conj(const Tensor& self);

Tensor empty(IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory, OptEnum memory_format);
Tensor empty_strided(IntSpan size, IntSpan stride, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory);
Tensor empty_like(const Tensor& self, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                  OptEnum memory_format);
Tensor full_like(const Tensor& self, Scalar value, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                 OptEnum memory_format);
Tensor full(IntSpan size, Scalar value, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory);
Tensor new_full(const Tensor& self, IntSpan size, Scalar value, OptType dtype, OptEnum layout, OptDevice device,
                OptEnum pin_memory);
Tensor clone_in_format(const Tensor& self, OptEnum memory_format);
Tensor contiguous_in_format(const Tensor& self, int32_t memory_format);  // the tensor itself if it has the format
// The tensor itself if nothing changes and no copy is requested.
Tensor to(const Tensor& self, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory, bool non_blocking,
          bool copy, OptEnum memory_format);

}  // namespace sconce::cpu
