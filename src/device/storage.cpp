#include "sconce/storage.h"

#include <mutex>

#include "sconce/check.h"

namespace sconce {

struct Storage::Derived {
  DerivedKey key;
  std::shared_ptr<void> value;
  Derived* next;
};

Storage::~Storage() {
  for (Derived* node = derived_.load(std::memory_order_acquire); node;) delete std::exchange(node, node->next);
  if (release_) release_(data_, bytes_, context_);
}

void Storage::destroy() noexcept { delete this; }

void Storage::set_opaque_metadata(std::vector<std::byte> bytes) {
  opaque_ = std::make_unique<std::vector<std::byte>>(std::move(bytes));
}

void Storage::reset(void* data, size_t bytes, Release release, void* context) noexcept {
  if (release_) release_(data_, bytes_, context_);
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
