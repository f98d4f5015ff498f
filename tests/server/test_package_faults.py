"""Requests whose values a model's own code cannot take: each gets an error with the cause, and nothing else happens."""
import http.client
import itertools
import json
import random
import signal
import tarfile

import pytest
from serving import FAIL_INPUT, FAKE_MODELS, PACKAGES, Server, threads

MODELS = ("embedding", "division", "normalised")
CAUSE = {"embedding": "index out of bounds", "division": "integer division by zero", "normalised": "index out of bounds"}
COLUMNS = 256


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    with tarfile.open(PACKAGES / "faults.tar.xz") as archive:
        archive.extractall(folder)
    return [f"{name}={folder / 'faults' / name}.pt2" for name in MODELS]


@pytest.fixture(scope="module")
def server(packages):
    with Server(*packages, flags=["--set", "*.batching=on"]) as running:
        yield running


def inputs_of(model, rows, seed, bad=None):
    """Values as the model takes them, but for the element `bad`."""
    draw = random.Random(seed)
    if model != "division":
        values = [draw.randrange(100) for _ in range(rows * COLUMNS)]
        if bad is not None:
            values[bad] = draw.choice([100, 2**40])
        return [values]
    pairs = [(draw.randrange(-1000, 1000), draw.choice([-7, -1, 2, 5])) for _ in range(rows * COLUMNS)]
    a, b = map(list, zip(*pairs))
    if bad is not None:
        b[bad] = 0
    return [a, b]


def body_of(model, rows, seed, bad=None):
    return json.dumps({"inputs": [{"name": f"ARGS[{i}]", "datatype": "INT64", "shape": [rows, COLUMNS], "data": values}
                                  for i, values in enumerate(inputs_of(model, rows, seed, bad))]})


def ask(server, model, rows, seed, bad=None):
    return server.post(f"/v2/models/{model}/infer", body_of(model, rows, seed, bad))


def outputs(answer):
    assert answer.status == 200, answer.body
    return answer.json["outputs"]


def check_fault(model, answer):
    assert answer.status == 500, answer.body[:200]
    assert CAUSE[model] in answer.json["error"]


def test_division_is_right(server):
    a, b = inputs_of("division", 3, 1)
    assert outputs(ask(server, "division", 3, 1))[0]["data"] == [int(x / y) for x, y in zip(a, b)]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("rows", [1, 2, 5, 64])
