// OpenMP's barrier, for loops of compiled code that one thread runs.
//
// A kernel of several loops has a barrier after each. GNU's run time wakes the other threads of the team there by a
// system call, also if there are none: a fifth of a call of a small model with one thread.
#pragma once

namespace sconce::loader {

class SharedLibrary;

// Makes the library's barriers return at once where the team is one thread. Libraries that use another run time, or
// OpenMP's tasks, for which a barrier waits too, keep theirs. kIo, as rebind().
void skip_lone_barriers(SharedLibrary& library);

}  // namespace sconce::loader
