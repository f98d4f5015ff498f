#include "src/cuda/memory/pinned_memory.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <new>
#include <utility>

#include "src/cuda/runtime/error.h"

namespace sconce::cuda {
namespace {

size_t number_of_thread() noexcept {
  static std::atomic<size_t> threads{0};
  thread_local const size_t mine = threads.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace

PinnedMemory::Block* PinnedMemory::Shelf::take(int power) noexcept {
  const MutexLock lock(mutex);
  Block*& list = free[static_cast<size_t>(power)];
  Block* const block = list;
  if (block) list = block->next;
  used |= block != nullptr;
  return block;
}

void PinnedMemory::Shelf::put(Block* block) noexcept {
  const MutexLock lock(mutex);
  block->next = std::exchange(free[static_cast<size_t>(block->power)], block);
  used = true;
}

PinnedMemory::~PinnedMemory() {
  for (int i = 0; i < 2; ++i) trim();  // the first keeps what was used since
}

void PinnedMemory::trim() noexcept {
  for (Shelf& shelf : shelves_) {
    std::array<Block*, 65> idle{};
    {
      const MutexLock lock(shelf.mutex);
      if (!std::exchange(shelf.used, false)) idle.swap(shelf.free);
    }
    for (Block* list : idle)
      while (Block* const block = list) {
        list = block->next;
        SCONCE_CUDA_RELEASE(cudaFreeHost(block->data));
        delete block;
      }
  }
}

StoragePtr PinnedMemory::allocate(size_t bytes) {
  const int power = std::bit_width(std::max<size_t>(bytes, 4096) - 1);
  const size_t first = number_of_thread();
  Block* block = nullptr;
  for (size_t i = 0; i < shelves_.size() && !block; ++i) block = shelves_[(first + i) % shelves_.size()].take(power);
  if (!block) {
    auto fresh = std::make_unique<Block>(Block{nullptr, nullptr, power, nullptr});
    SCONCE_CUDA(cudaHostAlloc(&fresh->data, size_t{1} << power, cudaHostAllocPortable));
    block = fresh.release();
  }
  block->home = &shelves_[first % shelves_.size()];
  const auto release = [](void*, size_t, void* context) noexcept {
    auto* const back = static_cast<Block*>(context);
    back->home->put(back);
  };
  auto* const storage = new (std::nothrow) Storage(block->data, bytes, Device{}, release, block);
  if (!storage) {
    release(block->data, bytes, block);
    SCONCE_FAIL(kOutOfMemory, "pinned memory: out of memory");
  }
  return StoragePtr::adopt(storage);
}

}  // namespace sconce::cuda
