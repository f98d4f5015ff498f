#include "src/loader/library/thread_locals.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "sconce/mutex.h"

extern "C" void* __tls_get_addr(sconce::loader::ThreadLocalIndex* index);

namespace sconce::loader {
namespace {

// A reserve of destructors and blocks for the case that memory runs out.
constexpr size_t kReserve = 256, kReservedBytes = 256, kAlignment = 64;

struct Entry {
  void (*destroy)(void*);
  void* object;
  void* library;
  Entry* next;
};

// One thread's memory for one library. Only its thread reads and extends the list, without a lock. Unloading the
// library sets `module` to 0, and the thread then reuses the block.
struct Block {
  std::atomic<uint64_t> module;
  Block* next;
  std::byte* bytes;
  size_t size, alignment;
};

struct alignas(kAlignment) ReservedBlock {
  std::byte bytes[kReservedBytes];
  alignas(Block) std::byte block[sizeof(Block)];
};

template <class T>
class Reserve {
 public:
  T* take() noexcept {
    for (size_t i = 0; i < kReserve; ++i)
      if (!used_[i]) return used_[i] = true, &items_[i];
    return nullptr;
  }
  bool give(T* item) noexcept {
    if (item < items_ || item >= items_ + kReserve) return false;
    used_[item - items_] = false;
    return true;
  }

 private:
  T items_[kReserve];
  bool used_[kReserve];
};

// Plain data, so that it exists before any constructor and after any destructor of the thread.
struct Thread {
  Entry* entries;
  Block* blocks;
  Thread* next;
  bool listed, gone;  // gone: its list is destroyed
};

// Recursive; its lifetime is that of the data below.
class SCONCE_THREAD_SAFETY(capability("mutex")) RecursiveMutex {
 public:
  void lock() noexcept SCONCE_ACQUIRE() { pthread_mutex_lock(&mutex_); }
  void unlock() noexcept SCONCE_RELEASE() { pthread_mutex_unlock(&mutex_); }
  // In a child of fork(), where the owner has another thread id.
  void unlock_in_child() noexcept SCONCE_RELEASE() { mutex_ = pthread_mutex_t PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; }

 private:
  pthread_mutex_t mutex_ = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
};

// Held while a destructor runs, so that its library is not unmapped. Recursive, as a destructor may register an object.
constinit RecursiveMutex registry;
struct SCONCE_THREAD_SAFETY(scoped_lockable) Lock {
  Lock() noexcept SCONCE_ACQUIRE(registry) { registry.lock(); }
  ~Lock() SCONCE_RELEASE() { registry.unlock(); }
  Lock(const Lock&) = delete;
};

// Everything here exists before static initialisation and after static destruction, as threads may still end then.
thread_local constinit Thread self{};
constinit Thread* first SCONCE_GUARDED_BY(registry) = nullptr;
constinit Reserve<Entry> reserved_entries SCONCE_GUARDED_BY(registry){};
constinit Reserve<ReservedBlock> reserved_blocks SCONCE_GUARDED_BY(registry){};

// A child of fork() has one thread. The lists of the others are in memory that the child's next threads reuse.
void lock_before_fork() noexcept SCONCE_ACQUIRE(registry) { registry.lock(); }
void unlock_after_fork() noexcept SCONCE_RELEASE(registry) { registry.unlock(); }
void forget_other_threads() noexcept SCONCE_RELEASE(registry) {
  first = self.listed ? &self : nullptr;
  self.next = nullptr;
  registry.unlock_in_child();
}
[[maybe_unused]] const int watches_forks = pthread_atfork(&lock_before_fork, &unlock_after_fork, &forget_other_threads);

std::vector<ThreadImage>& images() SCONCE_REQUIRES(registry) {
  static auto* const list = new std::vector<ThreadImage>;
  return *list;
}

void free_entry(Entry* entry) noexcept SCONCE_REQUIRES(registry) {
  if (!reserved_entries.give(entry)) delete entry;
}

void destroy_next(Entry** link) noexcept SCONCE_REQUIRES(registry) {
  Entry* const entry = *link;
  *link = entry->next;
  entry->destroy(entry->object);
  free_entry(entry);
}

void free_block(Block* block) noexcept SCONCE_REQUIRES(registry) {
  if (reserved_blocks.give(reinterpret_cast<ReservedBlock*>(block->bytes))) return;
  std::free(block->bytes);
  delete block;
}

void end_thread(void*) noexcept {
  const Lock lock;
  while (self.entries) destroy_next(&self.entries);
  while (Block* const block = self.blocks) {
    self.blocks = block->next;
    free_block(block);
  }
  Thread** link = &first;
  while (*link != &self) link = &(*link)->next;
  *link = self.next;
  self.listed = false;
  self.gone = true;
}

// Calls end_thread() at the end of threads that set it. While a process has few keys, setting one allocates nothing.
class EndKey {
 public:
  EndKey() noexcept : made_(pthread_key_create(&key_, &end_thread) == 0) {}
  ~EndKey() {
    if (made_) pthread_key_delete(key_);
    made_ = false;
  }
  bool set() noexcept { return made_ && pthread_setspecific(key_, &self) == 0; }

