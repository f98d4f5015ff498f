#include "src/aoti_abi/host_services.h"

#include "src/device/cpu_arena.h"
#include "src/device/cpu_isa.h"

namespace sconce {
namespace {

class Services final : public HostServices {
 public:
  DeviceBackend& device_backend(DeviceType type) override { return sconce::device_backend(type); }
  const DeviceFiles* device_files() noexcept override { return DeviceFiles::current(); }
  DeviceLoading* device_loading() noexcept override { return DeviceLoading::current(); }
  PhiloxGenerator& philox_generator(int device) override { return sconce::philox_generator(device); }
  StoragePtr allocate_cpu(size_t bytes) override { return sconce::allocate_cpu(bytes); }
  bool has_avx512() noexcept override { return sconce::has_avx512(); }
  int kernel_threads() noexcept override { return sconce::kernel_threads(); }
  void parallel_ranges(int64_t begin, int64_t end, int64_t grain, detail::RangeBody body,
                       const void* context) noexcept override {
    detail::parallel_ranges(begin, end, grain, body, context);
  }
  void* take_handle_memory() override { return aoti_abi::take_handle_memory(); }
  void keep_handle_memory(void* memory) noexcept override { aoti_abi::keep_handle_memory(memory); }
  AOTITorchError record_failure(const char* function) noexcept override { return aoti_abi::record_failure(function); }
  std::optional<aoti_abi::ShimError> take_error() noexcept override { return aoti_abi::take_error(); }
};

constinit Services services;

}  // namespace
}  // namespace sconce

extern "C" sconce::HostServices* sconce_host_services() noexcept { return &sconce::services; }
