#include "src/loader/library/parallel_regions.h"

#include <algorithm>
#include <string>
#include <vector>

#include "src/faults/parallel_region.h"
#include "src/loader/library/shared_library.h"

// libgomp's.
extern "C" void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
extern "C" void GOMP_barrier();

namespace sconce::loader {
namespace {

constexpr const char *kParallel = "GOMP_parallel", *kBarrier = "GOMP_barrier";

// Leaves a team of another OpenMP run time alone: our functions cannot count its threads.
void rebind_own(SharedLibrary& library, const char* name, void* own, void* replacement) {
  void* const before = library.rebind(name, replacement);
  if (before && before != own) library.rebind(name, before);
}

bool can_be_left(std::string_view name) { return name == kParallel || name == kBarrier || name == "GOMP_single_start"; }

}  // namespace

void bind_parallel_regions(SharedLibrary& library) {
  const std::vector<std::string> used = library.imports_of("GOMP_");
  const bool tasks =
      std::any_of(used.begin(), used.end(), [](std::string_view name) { return name.starts_with("GOMP_task"); });
  if (!tasks)
    rebind_own(library, kBarrier, reinterpret_cast<void*>(&GOMP_barrier),
               reinterpret_cast<void*>(&faults::region_barrier));
  if (std::all_of(used.begin(), used.end(), can_be_left))
    rebind_own(library, kParallel, reinterpret_cast<void*>(&GOMP_parallel),
               reinterpret_cast<void*>(&faults::run_region));
}

}  // namespace sconce::loader
