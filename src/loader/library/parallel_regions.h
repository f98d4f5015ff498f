// Binds the parallel regions of compiled code to faults/parallel_region.h, so that a failed check inside one ends the
// run and not the process.
#pragma once

namespace sconce::loader {

class SharedLibrary;

// Makes the library enter regions and barriers by our functions. Barriers of one thread return at once there. (A kernel
// of several loops has a barrier after each, in which libgomp makes a system call also for a team of one thread: a
// fifth of a call of a small model.)
//
// A library of another run time keeps its own functions. One that uses more of OpenMP than regions, barriers and
// `single` (loops with a schedule, critical sections) keeps its regions, which cannot be left; one with tasks, for
// which a barrier waits too, also its barriers. A failed check ends the process there. torch generates none of these.
// kIo, as rebind().
void bind_parallel_regions(SharedLibrary& library);

}  // namespace sconce::loader
