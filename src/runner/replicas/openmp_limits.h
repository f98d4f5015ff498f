// Compiled kernels divide their work by exactly the number of OpenMP threads they were compiled for. If the OpenMP
// runtime gives fewer, work is silently omitted. So such settings are refused before a model loads.
#pragma once

namespace sconce::runner {

// kFailedPrecondition names the setting (OMP_DYNAMIC, OMP_THREAD_LIMIT) that may prevent a team of `threads`.
void check_openmp_limits(int threads);

}  // namespace sconce::runner
