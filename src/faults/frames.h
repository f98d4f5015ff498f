// Leaving a package's code by an exception, also where its compiler has ruled exceptions out.
//
// GCC makes the body of a parallel region nothrow, and every function of which it sees that no call throws. An
// exception that meets such a frame ends the process. So a failed check first looks at the stack. If the exception
// reaches a handler, it is thrown. If a frame of a package blocks it, the exception is thrown out of the frame that
// called that one, as though that call had thrown: the frames between are left, and their destructors do not run.
// Frames of other libraries are never left in this way; if one of them blocks the exception, std::terminate() is called
// as ever.
#pragma once

#include <cstdint>
#include <exception>

// For functions whose frame may be left: it would not tell ThreadSanitizer that it ends, so its beginning is not
// counted.
#define SCONCE_LEAVABLE [[gnu::noinline]] __attribute__((no_sanitize_thread))

// For functions that resume() calls: local functions of a package may keep a stack that is not aligned.
#define SCONCE_RESUMED SCONCE_LEAVABLE __attribute__((force_align_arg_pointer))

namespace sconce::faults {

class TeamArrays;

// A place on this thread's stack, right after a call there has returned. x86-64 psABI: registers that calls preserve.
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

// What a search of the stack found.
struct Exit {
  bool reached = false;   // a handler, by way of frames that let the exception pass or may be left
  bool left = false;      // frames must be left: continue at `frame`
  bool overflow = false;  // what the instruction accessed is its function's own part of the stack
  Frame frame{};
  uintptr_t function = 0;  // an address in the innermost frame of a package; 0: there is none
  uintptr_t gone = 0;      // no destructors run of frames below this place of the stack; 0: some of that function's do
};

// Searches from itself outwards, so it must not be noexcept. After a signal that the package's own instruction raised,
// frames up to the handler's are passed over, and the frame of the instruction is left. If that frame overflows the
// stack, as many more are left as the function that throws needs room for.
Exit find_exit(const Raised* raised = nullptr);

// The function's frame is gone, and those up to this place of the stack: what they took is freed, or counted when the
// run ends.
void note_left(uintptr_t function, uintptr_t stack) noexcept;

// Calls function(argument), a SCONCE_RESUMED function that throws, as though the frame's last call had been to it.
[[noreturn]] void resume(const Frame& frame, void (*function)(void*), void* argument);

// Throws `error`, a sconce::Error or a LeaveRegion. Its callers must own nothing: they may be left. `arrays` are the
// caller's caller's.
[[noreturn]] void leave(std::exception_ptr error, TeamArrays* arrays = nullptr);

// What a thread throws to leave a region that another one has left. Only the region catches it.
struct LeaveRegion {};

}  // namespace sconce::faults
