// Reads elements of any strides in row-major order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sconce/tensor.h"

namespace sconce::weights {

// Dimensions of size 1 may have any stride. Tensors without elements are row-major.
bool is_row_major(IntSpan sizes, IntSpan strides) noexcept;

// Writes elements from number `begin` on until `out` is full. `first` is element 0 of the tensor; itemsize is 1, 2, 4,
// 8 or 16.
void gather(const std::byte* first, IntSpan sizes, IntSpan strides, size_t itemsize, uint64_t begin,
            std::span<std::byte> out) noexcept;

}  // namespace sconce::weights
