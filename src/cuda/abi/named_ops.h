// Operators called by name that have kernels on CUDA; the others run on the host (src/custom_ops/device_calls.h).
#pragma once

#include <string_view>

#include "src/device/device_backend.h"

namespace sconce::cuda {

// "aten::linalg_qr"; with an overload "aten::sort.stable". Null where there is none.
DeviceBackend::NamedKernel kernel_named(std::string_view name) noexcept;

}  // namespace sconce::cuda
