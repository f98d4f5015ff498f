// Memory of devices that processes of one host share, and copies between devices. Thread-safe.
#pragma once

#include <cstddef>
#include <span>

#include "sconce/device.h"
#include "sconce/storage.h"
#include "sconce/tensor.h"

namespace sconce {

// Of CUDA: cudaIpcMemHandle_t.
inline constexpr size_t kDeviceMemoryHandleBytes = 64;

// Memory of the device that another process of this host has given a handle of: from where the handle points to the end
// of its allocation. Closed with the last reference; the other process is to keep it until then. kInvalidArgument for a
// handle that opens nothing (one of this process itself, for one) and for a device that is not there.
StoragePtr open_device_memory(std::span<const std::byte, kDeviceMemoryHandleBytes> handle, Device device);

// destination = source, of the same sizes, and any dtypes, strides and devices. Done when it returns: every thread and
// stream that begins to read the destination from then on sees it. Of the source all that was done must be over.
void transfer(const Tensor& source, Tensor& destination);

// A copy on that device, of the same strides where they are gapless. kUnavailable, kInvalidArgument, kOutOfMemory.
Tensor copy_to(const Tensor& tensor, Device device);

}  // namespace sconce
