"""What a server is asked to do while something fails: each brings the server where it can begin, does one thing, and
knows what the outcome may be."""
import json
import struct
import zlib
from contextlib import ExitStack, contextmanager

from client import Connection, ask, request_bytes
from subject import CALL, JSON, Lost, Subject, certificates


class Operation:
    """name; prepare and act take the subject; act is what the fault hits and gives an outcome."""

    def __init__(self, name, act, prepare=None, verify=None):
        self.name, self.act, self.prepare, self.verify = name, act, prepare, verify
        self.makes_models = False

    def check(self, subject, outcome):
        if outcome.status != 200:
            subject.check_refusal(outcome, self.name)
        if self.verify:
            self.verify(subject, outcome)


def right_answer(subject, outcome):
    if outcome.status == 200 and outcome.body != subject.first:
        raise Lost(f"a wrong answer: {outcome}")


def says(*words):
    def verify(_, outcome):
        if outcome.status == 200 and not all(w in outcome.body for w in words):
            raise Lost(f"an answer that is not whole: {outcome}")
    return verify


FAKE_ROWS = 16384
FAKE_LARGE = json.dumps({"inputs": [{"name": "INPUT__0", "shape": [FAKE_ROWS, 4], "datatype": "FP32",
                                     "data": [1] * 4 * FAKE_ROWS}]}).encode().replace(b", ", b" ,  ")
FAKE_ANSWER = [1, 12, 23, 34]


def infer_large(subject):
    return subject.post("/v2/models/fake/infer", FAKE_LARGE)


def right_large(_, outcome):
    if outcome.status == 200 and outcome.json["outputs"][0]["data"] != FAKE_ANSWER * FAKE_ROWS:
        raise Lost("a wrong answer to a large request")


