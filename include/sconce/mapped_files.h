// Faults by which a package could end the process: its file, which is mapped and not copied, is written in place
// (docs/security.md), or its code fails (docs/faults.md). This header has the parts that concern the whole process, so
// the host program asks for them.
#pragma once

#include <cstdint>
#include <string>

namespace sconce {

// Installs a handler of SIGBUS, which the kernel sends to a thread that reads a mapped file where it was truncated or
// where the disk fails. With the handler, runs of that package fail (kUnavailable); without it, the process ends.
// Faults in other memory, and signals that somebody sent, go to the previous handler. The `sconce` program calls this;
// the library does not.
void guard_mapped_files() noexcept;

// Installs handlers of SIGFPE, SIGSEGV, SIGILL and SIGBUS. With them, a fault of a package's own code (an integer
// division by zero, an access to memory that it may not touch, an instruction that this CPU lacks) ends the run with
// kModelFailed and nothing else; without them, it ends the process. Checks of generated code that fail (an index out of
// bounds) end the run in both cases. Faults in other code, and signals that somebody sent, go to the previous handlers.
// Does what guard_mapped_files() does, too. Thread-safe. The `sconce` program calls this; the library does not.
//
// Where a fault ends the process, because there was no previous handler, the model's name and a backtrace go to stderr
// before; so they do when the process aborts itself, if SIGABRT had no handler.
//
// A thread that calls models gets an alternate stack for signals (sigaltstack(2)) until it ends, unless it has one, so
// that an overflow of its stack is such a fault too. Whoever gives threads one of their own gives it at least 32 KiB.
//
// A run that ends so may lose memory of the package's own objects: docs/faults.md.
void guard_package_faults() noexcept;

// What such a report calls the models that this thread loads while the object lives. Without one, the package's path
// stands there alone.
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

// A file that is mapped was written to in place, or is about to be.
struct MappedFileEvent {
  const char* path;
  uint64_t copied;   // bytes whose old content is now in memory; 0: none
  const char* lost;  // why the old content is lost; null: it is not
};

// Sets the process's one function for these events. It is called once per file, on any thread. Null: none.
void on_mapped_file_event(void (*tell)(const MappedFileEvent&) noexcept) noexcept;

}  // namespace sconce
