// Intercepts every system call of the process, including those of libraries: a seccomp filter turns each into a signal,
// whose handler makes the call or fails it. The filter lets only the handler's own calls through.
#include <execinfo.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "tests/faults/interposer/control.h"
#include "tests/faults/interposer/original.h"

extern "C" long sconce_faults_call(long number, long a, long b, long c, long d, long e, long f);
extern "C" const char sconce_faults_called[];  // after its syscall instruction; the filter lets calls from here through

asm(R"(
  .text
  .globl sconce_faults_call, sconce_faults_called
  .hidden sconce_faults_call, sconce_faults_called
  .type sconce_faults_call, @function
sconce_faults_call:
  .cfi_startproc
  mov %rdi, %rax
  mov %rsi, %rdi
  mov %rdx, %rsi
  mov %rcx, %rdx
  mov %r8, %r10
  mov %r9, %r8
  mov 8(%rsp), %r9
  syscall
sconce_faults_called:
  ret
  .cfi_endproc
)");

namespace {

using sconce::faults::Control;
using sconce::faults::Kind;
using sconce::faults::Mode;

// Excludes calls that cannot fail for lack of a resource, that create threads and processes, and that implement locks.
constexpr int kWatched[] = {
    SYS_accept4, SYS_access, SYS_bind, SYS_close, SYS_connect, SYS_copy_file_range, SYS_dup, SYS_dup3,
    SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_wait, SYS_eventfd2, SYS_faccessat, SYS_faccessat2, SYS_fallocate,
    SYS_fchmod, SYS_fcntl, SYS_fdatasync, SYS_flock, SYS_fstat, SYS_fstatfs, SYS_fsync, SYS_ftruncate, SYS_getdents64,
    SYS_getpeername, SYS_getrandom, SYS_getsockname, SYS_getsockopt, SYS_ioctl, SYS_listen, SYS_lseek, SYS_madvise,
    SYS_mbind, SYS_memfd_create, SYS_mkdir, SYS_mkdirat, SYS_mmap, SYS_mprotect, SYS_mremap, SYS_munmap, SYS_newfstatat,
    SYS_open, SYS_openat, SYS_pipe2, SYS_poll, SYS_pread64, SYS_preadv, SYS_prlimit64, SYS_pwrite64, SYS_pwritev,
    SYS_read, SYS_readlink, SYS_readlinkat, SYS_readv, SYS_recvfrom, SYS_recvmsg, SYS_rename, SYS_renameat,
    SYS_renameat2, SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_sendfile, SYS_sendmsg, SYS_sendto, SYS_setsockopt,
    SYS_shutdown, SYS_socket, SYS_stat, SYS_statfs, SYS_statx, SYS_sysinfo, SYS_timerfd_create, SYS_timerfd_settime,
    SYS_unlink, SYS_unlinkat, SYS_write, SYS_writev, SYS_exit_group,
    // Keeps the signal unblocked: a call while it is blocked would end the process.
    SYS_rt_sigaction, SYS_rt_sigprocmask};

constexpr uint64_t kOurs = uint64_t{1} << (SIGSYS - 1);

struct KernelAction {
  void* handler;
  unsigned long flags;
  void* restorer;
  uint64_t mask;
};

long set_action(const greg_t* r) noexcept {
  const auto* wanted = reinterpret_cast<const KernelAction*>(r[REG_RSI]);
  if (wanted == nullptr) return sconce_faults_call(SYS_rt_sigaction, r[REG_RDI], 0, r[REG_RDX], r[REG_R10], 0, 0);
  if (r[REG_RDI] == SIGSYS) return 0;
  KernelAction action = *wanted;
  action.mask &= ~kOurs;
  return sconce_faults_call(SYS_rt_sigaction, r[REG_RDI], reinterpret_cast<long>(&action), r[REG_RDX], r[REG_R10], 0,
                            0);
}

// Changes the mask that the thread will have when the handler returns.
long set_mask(ucontext_t& context, const greg_t* r) noexcept {
  uint64_t mask = 0;
  std::memcpy(&mask, &context.uc_sigmask, sizeof mask);
  const uint64_t before = mask;
  if (const auto* set = reinterpret_cast<const uint64_t*>(r[REG_RSI])) {
    switch (r[REG_RDI]) {
      case SIG_BLOCK:
        mask |= *set;
        break;
      case SIG_UNBLOCK:
        mask &= ~*set;
        break;
      case SIG_SETMASK:
        mask = *set;
        break;
      default:
        return -EINVAL;
    }
  }
  mask &= ~kOurs;
  std::memcpy(&context.uc_sigmask, &mask, sizeof mask);
  if (r[REG_RDX] != 0) *reinterpret_cast<uint64_t*>(r[REG_RDX]) = before;
  return 0;
}

long pass(long call, const greg_t* r) noexcept {
  return sconce_faults_call(call, r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]);
}

// One byte of the first part that is not empty.
iovec one_byte(const iovec* parts, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i)
    if (parts[i].iov_len != 0) return {parts[i].iov_base, 1};
  return {nullptr, 0};
}

long pass_one_byte(long call, greg_t* r) noexcept {
  switch (call) {
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_recvfrom:
    case SYS_sendto:
    case SYS_getrandom: {
      greg_t& bytes = call == SYS_getrandom ? r[REG_RSI] : r[REG_RDX];
      bytes = std::min<greg_t>(bytes, 1);
      return pass(call, r);
    }
    case SYS_readv:
    case SYS_writev:
    case SYS_preadv:
    case SYS_pwritev: {
      const iovec part = one_byte(reinterpret_cast<const iovec*>(r[REG_RSI]), static_cast<size_t>(r[REG_RDX]));
      r[REG_RSI] = reinterpret_cast<greg_t>(&part);
      r[REG_RDX] = 1;
      return pass(call, r);
    }
    case SYS_recvmsg:
    case SYS_sendmsg: {
      auto& message = *reinterpret_cast<msghdr*>(r[REG_RSI]);
      const msghdr before = message;
      iovec part = one_byte(message.msg_iov, message.msg_iovlen);
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      const long result = pass(call, r);
      message.msg_iov = before.msg_iov;
      message.msg_iovlen = before.msg_iovlen;
      return result;
    }
    default:
      return pass(call, r);
  }
}

