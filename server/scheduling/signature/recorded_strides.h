// Brings inputs to the strides that a package was compiled for.
#pragma once

#include "sconce/package.h"
#include "sconce/tensor.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server {

// Whether a contiguous tensor of these sizes has the strides that the package recorded for the input.
bool row_major_is_recorded(IntSpan sizes, const TensorSpec& spec) noexcept;

// Whether a tensor, on any device, lies as the package was compiled for.
bool lies_as_recorded(const Tensor& tensor, const TensorSpec& spec) noexcept;

// Brings a contiguous tensor to the recorded strides: returns it, or a copy in the scratch. kInvalidArgument if
// elements that share memory differ, or sizes are too large.
Tensor in_recorded_strides(Tensor tensor, const TensorSpec& spec, TensorScratch& scratch);

// The same for a tensor of any strides, which is returned if it lies as recorded already.
Tensor laid_as_recorded(const Tensor& tensor, const TensorSpec& spec, TensorScratch& scratch);

// A copy in the scratch, in the recorded strides, of values that lie row-major. Errors as above.
Tensor copy_in_recorded_strides(const std::byte* values, IntSpan sizes, DType dtype, const TensorSpec& spec,
                                TensorScratch& scratch);

}  // namespace sconce::server
