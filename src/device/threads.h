// The number of threads that the kernels of a replica may use, and the parallel loop.
//
// Each thread has its own limit, which its replica thread sets. Teams are libgomp's, shared with compiled kernels.
// libgomp stops and starts threads whenever two consecutive regions request different team sizes. So a replica thread
// sets the number that its package was compiled for, if the host has that many cores, and a region always requests all
// of them.
#pragma once

#include <cstdint>
#include <type_traits>

namespace sconce {

// Initially OMP_NUM_THREADS, else the number of CPUs that the process may use.
int kernel_threads() noexcept;
void set_kernel_threads(int threads);  // kInvalidArgument below 1

namespace detail {
using RangeBody = void (*)(const void* context, int64_t begin, int64_t end) noexcept;
void parallel_ranges(int64_t begin, int64_t end, int64_t grain, RangeBody body, const void* context) noexcept;
}  // namespace detail

// Calls body(b, e) for consecutive pieces [b, e) of [begin, end), at most one per thread; each has at least `grain`
// elements, except the last. Uses only the calling thread if that is enough, or inside a parallel region. The body
// must not throw, as exceptions cannot cross threads (check arguments before, or set a flag), and must not allocate
// tensors, as the arena belongs to the caller.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& body) {
  static_assert(std::is_nothrow_invocable_v<const F&, int64_t, int64_t>, "mark the body noexcept");
  if (begin >= end) return;
  if (end - begin <= grain || kernel_threads() == 1) return body(begin, end);
  detail::parallel_ranges(
      begin, end, grain,
      [](const void* context, int64_t b, int64_t e) noexcept { (*static_cast<const F*>(context))(b, e); }, &body);
}

}  // namespace sconce
