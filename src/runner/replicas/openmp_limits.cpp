#include "src/runner/replicas/openmp_limits.h"

#include <omp.h>

#include "sconce/check.h"

namespace sconce::runner {

void check_openmp_limits(int threads) {
  if (threads <= 1) return;
  SCONCE_CHECK(!omp_get_dynamic(), kFailedPrecondition, "the package was compiled for ", threads,
               " threads, but OMP_DYNAMIC lets OpenMP use fewer: unset it");
  SCONCE_CHECK(omp_get_thread_limit() >= threads, kFailedPrecondition, "the package was compiled for ", threads,
               " threads, but OMP_THREAD_LIMIT is ", omp_get_thread_limit());
}

}  // namespace sconce::runner
