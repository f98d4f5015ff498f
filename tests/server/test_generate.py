"""Loops that make tokens (docs/generate.md), over HTTP and gRPC, against single steps of the same models."""
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

import pytest
from admin_server import AdminServer
from grpc_serving import Grpc
from sequence_serving import needs_grpc
from serving import PACKAGES, PROGRAM, ROOT, Server, until

np = pytest.importorskip("numpy")

PACKAGE = PACKAGES / "loops.pt2"
MODELS = ("explicit", "buffers", "prefix")
VOCABULARY, WIDTH, LENGTH = 32, 16, 48
TOKEN = {"input": "INPUT__0", "output": "OUTPUT__0"}
COUNT = {"input": "INPUT__1", "below": LENGTH}
LOOPS = {
    "explicit": {"token": TOKEN, "feed": {"OUTPUT__1": "INPUT__2"}, "count": COUNT, "stop": {"steps": 60}},
    "buffers": {"token": TOKEN, "count": COUNT, "stop": {"steps": 60}},
    "prefix": {"token": {**TOKEN, "prefix": True}, "stop": {"steps": 60}},
}
# Requests bring the position, which stays the same, so that nothing but "steps" ends these.
ENDLESS = {"token": TOKEN, "feed": {"OUTPUT__1": "INPUT__2"}, "stop": {"steps": 1000000}}
FOREVER = {"prompt": [3], "INPUT__1": [5], "max_tokens": 1000000}


