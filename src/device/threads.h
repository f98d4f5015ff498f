// How many threads the kernels of a replica may use, and the loop that uses them.
//
// The number belongs to the calling thread: each lane sets its own. Teams are libgomp's, the same as those of compiled
// kernels. libgomp ends and starts threads whenever two regions in a row ask for different team sizes, so a lane sets
// the number its package was compiled for where the host has that many cores, and a region always asks for all of them.
#pragma once

#include <cstdint>
#include <type_traits>

namespace sconce {

// At first OMP_NUM_THREADS, else the number of CPUs that the process may run on.
int kernel_threads() noexcept;
void set_kernel_threads(int threads);  // kInvalidArgument below 1

namespace detail {
using RangeBody = void (*)(const void* context, int64_t begin, int64_t end) noexcept;
void parallel_ranges(int64_t begin, int64_t end, int64_t grain, RangeBody body, const void* context) noexcept;
}  // namespace detail

// Calls body(b, e) for consecutive pieces [b, e) that together are [begin, end), each at least `grain` long but the
// last, at most one per thread. Runs on the calling thread alone where that is enough, or within a parallel region.
// The body does not throw, since an exception cannot cross threads (check arguments before, or set a flag and check it
// afterwards), and allocates no tensors, since the arena belongs to the caller.
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
