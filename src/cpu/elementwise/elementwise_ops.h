// What kernels of elementwise operators share with other families and devices.
#pragma once

#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

// hann_window; not periodic: its last element is its first.
Tensor hann_window_periodic(int64_t window_length, bool periodic, std::optional<DType> dtype,
                            std::optional<int32_t> layout, std::optional<Device> device,
                            std::optional<int32_t> pin_memory);

}  // namespace sconce::cpu
