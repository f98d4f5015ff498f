#include "tests/faults/interposer/control.h"

#include <execinfo.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace sconce::faults {
namespace {

void keep(std::atomic<uint64_t>& count, std::atomic<uint64_t>* trace) noexcept {
  void* frames[48];
  const int found = ::backtrace(frames, 48);
  for (int i = 0; i < found; ++i) trace[i] = reinterpret_cast<uint64_t>(frames[i]);
  count = static_cast<uint64_t>(found);
}

}  // namespace

Control* control() noexcept {
  static Control* const shared = []() -> Control* {
    const char* const path = std::getenv("SCONCE_FAULTS");
    const int file = path ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return nullptr;
    void* const memory = ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return memory == MAP_FAILED ? nullptr : static_cast<Control*>(memory);
  }();
  return shared;
}

bool fails(Control& control, Kind kind, int64_t call) noexcept {
  if (control.armed.load(std::memory_order_acquire) == 0) return false;
  if (kind == Kind::kAllocation) {
    control.allocations.fetch_add(1, std::memory_order_relaxed);
  } else if (call >= 0 && call < 512) {
    control.calls[call].fetch_add(1, std::memory_order_relaxed);
  }
  if (control.kind != kind) return false;
  const int64_t wanted = control.call;
  if (kind == Kind::kCall && wanted >= 0 && wanted != call) return false;
  const uint64_t number = control.seen.fetch_add(1, std::memory_order_relaxed) + 1, first = control.nth;
  if (number < first || number - first >= control.times) return false;
  control.fired.fetch_add(1, std::memory_order_relaxed);
  if (control.wants_trace != 0 && control.frames == 0) keep(control.frames, control.trace);
  return true;
}

void keep_end(Control& control) noexcept {
  if (control.end_frames == 0) keep(control.end_frames, control.end_trace);
}

}  // namespace sconce::faults
