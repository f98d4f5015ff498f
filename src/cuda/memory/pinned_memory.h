// PinnedMemory: memory of the host that devices read and write by themselves, kept for reuse: taking it from the system
// costs a fraction of a millisecond.
#pragma once

#include <array>

#include "sconce/mutex.h"
#include "sconce/storage.h"

namespace sconce::cuda {

// Blocks have sizes of powers of two, from 4 KiB. Each thread has a shelf that it takes from, so that replicas do not
// wait for each other; what it finds empty is looked for on the others. Blocks come back from any thread to where they
// were taken. Thread-safe; must outlive its blocks.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  StoragePtr allocate(size_t bytes);  // kOutOfMemory
  // Gives back to the system what lies on shelves that nobody used since the last call: it may wait for the
  // device, and so may taking it again.
  void trim() noexcept;

 private:
  struct Shelf;
  struct Block {
    Shelf* home;
    void* data;
    int power;
    Block* next;  // while it is free: what comes back takes no memory
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
