#include "src/loader/thread_locals.h"

#include <mutex>
#include <new>

namespace sconce::loader {
namespace {

struct Entry {
  void (*destroy)(void*);
  void* object;
  void* library;
  Entry* next;
};

// Held while a destructor runs, so that no library is unmapped under one; a destructor may register another object.
std::recursive_mutex& registry() {
  static auto* mutex = new std::recursive_mutex;  // threads may end after static destruction has begun
  return *mutex;
}

class Thread {
 public:
  Thread() {
    next_ = first_;
    first_ = this;
  }
  ~Thread() {
    const std::lock_guard lock(registry());
    while (entries_) destroy_next(&entries_);
    Thread** link = &first_;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
    gone_ = true;
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void add(Entry* entry) {
    entry->next = entries_;
    entries_ = entry;
  }
  // One destructor may have changed the list: start over after each.
  bool destroy_one_of(uintptr_t begin, uintptr_t end) {
    for (Entry** link = &entries_; *link; link = &(*link)->next) {
      const auto library = reinterpret_cast<uintptr_t>((*link)->library);
      if (library < begin || library >= end) continue;
      destroy_next(link);
      return true;
    }
    return false;
  }
  static Thread* first() noexcept { return first_; }
  Thread* next() const noexcept { return next_; }
  static bool gone() noexcept { return gone_; }

 private:
  static void destroy_next(Entry** link) {
    Entry* entry = *link;
    *link = entry->next;
    entry->destroy(entry->object);
    delete entry;
  }

  Entry* entries_ = nullptr;
  Thread* next_;
  static Thread* first_;           // guarded by registry()
  static thread_local bool gone_;  // this thread's list has been destroyed
};
Thread* Thread::first_ = nullptr;
thread_local bool Thread::gone_ = false;

}  // namespace

int add_thread_local(void (*destroy)(void*), void* object, void* library) noexcept {
  // Called after the thread's own list went: nobody is left to destroy the object, as in a process that exits.
  if (Thread::gone()) return 0;
  auto* entry = new (std::nothrow) Entry{destroy, object, library, nullptr};
  if (!entry) return -1;
  const std::lock_guard lock(registry());
  static thread_local Thread thread;
  thread.add(entry);
  return 0;
}

void destroy_thread_locals(uintptr_t begin, uintptr_t end) noexcept {
  const std::lock_guard lock(registry());
  for (Thread* thread = Thread::first(); thread;)
    if (!thread->destroy_one_of(begin, end)) thread = thread->next();
}

}  // namespace sconce::loader
