// Memory that another process allocated with cudaMalloc and exported with cudaIpcGetMemHandle, and its events.
// Thread-safe.
#pragma once

#include <cstddef>
#include <span>

#include "sconce/device_memory.h"

namespace sconce::cuda {

// Throws kInvalidArgument if CUDA refuses the handle; kOutOfMemory.
StoragePtr open_shared_memory(std::span<const std::byte, kDeviceMemoryHandleBytes> handle, Device device);

// Throws kInvalidArgument if CUDA refuses the handle; kDevice.
void wait_for_shared_event(std::span<const std::byte, kDeviceEventHandleBytes> handle, Device device);

}  // namespace sconce::cuda
