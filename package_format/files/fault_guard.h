// The SIGBUS guard. If a thread reads a page of a mapped file that cannot be loaded (the file was truncated, the disk
// fails), it reads zeros instead of ending the process, and the file's owner is notified that its bytes are invalid.
//
// A signal handler belongs to the process, so a library must not install one unasked: nothing is guarded before
// guard_faults(), which the program calls and a host may call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sconce {

// Installs the handler, once per process. Faults elsewhere, and signals from other senders, go to the previous
// handler.
void guard_faults() noexcept;

// The handler's action for a fault at this address: true if it lies in a guarded range, which reads as zeros from now
// on. May be called in a signal handler.
bool mend_fault(uintptr_t address) noexcept;

// The handler's record of a fault: it sets `state` to `value` and adds one to `concern`, unless `state` already is a
// fault's.
struct FaultNote {
  std::atomic<uint32_t>* state;
  std::atomic<uint32_t>* concern;
  uint32_t value;
};
inline constexpr uint32_t kFirstFault = 16;  // this state and higher ones mean faults

// As the handler, on any thread. Returns whether it was the first fault.
bool note_fault(const FaultNote& note) noexcept;

// Maps zeros at these addresses, which take no memory. On failure, nothing changes. A plain system call, because a
// signal handler must not run a library's replacement of mmap().
bool show_zeros(std::byte* begin, size_t bytes) noexcept;

class GuardedRange;  // an entry of the handler's list; never freed, only reused
// `begin` and `bytes` are whole pages. Null if no memory is left for the entry; the range is then not guarded.
GuardedRange* guard_range(const void* begin, size_t bytes, const FaultNote& note) noexcept;
void forget_range(GuardedRange* range) noexcept;

}  // namespace sconce
