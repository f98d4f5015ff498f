// Leaves a package's code by an exception, even where its compiler has marked code as nothrow.
//
// GCC marks as nothrow the body of a parallel region, and every function in which it sees no throwing call. An
// exception that reaches such a frame ends the process. So a failed check first searches the stack. If the exception
// would reach a handler, it is thrown. If a frame of a package blocks it, the exception is thrown in the caller of
// that frame, as though the caller's call had thrown. The frames between are abandoned and their destructors do not
// run. Frames of other libraries are never abandoned; if one of them blocks the exception, std::terminate() is called
// as usual.
#pragma once

#include <cstdint>
#include <exception>

// For functions whose frame may be abandoned. Such a function would not report its exit to ThreadSanitizer, so its
// entry is not reported either.
#define SCONCE_LEAVABLE [[gnu::noinline]] __attribute__((no_sanitize_thread))

// For functions that resume() calls: local functions of a package may have a misaligned stack.
#define SCONCE_RESUMED SCONCE_LEAVABLE __attribute__((force_align_arg_pointer))

namespace sconce::faults {

class TeamArrays;

// A frame on this thread's stack, at the return of a call that it made. x86-64 psABI: registers that calls preserve.
struct Frame {
  uint64_t rbx, rbp, r12, r13, r14, r15, stack;
  uintptr_t address;  // where it continues
};

// A signal that an instruction raised.
struct Raised {
  uintptr_t instruction = 0;
  uintptr_t stack = 0;     // the stack pointer there
  uintptr_t accessed = 0;  // the address of a SIGSEGV
};

// The result of a search of the stack.
struct Exit {
  bool reached = false;   // a handler, through frames that let the exception pass or may be abandoned
  bool left = false;      // frames must be abandoned: continue at `frame`
  bool overflow = false;  // the accessed address is in the function's own part of the stack
  Frame frame{};
  uintptr_t function = 0;  // an address in the innermost frame of a package; 0: there is none
  uintptr_t gone = 0;      // no destructors run for frames below this stack address; 0: some of that function run
};

// Searches outwards from its own frame, so it must not be noexcept. After a signal raised by a package's instruction,
// it skips frames up to the handler's, and abandons the frame of the instruction. If that frame overflows the stack,
// it abandons further frames until the throwing function has enough room.
Exit find_exit(const Raised* raised = nullptr);

// Records that the function's frame and all frames below this stack address are abandoned: their arrays are freed, and
// other memory is counted as lost when the run ends.
void note_left(uintptr_t function, uintptr_t stack) noexcept;

// Calls function(argument), a SCONCE_RESUMED function that throws, as though the frame's last call had been to it.
[[noreturn]] void resume(const Frame& frame, void (*function)(void*), void* argument);

// Throws `error`, a sconce::Error or a LeaveRegion. Its callers must own nothing, since their frames may be abandoned.
// `arrays` belong to the caller's caller.
[[noreturn]] void leave(std::exception_ptr error, TeamArrays* arrays = nullptr);

// Thrown by a thread to leave a region that another thread has left. Only the region catches it.
struct LeaveRegion {};

}  // namespace sconce::faults
