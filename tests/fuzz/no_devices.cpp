// Replaces libsconce's device memory, which would pull in all of its kernels: fuzzers have no devices.
#include "sconce/check.h"
#include "sconce/device_memory.h"

namespace sconce {

StoragePtr open_device_memory(std::span<const std::byte, kDeviceMemoryHandleBytes>, Device) {
  SCONCE_FAIL(kInvalidArgument, "there are no devices");
}

void transfer(const Tensor&, Tensor&) { SCONCE_FAIL(kUnavailable, "there are no devices"); }

}  // namespace sconce
