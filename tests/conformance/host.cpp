#include "tests/conformance/host.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sconce::conformance {

std::string reason_against_isa(const std::string& isa) {
  if (isa.starts_with("AVX512") && !__builtin_cpu_supports("avx512f")) return "this CPU has no AVX-512";
  if (isa.starts_with("AVX2") && !__builtin_cpu_supports("avx2")) return "this CPU has no AVX2";
  return "";
}

namespace {

// sm of the first device, or why there is none. In a process of its own: one that has used the driver cannot fork, and
// cases run in forks.
std::string ask_driver() {
  int ends[2];
  if (pipe(ends) != 0) return "no CUDA device: no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const auto answer = [&](const std::string& text) {
      const ssize_t written = write(ends[1], text.data(), text.size());
      _exit(written < 0);
    };
    // The driver API, so that the program needs no CUDA to be built.
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) answer("no CUDA driver");
    const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
    const auto attribute = reinterpret_cast<int (*)(int*, int, int)>(dlsym(driver, "cuDeviceGetAttribute"));
    constexpr int kMajor = 75, kMinor = 76;
    int major = 0, minor = 0;
    if (!init || !attribute || init(0) != 0 || attribute(&major, kMajor, 0) != 0 || attribute(&minor, kMinor, 0) != 0)
      answer("no CUDA device");
    answer(std::to_string(10 * major + minor));
  }
  close(ends[1]);
  std::string text(64, '\0');
  const ssize_t got = read(ends[0], text.data(), text.size());
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text.empty() ? "no CUDA device" : text;
}

}  // namespace

std::string reason_against_cuda(const std::string& sm) {
  static const std::string found = ask_driver();
  if (found.starts_with("no ")) return found;
  if (!sm.empty() && sm != found) return "compiled for sm_" + sm + ", this device is sm_" + found;
  return "";
}

}  // namespace sconce::conformance
