"""Golden requests: weights that do not answer them as recorded are refused, by whatever way they come."""
import json
import math
import struct
import tarfile

import pytest
from admin_server import FAKE, ONES, STREAM, AdminServer, Clients
from fleet import DIGITS
from serving import FAKE_MODELS, ROOT, until
from test_weights_client import run
from weights_files import fake_weights, floats, repeated, safetensors

V2 = (DIGITS / "digits-v2.safetensors").read_bytes()


def golden_file(path, tensors, **metadata):
    """tensors: as of safetensors()."""
    data = safetensors(tensors)
    size = struct.unpack("<Q", data[:8])[0]
    header = {"__metadata__": metadata, **json.loads(data[8:8 + size])} if metadata else json.loads(data[8:8 + size])
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size:])
    return path


def tensor(shape, values):
    return ("F32", shape, struct.pack(f"<{len(values)}f", *values))


def of_fake(value, *inputs, name="r"):
    """Requests to the fake model, with the answers that fake_weights(value) gives."""
    tensors = {}
    for i, x in enumerate(inputs):
        tensors[f"{name}{i}/inputs/INPUT__0"] = tensor([1, 4], [x] * 4)
        tensors[f"{name}{i}/outputs/OUTPUT__0"] = tensor([1, 4], [value * x + value] * 4)
    return tensors


def judged(server, model="fake"):
    return server.admin("GET", f"{model}/golden").json


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    file = golden_file(folder / "golden.safetensors", of_fake(3, 1, 2, -5), rtol="0.01", atol="0.001")
    (folder / "three.safetensors").write_bytes(fake_weights(3))
    (folder / "four.safetensors").write_bytes(fake_weights(4))
    with AdminServer(f"fake={FAKE}", f"free={FAKE}", flags=["--set", f"fake.golden={file}", "--set", "*.sets=4",
                                                           "--weights-dir", str(folder)]) as server:
        server.file = file
        yield server


@pytest.fixture
def server(shared):
    yield shared
    shared.admin("POST", "fake/weights/abort")


def test_what_passes_is_staged(server):
    answer = server.push("fake", fake_weights(3), "label=good")
    assert answer.status == 200 and answer.json["result"] == "staged", answer.body
    verdict = answer.json["golden"]
    assert (verdict["verdict"], verdict["passed"], verdict["failed"], verdict["label"]) == ("passed", 3, 0, "good")
    assert verdict["digest"] == server.sets("fake", "digest=true")["staged"]["digest"]
    assert server.sets("fake")["staged"]["golden"] == verdict == judged(server)["last"]
    assert server.operation(answer.json["operation"])["golden"] == verdict
    server.admin("POST", "fake/weights/commit")
    assert "golden" not in server.sets("fake")["active"]
    # Within the tolerance.
    assert server.push("fake", fake_weights(3.02), "commit=true").json["result"] == "active"
    document = judged(server)
    assert document["file"] == str(server.file) and document["requests"] == 3
    assert (document["rtol"], document["atol"], document["pass"], document["argmax"]) == (0.01, 0.001, 1, False)
    assert server.admin("GET", "free/golden").json == {"model": "free", "version": "1", "requests": 0}


@pytest.mark.parametrize("query", ["", "commit=true", "golden=require", "mode=partial&commit=true"])
def test_what_fails_is_dropped(server, query):
    before = server.ones()
    answer = server.push("fake", fake_weights(4), query)
    assert answer.status == 422, answer.body
    assert answer.json["error"] == ("the weights pass 0 of 3 golden requests, 3 must pass: request 'r0', output 'RESULT': "
                                    "element [0, 0] is 8, expected 6 (4 of 4 differ)")
    assert server.ones() == before and "staged" not in server.sets("fake")
    last = judged(server)["last"]
    assert last["verdict"] == "failed" and last["failed"] == 3
    assert last["failures"][1] == {"request": "r1", "output": "RESULT", "at": [0, 0], "expected": "9", "got": "12",
                                   "problem": "element [0, 0] is 12, expected 9 (4 of 4 differ)"}
    operation = server.admin("GET", "/v2/admin/operations").json["operations"][-1]
    assert operation["state"] == "failed" and operation["status"] == 422 and operation["golden"] == last
    # Others may come at once.
    assert server.push("fake", fake_weights(3)).status == 200


