// Replaces libsconce's device memory, which would pull in all of its kernels: fuzzers have no devices.
#include <cstring>

#include "sconce/check.h"
#include "sconce/device_memory.h"

namespace sconce {

StoragePtr open_device_memory(std::span<const std::byte, kDeviceMemoryHandleBytes>, Device) {
  SCONCE_FAIL(kInvalidArgument, "there are no devices");
}

void wait_for_device_event(std::span<const std::byte, kDeviceEventHandleBytes>, Device) {
  SCONCE_FAIL(kInvalidArgument, "there are no devices");
}
std::vector<Device> visible_devices(DeviceType) { return {}; }
std::string device_uuid(Device) { SCONCE_FAIL(kInvalidArgument, "there are no devices"); }

// Copies between host tensors of equal element size; the destination is contiguous.
void transfer(const Tensor& source, Tensor& destination) {
  SCONCE_CHECK(source.is_cpu() && destination.is_cpu(), kUnavailable, "there are no devices");
  const size_t item = source.itemsize();
  for (int64_t i = 0; i < source.numel(); ++i) {
    int64_t at = 0, rest = i;
    for (int64_t d = source.dim(); d-- > 0; rest /= source.size(d)) at += rest % source.size(d) * source.stride(d);
    std::memcpy(static_cast<std::byte*>(destination.data()) + static_cast<size_t>(i) * item,
                static_cast<const std::byte*>(source.data()) + static_cast<size_t>(at) * item, item);
  }
}

}  // namespace sconce
