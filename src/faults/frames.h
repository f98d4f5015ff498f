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

// A place on this thread's stack, right after a call there has returned. x86-64 psABI: registers that calls preserve.
struct Frame {
  uint64_t rbx, rbp, r12, r13, r14, r15, stack;
  uintptr_t address;  // where it continues
};

// What a search of the stack found.
struct Exit {
  bool reached = false;  // a handler, by way of frames that let the exception pass or may be left
  bool left = false;     // frames must be left: continue at `frame`
  Frame frame{};
  uintptr_t function = 0;  // an address in the innermost frame of a package; 0: there is none
};

// Searches from itself outwards, so it must not be noexcept. After a signal that the package's own instruction raised,
// `raised` is that instruction's address: frames up to the handler's are passed over, and the frame of the instruction
// is left.
Exit find_exit(uintptr_t raised = 0);

// Calls function(argument), a SCONCE_RESUMED function that throws, as though the frame's last call had been to it.
[[noreturn]] void resume(const Frame& frame, void (*function)(void*), void* argument);

// Throws `error`, a sconce::Error or a LeaveRegion. Its callers must own nothing: they may be left.
[[noreturn]] void leave(std::exception_ptr error);

// What a thread throws to leave a region that another one has left. Only the region catches it.
struct LeaveRegion {};

}  // namespace sconce::faults
