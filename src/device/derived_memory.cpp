#include "src/device/derived_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "sconce/check.h"

namespace sconce {

void FreeDerived::operator()(void* memory) const noexcept { std::free(memory); }

DerivedMemory allocate_derived(const char* what, size_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20, kLine = 64;
  const bool huge = bytes >= kHugePage;
  const size_t rounded = std::max(bytes, size_t{1}) + (kLine - 1);
  SCONCE_CHECK(rounded >= bytes, kOutOfMemory, what, ": cannot allocate ", bytes, " bytes for a constant");
  DerivedMemory memory(std::aligned_alloc(huge ? kHugePage : kLine, rounded / kLine * kLine));
  SCONCE_CHECK(memory, kOutOfMemory, what, ": cannot allocate ", bytes, " bytes for a constant");
  // The last, partial huge page would take memory that is never used.
  if (huge) ::madvise(memory.get(), bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

}  // namespace sconce
