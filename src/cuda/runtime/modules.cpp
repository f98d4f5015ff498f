#include "src/cuda/runtime/modules.h"

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "sconce/mutex.h"
#include "src/aoti_abi/guard.h"
#include "src/cuda/runtime/error.h"

namespace sconce::cuda {
namespace {

struct Loaded {
  CUcontext context;
  const void* image;  // address of the bytes; a mapped archive stays while a model of it is loaded
  CUmodule module;
  std::set<const DeviceFiles*> users;
};

Mutex mutex;
std::vector<Loaded>& all() SCONCE_REQUIRES(mutex) {
  static std::vector<Loaded> loaded;
  return loaded;
}

CUresult load(CUmodule* module, const void* image) noexcept {
  CUcontext context = nullptr;
  if (const CUresult error = cuCtxGetCurrent(&context); error != CUDA_SUCCESS) return error;
  const DeviceFiles* user = DeviceFiles::current();
  const MutexLock lock(mutex);
  CUresult result = CUDA_SUCCESS;
  const bool in_memory = aoti_abi::guard("cuModuleLoad", [&] {
                           mutex.assert_held();
                           for (Loaded& each : all())
                             if (each.context == context && each.image == image) {
                               each.users.insert(user);
                               *module = each.module;
                               return;
                             }
                           all().reserve(all().size() + 1);
                           Loaded made{context, image, nullptr, {user}};
                           result = cuModuleLoadData(&made.module, image);
                           if (result != CUDA_SUCCESS) return;
                           *module = made.module;
                           all().push_back(std::move(made));
                         }) == 0;
  return in_memory ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace

CUresult load_module_file(CUmodule* module, const char* path) noexcept {
  const std::string_view text(path);
  const std::string_view name = text.substr(text.rfind('/') == std::string_view::npos ? 0 : text.rfind('/') + 1);
  const DeviceFiles* files = DeviceFiles::current();
  const std::span<const std::byte> image = files ? files->find(name) : std::span<const std::byte>();
  // A package must not open files of this machine.
  if (image.empty()) return CUDA_ERROR_FILE_NOT_FOUND;
  return load(module, image.data());
}

CUresult load_module_data(CUmodule* module, const void* image) noexcept { return load(module, image); }

// Does nothing: replicas share modules, so they stay until the model is unloaded.
CUresult unload_module(CUmodule) noexcept { return CUDA_SUCCESS; }

void forget_modules(const DeviceFiles& files) noexcept {
  const MutexLock lock(mutex);
  for (Loaded& each : all()) {
    if (!each.users.erase(&files) || !each.users.empty()) continue;
    const CUresult pushed = cuCtxPushCurrent(each.context);
    note_failure(pushed, "cuCtxPushCurrent(each.context)");
    SCONCE_CUDA_RELEASE(cuModuleUnload(each.module));
    CUcontext popped;
    if (pushed == CUDA_SUCCESS) SCONCE_CUDA_RELEASE(cuCtxPopCurrent(&popped));  // not if the push failed
    each.module = nullptr;
  }
  std::erase_if(all(), [](const Loaded& each) { return !each.module; });
}

}  // namespace sconce::cuda
