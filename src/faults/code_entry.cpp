#include "src/faults/code_entry.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <utility>

#include "src/faults/code_ranges.h"

namespace sconce::faults {
namespace {

std::atomic<bool> needed{false};

// Room for the search of the stack, a report and a host's handler, in addition to the registers that the kernel saves
// there. Pages that no handler has used take no memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kHandlerRoom = 256 << 10;
#else
constexpr size_t kHandlerRoom = 64 << 10;
#endif

// A thread's alternate stack, above a guard page.
class AlternateStack {
 public:
  AlternateStack() = default;
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;
  ~AlternateStack() {
    if (memory_ == MAP_FAILED) return;
    stack_t now{};
    if (::sigaltstack(nullptr, &now) == 0 && now.ss_sp == stack()) {
      now = {};
      now.ss_flags = SS_DISABLE;
      ::sigaltstack(&now, nullptr);
    }
    ::munmap(memory_, page_ + size_);
  }

  // Whether the thread now has one.
  bool make() noexcept {
    const size_t saved = ::getauxval(AT_MINSIGSTKSZ);  // registers of this CPU; 0: an old kernel
    size_ = (kHandlerRoom + saved + page_ - 1) / page_ * page_;
    memory_ = ::mmap(nullptr, page_ + size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory_ == MAP_FAILED) return false;
    stack_t ours{};
    ours.ss_sp = stack();
    ours.ss_size = size_;
    if (::mprotect(stack(), size_, PROT_READ | PROT_WRITE) == 0 && ::sigaltstack(&ours, nullptr) == 0) return true;
    ::munmap(memory_, page_ + size_);
    memory_ = MAP_FAILED;
    return false;
  }

 private:
  void* stack() const noexcept { return static_cast<std::byte*>(memory_) + page_; }

  const size_t page_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t size_ = 0;
  void* memory_ = MAP_FAILED;
};

}  // namespace

constinit thread_local CodeThread code_thread{};

void need_alternate_stacks() noexcept { needed.store(true, std::memory_order_relaxed); }

// If no memory is left for a stack, the thread continues without one, and its next call tries again.
void make_thread_ready() noexcept {
  if (!needed.load(std::memory_order_relaxed)) return;
  stack_t now{};
  if (::sigaltstack(nullptr, &now) != 0) return;
  if (now.ss_flags & SS_DISABLE) {
    thread_local AlternateStack own;
    if (!own.make()) return;
  }
  code_thread.ready = true;
}

void CodeEntry::count_loss() noexcept {
  const uintptr_t at = std::exchange(thread_.left_at, 0);
  if (const int64_t lost = thread_.taken - taken_; lost > 0) faults::count_loss(at, static_cast<uint64_t>(lost));
}

}  // namespace sconce::faults
