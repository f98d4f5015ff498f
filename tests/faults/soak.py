"""Mixed load with updates, rollbacks, reloads and unloads; memory, descriptors and threads stay flat."""
import threading
import time

from client import Connection, request_bytes
from operations import READS, everything, infer_large, right_large, same
from subject import CALL, JSON, Lost, Subject

CALL_OF = {model: request_bytes("POST", f"/v1/models/{model}:call", CALL, JSON, close=False)
           for model in ("digits", "other")}
STEP = 10.0


class Load:
    def __init__(self, subject):
        self.subject, self.stop, self.problems, self.answers, self.refused = subject, threading.Event(), [], 0, 0

    def client(self, model):
        """Keeps its connection. `other` may be absent, but never wrong and never older than before."""
        subject, connection = self.subject, None
        while not self.stop.is_set():
            connection = connection or Connection(subject.public)
            outcome = connection.ask(CALL_OF[model])
            right = (subject.first,) if model == "digits" else (subject.first, subject.second)
            if outcome.status == 200 and any(same(outcome.body, one) for one in right):
                self.answers += 1
            elif model == "other" and outcome.status in (404, 503):
                self.refused += 1
            else:
                self.problems.append(f"{model}: {outcome}")
            if outcome.status == 0 or outcome.field("Connection") == "close":
                connection.close()
                connection = None
        if connection:
            connection.close()

    def large(self):
        while not self.stop.wait(0.05):
            right_large(None, infer_large(self.subject))

    def reader(self):
        while not self.stop.wait(0.05):
            for operation in READS:
                operation.check(self.subject, operation.act(self.subject))

    def operator(self):
        """Updates, rollbacks, replicas, reloads and unloads."""
        subject = self.subject
        while not self.stop.is_set():
            for act in (subject.update, lambda: subject.change("rollback"), subject.update,
                        lambda: subject.change("release"), subject.load, subject.unload, subject.load):
                outcome = act()
                if outcome.status not in (200, 400, 409, 503):
                    self.problems.append(f"operator: {outcome}")
                self.stop.wait(0.002)

    def guarded(self, work, *arguments):
        try:
            work(*arguments)
        except (Lost, OSError) as problem:
            self.problems.append(repr(problem))


def run(seconds, say):
    with Subject(flags=["--io-threads", "2"], warm_up=everything) as subject:
        subject.settle()
        load = Load(subject)
        work = [(load.client, "digits")] * 3 + [(load.client, "other")] * 2
        work += [(load.large,), (load.reader,), (load.operator,)]
        threads = [threading.Thread(target=load.guarded, args=one) for one in work]
        for thread in threads:
            thread.start()
        samples, begin = [], time.monotonic()
        say("| s | answers | kB | fds | threads |")
        say("|---:|---:|---:|---:|---:|")
        while time.monotonic() - begin < seconds and subject.lives() and not load.problems:
            time.sleep(min(STEP, seconds / 6))
            now = subject.resources()
            samples.append((subject.memory_kb(), now["fds"], now["threads"]))
            say(f"| {time.monotonic() - begin:.0f} | {load.answers} | {samples[-1][0]} | {now['fds']} | {now['threads']} |")
        load.stop.set()
        for thread in threads:
            thread.join()
        problems = load.problems[:5]
        if not subject.lives():
            problems.append(subject.death())
        # During the first third, the heap reaches its size.
        settled, rest = samples[:max(1, len(samples) // 3)], samples[max(1, len(samples) // 3):]
        for what, at, slack in (("kB", 0, 8 * 1024), ("fds", 1, 8), ("threads", 2, 3)):
            if rest and max(s[at] for s in rest[-2:]) > max(s[at] for s in settled) + slack:
                problems.append(f"{what} grow: {[s[at] for s in samples]}")
        if subject.lives() and not problems:
            try:
                subject.check_resources()
            except Lost as problem:
                problems.append(str(problem))
        for problem in problems:
            say(f"LOST soak: {problem}")
        for line in subject.server.log[-12:] if problems else ():
            say(f"     log {line.rstrip()[:300]}")
        say(f"soak: {load.answers} answers, {load.refused} while the model was away, {len(problems)} problems")
        return not problems and load.answers > 0
