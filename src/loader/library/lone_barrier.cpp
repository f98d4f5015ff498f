#include "src/loader/library/lone_barrier.h"

#include <omp.h>

#include "src/loader/library/shared_library.h"

extern "C" void GOMP_barrier();  // libgomp's

namespace sconce::loader {
namespace {

constexpr const char* kBarrier = "GOMP_barrier";

void barrier() {
  if (omp_get_num_threads() > 1) GOMP_barrier();
}

}  // namespace

void skip_lone_barriers(SharedLibrary& library) {
  if (!library.imports(kBarrier)) return;
  for (const char* task : {"GOMP_task", "GOMP_taskloop", "GOMP_taskloop_ull"})
    if (library.imports(task)) return;
  void* const own = reinterpret_cast<void*>(&GOMP_barrier);
  void* const before = library.rebind(kBarrier, reinterpret_cast<void*>(&barrier));
  // A team of another run time is not one that ours could count.
  if (before != own) library.rebind(kBarrier, before);
}

}  // namespace sconce::loader
