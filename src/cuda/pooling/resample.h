// Low-pass resizing, called by name only. Results follow src/cpu/pooling/resample_antialias.h.
#pragma once

#include "src/tensor/spatial/low_pass.h"

namespace sconce::cuda {

LowPassKernel low_pass;
LowPassGradient low_pass_backward;

}  // namespace sconce::cuda
