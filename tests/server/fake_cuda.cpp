// A device library for test_device_memory.py, with two CUDA devices in host memory. A handle of shared memory is the
// name of a POSIX object, padded with zeros. Copies are logged to the file FAKE_CUDA_LOG: "cpu cuda:0 16".
#include "fake_cuda.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "sconce/check.h"
#include "sconce/device_memory.h"
#include "src/device/device_backend.h"

using namespace sconce;

namespace {

// A host tensor over the same bytes.
Tensor on_host(const Tensor& tensor) {
  return Tensor::from_blob(tensor.data(), tensor.sizes(), tensor.strides(), tensor.dtype());
}

void log_copy(const Tensor& source, const Tensor& destination) {
  static const char* const path = std::getenv("FAKE_CUDA_LOG");
  if (!path) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::ofstream(path, std::ios::app) << to_string(source.device()) << ' ' << to_string(destination.device()) << ' '
                                     << destination.bytes() << '\n';
}

FakeDevices& devices() {
  static FakeDevices all;
  return all;
}

void check_works(Device device) {
  SCONCE_CHECK(device.index != devices().lost.load(), kDevice, "an illegal memory access was encountered");
}

StoragePtr from_heap(size_t bytes, Device device) {
  void* const data = std::aligned_alloc(256, (bytes + 256) / 256 * 256);
  SCONCE_CHECK(data, kOutOfMemory, "no memory");
  std::atomic<int64_t>& live = device.type == DeviceType::kCpu ? devices().pinned : devices().live;
  live += static_cast<int64_t>(bytes);
  const auto release = [](void* address, size_t size, void* counter) noexcept {
    *static_cast<std::atomic<int64_t>*>(counter) -= static_cast<int64_t>(size);
    std::free(address);
  };
  return StoragePtr::adopt(new Storage(data, bytes, device, release, &live));
}

class FakeGraph final : public DeviceGraph {
 public:
  FakeGraph() { ++devices().recorded_memory; }
  ~FakeGraph() override { --devices().recorded_memory; }
  void launch(std::span<const DeviceCopy> before, std::span<const DeviceCopy> after) override {
    for (const auto& copies : {before, after})
      for (const DeviceCopy& copy : copies) std::memcpy(copy.to, copy.from, copy.bytes);
  }
};

class FakeLane final : public DeviceStream {
 public:
  explicit FakeLane(Device device) : device_(device) {}
  void enter() override { check_works(device_); }
  void leave() noexcept override {}
  void* stream() const noexcept override { return nullptr; }
  void synchronize() override { check_works(device_); }
  const char* fault() noexcept override {
    return device_.index == devices().lost.load() ? "an illegal memory access was encountered" : nullptr;
  }
  void trim() noexcept override {}
  void begin_capture(size_t) override {
    SCONCE_CHECK(devices().records, kUnsupported, "the fake device records nothing");
    ++devices().recordings;
  }
  std::unique_ptr<DeviceGraph> end_capture(size_t) override {
    int left = devices().recordings_to_fail;
    if (left > 0) {
      --devices().recordings_to_fail;
      SCONCE_FAIL(kDevice, "operation failed due to a previous error during capture");
    }
    return std::make_unique<FakeGraph>();
  }
  void drop_capture() noexcept override {}

