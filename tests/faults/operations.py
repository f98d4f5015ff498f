"""What a server is asked to do while something fails. Each operation prepares the server, does one thing, and knows the
allowed outcomes."""
import json
import math
import pathlib
import signal
import socket
import ssl
import struct
import time
import zlib
from contextlib import ExitStack, contextmanager, suppress

from client import Connection, Outcome, ask, request_bytes
from subject import CALL, JSON, PACKAGE, SECOND, Lost, Subject, certificates, changed_package, replace

from serving import until


class Operation:
    """prepare and act take the subject; the fault hits act, which returns an outcome."""

    def __init__(self, name, act, prepare=None, verify=None):
        self.name, self.act, self.prepare, self.verify = name, act, prepare, verify
        self.makes_models = False
        self.places = None  # limits the places per kind if the operation is slow

    def check(self, subject, outcome):
        if outcome.status != 200:
            subject.check_refusal(outcome, self.name)
        if self.verify:
            self.verify(subject, outcome)


def same(body, right):
    """Rows of a shared run are added up in another order on some CPUs, so the last places may differ."""
    if body == right:
        return True
    try:
        answer, expected = json.loads(body), json.loads(right)
    except ValueError:
        return False
    close = [math.isclose(x, y, rel_tol=1e-4) for rows in zip(answer["probabilities"], expected["probabilities"])
             for x, y in zip(*rows)]
    return answer["class"] == expected["class"] and len(close) == 10 and all(close)


def right_answer(subject, outcome):
    if outcome.status == 200 and not same(outcome.body, subject.first):
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
    head = (b"POST /v1/models/digits:call HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n")
    return subject.ask(head + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces))


def call_compressed(subject):
    return subject.post("/v1/models/digits:call", zlib.compress(CALL), (*JSON, "Content-Encoding: deflate"))


def call_twice(subject):
    """Two requests in one write on one connection; returns the outcome of the second."""
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


# Operations on `other`:
def first_served(subject):
    """Loaded with its original weights, and no other set."""
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
    """200: new weights. Error: old weights. No answer: either, but complete."""
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


REGION = {"shared_memory_region": "region", "shared_memory_byte_size": 32}


def register(subject):
    body = {"key": "/" + subject.region.name, "offset": 0, "byte_size": 64}
    return subject.post("/v2/systemsharedmemory/region/region/register", json.dumps(body).encode())


def unregister(subject):
    return subject.post("/v2/systemsharedmemory/region/region/unregister")


def registered(subject):
    subject.region.write_bytes(struct.pack("<8f", *[1] * 8) + bytes(32))
    subject.until(lambda: unregister(subject).status == 200, 1, "a region stays registered")
    if register(subject).status != 200:
        raise Lost("not registered without a fault")


def not_registered(subject):
    registered(subject)
    unregister(subject)


def infer_shared(subject):
    tensor = {"shape": [2, 4], "datatype": "FP32"}
    return subject.post("/v2/models/fake/infer", json.dumps({
        "inputs": [{"name": "INPUT__0", **tensor, "parameters": REGION}],
        "outputs": [{"name": "OUTPUT__0", "parameters": {**REGION, "shared_memory_offset": 32}}]}).encode())


def right_shared(subject, outcome):
    written = subject.region.read_bytes()[32:]
    if outcome.status == 200 and written != struct.pack("<8f", *FAKE_ANSWER * 2):
        raise Lost(f"a wrong answer in shared memory: {written}")
    unregister(subject)


def after_register(expected):
    def verify(subject, outcome):
        known = subject.get("/v2/systemsharedmemory/status")
        if known.status != 200:
            raise Lost(f"no regions: {known}")
        there = len(known.json) == 1
        if outcome.status and there != (expected if outcome.status == 200 else not expected):
            raise Lost(f"regions {known.json} after {outcome}")
        subject.until(lambda: unregister(subject).status == 200, 1, "a region stays registered")
    return verify


# Operations on a server that looks at its repository every 20 ms (LOOK) and finds `watched` there:
LOOK = ["--watch", "20ms"]


def soon(condition):
    """What the condition says if that comes true within 0.3 s, else None: the fault may have hit what makes it true."""
    with suppress(AssertionError):
        return until(condition, 0.3)
    return None


def replace_watched(subject):
    """200 once the new package answers, 0 if it does not in time."""
    replace(subject.watched, changed_package())

    def changed():
        outcome = subject.call("watched")
        if outcome.status == 200 and outcome.body == subject.second:
            return outcome
        if outcome.status == 200 and outcome.body != subject.first:
            raise Lost(f"an answer of neither package: {outcome}")
        return None

    return soon(changed) or Outcome()


def remove_watched(subject):
    subject.watched.unlink()

    def gone():
        outcome = subject.call("watched")
        if outcome.status != 404:
            right_answer(subject, outcome)
        return outcome.status == 404

    soon(gone)
    return Outcome()


def watched_gone(subject, _):
    subject.until(lambda: subject.call("watched").status == 404, 3, "a package that is gone is served")