def test_reported_only(server):
    answer = server.push("fake", fake_weights(4), "golden=report&label=try")
    assert answer.status == 200 and answer.json["golden"]["verdict"] == "failed"
    assert server.sets("fake")["staged"]["golden"]["failures"][0]["got"] == "8"
    until(lambda: any("golden=report was asked for" in line for line in server.log))
    server.admin("POST", "fake/weights/abort")
    assert server.push("fake", fake_weights(4), "golden=maybe").status == 400
    # A model that has no golden requests.
    assert "golden" not in server.push("free", fake_weights(4), "golden=report&commit=true").json


def test_part_of_an_update_counts_with_what_it_leaves_out(server):
    assert server.push("fake", fake_weights(3), "commit=true").status == 200
    part = safetensors({"scale.b": repeated(3, 4)})
    assert server.push("fake", part, "mode=partial&commit=true").status == 200
    answer = server.push("fake", safetensors({"scale.b": floats(3, 3, 3, 3.5)}), "mode=partial&commit=true")
    assert answer.status == 422 and "element [0, 3] is 6.5, expected 6 (1 of 4 differ)" in answer.json["error"]


def test_files_and_async(server):
    def stage(name, query=""):
        return server.admin("POST", f"fake/weights?{query}", {"file": name})

    assert stage("four.safetensors").status == 422
    operation = server.wait_operation(stage("four.safetensors", "async=true").json["operation"])
    assert (operation["state"], operation["status"]) == ("failed", 422) and "must pass" in operation["error"]
    operation = server.wait_operation(stage("three.safetensors", "async=true&commit=true").json["operation"])
    assert operation["result"] == "active" and operation["golden"]["verdict"] == "passed"


def test_a_dry_run_is_not_judged(server):
    assert server.push("fake", fake_weights(4), "dry_run=true").json["result"] == "checked"


def test_a_trainers_weights(server):
    def update(name):
        return server.admin("POST", "/update_weights_from_disk?model=fake", {"model_path": name})

    before = server.ones()
    answer = update("four.safetensors")
    assert answer.status == 422 and answer.json["success"] is False and "must pass" in answer.json["message"]
    assert server.ones() == before
    assert update("three.safetensors").json["success"] is True
    # A label alone is no new set of values.
    assert server.admin("POST", "/update_weight_version?model=fake", {"new_version": "x"}).status == 200


def test_a_named_set_is_judged_when_it_is_promoted(server):
    assert server.push("fake", fake_weights(3), "commit=true").status == 200
    for name, value in (("bad", 4), ("good", 3)):
        assert server.admin("POST", f"fake/sets/{name}?label={name}s", fake_weights(value), STREAM).status == 200
    before = server.ones()
    answer = server.admin("POST", "fake/sets/bad/promote")
    assert answer.status == 422 and "must pass" in answer.json["error"] and server.ones() == before
    last = judged(server)["last"]
    assert (last["set"], last["label"], last["verdict"]) == ("bad", "bads", "failed")
    assert server.admin("POST", "fake/sets/good/promote").status == 200
    assert server.ones()[0] == [6] * 4
    assert server.admin("POST", "fake/sets/bad/promote?golden=report").status == 200
    assert server.ones()[0] == [8] * 4
    # A rollback is not judged.
    assert server.admin("POST", "fake/weights/rollback").status == 200
    assert server.admin("POST", "fake/weights/rollback").status == 200
    assert server.ones()[0] == [8] * 4
    for name in ("bad", "good"):
        server.admin("DELETE", f"fake/sets/{name}")


def test_metrics(server):
    def counts():
        metrics = server.metrics()
        return [metrics[f'sconce_golden_verdicts_total{{model="fake",verdict="{v}",version="1"}}'] for v in ("passed", "failed")]

    before = counts()
    server.push("fake", fake_weights(4))
    server.push("fake", fake_weights(3))
    assert counts() == [before[0] + 1, before[1] + 1]


# The file.

