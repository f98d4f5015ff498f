#include "sconce/storage.h"

#include <mutex>
#include <new>
#include <utility>

#include "sconce/check.h"
#include "src/device/cpu_arena.h"

namespace sconce {

namespace {

// Of a storage that an arena made and that has other bytes now. Its object still lies in the arena's block: so the
// block stays, and this stands where the first bytes were (an arena's block has room for 256).
struct Moved {
  Storage::Release release;
  void* context;
  void* arena;
};

void release_moved(void* data, size_t bytes, void* context) noexcept {
  const Moved moved = *static_cast<Moved*>(context);
  if (moved.release) moved.release(data, bytes, moved.context);
  CpuArena::give_back(context, 0, moved.arena);
}

}  // namespace

struct Storage::Derived {
  DerivedKey key;
  std::shared_ptr<void> value;
  Derived* next;
};

Storage::~Storage() {
  for (Derived* node = derived_.load(std::memory_order_acquire); node;) delete std::exchange(node, node->next);
  if (release_) release_(data_, bytes_, context_);
}

void Storage::destroy() noexcept {
  const bool first = release_ == &CpuArena::give_back, later = release_ == &release_moved;
  if (!first && !later) return delete this;
  // The object lies in the block that is given back: it ends before.
  void* const data = data_;
  const size_t bytes = bytes_;
  void* const context = context_;
  const Release release = std::exchange(release_, nullptr);
  this->~Storage();
  release(data, bytes, context);
}

void Storage::set_opaque_metadata(std::vector<std::byte> bytes) {
  opaque_ = std::make_unique<std::vector<std::byte>>(std::move(bytes));
}

void Storage::reset(void* data, size_t bytes, Release release, void* context) noexcept {
  if (release_ == &CpuArena::give_back) {
    context = new (data_) Moved{release, context, context_};
    release = &release_moved;
  } else if (release_ == &release_moved) {
    auto* moved = static_cast<Moved*>(context_);
    if (moved->release) moved->release(data_, bytes_, moved->context);
    moved->release = release;
    moved->context = context;
    release = release_;
    context = context_;
  } else if (release_) {
    release_(data_, bytes_, context_);
  }
  data_ = data;
  bytes_ = bytes;
  release_ = release;
  context_ = context;
}

void* Storage::derived(const DerivedKey& key, const std::function<std::shared_ptr<void>()>& make) {
  SCONCE_CHECK(immutable_, kInternal, "derived value asked of a storage whose bytes may change");
  for (Derived* node = derived_.load(std::memory_order_acquire); node; node = node->next)
    if (node->key == key) return node->value.get();
  // One mutex for all storages: values are made at warm-up only, and making one may derive from another storage.
  static std::recursive_mutex making;
  const std::lock_guard lock(making);
  for (Derived* node = derived_.load(std::memory_order_acquire); node; node = node->next)
    if (node->key == key) return node->value.get();
  std::shared_ptr<void> value = make();
  auto* node = new Derived{key, std::move(value), derived_.load(std::memory_order_relaxed)};
  derived_.store(node, std::memory_order_release);
  return node->value.get();
}

}  // namespace sconce
