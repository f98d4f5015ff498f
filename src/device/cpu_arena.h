// CpuArena: a caching allocator for the tensor storages of one replica.
//
// Blocks are cached by size class (four per power of two) and reused together with their Storage object. A model that
// ran once for a shape therefore allocates nothing when it runs again. When a run needs new blocks and the cache is
// larger than the peak use, blocks that the last two runs did not use are returned to the system. One thread at a time
// uses the arena (the replica's holder). Any thread may free a block: it pushes the block onto a lock-free stack,
// which the holder empties when it runs out of blocks. Blocks in use keep a destroyed arena alive until they are
// freed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "sconce/storage.h"

namespace sconce {

class CpuArena {
 public:
  struct Deleter {
    void operator()(CpuArena* arena) const noexcept { arena->orphan(); }
  };
  using Ptr = std::unique_ptr<CpuArena, Deleter>;
  static Ptr create() { return Ptr(new CpuArena); }

  // 64-byte aligned, uninitialised. kOutOfMemory.
  StoragePtr allocate(size_t bytes);
  // Returns cached blocks to the system. Holder only.
  void trim() noexcept;
  // Returns memory that was not in use since the last call: everything if nothing was allocated, else everything above
  // the peak. Holder only.
  void decay() noexcept;
  int64_t live_bytes() const noexcept { return live_bytes_.load(std::memory_order_relaxed); }
  // Blocks allocated from the system so far; constant on the hot path.
  int64_t system_allocations() const noexcept { return system_allocations_; }

  // The arena that Tensor::empty uses on this thread; null: the process heap.
  static CpuArena* current() noexcept;

  // Releases a storage whose object also lies in the block. The object is destroyed before, not deleted.
  static void give_back(void* data, size_t bytes, void* context) noexcept;

  // Makes the arena current on the thread. The outermost scope of an arena is a run.
  class Scope {
   public:
    explicit Scope(CpuArena* arena) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CpuArena* previous_;
  };

 private:
  static constexpr int kClasses = 4 * 44;
  struct Block {
    Block* next;
    CpuArena* owner;
    uint32_t size_class, run;  // the run that used it last
  };
  // A block is its header, its Storage object, then the bytes.
  static constexpr size_t kObject = 64, kHeader = 128;
  static_assert(sizeof(Block) <= kObject && sizeof(Storage) <= kHeader - kObject);

  CpuArena() = default;
  ~CpuArena();
  void orphan() noexcept;
  Block* take_from_system(uint32_t size_class);
  void free_unused() noexcept;
  void collect_foreign() noexcept;
  void keep(Block* block) noexcept;
  void unref() noexcept;

  Block* free_[kClasses] = {};
  size_t cached_bytes_ = 0;
  int64_t peak_live_ = 0;    // limit of the cache
  int64_t recent_peak_ = 0;  // since the last decay(); at least the memory in use at that time
  bool taken_ = false;       // whether anything was allocated since then
  uint32_t run_ = 0;
  int64_t system_allocations_ = 0;
  std::atomic<int64_t> live_bytes_{0};
  std::atomic<int64_t> references_{1};  // one for the owner, one per block in use
  std::atomic<Block*> foreign_{nullptr};
};

// From CpuArena::current(), or from the heap if there is none. 64-byte aligned, uninitialised. kOutOfMemory.
StoragePtr allocate_cpu(size_t bytes);

}  // namespace sconce