# Operations on a server that rereads certificate and token on SIGHUP, which take turns:
def certificate_served(subject):
    with socket.create_connection(("127.0.0.1", subject.public), timeout=2) as plain:
        with subject.context.wrap_socket(plain, server_hostname="localhost") as encrypted:
            return encrypted.getpeercert(True)


def hang_up(subject):
    subject.pairs.reverse()
    pem, key = subject.pairs[0]
    replace(subject.folder / "tls.key", key)
    replace(subject.folder / "tls.pem", pem)
    subject.server.process.send_signal(signal.SIGHUP)
    time.sleep(0.03)  # both are read again meanwhile; a fault there leaves nothing to wait for
    return subject.call("digits")


def after_hang_up(subject, outcome):
    right_answer(subject, outcome)
    wanted = ssl.PEM_cert_to_DER_cert(subject.pairs[0][0].decode().split("-----END CERTIFICATE-----")[0] +
                                      "-----END CERTIFICATE-----\n")

    def taken():
        try:
            return certificate_served(subject) == wanted
        except OSError:
            return False

    subject.until(taken, 3, "the certificate from before is still served")


# Overwritten in place while it is served: the server uses a copy or refuses.
def overwrite(subject):
    with open(subject.package, "r+b") as file:
        file.write(changed_package())
        file.truncate()
    return subject.call("other")


def after_overwrite(subject, outcome):
    for answer in (outcome, subject.call("other")):
        if answer.status == 200 and answer.body != subject.first:
            raise Lost(f"a package that was written in place answers: {answer}")
    replace(subject.package, PACKAGE)
    subject.reload()
    serves(subject, subject.first)


def from_file(subject):
    return subject.post("/v2/admin/models/other/weights?commit=true", b'{"file": "second.safetensors"}',
                        port=subject.admin)


def second_from_file(subject):
    subject.reload()
    outcome = from_file(subject)
    if outcome.status != 200:
        raise Lost(f"an update from a file without a fault: {outcome}")


def overwrite_weights(subject):
    with open(subject.weights / "second.safetensors", "r+b") as file:
        file.write(SECOND[:1024] + bytes(len(SECOND) - 1024))
    return subject.call("other")


def after_overwritten_weights(subject, outcome):
    for answer in (outcome, subject.call("other")):
        if answer.status == 200 and answer.body != subject.second:
            raise Lost(f"weights that were written in place answer: {answer}")
    replace(subject.weights / "second.safetensors", SECOND)
    subject.reload()


def everything(subject, operations=None):
    """Runs each operation once, so that what is made on first use exists."""
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
    Operation("infer in shared memory", infer_shared, prepare=registered, verify=right_shared),
    Operation("register shared memory", register, prepare=not_registered, verify=after_register(True)),
    Operation("unregister shared memory", unregister, prepare=registered, verify=after_register(False)),
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
    Operation("update from a file", from_file, prepare=first_served, verify=after_update),
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
OVERWRITTEN = [
    Operation("package overwritten", overwrite, prepare=first_served, verify=after_overwrite),
    Operation("weights overwritten", overwrite_weights, prepare=second_from_file, verify=after_overwritten_weights),
]
ALL = REQUESTS + READS + UPDATES + LOADS + OVERWRITTEN
WATCHED = [
    Operation("package replaced, watched", replace_watched, prepare=Subject.serve_watched,
              verify=lambda s, o: s.until_watched(s.second)),
    Operation("package removed, watched", remove_watched, prepare=Subject.serve_watched, verify=watched_gone),
]
HANG_UPS = [Operation("certificate, SIGHUP", hang_up, verify=after_hang_up)]
for operation in UPDATES + LOADS + OVERWRITTEN + WATCHED:
    operation.makes_models = True
for operation in WATCHED:
    operation.places = 200


def some_of(campaign, operation, places):
    """All places, or a sample if the operation is slow."""
    places = list(places)
    if operation.places and len(places) > operation.places:
        places = campaign.random.sample(places, operation.places)
    return places


def dry_runs(campaign, kind, subjects):
    """Runs each operation once without a fault; yields (subject, where, operation, allocations, calls)."""
    for subject, operations, where in subjects:
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
    """Servers whose requests take different paths, with their operations: inline, through a lane, watching,
    encrypted."""
    with ExitStack() as stack:
        def start(operations, **more):
            return stack.enter_context(Subject(warm_up=lambda s: everything(s, operations), **more)), operations

        here, _ = start(ALL, flags=["--inline-below", "1s"])
        lane, _ = start(ALL, flags=["--inline-below", "0"])
        ways = [(here, ALL, "here"), (lane, ALL, "on a lane")]
        ways.append((*start(WATCHED, flags=LOOK, watch=True), "watching"))
        if authority := certificates():
            pairs = [tuple(pathlib.Path(p).read_bytes() for p in authority.issue("localhost")) for _ in range(2)]
            ways.append((*start(REQUESTS + HANG_UPS, pairs=pairs, context=authority.context()), "encrypted"))
        yield ways
