// Caches the device memory of one stream: once a model has run for a shape, the next run allocates nothing from the
// device.
//
// Blocks have size classes (four per power of two from 512 bytes). The thread that uses the stream allocates them; any
// thread may free them. A block is reused in stream order, so a reader on another stream must have waited for this
// stream first. Blocks in use keep the allocator alive after its owner is destroyed.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

#include "sconce/mutex.h"
#include "sconce/storage.h"

namespace sconce::cuda {

class alignas(64) CachingAllocator {
 public:
  static CachingAllocator* create(int device, cudaStream_t stream) {
    return new CachingAllocator(device, stream, false);
  }
  // For the memory of a graph. Freed blocks stay allocated, because the graph continues to use them.
  static CachingAllocator* create_for_graph(int device) { return new CachingAllocator(device, nullptr, true); }
  // The owner calls this when it is destroyed. No work of the stream may be in flight; the stream ends soon after.
  void orphan() noexcept;

  // Throws kOutOfMemory only after all cached memory of the device was freed and that did not suffice.
  StoragePtr allocate(size_t bytes);
  void trim() noexcept;
  // While the stream is recorded, nothing is freed: CUDA would record the free or end the recording.
  void set_recorded(bool recorded) noexcept;
  // Call before the calling thread starts a recording. Throws kDevice.
  static void check_capture_mode();
  // Exactly this size, usable by any stream of `device`, which must be the current one. No allocator caches it.
  static StoragePtr allocate_alone(size_t bytes, int device);

  static uint64_t in_use(int device) noexcept;
  static uint64_t cached(int device) noexcept;
  // Frees what all allocators of the device have cached.
  static void trim_all(int device) noexcept;
  // Frees what the driver's pool keeps beyond that.
  static void trim_pool(int device) noexcept;

 private:
  static constexpr int kClasses = 4 * 48;
  struct Block {
    CachingAllocator* owner;
    void* data;
    int size_class;
    Block* next;  // links free blocks, so that returning one allocates nothing
  };
  CachingAllocator(int device, cudaStream_t stream, bool of_graph);
  cudaError_t take(void** data, size_t size) noexcept;
  ~CachingAllocator();
  static void give_back(void* data, size_t bytes, void* context) noexcept;
  void unref() noexcept;

  const int device_;
  const bool of_graph_;
  cudaStream_t stream_;
  std::atomic<int64_t> references_{1};
  Mutex mutex_;  // held for moments
  bool recorded_ SCONCE_GUARDED_BY(mutex_) = false;
  bool open_ SCONCE_GUARDED_BY(mutex_) = true;  // its owner exists: freed blocks are cached
  Block* free_[kClasses] SCONCE_GUARDED_BY(mutex_) = {};
};

}  // namespace sconce::cuda
