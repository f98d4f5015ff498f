// The handler of SIGFPE, SIGSEGV, SIGILL and SIGBUS. It turns a fault of a package's own instruction (division by
// zero, invalid memory access, illegal instruction) into an error of the run. This includes a stack overflow, since
// the handler runs on an alternate stack (code_entry.h).
//
// The handler finds the frame to continue at as leave() does, and sets the thread's registers so that it continues in
// a function that throws there. It does so only if the instruction lies in a package's code and only frames of
// packages would be abandoned. At that point a package's code holds no lock of Sconce, libc or the unwinder.
//
// Handlers belong to the process, so a library must not install them unasked.
#pragma once

#include <cstdint>

namespace sconce::faults {

// Installs the handlers, once per process. For SIGBUS, `mend` is called first with the address; it returns true if the
// memory can now be read. Faults elsewhere, and signals from other senders, go to the previous handlers. If there was
// none, the handler writes the name of the model whose code the thread was running, and a backtrace, to stderr; then
// the process ends by the signal's default action. It does the same for abort(), if SIGABRT has no handler.
void guard_code(bool (*mend)(uintptr_t address) noexcept) noexcept;

}  // namespace sconce::faults
