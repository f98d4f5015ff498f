// The page that the campaign and the interposer share: the campaign arms it, and the server's process counts and fails.
// control.py has the same layout.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sconce::faults {

enum class Kind : uint64_t { kNothing, kAllocation, kCall };
enum class Mode : uint64_t {
  kError,  // the call does nothing and reports the error
  kShort,  // a read or write moves one byte
  kEnd,    // a read reports the end of the file
  kKill,   // the server is killed
};

struct Control {
  std::atomic<uint64_t> process;  // the server's, once the interposer is active in it; 0: not yet
  std::atomic<uint64_t> armed;    // counts, and fails what is described below
  std::atomic<Kind> kind;
  std::atomic<int64_t> call;         // the system call's number, -1: any that is watched
  std::atomic<uint64_t> nth, times;  // the nth from now on (1: the next) and how many
  std::atomic<Mode> mode;
  std::atomic<int64_t> error;
  std::atomic<uint64_t> seen, fired;         // candidates, and failures
  std::atomic<int64_t> realtime, monotonic;  // offsets of the clocks in nanoseconds
  std::atomic<uint64_t> wants_trace, frames;
  std::atomic<uint64_t> trace[48];                  // return addresses of the last failure
  std::atomic<uint64_t> end_frames, end_trace[48];  // where the process ended
  std::atomic<uint64_t> allocations;
  std::atomic<uint64_t> calls[512];
};

// Null if the process is not under test.
Control* control() noexcept;

// Counts the call; true if it must fail.
bool fails(Control& control, Kind kind, int64_t call) noexcept;

void keep_end(Control& control) noexcept;

}  // namespace sconce::faults
