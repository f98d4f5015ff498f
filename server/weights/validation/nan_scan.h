// Finds NaN among the elements of answers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sconce/tensor.h"

namespace sconce::server {

// Whether one of the elements is NaN. Of a larger tensor than `most` bytes, looks at that many from `from` on, where
// that is taken modulo its size: whoever increases it from call to call sees all elements in the end. False for
// undefined tensors, those on a device, and dtypes without NaN. Allocates nothing.
bool has_nan(const Tensor& tensor, size_t most, uint64_t from) noexcept;

}  // namespace sconce::server
