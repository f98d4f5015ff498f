// CUDA models call these in place of src/aoti_abi/compute.h: they pass operands that are not on a device to the CPU's.
#pragma once

#include <span>

#include "src/device/device_backend.h"

namespace sconce::cuda {

std::span<const DeviceBackend::Replacement> compute_replacements() noexcept;

}  // namespace sconce::cuda
