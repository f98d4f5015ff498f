#include "server/telemetry/gpu_metrics.h"

#include <dlfcn.h>

#include <utility>

namespace sconce::server::telemetry {
namespace {

// The used part of NVML's interface, which has not changed since 2012.
using Device = void*;
struct Utilization {
  unsigned gpu, memory;  // percent
};
struct Memory {
  unsigned long long total, free, used;
};
constexpr int kSuccess = 0;

// Calls a function of the library; returns false if it is missing or fails.
template <class... Parameters, class... Arguments>
bool call(void* library, int (*)(Parameters...), const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Parameters...)>(dlsym(library, name));
  return function != nullptr && function(arguments...) == kSuccess;
}

// The type of a function with these parameters.
template <class... Parameters>
constexpr int (*kTakes)(Parameters...) = nullptr;

}  // namespace

GpuReader::~GpuReader() {
  if (usable_) call(handle_, kTakes<>, "nvmlShutdown");
  if (handle_ != nullptr) dlclose(handle_);
}

std::vector<GpuState> GpuReader::look() {
  const MutexLock lock(mutex_);
  std::vector<GpuState> states;
  unsigned count = 0;
  if (!open() || !call(handle_, kTakes<unsigned*>, "nvmlDeviceGetCount_v2", &count)) return states;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    char uuid[96] = {};
    if (!call(handle_, kTakes<unsigned, Device*>, "nvmlDeviceGetHandleByIndex_v2", i, &device) ||
        !call(handle_, kTakes<Device, char*, unsigned>, "nvmlDeviceGetUUID", device, uuid, sizeof uuid - 1))
      continue;
    GpuState state;
    state.uuid = uuid;
    Utilization use{};
    if (call(handle_, kTakes<Device, Utilization*>, "nvmlDeviceGetUtilizationRates", device, &use))
      state.utilization = use.gpu / 100.0;
    Memory memory{};
    if (call(handle_, kTakes<Device, Memory*>, "nvmlDeviceGetMemoryInfo", device, &memory)) {
      state.memory_total = memory.total;
      state.memory_used = memory.used;
    }
    unsigned milliwatts = 0;
    if (call(handle_, kTakes<Device, unsigned*>, "nvmlDeviceGetPowerUsage", device, &milliwatts))
      state.power_watts = milliwatts / 1000.0;
    if (call(handle_, kTakes<Device, unsigned*>, "nvmlDeviceGetEnforcedPowerLimit", device, &milliwatts))
      state.power_limit_watts = milliwatts / 1000.0;
    unsigned long long millijoules = 0;
    if (call(handle_, kTakes<Device, unsigned long long*>, "nvmlDeviceGetTotalEnergyConsumption", device,
             &millijoules)) {
      const uint64_t first = first_energy_.try_emplace(state.uuid, millijoules).first->second;
      state.energy_joules = static_cast<double>(millijoules - first) / 1000.0;
    }
    states.push_back(std::move(state));
  }
  return states;
}

bool GpuReader::open() {
  if (std::exchange(tried_, true)) return usable_;
  handle_ = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
  usable_ = handle_ != nullptr && call(handle_, kTakes<>, "nvmlInit_v2");
  return usable_;
}

}  // namespace sconce::server::telemetry
