// Memory of a device that processes of one host share, and copies between devices. Thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sconce/device.h"
#include "sconce/storage.h"
#include "sconce/tensor.h"

namespace sconce {

// sizeof(cudaIpcMemHandle_t)
inline constexpr size_t kDeviceMemoryHandleBytes = 64;

// Opens device memory that another process of this host shares by a handle. The storage reaches from where the handle
// points to the end of that allocation. The last reference closes it; until then the other process must keep the
// memory. kInvalidArgument if the handle opens nothing (a handle of this process itself does not) or there is no such
// device.
StoragePtr open_device_memory(std::span<const std::byte, kDeviceMemoryHandleBytes> handle, Device device);

// sizeof(cudaIpcEventHandle_t)
inline constexpr size_t kDeviceEventHandleBytes = 64;

// Returns when the work is done that another process of this host recorded in an event of its device before it shared
// the event by this handle. kInvalidArgument if the handle opens nothing, or if that takes more than a minute.
void wait_for_device_event(std::span<const std::byte, kDeviceEventHandleBytes> handle, Device device);

// Devices of a kind that this process sees; none if there is no driver.
std::vector<Device> visible_devices(DeviceType type);
// Names a device in every process of the host: "5a3cfa2e-...", as torch.cuda.get_device_properties(i).uuid.
std::string device_uuid(Device device);

// Copies source to destination, of the same sizes and any dtypes, strides and devices. All work on the source must be
// over. When the call returns, every thread and stream that reads the destination from then on sees the values.
void transfer(const Tensor& source, Tensor& destination);

// Tensors of one device, joined along their first dimension in new memory there. They are alike besides that dimension,
// and the rows of each lie one after the other without gaps. All work on them must be over, as it is on the result.
// kOutOfMemory. wait: false in RunRequest::preparing(), where the result is for that run; the parts stay until it is
// over.
Tensor join_rows(std::span<const Tensor> parts, bool wait = true);

// A copy on that device; gapless strides are kept. kUnavailable, kInvalidArgument, kOutOfMemory.
Tensor copy_to(const Tensor& tensor, Device device);

}  // namespace sconce
