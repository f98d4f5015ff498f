#include "src/device/device_backend.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "sconce/check.h"
#include "sconce/mutex.h"
#include "src/device/open_ahead.h"

namespace sconce {
namespace {

thread_local const DeviceFiles* current_files = nullptr;
thread_local DeviceLoading* current_loading = nullptr;

// Searches next to libsconce first, then in the dynamic linker's paths.
void* open_beside_us(std::string& error) {
  std::string path(kCudaLibrary);
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&open_beside_us), &info) && info.dli_fname) {
    const std::string own = info.dli_fname;
    if (const size_t slash = own.rfind('/'); slash != std::string::npos) {
      if (void* handle = dlopen((own.substr(0, slash + 1) + path).c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
      error = dlerror();
    }
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle && error.empty()) error = dlerror();
  return handle;
}

// The backend, or null with the reason. The next call tries again.
DeviceBackend* open_backend(DeviceType type, std::string& reason) {
  if (type != DeviceType::kCuda) {
    reason = "devices of type " + std::to_string(static_cast<int>(type)) + " are not supported";
    return nullptr;
  }
  static std::atomic<DeviceBackend*> backend{nullptr};
  if (DeviceBackend* open = backend.load(std::memory_order_acquire)) return open;
  static Mutex mutex;
  const MutexLock lock(mutex);
  if (DeviceBackend* open = backend.load(std::memory_order_acquire)) return open;
  std::string error;
  void* library = open_beside_us(error);
  if (!library) {
    const std::string wanted = error.starts_with("libcuda.so.1:") ? "NVIDIA's driver" : std::string(kCudaLibrary);
    reason = "CUDA devices need " + wanted + ", which cannot be opened: " + error;
    return nullptr;
  }
  const auto make = reinterpret_cast<MakeBackend>(dlsym(library, kMakeBackend));
  if (!make) {
    reason = std::string(kCudaLibrary) + " is of another version: it has no " + kMakeBackend;
    return nullptr;
  }
  const char* why = "";
  DeviceBackend* made = make(&why);
  if (!made)
    reason = std::string("CUDA devices cannot be used: ") + why;
  else
    backend.store(made, std::memory_order_release);
  return made;
}

}  // namespace

DeviceBackend& device_backend(DeviceType type) {
  std::string reason;
  DeviceBackend* backend = open_backend(type, reason);
  SCONCE_CHECK(backend, kUnavailable, reason);
  return *backend;
}

std::string why_no_device(DeviceType type) {
  std::string reason;
  open_backend(type, reason);
  return reason;
}

OpeningAhead::OpeningAhead(const std::vector<Device>& devices, ModelNeeds needs) {
  std::vector<int> indices;
  for (const Device device : devices)
    if (device.type == DeviceType::kCuda && std::find(indices.begin(), indices.end(), device.index) == indices.end())
      indices.push_back(device.index);
  if (indices.empty()) return;
  // Not on another thread, because the loader opens one library at a time and vendors' libraries take long.
  std::string error;
  void* const library = open_beside_us(error);
  if (!library) return;
  if (const auto make = reinterpret_cast<MakeContext>(dlsym(library, kMakeContext)))
    for (const int index : indices) threads_.emplace_back([=] { make(index); });
  if (const auto open = reinterpret_cast<OpenLibraries>(dlsym(library, kOpenLibraries)))
    threads_.emplace_back([open, needs = std::move(needs)] {
      std::vector<const char*> names;
      for (const std::string& name : needs.imports) names.push_back(name.c_str());
      open(names.data(), names.size(), needs.rows);
    });
}

const DeviceFiles* DeviceFiles::current() noexcept { return current_files; }
DeviceFiles::Scope::Scope(const DeviceFiles* files) noexcept : previous_(current_files) { current_files = files; }
DeviceFiles::Scope::~Scope() { current_files = previous_; }

DeviceLoading::DeviceLoading() noexcept : previous_(current_loading) { current_loading = this; }
DeviceLoading::~DeviceLoading() { current_loading = previous_; }
DeviceLoading* DeviceLoading::current() noexcept { return current_loading; }

}  // namespace sconce
