// libsconce_cuda's definitions of the functions of src/device and src/aoti_abi that have state. Each calls libsconce.
#include "src/aoti_abi/host_services.h"

#include "src/device/cpu_arena.h"
#include "src/device/cpu_isa.h"

namespace sconce {
namespace {

HostServices& host() noexcept {
  static HostServices& services = *sconce_host_services();
  return services;
}

}  // namespace

DeviceBackend& device_backend(DeviceType type) { return host().device_backend(type); }
const DeviceFiles* DeviceFiles::current() noexcept { return host().device_files(); }
DeviceLoading* DeviceLoading::current() noexcept { return host().device_loading(); }

PhiloxGenerator& philox_generator(int device) { return host().philox_generator(device); }

StoragePtr allocate_cpu(size_t bytes) { return host().allocate_cpu(bytes); }
bool has_avx512() noexcept { return host().has_avx512(); }
int kernel_threads() noexcept { return host().kernel_threads(); }
void detail::parallel_ranges(int64_t begin, int64_t end, int64_t grain, RangeBody body, const void* context) noexcept {
  host().parallel_ranges(begin, end, grain, body, context);
}

namespace aoti_abi {

void* take_handle_memory() { return host().take_handle_memory(); }
void keep_handle_memory(void* memory) noexcept { host().keep_handle_memory(memory); }
AOTITorchError record_failure(const char* function) noexcept { return host().record_failure(function); }
std::optional<ShimError> take_error() noexcept { return host().take_error(); }

}  // namespace aoti_abi
}  // namespace sconce
