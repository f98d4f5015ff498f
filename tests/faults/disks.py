"""Full disks, and folders that cannot be written, for traces, logs and weights."""
import errno
import os
import pathlib
import resource
import subprocess
import tempfile

from campaign import run_places
from control import FOR_EVER, Kind
from operations import ALL, LOADS, UPDATES, everything, right_answer, trace_all, trace_nothing
from subject import Lost, Subject


class Disk:
    """A file system of a fixed size."""

    def __init__(self, kilobytes):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="sconce-faults-disk-"))
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", self.path],
                              capture_output=True, text=True)
        if done.returncode:
            self.path.rmdir()
            raise OSError(done.stderr.strip())

    def remount(self, mode):
        subprocess.run(["mount", "-o", f"remount,{mode}", self.path], check=True, capture_output=True)

    def fill(self):
        with open(self.path / "filling", "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass

    def free(self):
        (self.path / "filling").unlink(missing_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path], capture_output=True)
        self.path.rmdir()


def traced(subject, operation, broken, mended, disk):
    trace_all(subject)
    if operation.prepare:
        operation.prepare(subject)
    trace_all(subject)
    broken()
    try:
        outcome = operation.act(subject)
        right_answer(subject, subject.call("digits"))
    finally:
        mended()
    operation.check(subject, outcome)
    trace_nothing(subject)
    # Traces continue once there is room.
    before = size_of(disk)
    trace_all(subject)
    subject.until(lambda: subject.call("digits") and size_of(disk) > before, 1.5, "no traces any more")
    trace_nothing(subject)
    if size_of(disk) > 192 * 1024:
        os.truncate(disk.path / "traces", 0)


def started_read_only(subject, disk):
    """If it cannot write its traces, the server says so before it serves."""
    subject.end()
    disk.remount("ro")
    try:
        subject.begin()
        raise Lost("starts although the trace file cannot be written")
    except RuntimeError as ended:
        if "trace_file" not in str(ended) or "Read-only file system" not in str(ended):
            raise Lost(f"does not say why it does not start: {ended}") from None
    finally:
        disk.remount("rw")
    subject.start()
    subject.settle()


def updated(subject, operation, broken, mended):
    """Nothing is written beside the weights, so a read-only folder is no reason to fail."""
    if operation.prepare:
        operation.prepare(subject)
    broken()
    try:
        outcome = operation.act(subject)
        if outcome.status != 200:
            raise Lost(f"{operation.name} below a folder that cannot be written: {outcome}")
        operation.check(subject, outcome)
    finally:
        mended()


def size_of(disk):
    return sum(p.stat().st_size for p in disk.path.iterdir() if p.name != "filling")


def run(campaign, seconds):
    kind = "disks full or read-only, below traces"
    try:
        with Disk(512) as disk, Subject(flags=["--trace-file", disk.path / "traces"], warm_up=everything) as subject:
            row = campaign.row(kind)
            subject.settle()
            operations = [o for o in ALL if o.name != "traced call"]
            ways = {"full": (disk.fill, disk.free),
                    "files may not grow": (lambda: limit_files(subject, size_of(disk)), lambda: limit_files(subject, None))}
            places = [(f"{o.name}, {text}", lambda o=o, way=way: traced(subject, o, *way, disk))
                      for o in operations for text, way in ways.items() for _ in range(3)]
            places.append(("a start, read-only", lambda: started_read_only(subject, disk)))
            run_places(campaign, row, subject, places, seconds / 2)
        with Disk(512) as disk, Subject(weights=disk.path, warm_up=everything) as subject:
            row = campaign.row("disks full or read-only, below weights")
            subject.settle()
            ways = {"full": (disk.fill, disk.free),
                    "read-only": (lambda: disk.remount("ro"), lambda: disk.remount("rw"))}
            places = [(f"{o.name}, {text}", lambda o=o, way=way: updated(subject, o, *way))
                      for o in UPDATES + LOADS for text, way in ways.items() for _ in range(3)]
            run_places(campaign, row, subject, places, seconds / 6)
    except OSError as reason:
        campaign.skip(kind, f"no file system may be mounted here ({reason})")
    logs(campaign, seconds / 3)


def limit_files(subject, size):
    hard = resource.prlimit(subject.server.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(subject.server.process.pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


def logs(campaign, seconds):
    """Each write of a log line fails, as on a full disk or a pipe whose reader is gone."""
    row = campaign.row("logs that cannot be written")
    with Subject(flags=["--access-log", "true", "--log-level", "debug"], warm_up=everything) as subject:
        subject.settle()

        def act(operation, nth, error):
            if operation.prepare:
                operation.prepare(subject)
            with subject.control.armed(Kind.CALL, nth=nth, times=FOR_EVER, call=1, error=error):
                outcome = operation.act(subject)
            operation.check(subject, outcome)
            lines = len(subject.server.log)
            subject.until(lambda: subject.get("/v2/health/live") and len(subject.server.log) > lines, 1.5,
                          "no log any more")

        places = [(f"{o.name}, {os.strerror(e)}, from write {n} on", lambda o=o, n=n, e=e: act(o, n, e))
                  for o in ALL for n in range(1, 4)
                  for e in (errno.ENOSPC, errno.EIO, errno.EPIPE, errno.EROFS, errno.EDQUOT)]
        run_places(campaign, row, subject, places, seconds)