// Kills the server, also when the call is one of a child that it has forked but that has not become a program yet.
void end_at_once(const Control& control) noexcept {
  sconce_faults_call(SYS_kill, static_cast<long>(control.process.load()), SIGKILL, 0, 0, 0, 0);
}

// The kernel takes memory for a descriptor that joins an epoll, and for none that is in it. Asio and our EventLoop
// wake a thread by EPOLL_CTL_MOD and do not look at its result.
bool always_succeeds(long call, const greg_t* r) noexcept {
  return call == SYS_epoll_ctl && r[REG_RSI] != EPOLL_CTL_ADD;
}

long fail(Control& control, long call, greg_t* r) noexcept {
  switch (control.mode) {
    case Mode::kShort:
      return pass_one_byte(call, r);
    case Mode::kEnd:
      return 0;
    case Mode::kKill:
      end_at_once(control);
      return 0;
    case Mode::kError:
      break;
  }
  // Whatever close() returns, the descriptor is closed; and memory is unmapped, because a caller could not retry.
  if (call == SYS_close || call == SYS_munmap) pass(call, r);
  return -static_cast<long>(control.error.load());
}

void on_call(int, siginfo_t* info, void* memory) noexcept {
  auto& context = *static_cast<ucontext_t*>(memory);
  const long call = info->si_syscall;
  greg_t r[NGREG];
  std::memcpy(r, context.uc_mcontext.gregs, sizeof r);
  long result = 0;
  if (call == SYS_rt_sigaction) {
    result = set_action(r);
  } else if (call == SYS_rt_sigprocmask) {
    result = set_mask(context, r);
  } else if (call == SYS_exit_group) {
    keep_end(*sconce::faults::control());
    pass(call, r);
  } else {
    Control& control = *sconce::faults::control();
    const int saved = errno;
    const bool failed = !always_succeeds(call, r) && fails(control, Kind::kCall, call);
    errno = saved;
    result = failed ? fail(control, call, r) : pass(call, r);
  }
  context.uc_mcontext.gregs[REG_RAX] = result;
}

// Reports where, then lets it happen again without a handler.
void on_segmentation_fault(int) noexcept {
  if (Control* const control = sconce::faults::control()) sconce::faults::keep_end(*control);
}

void install_filter() {
  sock_filter code[std::size(kWatched) + 16];
  size_t n = 0;
  const auto add = [&](sock_filter instruction) { code[n++] = instruction; };
  const auto here = reinterpret_cast<uint64_t>(sconce_faults_called);
  constexpr uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS, kEqual = BPF_JMP | BPF_JEQ | BPF_K, kReturn = BPF_RET | BPF_K;
  constexpr uint32_t kAddress = offsetof(seccomp_data, instruction_pointer);
  add(BPF_STMT(kLoad, kAddress));
  add(BPF_JUMP(kEqual, static_cast<uint32_t>(here), 0, 3));
  add(BPF_STMT(kLoad, kAddress + 4));
  add(BPF_JUMP(kEqual, static_cast<uint32_t>(here >> 32), 0, 1));
  add(BPF_STMT(kReturn, SECCOMP_RET_ALLOW));
  add(BPF_STMT(kLoad, offsetof(seccomp_data, nr)));
  for (size_t i = 0; i < std::size(kWatched); ++i)
    add(BPF_JUMP(kEqual, static_cast<uint32_t>(kWatched[i]), static_cast<uint8_t>(std::size(kWatched) - i), 0));
  add(BPF_STMT(kReturn, SECCOMP_RET_ALLOW));
  add(BPF_STMT(kReturn, SECCOMP_RET_TRAP));
  const sock_fprog program{static_cast<uint16_t>(n), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
    std::perror("faults: seccomp");
    std::_Exit(99);
  }
}

__attribute__((constructor)) void begin() {
  Control* const control = sconce::faults::control();
  if (control == nullptr) return;
  void* frames[2];
  ::backtrace(frames, 2);  // loads what it needs while that works
  struct sigaction action {};
  action.sa_sigaction = on_call;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
  sigaction(SIGSYS, &action, nullptr);
  struct sigaction fault {};
  fault.sa_handler = on_segmentation_fault;
  fault.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGSEGV, &fault, nullptr);
  install_filter();
  uint64_t none = 0;
  control->process.compare_exchange_strong(none, static_cast<uint64_t>(::getpid()));
}

SCONCE_ORIGINAL(pthread_create, int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*))
SCONCE_ORIGINAL(abort, void())

}  // namespace

// Makes pthread_create fail, because clone3 itself cannot be called from a handler.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                              void* argument) noexcept {
  Control* const control = sconce::faults::control();
  if (control != nullptr && fails(*control, Kind::kCall, SYS_clone3)) {
    if (control->mode == Mode::kKill) end_at_once(*control);
    return control->error != 0 ? static_cast<int>(control->error.load()) : EAGAIN;
  }
  return real_pthread_create.find()(thread, attributes, function, argument);
}

extern "C" void abort() noexcept {
  if (Control* const control = sconce::faults::control()) keep_end(*control);
  real_abort.find()();
  std::_Exit(98);
}
