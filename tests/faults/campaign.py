"""What all kinds of faults share: places in random order until the time is over, invariants after each fault, and
the table."""
import errno
import random
import sys
import time

from control import Kind, Mode
from subject import Lost


# Errors that a client could cause too: a missing file, a closed connection.
LIKE_MISTAKES = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ECONNRESET, errno.ETIMEDOUT)


class Row:
    def __init__(self, kind):
        self.kind, self.places, self.injected, self.survived, self.lost, self.skipped = kind, 0, 0, 0, [], ""


class Campaign:
    """The clock, the table, and what is printed of them."""

    def __init__(self, seed=1, only=None, stop_at=20, every=64, out=sys.stdout):
        self.every = every
        self.rows, self.random, self.only, self.stop_at, self.out = [], random.Random(seed), only, stop_at, out

    def say(self, text):
        print(text, file=self.out, flush=True)

    def row(self, kind):
        self.rows.append(Row(kind))
        return self.rows[-1]

    def skip(self, kind, reason):
        self.row(kind).skipped = reason
        self.say(f"faults: {kind}: skipped: {reason}")

    def wanted(self, *names):
        return not self.only or "/".join(names).startswith(self.only) or self.only.startswith("/".join(names))

    def shuffled(self, places):
        places = list(places)
        self.random.shuffle(places)
        return places

    def lose(self, row, place, problem, trace=(), log=()):
        row.lost.append(f"{place}: {problem}")
        self.say(f"LOST {row.kind}: {place}: {problem}")
        for line in trace:
            self.say(f"     at {line}")
        for line in log:
            self.say(f"     log {line.rstrip()[:300]}")
        if sum(len(r.lost) for r in self.rows) >= self.stop_at:
            raise TooMany

    @property
    def lost(self):
        return sum(len(row.lost) for row in self.rows)

    @property
    def injected(self):
        return sum(row.injected for row in self.rows)

    def table(self):
        lines = ["| kind | places | injected | survived | lost |", "|---|---:|---:|---:|---:|"]
        for row in self.rows:
            if row.skipped:
                lines.append(f"| {row.kind} | skipped: {row.skipped} | | | |")
            else:
                lines.append(f"| {row.kind} | {row.places} | {row.injected} | {row.survived} | {len(row.lost)} |")
        return "\n".join(lines)


class TooMany(Exception):
    pass


class Clock:
    """A share of the campaign's time."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def over(self):
        return time.monotonic() >= self.end


def is_not_promised(where):
    """Whether a process ended in libgomp, or in oneDNN while this was opened, made code or made a
    memory object, as docs/faults.md says."""
    initialised = any(": call_init " in after and frame.startswith("libdnnl")
                      for frame, after in zip(where, where[1:]))
    own = [frame for frame in where if not frame.startswith("libc.so")]  # without a signal's frames
    made = own[:1] != [] and own[0].startswith("libdnnl") and any(
        call in frame for frame in own for call in ("dnnl_primitive_create", "dnnl_memory_create"))
    return initialised or made or where[:1] != [] and where[0].startswith("libgomp")


def inject(campaign, row, subject, operation, place, **fault):
    """Injects one fault into one operation and checks all invariants. False: the operation has no such place."""
    control = subject.control
    trace = []
    try:
        if operation.prepare:
            operation.prepare(subject)
        control.page.wants_trace = 1
        subject.may_blame = fault.get("mode") == Mode.END or fault.get("error") in LIKE_MISTAKES
        with control.armed(**fault) as page:
            outcome = operation.act(subject)
        fired = page.fired
        trace = control.trace()
        if not fired:
            operation.check(subject, outcome)  # leaves the subject as it was
            return False
        row.injected += 1
        if not subject.lives():
            raise Lost(subject.death())
        if fault.get("kind") == Kind.ALLOCATION and outcome.status != 200 and operation.makes_models:
            subject.kept += 1
        operation.check(subject, outcome)
        subject.check_whole()
        if row.injected % campaign.every == 0:
            subject.check_resources()
        row.survived += 1
        return True
    except Lost as problem:
        where = subject.places(trace or control.trace())
        if not subject.lives() and is_not_promised(where):
            row.injected -= 1
            subject.restart()
            subject.settle()
            return False
        if control.end():
            where += ["and ended", *subject.places(control.end())]
        campaign.lose(row, f"{operation.name}, {place}", problem, where, subject.server.log[-4:])
        subject.restart()
        subject.settle()
        return True


def survive(campaign, row, subject, place, act):
    """Lets `act` cause one fault and check it, then checks all invariants."""
    row.injected += 1
    try:
        act()
        if not subject.lives():
            raise Lost(subject.death())
        subject.check_whole()
        if row.injected % campaign.every == 0:
            subject.check_resources()
        row.survived += 1
    except Lost as problem:
        where = ["ended", *subject.places(subject.control.end())] if subject.control.end() else []
        campaign.lose(row, place, problem, where, subject.server.log[-4:])
        subject.restart()
        subject.settle()


def finish(campaign, row, subject, kilobytes):
    """At the end of a kind, memory must be what it was too."""
    try:
        subject.check_resources()
        grown = subject.memory_kb() - kilobytes
        campaign.say(f"faults: {row.kind}: {grown} kB more than at the start, {row.injected} injected")
        if grown > 32 * 1024:
            raise Lost(f"{grown} kB more than at the start")
    except Lost as problem:
        campaign.lose(row, "at the end", problem)


def run_places(campaign, row, subject, places, seconds):
    """Visits all places (name, action) in random order until the time is over."""
    row.places = len(places)
    kilobytes, clock = subject.memory_kb(), Clock(seconds)
    for place, act in campaign.shuffled(places):
        if clock.over():
            break
        survive(campaign, row, subject, place, act)
    finish(campaign, row, subject, kilobytes)
