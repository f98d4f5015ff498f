// Binds the parallel regions of compiled code to faults/parallel_region.h, so that a failed check inside one ends the
// run and not the process.
#pragma once

namespace sconce::loader {

class SharedLibrary;

// Makes the library call our functions for regions and barriers. A barrier of one thread then returns at once. (A
// kernel of several loops has a barrier after each. libgomp's barrier makes a system call even for one thread, which
// is a fifth of the time of a call of a small model.)
//
// A library of another OpenMP run time keeps its own functions. A library that uses more than regions, barriers and
// `single` (loops with a schedule, critical sections) keeps its regions, which cannot be left. A library with tasks
// also keeps its barriers, because they wait for tasks too. A failed check in such regions ends the process. torch
// generates none of these. kIo, as rebind().
void bind_parallel_regions(SharedLibrary& library);

}  // namespace sconce::loader
