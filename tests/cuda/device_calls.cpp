#include "tests/cuda/device_calls.h"

#include <dlfcn.h>

#include "sconce/check.h"
#include "sconce/device_memory.h"
#include "sconce/model.h"
#include "src/aoti_abi/guard.h"
#include "src/device/device_backend.h"

namespace sconce::gpu {
namespace {

// Opened when the first tensor was copied to the device.
void* library() {
  static void* const handle = dlopen(std::string(kCudaLibrary).c_str(), RTLD_NOW | RTLD_NOLOAD);
  SCONCE_CHECK(handle, kUnavailable, kCudaLibrary, " is not open: ", dlerror());
  return handle;
}

}  // namespace

const std::string& why_none() {
  static const std::string reason = [] {
    try {
      const int64_t one = 1;
      Tensor probe = Tensor::empty(IntSpan(&one, 1), DType::kFloat32);
      probe.data_as<float>()[0] = 1;
      copy_to(copy_to(probe, {DeviceType::kCuda, 0}), Device{});
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  }();
  return reason;
}

DeviceBackend& backend() {
  static DeviceBackend* const made = [] {
    const char* why = "";
    DeviceBackend* backend = reinterpret_cast<MakeBackend>(detail::function_named(kMakeBackend))(&why);
    SCONCE_CHECK(backend, kUnavailable, why);
    return backend;
  }();
  return *made;
}

namespace detail {

void* function_named(const char* name) {
  void* const function = dlsym(library(), name);
  SCONCE_CHECK(function, kInternal, kCudaLibrary, " has no ", name);
  return function;
}

void check_result(AOTITorchError result) {
  if (result == 0) return;
  const auto error = aoti_abi::take_error();
  if (!error) SCONCE_FAIL(kInternal, "the function failed without an error");
  throw Error(error->code, error->text);
}

}  // namespace detail
}  // namespace sconce::gpu
