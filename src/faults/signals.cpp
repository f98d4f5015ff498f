#include "src/faults/signals.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "sconce/error.h"
#include "src/faults/code_entry.h"
#include "src/faults/code_ranges.h"
#include "src/faults/frames.h"
#include "src/faults/parallel_region.h"

namespace sconce::faults {
namespace {

struct Signal {
  int number;
  const char* name;
};
constexpr std::array<Signal, 4> kSignals{
    {{SIGFPE, "SIGFPE"}, {SIGSEGV, "SIGSEGV"}, {SIGILL, "SIGILL"}, {SIGBUS, "SIGBUS"}}};

size_t index_of(int signal) noexcept {
  for (size_t i = 0; i < kSignals.size(); ++i)
    if (kSignals[i].number == signal) return i;
  return 0;
}

std::array<struct sigaction, kSignals.size()> before{};
std::atomic<bool> guarded{false};
bool (*mended)(uintptr_t address) noexcept = nullptr;

// A fault of a package's code, passed from the handler to the function that throws it on the same thread.
struct Fault {
  int signal, code;
  uintptr_t address;
  bool overflow;
  uintptr_t instruction, caller, region;  // in functions of the package; the last is 0 outside of parallel regions
  uintptr_t stack;                        // the end of the abandoned frames
};
thread_local Fault fault{};

// "the model's code (cpp_fused_div_0)": the first of these functions that the package exports by name.
std::string place_of(const Fault& what) {
  for (const uintptr_t address : {what.instruction, what.caller, what.region}) {
    Dl_info symbol{};
    if (address != 0 && ::dladdr(reinterpret_cast<const void*>(address), &symbol) != 0 && symbol.dli_sname)
      return std::string("the model's code (") + symbol.dli_sname + ")";
  }
  return "the model's code";
}

std::string text_of(const Fault& what) {
  switch (what.signal) {
    case SIGFPE:
      return (what.code == FPE_INTDIV ? "integer division by zero, or of the least integer by -1, in "
                                      : "an arithmetic exception (SIGFPE) in ") +
             place_of(what);
    case SIGILL:
      return "an instruction that this CPU does not execute (SIGILL) in " + place_of(what);
    case SIGBUS:
      return "memory that cannot be read (SIGBUS) was accessed by " + place_of(what);
    default:
      if (what.overflow) return place_of(what) + " has overflowed its stack (SIGSEGV)";
      // Clients read this text, so it contains no address of the process except those near null.
      constexpr uintptr_t kNearNull = 1 << 16;
      const std::string at = what.address < kNearNull ? " at " + std::to_string(what.address) : "";
      return "memory" + at + " that may not be accessed (SIGSEGV) was accessed by " + place_of(what);
  }
}

std::exception_ptr error_of(const Fault& what) {
  return std::make_exception_ptr(Error(ErrorCode::kModelFailed, text_of(what)));
}

[[noreturn]] SCONCE_RESUMED void throw_fault(void* argument) {
  const Fault& what = *static_cast<const Fault*>(argument);
  note_left(what.instruction, what.stack);
  std::rethrow_exception(error_of(what));
}

Raised raised_by(int signal, const siginfo_t& info, const ucontext_t& context) noexcept {
  const greg_t* const registers = context.uc_mcontext.gregs;
  return {static_cast<uintptr_t>(registers[REG_RIP]), static_cast<uintptr_t>(registers[REG_RSP]),
          signal == SIGSEGV ? reinterpret_cast<uintptr_t>(info.si_addr) : 0};
}

// Returns whether the thread will continue in throw_fault().
bool leave_code(int signal, const siginfo_t& info, ucontext_t& context) noexcept {
  greg_t* const registers = context.uc_mcontext.gregs;
  const Raised raised = raised_by(signal, info, context);
  const uintptr_t instruction = raised.instruction;
  if (!library_at(instruction)) return false;
  const Exit exit = find_exit(&raised);
  if (!exit.reached || !exit.left) return false;
  fault = {signal,
           info.si_code,
           reinterpret_cast<uintptr_t>(info.si_addr),
           exit.overflow,
           instruction,
           exit.frame.address - 1,
           region_entered_from(),
           exit.gone};
  if (signal != SIGFPE) count_damage(instruction);
  const auto set = [&](int number, uint64_t value) { registers[number] = static_cast<greg_t>(value); };
  set(REG_RBX, exit.frame.rbx);
  set(REG_RBP, exit.frame.rbp);
  set(REG_R12, exit.frame.r12);
  set(REG_R13, exit.frame.r13);
  set(REG_R14, exit.frame.r14);
  set(REG_R15, exit.frame.r15);
  set(REG_RSP, exit.frame.stack - 8);  // the return address, which is still there
  set(REG_RIP, reinterpret_cast<uint64_t>(&throw_fault));
  set(REG_RDI, reinterpret_cast<uint64_t>(&fault));
  constexpr uint64_t kDirection = 0x400;  // calls expect it clear
  set(REG_EFL, static_cast<uint64_t>(registers[REG_EFL]) & ~kDirection);
  return true;
}

void say(std::string_view text) noexcept {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

// Writes the reason why the process dies. Uses system calls only, as far as backtrace() makes no others. If several
// threads fail at once, one reports and the others wait for the end of the process. If the report itself fails, it
// stops.
void report(const char* name, const char* model) noexcept {
  static std::atomic<pid_t> reporter{0};
  pid_t other = 0;
  const pid_t me = ::gettid();
  while (!reporter.compare_exchange_strong(other, me)) {
    if (std::exchange(other, 0) == me) return;
    ::pause();
  }
  say("sconce: ");
  say(name);
  say(model ? " while running the code of model " : " outside of any model's code");
  if (model) say(model);
  say("\n");
  constexpr int kMost = 64;
  void* frames[kMost];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, kMost), STDERR_FILENO);
}

// The model whose code the thread runs, from the thread's own record. A thread started by a library runs code of the
// model whose frame started it.
const char* running_model(const Raised* raised) noexcept {
  if (code_thread.model) return code_thread.model;
  const Exit exit = find_exit(raised);
  return exit.function ? library_at(exit.function) : nullptr;
}

void end_by(int signal) noexcept {
  struct sigaction end {};
  end.sa_handler = SIG_DFL;
  ::sigaction(signal, &end, nullptr);
}

void pass_on(int signal, siginfo_t* info, void* context) noexcept {
  const struct sigaction& previous = before[index_of(signal)];
  // A handler installed to run once is followed by the default action; otherwise the instruction would fault forever.
  if (previous.sa_flags & static_cast<int>(SA_RESETHAND)) end_by(signal);
  if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(signal, info, context);
  const bool raised = info->si_code > 0;
  if (previous.sa_handler == SIG_IGN && !raised) return;
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(signal);
  if (raised) {
    const Raised by = raised_by(signal, *info, *static_cast<const ucontext_t*>(context));
    report(kSignals[index_of(signal)].name, running_model(&by));
  }
  end_by(signal);  // the instruction faults again, or the signal is sent again
  if (!raised) ::raise(signal);
}

void on_signal(int signal, siginfo_t* info, void* context) noexcept {
  const int error = errno;
  const bool raised = info->si_code > 0;  // by an instruction of this thread
  const bool dealt_with =
      raised && ((signal == SIGBUS && mended && mended(reinterpret_cast<uintptr_t>(info->si_addr))) ||
                 leave_code(signal, *info, *static_cast<ucontext_t*>(context)));
  if (!dealt_with) pass_on(signal, info, context);
  errno = error;
}

// abort() ends the process when this returns.
void on_abort(int signal, siginfo_t* info, void*) noexcept {
  if (info->si_code == SI_TKILL && info->si_pid == ::getpid()) return report("SIGABRT", running_model(nullptr));
  end_by(signal);
  ::raise(signal);
}

}  // namespace

void guard_code(bool (*mend)(uintptr_t address) noexcept) noexcept {
  if (guarded.exchange(true)) return;
  mended = mend;
  void* loaded[1];
  ::backtrace(loaded, 1);  // the first call opens a library
  need_alternate_stacks();
  struct sigaction ours {};
  ours.sa_sigaction = on_signal;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&ours.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i].number, nullptr, &before[i]);  // set before the handler can run
    ::sigaction(kSignals[i].number, &ours, nullptr);
  }
  struct sigaction abort {};
  ::sigaction(SIGABRT, nullptr, &abort);
  if (abort.sa_flags & SA_SIGINFO || abort.sa_handler != SIG_DFL) return;
  abort.sa_sigaction = on_abort;
  abort.sa_flags = ours.sa_flags;
  ::sigaction(SIGABRT, &abort, nullptr);
}

}  // namespace sconce::faults
