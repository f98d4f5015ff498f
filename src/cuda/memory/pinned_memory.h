// PinnedMemory: host memory that devices read and write directly. It is cached, because the system needs a fraction of
// a millisecond to provide it.
#pragma once

#include <array>

#include "sconce/mutex.h"
#include "sconce/storage.h"

namespace sconce::cuda {

// Block sizes are powers of two from 4 KiB. Each thread allocates from its own shelf, so that replicas do not wait for
// each other, and from other shelves if that is empty. Any thread may free a block; it returns to the shelf that it
// came from. Thread-safe; must outlive its blocks.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  StoragePtr allocate(size_t bytes);  // kOutOfMemory
  // Frees the shelves that were not used since the last call. Freeing may wait for the device, and so may the next
  // allocation.
  void trim() noexcept;

 private:
  struct Shelf;
  struct Block {
    Shelf* home;
    void* data;
    int power;
    Block* next;  // links free blocks, so that returning one allocates nothing
  };
  struct alignas(64) Shelf {
    Mutex mutex;
    std::array<Block*, 65> free SCONCE_GUARDED_BY(mutex){};
    bool used SCONCE_GUARDED_BY(mutex) = false;  // since the last trim()
    Block* take(int power) noexcept;
    void put(Block* block) noexcept;
  };
  std::array<Shelf, 16> shelves_;
};

}  // namespace sconce::cuda
