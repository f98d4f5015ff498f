#include "sconce/storage.h"

#include <new>
#include <utility>

#include "sconce/check.h"
#include "src/device/cpu_arena.h"

namespace sconce {

namespace {

// For an arena's storage whose bytes were replaced. Its object still lies in the arena's block, so the block must
// stay; this record replaces the first bytes (a block has room for 256).
struct Moved {
  Storage::Release release;
  void* context;
  void* arena;
};

std::atomic<uint64_t> derivations_so_far{0};

// Owned by the thread that derives a value; it may derive other values of the storage meanwhile.
class Making {
 public:
  explicit Making(std::atomic<const void*>& maker) noexcept
      : maker_(maker), within_(maker.load(std::memory_order_relaxed) == me()) {
    if (within_) return;
    for (const void* other = nullptr; !maker_.compare_exchange_weak(other, me(), std::memory_order_acquire);
         other = nullptr)
      if (other) maker_.wait(other, std::memory_order_relaxed);
  }
  ~Making() {
    if (within_) return;
    maker_.store(nullptr, std::memory_order_release);
    maker_.notify_all();
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

 private:
  static const void* me() noexcept {
    static thread_local const char name = 0;
    return &name;
  }
  std::atomic<const void*>& maker_;
  const bool within_;
};

void release_moved(void* data, size_t bytes, void* context) noexcept {
  const Moved moved = *static_cast<Moved*>(context);
  if (moved.release) moved.release(data, bytes, moved.context);
  CpuArena::give_back(context, 0, moved.arena);
}

}  // namespace

struct Storage::Derived {
  DerivedKey key;
  Value value;
  Derive how;
  Derived* next;
};

Storage::~Storage() {
  for (Derived* node = derived_.load(std::memory_order_acquire); node;) delete std::exchange(node, node->next);
  if (release_) release_(data_, bytes_, context_);
}

void Storage::destroy() noexcept {
  const bool first = release_ == &CpuArena::give_back, later = release_ == &release_moved;
  if (!first && !later) return delete this;
  // The object lies in the block that is released, so destroy it first.
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
  source_ = false;
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

void* Storage::known(const DerivedKey& key) const noexcept {
  const Derived* const node = find_derived(key);
  return node ? node->value.value.get() : nullptr;
}

void* Storage::derived(const DerivedKey& key, const std::function<Derive()>& how) {
  SCONCE_CHECK(immutable_, kInternal, "derived value asked of a storage whose bytes may change");
  if (const Derived* known = find_derived(key)) return known->value.value.get();
  const Making making(maker_);
  if (const Derived* known = find_derived(key)) return known->value.value.get();
  return derive(key, how());
}

const Storage::Derived* Storage::find_derived(const DerivedKey& key) const noexcept {
  const Derived* node = derived_.load(std::memory_order_acquire);
  while (node && !(node->key == key)) node = node->next;
  return node;
}

void* Storage::derive(const DerivedKey& key, Derive how) {
  Value value = how(*this);
  derivations_so_far.fetch_add(1, std::memory_order_relaxed);
  // Deriving the value may also have derived other values of these bytes.
  auto* node = new Derived{key, std::move(value), std::move(how), derived_.load(std::memory_order_relaxed)};
  derived_.store(node, std::memory_order_release);
  return node->value.value.get();
}

void Storage::derive_as(const Storage& other) {
  if (!immutable_ || &other == this) return;
  for (const Derived* node = other.derived_.load(std::memory_order_acquire); node; node = node->next)
    derived(node->key, [node] { return node->how; });
}

uint64_t Storage::derived_bytes() const noexcept {
  uint64_t bytes = 0;
  for (const Derived* node = derived_.load(std::memory_order_acquire); node; node = node->next)
    bytes += node->value.bytes;
  return bytes;
}

uint64_t Storage::derivations() noexcept { return derivations_so_far.load(std::memory_order_relaxed); }

}  // namespace sconce
