// Kernels of elementwise operators that other families and devices share.
#pragma once

#include "src/operators/arguments.h"

namespace sconce::cpu {

// hann_window; not periodic: its last element is its first.
Tensor hann_window_periodic(int64_t window_length, bool periodic, OptType dtype, OptEnum layout, OptDevice device,
                            OptEnum pin_memory);

}  // namespace sconce::cpu
