// The state of this host's GPUs, from the driver's management library (NVML), which the first look() loads.
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sconce/mutex.h"

namespace sconce::server::telemetry {

// A value is absent if the device or its driver does not report it.
struct GpuState {
  std::string uuid;                   // "GPU-..."
  std::optional<double> utilization;  // 0 to 1
  std::optional<uint64_t> memory_total, memory_used;
  std::optional<double> power_watts, power_limit_watts;
  std::optional<double> energy_joules;  // since the first look()
};

class GpuReader {
 public:
  explicit GpuReader(const char* library = "libnvidia-ml.so.1") : library_(library) {}
  GpuReader(const GpuReader&) = delete;
  GpuReader& operator=(const GpuReader&) = delete;
  ~GpuReader();

  // In the driver's order; empty without a driver.
  std::vector<GpuState> look();

 private:
  bool open() SCONCE_REQUIRES(mutex_);

  const std::string library_;
  Mutex mutex_;
  bool tried_ SCONCE_GUARDED_BY(mutex_) = false, usable_ SCONCE_GUARDED_BY(mutex_) = false;
  void* handle_ SCONCE_GUARDED_BY(mutex_) = nullptr;
  std::map<std::string, uint64_t> first_energy_ SCONCE_GUARDED_BY(mutex_);  // millijoules
};

}  // namespace sconce::server::telemetry
