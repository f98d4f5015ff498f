#include "src/faults/frames.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "sconce/error.h"
#include "src/faults/code_entry.h"
#include "src/faults/code_ranges.h"
#include "src/faults/exception_table.h"
#include "src/faults/taken_memory.h"

namespace sconce::faults {
namespace {

// Whether a package's handler of this type catches a sconce::Error. LeaveRegion may reach only handlers that an Error
// may reach.
bool takes_errors(const std::type_info* type) {
  return !type || *type == typeid(std::exception) || *type == typeid(std::runtime_error) || *type == typeid(Error);
}

// DWARF numbers of registers, x86-64 psABI figure 3.36.
enum { kRbx = 3, kRbp = 6, kR12 = 12, kR13, kR14, kR15 };

Frame frame_of(_Unwind_Context* context) noexcept {
  return {_Unwind_GetGR(context, kRbx), _Unwind_GetGR(context, kRbp), _Unwind_GetGR(context, kR12),
          _Unwind_GetGR(context, kR13), _Unwind_GetGR(context, kR14), _Unwind_GetGR(context, kR15),
          _Unwind_GetCFA(context),      _Unwind_GetIP(context)};
}

// Stack space that a throw needs: the unwinder's two passes, and the words of the package's handler.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uintptr_t kThrowingRoom = 128 << 10;
#else
constexpr uintptr_t kThrowingRoom = 32 << 10;
#endif
constexpr uintptr_t kPage = 4096;

bool can_be_read(uintptr_t page) noexcept {
  constexpr int kNoSuchWay = ~0;  // the kernel reads the mask before it refuses this value
  return ::syscall(SYS_rt_sigprocmask, kNoSuchWay, page, nullptr, sizeof(uint64_t)) == 0 || errno != EFAULT;
}

// The lowest address of the stack below `top`, or one that is low enough.
uintptr_t floor_below(uintptr_t top) noexcept {
  uintptr_t floor = top & ~(kPage - 1);
  while (top - floor < kThrowingRoom && can_be_read(floor - kPage)) floor -= kPage;
  return floor;
}

class Search {
 public:
  explicit Search(const Raised* raised) noexcept : raised_(raised) {}
  Exit run() {
    _Unwind_Backtrace(&Search::visit, this);
    return exit_;
  }

 private:
  static _Unwind_Reason_Code visit(_Unwind_Context* context, void* search) noexcept {
    return static_cast<Search*>(search)->look(context) ? _URC_NO_REASON : _URC_NORMAL_STOP;
  }

  // Returns whether to continue with the caller of this frame.
  bool look(_Unwind_Context* context) noexcept {
    int interrupted = 0;
    const uintptr_t address = _Unwind_GetIPInfo(context, &interrupted);
    if (raised_ && !(interrupted && address == raised_->instruction)) return true;
    const bool of_package = library_at(address) != nullptr;
    if (bare_ && exit_.function != 0) exit_.gone = _Unwind_GetCFA(context);
    bare_ = bare_ && (of_package || exit_.function == 0);
    if (of_package && exit_.function == 0) exit_.function = address;
    if (stuck_) return exit_.function == 0;
    if (blocked_) {
      exit_.frame = frame_of(context);
      if (!has_room(exit_.frame.stack)) return go_past(of_package);
      exit_.left = true;
      blocked_ = false;
    }
    if (raised_) {  // an instruction is not in the exception table
      left_ = std::exchange(raised_, nullptr);
      return go_past(of_package);
    }
    switch (passage_at(reinterpret_cast<const void*>(_Unwind_GetLanguageSpecificData(context)),
                       _Unwind_GetRegionStart(context), interrupted ? address : address - 1, takes_errors)) {
      case Passage::kBare:
        return true;
      case Passage::kOpen:
        bare_ = bare_ && !of_package;
        return true;
      case Passage::kCaught:
        exit_.reached = true;
        if (exit_.left) exit_.gone = std::max(exit_.gone, exit_.frame.stack);
        return false;
      case Passage::kBlocked:
        return go_past(of_package);
    }
    return false;
  }

  // Continues past a frame that blocks the exception: only a package's frame may be abandoned.
  bool go_past(bool of_package) noexcept {
    blocked_ = of_package;
    stuck_ = !of_package;
    return !stuck_ || exit_.function == 0;
  }

  // Whether a function called at this stack address has enough room to throw.
  bool has_room(uintptr_t stack) noexcept {
    if (left_) {                         // the instruction's function owns the stack between
      constexpr uintptr_t kBelow = 256;  // a push or a call, and the red zone of a function
      const uintptr_t accessed = left_->accessed;
      exit_.overflow = accessed < stack && accessed + kBelow >= left_->stack;
      if (exit_.overflow) floor_ = floor_below(stack);
      left_ = nullptr;
    }
    return !exit_.overflow || stack - floor_ >= kThrowingRoom;
  }

  const Raised* raised_;          // until its frame is found
  const Raised* left_ = nullptr;  // until the enclosing frame is found
  uintptr_t floor_ = 0;
  bool blocked_ = false, stuck_ = false;
  bool bare_ = true;  // so far no frame of a package has destructors that run
  Exit exit_;
};

// Holds an exception_ptr as its pointer, which an abandoned frame does not destroy.
union Packed {
  std::exception_ptr error;
  void* pointer;
  Packed() noexcept : pointer(nullptr) {}
  ~Packed() {}  // NOLINT(modernize-use-equals-default)
};
static_assert(sizeof(std::exception_ptr) == sizeof(void*));

[[noreturn]] SCONCE_RESUMED void throw_packed(void* pointer) {
  Packed packed;
  packed.pointer = pointer;
  std::exception_ptr error(std::move(packed.error));
  std::rethrow_exception(std::move(error));
}

}  // namespace

SCONCE_LEAVABLE Exit find_exit(const Raised* raised) { return Search(raised).run(); }

void note_left(uintptr_t function, uintptr_t stack) noexcept {
  code_thread.left_at = function;
  free_arrays_below(stack);
}

SCONCE_LEAVABLE void resume(const Frame& frame, void (*function)(void*), void* argument) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_handle_no_return();
#endif
  // The stack is as the callee found it: the return address, which is still there, is on top.
  asm volatile(
      "movq 0(%%rcx), %%rbx\n\t"
      "movq 8(%%rcx), %%rbp\n\t"
      "movq 16(%%rcx), %%r12\n\t"
      "movq 24(%%rcx), %%r13\n\t"
      "movq 32(%%rcx), %%r14\n\t"
      "movq 40(%%rcx), %%r15\n\t"
      "movq 48(%%rcx), %%rsp\n\t"
      "subq $8, %%rsp\n\t"
      "jmp *%%rax"
      :
      : "c"(&frame), "a"(function), "D"(argument)
      : "memory");
  __builtin_unreachable();
}

SCONCE_LEAVABLE void leave(std::exception_ptr error, TeamArrays* arrays) {
  const Exit exit = find_exit();
  if (arrays) exit.gone ? arrays->free() : arrays->forget();
  if (exit.gone) note_left(exit.function, exit.gone);
  if (!exit.reached || !exit.left) std::rethrow_exception(std::move(error));
  Packed packed;
  new (&packed.error) std::exception_ptr(std::move(error));
  resume(exit.frame, &throw_packed, packed.pointer);
}

}  // namespace sconce::faults
