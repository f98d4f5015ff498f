"""Fails each system call of a request, a scrape, an update and a load in turn, with each possible errno, an
interruption, or one byte moved: once, and, for exhausted resources, from there on."""
import errno

from campaign import Clock, finish, inject
from control import FOR_EVER, ONCE, Kind, Mode
from operations import dry_runs, some_of, variants

# System call numbers of x86-64. LASTING: errors that persist until a resource is freed.
RESOURCES = ["ENOMEM"]
DESCRIPTORS = ["EMFILE", "ENFILE", "ENOMEM"]
DISK = ["ENOSPC", "EIO", "EDQUOT", "EFBIG", "EROFS"]
SOCKET_IN = ["ECONNRESET", "ETIMEDOUT", "ENOMEM", "EINTR"]
SOCKET_OUT = ["EPIPE", "ECONNRESET", "ENOBUFS", "ENOMEM", "EINTR", "ETIMEDOUT", "EHOSTUNREACH"]
CALLS = {
    0: ("read", ["EIO", "EINTR", "EISDIR", "ENOMEM"]), 1: ("write", [*DISK, "EINTR", "EPIPE", "EAGAIN"]),
    2: ("open", [*DESCRIPTORS, "EACCES", "ENOENT", "EINTR", "EIO"]), 3: ("close", ["EIO", "EINTR"]),
    4: ("stat", ["EACCES", "ENOENT", "EIO", "ENOMEM"]), 5: ("fstat", ["EIO", "ENOMEM"]), 7: ("poll", ["EINTR", "ENOMEM"]),
    8: ("lseek", ["EINVAL"]), 9: ("mmap", ["ENOMEM", "EAGAIN", "ENODEV", "EACCES", "EPERM"]), 10: ("mprotect", ["ENOMEM", "EACCES"]),
    11: ("munmap", ["ENOMEM"]), 16: ("ioctl", ["EINVAL", "ENOTTY"]), 17: ("pread64", ["EIO", "EINTR", "ENOMEM"]),
    18: ("pwrite64", [*DISK, "EINTR"]), 19: ("readv", ["EIO", "EINTR"]), 20: ("writev", [*DISK, "EINTR", "EPIPE"]),
    21: ("access", ["EACCES", "ENOENT"]), 25: ("mremap", ["ENOMEM"]), 28: ("madvise", ["ENOMEM", "EINVAL", "EAGAIN"]),
    32: ("dup", DESCRIPTORS), 40: ("sendfile", ["EIO", "ENOMEM"]), 41: ("socket", DESCRIPTORS), 42: ("connect", ["ECONNREFUSED", "EINTR"]),
    44: ("sendto", SOCKET_OUT), 45: ("recvfrom", SOCKET_IN), 46: ("sendmsg", SOCKET_OUT), 47: ("recvmsg", SOCKET_IN),
    48: ("shutdown", ["ENOTCONN", "ENOBUFS"]), 51: ("getsockname", ["ENOBUFS"]), 52: ("getpeername", ["ENOTCONN", "ENOBUFS"]),
    54: ("setsockopt", ["ENOMEM", "EINVAL", "ENOPROTOOPT"]), 55: ("getsockopt", ["ENOMEM"]), 72: ("fcntl", ["EINVAL", "EAGAIN", "EMFILE"]),
    73: ("flock", ["ENOLCK", "EINTR"]), 74: ("fsync", DISK), 75: ("fdatasync", DISK), 77: ("ftruncate", [*DISK, "EINTR"]),
    82: ("rename", [*DISK, "EACCES"]), 83: ("mkdir", [*DISK, "EACCES"]), 87: ("unlink", ["EACCES", "EIO", "ENOENT"]),
    89: ("readlink", ["EACCES", "EIO", "ENOMEM"]), 99: ("sysinfo", ["EFAULT"]), 137: ("statfs", ["EIO", "ENOSYS", "EINTR"]),
    138: ("fstatfs", ["EIO", "ENOSYS", "EINTR"]), 203: ("sched_setaffinity", ["EPERM", "EINVAL"]), 204: ("sched_getaffinity", ["EINVAL"]),
    213: ("epoll_create", DESCRIPTORS), 217: ("getdents64", ["EIO", "ENOENT"]), 232: ("epoll_wait", ["EINTR"]),
    233: ("epoll_ctl", ["ENOMEM", "ENOSPC"]), 237: ("mbind", ["EPERM", "ENOMEM", "ENOSYS"]), 257: ("openat", [*DESCRIPTORS, "EACCES", "ENOENT", "EINTR", "EIO"]),
    262: ("newfstatat", ["EACCES", "ENOENT", "EIO", "ENOMEM"]), 283: ("timerfd_create", DESCRIPTORS), 285: ("fallocate", [*DISK, "EOPNOTSUPP", "EINTR"]),
    286: ("timerfd_settime", ["EINVAL"]), 288: ("accept4", [*DESCRIPTORS, "ENOBUFS", "ECONNABORTED", "EINTR", "EPROTO", "EPERM"]),
    290: ("eventfd2", DESCRIPTORS), 291: ("epoll_create1", DESCRIPTORS), 293: ("pipe2", DESCRIPTORS), 302: ("prlimit64", ["EPERM"]),
    316: ("renameat2", DISK), 318: ("getrandom", ["EINTR", "ENOSYS"]), 319: ("memfd_create", [*DESCRIPTORS, "EPERM", "ENOSYS"]),
    326: ("copy_file_range", ["EXDEV", *DISK]), 332: ("statx", ["EACCES", "ENOENT", "EIO", "ENOMEM"]), 435: ("clone3", ["EAGAIN"]),
}
SHORT = {0, 1, 17, 18, 19, 20, 44, 45, 46, 47, 318}
FROM_FILES = {0, 17, 19}
LASTING = {"ENOMEM", "EMFILE", "ENFILE", "ENOSPC", "EDQUOT", "EIO", "EROFS", "EAGAIN", "ENOBUFS"}


