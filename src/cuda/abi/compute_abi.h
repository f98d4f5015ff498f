// Replace the functions of src/shim/compute.h in CUDA models: they compute on the device if the operand is on one, else
// call the CPU's function.
#pragma once

#include <span>

#include "src/device/device_backend.h"

namespace sconce::cuda {

std::span<const DeviceBackend::Replacement> compute_replacements() noexcept;

}  // namespace sconce::cuda
