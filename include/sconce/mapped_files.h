// Packages are mapped while they are open, not copied. What happens when somebody writes such a file in place:
// docs/security.md. Here is what of it belongs to a process as a whole, and is the host's to ask for.
#pragma once

#include <cstdint>

namespace sconce {

// Installs a handler of SIGBUS, which the system sends to who reads a mapped file where it was truncated, or where the
// disk fails. With it, runs of that package fail (kUnavailable); without, the process ends. Faults of other memory and
// signals that were sent go to the handler that was there before. `sconce` calls it; a library does not by itself.
void guard_mapped_files() noexcept;

// A file that is mapped was written to in place, or is about to be.
struct MappedFileEvent {
  const char* path;
  uint64_t copied;   // bytes of memory that now hold what it was; 0: none
  const char* lost;  // why what it was is not there any more; null: it is
};

// Called once a file, on any thread. At most one function per process; null for none.
void on_mapped_file_event(void (*tell)(const MappedFileEvent&) noexcept) noexcept;

}  // namespace sconce
