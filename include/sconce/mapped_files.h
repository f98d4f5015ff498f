// An open package is mapped, not copied. docs/security.md says what happens if somebody writes such a file in place.
// This header has the parts that concern the whole process, so the host program asks for them.
#pragma once

#include <cstdint>

namespace sconce {

// Installs a handler of SIGBUS, which the kernel sends to a thread that reads a mapped file where it was truncated or
// where the disk fails. With the handler, runs of that package fail (kUnavailable); without it, the process ends.
// Faults in other memory, and signals that somebody sent, go to the previous handler. The `sconce` program calls this;
// the library does not.
void guard_mapped_files() noexcept;

// A file that is mapped was written to in place, or is about to be.
struct MappedFileEvent {
  const char* path;
  uint64_t copied;   // bytes whose old content is now in memory; 0: none
  const char* lost;  // why the old content is lost; null: it is not
};

// Sets the process's one function for these events. It is called once per file, on any thread. Null: none.
void on_mapped_file_event(void (*tell)(const MappedFileEvent&) noexcept) noexcept;

}  // namespace sconce
