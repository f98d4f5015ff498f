// Constants in one piece of a device's memory.
#pragma once

#include "sconce/tensor.h"

namespace sconce::runner {

// Plans a part: returns its offset and moves `total` past it.
size_t place_on_device(size_t bytes, size_t& total);

// Part of a piece of device memory, which it keeps alive.
StoragePtr part_of(const StoragePtr& memory, size_t offset, size_t bytes);
// A tensor laid out like `like` over such a part, which nobody writes.
Tensor part_of(const StoragePtr& memory, size_t offset, const Tensor& like);

}  // namespace sconce::runner
