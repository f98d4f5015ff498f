#include "src/cuda/pinned_memory.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>

#include "src/cuda/error.h"

namespace sconce::cuda {
namespace {

size_t number_of_thread() noexcept {
  static std::atomic<size_t> threads{0};
  thread_local const size_t mine = threads.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace

PinnedMemory::Block* PinnedMemory::Shelf::take(int power) {
  const std::lock_guard lock(mutex);
  auto& list = free[static_cast<size_t>(power)];
  if (list.empty()) return nullptr;
  Block* const block = list.back();
  list.pop_back();
  return block;
}

void PinnedMemory::Shelf::put(Block* block) noexcept {
  const std::lock_guard lock(mutex);
  free[static_cast<size_t>(block->power)].push_back(block);
}

StoragePtr PinnedMemory::allocate(size_t bytes) {
  const int power = std::bit_width(std::max<size_t>(bytes, 4096) - 1);
  const size_t first = number_of_thread();
  Block* block = nullptr;
  for (size_t i = 0; i < shelves_.size() && !block; ++i) block = shelves_[(first + i) % shelves_.size()].take(power);
  if (!block) {
    auto fresh = std::make_unique<Block>(Block{nullptr, nullptr, power});
    SCONCE_CUDA(cudaHostAlloc(&fresh->data, size_t{1} << power, cudaHostAllocPortable));
    block = fresh.release();
  }
  block->home = &shelves_[first % shelves_.size()];
  return StoragePtr::adopt(new Storage(
      block->data, bytes, Device{},
      [](void*, size_t, void* context) noexcept {
        auto* const back = static_cast<Block*>(context);
        back->home->put(back);
      },
      block));
}

}  // namespace sconce::cuda
