// The handler of SIGFPE, SIGSEGV, SIGILL and SIGBUS: an instruction of a package's own code that divides by zero,
// touches memory that it may not, or does not exist on this CPU, ends the run with an error. So does one that overflows
// the stack, since the handler runs on another one (code_entry.h).
//
// The handler finds the frame to continue at as leave() does, and sets the thread's registers so that it continues in a
// function that throws there. It does so only if the instruction lies in a package's code and the way out leads through
// no other frame that would have to be left. A package's code holds no lock of ours, of libc or of the unwinder then.
//
// Handlers belong to the process, so a library must not install them unasked.
#pragma once

#include <cstdint>

namespace sconce::faults {

// Installs the handlers, once per process. `mend` is asked first about SIGBUS, with the address: true if the memory can
// be read now. Faults elsewhere, and signals that somebody sent, go to the previous handlers. If there was none, the
// name of the model whose code the thread was running, and a backtrace, go to stderr before the process ends by the
// signal's default action. The same goes there if the process aborts itself, and nobody handles SIGABRT.
void guard_code(bool (*mend)(uintptr_t address) noexcept) noexcept;

}  // namespace sconce::faults