def starts(tmp_path, tensors, *settings, **metadata):
    """What the server says of a model with this golden file; "" if it is ready."""
    file = golden_file(tmp_path / "g.safetensors", tensors, **metadata)
    flags = ["--exit-on-error", "false", "--set", f"fake.golden={file}"]
    for setting in settings:
        flags += ["--set", f"fake.{setting}"]
    with AdminServer(f"fake={FAKE}", flags=flags, wait=False) as server:
        until(lambda: server.post("/v2/repository/index", {}).json[0]["state"] != "LOADING")
        one = server.post("/v2/repository/index", {}).json[0]
        return one["reason"] if one["state"] == "UNAVAILABLE" else ""


def test_a_wrong_file_keeps_the_model_from_loading(tmp_path):
    good = of_fake(3, 1)
    assert starts(tmp_path, good) == ""
    for tensors, text in [({**good, "other": floats(1)}, "'other' is not named REQUEST/inputs/NAME"),
                          ({"a/inputs/INPUT__0": tensor([1, 4], [1] * 4)}, "request 'a' has no outputs"),
                          ({**good, "a/inputs/x": floats(1)}, "'a/inputs/x'; it has 'ARGS[0]'")]:
        reason = starts(tmp_path, tensors)
        assert text in reason and str(tmp_path / "g.safetensors") in reason, reason
    assert "'rtol'" in starts(tmp_path, good, rtol="NaN")
    assert "above 0 and at most 1" in starts(tmp_path, good, "golden_pass=2")
    assert starts(tmp_path, good, "golden_rtol=0.5", "golden_argmax=true", rtol="NaN") == ""


# The digits.

def asked(server, pixels):
    answer = server.infer("digits", {"ARGS[0]": ("FP32", [1, 8, 8], pixels)})
    assert answer.status == 200, answer.body
    return next(output for output in answer.json["outputs"] if output["name"] == "RESULT[probabilities]")


def digits_file(path, server, **metadata):
    """Requests with the answers of what the server serves."""
    tensors = {}
    for i in range(12):
        pixels = [float((7 * i + 3 * k + k * k) % 17) for k in range(64)]
        output = asked(server, pixels)
        tensors[f"{i:02}/inputs/ARGS[0]"] = tensor([1, 8, 8], pixels)
        tensors[f"{i:02}/outputs/{output['name']}"] = tensor(output["shape"], output["data"])
    return golden_file(path, tensors, **metadata)


def test_digits_by_tolerance_and_by_argmax(tmp_path):
    with AdminServer(DIGITS / "digits.pt2") as server:
        v1 = server.admin("GET", "digits/weights/active").body
        strict = digits_file(tmp_path / "strict.safetensors", server)
        assert server.push("digits", V2, "commit=true").status == 200
        # Where both agree on the largest one, by this test's own arithmetic.
        argmax = lambda values: max(range(len(values)), key=values.__getitem__)
        pixels = [[float((7 * i + 3 * k + k * k) % 17) for k in range(64)] for i in range(12)]
        second = [argmax(asked(server, p)["data"]) for p in pixels]
        assert server.push("digits", v1, "commit=true").status == 200
        first = [argmax(asked(server, p)["data"]) for p in pixels]
    same = sum(a == b for a, b in zip(first, second))
    assert 0 < same
    for settings, passed in [((), False), (("golden_argmax=true", f"golden_pass={same / 12}"), True),
                             (("golden_argmax=true", f"golden_pass={min(1, (same + 1) / 12)}"), same == 12)]:
        flags = ["--set", f"digits.golden={strict}"]
        for setting in settings:
            flags += ["--set", f"digits.{setting}"]
        with AdminServer(DIGITS / "digits.pt2", flags=flags) as server:
            assert server.push("digits", v1).json["golden"]["passed"] == 12
            server.admin("POST", "digits/weights/abort")
            answer = server.push("digits", V2)
            assert answer.status == (200 if passed else 422), answer.body
            assert judged(server, "digits")["last"]["passed"] == (same if settings else 0)


