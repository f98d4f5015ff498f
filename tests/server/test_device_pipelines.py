"""Pipelines on GPUs, which tests/server/fake_cuda.cpp makes up: its log shows which copies were made."""
import json
from random import Random

import pytest
from serving import FAKE_MODELS, Server, fake_expected, threads, until
from test_device_memory import DEVICES, ROW, copies_of
from weights_files import fake_weights

TENSORS = {"a": ("x", "left"), "b": ("left", "y"), "other": ("left", "z"), "host": ("left", "h"), "last": ("h", "end")}


def steps(*names):
    return [{"model": name, "inputs": {"INPUT__0": TENSORS[name][0]}, "outputs": {"OUTPUT__0": TENSORS[name][1]}}
            for name in names]


PIPELINES = {
    "chain": {"inputs": ["x"], "outputs": ["y"], "steps": steps("a", "b")},
    "both": {"inputs": ["x"], "outputs": ["left", "y"], "steps": steps("a", "b")},
    "apart": {"inputs": ["x"], "outputs": ["z"], "steps": steps("a", "other")},
    "through": {"inputs": ["x"], "outputs": ["end"], "steps": steps("a", "host", "last")},
}


def twice(row):
    return fake_expected(fake_expected(row))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipelines")
    for name, pipeline in PIPELINES.items():
        (folder / f"{name}.pipeline.json").write_text(json.dumps(pipeline))
    models = [f"{name}={FAKE_MODELS / ('fake_batched.pt2' if name == 'host' else 'fake_cuda.pt2')}" for name in TENSORS]
    devices = [part for name in TENSORS if name != "host"
               for part in ("--set", f"{name}.devices=cuda:{int(name == 'other')}")]
    log = folder / "copies"
    with Server(*models, *(folder / f"{name}.pipeline.json" for name in PIPELINES),
                flags=[*devices, "--inline-below", "0", "--set", "b.shadow=1"],
                environment={"LD_LIBRARY_PATH": str(DEVICES), "FAKE_CUDA_LOG": str(log),
                             "FAKE_MODEL_HOLD": str(log) + ".held"}) as running:
        running.log_of_copies = log
        running.held = log.with_name("copies.held")
        yield running


def ask(server, model, row=ROW):
    return server.infer(model, {"x": ("FP32", [1, 4], row)})


def outputs(answer):
    assert answer.status == 200, answer.body
    return {output["name"]: output["data"] for output in answer.json["outputs"]}


def copies_and_outputs(server, model):
    answers = []
    copies = copies_of(server, lambda: answers.append(ask(server, model)) or answers[0])
    return copies, outputs(answers[0])


def test_tensors_stay_on_the_device(server):
    copies, answer = copies_and_outputs(server, "chain")
    assert answer == {"y": twice(ROW)}
    assert copies == ["cpu cuda:0 16", "cuda:0 cpu 16"]  # the request's and the answer's alone


def test_one_that_is_answered_too_is_copied_to_the_host_as_well(server):
    copies, answer = copies_and_outputs(server, "both")
    assert answer == {"left": fake_expected(ROW), "y": twice(ROW)}
    assert copies == ["cpu cuda:0 16", "cuda:0 cpu 16", "cuda:0 cpu 16"]


def test_models_on_two_devices(server):
    copies, answer = copies_and_outputs(server, "apart")
    assert answer == {"z": twice(ROW)}
    assert copies == ["cpu cuda:0 16", "cuda:0 cuda:1 16", "cuda:1 cpu 16"]


def test_a_model_on_the_host_between_two_on_a_device(server):
    copies, answer = copies_and_outputs(server, "through")
    assert answer == {"end": fake_expected(twice(ROW))}
    assert copies == ["cpu cuda:0 16", "cuda:0 cpu 16", "cpu cuda:0 16", "cuda:0 cpu 16"]


