#include "tests/bench/cuda/device.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "sconce/device_memory.h"

namespace sconce {

std::vector<Device> devices_of(const char* numbers) {
  std::vector<Device> devices;
  for (const char* at = numbers; *at;) {
    char* end = nullptr;
    devices.push_back({DeviceType::kCuda, static_cast<int8_t>(std::strtol(at, &end, 10))});
    if (end == at || (*end && *end != ',')) return {};
    at = *end ? end + 1 : end;
  }
  return devices;
}

Tensor input_of(const TensorSpec& spec, int64_t dynamic) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : spec.dims) sizes.push_back(dim.is_static() ? dim.min : std::clamp(dynamic, dim.min, dim.max));
  const DType dtype = spec.dtype.value_or(DType::kFloat32);
  std::vector<int64_t> strides;
  for (const auto& stride : spec.strides)
    if (stride) strides.push_back(*stride);
  // The recorded strides if they are dense (channels-last), else row-major.
  Tensor t = Tensor::empty(sizes, dtype);
  if (strides.size() == sizes.size()) {
    const Tensor laid_out = Tensor::empty_strided(sizes, strides, dtype);
    if (laid_out.storage()->bytes() == t.bytes()) t = laid_out;
  }
  auto* bytes = static_cast<unsigned char*>(t.data());
  // Makes small positive numbers in any floating type; only the exponent's byte matters.
  for (size_t i = 0; i < t.bytes(); ++i) bytes[i] = t.dtype() == DType::kFloat32 && i % 4 == 3 ? 0x3D : 0;
  const Device device = spec.device.value_or(Device{DeviceType::kCuda, 0});
  return device.type == DeviceType::kCpu ? t : copy_to(t, {DeviceType::kCuda, 0});
}

double taken_mb() {
  size_t free = 0, total = 0;
  if (cudart("cudaMemGetInfo", &free, &total) != 0) return -1;
  return static_cast<double>(total - free) / 1048576;
}

double resident_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::atof(line.c_str() + 6) / 1024;
  return 0;
}

}  // namespace sconce
