"""Sequences over HTTP and gRPC (docs/sequences.md), against what each sequence computes by itself in double precision."""
import json
import random
import re
import subprocess
import threading

import pytest
from admin_server import STREAM
from serving import FAKE_MODELS, PROGRAM, ROOT, Server, fake_expected, threads, until
from weights_files import fake_weights

np = pytest.importorskip("numpy")
triton = pytest.importorskip("tritonclient.http")
from sequence_serving import (CACHE, HAS_GRPC, PACKAGE, RUNNING, STATE, GrpcSequenceServer, HeldSequenceServer,  # noqa: E402
                              Running, SequenceServer, only, running_input)

@pytest.fixture(scope="module")
def server():
    with SequenceServer() as running:
        yield running


def refused(answer, status, *words):
    assert answer.status == status, answer.body
    for word in words:
        assert word in answer.json["error"], answer.body


def test_state_belongs_to_a_sequence(server):
    assert [server.value(1, start=True), server.value("1", start=True), server.value(1), server.value(1),
            server.value("1"), server.value(1, end=True), server.value("1", end=True)] == [0, 0, 1, 2, 1, 3, 2]
    assert server.value(1, start=True, end=True) == 0
    assert server.live() == 0


def test_what_is_refused(server):
    refused(server.step(5), 400, "sequence 5", "must specify the START flag on the first request of the sequence")
    refused(server.step("five"), 400, "sequence 'five'")
    for nothing in (0, ""):
        refused(server.step(nothing, start=True), 400, "must specify a non-zero or non-empty correlation ID")
    refused(server.infer("state", {"INPUT__0": ("FP32", [1, 4], [0] * 4)}), 400, "correlation ID")
    for bad in (-1, 1.5, True, None, [], 2**64):
        assert server.step(bad, start=True).status == 400
    assert server.step("x" * 129, start=True).status == 400
    assert server.value("x" * 128, start=True, end=True) == 0
    assert server.value(2**64 - 1, start=True, end=True) == 0
    refused(server.infer("state", {"INPUT__0": ("FP32", [1, 4], [0] * 4)},
                         parameters={"sequence_id": 1, "sequence_start": 1}), 400, "'sequence_start'")
    assert server.value(6, start=True) == 0
    assert server.value(6, end=True) == 1
    refused(server.step(6), 400, "START")
    refused(server.post("/v1/models/state:call", {"args": [[[0, 0, 0, 0]]]}), 400, "correlation ID")
    assert server.live() == 0


def test_a_live_sequence_begins_anew(server):
    assert [server.value(7, start=True), server.value(7), server.value(7, start=True), server.value(7)] == [0, 1, 0, 1]
    assert server.live() == 1
    assert server.value(7, end=True) == 2


def test_a_refused_step_changes_nothing(server):
    assert server.value(8, start=True) == 0
    wrong = server.infer("state", {"INPUT__0": ("FP32", [1, 3], [0] * 3)}, parameters={"sequence_id": 8, "sequence_end": True})
    assert wrong.status == 400
    assert server.value(8) == 1
    refused(server.step(8, x=-1e30), 500, "told to fail")  # the fake model fails for this input
    refused(server.step(8), 400, "START")
    assert server.value(8, start=True, end=True) == 0


def test_models_without_sequences():
    with Server(f"fake={FAKE_MODELS / 'fake_model.so'}", f"state={STATE}", flags=["--set", "fake.sequences=4"]) as server:
        def ask(model, **parameters):
            return server.infer(model, {"INPUT__0": ("FP32", [1, 4], [0] * 4)}, parameters=parameters)

        # It has no state to lose: as in Triton, clients may send these to every model.
        assert ask("fake", sequence_id=1, sequence_start=True).status == 200
        refused(ask("state", sequence_id="a"), 400, "has no sequences", "setting sequences is 0")
        refused(ask("state", sequence_end=True), 400, "has no sequences")
        # What clients say that have no sequence.
        assert ask("state", sequence_id=0, sequence_start=False, sequence_end=False).status == 200
        assert ask("fake").status == 200
        assert "sequence_batching" not in server.get("/v2/models/state/config").json
        assert "sconce_sequences{" not in server.get("/metrics", port=server.ports["metrics"]).body.decode()