def test_steps_share_runs_on_the_device(server):
    """Runs are held until requests have gathered in front of each model; then each is answered by its own rows."""
    rows = [[float(i), 2.0, 3.0, 4.0] for i in range(12)]
    answers = {}

    def count(model, kind):
        return server.get(f"/v2/models/{model}/stats").json["model_stats"][0][f"{kind}_count"]

    def one(i):
        answers[i] = ask(server, "chain", rows[i])

    ran, answered = count("b", "execution"), count("a", "inference")
    before = len(server.log_of_copies.read_text().splitlines())
    server.held.touch()
    with threads(*(lambda i=i: one(i) for i in range(len(rows)))):
        until(lambda: server.metrics()['nv_inference_pending_request_count{model="a",version="1"}'] >= len(rows) - 2)
        server.held.write_text(str(fake_expected(rows[0])[1]))  # the runs of b alone
        until(lambda: count("a", "inference") - answered == len(rows))
        server.held.unlink()
    assert [outputs(answers[i]) for i in range(len(rows))] == [{"y": twice(row)} for row in rows]
    copies = server.log_of_copies.read_text().splitlines()[before:]
    assert count("b", "execution") - ran < len(rows)
    # Rows of shared runs are joined where they lie.
    assert any(line.startswith("cuda:0 cuda:0") for line in copies), copies
    assert sum(int(line.split()[2]) for line in copies if line.startswith("cpu cuda:0")) == 16 * len(rows)
    assert sum(int(line.split()[2]) for line in copies if line.startswith("cuda:0 cpu")) == 16 * len(rows)


def test_a_model_whose_answers_are_watched_gets_and_gives_them_on_the_host(server):
    pushed = server.post("/v2/admin/models/b/weights", fake_weights(3), {"Content-Type": "application/octet-stream"},
                         port=server.admin_port)
    assert pushed.status == 200, pushed.body

    def shadow():
        return server.get("/v2/admin/models/b/weights/shadow", port=server.admin_port).json

    until(lambda: shadow()["state"] == "running", 60, shadow)
    assert outputs(ask(server, "chain")) == {"y": twice(ROW)}
    until(lambda: shadow()["compared"] + shadow()["skipped"] == 1, 60, shadow)
    assert shadow()["compared"] == 1
    assert server.post("/v2/admin/models/b/weights/abort", b"", port=server.admin_port).status == 200


def drawn(random):
    """A pipeline of 2 to 6 steps on any of three places, each with the input or an earlier step's tensor; how often the model
    was applied to each output. What no step takes is an output, and some others are."""
    depths, steps, taken = {"x": 0}, [], set()
    for i in range(random.randint(2, 6)):
        source = random.choice(list(depths))
        taken.add(source)
        steps.append({"model": random.choice(["host", "a", "other"]), "inputs": {"INPUT__0": source},
                      "outputs": {"OUTPUT__0": f"t{i}"}})
        depths[f"t{i}"] = depths[source] + 1
    answered = {name: depth for name, depth in depths.items() if depth and (name not in taken or random.random() < 0.3)}
    return {"inputs": ["x"], "outputs": list(answered), "steps": steps}, answered


def test_drawn_pipelines_and_requests_that_share_runs(tmp_path):
    """On both sides of each choice: the host or a device, the same device or another, alone or joined with other requests."""
    random = Random(7)
    pipelines = {f"p{i}": drawn(random) for i in range(24)}
    for name, (pipeline, _) in pipelines.items():
        (tmp_path / f"{name}.pipeline.json").write_text(json.dumps(pipeline))
    models = [f"{name}={FAKE_MODELS / ('fake_batched.pt2' if name == 'host' else 'fake_cuda.pt2')}" for name in ("host", "a", "other")]
    with Server(*models, *(tmp_path / f"{name}.pipeline.json" for name in pipelines),
                flags=["--set", "a.devices=cuda:0", "--set", "other.devices=cuda:1"],
                environment={"LD_LIBRARY_PATH": str(DEVICES)}) as server:
        asked = [(name, [[float(random.randint(-9, 9)) for _ in range(4)] for _ in range(random.choice([1, 1, 2, 5]))])
                 for _ in range(4) for name in pipelines]
        answers = {}

        def some(first):
            for i in range(first, len(asked), 8):
                name, rows = asked[i]
                answers[i] = server.infer(name, {"x": ("FP32", [len(rows), 4], rows)})

        with threads(*(lambda first=first: some(first) for first in range(8))):
            pass
        for i, (name, rows) in enumerate(asked):
            expected = {}
            for output, depth in pipelines[name][1].items():
                values = rows
                for _ in range(depth):
                    values = [fake_expected(row) for row in values]
                expected[output] = sum(values, [])
            assert outputs(answers[i]) == expected, (name, pipelines[name])
