#include "package_format/files/fault_guard.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <new>

namespace sconce {

class GuardedRange {
 public:
  std::atomic<uintptr_t> begin{0}, end{0};  // 0, 0: unused
  std::atomic<bool> taken{true};
  FaultNote note{};
  GuardedRange* next = nullptr;
};

namespace {

std::atomic<GuardedRange*> ranges{nullptr};
std::atomic<bool> guarded{false};
struct sigaction before {};

void pass_on(int signal, siginfo_t* info, void* context) noexcept {
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
  const bool fault = info->si_code > 0;
  if (before.sa_handler == SIG_IGN && !fault) return;
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  // Restores the default action: the instruction faults again, or the signal is sent again, and ends the process.
  struct sigaction end {};
  end.sa_handler = SIG_DFL;
  ::sigaction(signal, &end, nullptr);
  if (!fault) ::raise(signal);
}

void on_fault(int signal, siginfo_t* info, void* context) noexcept {
  const int error = errno;
  if (info->si_code <= 0 || !mend_fault(reinterpret_cast<uintptr_t>(info->si_addr))) pass_on(signal, info, context);
  errno = error;
}

}  // namespace

// Atomics and system calls only.
bool mend_fault(uintptr_t address) noexcept {
  for (GuardedRange* range = ranges.load(std::memory_order_acquire); range; range = range->next) {
    const uintptr_t begin = range->begin.load(std::memory_order_acquire);
    const uintptr_t end = range->end.load(std::memory_order_acquire);
    if (address < begin || address >= end) continue;
    note_fault(range->note);  // before any thread can read the zeros
    // Replaces the whole range, which is now useless, by one mapping instead of one per page.
    return show_zeros(reinterpret_cast<std::byte*>(begin), end - begin);
  }
  return false;
}

bool show_zeros(std::byte* begin, size_t bytes) noexcept {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  return ::syscall(SYS_mmap, begin, bytes, PROT_READ, kFlags, -1, 0) == reinterpret_cast<long>(begin);
}

bool note_fault(const FaultNote& note) noexcept {
  uint32_t state = note.state->load();
  do {
    if (state >= kFirstFault) return false;
  } while (!note.state->compare_exchange_weak(state, note.value));
  note.concern->fetch_add(1);
  return true;
}

void guard_faults() noexcept {
  if (guarded.exchange(true)) return;
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&ours.sa_mask);
  ::sigaction(SIGBUS, nullptr, &before);  // set before the handler can run
  ::sigaction(SIGBUS, &ours, nullptr);
}

GuardedRange* guard_range(const void* begin, size_t bytes, const FaultNote& note) noexcept {
  GuardedRange* range = ranges.load(std::memory_order_acquire);
  for (; range; range = range->next)
    if (!range->taken.exchange(true)) break;
  const bool fresh = !range;
  if (fresh) range = new (std::nothrow) GuardedRange;
  if (!range) return nullptr;
  range->note = note;
  const auto at = reinterpret_cast<uintptr_t>(begin);
  range->begin.store(at, std::memory_order_release);
  range->end.store(at + bytes, std::memory_order_release);
  if (!fresh) return range;
  range->next = ranges.load(std::memory_order_relaxed);
  while (!ranges.compare_exchange_weak(range->next, range, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return range;
}

void forget_range(GuardedRange* range) noexcept {
  if (!range) return;
  range->end.store(0, std::memory_order_release);
  range->begin.store(0, std::memory_order_release);
  range->taken.store(false, std::memory_order_release);
}

}  // namespace sconce
