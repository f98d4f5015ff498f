// The CUDA side of DeviceBackend, and the function by which libsconce finds it.
#include <memory>
#include <string>
#include <vector>

#include "src/cuda/abi/compute_abi.h"
#include "src/cuda/abi/named_ops.h"
#include "src/cuda/memory/model_memory.h"
#include "src/cuda/memory/pinned_memory.h"
#include "src/cuda/memory/shared_memory.h"
#include "src/cuda/memory/upload.h"
#include "src/cuda/runtime/caching_allocator.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/modules.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/sorting/largest.h"
#include "src/device/device_backend.h"

namespace sconce::cuda {
namespace {

class Backend final : public DeviceBackend {
 public:
  explicit Backend(int count) : count_(count) {
    for (int i = 0; i < count; ++i) uploaders_.push_back(std::make_unique<Uploader>(i));
  }

  int count() override { return count_; }
  void check(Device device) override {
    SCONCE_CHECK(device.index >= 0 && device.index < count_, kInvalidArgument, "device ", to_string(device),
                 " does not exist: there ", count_ == 1 ? "is " : "are ", count_);
  }
  int capability(Device device) override {
    int major = 0, minor = 0;
    SCONCE_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index));
    SCONCE_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device.index));
    return 10 * major + minor;
  }
  std::string name(Device device) override {
    cudaDeviceProp properties;
    SCONCE_CUDA(cudaGetDeviceProperties(&properties, device.index));
    return properties.name;
  }
  std::string uuid(Device device) override {
    cudaDeviceProp properties;
    SCONCE_CUDA(cudaGetDeviceProperties(&properties, device.index));
    std::string text;
    for (size_t i = 0; i < sizeof properties.uuid.bytes; ++i) {
      if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
      const auto byte = static_cast<unsigned char>(properties.uuid.bytes[i]);
      text += "0123456789abcdef"[byte >> 4];
      text += "0123456789abcdef"[byte & 15];
    }
    return text;
  }
  DeviceMemory memory(Device device) override {
    const DeviceScope scope(device);
    DeviceMemory memory;
    size_t free = 0, total = 0;
    SCONCE_CUDA(cudaMemGetInfo(&free, &total));
    return {total, free, CachingAllocator::in_use(device.index), CachingAllocator::cached(device.index)};
  }
  void trim(Device device) noexcept override {
    const ReleaseScope scope(device.index);
    uploaders_[static_cast<size_t>(device.index)]->trim();
    pinned_.trim();
    CachingAllocator::trim_pool(device.index);
  }

  std::unique_ptr<DeviceStream> make_lane(Device device, LaneOptions options) override {
    check(device);
    return std::make_unique<Lane>(device, options);
  }
  StoragePtr allocate(size_t bytes, Device device) override {
    check(device);
    // A null address: if a kernel writes to a result without elements, that faults instead of spoiling another tensor.
    if (bytes == 0) return StoragePtr::adopt(new Storage(nullptr, 0, device, nullptr, nullptr));
    const DeviceScope scope(device);
    if (CachingAllocator* memory = current().memory) return memory->allocate(bytes);
    return CachingAllocator::allocate_alone(bytes, device.index);
  }
  StoragePtr allocate_lasting(size_t bytes, Device device) override {
    check(device);
    const DeviceScope scope(device);
    return CachingAllocator::allocate_alone(bytes, device.index);
  }
  StoragePtr allocate_host(size_t bytes) override { return pinned_.allocate(bytes); }
  void copy(const Tensor& source, Tensor& destination) override { cuda::copy(source, destination, true); }
  void copy_async(const Tensor& source, Tensor& destination) override { cuda::copy(source, destination, false); }
  void fill(Tensor& self, const void* element) override { cuda::fill(self, element); }
  void rank_largest(const Tensor& rows, Tensor& ranks, Tensor& kept) override { cuda::rank_largest(rows, ranks, kept); }
  void wait(Device device) override {
    const DeviceScope scope(device);
    SCONCE_CUDA(cudaStreamSynchronize(current_stream()));
  }
  StoragePtr open_shared(std::span<const std::byte, kDeviceMemoryHandleBytes> bytes, Device device) override {
    return open_shared_memory(bytes, device);
  }
  void wait_for_shared(std::span<const std::byte, kDeviceEventHandleBytes> bytes, Device device) override {
    wait_for_shared_event(bytes, device);
  }
  void upload(std::span<const Upload> uploads, Device device, const std::function<void(uint64_t)>& tick) override {
    const DeviceScope scope(device);
    uploaders_[static_cast<size_t>(device.index)]->send(uploads, current_stream(), tick);
  }

  std::span<const Replacement> replacements() override {
    static const std::vector<Replacement> all = [] {
      std::vector<Replacement> rows{
          {"cudaMalloc", reinterpret_cast<void*>(&model_malloc)},
          {"cudaFree", reinterpret_cast<void*>(&model_free)},
          {"cudaMemcpy", reinterpret_cast<void*>(&model_memcpy)},
          {"cudaMemcpyAsync", reinterpret_cast<void*>(&model_memcpy_async)},
          {"cuModuleLoad", reinterpret_cast<void*>(&load_module_file)},
          {"cuModuleLoadData", reinterpret_cast<void*>(&load_module_data)},
          {"cuModuleUnload", reinterpret_cast<void*>(&unload_module)},
      };
      const auto compute = compute_replacements();
      rows.insert(rows.end(), compute.begin(), compute.end());
      return rows;
    }();
    return all;
  }
  NamedKernel kernel_named(std::string_view name) noexcept override { return cuda::kernel_named(name); }
  void forget(const DeviceFiles& files) noexcept override { forget_modules(files); }

 private:
  const int count_;
  std::vector<std::unique_ptr<Uploader>> uploaders_;
  PinnedMemory pinned_;
};

}  // namespace
}  // namespace sconce::cuda

extern "C" sconce::DeviceBackend* sconce_cuda_backend(const char** reason) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    cudaGetLastError();
    *reason = sconce::cuda::text_of(error);
    return nullptr;
  }
  if (count == 0) {
    *reason = "there is none";
    return nullptr;
  }
  // Never deleted: a model that unloads late still returns its memory to it.
  return new sconce::cuda::Backend(count);
}
