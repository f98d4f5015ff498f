// Random generators of operators.
#pragma once

#include <cstdint>

namespace sconce {

// Seeds the default generators of the CPU and of CUDA devices, as torch.manual_seed does.
void manual_seed(uint64_t seed);

}  // namespace sconce
