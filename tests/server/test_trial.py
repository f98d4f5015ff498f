"""Models are run on inputs that nobody sent in a child process first: make_trial_packages.py says what each of them is."""
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
from admin_server import AdminServer
from serving import FAKE_MODELS, PROGRAM, Server, fake_expected, numbers, until

TRIAL = FAKE_MODELS.parent / "server/trial"
EXPECTED = json.loads((TRIAL / "expected.json").read_text()) if (TRIAL / "expected.json").exists() else {}
ABORTS = {"FAKE_MODEL_FAIL_IN_RUNS": "1", "FAKE_MODEL_FAIL_KIND": "5"}  # FakeFailure of tests/fake_model/fake_knobs.h
HANGS = {"FAKE_MODEL_FAIL_IN_RUNS": "1", "FAKE_MODEL_FAIL_KIND": "6"}


def check_answer(server, name):
    request = {"inputs": [{"name": f"INPUT__{i}", **tensor} for i, tensor in enumerate(EXPECTED[name]["inputs"])]}
    answer = server.post(f"/v2/models/{name}/infer", request)
    assert answer.status == 200, answer.body
    got, expected = answer.json["outputs"][0]["data"], EXPECTED[name]["output"]
    assert len(got) == len(expected)
    assert all(math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-4) for a, b in zip(got, expected))


def children(pid):
    try:
        tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def lines_with(server, text):
    return [line for line in server.log if text in line]


