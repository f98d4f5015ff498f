// NVML with two GPUs, for gpu_metrics_test.cpp. The second one reports little.
#include <cstring>

#define API extern "C" [[gnu::visibility("default")]] int

namespace {

char devices[2];
unsigned long long energy = 5000;

bool is_first(void* device) { return device == &devices[0]; }

}  // namespace

API nvmlInit_v2() { return 0; }
API nvmlShutdown() { return 0; }
API nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
API nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &devices[index];
  return 0;
}
API nvmlDeviceGetUUID(void* device, char* uuid, unsigned) {
  std::strcpy(uuid, is_first(device) ? "GPU-one" : "GPU-two");
  return 0;
}
API nvmlDeviceGetUtilizationRates(void* device, unsigned* rates) {
  rates[0] = 37;
  rates[1] = 99;
  return is_first(device) ? 0 : 3;
}
API nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  memory[0] = 80ULL << 30;
  memory[1] = 79ULL << 30;
  memory[2] = 1ULL << 30;
  return is_first(device) ? 0 : 3;
}
API nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 123456;
  return is_first(device) ? 0 : 3;
}
API nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (!is_first(device)) return 3;
  *millijoules = energy += 1500;
  return 0;
}
