"""Loops on GPUs, which tests/server/fake_cuda.cpp makes up: its log shows which copies were made. The same model on the host
says what the tokens are."""
import json
from random import Random

import pytest
from admin_server import AdminServer
from serving import FAKE_MODELS, threads, until
from test_device_memory import DEVICES
from weights_files import fake_weights

LOOP = {"token": {"input": "INPUT__0", "output": "OUTPUT__0"}, "feed": {"OUTPUT__1": "INPUT__1"}, "stop": {"steps": 500}}
# In bytes: a token, the state, a rank, a row of logits.
TOKEN, STATE, RANK, ROW = 8, 16, 8, 800
# Both sides of the number of largest logits that a device sorts (kMostLargest), and what needs them all; with how many bytes a
# step brings to the host.
PICKS = [({"temperature": 0}, RANK), ({"top_k": 1}, RANK), ({"top_k": 2}, 2 * RANK), ({"temperature": 0.8, "top_k": 40}, 40 * RANK),
         ({"temperature": 9, "top_k": 128, "top_p": 0.7}, 128 * RANK), ({"top_k": 128}, ROW + 28 * RANK),
         ({"top_k": 129}, ROW), ({"top_p": 0.5}, ROW), ({}, ROW), ({"top_k": 5000}, ROW)]
assert 128 * RANK == ROW + 28 * RANK


def loop_server(folder, *more):
    (folder / "loop.json").write_text(json.dumps(LOOP))
    log = folder / "copies"
    models = ["host", "one", "two"]
    flags = [part for name in models for part in ("--set", f"{name}.loop={folder / 'loop.json'}")]
    running = AdminServer(*(f"{name}={FAKE_MODELS / ('fake_loop.pt2' if name == 'host' else 'fake_loop_cuda.pt2')}" for name in models),
                          flags=[*flags, "--set", "one.devices=cuda:0", "--set", "two.devices=cuda:0,cuda:1", *more],
                          environment={"LD_LIBRARY_PATH": str(DEVICES), "FAKE_CUDA_LOG": str(log),
                                       "FAKE_MODEL_HOLD": str(log) + ".held"})
    running.log_of_copies, running.held = log, log.with_name("copies.held")
    return running


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with loop_server(tmp_path_factory.mktemp("loops"), "--set", "one.shadow=1") as running:
        yield running


def tokens(server, model, prompt, **more):
    answer = server.post(f"/v2/models/{model}/generate", {"prompt": prompt, **more})
    assert answer.status == 200, answer.body
    return answer.json["tokens"]


def copies(server):
    return server.log_of_copies.read_text().splitlines() if server.log_of_copies.exists() else []


@pytest.mark.parametrize(("options", "brought"), PICKS)
def test_the_state_stays_on_the_device_and_what_picking_needs_comes(server, options, brought):
    expected = tokens(server, "host", [3, 4, 5], max_tokens=20, seed=7, **options)
    assert len(set(expected)) > 5
    before = len(copies(server))
    assert tokens(server, "one", [3, 4, 5], max_tokens=20, seed=7, **options) == expected
    # 22 steps; two of them before the prompt is over, after which nothing is picked.
    steps = [f"cpu cuda:0 {TOKEN}", f"cuda:0 cpu {brought}"]
    prompt = [f"cpu cuda:0 {TOKEN}", f"cuda:0 cpu {RANK}"]
    first = [f"cpu cuda:0 {TOKEN}", f"cpu cuda:0 {STATE}", f"cuda:0 cpu {RANK}"]
    assert copies(server)[before:] == first + prompt + steps * 20