 private:
  Device device_;
};

class FakeBackend final : public DeviceBackend {
 public:
  int count() override { return 2; }
  void check(Device device) override {
    SCONCE_CHECK(device.index >= 0 && device.index < 2, kInvalidArgument, "device ", to_string(device),
                 " does not exist: there are 2");
  }
  int capability(Device) override { return 90; }
  std::string name(Device) override { return "fake"; }
  std::string uuid(Device device) override {
    return "00000000-0000-0000-0000-00000000000" + std::to_string(device.index);
  }
  DeviceMemory memory(Device) override { return {1 << 30, 1 << 30, 0, 0}; }
  void trim(Device) noexcept override { ++devices().trims; }
  std::unique_ptr<DeviceStream> make_lane(Device device, LaneOptions) override {
    check_works(device);
    return std::make_unique<FakeLane>(device);
  }
  StoragePtr allocate(size_t bytes, Device device) override {
    check_works(device);
    return from_heap(bytes, device);
  }
  StoragePtr allocate_lasting(size_t bytes, Device device) override {
    ++devices().lasting;
    return allocate(bytes, device);
  }
  StoragePtr allocate_host(size_t bytes) override { return from_heap(bytes, Device{}); }
  void copy(const Tensor& source, Tensor& destination) override {
    log_copy(source, destination);
    if (destination.numel() == 0 || source.data() == destination.data()) return;
    Tensor to = on_host(destination);
    transfer(on_host(source), to);
  }
  void copy_async(const Tensor& source, Tensor& destination) override { copy(source, destination); }
  void fill(Tensor& self, const void* element) override {
    for (int64_t i = 0; i < self.numel(); ++i)
      std::memcpy(static_cast<std::byte*>(self.data()) + static_cast<size_t>(i) * self.itemsize(), element,
                  self.itemsize());
  }
  void rank_largest(const Tensor& rows, Tensor& ranks, Tensor&) override {
    const Tensor found = last_rows(on_host(rows), {.parts = rows.size(0), .largest = ranks.size(1)});
    log_copy(Tensor::from_blob(rows.data(), rows.sizes(), rows.strides(), rows.dtype(), rows.device()), ranks);
    std::memcpy(ranks.data(), found.data(), found.bytes());
  }
  void wait(Device) override {}
  StoragePtr open_shared(std::span<const std::byte, kDeviceMemoryHandleBytes> handle, Device device) override {
    const std::string name(reinterpret_cast<const char*>(handle.data()),
                           strnlen(reinterpret_cast<const char*>(handle.data()), handle.size()));
    const int descriptor = shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);
    SCONCE_CHECK(descriptor >= 0, kInvalidArgument, "failed to open CUDA IPC handle: invalid argument");
    struct stat status {};
    fstat(descriptor, &status);
    const auto size = static_cast<size_t>(status.st_size);
    void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    SCONCE_CHECK(data != MAP_FAILED, kInvalidArgument, "failed to open CUDA IPC handle: invalid argument");
    return StoragePtr::adopt(new Storage(
        data, size, device, [](void* address, size_t bytes, void*) noexcept { munmap(address, bytes); }, nullptr));
  }
  // A handle is the name of a file, padded with zeros. The event has happened when the file exists.
  void wait_for_shared(std::span<const std::byte, kDeviceEventHandleBytes> handle, Device) override {
    const std::string path(reinterpret_cast<const char*>(handle.data()),
                           strnlen(reinterpret_cast<const char*>(handle.data()), handle.size()));
    SCONCE_CHECK(path.starts_with('/'), kInvalidArgument, "failed to open CUDA IPC event: invalid argument");
    while (access(path.c_str(), F_OK) != 0) usleep(1000);
  }
  void upload(std::span<const Upload> uploads, Device, const std::function<void(uint64_t done)>& tick) override {
    uint64_t done = 0;
    for (const Upload& upload : uploads) {
      if (upload.from) {
        std::memcpy(upload.to, upload.from, upload.bytes);
      } else {
        const ssize_t read = pread(upload.file, upload.to, upload.bytes, static_cast<off_t>(upload.offset));
        SCONCE_CHECK(read == static_cast<ssize_t>(upload.bytes), kFailedPrecondition, "the file ends too early");
      }
      done += upload.bytes;
      if (tick) tick(done);
    }
  }
  std::span<const Replacement> replacements() override { return {}; }
  NamedKernel kernel_named(std::string_view) noexcept override { return nullptr; }
  void forget(const DeviceFiles&) noexcept override {}
};

}  // namespace

extern "C" [[gnu::visibility("default")]] DeviceBackend* sconce_cuda_backend(const char**) {
  static FakeBackend backend;
  return &backend;
}
extern "C" [[gnu::visibility("default")]] void sconce_cuda_make_context(int) { ++devices().contexts; }
extern "C" [[gnu::visibility("default")]] void sconce_cuda_open_libraries(const char* const* imports, size_t count,
                                                                          int64_t rows) {
  ++devices().libraries;
  devices().imports = static_cast<int64_t>(
      std::count_if(imports, imports + count, [](std::string_view name) { return name.starts_with("aoti_torch_"); }));
  devices().rows = rows;
}
extern "C" [[gnu::visibility("default")]] FakeDevices* fake_cuda_devices() { return &devices(); }
