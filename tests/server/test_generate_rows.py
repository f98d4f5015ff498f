"""Loops that share runs, each in a row of the buffers that a model writes (docs/generate.md), over HTTP and gRPC, against
the model's own arithmetic and the same language model without rows."""
import contextlib
import json
import random
import socket
import threading

import pytest
from admin_server import STREAM, AdminServer
from grpc_serving import Grpc
from sequence_serving import needs_grpc
from serving import PACKAGES, Server, threads, until
from test_generate import Loops, events_of, read_events
from test_sequences import unpack_model
from weights_files import floats, safetensors

PACKAGE = PACKAGES / "rows.pt2"
ROWS, TOKENS, LENGTH = 4, 64, 48
TOKEN = {"input": "INPUT__0", "output": "OUTPUT__0"}
GREEDY = {"temperature": 0}
LOOPS = {
    "cache": {"token": TOKEN, "count": {"input": "INPUT__1", "below": LENGTH}, "stop": {"steps": 60}, "pick": GREEDY},
    "counted": {"token": TOKEN, "stop": {"steps": 40}, "pick": GREEDY},
    "running": {"token": TOKEN, "stop": {"steps": 1000000}, "pick": GREEDY},
}


class Rows(Loops):
    """Of a class of servers."""

    def __init__(self, folder, flags=(), loops=None, places=16, **more):
        words = []
        for name, loop in (loops or LOOPS).items():
            path = folder / f"{name}.json"
            path.write_text(json.dumps(loop))
            words += ["--set", f"rows.{name}.loop={path}"]
        super(Loops, self).__init__(f"rows={PACKAGE}", f"loops={PACKAGES / 'loops.pt2'}",
                                    flags=["--set", f"*.sequences={places}", *words, *flags], **more)

    def generate(self, model, prompt, **more):
        return self.post(f"/v2/models/rows.{model}/generate", {"prompt": prompt, **more})

    def stream_of(self, model, body, receive=None):
        connection = socket.socket()
        if receive:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        connection.settimeout(30)
        connection.connect(("127.0.0.1", self.port))
        text = json.dumps(body)
        connection.sendall(f"POST /v2/models/rows.{model}/generate_stream HTTP/1.1\r\nHost: localhost\r\n"
                           f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
        return connection

    def count(self, name, model="running"):
        return self.metrics()[f'{name}{{model="rows.{model}",version="1"}}']

    def running(self, model="running"):
        return self.count("sconce_loops", model)


class RowServer(Rows, AdminServer):
    pass


class GrpcRowServer(Rows, Grpc, AdminServer):
    pass


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with RowServer(tmp_path_factory.mktemp("rows"), ["--set", "rows.running.sets=4"]) as running:
        yield running


def expected(prompt, count, add=0, scale=20):
    """What the model "running" makes, whose logits are `scale` for one token and 0 for all others."""
    number, tokens = 5, []
    for token in prompt:
        number = (number * 31 + token + add) % 1000003
    while len(tokens) < count:
        tokens.append(number % TOKENS if scale > 0 else int(number % TOKENS == 0))
        number = (number * 31 + tokens[-1] + add) % 1000003
    return tokens


def weights(scale):
    return safetensors({"weight": floats(scale, 0.0)})


def explicit(server, prompt, count):
    """The same language model, one step at a time, with its cache in a request."""
    cache, tokens, token = [0.0] * (LENGTH * 16), [], prompt[0]
    for position in range(len(prompt) + count - 1):
        answer = server.infer("loops.explicit", {"INPUT__0": ("INT64", [1, 1], [token]), "INPUT__1": ("INT64", [1, 1], [position]),
                                                 "INPUT__2": ("FP32", [1, LENGTH, 16], cache)})
        logits, cache = (o["data"] for o in answer.json["outputs"])
        token = prompt[position + 1] if position + 1 < len(prompt) else logits.index(max(logits))
        if position + 1 >= len(prompt):
            tokens.append(token)
    return tokens


@pytest.mark.parametrize("model", ["cache", "counted"])
def test_tokens_are_those_of_the_model_without_rows(server, model):
    prompts = [[3, 4, 5], [9], [1] * 6, [7, 8], [2], [30, 31]]
    alone = [explicit(server, prompt, 25) for prompt in prompts]
    for _ in range(4):
        got = [None] * len(prompts)

        def ask(i, got=got):
            got[i] = server.tokens(model, prompts[i], max_tokens=25)

        with threads(*(lambda i=i: ask(i) for i in range(len(prompts)))):
            pass
        assert got == alone


def test_the_cache_s_length_and_the_vocabulary(server):
    answer = server.generate("cache", [3] * 40).json
    assert (len(answer["tokens"]), answer["finish_reason"]) == (LENGTH - 40 + 1, "length")
    answer = server.generate("cache", [3] * (LENGTH + 1))
    assert answer.status == 400 and f"the model takes {LENGTH} tokens at most" in answer.json["error"]
    # It would fail the loops beside it.
    answer = server.generate("cache", [3, 32])
    assert answer.status == 400 and "32 is no token of this model, which has 32" in answer.json["error"]


def test_loops_share_runs(server):
    steps, runs = server.count("sconce_loop_steps_total"), server.count("nv_inference_exec_count")
    with threads(*(lambda i=i: check(server, [i, i], 20000, i) for i in range(4))):
        pass
    steps = server.count("sconce_loop_steps_total") - steps
    runs = server.count("nv_inference_exec_count") - runs
    assert steps == 4 * 20001
    assert runs < steps * 0.7
    until(lambda: server.count("sconce_sequences") == 0)


def check(server, prompt, count, add, **more):
    assert server.tokens("running", prompt, max_tokens=count, INPUT__1=[add], **more) == expected(prompt, count, add)


def refused(data):
    """Whether this is the beginning of an answer other than 200."""
    return len(data) > 12 and not data.startswith(b"HTTP/1.1 200")


def events_in_order(connection, prompt, count, add, before=b""):
    events = events_of(before + read_events(connection, lambda data: data.endswith(b"\r\n0\r\n\r\n") or (not before and refused(data))))
    assert [event["token"] for event in events[:-1]] == expected(prompt, count, add)
    assert events[-1]["finish_reason"] == "length"


def test_clients_of_every_kind_at_a_time(server):
    """Short and long ones, one answer and streams, slow readers, and clients that leave."""
    def client(number):
        rng = random.Random(number)
        for _ in range(25):
            prompt, add = [rng.randrange(TOKENS) for _ in range(rng.randrange(1, 9))], rng.randrange(100)
            count = rng.choice([1, 5, 50, 400])
            kind = rng.randrange(3)
            if kind == 0:
                check(server, prompt, count, add)
                continue
            body = {"prompt": prompt, "INPUT__1": [add], "max_tokens": count if kind == 1 else 1000000}
            with server.stream_of("running", body) as connection:
                if kind == 1:
                    events_in_order(connection, prompt, count, add)
                else:
                    assert not refused(read_events(connection, lambda data: len(data) > rng.randrange(3000) or refused(data)))

    def slow_reader(number):
        """Its loop waits, with 64 tokens and full sockets, and others go on; then it gets what it would have got."""
        body = {"prompt": [number], "INPUT__1": [number], "max_tokens": 60000}
        with server.stream_of("running", body, receive=4096) as connection:
            begun.wait()
            done.wait(60)
            events_in_order(connection, [number], 60000, number)

    begun, done = threading.Barrier(3), threading.Event()
    with threads(*(lambda i=i: slow_reader(i) for i in range(2))):
        begun.wait()
        with contextlib.ExitStack() as stack:
            stack.callback(done.set)
            with threads(*(lambda i=i: client(i) for i in range(12))):
                pass
    until(lambda: server.running() == 0)
    until(lambda: server.count("sconce_sequences") == 0)


def test_as_many_loops_as_places_have_rows(tmp_path):
    with RowServer(tmp_path, places=1) as server:
        streams = [server.stream_of("running", {"prompt": [i], "INPUT__1": [0]}) for i in range(ROWS)]
        for stream in streams:
            read_events(stream, lambda data: b'"step":5}' in data)
        assert server.running() == ROWS
        assert server.count("sconce_sequences") == 1
        answer = server.generate("running", [3], INPUT__1=[5])
        assert answer.status == 429 and "all places for sequences are taken: 1" in answer.json["error"]
        streams[2].close()
        until(lambda: server.running() == ROWS - 1)
        check(server, [9], 70, 4)
        for stream in streams:
            stream.close()
        until(lambda: server.count("sconce_sequences") == 0)


def test_sequences_of_clients_beside_loops(server):
    """Requests to infer have all rows, and their own places."""
    def step(start=False, end=False):
        answer = server.infer("rows.running", {"INPUT__0": ("INT64", [ROWS, 1], [1, 2, 3, 4]), "INPUT__1": ("INT64", [ROWS], [0] * ROWS)},
                              parameters={"sequence_id": 1, "sequence_start": start, "sequence_end": end})
        assert answer.status == 200, answer.body
        logits = answer.json["outputs"][0]["data"]
        return [logits[row * TOKENS:(row + 1) * TOKENS].index(20) for row in range(ROWS)]

    with server.stream_of("running", {"prompt": [1], "INPUT__1": [0]}) as stream:
        read_events(stream, lambda data: b'"step":5}' in data)
        numbers = [5] * ROWS
        for i in range(20):
            numbers = [(n * 31 + t) % 1000003 for n, t in zip(numbers, (1, 2, 3, 4), strict=True)]
            assert step(start=i == 0, end=i == 19) == [n % TOKENS for n in numbers]
    until(lambda: server.running() == 0)


def test_inputs_of_a_request_are_of_one_row(server):
    answer = server.generate("running", [3], INPUT__1=[1, 2, 3, 4])
    assert answer.status == 400 and "'ARGS[1]' must be one row" in answer.json["error"]
    answer = server.generate("running", [3])
    assert answer.status == 400 and "lacks input" in answer.json["error"]
    check(server, [3], 5, 1)


def test_weights_pushed_meanwhile(tmp_path):
    """A loop ends with the weights with which it began; new ones get the new weights, beside it."""
    with RowServer(tmp_path) as server:
        stop, scales = threading.Event(), [20.0]

        def client(number):
            while not stop.is_set():
                before = len(scales)
                tokens = server.tokens("running", [number], max_tokens=300, INPUT__1=[number])
                # Those of one set, which was active while it began.
                assert any(tokens == expected([number], 300, number, scale) for scale in scales[max(before - 2, 0):])

        with server.stream_of("running", {"prompt": [1], "INPUT__1": [7], "max_tokens": 20000}, receive=4096) as old, \
             threads(*(lambda i=i: client(i) for i in range(6)), stop=stop):
            begun = read_events(old, lambda data: b'"step":3}' in data)
            for i in range(30):
                scales.append(-20.0 if i % 2 == 0 else 20.0)
                answer = server.push("rows.running", weights(scales[-1]), "commit=true")
                assert answer.status == 200, answer.body
                answer = server.generate("running", [9], INPUT__1=[3], max_tokens=100)
                assert answer.json["tokens"] == expected([9], 100, 3, scales[-1])
                assert answer.headers["Sconce-Weight-Version"] == str(i + 2)
            events_in_order(old, [1], 20000, 7, begun)
        until(lambda: server.count("sconce_sequences") == 0)


def test_loops_that_follow_the_weights(tmp_path):
    with RowServer(tmp_path, ["--set", "*.sequence_weights=active"], places=1) as server:
        with server.stream_of("running", {"prompt": [1], "INPUT__1": [7]}, receive=4096) as old:
            read_events(old, lambda data: b'"step":50}' in data)
            assert server.push("rows.running", weights(-20), "commit=true").status == 200
            # In the one place that there is, beside the loop that began before.
            assert server.tokens("running", [9], INPUT__1=[3], max_tokens=50) == expected([9], 50, 3, -20)
            read_events(old, lambda data: data.count(b'"token":0,') + data.count(b'"token":1,') > 1000)
        until(lambda: server.running() == 0)


def test_named_sets(server):
    answer = server.admin("POST", "rows.running/sets/minus", weights(-20), STREAM)
    assert answer.status in (200, 201), answer.body
    with threads(*(lambda i=i: check(server, [i], 500, i) for i in range(3))):
        for i in range(5):
            answer = server.generate("running", [i], INPUT__1=[i], max_tokens=300, weights="minus")
            assert answer.json["tokens"] == expected([i], 300, i, -20)
            assert answer.headers["Sconce-Weights"] == "minus"


def test_a_run_that_fails_ends_its_loops(tmp_path):
    """A token for which the model has no embedding, which the loop's file lets through."""
    loops = {"counted": {**LOOPS["counted"], "token": {**TOKEN, "below": 1000}}}
    with RowServer(tmp_path, loops=loops) as server:
        assert server.generate("counted", [3, 999]).status == 500
        alone = server.tokens("counted", [3], max_tokens=40)
        for _ in range(10):
            assert server.tokens("counted", [3], max_tokens=40) == alone
        until(lambda: server.count("sconce_sequences", "counted") == 0)


def test_unloading_ends_loops(tmp_path):
    with RowServer(tmp_path, ["--http-admin", "true"]) as server:
        streams = [server.stream_of("running", {"prompt": [i], "INPUT__1": [0]}, receive=4096) for i in range(6)]
        for stream in streams:
            read_events(stream, lambda data: b'"step":20}' in data)
        assert server.post("/v2/repository/models/rows.running/unload", b"").status == 200
        for stream in streams:
            ended = read_events(stream, lambda data: data.endswith(b"\r\n0\r\n\r\n"))
            assert b"the model was unloaded" in ended[-500:]
            stream.close()


CONTROLS = """
platform: "torch_aoti"
input { name: "token" data_type: TYPE_INT64 dims: [ 4 ] }
sequence_batching {
  oldest { max_candidate_sequences: 2 }
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
    { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] },
    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 } ] }
  ]
}
"""


def test_controls_are_those_of_each_row(tmp_path):
    """Each token is how many rows are ready, 10 more in the first step, and 20 more with a sequence's number."""
    (tmp_path / "repository/m/1").mkdir(parents=True)
    unpack_model(PACKAGE, "controlled", tmp_path / "repository/m/1/model.pt2")
    (tmp_path / "repository/m/config.pbtxt").write_text(CONTROLS)
    loop = tmp_path / "loop.json"
    loop.write_text(json.dumps({"token": {"input": "token", "output": "OUTPUT__0"}, "stop": {"steps": 100000}, "pick": GREEDY}))
    with Server(tmp_path / "repository", flags=["--set", f"m.loop={loop}"]) as server:
        def tokens(**more):
            answer = server.post("/v2/models/m/generate", {"prompt": [1], **more})
            assert answer.status == 200, answer.body
            return answer.json["tokens"]

        assert tokens(max_tokens=5) == [31, 21, 21, 21, 21]
        got = [None] * 4

        def ask(i):
            got[i] = tokens(max_tokens=20000)

        with threads(*(lambda i=i: ask(i) for i in range(4))):
            pass
        for each in got:
            assert each[0] in range(31, 35)
            assert set(each[1:]) <= set(range(21, 25))
        assert any(token > 21 for token in got[0][1:])


@pytest.mark.parametrize("model, change, words", [
    ("cache", {"rows": 3}, ["a step has 3 rows", "buffer 'cache'", "[4, 48, 16]"]),
    ("cache", {"token": {**TOKEN, "prefix": True}}, ["'prefix' gives all tokens to each step"]),
    ("cache", {"rows": 1}, ["'rows' must be 2 to 4096"]),
])
def test_loop_files_that_do_not_fit(tmp_path, model, change, words):
    loop = {key: value for key, value in {**LOOPS[model], **change}.items() if value is not None}
    path = tmp_path / "loop.json"
    path.write_text(json.dumps(loop))
    flags = ["--exit-on-error", "false", "--set", f"rows.{model}.loop={path}", "--set", "*.sequences=1"]
    with Server(f"rows={PACKAGE}", flags=flags, wait=False) as server:
        until(lambda: server.index()[f"rows.{model}"][0] != "LOADING")
        for word in words:
            assert word in server.index()[f"rows.{model}"][1]


@needs_grpc
def test_over_grpc(tmp_path):
    """Many loops in one stream, of different lengths, and one of another client."""
    grpc = pytest.importorskip("grpc")
    service = pytest.importorskip("tritonclient.grpc.service_pb2_grpc")
    messages = pytest.importorskip("tritonclient.grpc.service_pb2")

    def ask(name, prompt, add, most):
        request = messages.ModelInferRequest(model_name="rows.running", id=name)
        request.inputs.add(name="INPUT__0", datatype="INT64", shape=[1, len(prompt)]).contents.int64_contents.extend(prompt)
        request.inputs.add(name="INPUT__1", datatype="INT64", shape=[1]).contents.int64_contents.append(add)
        request.parameters["max_tokens"].int64_param = most
        return request

    with GrpcRowServer(tmp_path) as server:
        stub = service.GRPCInferenceServiceStub(grpc.insecure_channel(server.grpc))
        asked = {str(i): ([i, i + 1], i, 1 + i * 60) for i in range(14)}
        got = {name: [] for name in asked}
        with threads(lambda: check(server, [5], 2000, 5)):
            for response in stub.ModelStreamInfer(iter([ask(name, *what) for name, what in asked.items()])):
                answer = response.infer_response
                assert not response.error_message
                if not answer.parameters["triton_final_response"].bool_param:
                    got[answer.id].append(int.from_bytes(answer.raw_output_contents[0], "little"))
        assert got == {name: expected(prompt, most, add) for name, (prompt, add, most) in asked.items()}
        # A call that is cancelled leaves its rows.
        call = stub.ModelStreamInfer(iter([ask("x", [1], 0, 1000000)]))
        next(call)
        call.cancel()
        until(lambda: server.running() == 0)
