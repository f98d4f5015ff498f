"""Parameters that the compiler wrote into the code, in a state_dict() that is pushed as a whole."""
import json
import shutil
import subprocess

import pytest
from admin_server import AdminServer
from serving import PACKAGES, PROGRAM
from weights_files import floats, safetensors

STATE = (PACKAGES / "inlined.safetensors").read_bytes()  # the whole state_dict() of another training
EXPECTED = json.loads((PACKAGES / "inlined.json").read_text())  # PyTorch's, by make_inlined_packages.py
IGNORED = ["linear.bias", "scale", "shift"]
INLINED, KEPT = "inlined.inlined", "inlined.kept"


@pytest.fixture
def server(tmp_path):
    shutil.copy(PACKAGES / "inlined.safetensors", tmp_path)
    with AdminServer(PACKAGES / "inlined.pt2", flags=["--weights-dir", tmp_path]) as running:
        yield running


def answer(server, model):
    got = server.post(f"/v1/models/{model}:call", {"args": [EXPECTED["input"]]})
    assert got.status == 200, got.body
    return got.json


def assert_answers(server, model, which):
    for got, expected in zip(answer(server, model), EXPECTED[which], strict=True):
        assert got == pytest.approx(expected, rel=1e-5, abs=1e-6), which


def by_file(server, model, query="commit=true", **more):
    return server.admin("POST", f"{model}/weights?{query}", {"file": "inlined.safetensors", **more})


def test_a_whole_state_dict_is_refused_with_the_reason_and_the_way_out(server):
    for refused in (server.push(INLINED, STATE, "commit=true"), by_file(server, INLINED)):
        assert refused.status == 404
        error = refused.json["error"]
        for part in ("the model has no constant '", *map(repr, IGNORED), "up to 8 elements",
                     "always_keep_tensor_constants", "aot_inductor.use_runtime_constant_folding", "ignore="):
            assert part in error, error
    assert_answers(server, INLINED, "stored")
    # A tensor that is too large to be inlined gets another error.
    error = server.push(INLINED, safetensors({"wide2": floats(*range(9))})).json["error"]
    assert "no constant 'wide2'" in error and "always_keep" not in error and "ignore=" in error


def test_ignored_names_are_left_out(server):
    assert server.push(INLINED, STATE, "commit=true&ignore=" + ",".join(IGNORED)).status == 200
    assert_answers(server, INLINED, "partly")
    assert server.admin("POST", f"{INLINED}/weights/rollback").status == 200
    assert_answers(server, INLINED, "stored")
    # For a file, names can be in the body, in the query, or in both.
    for query, names in (("", IGNORED), ("&ignore=linear.bias%2Cscale,shift", []), ("&ignore=scale", IGNORED[::2])):
        assert by_file(server, INLINED, "commit=true" + query, ignore=names).status == 200
        assert_answers(server, INLINED, "partly")
        assert server.admin("POST", f"{INLINED}/weights/rollback").status == 200
    # `ignore` works together with other options.
    assert server.push(INLINED, STATE, "dry_run=true&check_finite=true&ignore=" + ",".join(IGNORED)).status == 200
    assert_answers(server, INLINED, "stored")


def test_what_the_compiler_was_told_to_keep_needs_no_ignoring(server):
    assert_answers(server, KEPT, "stored")
    assert server.push(KEPT, STATE, "commit=true").status == 200
    assert_answers(server, KEPT, "all")


WRONG = {
    "unknown to both": ("ignore=linear.bias,scale,shift,scal", 400, "neither the weights nor the model have 'scal'"),
    "not all of them": ("ignore=linear.bias,scale", 404, "no constant 'shift'"),
    "one that is demanded": ("ignore=linear.bias,scale,shift,linear.weight", 400,
                             "a full update must name constant 'linear.weight'"),
    "empty name": ("ignore=linear.bias,,scale", 400, "empty"),
    "none": ("ignore=", 400, "empty"),
    "twice": ("ignore=scale&ignore=shift", 400, "ignore"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_names_to_ignore(server, case):
    query, status, part = WRONG[case]
    refused = server.push(INLINED, STATE, "commit=true&" + query)
    assert refused.status == status and part in refused.json["error"], refused.body
    assert_answers(server, INLINED, "stored")


def test_wrong_names_to_ignore_in_a_body(server):
    for names in ("scale", {"a": 1}, [1], [""], [None], 7):
        refused = by_file(server, INLINED, ignore=names)
        assert refused.status == 400 and "ignore" in refused.json["error"], refused.body


def test_a_model_constant_that_is_ignored_keeps_its_value(server):
    """A partial update may also ignore constants that the model has."""
    names = ",".join([*IGNORED, "linear.weight"])
    assert server.push(INLINED, STATE, "mode=partial&commit=true&ignore=" + names).status == 200
    first, _, third = answer(server, INLINED)
    assert first == pytest.approx(EXPECTED["stored"][0], rel=1e-5)
    assert third == pytest.approx(EXPECTED["partly"][2], rel=1e-5)
    # Ignoring a constant that these weights lack is no error, because other weights may have it.
    assert server.push(KEPT, safetensors({"scale": ("F32", [], b"\0\0\0\0")}),
                       "mode=partial&ignore=linear.weight").status == 200


def test_push_ignores(server):
    push = [PROGRAM, "weights", "push", PACKAGES / "inlined.safetensors", "--model", INLINED, "--to",
            f"http://127.0.0.1:{server.ports['administration']}"]
    refused = subprocess.run(push, capture_output=True, text=True)
    assert refused.returncode == 1 and "always_keep_tensor_constants" in refused.stdout
    for how in (["--ignore", ",".join(IGNORED)], ["--ignore", IGNORED[0], "--ignore", ",".join(IGNORED[1:])]):
        done = subprocess.run(push + how, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert_answers(server, INLINED, "partly")
        assert server.admin("POST", f"{INLINED}/weights/rollback").status == 200
