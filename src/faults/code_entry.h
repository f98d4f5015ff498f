// Scopes around calls into a package's code. They record the facts about a thread that a fault handler needs.
//
// A thread whose stack has overflowed has no room for a handler. So each thread that runs a package's code gets an
// alternate stack at its first call after guard_code(), until the thread ends. A thread that already has one (set by
// the program or a sanitizer) keeps it.
#pragma once

#include <cstdint>

namespace sconce::faults {

struct CodeThread {
  bool ready;         // its alternate stack was set up
  const char* model;  // the model whose code it runs, named as in add_code_range(); null: none
  void* team;         // its current parallel region; null: none

  // taken_memory.h
  int64_t taken;      // bytes that code has allocated and not freed
  uintptr_t left_at;  // an address in a frame that was abandoned in this run; 0: none was
  unsigned arrays;    // number of tracked arrays
};
extern constinit thread_local CodeThread code_thread;

// From now on, threads need alternate stacks.
void need_alternate_stacks() noexcept;
void make_thread_ready() noexcept;

// Surrounds every call into a package's code. Costs a few stores.
class CodeEntry {
 public:
  // `model` must outlive the scope.
  explicit CodeEntry(const char* model) noexcept : thread_(code_thread), before_(thread_.model), taken_(thread_.taken) {
    thread_.model = model;
    if (!thread_.ready) [[unlikely]]
      make_thread_ready();
  }
  CodeEntry(const CodeEntry&) = delete;
  CodeEntry& operator=(const CodeEntry&) = delete;
  ~CodeEntry() {
    thread_.model = before_;
    thread_.arrays = 0;
    if (thread_.left_at) [[unlikely]]
      count_loss();
  }

 private:
  void count_loss() noexcept;

  CodeThread& thread_;
  const char* const before_;
  const int64_t taken_;
};

}  // namespace sconce::faults
