// Protection of the process against two faults of a package: its mapped file is overwritten in place
// (docs/security.md), or its code crashes (docs/faults.md). These functions install process-wide signal handlers, so
// the library never calls them; the host program does.
#pragma once

#include <cstdint>
#include <string>

namespace sconce {

// Installs a handler of SIGBUS. The kernel sends SIGBUS to a thread that reads a mapped file beyond a truncation or
// where the disk fails. With the handler, runs of that package fail (kUnavailable); without it, the process ends. The
// handler passes faults in other memory, and signals from other senders, to the previous handler. The `sconce` program
// calls this; the library does not.
void guard_mapped_files() noexcept;

// Installs handlers of SIGFPE, SIGSEGV, SIGILL and SIGBUS. With them, a fault in a package's own code (an integer
// division by zero, an invalid memory access, an instruction that this CPU lacks) ends only the run, with
// kModelFailed; without them, it ends the process. A failed check in generated code (an index out of bounds) ends the
// run in both cases. The handlers pass faults in other code, and signals from other senders, to the previous handlers.
// Also does the work of guard_mapped_files(). Thread-safe. The `sconce` program calls this; the library does not.
//
// If a fault ends the process because there was no previous handler, the handler first writes the model's name and a
// backtrace to stderr. It does the same for abort(), if SIGABRT had no handler.
//
// A thread that calls models gets an alternate signal stack (sigaltstack(2)) until it ends, unless it already has one.
// A stack overflow is then such a fault too. If a program sets alternate stacks itself, each needs at least 32 KiB.
//
// A run that ends in this way may leak memory of the package's own objects: docs/faults.md.
void guard_package_faults() noexcept;

// Names the models that this thread loads during the object's lifetime, for fault reports. Without it, a report names
// only the package's path.
class FaultReportName {
 public:
  explicit FaultReportName(std::string name) noexcept;
  FaultReportName(const FaultReportName&) = delete;
  FaultReportName& operator=(const FaultReportName&) = delete;
  ~FaultReportName();

 private:
  const std::string name_;
  const std::string* const before_;
};

// A mapped file was written in place, or is about to be.
struct MappedFileEvent {
  const char* path;
  uint64_t copied;   // bytes whose old content is now copied to memory; 0: none
  const char* lost;  // why the old content is lost; null: it is preserved
};

// Sets the process-wide callback for these events. It is called once per file, on any thread. Null: no callback.
void on_mapped_file_event(void (*tell)(const MappedFileEvent&) noexcept) noexcept;

}  // namespace sconce
