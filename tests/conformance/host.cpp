#include "tests/conformance/host.h"

#include <dlfcn.h>

namespace sconce::conformance {

std::string reason_against_isa(const std::string& isa) {
  if (isa.starts_with("AVX512") && !__builtin_cpu_supports("avx512f")) return "this CPU has no AVX-512";
  if (isa.starts_with("AVX2") && !__builtin_cpu_supports("avx2")) return "this CPU has no AVX2";
  return "";
}

std::string reason_against_cuda(const std::string& sm) {
  // The driver API, so that the program needs no CUDA to be built. Never closed: the driver does not like it.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) return "no CUDA driver";
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto attribute = reinterpret_cast<int (*)(int*, int, int)>(dlsym(driver, "cuDeviceGetAttribute"));
  if (!init || !attribute || init(0) != 0) return "no CUDA device";
  constexpr int kMajor = 75, kMinor = 76;
  int major = 0, minor = 0;
  if (attribute(&major, kMajor, 0) != 0 || attribute(&minor, kMinor, 0) != 0) return "no CUDA device";
  const std::string found = std::to_string(10 * major + minor);
  if (!sm.empty() && sm != found) return "compiled for sm_" + sm + ", this device is sm_" + found;
  return "";
}

}  // namespace sconce::conformance
