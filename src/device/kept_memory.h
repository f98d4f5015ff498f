// Memory for what is computed once of a constant and read by every run.
#pragma once

#include <cstddef>
#include <memory>

namespace sconce {

struct FreeKept {
  void operator()(void* memory) const noexcept;
};
using KeptMemory = std::unique_ptr<void, FreeKept>;

// 64-byte aligned, uninitialised. Large pieces lie on huge pages where the system has them, or the first run would wait
// for a page fault per 4 KiB. kOutOfMemory "WHAT: cannot allocate N bytes for a constant".
KeptMemory allocate_kept(const char* what, size_t bytes);

}  // namespace sconce
