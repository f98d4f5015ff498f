"""Kills the server (kill -9) at every system call of a start, a load, an update and a reload, then starts it again; and
fails each allocation and system call of a start."""
import contextlib
import time

from calls import CALLS, faults_of
from campaign import Clock, is_not_promised
from client import Outcome
from control import FOR_EVER, ONCE, Kind, Mode
from operations import LOADS, UPDATES, everything
from subject import Lost, Subject

from serving import until


def start_again(campaign, row, subject, place, before):
    try:
        status = before()
        if status is not None and status != -9:
            raise Lost(f"not killed: {status}")
        begin = time.monotonic()
        subject.start()
        if time.monotonic() - begin > 3:
            raise Lost(f"took {time.monotonic() - begin:.1f} s to start again")
        subject.check_whole()
        left = sorted(p.name for p in subject.weights.iterdir())
        if left != ["second.safetensors"]:
            raise Lost(f"left behind among the weights: {left}")
        row.survived += 1
    except (Lost, RuntimeError) as problem:
        campaign.lose(row, place, problem, (), subject.server.log[-4:] if subject.server else ())
        subject.end()
        subject.start()


def kill_in(subject, operation, nth):
    if operation.prepare:
        operation.prepare(subject)
    with subject.control.armed(Kind.CALL, nth=nth, mode=Mode.KILL):
        operation.act(subject)
        fired = subject.control.page.fired
    if not fired:
        return None
    status = subject.server.process.wait(60)
    subject.end()
    return status


def run(campaign, seconds):
    row = campaign.row("kill -9 at each step, then a start")
    clock = Clock(seconds / 2)
    with Subject(warm_up=everything) as subject:
        places = []
        for operation in LOADS + UPDATES:
            if operation.prepare:
                operation.prepare(subject)
            with subject.control.armed():
                operation.act(subject)
            places += [(operation, n) for n in range(1, sum(subject.control.counts().values()) + 1)]
        row.places = len(places)
        for operation, n in campaign.shuffled(places):
            if clock.over():
                break
            row.injected += 1
            killed = []

            def kill():
                killed.append(kill_in(subject, operation, n))
                if killed[0] is None:
                    subject.end()
                return killed[0]

            start_again(campaign, row, subject, f"{operation.name}, at call {n}", kill)
    starts(campaign, seconds / 2)


# write: the campaign reads from the log that the server started (kind disks fails it).
LEFT_OUT = (1,)


def starts(campaign, seconds):
    """A start that fails says so and ends; any other serves correctly."""
    row = campaign.row("a start without what it needs")
    clock = Clock(seconds)
    with Subject(serve=False) as subject:
        control = subject.control
        with control.armed() as page:
            begin_and_look(subject, stays=True)
            page.armed = 0
            calls, allocations = control.counts(), page.allocations
        subject.resources()
        subject.end()
        places = [("call", number, n, text, fault) for number, count in calls.items() if number in CALLS and number not in LEFT_OUT
                  for n in range(1, count + 1) for text, fault in faults_of(number)]
        places += [("allocation", -1, n, "allocation", {"times": times}) for n in range(1, allocations + 1, 3)
                   for times in (ONCE, FOR_EVER)]
        row.places = len(places)
        for what, number, n, text, fault in campaign.shuffled(places):
            if clock.over():
                break
            row.injected += 1
            kind = Kind.CALL if what == "call" else Kind.ALLOCATION
            place = f"{text}, number {n}{' and on' if fault['times'] == FOR_EVER else ''}"
            try:
                with control.armed(kind, nth=n, call=number, **fault):
                    begin_and_look(subject, stays=fault["times"] == ONCE)
                row.survived += 1
            except Lost as problem:
                ended = subject.places(control.end()) if control.end() else []
                if is_not_promised(ended):
                    row.injected -= 1
                    continue
                where = ["ended", *ended] if ended else []
                campaign.lose(row, place, problem, where, subject.server.log[-4:] if subject.server else ())
            finally:
                if subject.server and subject.lives():
                    subject.end()


def begin_and_look(subject, stays):
    """The server serves correctly or ends with a reason. stays: the fault lasts until a model is served; else until the
    server listens."""
    subject.server = None
    try:
        subject.begin()
    except RuntimeError as ended:
        text = str(ended)
        # Before its first words, the server only has to say why.
        if " info " in text and "terminate called" in text or "ABORT" in text or "Assertion" in text:
            raise Lost(f"did not end in order: {text[-800:]}") from None
        return
    if not stays:
        subject.control.page.armed = 0
    if not subject.lives():
        status = subject.server.process.wait()
        if status < 0:
            raise Lost(f"ended by signal {-status}: {''.join(subject.server.log[-5:])}")
        return
    outcome = Outcome()

    def answered_or_ended():
        nonlocal outcome
        outcome = subject.call("digits")
        return outcome.status == 200 or not subject.lives()

    with contextlib.suppress(AssertionError):  # the outcome tells what there is instead
        until(answered_or_ended, 10)
    if not subject.lives():
        status = subject.server.process.wait()
        if status not in (1, 2):
            raise Lost(f"ended with {status}: {''.join(subject.server.log[-5:])}")
        return
    if outcome.status != 200:
        raise Lost(f"started, but does not serve: {outcome}: {''.join(subject.server.log[-5:])}")
