"""Descriptors, address space, threads and the control group's memory run out while the server works, and come back."""
import contextlib
import os
import pathlib
import resource
import threading
import time

from campaign import run_places
from operations import ALL, everything
from subject import Subject

MIB = 1 << 20
GROUPS = pathlib.Path("/sys/fs/cgroup")
AWAY = 0.15  # seconds without the resource


@contextlib.contextmanager
def limit(subject, kind, value):
    """Limits the running process for AWAY at most, so that what waits for the resource goes on."""
    pid = subject.server.process.pid
    before = resource.prlimit(pid, kind)
    back = threading.Timer(AWAY, lambda: resource.prlimit(pid, kind, before))
    resource.prlimit(pid, kind, (value, before[1]))
    back.start()
    try:
        yield
    finally:
        back.join()


def with_limit(subject, operation, kind, value):
    if operation.prepare:
        operation.prepare(subject)
    with limit(subject, kind, value()):
        outcome = operation.act(subject)
    operation.check(subject, outcome)


class Group:
    """A control group of version 1 for one process, with one value that is changed."""

    def __init__(self, controller, subject):
        self.path = GROUPS / controller / f"sconce-faults-{os.getpid()}"
        self.path.mkdir()
        (self.path / "cgroup.procs").write_text(str(subject.server.process.pid))

    def read(self, name):
        return int((self.path / name).read_text())

    def write(self, name, value):
        (self.path / name).write_text(str(value))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            for pid in (self.path / "cgroup.procs").read_text().split():
                (self.path.parent / "cgroup.procs").write_text(pid)
        for _ in range(50):
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            time.sleep(0.02)


def group_places(subject, group, name, unlimited, values):
    def act(operation, value):
        if operation.prepare:
            operation.prepare(subject)
        back = threading.Timer(AWAY, lambda: group.write(name, unlimited))
        with contextlib.suppress(OSError):  # less than what is in use and cannot be freed
            group.write(name, value())
        back.start()
        outcome = operation.act(subject)
        back.join()
        operation.check(subject, outcome)

    return [(f"{operation.name}, {text}", lambda o=operation, v=value: act(o, v))
            for operation in ALL for text, value in values]


def run(campaign, seconds):
    with Subject(warm_up=everything) as subject:
        subject.settle()
        proc = lambda: pathlib.Path(f"/proc/{subject.server.process.pid}")
        files = lambda: len(list((proc() / "fd").iterdir()))
        pages = lambda: int((proc() / "statm").read_text().split()[0]) * resource.getpagesize()
        places = [(f"{o.name}, {n} descriptors more",
                   lambda o=o, n=n: with_limit(subject, o, resource.RLIMIT_NOFILE, lambda: files() + n))
                  for o in ALL for n in range(9)]
        run_places(campaign, campaign.row("descriptors run out"), subject, places, seconds / 4)
        places = [(f"{o.name}, {n // 1024} KiB more",
                   lambda o=o, n=n: with_limit(subject, o, resource.RLIMIT_AS, lambda: pages() + n))
                  for o in ALL for n in (0, 16 << 10, 128 << 10, 512 << 10, MIB, 2 * MIB, 4 * MIB, 9 * MIB, 33 * MIB)]
        run_places(campaign, campaign.row("address space runs out"), subject, places, seconds / 4)
    for controller, kind in (("pids", "threads run out"), ("memory", "memory of the control group runs out")):
        try:
            with Subject(warm_up=everything) as subject, Group(controller, subject) as group:
                if controller == "pids":
                    subject.settle()
                    threads = lambda: group.read("pids.current")
                    places = group_places(subject, group, "pids.max", "max",
                                          [(f"{n} threads more", lambda n=n: threads() + n) for n in range(3)])
                else:
                    group.write("memory.oom_control", 1)  # processes wait for memory instead of being killed
                    subject.settle()
                    places = group_places(subject, group, "memory.limit_in_bytes", 1 << 40,
                                          [(f"{n >> 10} KiB more", lambda n=n: group.read("memory.usage_in_bytes") + n)
                                           for n in (0, 64 << 10, MIB)])
                run_places(campaign, campaign.row(kind), subject, places, seconds / 4)
        except (OSError, ValueError) as reason:
            campaign.skip(kind, f"no control group of version 1 may be made here ({reason})")
