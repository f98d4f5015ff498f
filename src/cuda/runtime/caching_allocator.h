// Device memory of one stream, kept for reuse: a model that has run once for a shape asks the device for nothing when
// it runs again.
//
// Blocks have size classes (four per power of two from 512 bytes). They are handed out by the thread that uses the
// stream; they may come back from any thread, and are given out again in the order of the stream, so whoever reads a
// block elsewhere has waited for the stream before. Blocks that are out when the allocator goes keep it alive.
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
  // For the memory of a graph: what comes back is never given to the device, since the graph goes on using it.
  static CachingAllocator* create_for_graph(int device) { return new CachingAllocator(device, nullptr, true); }
  // Its owner is gone; so is the stream soon, and nothing of it is under way.
  void orphan() noexcept;

  // kOutOfMemory, after everything cached on the device was given back.
  StoragePtr allocate(size_t bytes);
  void trim() noexcept;
  // While the stream's work is recorded, nothing is given back: that would be recorded, or end the recording.
  void set_recorded(bool recorded) noexcept;
  // Before a recording of the calling thread begins. kDevice.
  static void check_capture_mode();
  // Of exactly this size, ready for any stream of the device, which is the current one; kept by no allocator.
  static StoragePtr allocate_alone(size_t bytes, int device);

  static uint64_t in_use(int device) noexcept;
  static uint64_t cached(int device) noexcept;
  // Gives back what all allocators of the device have cached.
  static void trim_all(int device) noexcept;
  // What no allocator has, and the driver keeps.
  static void trim_pool(int device) noexcept;

 private:
  static constexpr int kClasses = 4 * 48;
  struct Block {
    CachingAllocator* owner;
    void* data;
    int size_class;
    Block* next;  // while it is free: what comes back takes no memory
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
  bool open_ SCONCE_GUARDED_BY(mutex_) = true;  // its owner is there: what comes back is kept
  Block* free_[kClasses] SCONCE_GUARDED_BY(mutex_) = {};
};

}  // namespace sconce::cuda
