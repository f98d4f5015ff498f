"""Models that write their buffers and have no source that says which: a bare .so, a package without its source."""
import json
import struct
import subprocess

import pytest
from sequence_serving import SequenceServer
from serving import FAKE_MODELS, PROGRAM

COUNTING = {"fake_state": "in the code", "fake_state_appended": "behind it"}  # y = x * w + b + how many runs there were


def bare(name, folder):
    """The library with its weights: those that follow it are what fake_package.cpp writes."""
    content = (FAKE_MODELS / f"{name}.so").read_bytes()
    if name.endswith("_appended"):
        stored = [float(1 + i) for i in range(16)] + [10.0 * i for i in range(16)] + [0.0] * 16
        content = content.ljust(-(-len(content) // 16384) * 16384) + struct.pack("<48fQ", *stored, 0x5CE4C0DEBA5EBA11)
    path = folder / f"{name}.so"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", COUNTING)
def test_a_bare_library_with_state(name, tmp_path):
    with SequenceServer(f"m={bare(name, tmp_path)}", sequences=0) as server:
        for i in range(4):
            answer = server.infer("m", {"INPUT__0": ("FP32", [1, 4], [0, 0, 0, 0])})
            assert answer.status == 200, answer.body
            assert answer.json["outputs"][0]["data"] == [i, 10 + i, 20 + i, 30 + i]
        assert "dynamic_batching" not in server.get("/v2/models/m/config").json
        listed = server.admin("GET", "m/constants").json["constants"]
        assert [(c["name"], c["mutated"], c["assumed"]) for c in listed] == [
            ("scale.w", False, False), ("scale.b", False, False), ("steps", True, True)]


@pytest.mark.parametrize("name", COUNTING)
def test_its_sequences(name, tmp_path):
    with SequenceServer(f"state={bare(name, tmp_path)}", flags=["--set", "state.replicas=2"]) as server:
        for i in range(3):
            for number in (7, 8, 9):
                assert server.value(number, start=i == 0) == i
        assert server.value(8, start=True) == 0
        assert [server.value(number, end=True) for number in (7, 8, 9)] == [3, 1, 3]


def test_a_bare_library_without_state_has_no_sequences(tmp_path):
    with SequenceServer(f"state={bare('fake_model', tmp_path)}") as server:
        assert server.step(7, start=True).status == 200  # it has nothing to lose
        assert "sconce_sequences{" not in server.get("/metrics", port=server.ports["metrics"]).body.decode()


def test_inspect():
    """What is known before the library is loaded."""
    def shown(name, *flags):
        return subprocess.run([PROGRAM, "inspect", *flags, FAKE_MODELS / f"{name}.so"], capture_output=True, text=True,
                              check=True).stdout

    for name, says in (("fake_state", "it may write those that are no parameters"), ("fake_model", "runs write none of them")):
        assert f"only the loaded model lists them; {says}" in shown(name)
        assert json.loads(shown(name, "--json"))["models"][0]["may_write_constants"] == (name == "fake_state")
