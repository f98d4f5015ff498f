// Parallel regions of packages, which a thread may leave by an exception.
//
// GCC turns `#pragma omp parallel` into a call of GOMP_parallel with the region's body, and an explicit or implied
// barrier into GOMP_barrier. The loader binds both to the functions here (loader/library/parallel_regions.h). Each
// thread of the team then runs the body inside a handler. The first exception of a region ends the region, and is
// thrown to the function that entered it.
//
// A thread that leaves would be missing at the barriers that other threads still reach, and all threads meet once more
// at the region's end in the same barrier of libgomp. Hence this protocol, which relies on OpenMP's rule that all
// threads of a team meet the same barriers in the same order:
//   - Before a barrier, a thread announces the number of barriers it has reached. After the barrier it leaves the
//     region if the region is broken.
//   - A thread that leaves after k barriers marks the region broken, then waits for one of these conditions:
//       1. another thread has announced barrier k + 1: the leaving thread takes part in that barrier, and is done;
//       2. another thread has finished the body: no barrier follows, and the leaving thread is done;
//       3. all threads have left: the leaving thread is done.
// No thread passes barrier k + 1 without the thread that left after k. So no announcement is above k + 1, and all
// threads that leave before that barrier have the same k. If one thread waits at barrier k + 1, no thread has finished,
// so every thread that left takes part by rule 1. These threads marked the region broken before, so every thread that
// passes the barrier leaves after it, by rule 3: none reaches barrier k + 2. tests/faults/region_protocol_test.cpp
// checks every interleaving of small teams.
#pragma once

#include <cstdint>

namespace sconce::faults {

// GOMP_parallel of libgomp (GCC 4.9 and later): runs body(data) on `threads` threads, 0: the default number. Throws
// the first exception of a thread of the team, like leave(): callers must own nothing that a destructor releases.
void run_region(void (*body)(void*), void* data, unsigned threads, unsigned flags);

// An address in the function that entered this thread's current region; 0: the thread is in no region.
uintptr_t region_entered_from() noexcept;

// GOMP_barrier of libgomp. Returns at once in a team of one thread, where libgomp would make a system call. Throws
// LeaveRegion if the region is broken.
void region_barrier();

}  // namespace sconce::faults
