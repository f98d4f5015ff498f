// Device code that models load: each piece once per device, whoever asks. Thread-safe.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>

#include "src/device/device_backend.h"

namespace sconce::cuda {

// In place of the model's own calls. A path is looked up among the files of the model that runs (DeviceFiles).
CUresult load_module_file(CUmodule* module, const char* path) noexcept;
CUresult load_module_data(CUmodule* module, const void* image) noexcept;
CUresult unload_module(CUmodule module) noexcept;
// Modules that nobody but this model uses are unloaded.
void forget_modules(const DeviceFiles& files) noexcept;

}  // namespace sconce::cuda