def faults_of(number):
    name, errors = CALLS[number]
    for text in errors:
        yield f"{name}: {text}", {"error": getattr(errno, text), "times": ONCE}
        # If these stayed forever, whoever waits for them would retry forever.
        if text in LASTING and (name, text) not in (("write", "EAGAIN"), ("fcntl", "EAGAIN")):
            yield f"{name}: {text} and again", {"error": getattr(errno, text), "times": FOR_EVER}
    if number in SHORT:
        for times in (ONCE, FOR_EVER):
            yield f"{name}: one byte{'' if times == ONCE else ' and again'}", {"mode": Mode.SHORT, "times": times}
    if number in FROM_FILES:
        yield f"{name}: the end of the file", {"mode": Mode.END, "times": ONCE}


# Calls of the allocator: if they fail, it keeps memory that it cannot use.
OF_THE_ALLOCATOR = (10, 11, 28)


def run(campaign, seconds):
    row, allocator = campaign.row("system calls"), campaign.row("system calls of the allocator")
    with variants() as subjects:
        places = [(allocator if number in OF_THE_ALLOCATOR else row, subject, where, operation,
                   f"call {n} of {text}", {"call": number, "nth": n, **fault})
                  for subject, where, operation, _, counts in dry_runs(campaign, "calls", subjects)
                  for number, n, text, fault in some_of(campaign, operation, [
                      (number, n, text, fault) for number, count in counts.items() if number in CALLS
                      for n in range(1, min(count, 40) + 1) for text, fault in faults_of(number)])]
        memory = [subject.memory_kb() for subject, _, _ in subjects]
        clock = Clock(seconds)
        # The allocator's calls come last, so that memory figures mean something before.
        for part in (row, allocator):
            mine = [place for place in places if place[0] is part]
            part.places = len(mine)
            for _, subject, where, operation, text, fault in campaign.shuffled(mine):
                if clock.over():
                    break
                inject(campaign, part, subject, operation, f"{where}, {text}", kind=Kind.CALL, **fault)
            if part is row:
                for (subject, _, _), kilobytes in zip(subjects, memory):
                    finish(campaign, row, subject, kilobytes)
            clock = Clock(seconds * 0.05)
