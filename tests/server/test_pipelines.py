"""Pipelines: models that are made of others, in every protocol (docs/pipelines.md)."""
import json
import os
import re
import shutil
import struct
import subprocess
import threading

import pytest
from serving import (FAIL_INPUT, FAKE_MODELS, PROGRAM, ROOT, HeldServer, Server, fake_expected, raw_post, run_serve, threads,
                     until)

PACKAGE = FAKE_MODELS / "fake_batched.pt2"  # y = x * w + b on rows of four
ROWS = [[1, 2, 3, 4], [5, 6, 7, 8]]
TWO = {"inputs": ["x"], "outputs": ["y"], "steps": [
    {"model": "a", "inputs": {"INPUT__0": "x"}, "outputs": {"OUTPUT__0": "mid"}},
    {"model": "b", "inputs": {"INPUT__0": "mid"}, "outputs": {"OUTPUT__0": "y"}}]}


def twice(row):
    return fake_expected(fake_expected(row))


def repository(folder, models=("a", "b"), **pipelines):
    for name in models:
        shutil.copy(PACKAGE, folder / f"{name}.pt2")
    for name, text in pipelines.items():
        write(folder, name, text)
    return folder


def write(folder, name, pipeline):
    (folder / "next").write_text(json.dumps(pipeline))
    os.replace(folder / "next", folder / f"{name}.pipeline.json")


def ask(server, model="p", rows=ROWS, name="x", **more):
    return server.infer(model, {name: ("FP32", [len(rows), 4], rows)}, **more)


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chain")
    diamond = {"inputs": ["x"], "outputs": ["left", "right", "both"], "steps": [
        {"model": "a", "inputs": {"INPUT__0": "x"}, "outputs": {"OUTPUT__0": "left"}},
        {"model": "b", "inputs": {"INPUT__0": "x"}, "outputs": {"OUTPUT__0": "right"}},
        {"model": "p", "inputs": {"x": "left"}, "outputs": {"y": "both"}}]}
    with Server(repository(folder, p=TWO, q=diamond)) as running:
        yield running


def test_every_http_protocol(chain):
    expected = [twice(row) for row in ROWS]
    answer = ask(chain).json
    assert answer["model_name"] == "p" and answer["parameters"]["weight_version"] == "a=1,b=1"
    assert answer["outputs"] == [{"name": "y", "shape": [2, 4], "datatype": "FP32", "data": sum(expected, [])}]
    assert ask(chain).headers["Sconce-Weight-Version"] == "2"
    assert chain.post("/v1/models/p:call", {"kwargs": {"x": ROWS}}).json == {"y": expected}
    assert chain.post("/v1/models/p:predict", {"instances": ROWS}).json == {"predictions": expected}
    assert chain.post("/v1/models/p:predict", {"inputs": {"x": ROWS}}).json == {"outputs": expected}
    assert chain.post("/v2/models/p/generate", {"x": ROWS[0]}).json["y"] == expected[0]
    data = struct.pack("<8f", *sum(ROWS, []))
    head = json.dumps({"inputs": [{"name": "x", "shape": [2, 4], "datatype": "FP32",
                                   "parameters": {"binary_data_size": len(data)}}],
                       "outputs": [{"name": "y", "parameters": {"binary_data": True}}]}).encode()
    binary = chain.request("POST", "/v2/models/p/infer", head + data,
                           {"Inference-Header-Content-Length": str(len(head))})
    length = int(binary.headers["Inference-Header-Content-Length"])
    assert list(struct.unpack("<8f", binary.body[length:])) == sum(expected, [])


