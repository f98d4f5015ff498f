#include "src/device/cpu_arena.h"

#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

#include "sconce/check.h"
#include "src/device/empty_memory.h"

namespace sconce {
namespace {

thread_local CpuArena* current_arena = nullptr;

constexpr size_t kSmallest = 256;
// Size classes: 256 * 2^(c/4) * {1, 1.25, 1.5, 1.75}.
size_t class_bytes(uint32_t c) { return (kSmallest << (c / 4)) / 4 * (4 + c % 4); }

uint32_t class_of(size_t bytes) {
  if (bytes <= kSmallest) return 0;
  const int shift = std::bit_width(bytes - 1) - 1;  // 2^shift < bytes <= 2^(shift+1)
  const size_t base = size_t{1} << shift;
  const size_t quarter = base / 4;
  const uint32_t step = static_cast<uint32_t>((bytes - base + quarter - 1) / quarter);  // 1..4
  const uint32_t c = static_cast<uint32_t>(shift - 8) * 4 + step;
  return c;
}

void free_heap(void* data, size_t, void*) noexcept { std::free(data); }

}  // namespace

CpuArena* CpuArena::current() noexcept { return current_arena; }
CpuArena::Scope::Scope(CpuArena* arena) noexcept : previous_(current_arena) {
  if (arena && arena != previous_) ++arena->run_;
  current_arena = arena;
}
CpuArena::Scope::~Scope() { current_arena = previous_; }

StoragePtr CpuArena::allocate(size_t bytes) {
  const uint32_t c = class_of(bytes);
  SCONCE_CHECK(c < kClasses, kOutOfMemory, "cannot allocate ", bytes, " bytes");
  if (!free_[c]) collect_foreign();
  Block* block = free_[c];
  if (block) {
    free_[c] = block->next;
    cached_bytes_ -= class_bytes(c);
  } else {
    block = take_from_system(c);
  }
  block->run = run_;
  auto* const begin = reinterpret_cast<std::byte*>(block);
  auto storage =
      StoragePtr::adopt(new (begin + kObject) Storage(begin + kHeader, bytes, Device{}, &CpuArena::give_back, this));
  references_.fetch_add(1, std::memory_order_relaxed);
  const int64_t size = static_cast<int64_t>(class_bytes(c));
  const int64_t live = live_bytes_.fetch_add(size, std::memory_order_relaxed) + size;
  if (live > recent_peak_) recent_peak_ = live;
  if (live > peak_live_) peak_live_ = live;
  taken_ = true;
  return storage;
}

CpuArena::Block* CpuArena::take_from_system(uint32_t c) {
  // Frees blocks of shapes that do not recur. Blocks that this run or the last one used stay; otherwise a run whose
  // parts need different sizes would allocate them from the system every time.
  if (cached_bytes_ > static_cast<size_t>(peak_live_)) free_unused();
  const size_t total = (kHeader + class_bytes(c) + 63) / 64 * 64;
  void* memory = std::aligned_alloc(64, total);
  SCONCE_CHECK(memory, kOutOfMemory, "cannot allocate ", total, " bytes");
  ++system_allocations_;
  return new (memory) Block{nullptr, this, c, run_};
}

void CpuArena::free_unused() noexcept {
  for (Block*& head : free_)
    for (Block** at = &head; *at;) {
      Block* const block = *at;
      if (run_ - block->run <= 1) {
        at = &block->next;
        continue;
      }
      *at = block->next;
      cached_bytes_ -= class_bytes(block->size_class);
      std::free(block);
    }
}

void CpuArena::keep(Block* block) noexcept {
  block->next = free_[block->size_class];
  free_[block->size_class] = block;
  cached_bytes_ += class_bytes(block->size_class);
}

void CpuArena::collect_foreign() noexcept {
  for (Block* block = foreign_.exchange(nullptr, std::memory_order_acquire); block;)
    keep(std::exchange(block, block->next));
}

void CpuArena::give_back(void* data, size_t, void* context) noexcept {
  auto* arena = static_cast<CpuArena*>(context);
  auto* block = reinterpret_cast<Block*>(static_cast<std::byte*>(data) - kHeader);
  arena->live_bytes_.fetch_sub(static_cast<int64_t>(class_bytes(block->size_class)), std::memory_order_relaxed);
  if (current_arena == arena) {
    arena->keep(block);
  } else {
    Block* head = arena->foreign_.load(std::memory_order_relaxed);
    do block->next = head;
    while (!arena->foreign_.compare_exchange_weak(head, block, std::memory_order_release, std::memory_order_relaxed));
  }
  arena->unref();
}

void CpuArena::trim() noexcept {
  collect_foreign();
  for (Block*& head : free_)
    while (head) {
      Block* block = std::exchange(head, head->next);
      cached_bytes_ -= class_bytes(block->size_class);
      std::free(block);
    }
}

void CpuArena::decay() noexcept {
  collect_foreign();
  const int64_t live = live_bytes();
  const int64_t wanted = taken_ ? recent_peak_ - live : 0;
  // The largest first, because small blocks serve many sizes.
  for (int c = kClasses; c-- > 0;)
    while (free_[c] && static_cast<int64_t>(cached_bytes_) > wanted) {
      Block* block = std::exchange(free_[c], free_[c]->next);
      cached_bytes_ -= class_bytes(static_cast<uint32_t>(c));
      std::free(block);
    }
  peak_live_ = taken_ ? recent_peak_ : live;
  recent_peak_ = live;
  taken_ = false;
}

void CpuArena::orphan() noexcept { unref(); }
void CpuArena::unref() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}
CpuArena::~CpuArena() { trim(); }

StoragePtr allocate_cpu(size_t bytes) {
  if (bytes == 0) return StoragePtr::adopt(new Storage(empty_memory(), 0, Device{}, nullptr, nullptr));
  if (current_arena) return current_arena->allocate(bytes);
  const size_t total = (bytes + 63) / 64 * 64;
  SCONCE_CHECK(total >= bytes, kOutOfMemory, "cannot allocate ", bytes, " bytes");
  struct Free {
    void operator()(void* data) const noexcept { std::free(data); }
  };
  std::unique_ptr<void, Free> data(std::aligned_alloc(64, total));
  SCONCE_CHECK(data, kOutOfMemory, "cannot allocate ", bytes, " bytes");
  auto storage = StoragePtr::adopt(new Storage(data.get(), bytes, Device{}, &free_heap, nullptr));
  data.release();
  return storage;
}

}  // namespace sconce
