"""Packages and weights files that are replaced, truncated or damaged while they are served and while they are read."""
import random
import threading
import time

from campaign import run_places
from operations import everything, from_file, second_from_file, serves
from subject import PACKAGE, SECOND, Lost, Subject, changed_package, replace


def damaged(data, draw):
    data = bytearray(data)
    for _ in range(draw.choice((1, 1, 4, 64))):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(data)


def load_good(subject):
    replace(subject.package, PACKAGE)
    subject.until(lambda: subject.load().status == 200, 1, lambda: f"a good package is refused: {subject.load()}")
    serves(subject, subject.first)


def load_of(subject, data, may_serve):
    """Loads what the file has become. If it is bad, the old model goes on, or there is none."""
    replace(subject.package, data)
    outcome = subject.load()
    if outcome.stalled:
        raise Lost("a load that does not end")
    if outcome.status not in (0, 200) and not outcome.json["error"]:
        raise Lost("an error without a reason")
    answer = subject.call("other")
    if answer.status == 200 and answer.body != subject.first and not may_serve:
        raise Lost(f"a damaged package answers: {answer}")
    load_good(subject)


def weights_of(subject, data):
    replace(subject.weights / "second.safetensors", data)
    outcome = from_file(subject)
    if outcome.stalled:
        raise Lost("an update that does not end")
    if outcome.status not in (0, 200):
        if not outcome.json["error"]:
            raise Lost("an error without a reason")
        serves(subject, subject.first)
    replace(subject.weights / "second.safetensors", SECOND)
    subject.reload()


def replaced_midway(subject, delay):
    """Other files take the names while they are read."""
    subject.reload()

    def swap():
        time.sleep(delay)
        replace(subject.package, PACKAGE)
        replace(subject.weights / "second.safetensors", SECOND)

    thread = threading.Thread(target=swap)
    thread.start()
    loaded = subject.load()
    pushed = from_file(subject)
    thread.join()
    for outcome in (loaded, pushed):
        if outcome.stalled:
            raise Lost("not answered")
    serves(subject, subject.first, subject.second)
    subject.reload()


def written_in_place(subject, data, truncate, piece):
    """A package that is requested all the time answers as before or says why not; anything else is a failure."""
    subject.reload()
    problems, done, answers = [], threading.Event(), 0

    def ask():
        nonlocal answers
        while not done.is_set():
            answer = subject.call("other")
            answers += 1
            if answer.status == 200 and answer.body != subject.first or answer.status not in (200, 503):
                problems.append(answer)

    thread = threading.Thread(target=ask)
    thread.start()
    with open(subject.package, "wb" if truncate else "r+b", buffering=0) as file:
        for at in range(0, len(data), piece):
            file.write(data[at:at + piece])
    written = answers
    try:  # the next one but one was asked for after the last byte was written
        subject.until(lambda: answers >= written + 2, 10, "a package that was written in place: not answered")
    finally:
        done.set()
        thread.join()
    if problems:
        raise Lost(f"a package that is being written in place: {problems[0]}")
    load_good(subject)


def weights_written_in_place(subject, data, truncate):
    second_from_file(subject)
    with open(subject.weights / "second.safetensors", "wb" if truncate else "r+b") as file:
        file.write(data)
    answer = subject.call("other")
    if answer.status == 200 and answer.body != subject.second or answer.status not in (200, 503):
        raise Lost(f"weights that were written in place answer: {answer}")
    replace(subject.weights / "second.safetensors", SECOND)
    subject.reload()


def run(campaign, seconds):
    row = campaign.row("files replaced, cut short, damaged")
    draw = random.Random(campaign.random.random())
    with Subject(warm_up=everything) as subject:
        subject.settle()
        # A changed bit in the weights gives other numbers, which nothing detects unless weights are verified.
        places = [(f"a package cut off at byte {at}", lambda at=at: load_of(subject, PACKAGE[:at], False))
                  for at in sorted({0, 1, 21, 22, len(PACKAGE) - 1, *range(0, len(PACKAGE), max(1, len(PACKAGE) // 300))})]
        places += [(f"a damaged package, {n}", lambda d=damaged(PACKAGE, draw): load_of(subject, d, True))
                   for n in range(400)]
        places += [(f"weights cut off at byte {at}", lambda at=at: weights_of(subject, SECOND[:at]))
                   for at in sorted({*range(0, 800, 7), *range(0, len(SECOND), 257)})]
        places += [(f"damaged weights, {n}", lambda d=damaged(SECOND[:600], draw) + SECOND[600:]: weights_of(subject, d))
                   for n in range(300)]
        places += [(f"replaced after {1e6 * delay:g} us", lambda d=delay: replaced_midway(subject, d))
                   for delay in [n * 1e-5 for n in range(0, 400, 2)]]
        zeros = bytes(len(PACKAGE))
        contents = {"another package": changed_package(), "nothing": b"", "its half": PACKAGE[:len(PACKAGE) // 2], "zeros": zeros,
                    "itself": PACKAGE, "another, cut off": changed_package()[:4096]}
        places += [(f"{text} written over a package, {way}, {piece} bytes at a time",
                    lambda d=data, t=truncate, p=piece: written_in_place(subject, d, t, p))
                   for text, data in contents.items() for way, truncate in (("truncated", True), ("as it is", False))
                   for piece in (4096, 65536, 1 << 20)]
        places += [(f"weights written in place up to byte {n}", lambda d=bytes(n), t=t: weights_written_in_place(subject, d, t))
                   for n in range(0, len(SECOND), 997) for t in (True, False)]
        run_places(campaign, row, subject, places, seconds)