def infer_binary(subject):
    head = json.dumps({"inputs": [{"name": "INPUT__0", "shape": [2, 4], "datatype": "FP32",
                                   "parameters": {"binary_data_size": 32}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return subject.post("/v2/models/fake/infer", head + struct.pack("<8f", *[1] * 8),
                        (f"Inference-Header-Content-Length: {len(head)}",))


def right_binary(_, outcome):
    if outcome.status == 200 and outcome.body[-32:] != struct.pack("<8f", *FAKE_ANSWER * 2):
        raise Lost(f"a wrong binary answer: {outcome}")


def call_chunked(subject):
    pieces = [CALL[i:i + 50] for i in range(0, len(CALL), 50)] + [b""]
    head = (b"POST /v1/models/digits:call HTTP/1.1\r\nHost: faults\r\nConnection: close\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n")
    return subject.ask(head + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces))


def call_compressed(subject):
    return subject.post("/v1/models/digits:call", zlib.compress(CALL), (*JSON, "Content-Encoding: deflate"))


def call_twice(subject):
    """Two requests in one write, on one connection; the outcome is the second's."""
    both = request_bytes("POST", "/v1/models/digits:call", CALL, JSON, close=False)
    data = both + request_bytes("POST", "/v1/models/digits:call", CALL, JSON)
    try:
        connection = Connection(subject.public, subject.context)
    except OSError:
        return ask(subject.public, data, subject.context)
    with connection:
        first = connection.ask(data)
        if first.status != 200:
            return first
        right_answer(subject, first)
        return connection.ask(b"")


# Of `other`.
def first_served(subject):
    """Loaded, with the weights it came with, and nothing beside them."""
    sets = subject.get("/v2/admin/models/other/weights", subject.admin)
    if sets.status == 200 and [s["state"] for s in sets.json["sets"]] == ["active"] and sets.json["generation"] == 1:
        return
    subject.reload()


def second_served(subject):
    subject.reload()
    outcome = subject.update()
    if outcome.status != 200:
        raise Lost(f"an update without a fault: {outcome}")


def staged(subject):
    subject.reload()
    outcome = subject.update(query="label=second")
    if outcome.status != 200:
        raise Lost(f"staging without a fault: {outcome}")


def unloaded(subject):
    subject.until(lambda: subject.unload().status == 200, 1, "other cannot be unloaded")


def serves(subject, *allowed):
    outcome = subject.until(lambda: (o := subject.call("other")).status == 200 and o, 1,
                            lambda: f"other does not answer: {subject.call('other')}")
    if outcome.body not in allowed:
        raise Lost(f"other answers with other weights than it may: {outcome}")


def after_update(subject, outcome):
    """200: the new ones. An error: the old ones. No answer: either, whole."""
    old, new = subject.first, subject.second
    serves(subject, *([new] if outcome.status == 200 else [old] if outcome.status else [old, new]))
    subject.change("abort")
    subject.change("release")


def after_rollback(subject, outcome):
    old, new = subject.second, subject.first
    serves(subject, *([new] if outcome.status == 200 else [old] if outcome.status else [old, new]))


def after_stage(subject, outcome):
    serves(subject, subject.first)
    sets = subject.get("/v2/admin/models/other/weights", subject.admin)
    if sets.status != 200:
        raise Lost(f"no sets: {sets}")
    states = {s["state"] for s in sets.json["sets"]}
    if outcome.status == 200 and "staged" not in states:
        raise Lost(f"staged, but not there: {states}")
    if outcome.status >= 400 and "staged" in states:
        raise Lost(f"refused, but there: {states}")
    subject.change("abort")


def after_load(subject, outcome):
    if outcome.status == 200:
        return serves(subject, subject.first)
    answer = subject.call("other")
    if outcome.status and answer.status == 200:
        raise Lost(f"not loaded, but it answers: {outcome}")
    subject.until(lambda: subject.load().status == 200, 1, lambda: f"cannot be loaded any more: {subject.load()}")
    serves(subject, subject.first)


def after_unload(subject, outcome):
    if outcome.status == 200 and subject.call("other").status == 200:
        raise Lost("unloaded, but it answers")
    subject.until(lambda: subject.load().status == 200, 1, lambda: f"cannot be loaded any more: {subject.load()}")
    serves(subject, subject.first)


def add_replica(subject):
    return subject.post("/v2/admin/models/other/replicas", b'{"count": 1}', port=subject.admin)


def remove_replica(subject):
    return subject.ask(request_bytes("DELETE", "/v2/admin/models/other/replicas"), subject.admin)


def replicas(subject):
    outcome = subject.get("/v2/admin/models/other/replicas", subject.admin)
    if outcome.status != 200:
        raise Lost(f"no replicas: {outcome}")
    return len(outcome.json["replicas"])


def one_replica(subject):
    first_served(subject)
    if replicas(subject) != 1:
        subject.reload()


def two_replicas(subject):
    first_served(subject)
    while replicas(subject) < 2:
        if add_replica(subject).status != 200:
            raise Lost("no second replica without a fault")


def after_replicas(before, after):
    def verify(subject, outcome):
        serves(subject, subject.first)
        now = replicas(subject)
        if outcome.status and now != (after if outcome.status == 200 else before):
            raise Lost(f"{now} replicas after {outcome}")
    return verify


def trace_all(subject):
    return subject.post("/v2/trace/setting", b'{"trace_level": ["TENSORS"], "trace_rate": "1"}', port=subject.admin)


def trace_nothing(subject):
    subject.until(lambda: subject.post("/v2/trace/setting", b'{"trace_level": ["OFF"]}', port=subject.admin).status ==
                  200, 1, "tracing cannot be turned off")


def traced_call(subject):
    return subject.call("digits")


def after_trace(subject, outcome):
    trace_nothing(subject)
    right_answer(subject, outcome)


def everything(subject, operations=None):
    """Each operation once: what is made when first needed is there."""
    for operation in operations or ALL:
        if operation.prepare:
            operation.prepare(subject)
        operation.check(subject, operation.act(subject))


def serve_call(subject):
    return subject.call("digits")


REQUESTS = [
    Operation("call", serve_call, verify=right_answer),
    Operation("two calls at once", call_twice, verify=right_answer),
    Operation("chunked call", call_chunked, verify=right_answer),
    Operation("compressed call", call_compressed, verify=right_answer),
    Operation("binary infer", infer_binary, verify=right_binary),
    Operation("large infer", infer_large, verify=right_large),
    Operation("traced call", traced_call, prepare=trace_all, verify=after_trace),
]
READS = [
    Operation("metrics", lambda s: s.get("/metrics", s.metrics), verify=says(b"sconce_", b"\n")),
    Operation("ready", lambda s: s.get("/v2/health/ready")),
    Operation("index", lambda s: s.post("/v2/repository/index"), verify=says(b"digits", b"other")),
    Operation("metadata", lambda s: s.get("/v2/models/digits"), verify=says(b"digits", b"inputs")),
    Operation("configuration", lambda s: s.get("/v2/models/digits/config"), verify=says(b"digits")),
    Operation("statistics", lambda s: s.get("/v2/models/digits/stats"), verify=says(b"digits")),
    Operation("interface", lambda s: s.get("/openapi.json"), verify=says(b"openapi", b"paths")),
    Operation("sets", lambda s: s.get("/v2/admin/models/digits/weights?digest=true", s.admin), verify=says(b"active")),
    Operation("constants", lambda s: s.get("/v2/admin/models/digits/constants", s.admin), verify=says(b"classifier")),
    Operation("replicas", lambda s: s.get("/v2/admin/models/digits/replicas", s.admin), verify=says(b"replicas")),
    Operation("operations", lambda s: s.get("/v2/admin/operations", s.admin), verify=says(b"operations")),
]
UPDATES = [
    Operation("update", lambda s: s.update(), prepare=first_served, verify=after_update),
    Operation("update from a file",
              lambda s: s.post("/v2/admin/models/other/weights?commit=true", b'{"file": "second.safetensors"}',
                               port=s.admin), prepare=first_served, verify=after_update),
    Operation("stage", lambda s: s.update(query="label=second"), prepare=first_served, verify=after_stage),
    Operation("commit", lambda s: s.change("commit"), prepare=staged, verify=after_update),
    Operation("rollback", lambda s: s.change("rollback"), prepare=second_served, verify=after_rollback),
    Operation("release", lambda s: s.change("release"), prepare=second_served,
              verify=lambda s, o: serves(s, s.second)),
    Operation("one more replica", add_replica, prepare=one_replica, verify=after_replicas(1, 2)),
    Operation("one replica less", remove_replica, prepare=two_replicas, verify=after_replicas(2, 1)),
]
LOADS = [
    Operation("load", lambda s: s.load(), prepare=unloaded, verify=after_load),
    Operation("reload", lambda s: s.load(), prepare=first_served,
              verify=lambda s, o: serves(s, s.first)),
    Operation("unload", lambda s: s.unload(), prepare=first_served, verify=after_unload),
]
ALL = REQUESTS + READS + UPDATES + LOADS
for operation in UPDATES + LOADS:
    operation.makes_models = True


def dry_runs(campaign, kind, subjects):
    """Each operation once without a fault: subject, where, operation, and how many allocations and calls it made."""
    for subject, where, operations in subjects:
        everything(subject, operations)
        for operation in operations:
            if not campaign.wanted(kind, operation.name):
                continue
            if operation.prepare:
                operation.prepare(subject)
            with subject.control.armed() as page:
                outcome = operation.act(subject)
            allocations, calls = page.allocations, subject.control.counts()
            operation.check(subject, outcome)
            yield subject, where, operation, allocations, calls
        subject.settle()


@contextmanager
def variants():
    """Servers whose requests take different ways, and what is asked of each: where they were read, through a lane,
    encrypted."""
    with ExitStack() as stack:
        def start(operations, **more):
            return stack.enter_context(Subject(warm_up=lambda s: everything(s, operations), **more)), operations

        here, _ = start(ALL, flags=["--inline-below", "1s"])
        lane, _ = start(ALL, flags=["--inline-below", "0"])
        ways = [(here, "here", ALL), (lane, "on a lane", ALL)]
        if authority := certificates():
            pem, key = authority.issue("localhost")
            flags = ["--http-tls", "on", "--tls-certificate", pem, "--tls-key", key]
            tls, _ = start(REQUESTS, flags=flags, context=authority.context())
            ways.append((tls, "encrypted", REQUESTS))
        yield ways
