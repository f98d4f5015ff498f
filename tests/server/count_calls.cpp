// Preloaded into the server by test_system_calls.py: counts the system calls of all threads that wait, receive, send,
// wake a thread or set a timer in the file COUNT_FILE, as one 64-bit number.
#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tests/server/shared_counter.h"

#define COUNTED(result, name, parameters, arguments)            \
  extern "C" result name parameters {                           \
    static auto const real = next<result(*) parameters>(#name); \
    count();                                                    \
    return real arguments;                                      \
  }

COUNTED(ssize_t, recv, (int fd, void* to, size_t bytes, int flags), (fd, to, bytes, flags))
COUNTED(ssize_t, recvmsg, (int fd, msghdr* message, int flags), (fd, message, flags))
COUNTED(ssize_t, send, (int fd, const void* from, size_t bytes, int flags), (fd, from, bytes, flags))
COUNTED(ssize_t, sendmsg, (int fd, const msghdr* message, int flags), (fd, message, flags))
COUNTED(ssize_t, read, (int fd, void* to, size_t bytes), (fd, to, bytes))
COUNTED(ssize_t, write, (int fd, const void* from, size_t bytes), (fd, from, bytes))
COUNTED(int, epoll_wait, (int loop, epoll_event* events, int most, int time), (loop, events, most, time))
COUNTED(int, epoll_ctl, (int loop, int what, int fd, epoll_event* event), (loop, what, fd, event))
COUNTED(int, timerfd_settime, (int fd, int flags, const itimerspec* time, itimerspec* old), (fd, flags, time, old))
COUNTED(int, eventfd_write, (int fd, uint64_t value), (fd, value))

// A lane's futex, which has six arguments.
extern "C" long syscall(long number, ...) noexcept {
  static auto const real = next<long (*)(long, ...)>("syscall");
  count();
  long values[6];
  va_list given;
  va_start(given, number);
  for (long& value : values) value = va_arg(given, long);
  va_end(given);
  return real(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}
