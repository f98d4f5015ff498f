#include "src/device/threads.h"

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <new>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#include "sconce/check.h"
#include "src/device/compiled_threads.h"

namespace sconce {
namespace {

constexpr size_t kOfOpenMp = 4096;  // bytes; libgomp takes less for a thread

thread_local int threads_of_this_thread = 0;  // 0: not set
thread_local int compiled_threads_of_this_thread = 0;

// Makes the writes of the team's threads visible to the threads that take over. libgomp's barriers do that, but
// ThreadSanitizer does not see them.
void hand_over([[maybe_unused]] const void* team) noexcept {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(const_cast<void*>(team));
#endif
}
void take_over([[maybe_unused]] const void* team) noexcept {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(const_cast<void*>(team));
#endif
}

}  // namespace

int kernel_threads() noexcept {
  if (threads_of_this_thread == 0) [[unlikely]]
    threads_of_this_thread = std::max(1, omp_get_max_threads());
  return threads_of_this_thread;
}

void set_kernel_threads(int threads) {
  SCONCE_CHECK(threads >= 1, kInvalidArgument, "kernel threads: at least 1 is needed, not ", threads);
  threads_of_this_thread = threads;
}

int compiled_threads() noexcept { return compiled_threads_of_this_thread; }
int template_threads() noexcept {
  const int compiled = compiled_threads_of_this_thread;
  return compiled > 0 ? std::min(compiled, kernel_threads()) : kernel_threads();
}
void set_compiled_threads(int threads) {
  // libgomp allocates in a thread's first call, and ends the process if that fails. So check for memory before.
  thread_local bool known_to_openmp = false;
  if (!known_to_openmp) ::operator delete(::operator new(kOfOpenMp));
  known_to_openmp = true;
  compiled_threads_of_this_thread = threads;
  if (const int wanted = template_threads(); omp_get_max_threads() != wanted) omp_set_num_threads(wanted);
}

void detail::parallel_ranges(int64_t begin, int64_t end, int64_t grain, RangeBody body, const void* context) noexcept {
  const int threads = kernel_threads();
  const int64_t length = end - begin;
  const int64_t piece = std::max<int64_t>({grain, (length + threads - 1) / threads, 1});
  const int64_t pieces = (length + piece - 1) / piece;
  if (pieces == 1 || omp_in_parallel()) return body(context, begin, end);
  hand_over(context);
#pragma omp parallel num_threads(threads)
  {
    take_over(context);
    // The team may be smaller than requested (OMP_THREAD_LIMIT, OMP_DYNAMIC).
    for (int64_t i = omp_get_thread_num(); i < pieces; i += omp_get_num_threads())
      body(context, begin + i * piece, std::min(end, begin + (i + 1) * piece));
    hand_over(context);
  }
  take_over(context);
}

}  // namespace sconce
