"""Clocks jump during requests, updates and loads: the time of day far in both directions, the steady clock forward;
and the process is stopped for a while, like a virtual machine."""
import signal
import threading
import time

from campaign import run_places
from operations import ALL, everything
from subject import Subject

SECOND = 1_000_000_000
HOUR, DAY, YEAR = 3600 * SECOND, 86400 * SECOND, 365 * 86400 * SECOND
NOW = int(time.time()) * SECOND
# (name, offset of the time of day, offset of the steady clock)
JUMPS = [("the time of day back an hour", -HOUR, 0), ("the time of day forward an hour", HOUR, 0),
         ("the time of day to 1970", -NOW, 0), ("the time of day before 1970", -NOW - YEAR, 0),
         ("the time of day to 2038", (2 ** 31 * SECOND) - NOW, 0), ("the time of day to 2200", 174 * YEAR, 0),
         ("a second back and forth", -SECOND, 0), ("the steady clock forward a second", 0, SECOND),
         ("the steady clock forward an hour", 0, HOUR), ("the steady clock forward a day", 0, DAY)]


def jump_in(subject, operation, realtime, monotonic, delay):
    """Jumps at this time after the operation began. At the end, the time of day jumps back."""
    if operation.prepare:
        operation.prepare(subject)
    page = subject.control.page

    def jump():
        time.sleep(delay)
        page.realtime = realtime
        page.monotonic += monotonic  # it never goes back

    thread = threading.Thread(target=jump)
    thread.start()
    try:
        # Operations in progress may report a timeout.
        subject.may_blame = True
        operation.check(subject, operation.act(subject))
        thread.join()
        subject.check_whole()
    finally:
        thread.join()
        subject.may_blame = False
        page.realtime = 0


def stop_in(subject, operation, delay, pause):
    if operation.prepare:
        operation.prepare(subject)
    process = subject.server.process

    def stop():
        time.sleep(delay)
        process.send_signal(signal.SIGSTOP)
        time.sleep(pause)
        process.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=stop)
    thread.start()
    outcome = operation.act(subject)
    thread.join()
    operation.check(subject, outcome)


def run(campaign, seconds):
    row = campaign.row("clocks that jump, and pauses")
    with Subject(warm_up=everything) as subject:
        subject.settle()
        delays = (0, 0.0005, 0.001, 0.002, 0.004)
        places = [(f"{operation.name}, {name}, after {1000 * delay:g} ms",
                   lambda o=operation, r=realtime, m=monotonic, d=delay: jump_in(subject, o, r, m, d))
                  for operation in ALL for name, realtime, monotonic in JUMPS for delay in delays]
        places += [(f"{operation.name}, stopped for {1000 * pause:g} ms after {1000 * delay:g} ms",
                    lambda o=operation, d=delay, p=pause: stop_in(subject, o, d, p))
                   for operation in ALL for delay in delays for pause in (0.05, 0.3)]
        run_places(campaign, row, subject, places, seconds)