def test_loops_share_runs_on_the_device_and_pick_in_different_ways(server):
    def executions():
        return server.metrics()['nv_inference_exec_count{model="one",version="1"}']

    asked = [{"prompt": [i, i + 1], "max_tokens": 30, "seed": i, **PICKS[i % len(PICKS)][0]} for i in range(12)]
    expected = [tokens(server, "host", **options) for options in asked]
    ran, before = executions(), len(copies(server))
    got = {}

    def ask(i):
        got[i] = tokens(server, "one", **asked[i])

    server.held.touch()
    with threads(*(lambda i=i: ask(i) for i in range(len(asked)))):
        until(lambda: server.metrics()['nv_inference_pending_request_count{model="one",version="1"}'] >= len(asked) - 2)
        server.held.unlink()
    assert [got[i] for i in range(len(asked))] == expected
    assert executions() - ran < len(asked) * 31 * 0.8
    made = copies(server)[before:]
    # States are joined where they lie. The host gave each loop's first one and got none.
    assert f"cuda:0 cuda:0 {STATE}" in made
    assert sum(int(line.split()[2]) for line in made if line.startswith("cpu cuda:0")) == len(asked) * (31 * TOKEN + STATE)


def test_replicas_on_two_devices(server):
    """A loop whose next step is on another device takes its state there."""
    # What these bring to the host, and each step does, is larger than the states of all loops.
    picks = [options for options, brought in PICKS if brought > 8 * STATE]
    asked = [{"prompt": [i], "max_tokens": 60, "seed": i, **picks[i % len(picks)]} for i in range(8)]
    expected = [tokens(server, "host", **options) for options in asked]
    before = len(copies(server))
    for _ in range(20):
        got = {}

        def ask(i, got=got):
            got[i] = tokens(server, "two", **asked[i])

        with threads(*(lambda i=i: ask(i) for i in range(len(asked)))):
            pass
        assert [got[i] for i in range(len(asked))] == expected
        made = copies(server)[before:]
        if any(line.startswith("cuda:0 cuda:1") for line in made) and any(line.startswith("cuda:1 cuda:0") for line in made):
            break
    else:
        raise AssertionError("no state was taken to another device")
    to_host = [int(line.split()[2]) for line in made if line.split()[0] != "cpu" and line.split()[1] == "cpu"]
    assert to_host and min(to_host) > 8 * STATE


def test_a_step_that_shares_a_run_with_a_request(server):
    """`infer` wants everything on the host; the loops beside it go on with what came there."""
    random = Random(3)
    expected = tokens(server, "host", [1], max_tokens=200, temperature=0)
    token, state = [[9]], [[1.0, 2.0, 3.0, 4.0]]
    inputs = {"INPUT__0": ("INT64", [1, 1], token), "INPUT__1": ("FP32", [1, 4], state)}
    answer = server.infer("host", inputs).json["outputs"]
    got, seen = {}, []

    def ask(i):
        got[i] = tokens(server, "one", [1], max_tokens=200, temperature=0)

    def infer():
        for _ in range(150):
            seen.append(server.infer("one", inputs).json["outputs"])
            if random.random() < 0.1:
                server.metrics()

    with threads(infer, *(lambda i=i: ask(i) for i in range(4))):
        pass
    assert [got[i] for i in range(4)] == [expected] * 4
    assert seen == [answer] * len(seen)


def test_a_model_whose_answers_are_watched_gives_them_on_the_host(server):
    expected = tokens(server, "host", [3, 4, 5], max_tokens=20, temperature=0)
    pushed = server.post("/v2/admin/models/one/weights", fake_weights(3), {"Content-Type": "application/octet-stream"},
                         port=server.admin_port)
    assert pushed.status == 200, pushed.body

    def shadow():
        return server.get("/v2/admin/models/one/weights/shadow", port=server.admin_port).json

    until(lambda: shadow()["state"] == "running", 60, shadow)
    before = len(copies(server))
    assert tokens(server, "one", [3, 4, 5], max_tokens=20, temperature=0) == expected
    assert sum(line == f"cuda:0 cpu {STATE}" for line in copies(server)[before:]) >= 22
    until(lambda: shadow()["compared"] + shadow()["skipped"] >= 22, 60, shadow)
    assert shadow()["compared"] > 0
    assert server.post("/v2/admin/models/one/weights/abort", b"", port=server.admin_port).status == 200
    before = len(copies(server))
    assert tokens(server, "one", [3, 4, 5], max_tokens=20, temperature=0) == expected
    assert f"cuda:0 cpu {STATE}" not in copies(server)[before:]
