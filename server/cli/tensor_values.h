// Fills tensors in host memory: from JSON, at random, from other layouts.
#pragma once

#include <cstdint>

#include "sconce/package.h"
#include "sconce/tensor.h"
#include "server/support/json_cursor.h"

namespace sconce::server::cli {

// Reads a nested list or one number at the cursor; complex elements are [re, im].
Tensor read_json_tensor(JsonCursor& cursor, DType dtype);
// Floats from N(0, 1), integers and bools 0 or 1; if the bounds exclude these, numbers within the bounds, or the
// nearest ones. The values depend only on seed, dtype, number of elements and bounds.
void fill_random(Tensor& tensor, uint64_t seed, const ValueBounds& bounds);
// Sizes and dtypes must be equal.
void copy_elements(const Tensor& from, Tensor& to);

}  // namespace sconce::server::cli