@pytest.mark.parametrize("options", [[], ["--relay"]])
def test_a_push_to_many_servers_of_which_one_refuses(tmp_path, options):
    peers = ["--weights-peers", "127.0.0.1"]
    with AdminServer(DIGITS / "digits.pt2", flags=peers) as free:
        file = digits_file(tmp_path / "golden.safetensors", free)
        with AdminServer(DIGITS / "digits.pt2", flags=[*peers, "--set", f"digits.golden={file}"]) as strict:
            for order in ([free, strict], [strict, free]):
                to = ",".join(f"http://127.0.0.1:{s.admin_port}" for s in order)
                result = run("push", DIGITS / "digits-v2.safetensors", "--model", "digits", "--to", to, *options)
                assert result.returncode == 1, result.stdout
                assert "422" in result.stdout and "golden requests" in result.stdout
                for server in order:
                    assert list(server.sets("digits")) == ["active"]
                    assert server.sets("digits")["active"]["weight_version"] == 1


def test_a_model_that_writes_its_buffers(tmp_path):
    # y = 3 x + 3 + steps, which begins at 0 for each judging and grows with each request.
    tensors = {}
    for i in range(3):
        tensors[f"{i}/inputs/INPUT__0"] = tensor([1, 4], [1] * 4)
        tensors[f"{i}/outputs/OUTPUT__0"] = tensor([1, 4], [6 + i] * 4)
    file = golden_file(tmp_path / "g.safetensors", tensors, rtol="0", atol="0")
    with AdminServer(f"fake={FAKE_MODELS / 'fake_state.pt2'}", flags=["--set", f"fake.golden={file}"]) as server:
        for _ in range(2):
            server.infer("fake", ONES)
            answer = server.push("fake", fake_weights(3), "commit=true")
            assert answer.status == 200, answer.body
        answer = server.infer("fake", ONES).json["outputs"][0]["data"]
        assert answer == [8] * 4 and not math.isnan(answer[0])  # the replica's own buffer counted two requests before


def test_judging_under_load(server):
    server.push("fake", fake_weights(3), "commit=true")
    with Clients(server, count=4) as clients:
        for i in range(20):
            assert server.push("fake", fake_weights(3 + i % 2 * 2), "commit=true").status == (200 if i % 2 == 0 else 422)
    assert not clients.problems, clients.problems[:3]
    assert {value for value, _ in clients.weight_versions.values()} == {6}


# Recording.

def record(server, requests, model="fake"):
    return server.admin("POST", f"{model}/golden/record", {"requests": requests})


def recording(server, model="fake"):
    return judged(server, model).get("recording")


def tensors_of(data):
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: (one["shape"], list(struct.unpack(f"<{(one['data_offsets'][1] - one['data_offsets'][0]) // 4}f",
                                                    data[8 + size + one["data_offsets"][0]:8 + size + one["data_offsets"][1]])))
            for name, one in header.items() if name != "__metadata__"}


def test_live_answers_become_a_golden_file(tmp_path):
    with AdminServer(f"fake={FAKE}", flags=["--set", "fake.sets=2"]) as server:
        assert server.admin("GET", "fake/golden/recording").status == 404
        assert record(server, 3).json["state"] == "running"
        assert record(server, 3).status == 409
        server.admin("POST", "fake/sets/a", fake_weights(9), STREAM)
        for x in (1, 2, 3, 4):
            assert server.infer("fake@a", ONES).status == 200  # a named set's answers are no answers of the active one
            assert server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [x] * 4)}).status == 200
            if x == 1:
                until(lambda: recording(server)["recorded"] == 1)
                assert server.admin("GET", "fake/golden/recording").status == 409
        until(lambda: recording(server)["state"] == "complete")
        told = recording(server)
        assert (told["recorded"], told["generation"]) == (3, 1)
        answer = server.admin("GET", "fake/golden/recording")
        assert answer.status == 200
        tensors = tensors_of(answer.body)
        assert sorted(tensors) == sorted(f"00000{i}/{side}" for i in (1, 2, 3) for side in ("inputs/ARGS[0]", "outputs/RESULT"))
        asked = sorted(tensors[f"00000{i}/inputs/ARGS[0]"][1][0] for i in (1, 2, 3))
        assert set(asked) <= {1, 2, 3, 4}
        for i in (1, 2, 3):
            x = tensors[f"00000{i}/inputs/ARGS[0]"][1][0]
            assert tensors[f"00000{i}/outputs/RESULT"] == ([1, 4], [(c + 1) * x + 10 * c for c in range(4)])
        assert server.admin("GET", "fake/golden/recording").body == answer.body
        assert record(server, 0).status == 200 and recording(server) is None
        assert record(server, "x").status == record(server, 10 ** 9).status == 400
    file = tmp_path / "golden.safetensors"
    file.write_bytes(answer.body)
    with AdminServer(f"fake={FAKE}", flags=["--set", f"fake.golden={file}"]) as server:
        assert server.push("fake", fake_weights(3)).status == 422
        assert server.push("fake", server.admin("GET", "fake/weights/active").body).json["golden"]["passed"] == 3


