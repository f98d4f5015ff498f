#include "src/cuda/runtime/caching_allocator.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "sconce/mutex.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"

namespace sconce::cuda {
namespace {

constexpr int kMaxDevices = 64;
constexpr size_t kSmallest = 512;

struct alignas(64) Counters {  // each device's counters have their own cache line
  std::atomic<uint64_t> in_use{0}, cached{0};
};
Counters& counters(int device) noexcept {
  static Counters all[kMaxDevices];
  return all[device % kMaxDevices];
}

Mutex registry_mutex;
std::vector<CachingAllocator*>& registry() SCONCE_REQUIRES(registry_mutex) {
  static std::vector<CachingAllocator*> all;
  return all;
}

// CUDA refused to restore the capture mode. In relaxed mode it no longer refuses calls that would spoil a recording.
thread_local bool mode_is_relaxed = false;

// Class c holds blocks of (4 + c % 4) / 4 * 512 * 2^(c / 4) bytes.
size_t class_bytes(int size_class) noexcept {
  return (4 + static_cast<size_t>(size_class % 4)) * (kSmallest / 4) << (size_class / 4);
}
int class_of(size_t bytes) noexcept {
  if (bytes <= kSmallest) return 0;
  const int power = std::bit_width((bytes - 1) / kSmallest) - 1;  // 512 << power <= bytes - 1
  for (int quarter = 1; quarter <= 4; ++quarter)
    if (class_bytes(4 * power + quarter) >= bytes) return 4 * power + quarter;
  return 4 * power + 4;
}

}  // namespace

CachingAllocator::CachingAllocator(int device, cudaStream_t stream, bool of_graph)
    : device_(device), of_graph_(of_graph), stream_(stream) {
  if (of_graph) return;
  const MutexLock lock(registry_mutex);
  registry().push_back(this);
}

CachingAllocator::~CachingAllocator() = default;

void CachingAllocator::unref() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void CachingAllocator::orphan() noexcept {
  {
    const MutexLock lock(registry_mutex);
    std::erase(registry(), this);
  }
  trim();
  {
    const MutexLock lock(mutex_);
    open_ = false;  // blocks that come back later go to the device
  }
  unref();
}

void CachingAllocator::check_capture_mode() {
  if (!mode_is_relaxed) return;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  SCONCE_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  mode_is_relaxed = false;
}

cudaError_t CachingAllocator::take(void** data, size_t size) noexcept {
  if (!of_graph_) return cudaMallocAsync(data, size, stream_);
  // Relaxed mode, so that CUDA allows the allocation during the recording and does not record it.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  if (const cudaError_t error = cudaThreadExchangeStreamCaptureMode(&mode); error != cudaSuccess) return error;
  cudaError_t error = cudaMalloc(data, size);
  const cudaError_t back = cudaThreadExchangeStreamCaptureMode(&mode);
  mode_is_relaxed = back != cudaSuccess;
  if (error == cudaSuccess && back != cudaSuccess) {
    SCONCE_CUDA_RELEASE(cudaFree(*data));
    error = back;
  }
  return error;
}

StoragePtr CachingAllocator::allocate(size_t bytes) {
  const int size_class = class_of(bytes);
  SCONCE_CHECK(size_class < kClasses, kOutOfMemory, "device memory: ", bytes, " bytes are too many");
  const size_t size = class_bytes(size_class);
  Block* block = nullptr;
  {
    const MutexLock lock(mutex_);
    if ((block = free_[size_class])) free_[size_class] = block->next;
  }
  if (block) {
    counters(device_).cached.fetch_sub(size, std::memory_order_relaxed);
  } else {
    auto fresh = std::make_unique<Block>(Block{this, nullptr, size_class, nullptr});
    cudaError_t error = take(&fresh->data, size);
    if (error == cudaErrorMemoryAllocation && !of_graph_) {
      cudaGetLastError();
      trim_all(device_);
      error = take(&fresh->data, size);
    }
    check(error, "taking device memory");
    block = fresh.release();
  }
  counters(device_).in_use.fetch_add(size, std::memory_order_relaxed);
  references_.fetch_add(1, std::memory_order_relaxed);
  auto* const storage = new (std::nothrow) Storage(
      block->data, bytes, {DeviceType::kCuda, static_cast<int8_t>(device_)}, &CachingAllocator::give_back, block);
  if (!storage) {
    give_back(block->data, bytes, block);
    SCONCE_FAIL(kOutOfMemory, "device memory: out of memory on the host");
  }
  return StoragePtr::adopt(storage);
}

StoragePtr CachingAllocator::allocate_alone(size_t bytes, int device) {
  void* data = nullptr;
  cudaError_t error = cudaMalloc(&data, std::max<size_t>(bytes, 1));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    trim_all(device);
    error = cudaMalloc(&data, std::max<size_t>(bytes, 1));
  }
  check(error, "taking device memory");
  counters(device).in_use.fetch_add(bytes, std::memory_order_relaxed);
  const auto release = [](void* address, size_t size, void* context) noexcept {
    static_cast<Counters*>(context)->in_use.fetch_sub(size, std::memory_order_relaxed);
    SCONCE_CUDA_RELEASE(cudaFree(address));
  };
  auto* const storage = new (std::nothrow)
      Storage(data, bytes, {DeviceType::kCuda, static_cast<int8_t>(device)}, release, &counters(device));
  if (!storage) {
    release(data, bytes, &counters(device));
    SCONCE_FAIL(kOutOfMemory, "device memory: out of memory on the host");
  }
  return StoragePtr::adopt(storage);
}