class Loops:
    """Of a class of servers, with loops of the three models."""

    def __init__(self, folder, flags=(), loops=None, **more):
        words = []
        for name, loop in (loops or LOOPS).items():
            path = folder / f"{name}.json"
            path.write_text(json.dumps(loop))
            words += ["--set", f"loops.{name}.loop={path}"]
        super().__init__(f"loops={PACKAGE}", flags=["--set", "loops.buffers.sequences=4", *words, *flags], **more)

    def generate(self, model, prompt, **more):
        return self.post(f"/v2/models/loops.{model}/generate", {"prompt": prompt, **more})

    def tokens(self, model, prompt, **more):
        answer = self.generate(model, prompt, **more)
        assert answer.status == 200, answer.body
        return answer.json["tokens"]

    def stream(self, model, prompt, **more):
        answer = self.post(f"/v2/models/loops.{model}/generate_stream", {"prompt": prompt, **more})
        return answer, events_of(answer.body)

    def open_stream(self, model, body, receive=None):
        """A socket on which a stream has begun."""
        connection = socket.socket()
        if receive:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        connection.settimeout(20)
        connection.connect(("127.0.0.1", self.port))
        text = json.dumps(body)
        connection.sendall(f"POST /v2/models/loops.{model}/generate_stream HTTP/1.1\r\nHost: localhost\r\n"
                           f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
        return connection

    def count(self, name, model="explicit"):
        return self.metrics()[f'{name}{{model="loops.{model}",version="1"}}']

    def running(self, model="explicit"):
        return self.count("sconce_loops", model)


class LoopServer(Loops, AdminServer):
    pass


class GrpcLoopServer(Loops, Grpc, AdminServer):
    pass


def events_of(body):
    return [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: ")]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with LoopServer(tmp_path_factory.mktemp("loops")) as running:
        yield running


def step_by_step(server, prompt, count):
    """The largest logits, from plain requests to the model with the explicit cache."""
    cache = np.zeros((1, LENGTH, WIDTH), np.float32)
    tokens, token = [], prompt[0]
    for position in range(len(prompt) + count - 1):
        answer = server.infer("loops.explicit", {"INPUT__0": ("INT64", [1, 1], [token]), "INPUT__1": ("INT64", [1, 1], [position]),
                                                 "INPUT__2": ("FP32", list(cache.shape), cache.ravel().tolist())})
        logits, cache = (np.array(o["data"], np.float32).reshape(o["shape"]) for o in answer.json["outputs"])
        token = prompt[position + 1] if position + 1 < len(prompt) else int(logits[0, 0].argmax())
        if position + 1 >= len(prompt):
            tokens.append(token)
    return tokens


@pytest.mark.parametrize("model", MODELS)
def test_tokens_are_those_of_single_steps(server, model):
    for prompt in ([3, 4, 5], [9], [1] * 20):
        expected = step_by_step(server, prompt, 25)
        assert server.tokens(model, prompt, max_tokens=25, temperature=0) == expected
        answer, events = server.stream(model, prompt, max_tokens=25, temperature=0, id="seven")
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
        head = {"id": "seven", "model_name": f"loops.{model}", "model_version": "1"}
        assert events == [*({**head, "token": t, "step": i} for i, t in enumerate(expected)),
                          {**head, "steps": 25, "finish_reason": "length"}]


def test_the_input_s_name_and_parameters_do_as_well(server):
    body = {"INPUT__0": [3, 4, 5], "parameters": {"max_tokens": 5, "temperature": 0}}
    answer = server.post("/v2/models/loops.explicit/generate", body)
    assert answer.json["tokens"] == server.tokens("explicit", [3, 4, 5], max_tokens=5, temperature=0)


@pytest.mark.parametrize("model", MODELS)
def test_why_a_loop_ends(server, model):
    tokens = server.tokens(model, [3, 4, 5], max_tokens=25, temperature=0)
    stop = tokens[6]
    answer = server.generate(model, [3, 4, 5], temperature=0, stop=[stop]).json
    assert (answer["tokens"], answer["finish_reason"]) == (tokens[:tokens.index(stop)], "stop")
    # All that fits: the last token is given to no step.
    answer = server.generate(model, [3] * 40, temperature=0).json
    assert (len(answer["tokens"]), answer["finish_reason"]) == (LENGTH - 40 + 1, "length")
    refused = server.generate(model, [3] * (LENGTH + 1))
    assert refused.status == 400 and f"the model takes {LENGTH} tokens at most" in refused.json["error"]


def test_the_same_seed_gives_the_same_tokens(server):
    def draw(model="explicit", **more):
        return server.tokens(model, [3, 4, 5], max_tokens=30, **{"temperature": 2.0, **more})

    first = draw(seed=11)
    assert draw(seed=11) == first
    assert draw("buffers", seed=11) == first == draw("prefix", seed=11)
    assert draw(seed=12) != first
    assert draw() != draw()
    greedy = draw(temperature=0)
    assert draw(top_k=1) == greedy == draw(top_p=1e-9, seed=3)
    assert draw(top_k=3, seed=5) != greedy


def test_wrong_requests_are_named(server):
    wrong = [({"max_tokens": 0}, "'max_tokens' must be 1 to 60"), ({"max_tokens": 61}, "'max_tokens' must be 1 to 60"),
             ({"max_tokens": -1}, "'max_tokens'"), ({"temperature": -1}, "'temperature'"), ({"temperature": "x"}, "'temperature'"),
             ({"top_k": -1}, "'top_k'"), ({"top_p": 0}, "'top_p'"), ({"top_p": 1.5}, "'top_p'"), ({"seed": -1}, "'seed'"),
             ({"seed": 1.5}, "'seed'"), ({"stop": "x"}, "'stop'"), ({"stop": [1, -2]}, "'stop'"), ({"prompt": []}, "no prompt"),
             ({"prompt": "text"}, "the prompt"), ({"prompt": [1.5]}, "the prompt"), ({"prompt": [2**63]}, "the prompt"),
             ({"INPUT__0": [1]}, "given twice"), ({"INPUT__1": [1]}, "the loop fills it"), ({"INPUT__2": [1]}, "the loop fills it")]
    for change, word in wrong:
        for path in ("generate", "generate_stream"):
            answer = server.post(f"/v2/models/loops.explicit/{path}", {"prompt": [1], **change})
            assert answer.status == 400 and word in answer.json["error"], (change, answer.body)
    assert server.post("/v2/models/loops.explicit/generate", b"{").status == 400
    # A token that the model has no embedding for fails in the model, before anything was answered.
    assert server.generate("explicit", [VOCABULARY + 5]).status in (400, 500)
    assert server.tokens("explicit", [3], max_tokens=3, temperature=0)
    until(lambda: server.running() == 0)


def test_plain_requests_run_one_step(server):
    answer = server.infer("loops.prefix", {"INPUT__0": ("INT64", [1, 3], [3, 4, 5])})
    assert answer.json["outputs"][0]["shape"] == [1, 3, VOCABULARY]


def test_loops_share_runs(server):
    """Eight loops at a time: fewer runs than steps, and each has its own tokens."""
    prompts = [[i, i + 1] for i in range(1, 9)]
    expected = [step_by_step(server, prompt, 30) for prompt in prompts]
    for _ in range(5):
        before = {name: server.count(name) for name in ("sconce_loop_steps_total", "nv_inference_exec_count")}
        got = [None] * 8

        def work(i, got=got):
            got[i] = [server.tokens("explicit", prompts[i], max_tokens=30, temperature=0) for _ in range(8)]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert got == [[tokens] * 8 for tokens in expected]
        steps, runs = (server.count(name) - before[name] for name in before)
        assert steps == 8 * 8 * 31
        if runs < steps * 0.9:
            return
    raise AssertionError(f"{steps} steps in {runs} runs")


def test_places_come_back(server):
    for _ in range(20):
        server.tokens("buffers", [3], max_tokens=5)
    until(lambda: server.count("sconce_sequences", "buffers") == 0)
    assert server.running("buffers") == 0


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    with LoopServer(tmp_path_factory.mktemp("endless"), ["--write-timeout", "2s"], {"explicit": ENDLESS}) as running:
        yield running


def read_events(connection, enough):
    """Reads until enough(all bytes so far), or the end."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while not enough(data) and (part := connection.recv(65536)):
            data += part
    return data


def test_an_input_that_the_request_brings(endless):
    assert len(endless.tokens("explicit", [3], INPUT__1=[5], max_tokens=7)) == 7
    refused = endless.generate("explicit", [3])
    assert refused.status == 400 and "lacks input 'ARGS[1]'" in refused.json["error"]


def test_a_client_that_leaves_ends_its_loop(endless):
    for reset in (False, True):
        with endless.open_stream("explicit", FOREVER) as connection:
            assert b'"step":20}' in read_events(connection, lambda data: b'"step":20}' in data)
            assert endless.running() == 1
            if reset:  # with bytes that were not read
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        until(lambda: endless.running() == 0)
    # A client that waits for the one answer.
    connection = socket.create_connection(("127.0.0.1", endless.port))
    text = json.dumps(FOREVER)
    connection.sendall(f"POST /v2/models/loops.explicit/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
    until(lambda: endless.running() == 1)
    connection.close()
    until(lambda: endless.running() == 0)
    assert endless.count("sconce_loop_tokens_total") > 40


def is_made_alone(server):
    """Whether nobody else's tokens are made while ours are."""
    before = server.count("sconce_loop_tokens_total")
    if server.count("sconce_loop_tokens_total") != before:
        return False
    server.tokens("explicit", [3], INPUT__1=[5], max_tokens=100)
    return server.count("sconce_loop_tokens_total") == before + 100


def test_a_slow_reader_makes_the_loop_wait(endless):
    """What was not read stays bounded, and the loop goes on when it is."""
    endless.tokens("explicit", [3], INPUT__1=[5], max_tokens=1000)
    before = endless.memory_kb()
    with endless.open_stream("explicit", FOREVER, receive=4096) as connection:
        def made():
            return endless.count("sconce_loop_tokens_total")

        until(lambda: made() > 2000)
        until(lambda: is_made_alone(endless))  # once the buffers of the sockets are full
        last = made()
        assert endless.running() == 1
        assert endless.grown_kb(before) < 20_000
        read_events(connection, lambda data: len(data) > 3_000_000)
        assert made() > last
    until(lambda: endless.running() == 0)


def test_a_reader_that_stalls_loses_its_connection(endless):
    with endless.open_stream("explicit", FOREVER, receive=4096):
        until(lambda: endless.running() == 1)
        until(lambda: endless.running() == 0, 20)  # write_timeout is 2 s


def test_other_requests_are_answered_meanwhile(endless):
    with endless.open_stream("explicit", FOREVER) as connection:
        read_events(connection, lambda data: b'"step":5}' in data)
        reader = threading.Thread(target=lambda: read_events(connection, lambda data: False))
        reader.start()
        for _ in range(20):
            assert len(endless.tokens("explicit", [3], INPUT__1=[5], max_tokens=7)) == 7
        connection.shutdown(socket.SHUT_RDWR)
        reader.join()
    until(lambda: endless.running() == 0)


def test_a_connection_serves_further_requests(endless):
    connection = endless.client(endless.port, 20)
    for _ in range(3):
        connection.request("POST", "/v2/models/loops.explicit/generate_stream", json.dumps({**FOREVER, "max_tokens": 200}))
        assert len(events_of(connection.getresponse().read())) == 201
    connection.close()
    body = json.dumps({**FOREVER, "max_tokens": 200})
    old = endless.raw(f"POST /v2/models/loops.explicit/generate_stream HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    assert b"chunked" not in old and len(events_of(old)) == 201


def test_a_deadline_ends_a_loop(tmp_path):
    loop = {**ENDLESS, "stop": {"steps": 1000000, "deadline": "300ms"}}
    with LoopServer(tmp_path, loops={"explicit": loop}) as server:
        begun = time.monotonic()
        answer = server.post("/v2/models/loops.explicit/generate_stream", FOREVER)
        assert 0.2 < time.monotonic() - begun < 20
        events = events_of(answer.body)
        assert events[-1]["finish_reason"] == "deadline"
        assert events[-1]["steps"] == len(events) - 1 > 100
        assert server.generate("explicit", [3], INPUT__1=[5]).json["finish_reason"] == "deadline"
    with LoopServer(tmp_path, ["--set", "*.request_timeout=300ms"], {"explicit": ENDLESS}) as server:
        assert server.generate("explicit", [3], INPUT__1=[5]).json["finish_reason"] == "deadline"


def test_unloading_ends_loops(tmp_path):
    with LoopServer(tmp_path, ["--http-admin", "true"], {"explicit": ENDLESS}) as server:
        with server.open_stream("explicit", FOREVER) as connection:
            got = bytearray(read_events(connection, lambda data: b'"step":20}' in data))
            reader = threading.Thread(target=lambda: got.extend(read_events(connection, lambda data: data.endswith(b"\r\n0\r\n\r\n"))))
            reader.start()
            assert server.post("/v2/repository/models/loops.explicit/unload", b"").status == 200
            reader.join(20)
            assert not reader.is_alive()
        last = events_of(bytes(got))[-1]
        assert "the model was unloaded" in last["error"]


def test_a_drain_ends_loops(tmp_path):
    with LoopServer(tmp_path, ["--drain-timeout", "500ms"], {"explicit": ENDLESS}) as server:
        with server.open_stream("explicit", FOREVER) as connection:
            got = bytearray(read_events(connection, lambda data: b'"step":20}' in data))
            reader = threading.Thread(target=lambda: got.extend(read_events(connection, lambda data: False)))
            reader.start()
            assert server.stop() == 0
            reader.join(20)
        assert "shutting down" in events_of(bytes(got))[-1]["error"]


def test_a_full_queue_refuses_new_loops_only(tmp_path):
    with LoopServer(tmp_path, ["--set", "*.queue=0", "--set", "*.batching=off"], {"explicit": ENDLESS}) as server:
        with server.open_stream("explicit", FOREVER) as connection:
            read_events(connection, lambda data: b'"step":5}' in data)
            reader = threading.Thread(target=lambda: read_events(connection, lambda data: False))
            reader.start()
            statuses = {server.generate("explicit", [3], INPUT__1=[5], max_tokens=1).status for _ in range(200)}
            assert statuses <= {200, 429} and 429 in statuses
            assert server.running() == 1
            connection.shutdown(socket.SHUT_RDWR)
            reader.join()


def test_places_for_state_in_buffers(tmp_path):
    """Four places: a fifth loop is told 429, and a client that leaves gives its place back."""
    loop = {"token": TOKEN, "stop": {"steps": 1000000}}
    with LoopServer(tmp_path, loops={"buffers": loop}) as server:
        streams = [server.open_stream("buffers", FOREVER) for _ in range(4)]
        for stream in streams:
            read_events(stream, lambda data: b'"step":5}' in data)
        refused = server.generate("buffers", [3], INPUT__1=[5])
        assert refused.status == 429, refused.body
        assert server.count("sconce_sequences", "buffers") == 4
        for stream in streams:
            stream.close()
        until(lambda: server.count("sconce_sequences", "buffers") == 0)
        assert len(server.tokens("buffers", [3], INPUT__1=[5], max_tokens=7)) == 7


def test_loop_files_that_do_not_fit(tmp_path):
    def reason(text, *flags):
        path = tmp_path / "loop.json"
        path.write_text(text)
        with Server(f"loops={PACKAGE}", flags=["--exit-on-error", "false", "--set", f"loops.buffers.loop={path}", *flags],
                    wait=False) as server:
            until(lambda: server.index()["loops.buffers"][0] != "LOADING")
            return server.index()["loops.buffers"][1]

    good = json.dumps(LOOPS["buffers"])
    assert reason(good, "--set", "*.sequences=1") == ""
    assert "setting sequences" in reason(good)
    assert "unknown member 'fed'" in reason(json.dumps({**LOOPS["buffers"], "fed": {}}), "--set", "*.sequences=1")
    assert "no input 'INPUT__9'" in reason(good.replace("INPUT__1", "INPUT__9"), "--set", "*.sequences=1")
    assert "cannot read" in reason(good, "--set", "loops.buffers.loop=/nowhere.json")


def test_the_document(tmp_path):
    """docs/generate.md: its request, its events and its loop file, with the names of this package."""
    text = (ROOT / "docs/generate.md").read_text()
    body = re.search(r"curl -N \S+ -d '(.*)'", text)[1]
    shown = [json.loads(event) for event in re.findall(r"^    data: (.*)$", text, re.MULTILINE)]
    loop = re.search(r"^    (\{\"token\": .*?\}\})$", text, re.MULTILINE | re.DOTALL)[1]
    for theirs, ours in (("tokens", "INPUT__0"), ("logits", "OUTPUT__0"), ("position", "INPUT__1"), ("1024", str(LENGTH))):
        loop = loop.replace(f'"{theirs}"' if theirs.isalpha() else theirs, f'"{ours}"' if theirs.isalpha() else ours, 1)
    with LoopServer(tmp_path, loops={"explicit": json.loads(loop), "buffers": LOOPS["buffers"]}) as server:
        for model in ("explicit", "buffers"):
            events = events_of(server.post(f"/v2/models/loops.{model}/generate_stream", body).body)
            assert events[0].keys() == shown[0].keys()
            assert events[-1].keys() == shown[-1].keys()
        assert server.get("/v2/models/loops.explicit/config").json["model_transaction_policy"] == {"decoupled": True}
        assert server.get("/v2/models/loops.prefix/config").json["model_transaction_policy"] == {"decoupled": False}


def test_the_example(tmp_path):
    """examples/language_model, from its training to a text, and the comparison with a Python loop."""
    python = os.environ.get("SCONCE_BENCH_PYTHON")
    if not python:
        pytest.skip("SCONCE_BENCH_PYTHON names no Python with torch")
    example = ROOT / "examples/language_model"
    subprocess.run([python, str(example / "train.py"), str(tmp_path), "--seconds", "8"], check=True)
    flags = ["--set", "*.sequences=16", "--set", f"lm.buffers.loop={tmp_path}/buffers.json",
             "--set", f"lm.explicit.loop={tmp_path}/explicit.json", "--set", f"lm.batch.loop={tmp_path}/batch.json"]
    with Server(tmp_path / "lm.pt2", flags=flags) as server:
        for model in ("lm.buffers", "lm.explicit", "lm.batch"):
            told = subprocess.run([sys.executable, str(example / "talk.py"), str(tmp_path / "tokens.json"), "the old fo", "--model",
                                   model, "--url", f"http://127.0.0.1:{server.port}"], check=True, capture_output=True, text=True)
            assert re.match(r"the old fo.+\n\[(stop|length)\]", told.stdout, re.DOTALL)
    bench = ROOT / "tests/bench/generate/generate.py"
    told = subprocess.run([python, str(bench), str(PROGRAM), str(tmp_path), "--seconds", "0.3"], check=True, capture_output=True, text=True)
    assert told.stdout.count("ratio") == 6


@pytest.fixture(scope="module")
def grpc_server(tmp_path_factory):
    with GrpcLoopServer(tmp_path_factory.mktemp("grpc")) as running:
        yield running


@pytest.fixture(scope="module")
def grpc_endless(tmp_path_factory):
    with GrpcLoopServer(tmp_path_factory.mktemp("endless"), ["--http-admin", "true"], {"explicit": ENDLESS}) as running:
        yield running


@needs_grpc
class TestGrpc:
    @staticmethod
    def call(server):
        grpc = pytest.importorskip("grpc")
        service = pytest.importorskip("tritonclient.grpc.service_pb2_grpc")
        return service.GRPCInferenceServiceStub(grpc.insecure_channel(server.grpc))

    @staticmethod
    def ask(model, prompt, name="r", position=None, **parameters):
        messages = pytest.importorskip("tritonclient.grpc.service_pb2")
        request = messages.ModelInferRequest(model_name=f"loops.{model}", id=name)
        request.inputs.add(name="INPUT__0", datatype="INT64", shape=[1, len(prompt)]).contents.int64_contents.extend(prompt)
        if position is not None:
            request.inputs.add(name="INPUT__1", datatype="INT64", shape=[1, 1]).contents.int64_contents.append(position)
        for key, value in parameters.items():
            kind = "string_param" if isinstance(value, str) else "int64_param"
            setattr(request.parameters[key], kind, value)
        return request

    @staticmethod
    def token_of(response):
        return int.from_bytes(response.raw_output_contents[0], "little")

    @pytest.mark.parametrize("model", MODELS)
    def test_a_response_for_each_token(self, grpc_server, model):
        expected = grpc_server.tokens(model, [3, 4, 5], max_tokens=25, temperature=0)
        stub = self.call(grpc_server)
        got = [r.infer_response for r in stub.ModelStreamInfer(iter([self.ask(model, [3, 4, 5], max_tokens=25, temperature=0)]))]
        assert [r.parameters["triton_final_response"].bool_param for r in got] == [False] * 25 + [True]
        assert {(r.id, r.model_name) for r in got} == {("r", f"loops.{model}")}
        assert [self.token_of(r) for r in got[:-1]] == expected
        assert [int.from_bytes(r.raw_output_contents[1], "little") for r in got[:-1]] == list(range(25))
        assert got[-1].parameters["finish_reason"].string_param == "length"
        stop = f"{expected[6]},31"
        short = [r.infer_response for r in stub.ModelStreamInfer(iter([self.ask(model, [3, 4, 5], temperature="0", stop=stop)]))]
        assert [self.token_of(r) for r in short[:-1]] == expected[:min(expected.index(t) for t in (expected[6], 31) if t in expected)]
        assert short[-1].parameters["finish_reason"].string_param == "stop"

    def test_several_loops_in_one_stream(self, grpc_server):
        prompts = {str(i): [i, i + 1] for i in range(1, 9)}
        expected = {name: grpc_server.tokens("explicit", prompt, max_tokens=30, temperature=0) for name, prompt in prompts.items()}
        requests = [self.ask("explicit", prompt, name, max_tokens=30, temperature=0) for name, prompt in prompts.items()]
        got = {name: [] for name in prompts}
        for response in self.call(grpc_server).ModelStreamInfer(iter(requests)):
            answer = response.infer_response
            if not answer.parameters["triton_final_response"].bool_param:
                got[answer.id].append(self.token_of(answer))
        assert got == expected

    def test_wrong_requests_and_others_go_on(self, grpc_server):
        requests = [self.ask("explicit", [3], "a", max_tokens=0), self.ask("explicit", [3], "b", sequence_id=5),
                    self.ask("explicit", [3], "c", max_tokens=2), self.ask("explicit", [], "d")]
        got = list(self.call(grpc_server).ModelStreamInfer(iter(requests)))
        errors = {r.infer_response.id: r.error_message for r in got if r.error_message}
        assert set(errors) == {"a", "b", "d"}
        assert "'max_tokens'" in errors["a"] and "sequence" in errors["b"] and "no prompt" in errors["d"]
        assert sum(r.infer_response.id == "c" for r in got) == 3

    def test_a_cancelled_call_ends_its_loop(self, grpc_endless):
        for enough in (1, 50, 500):
            call = self.call(grpc_endless).ModelStreamInfer(iter([self.ask("explicit", [3], position=5)]))
            for _ in range(enough):
                next(call)
            assert grpc_endless.running() == 1
            call.cancel()
            until(lambda: grpc_endless.running() == 0)

    def test_a_slow_reader_makes_the_loop_wait(self, grpc_endless):
        call = self.call(grpc_endless).ModelStreamInfer(iter([self.ask("explicit", [3], position=5)]))
        next(call)
        until(lambda: is_made_alone(grpc_endless))
        assert grpc_endless.running() == 1
        for _ in range(5000):
            next(call)
        call.cancel()
        until(lambda: grpc_endless.running() == 0)

    def test_unloading_ends_loops(self, grpc_endless):
        call = self.call(grpc_endless).ModelStreamInfer(iter([self.ask("explicit", [3], position=5)]))
        next(call)
        assert grpc_endless.post("/v2/repository/models/loops.explicit/unload", b"").status == 200
        *_, last = call
        assert "the model was unloaded" in last.error_message
        assert grpc_endless.post("/v2/repository/models/loops.explicit/load", b"").status == 200