def test_a_recording_ends_with_its_weights_or_its_memory():
    with AdminServer(f"fake={FAKE}", flags=["--set", "fake.golden_recording=300"]) as server:
        record(server, 100)
        server.infer("fake", ONES)
        server.push("fake", fake_weights(3), "commit=true")
        server.infer("fake", ONES)
        until(lambda: recording(server)["state"] == "ended")
        assert recording(server)["recorded"] == 1
        assert record(server, 100).json["generation"] == 2
        for _ in range(4):
            server.infer("fake", ONES)
        until(lambda: recording(server)["state"] == "full")
        assert recording(server)["recorded"] == 2 and recording(server)["bytes"] == 256
        assert len(tensors_of(server.admin("GET", "fake/golden/recording").body)) == 4
        # What never came.
        record(server, 5)
        assert server.admin("POST", "fake/golden/recording").json["state"] == recording(server)["state"] == "ended"
        answer = server.admin("GET", "fake/golden/recording")
        assert answer.status == 400 and "no request was recorded" in answer.json["error"]


def test_a_model_that_writes_its_buffers_is_not_recorded():
    with AdminServer(f"fake={FAKE_MODELS / 'fake_state.pt2'}") as server:
        answer = record(server, 5)
        assert answer.status == 400 and "writes its buffers" in answer.json["error"]


def test_a_model_that_writes_its_inputs_is_found_out(tmp_path):
    with tarfile.open(ROOT / "tests/data/basics.tar.xz") as archive:
        archive.extract("basics/inputs_written/model.pt2", tmp_path)
    with AdminServer(f"m={tmp_path}/basics/inputs_written/model.pt2") as server:
        record(server, 1, "m")
        tensors = {name: ("FP32", [4], [1, 2, 3, 4]) for name in ("ARGS[0]", "ARGS[1]")}
        assert server.infer("m", tensors).status == 200
        until(lambda: recording(server, "m")["state"] == "complete")
        answer = server.admin("GET", "m/golden/recording")
        assert answer.status == 400 and "the model writes its input 'ARGS[" in answer.json["error"], answer.body
        assert server.infer("m", tensors).status == 200


def test_the_command_under_load(tmp_path):
    out = tmp_path / "golden.safetensors"
    with AdminServer(f"fake={FAKE}", flags=["--io-threads", "2"]) as server:
        to = f"http://127.0.0.1:{server.admin_port}"
        with Clients(server, count=4) as clients:
            result = run("golden", "--model", "fake", "--to", to, "--requests", "200", "--out", out)
        assert result.returncode == 0 and "200 of 200 requests" in result.stdout, result.stdout
        # The answers of the fake model differ by column; Clients knows the constant sets only.
        assert all(problem[0] == "mixed" for problem in clients.problems)
        tensors = tensors_of(out.read_bytes())
        assert len(tensors) == 400
        assert all(tensors[f"{i:06}/outputs/RESULT"][1] == [1, 12, 23, 34] * 2 for i in range(1, 201))
        assert recording(server) is None and not list(tmp_path.glob("*.part"))
        # Nobody asks: what came in time is taken, which is nothing.
        result = run("golden", "--model", "fake", "--to", to, "--requests", "2", "--out", out, "--for", "1")
        assert result.returncode == 1 and "no request was recorded" in result.stdout, result.stdout
        assert len(tensors_of(out.read_bytes())) == 400
        assert run("golden", "--model", "none", "--to", to, "--out", out).returncode == 1
    with AdminServer(f"fake={FAKE}", flags=["--set", f"fake.golden={out}"]) as server:
        assert judged(server)["requests"] == 200
