// Memory for values that are computed once from a constant and read by every run.
#pragma once

#include <cstddef>
#include <memory>

namespace sconce {

struct FreeDerived {
  void operator()(void* memory) const noexcept;
};
using DerivedMemory = std::unique_ptr<void, FreeDerived>;

// 64-byte aligned, uninitialised. Large blocks use huge pages if the system has them; otherwise the first run would
// wait for a page fault per 4 KiB. kOutOfMemory "WHAT: cannot allocate N bytes for a constant".
DerivedMemory allocate_derived(const char* what, size_t bytes);

}  // namespace sconce
