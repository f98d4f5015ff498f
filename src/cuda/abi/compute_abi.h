// The functions of src/shim/compute.h for models of a device: what is on one is computed there, the rest as on the CPU.
#pragma once

#include <span>

#include "src/device/device_backend.h"

namespace sconce::cuda {

std::span<const DeviceBackend::Replacement> compute_replacements() noexcept;

}  // namespace sconce::cuda
