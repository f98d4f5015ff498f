// The largest numbers of rows, as ranks (sconce/device_memory.h).
#pragma once

#include "sconce/tensor.h"

namespace sconce::cuda {

// rows: [R, V] of float32, float16 or bfloat16 on a device, in any strides. ranks: [R, k] of uint64, packed, on the
// device or pinned, with 0 < k <= kMaxLargest and k <= V. Writes them in the order of the thread's stream. `kept` gets
// memory that the stream uses until then.
void rank_largest(const Tensor& rows, Tensor& ranks, Tensor& kept);

}  // namespace sconce::cuda