 private:
  pthread_key_t key_{};
  bool made_;
};
EndKey& end_key() noexcept {
  static EndKey key;
  return key;
}
[[maybe_unused]] const EndKey& made_early = end_key();

bool list_thread() noexcept SCONCE_REQUIRES(registry) {
  if (self.listed) return true;
  if (!end_key().set()) return false;
  self.next = first;
  first = &self;
  return self.listed = true;
}

Block* make_block(const ThreadImage& image) noexcept SCONCE_REQUIRES(registry) {
  const size_t alignment = std::max(image.alignment, kAlignment);
  const size_t size = (std::max<size_t>(image.size, 1) + alignment - 1) / alignment * alignment;
  for (Block* block = self.blocks; block; block = block->next)
    if (block->module == 0 && block->size >= size && block->alignment >= alignment) return block;
  auto* const bytes = static_cast<std::byte*>(std::aligned_alloc(alignment, size));
  auto* block = bytes ? new (std::nothrow) Block{0, nullptr, bytes, size, alignment} : nullptr;
  if (block == nullptr) {
    std::free(bytes);
    ReservedBlock* const reserved =
        size <= kReservedBytes && alignment <= kAlignment ? reserved_blocks.take() : nullptr;
    if (reserved == nullptr) return nullptr;
    block = ::new (static_cast<void*>(reserved->block)) Block{0, nullptr, reserved->bytes, kReservedBytes, kAlignment};
  }
  block->next = self.blocks;
  self.blocks = block;
  return block;
}

void* add_block(ThreadLocalIndex* index) noexcept {
  const Lock lock;
  const auto image = std::find_if(images().begin(), images().end(),
                                  [&](const ThreadImage& one) { return one.module == index->module; });
  if (image == images().end()) return __tls_get_addr(index);  // a library not managed here, such as libstdc++
  // If the thread has ended or cannot be listed, the block is never freed.
  if (!self.gone) list_thread();
  Block* const block = make_block(*image);
  if (block == nullptr) {
    std::fputs("sconce: no memory for a model's thread-local data\n", stderr);
    std::abort();
  }
  std::memcpy(block->bytes, image->bytes, image->filled);
  std::memset(block->bytes + image->filled, 0, image->size - image->filled);
  block->module.store(image->module, std::memory_order_relaxed);
  return block->bytes + index->offset;
}

// A destructor may change the list, so start over after each.
bool destroy_one_of(Thread& thread, uintptr_t begin, uintptr_t end) noexcept SCONCE_REQUIRES(registry) {
  for (Entry** link = &thread.entries; *link; link = &(*link)->next) {
    const auto library = reinterpret_cast<uintptr_t>((*link)->library);
    if (library < begin || library >= end) continue;
    destroy_next(link);
    return true;
  }
  return false;
}

}  // namespace

int add_thread_local(void (*destroy)(void*), void* object, void* library) noexcept {
  // The thread's list is gone, so the object is never destroyed, as in a process that exits.
  if (self.gone) return 0;
  const Lock lock;
  if (!list_thread()) return -1;
  auto* entry = new (std::nothrow) Entry;
  if (!entry) entry = reserved_entries.take();
  if (!entry) return -1;
  *entry = {destroy, object, library, self.entries};
  self.entries = entry;
  return 0;
}

void add_thread_image(const ThreadImage& image) {
  const Lock lock;
  images().push_back(image);
}

void* find_thread_local(ThreadLocalIndex* index) noexcept {
  for (Block* block = self.blocks; block; block = block->next)
    if (block->module.load(std::memory_order_relaxed) == index->module) return block->bytes + index->offset;
  return add_block(index);
}

void destroy_thread_locals(uintptr_t begin, uintptr_t end) noexcept {
  const Lock lock;
  for (Thread* thread = first; thread;)
    if (!destroy_one_of(*thread, begin, end)) thread = thread->next;
  for (const ThreadImage& image : images()) {
    const auto address = reinterpret_cast<uintptr_t>(image.bytes);
    if (address < begin || address >= end) continue;
    for (Thread* thread = first; thread; thread = thread->next)
      for (Block* block = thread->blocks; block; block = block->next)
        if (block->module == image.module) block->module = 0;
  }
  std::erase_if(images(), [&](const ThreadImage& image) {
    const auto address = reinterpret_cast<uintptr_t>(image.bytes);
    return address >= begin && address < end;
  });
}

}  // namespace sconce::loader

// For libsconce's own objects: glibc would end the process if it had no memory to register one.
extern "C" __attribute__((visibility("hidden"))) int __cxa_thread_atexit(void (*destroy)(void*), void* object,
                                                                         void* library) noexcept {
  return sconce::loader::add_thread_local(destroy, object, library);
}
