// Device code that models load: each image once per device, for all callers. Thread-safe.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>

#include "src/device/device_backend.h"

namespace sconce::cuda {

// Replace the model's own calls. A path is looked up among the files of the running model (DeviceFiles).
CUresult load_module_file(CUmodule* module, const char* path) noexcept;
CUresult load_module_data(CUmodule* module, const void* image) noexcept;
CUresult unload_module(CUmodule module) noexcept;
// Unloads the modules that only this model used.
void forget_modules(const DeviceFiles& files) noexcept;

}  // namespace sconce::cuda
