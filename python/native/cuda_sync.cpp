#include "python/native/cuda_sync.h"

#include <dlfcn.h>
#include <nanobind/nanobind.h>

#include <array>
#include <atomic>

#include "sconce/check.h"

namespace sconce::python {
namespace {

// Declared here, because the module is built without CUDA's headers.
struct Driver {
  int (*device_get)(int* device, int ordinal);
  int (*retain_context)(void** context, int device);
  int (*push_context)(void* context);
  int (*pop_context)(void** context);
  int (*synchronize)(void* stream);
  const char* missing = nullptr;
};

Driver open_driver() {
  Driver driver{};
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto find = [&](const char* name) {
    void* function = library ? dlsym(library, name) : nullptr;
    if (!function) driver.missing = name;
    return function;
  };
  driver.device_get = reinterpret_cast<decltype(driver.device_get)>(find("cuDeviceGet"));
  driver.retain_context = reinterpret_cast<decltype(driver.retain_context)>(find("cuDevicePrimaryCtxRetain"));
  driver.push_context = reinterpret_cast<decltype(driver.push_context)>(find("cuCtxPushCurrent_v2"));
  driver.pop_context = reinterpret_cast<decltype(driver.pop_context)>(find("cuCtxPopCurrent_v2"));
  driver.synchronize = reinterpret_cast<decltype(driver.synchronize)>(find("cuStreamSynchronize"));
  return driver;
}

void check(int result, const char* call) {
  SCONCE_CHECK(result == 0, kDevice, call, ": CUDA error ", result, " while a tensor's library was waited for");
}

// The context that all libraries of the process share, kept for as long as the process lives.
void* primary_context(const Driver& driver, int device) {
  static std::array<std::atomic<void*>, 64> contexts{};
  SCONCE_CHECK(device >= 0 && device < static_cast<int>(contexts.size()), kInvalidArgument, "no CUDA device ", device);
  std::atomic<void*>& known = contexts[static_cast<size_t>(device)];
  if (void* context = known.load()) return context;
  int handle = 0;
  void* context = nullptr;
  check(driver.device_get(&handle, device), "cuDeviceGet");
  check(driver.retain_context(&context, handle), "cuDevicePrimaryCtxRetain");
  known.store(context);
  return context;
}

}  // namespace

void wait_for_stream(int device, void* stream) {
  static const Driver driver = open_driver();
  SCONCE_CHECK(!driver.missing, kUnavailable, "libcuda.so.1 has no ", driver.missing ? driver.missing : "");
  const nanobind::gil_scoped_release released;
  check(driver.push_context(primary_context(driver, device)), "cuCtxPushCurrent");
  const int result = driver.synchronize(stream);
  void* context = nullptr;
  check(driver.pop_context(&context), "cuCtxPopCurrent");
  check(result, "cuStreamSynchronize");
}

}  // namespace sconce::python
