// Finds NaN in the elements of answers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sconce/tensor.h"

namespace sconce::server::weights {

// Whether an element is NaN. Of a tensor larger than `most` bytes, only `most` bytes are scanned, beginning at `from`
// modulo its size; a caller that increases `from` with each call scans all elements eventually. False for undefined
// tensors, for tensors on a device, and for dtypes without NaN. Allocates nothing.
bool has_nan(const Tensor& tensor, size_t most, uint64_t from) noexcept;

}  // namespace sconce::server::weights
