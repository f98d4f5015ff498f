// Numbers from the device's default generator.
#pragma once

#include "sconce/tensor.h"
#include "src/cuda/random/random_kernels.h"
#include "src/device/philox.h"

namespace sconce::cuda {

// kUnsupported unless it is float32, float64, float16 or bfloat16.
void check_drawn_dtype(const char* name, const Tensor& out);
// Takes `count` numbers of 32 bits of each thread's stream. Refuses capture in a graph.
PhiloxGenerator::State reserve(uint64_t count);
// The grid for `count` elements if a thread draws `numbers` at a time.
Draw draw_for(int64_t count, int64_t numbers);

}  // namespace sconce::cuda
