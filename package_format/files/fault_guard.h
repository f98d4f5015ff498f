// The SIGBUS guard: who reads a page of a mapped file that cannot be had (the file was truncated, the disk fails) reads
// zeros instead of ending the process, and the file's owner is told that its bytes are no good any more.
//
// A signal's handler is the process's, not a library's: nothing is guarded before guard_faults() was called, which the
// program does and a host may.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sconce {

// From now on. Faults elsewhere, and signals that were sent, go to the handler that was there before. Once per process;
// more calls do nothing.
void guard_faults() noexcept;

// What the handler writes to: `state` becomes `value`, and `concern` one more, unless it is a fault's already.
struct FaultNote {
  std::atomic<uint32_t>* state;
  std::atomic<uint32_t>* concern;
  uint32_t value;
};
inline constexpr uint32_t kFirstFault = 16;  // states from here on are faults'

// The same, of any thread. True if it was none before.
bool note_fault(const FaultNote& note) noexcept;

// Zeros at these addresses, which take no memory; nothing changes where that cannot be had. The plain system call: in a
// handler nothing may run that a library has put in the place of mmap().
bool show_zeros(std::byte* begin, size_t bytes) noexcept;

class GuardedRange;  // a place in the handler's list; never freed, used again
// Null without memory for it: the range is not guarded then. `begin` and `bytes` are whole pages.
GuardedRange* guard_range(const void* begin, size_t bytes, const FaultNote& note) noexcept;
void forget_range(GuardedRange* range) noexcept;

}  // namespace sconce
