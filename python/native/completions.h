// Completions: the thread that gives finished runs to their futures, so that no lane waits for the GIL. It starts with
// the first submitted run.
#pragma once

namespace sconce::python {

// For a child after fork, which has no such thread. Runs that were pending stay so there.
void forget_completions() noexcept;
// Waits until all submitted runs are finished, and ends the thread. For the end of the interpreter: submit() is refused
// from then on (kUnavailable). Needs the GIL, which it releases meanwhile.
void end_completions();

}  // namespace sconce::python