def test_each_model_is_there():
    assert set(EXPECTED) == {"types", "types_large", "pictures", "tabular", "offset", "divided", "until", "endless"}


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - {"endless"}))
def test_models_that_pytorch_answers_are_served(name):
    """Tables of one row, floats that become indices, indices with an offset, divisors, loops."""
    with Server(TRIAL / f"{name}.pt2", flags=["--set", f"{name}.trial_timeout={'1s' if name == 'until' else '1m'}"]) as server:
        check_answer(server, name)
        # Made-up inputs honour what the generated source says of tables and divisors, but not where a loop ends.
        assert name == "until" or not lines_with(server, "it is served without"), server.log
        assert server.stop() == 0


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - {"endless", "until"}))
def test_commands_run_them_without_inputs(name):
    done = subprocess.run([PROGRAM, "run", TRIAL / f"{name}.pt2"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_loop_that_never_ends_is_loaded_within_the_limit():
    with Server(TRIAL / "endless.pt2", flags=["--set", "endless.trial_timeout=500ms"]) as server:
        [line] = lines_with(server, "it is served without")
        assert "model endless: it is served without a warm-up run" in line
        assert "its trial in a child process was ended at its limit after" in line
        check_answer(server, "endless")
        assert children(server.process.pid) == []


def test_a_signal_ends_the_trial_and_the_load():
    with Server(TRIAL / "endless.pt2", flags=["--set", "endless.trial_timeout=60m"], wait=False) as server:
        until(lambda: children(server.process.pid))
        [child] = children(server.process.pid)
        assert server.get("/v2/health/ready").status == 503
        assert server.stop(timeout=20) == 0
        until(lambda: not pathlib.Path(f"/proc/{child}").exists())
        assert lines_with(server, "is not loaded: the server is ending")


def test_a_killed_server_leaves_no_child():
    with Server(TRIAL / "endless.pt2", flags=["--set", "endless.trial_timeout=60m"], wait=False) as server:
        until(lambda: children(server.process.pid))
        [child] = children(server.process.pid)
        server.process.kill()
        server.process.wait()
        until(lambda: not pathlib.Path(f"/proc/{child}").exists()
              or pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(") ", 1)[1].startswith("Z"))


def test_a_second_signal_ends_a_load_that_hangs():
    """In the package's own code, which makes its container and never returns."""
    stuck = {"FAKE_MODEL_FAIL_IN_CREATES": "1", "FAKE_MODEL_FAIL_KIND": HANGS["FAKE_MODEL_FAIL_KIND"]}
    with Server(f"m={FAKE_MODELS}/fake_batched.pt2", flags=["--set", "m.batching=off"], environment=stuck, wait=False) as server:
        until(lambda: "memfd:model" in pathlib.Path(f"/proc/{server.process.pid}/maps").read_text())
        server.process.send_signal(signal.SIGTERM)
        until(lambda: lines_with(server, "draining"))
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 128 + signal.SIGTERM
        server.reader.join()
        assert lines_with(server, "second signal: ending at once")


@pytest.mark.parametrize("environment,cause", [(ABORTS, "ended by SIGABRT after"), (HANGS, "was ended at its limit after")])
def test_a_child_that_ends_is_no_end_of_the_server(environment, cause):
    """The process itself does not make the run that ended the child: the knob would end its first run."""
    with Server(f"m={FAKE_MODELS}/fake_wide.pt2", flags=["--set", "m.trial_timeout=2s", "--inline-below", "0"],
                environment=environment) as server:
        until(lambda: lines_with(server, "it is served without"))
        [line] = lines_with(server, "it is served without")
        assert "a warm-up run" in line and f"its trial in a child process {cause}" in line
        assert "[0x" not in line  # the last of a backtrace
        assert server.get("/v2/models/m/ready").status == 200
        assert server.stop() == 0


def test_a_model_is_ready_before_its_rows_are_tried(tmp_path):
    """While the child that tries them waits, requests are answered, because a proof says that they may share runs."""
    held = tmp_path / "held"
    held.touch()
    with Server(f"m={FAKE_MODELS}/fake_batched.pt2", flags=["--set", "m.trial_timeout=60m"],
                environment={"FAKE_MODEL_HOLD": str(held)}) as server:
        until(lambda: children(server.process.pid))
        assert any("requests share runs of up to 64 rows: proved by sconce.export" in line for line in server.log)
        held.unlink()
        until(lambda: not children(server.process.pid))
        answer = server.post("/v2/models/m/infer", numbers([1, 2, 3, 4]))
        assert answer.json["outputs"][0]["data"] == fake_expected([1, 2, 3, 4])
        assert not lines_with(server, "without a trial of shared runs")
        assert server.stop() == 0


@pytest.mark.parametrize("environment,cause", [(ABORTS, "ended by SIGABRT after"), (HANGS, "was ended at its limit after")])
def test_a_child_that_tries_rows_ends_neither_the_server_nor_sharing(environment, cause):
    with Server(f"m={FAKE_MODELS}/fake_batched.pt2", flags=["--set", "m.trial_timeout=2s"], environment=environment) as server:
        until(lambda: lines_with(server, "it is served without"))
        [line] = lines_with(server, "it is served without")
        assert f"it is served without a trial of shared runs: its trial in a child process {cause}" in line
        assert "dynamic_batching" in server.get("/v2/models/m/config").json
        assert not lines_with(server, "one by one")


def test_a_signal_ends_the_trial_of_rows():
    with Server(f"m={FAKE_MODELS}/fake_batched.pt2", flags=["--set", "m.trial_timeout=60m"], environment=HANGS) as server:
        until(lambda: children(server.process.pid))
        [child] = children(server.process.pid)
        assert server.stop(timeout=20) == 0
        assert not pathlib.Path(f"/proc/{child}").exists()


def test_a_load_beside_a_neighbour(tmp_path):
    shutil.copy(FAKE_MODELS / "fake_batched.pt2", tmp_path / "neighbour.pt2")
    with AdminServer(tmp_path, flags=["--set", "*.trial_timeout=500ms"]) as server:
        for name in ("types", "endless", "divided"):
            shutil.copy(TRIAL / f"{name}.pt2", tmp_path)
            answer = server.post(f"/v2/repository/models/{name}/load", b"", port=server.admin_port)
            assert answer.status == 200, answer.body
            check_answer(server, name)
            neighbour = server.post("/v2/models/neighbour/infer", numbers([1, 2, 3, 4]))
            assert neighbour.json["outputs"][0]["data"] == fake_expected([1, 2, 3, 4])


def test_nothing_is_tried_where_the_setting_says_so():
    with Server(f"m={FAKE_MODELS}/fake_wide.pt2", flags=["--set", "m.trial_timeout=0"], environment=ABORTS) as server:
        assert not lines_with(server, "it is served without")


@pytest.mark.parametrize("command", [["run"], ["bench", "--duration", "0.01"]])
def test_commands_say_how_a_made_up_run_ended(command, tmp_path):
    call = [PROGRAM, command[0], FAKE_MODELS / "fake_batched.pt2", *command[1:]]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, env={**os.environ, **ABORTS})
    assert done.returncode == 1, (done.returncode, done.stderr)
    assert "the model cannot run on made-up inputs: its run in a child process ended by SIGABRT after" in done.stderr
    assert done.stderr.rstrip().endswith("give inputs with --input")
    # A model's own error is the command's, as before.
    failing = {**os.environ, "FAKE_MODEL_FAIL_IN_RUNS": "1", "FAKE_MODEL_FAIL_KIND": "0"}
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, env=failing)
    assert done.returncode == 1
    assert "told to fail" in done.stderr


def test_the_command_of_the_child_is_not_for_people():
    done = subprocess.run([PROGRAM, "trial"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "this command is for sconce itself" in done.stderr