def test_it_is_described_as_a_model(chain):
    metadata = chain.get("/v2/models/p").json
    assert metadata["platform"] == "ensemble" and metadata["versions"] == ["1"]
    assert metadata["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]
    assert metadata["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [-1, 4]}]
    config = chain.get("/v2/models/p/config").json
    assert config["platform"] == "ensemble" and config["max_batch_size"] > 1 and "dynamic_batching" not in config
    assert config["ensemble_scheduling"]["step"] == [
        {"model_name": "a", "model_version": -1, "input_map": {"INPUT__0": "x"}, "output_map": {"OUTPUT__0": "mid"},
         "model_namespace": ""},
        {"model_name": "b", "model_version": -1, "input_map": {"INPUT__0": "mid"}, "output_map": {"OUTPUT__0": "y"},
         "model_namespace": ""}]
    assert chain.index()["p"] == ("READY", "")
    assert chain.get("/v2/models/p/ready").status == 200
    assert "serving_default" in chain.get("/v1/models/p/metadata").json["metadata"]["signature_def"]["signature_def"]


def test_branches_and_a_pipeline_within_a_pipeline(chain):
    answer = ask(chain, "q").json
    outputs = {output["name"]: output["data"] for output in answer["outputs"]}
    assert outputs == {"left": sum(map(fake_expected, ROWS), []), "right": sum(map(fake_expected, ROWS), []),
                       "both": sum((twice(fake_expected(row)) for row in ROWS), [])}
    assert answer["parameters"]["weight_version"] == "a=1,b=1,p=a=1,b=1"


def test_statistics_count_the_pipeline_and_its_steps(chain):
    def counts():
        stats = {m["name"]: m for m in chain.get("/v2/models/stats").json["model_stats"]}
        return {name: (m["inference_count"], m["execution_count"], m["inference_stats"]["success"]["count"])
                for name, m in stats.items()}

    before = counts()
    for _ in range(20):
        assert ask(chain).status == 200
    after = counts()
    for name in ("a", "b", "p"):
        assert [new - old for new, old in zip(after[name], before[name])] == [40, 20, 20], name
    metrics = chain.metrics()
    assert metrics['nv_inference_request_success{model="p",version="1"}'] == after["p"][2]
    assert 'sconce_model_weight_version{model="a",version="1"}' in metrics
    assert 'sconce_model_weight_version{model="p",version="1"}' not in metrics  # its models have weights


def test_errors_name_the_step(chain):
    answer = ask(chain, rows=[[FAIL_INPUT, 0, 0, 0]])
    assert answer.status == 500 and answer.json["error"].startswith("step 1 (model 'a'): ")
    assert ask(chain, rows=[[1, 2, 3, 4]]).status == 200
    for bad in ({"x": ("FP64", [1, 4], ROWS[0])}, {"x": ("FP32", [1, 3], [1, 2, 3])},
                {"z": ("FP32", [1, 4], ROWS[0])}, {}):
        assert chain.infer("p", bad).status == 400, bad


def test_it_has_no_weights_of_its_own(chain):
    for method, path in (("GET", "weights"), ("GET", "constants"), ("GET", "replicas"), ("POST", "weights"),
                         ("POST", "weights/commit"), ("POST", "replicas"), ("GET", "sets"),
                         ("GET", "weights/shadow"), ("POST", "golden/record")):
        answer = chain.request(method, f"/v2/admin/models/p/{path}", b"{}" if method == "POST" else None,
                               {"Content-Type": "application/json"}, port=chain.admin_port)
        assert answer.status in (400, 404, 501), (path, answer.status, answer.body)
    for path in ("weights", "weights/commit", "replicas"):
        answer = chain.request("POST", f"/v2/admin/models/p/{path}", b"", {"Content-Type": "application/octet-stream"},
                               port=chain.admin_port)
        assert answer.status in (400, 501) and "'p' is a pipeline: it has no weights" in answer.json["error"], (
            path, answer.body)
    assert chain.get("/v2/health/ready").status == 200


def test_each_step_is_batched_by_itself(tmp_path):
    with HeldServer(repository(tmp_path, p=TWO), flags=["--set", "*.batching=on"]) as server:
        server.hold()
        # Eight wait while the first has the replica: what came before its run began shares it.
        with threads(*[lambda: ask(server, rows=ROWS[:1])] * 9):
            until(lambda: server.get("/v2/models/p/stats").status == 200 and
                  server.metrics()['nv_inference_pending_request_count{model="a",version="1"}'] >= 4)
            server.release()
        stats = {m["name"]: m for m in server.get("/v2/models/stats").json["model_stats"]}
        assert stats["p"]["inference_count"] == stats["a"]["inference_count"] == stats["b"]["inference_count"] == 9
        assert stats["p"]["execution_count"] == 9  # each request is a run of the pipeline
        assert stats["a"]["execution_count"] <= 6


def test_short_steps_run_where_the_request_was_read(tmp_path):
    with Server(repository(tmp_path, p=TWO), flags=["--inline-below", "1s", "--io-threads", "1"]) as server:
        for _ in range(200):
            assert ask(server).json["outputs"][0]["data"] == sum(map(twice, ROWS), [])
        with threads(*[lambda: [ask(server) for _ in range(100)]] * 6):
            pass
        assert ask(server).json["outputs"][0]["data"] == sum(map(twice, ROWS), [])


def test_it_is_ready_while_its_models_are(tmp_path):
    with Server(repository(tmp_path, p=TWO), flags=["--watch", "50ms"]) as server:
        admin = server.admin_port
        assert server.post("/v2/repository/models/b/unload", b"", port=admin).status == 200
        state, reason = server.index()["p"]
        assert state == "UNAVAILABLE" and "'b'" in reason
        assert server.get("/v2/models/p/ready").status == 503 and ask(server).status == 503
        assert server.get("/v2/health/ready").status == 200  # somebody wanted that
        assert server.post("/v2/repository/models/b/load", b"", port=admin).status == 200
        assert ask(server).status == 200
        # New weights of a step show in the answer.
        before = ask(server).json["parameters"]["weight_version"]
        weights = server.get("/v2/admin/models/b/weights/active", port=admin).body
        assert server.request("POST", "/v2/admin/models/b/weights?commit=true&label=v7", weights,
                              {"Content-Type": "application/octet-stream"}, port=admin).status == 200
        assert before == "a=1,b=1" and ask(server).json["parameters"]["weight_version"] == "a=1,b=v7"
        # The file changes while the server runs; one that does not fit leaves what there was.
        write(tmp_path, "p", {**TWO, "outputs": ["y", "mid"]})
        until(lambda: len(ask(server).json.get("outputs", [])) == 2)
        wrong = json.loads(json.dumps(TWO))
        wrong["steps"][1]["inputs"] = {"nothing": "mid"}
        write(tmp_path, "p", wrong)
        until(lambda: "has no input 'nothing'" in server.index()["p"][1])
        assert server.index()["p"][0] == "READY" and len(ask(server).json["outputs"]) == 2
        write(tmp_path, "p", TWO)
        until(lambda: server.index()["p"] == ("READY", "") and len(ask(server).json["outputs"]) == 1)
        os.unlink(tmp_path / "p.pipeline.json")
        until(lambda: "p" not in server.index())


@pytest.mark.parametrize("change, said", [
    ({"steps": [{**TWO["steps"][0], "model": "none"}, TWO["steps"][1]]}, "unknown model: 'none'"),
    ({"steps": [TWO["steps"][0], {**TWO["steps"][1], "model": "p"}]}, "the pipeline is a step of itself"),
    ({"steps": [TWO["steps"][0], {**TWO["steps"][1], "version": 7}]}, "version 7 is not found"),
    ({"outputs": ["z"]}, "no step makes this tensor"),
    ({"more": 1}, "unknown member 'more'"),
])
def test_a_pipeline_that_does_not_fit_is_refused_at_load(tmp_path, change, said):
    folder = repository(tmp_path, p={**TWO, **change})
    code, log = run_serve(folder)
    assert code != 0 and said in log, log
    with Server(folder, flags=["--exit-on-error", "false"], wait=False) as server:
        # Until its models are loaded, the pipeline says that they are not.
        until(lambda: all(server.index().get(name, ("",))[0] == "READY" for name in ("a", "b")))
        until(lambda: server.index()["p"][0] == "UNAVAILABLE" and said in server.index()["p"][1], why=server.index)
        assert server.get("/v2/health/ready").status == 503
        assert ask(server, "a", name="INPUT__0").status == 200


def test_two_pipelines_that_need_each_other_are_refused(tmp_path):
    one = {"inputs": ["x"], "outputs": ["y"], "steps": [{"model": "r", "inputs": {"x": "x"}, "outputs": {"y": "y"}}]}
    other = json.loads(json.dumps(one).replace('"r"', '"p"'))
    code, log = run_serve(repository(tmp_path, p=one, r=other))
    assert code != 0 and "the pipeline is a step of itself" in log


def test_casts(tmp_path):
    """An input of the pipeline in float64, for a model that takes float32."""
    cast = json.loads(json.dumps(TWO))
    cast["inputs"] = [{"name": "x", "datatype": "FP64"}]
    cast["steps"][0]["inputs"]["INPUT__0"] = {"tensor": "x", "cast": "FP32"}
    with Server(repository(tmp_path, p=cast)) as server:
        assert server.get("/v2/models/p").json["inputs"][0]["datatype"] == "FP64"
        answer = server.infer("p", {"x": ("FP64", [2, 4], ROWS)}).json
        assert answer["outputs"][0]["data"] == sum(map(twice, ROWS), [])


def test_deadlines_cover_the_whole(tmp_path):
    flags = ["--set", "p.request_timeout=300ms", "--set", "*.batching=off"]
    with HeldServer(repository(tmp_path, p=TWO), flags=flags) as server:
        server.hold()
        assert ask(server).status == 504
        waiting = 'nv_inference_pending_request_count{model="a",version="1"}'
        with threads(lambda: ask(server)):  # the replica is busy with the request before
            until(lambda: server.metrics()[waiting] == 1)
        server.release()
        until(lambda: server.metrics()[waiting] == 0)
        stats = {m["name"]: m for m in server.get("/v2/models/stats").json["model_stats"]}
        # Of the one that ran, the second step was not begun; of the other, not even the first.
        until(lambda: server.metrics()['nv_inference_request_failure{model="p",reason="REJECTED",version="1"}'] == 2)
        assert stats["b"]["execution_count"] == 0 and stats["a"]["execution_count"] <= 1
        until(lambda: ask(server).status == 200)


def test_a_client_that_leaves_stops_its_pipeline(tmp_path):
    with HeldServer(repository(tmp_path, p=TWO), flags=["--set", "*.batching=off", "--io-threads", "1"]) as server:
        server.hold()
        connection = server.connect()
        body = json.dumps({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": ROWS[0]}]}).encode()
        connection.sendall(raw_post(b"/v2/models/p/infer", body))
        with threads(lambda: ask(server, "a", name="INPUT__0")):  # waits behind the pipeline's first step
            until(lambda: server.metrics()['nv_inference_pending_request_count{model="a",version="1"}'] == 1)
            connection.close()
            for _ in range(3):  # by then the only I/O thread has seen that the client is gone
                assert server.get("/v2/health/live").status == 200
            server.release()
        stats = {m["name"]: m for m in server.get("/v2/models/stats").json["model_stats"]}
        assert stats["a"]["execution_count"] == 2 and stats["b"]["execution_count"] == 0
        assert ask(server).status == 200


def test_a_full_queue_of_a_step_is_429(tmp_path):
    flags = ["--set", "b.queue=1", "--set", "*.batching=off", "--set", "a.replicas=4"]
    with HeldServer(repository(tmp_path, p=TWO), flags=flags) as server:
        server.hold()
        answers = []
        with threads(*[lambda: answers.append(ask(server, rows=ROWS[:1]))] * 8):
            until(lambda: server.metrics()['nv_inference_pending_request_count{model="a",version="1"}'] >= 4)
            server.release()
        assert {answer.status for answer in answers} <= {200, 429}
        for answer in answers:
            if answer.status == 429:
                assert answer.json["error"].startswith("step 2 (model 'b'): Exceeds maximum queue size")


def test_reload_under_load(tmp_path):
    """Models of a pipeline are replaced while it is asked: every answer is right."""
    folder = repository(tmp_path, p=TWO)
    with Server(folder) as server:
        stop = threading.Event()
        statuses = set()

        def client():
            while not stop.is_set():
                answer = ask(server)
                statuses.add(answer.status)
                if answer.status == 200:
                    assert answer.json["outputs"][0]["data"] == sum(map(twice, ROWS), [])

        with threads(*[client] * 4, stop=stop):
            for _ in range(10):
                for name in ("a", "b", "p"):
                    assert server.post(f"/v2/repository/models/{name}/load", b"", port=server.admin_port).status == 200
        assert statuses == {200}


def test_the_document(tmp_path):
    """docs/pipelines.md: its file, its command, and its settings."""
    text = (ROOT / "docs/pipelines.md").read_text()
    block = re.search(r"\n\n((?:    .*\n)+)", text).group(1)
    assert json.loads(block) == TWO
    (tmp_path / "p.pipeline.json").write_text(block)
    for name in ("a", "b"):
        shutil.copy(PACKAGE, tmp_path / f"{name}.pt2")
    with Server(tmp_path / "a.pt2", tmp_path / "b.pt2", tmp_path / "p.pipeline.json") as server:
        assert ask(server).json["outputs"][0]["data"] == sum(map(twice, ROWS), [])
    settings = subprocess.run([PROGRAM, "serve", "--print-config"], capture_output=True, text=True, check=True).stdout
    for name in ("pipeline_requests", "queue_timeout", "priority_levels", "request_timeout", "inline_below"):
        assert f"`{name}`" in text and re.search(rf"^#(\*\.)?{name} = ", settings, re.MULTILINE)


def test_named_on_the_command_line(tmp_path):
    repository(tmp_path, p=TWO)
    with Server(f"a={PACKAGE}", f"b={PACKAGE}", tmp_path / "p.pipeline.json", f"r={tmp_path / 'p.pipeline.json'}",
                flags=["--set", "p.pipeline_requests=2"]) as server:
        assert ask(server).status == 200 and ask(server, "r").status == 200


def test_tritons_ensemble(tmp_path):
    folder = repository(tmp_path)
    (folder / "e/1").mkdir(parents=True)
    (folder / "e/config.pbtxt").write_text("""
        name: "e"
        platform: "ensemble"
        max_batch_size: 8
        input [ { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] } ]
        output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] } ]
        ensemble_scheduling {
          step [
            { model_name: "a" model_version: -1
              input_map { key: "INPUT__0" value: "IN" } output_map { key: "OUTPUT__0" value: "mid" } },
            { model_name: "b" model_version: 1
              input_map { key: "INPUT__0" value: "mid" } output_map { key: "OUTPUT__0" value: "OUT" } }
          ]
        }""")
    with Server(folder, flags=["--watch", "50ms"]) as server:
        answer = ask(server, "e", name="IN").json
        assert answer["outputs"] == [{"name": "OUT", "shape": [2, 4], "datatype": "FP32",
                                      "data": sum(map(twice, ROWS), [])}]
        config = server.get("/v2/models/e/config").json
        assert config["max_batch_size"] == 8 and config["ensemble_scheduling"]["step"][1]["model_version"] == 1
        assert ask(server, "e", rows=ROWS * 5, name="IN").status == 400  # more than max_batch_size
        # The file is looked at again.
        text = (folder / "e/config.pbtxt").read_text()
        (folder / "e/next").write_text(text.replace('"OUT"', '"RESULT"'))
        os.replace(folder / "e/next", folder / "e/config.pbtxt")
        until(lambda: server.get("/v2/models/e").json.get("outputs", [{}])[0].get("name") == "RESULT")


def test_tritons_client(chain):
    triton = pytest.importorskip("tritonclient.http")
    np = pytest.importorskip("numpy")
    client = triton.InferenceServerClient(f"127.0.0.1:{chain.port}")
    tensor = triton.InferInput("x", [2, 4], "FP32")
    tensor.set_data_from_numpy(np.array(ROWS, np.float32))
    np.testing.assert_array_equal(client.infer("p", [tensor]).as_numpy("y"), [twice(row) for row in ROWS])
    assert client.get_model_config("p")["platform"] == "ensemble"
