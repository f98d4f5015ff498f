// Compiled kernels split their work over exactly the number of OpenMP threads they were compiled for. Where the OpenMP
// runtime gives fewer, work is silently left out: so such settings are refused before a model loads.
#pragma once

namespace sconce::runner {

// kFailedPrecondition names the setting (OMP_DYNAMIC, OMP_THREAD_LIMIT) if a team of `threads` is not certain.
void check_openmp_limits(int threads);

}  // namespace sconce::runner
