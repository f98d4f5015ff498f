// Devices. Values are PyTorch's (c10::DeviceType).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sconce {

enum class DeviceType : int8_t { kCpu = 0, kCuda = 1, kMeta = 14 };

struct Device {
  DeviceType type = DeviceType::kCpu;
  int8_t index = -1;  // -1 for the CPU
  friend bool operator==(const Device&, const Device&) = default;
};

std::string to_string(Device device);        // "cpu", "cuda:1"
Device parse_device(std::string_view text);  // "cpu", "cuda", "cuda:1"; kInvalidArgument otherwise

}  // namespace sconce
