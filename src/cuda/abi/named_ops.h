// Operators called by name that have CUDA kernels; the others run on the host (src/custom_ops/device_calls.h).
#pragma once

#include <string_view>

#include "src/device/device_backend.h"

namespace sconce::cuda {

// Name as in "aten::linalg_qr" or, with an overload, "aten::sort.stable". Null if there is no kernel.
DeviceBackend::NamedKernel kernel_named(std::string_view name) noexcept;

}  // namespace sconce::cuda