def test_a_bad_value_is_an_error_of_its_request(server, model, rows):
    before = outputs(ask(server, model, rows, 5))
    for bad in {0, COLUMNS - 1, rows * COLUMNS // 2, rows * COLUMNS - 1}:
        check_fault(model, ask(server, model, rows, 5, bad))
        assert outputs(ask(server, model, rows, 5)) == before


@pytest.mark.parametrize("model", MODELS)
def test_requests_of_the_same_run_get_their_answers(packages, model):
    flags = ["--set", "*.batching=on", "--set", "*.batch_delay=10s", "--set", "*.preferred_batch_sizes=4",
             "--set", "*.max_batch_size=4"]
    with Server(*packages, flags=flags) as server:
        alone = [outputs(ask(server, model, 4, seed)) for seed in range(4)]
        for bad in range(5):  # which of the requests is bad; the last round has none
            answers = [None] * 4

            def client(i):
                answers[i] = ask(server, model, 1, i, 7 if i == bad else None)

            with threads(*[lambda i=i: client(i) for i in range(4)]):
                pass
            stats = server.get(f"/v2/models/{model}/stats").json["model_stats"][0]
            for i, answer in enumerate(answers):
                if i == bad:
                    check_fault(model, answer)
                else:
                    row = outputs(answer)[0]["data"]
                    assert row == alone[i][0]["data"][:len(row)], (bad, i)
            assert any(entry["batch_size"] == 4 for entry in stats["batch_stats"])
        assert server.process.poll() is None


def test_thousands_of_faults_under_load(server):
    expected = {(model, seed): outputs(ask(server, model, 1, seed)) for model in MODELS for seed in range(3)}
    wrong, faults = [], itertools.count()

    def client(number, count):
        draw = random.Random(number)
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        for _ in range(count):
            model, seed = draw.choice(MODELS), draw.randrange(3)
            bad = draw.randrange(COLUMNS) if draw.random() < 0.75 else None
            connection.request("POST", f"/v2/models/{model}/infer", body_of(model, 1, seed, bad))
            response = connection.getresponse()
            text = response.read()
            if bad is None and (response.status != 200 or json.loads(text)["outputs"] != expected[model, seed]):
                wrong.append((model, response.status, text[:200]))
            elif bad is not None:
                next(faults)
                if response.status != 500 or CAUSE[model] not in json.loads(text)["error"]:
                    wrong.append((model, response.status, text[:200]))
        connection.close()

    def load(count):
        with threads(*[lambda i=i: client(i, count) for i in range(8)]):
            pass

    load(50)
    before = server.memory_kb()
    load(450)
    assert not wrong, wrong[:3]
    assert next(faults) > 2500
    assert server.grown_kb(before) < 8192
    assert server.process.poll() is None


def test_a_model_that_damages_memory_too_often_fails_until_it_is_loaded_again():
    access = {"FAKE_MODEL_FAIL_KIND": "7"}  # FakeFailure of tests/fake_model/fake_knobs.h
    flags = ["--set", "m.max_code_faults=3", "--http-admin", "true"]

    def run(server, model, value):
        return server.infer(model, {"INPUT__0": ("FP32", [2, 4], [value] * 8)})

    with Server(f"m={FAKE_MODELS}/fake_batched.pt2", f"n={FAKE_MODELS}/fake_batched.pt2", flags=flags, environment=access) as server:
        right = outputs(run(server, "m", 3))
        for count in range(3):
            assert server.get("/v2/models/m/ready").status == 200
            answer = run(server, "m", FAIL_INPUT)
            assert answer.status == 500 and "SIGSEGV" in answer.json["error"], (count, answer.body)
            assert outputs(run(server, "n", 3)) == right
        answer = run(server, "m", 3)
        assert answer.status == 503 and "3 times" in answer.json["error"]
        assert server.get("/v2/models/m/ready").status == 503
        assert server.get("/v2/health/ready").status == 503
        assert outputs(run(server, "n", 3)) == right
        assert sum("max_code_faults allows" in line for line in server.log) == 1
        assert server.post("/v2/repository/models/m/load", b"").status == 200
        assert outputs(run(server, "m", 3)) == right
        server.wait_ready()


def run_fake(server, model, value):
    return server.infer(model, {"INPUT__0": ("FP32", [2, 4], [value] * 8)})


def fakes(kind, *more):
    """Two servers' worth of one package; an input of model m and n fails as FakeFailure of tests/fake_model/fake_knobs.h."""
    return Server(f"m={FAKE_MODELS}/fake_batched.pt2", f"n={FAKE_MODELS}/fake_batched.pt2", flags=more,
                  environment={"FAKE_MODEL_FAIL_KIND": str(kind)})


def test_an_overflow_of_the_stack_is_an_error_of_its_request():
    with fakes(8, "--set", "*.max_code_faults=0") as server:
        right = outputs(run_fake(server, "m", 3))
        for _ in range(5):
            answers = [None] * 4

            def client(i):
                answers[i] = run_fake(server, "m" if i < 2 else "n", FAIL_INPUT if i < 2 else 3)

            with threads(*[lambda i=i: client(i) for i in range(4)]):
                pass
            for answer in answers[:2]:
                assert answer.status == 500 and "has overflowed its stack (SIGSEGV)" in answer.json["error"], answer.body
            assert [outputs(answer) for answer in answers[2:]] == [right] * 2
        assert server.process.poll() is None


@pytest.mark.parametrize(("kind", "number"), [(9, signal.SIGSEGV), (5, signal.SIGABRT)])
def test_a_fault_elsewhere_ends_the_process_after_the_models_name_and_a_backtrace(kind, number):
    with fakes(kind) as server:
        outputs(run_fake(server, "n", 3))
        with pytest.raises((http.client.HTTPException, OSError)):
            run_fake(server, "n", FAIL_INPUT)
        assert server.process.wait(30) == -number
        server.reader.join()
    log = "".join(server.log)
    words = f"sconce: {number.name} while running the code of model n version 1, {FAKE_MODELS}/fake_batched.pt2\n"
    assert words in log, log
    backtrace = log.split(words)[1].splitlines()
    assert any("libc.so" in line for line in backtrace[:6]), backtrace
    assert any("AOTInductorModelContainerRunSingleThreaded" in line for line in backtrace), backtrace


def test_a_signal_that_somebody_sends_ends_the_process_as_ever(packages):
    for number in (signal.SIGSEGV, signal.SIGFPE):
        with Server(packages[0]) as server:
            assert server.stop(number) == -number
