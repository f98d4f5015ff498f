#include "sconce/device.h"

#include "sconce/check.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce {

std::string to_string(Device device) {
  switch (device.type) {
    case DeviceType::kCpu:
      return "cpu";
    case DeviceType::kCuda:
      return device.index < 0 ? "cuda" : "cuda:" + std::to_string(device.index);
    case DeviceType::kMeta:
      return "meta";
  }
  return "unknown";
}

Device parse_device(std::string_view text) {
  if (text == "cpu") return {};
  constexpr std::string_view kCuda = "cuda";
  if (text.substr(0, kCuda.size()) == kCuda) {
    std::string_view rest = text.substr(kCuda.size());
    if (rest.empty()) return {DeviceType::kCuda, 0};
    if (rest.front() == ':') {
      const auto index = parse_number<int8_t>(rest.substr(1));
      if (index && *index >= 0) return {DeviceType::kCuda, *index};
    }
  }
  SCONCE_FAIL(kInvalidArgument, "device: expected cpu, cuda or cuda:N, got '", excerpt(text), "'");
}

}  // namespace sconce