void CachingAllocator::give_back(void*, size_t, void* context) noexcept {
  auto* block = static_cast<Block*>(context);
  CachingAllocator* owner = block->owner;
  const size_t size = class_bytes(block->size_class);
  counters(owner->device_).in_use.fetch_sub(size, std::memory_order_relaxed);
  bool kept = false;
  {
    const MutexLock lock(owner->mutex_);
    if (owner->open_) {
      block->next = std::exchange(owner->free_[block->size_class], block);
      kept = true;
    }
  }
  if (kept) {
    counters(owner->device_).cached.fetch_add(size, std::memory_order_relaxed);
  } else {
    const ReleaseScope scope(owner->device_);
    SCONCE_CUDA_RELEASE(cudaFree(block->data));
    delete block;
  }
  owner->unref();
}

void CachingAllocator::set_recorded(bool recorded) noexcept {
  const MutexLock lock(mutex_);
  recorded_ = recorded;
}

void CachingAllocator::trim() noexcept {
  const MutexLock lock(mutex_);
  if (recorded_) return;
  const ReleaseScope scope(device_);
  for (Block*& list : free_)
    while (Block* const block = list) {
      list = block->next;
      if (of_graph_)
        SCONCE_CUDA_RELEASE(cudaFree(block->data));
      else
        SCONCE_CUDA_RELEASE(cudaFreeAsync(block->data, stream_));
      counters(device_).cached.fetch_sub(class_bytes(block->size_class), std::memory_order_relaxed);
      delete block;
    }
  if (!of_graph_ && open_) SCONCE_CUDA_RELEASE(cudaStreamSynchronize(stream_));
}

void CachingAllocator::trim_all(int device) noexcept {
  {
    const MutexLock lock(registry_mutex);
    for (CachingAllocator* each : registry())
      if (each->device_ == device) each->trim();
  }
  trim_pool(device);
}

void CachingAllocator::trim_pool(int device) noexcept {
  cudaMemPool_t pool = nullptr;
  if (cudaDeviceGetDefaultMemPool(&pool, device) == cudaSuccess) cudaMemPoolTrimTo(pool, 0);
  cudaGetLastError();  // this error is ignored, and a later call must not report it
}

uint64_t CachingAllocator::in_use(int device) noexcept { return counters(device).in_use; }
uint64_t CachingAllocator::cached(int device) noexcept { return counters(device).cached; }

}  // namespace sconce::cuda
