// Converts inputs to the strides that a package was compiled for.
#pragma once

#include "sconce/package.h"
#include "sconce/tensor.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::scheduling {

// Whether a contiguous tensor of these sizes has the strides that the package recorded for the input.
bool row_major_is_recorded(IntSpan sizes, const TensorSpec& spec) noexcept;

// Whether the layout of a tensor, on any device, is the one that the package was compiled for.
bool lies_as_recorded(const Tensor& tensor, const TensorSpec& spec) noexcept;

// Converts a contiguous tensor to the recorded strides: returns it unchanged, or a copy in the scratch.
// kInvalidArgument if elements that would share memory differ, or if sizes are too large.
Tensor in_recorded_strides(Tensor tensor, const TensorSpec& spec, TensorScratch& scratch);

// Likewise for a tensor of any strides; it is returned unchanged if it already has the recorded layout.
Tensor laid_as_recorded(const Tensor& tensor, const TensorSpec& spec, TensorScratch& scratch);

// Copies row-major values into the scratch, in the recorded strides. Errors as above.
Tensor copy_in_recorded_strides(const std::byte* values, IntSpan sizes, DType dtype, const TensorSpec& spec,
                                TensorScratch& scratch);

}  // namespace sconce::server::scheduling