def test_metadata(server):
    assert "sequence" in server.get("/v2").json["extensions"]
    config = server.get("/v2/models/state/config").json
    assert config["sequence_batching"]["max_sequence_idle_microseconds"] == 60_000_000
    assert config["sequence_batching"]["oldest"]["max_candidate_sequences"] == 64
    assert "dynamic_batching" not in config


@pytest.mark.parametrize("replicas", [1, 3])
def test_hundreds_interleaved(replicas):
    """tritonclient's HTTP client, several threads, each with many sequences at once."""
    with SequenceServer(sequences=400, replicas=replicas) as server:
        problems = []

        def play(thread):
            rng, pick = np.random.default_rng(thread), random.Random(thread)
            with triton.InferenceServerClient(f"127.0.0.1:{server.port}") as client:
                alone = {}
                waiting = [1000 * thread + i + 1 for i in range(75)]
                while waiting or alone:
                    number = pick.choice([*alone, *waiting[:1]])
                    start = number not in alone
                    if start:
                        waiting.remove(number)
                        alone[number] = Running()
                    end = pick.random() < 0.1
                    x, tensor = running_input(triton, rng)
                    answer = client.infer(RUNNING, [tensor], sequence_id=number if number % 2 else f"s{number}",
                                          sequence_start=start, sequence_end=end)
                    np.testing.assert_allclose(only(answer), alone[number].step(x), rtol=1e-4, atol=1e-4)
                    if end:
                        del alone[number]

        def guarded(thread):
            try:
                play(thread)
            except BaseException as problem:  # noqa: BLE001
                problems.append(problem)

        threads = [threading.Thread(target=guarded, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert not problems, problems[0]
        assert server.count("sequences", RUNNING) == 0
        assert server.count("sequences_begun_total", RUNNING) == 300


def test_a_cache_of_keys_and_values(server):
    """The same prompt gives the same answers in a new sequence, and other sequences do not show."""
    rng = np.random.default_rng(5)
    prompts = {i: rng.standard_normal((20, 8)).astype(np.float32) for i in (1, 2, 3)}

    def ask(number, step):
        body = {"INPUT__0": ("FP32", [8], prompts[number][step].tolist())}
        answer = server.infer(CACHE, body, parameters={"sequence_id": number, "sequence_start": step == 0,
                                                       "sequence_end": step == 19})
        assert answer.status == 200, answer.body
        return answer.json["outputs"][0]["data"]

    alone = {number: [ask(number, step) for step in range(20)] for number in prompts}
    together = {number: [] for number in prompts}
    for step in range(20):
        for number in prompts:
            together[number].append(ask(number, step))
    assert together == alone
    assert len({tuple(answers[-1]) for answers in alone.values()}) == 3


def test_places_are_limited_and_come_back():
    with SequenceServer(f"state={STATE}", sequences=3) as server:
        for number in (1, 2, 3):
            server.value(number, start=True)
        answer = server.step(4, start=True)
        refused(answer, 429, "model 'state'", "all places for sequences are taken: 3")
        assert int(answer.headers["Retry-After"]) >= 1
        assert server.count("sequences_refused_total") == 1
        assert server.value(2, start=True) == 0  # in its own place
        assert server.value(1, end=True) == 1
        assert [server.value(4, start=True), server.value(4)] == [0, 1]
        assert server.step(1, start=True).status == 429
        assert server.live() == 3
        assert server.get("/v2/models/state/stats").json["model_stats"][0]["inference_stats"]["fail"]["count"] == 2


def test_memory_for_buffers_is_limited():
    with SequenceServer(f"state={STATE}", sequences_memory=11) as server:  # four bytes each
        server.value(1, start=True)
        server.value(2, start=True)
        refused(server.step(3, start=True), 429, "memory for their buffers")


def test_idle_sequences_end():
    with SequenceServer(f"state={STATE}", sequences=2, sequence_idle="700ms") as server:
        server.value(2, start=True)

        def only_two_lives():
            server.value(2)
            return server.live() == 1

        # It outlives one that began with it, and then another one: twice its time without a step.
        for other in (1, 3):
            assert server.value(other, start=True) == 0
            assert server.live() == 2
            until(only_two_lives)
            refused(server.step(other), 400, "START")
        assert server.value(3, start=True) == 0
        until(lambda: server.live() == 0)
        assert server.count("sequences_idle_total") == 4


def test_a_client_that_is_killed_leaves_its_place():
    with SequenceServer(f"state={STATE}", sequences=1, sequence_idle="1s") as server:
        code = f"""
import http.client, json
connection = http.client.HTTPConnection("127.0.0.1", {server.port})
for i in range(10**9):
    body = json.dumps({{"inputs": [{{"name": "INPUT__0", "datatype": "FP32", "shape": [1, 4], "data": [0, 0, 0, 0]}}],
                       "parameters": {{"sequence_id": 1, "sequence_start": i == 0}}}})
    connection.request("POST", "/v2/models/state/infer", body)
    assert connection.getresponse().read()
"""
        client = subprocess.Popen([str(ROOT / ".venv/bin/python"), "-c", code])
        try:
            until(lambda: server.count("sequences") == 1)
            assert server.step(2, start=True).status == 429
        finally:
            client.kill()
            client.wait()
        until(lambda: server.step(2, start=True).status == 200)
        assert server.value(2) == 1


def test_a_client_that_leaves_while_it_waits():
    """A step that nobody waits for is not run, and the sequence goes on where it was."""
    with HeldSequenceServer(f"state={STATE}", sequences=2) as server:
        server.value(1, start=True)
        server.hold()
        with threads(lambda: server.value(1)):
            server.wait_for_request()
            body = json.dumps({"inputs": [{"name": "INPUT__0", "datatype": "FP32", "shape": [1, 4], "data": [0] * 4}],
                               "parameters": {"sequence_id": 1}})
            with server.connect() as connection:
                connection.sendall(f"POST /v2/models/state/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
                                   f"\r\n\r\n{body}".encode())
                until(lambda: server.pending() == 1)
            until(lambda: server.pending() == 0)
            server.release()
        assert server.value(1) == 2
        assert server.live() == 1


def test_late_steps_change_nothing():
    with HeldSequenceServer(f"state={STATE}", sequences=2) as server:
        server.value(1, start=True)
        server.hold()
        with threads(lambda: server.value(1)):
            server.wait_for_request()
            refused(server.step(1, timeout=1000), 504)
            refused(server.step(2, start=True, timeout=1000), 504)
            server.release()
        refused(server.step(2), 400, "START")
        assert server.value(1) == 2


def test_the_queue_is_limited():
    with HeldSequenceServer(f"state={STATE}", sequences=2, queue=1) as server:
        server.value(1, start=True)
        server.hold()
        with threads(lambda: server.value(1)):
            server.wait_for_request()
            with threads(lambda: server.value(1)):
                until(lambda: server.pending() == 1)
                for parameters in ({"number": 2, "start": True}, {"number": 1, "start": True}, {"number": 1, "end": True}):
                    refused(server.step(**parameters), 429, "maximum queue size")
                server.release()
        refused(server.step(2), 400, "START")
        assert server.value(1) == 3
        assert server.live() == 1


def test_new_weights_in_the_middle():
    """A sequence ends with the weights it began with, whatever is pushed; others get the new ones."""
    with SequenceServer(f"state={STATE}", sequences=8) as server:
        assert server.value(1, x=3, start=True) == fake_expected([3])[0]
        for weight_version in range(2, 5):
            answer = server.push("state", fake_weights(weight_version), "commit=true")
            assert answer.status == 200, answer.body
            answer = server.step(1, x=3)
            assert answer.json["outputs"][0]["data"][0] == 3 + weight_version - 1
            assert answer.headers["Sconce-Weight-Version"] == "1"
            fresh = server.step(100 + weight_version, x=3, start=True)
            assert fresh.json["outputs"][0]["data"][0] == 4 * weight_version
            assert fresh.headers["Sconce-Weight-Version"] == str(weight_version)
            assert server.value(100 + weight_version, x=3) == 4 * weight_version + 1
        assert server.value(102, x=3) == 4 * 2 + 2  # still those of the first push
        assert server.value(1, x=3, start=True) == 4 * 4


def test_sequences_that_follow_the_weights():
    with SequenceServer(f"state={STATE}", sequence_weights="active") as server:
        assert server.value(1, x=3, start=True) == 3
        assert server.push("state", fake_weights(2), "commit=true").status == 200
        answer = server.step(1, x=3)
        assert answer.json["outputs"][0]["data"][0] == 8 + 1
        assert answer.headers["Sconce-Weight-Version"] == "2"


def test_named_sets():
    with SequenceServer(f"state={STATE}", sets=4) as server:
        answer = server.admin("POST", "state/sets/five", fake_weights(5), STREAM)
        assert answer.status in (200, 201), answer.body
        assert server.value(1, x=2, start=True, weights="five") == 15
        answer = server.step(1, x=2)
        assert answer.json["outputs"][0]["data"][0] == 16 and answer.headers["Sconce-Weights"] == "five"
        assert server.value(1, x=2, weights="five") == 17
        refused(server.step(1, x=2, weights="active"), 400, "began with set 'five'")
        assert server.value(2, x=2, start=True) == 2
        refused(server.step(2, x=2, weights="five"), 400, "began with the active set")
        assert server.admin("DELETE", "state/sets/five").status in (200, 204)
        assert server.value(1, x=2) == 18
        refused(server.step(1, start=True, weights="five"), 404, "five")


def test_replicas_come_and_go():
    with SequenceServer(f"state={STATE}", replicas=2) as server:
        for number in range(1, 5):
            server.value(number, start=True)
        assert server.admin("DELETE", "state/replicas/1").status in (200, 202, 204)
        kept = [number for number in range(1, 5) if server.step(number).status == 200]
        assert len(kept) == 2
        for number in range(1, 5):
            assert server.step(number).status == (200 if number in kept else 400)
        assert server.admin("POST", "state/replicas", {"count": 1}).status in (200, 201, 202)
        until(lambda: len(server.admin("GET", "state/replicas").json["replicas"]) == 2)
        for number in range(11, 19):
            assert server.value(number, start=True) == 0
            assert server.value(number) == 1


def test_a_pipeline_has_no_sequences(tmp_path):
    (tmp_path / "p.pipeline.json").write_text(json.dumps({"inputs": ["x"], "outputs": ["y"], "steps": [
        {"model": "state", "inputs": {"INPUT__0": "x"}, "outputs": {"OUTPUT__0": "y"}}]}))
    for sequences, state, reason in (0, "READY", ""), (2, "UNAVAILABLE", "has sequences"):
        with Server(f"state={STATE}", tmp_path / "p.pipeline.json",
                    flags=["--set", f"state.sequences={sequences}", "--exit-on-error", "false"], wait=False) as server:
            # Until its model is loaded, that is the reason.
            until(lambda: server.index()["p"][0] == state and reason in server.index()["p"][1])
            if not sequences:
                refused(server.infer("p", {"x": ("FP32", [1, 4], [0] * 4)}, parameters={"sequence_id": 1}), 400,
                        "it is a pipeline")


# Controls of config.pbtxt

CONFIG = """
platform: "torch_aoti"
input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
sequence_batching {
  max_sequence_idle_microseconds: 5000000
  oldest { max_candidate_sequences: 5 max_queue_delay_microseconds: 100 }
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END fp32_false_true: [ 0, 1 ] } ] },
    { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } ] },
    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 } ] }
  ]
}
"""


def controlled(folder, config=CONFIG):
    """A repository with the model of packages/sequences.pt2 that has controls."""
    (folder / "m/1").mkdir(parents=True)
    unpack_model(PACKAGE, "controlled", folder / "m/1/model.pt2")
    (folder / "m/config.pbtxt").write_text(config)
    return folder


def unpack_model(package, model, to):
    """A package of one of a package's models."""
    import zipfile
    with zipfile.ZipFile(package) as archive, zipfile.ZipFile(to, "w") as one:
        for name in archive.namelist():
            if "/aotinductor/" not in name or f"/aotinductor/{model}/" in name:
                parts = name.split("/")
                parts[0] = "model"
                one.writestr("/".join(parts).replace(f"/aotinductor/{model}/", "/aotinductor/model/"), archive.read(name))


def test_controls(tmp_path):
    with Server(controlled(tmp_path)) as server:
        def ask(x, number=7, start=False, end=False):
            answer = server.infer("m", {"x": ("FP32", [1], [x])},
                                  parameters={"sequence_id": number, "sequence_start": start, "sequence_end": end})
            assert answer.status == 200, answer.body
            return [output["data"][0] for output in answer.json["outputs"]]

        assert ask(5, start=True) == [5, 7, 1, 2]
        assert ask(6) == [11, 7, 1, 0]
        assert ask(1, number=2**40, start=True) == [1, 2**40, 1, 2]
        assert ask(2, end=True) == [13, 7, 11, 0]
        metadata = server.get("/v2/models/m").json
        assert [t["name"] for t in metadata["inputs"]] == ["x"]
        config = server.get("/v2/models/m/config").json
        assert [t["name"] for t in config["input"]] == ["x"]
        batching = config["sequence_batching"]
        assert batching["max_sequence_idle_microseconds"] == 5000000
        assert batching["oldest"]["max_candidate_sequences"] == 5
        assert [(c["name"], c["control"][0]["kind"]) for c in batching["control_input"]] == [
            ("START", "CONTROL_SEQUENCE_START"), ("END", "CONTROL_SEQUENCE_END"), ("READY", "CONTROL_SEQUENCE_READY"),
            ("CORRID", "CONTROL_SEQUENCE_CORRID")]
        assert batching["control_input"][0]["control"][0]["fp32_false_true"] == [0, 1]
        assert batching["control_input"][3]["control"][0]["data_type"] == "TYPE_INT64"
        refused(server.infer("m", {"x": ("FP32", [1], [1]), "START": ("FP32", [1], [1])},
                             parameters={"sequence_id": 1, "sequence_start": True}), 400, "'START'", "the server fills it")
        refused(server.infer("m", {"x": ("FP32", [1], [1])}, parameters={"sequence_id": "a", "sequence_start": True}),
                400, "sequence_id must be a number")
        refused(server.infer("m", {"x": ("FP32", [1], [1])}, parameters={"sequence_id": 2**63, "sequence_start": True}),
                400, "sequence_id")
        warnings = [line for line in server.log if "is not followed" in line]
        assert len(warnings) == 1 and "oldest.max_queue_delay_microseconds" in warnings[0]
        assert "max_candidate" not in warnings[0]


@pytest.mark.parametrize("old, new, words", [
    ("fp32_false_true: [ 0, 1 ] } ] },\n    { name: \"END\"", "int32_false_true: [ 0, 1 ] } ] },\n    { name: \"END\"", "'START' is INT32"),
    ("data_type: TYPE_INT64", "data_type: TYPE_STRING", "'CORRID' is BYTES"),
    ("kind: CONTROL_SEQUENCE_END", "kind: CONTROL_SEQUENCE_START", "'START' is a CONTROL_SEQUENCE_START already"),
    ("fp32_false_true: [ 0, 1 ] } ] },\n    { name: \"READY\"", "fp32_false_true: [ 0 ] } ] },\n    { name: \"READY\"", "with two values"),
    ("kind: CONTROL_SEQUENCE_END", "kind: CONTROL_OTHER", "there is no kind 'CONTROL_OTHER'"),
])
def test_controls_that_cannot_be(tmp_path, old, new, words):
    assert CONFIG.count(old) == 1
    with Server(controlled(tmp_path, CONFIG.replace(old, new)), flags=["--exit-on-error", "false"], wait=False) as server:
        until(lambda: server.index()["m"][0] == "UNAVAILABLE")
        assert words in server.index()["m"][1]


def test_the_document(tmp_path):
    """docs/sequences.md: its command, its client, its settings and its metrics."""
    text = (ROOT / "docs/sequences.md").read_text()
    unpack_model(PACKAGE, "cache", tmp_path / "decoder.pt2")
    flags = re.search(r"sconce serve decoder.pt2 (.*)", text).group(1).split()
    code = re.sub(r"^    ", "", re.search(r"\n\n(    import numpy.*\n(?:    .*\n)+)", text).group(1), flags=re.MULTILINE)
    with (GrpcSequenceServer if HAS_GRPC else SequenceServer)(tmp_path / "decoder.pt2", flags=flags) as server:
        config = server.get("/v2/models/decoder/config").json["sequence_batching"]
        assert config["oldest"]["max_candidate_sequences"] == 256
        if HAS_GRPC:
            exec(code.replace("localhost:8001", server.grpc), {})
            assert server.count("sequences_begun_total", "decoder") == 1 and server.count("sequences", "decoder") == 0
        for metric in re.findall(r"`(sconce_sequences\w*)`", text):
            assert f'{metric}{{model="decoder",version="1"}}' in server.metrics()
    sample = subprocess.run([PROGRAM, "serve", "--print-config"], capture_output=True, text=True, check=True).stdout
    settings = re.findall(r"^\| `MODEL\.(\w+)`", text, re.MULTILINE)
    assert len(settings) == 4 and all(f"#*.{setting} =" in sample for setting in settings)
    written = subprocess.run([PROGRAM, "inspect", tmp_path / "decoder.pt2"], capture_output=True, text=True, check=True).stdout
    assert written.count("written by the model") == 3
