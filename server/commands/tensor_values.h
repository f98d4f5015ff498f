// Values of tensors in main memory: from JSON, random, copied between layouts.
#pragma once

#include <cstdint>

#include "sconce/tensor.h"
#include "server/base/json_cursor.h"

namespace sconce::server::commands {

// A nested list or one number; complex elements are [re, im]. The cursor stands at the value and ends behind it.
Tensor read_json_tensor(JsonCursor& cursor, DType dtype);
// Floats from N(0, 1), integers and bools 0 or 1; a function of seed, dtype and the number of elements.
void fill_random(Tensor& tensor, uint64_t seed);
// Both of the same sizes and dtype.
void copy_elements(const Tensor& from, Tensor& to);

}  // namespace sconce::server::commands
