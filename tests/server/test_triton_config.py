"""Triton's config.pbtxt beside a model, versions, labels, warm-up, and Server-Timing (docs/migrating.md)."""
import os
import re
import shutil
import struct

import pytest
from serving import FAKE_MODELS, PACKAGES, Server, fake_expected, run_serve, until
from weights_files import safetensors

PACKAGE = FAKE_MODELS / "fake_batched.pt2"  # y = x * w + b on rows of four
ROW = [1, 2, 3, 4]
CONFIG = """
name: "m"  # as the folder
platform: "torch_aoti"
max_batch_size: 8
input [ { name: "image", data_type: TYPE_FP32, dims: [ 4 ] } ]
output { name: "scores" data_type: TYPE_FP32 dims: 4 }
instance_group [ { count: 3 kind: KIND_CPU } ]
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 100
  priority_levels: 3
  default_priority_level: 2
  default_queue_policy {
    timeout_action: DELAY
    default_timeout_microseconds: 5000000
    allow_timeout_override: true
    max_queue_size: 7
  }
}
version_policy { specific { versions: [ 1, 3 ] } }
model_warmup { name: "zeros" batch_size: 2 count: 2
  inputs { key: "image" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }
model_warmup { name: "random" batch_size: 1
  inputs { key: "image" value { data_type: TYPE_FP32 dims: 4 random_data: true } } }
model_warmup { name: "file" batch_size: 1
  inputs { key: "image" value { data_type: TYPE_FP32 dims: 4 input_data_file: "row" } } }
parameters { key: "sconce.golden_recording" value { string_value: "1M" } }
response_cache { enable: true }
optimization { cuda { graphs: true } }
"""


def model(folder, config, versions=(1,), name="m"):
    for version in versions:
        (folder / name / str(version)).mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE, folder / name / str(version) / "model.pt2")
    (folder / name / "warmup").mkdir(exist_ok=True)
    (folder / name / "warmup/row").write_bytes(struct.pack("<4f", *ROW))
    if config is not None:
        (folder / name / "config.pbtxt").write_text(config)
    return folder


def ask(server, path="m", name="image"):
    return server.post(f"/v2/models/{path}/infer", {
        "inputs": [{"name": name, "datatype": "FP32", "shape": [1, 4], "data": ROW}]})


def test_what_is_honoured_and_what_is_named(tmp_path):
    with Server(model(tmp_path, CONFIG, (1, 2, 3))) as server:
        assert {(m["version"], m["state"]) for m in server.post("/v2/repository/index", b"").json} == {
            ("1", "READY"), ("3", "READY")}
        config = server.get("/v2/models/m/config").json
        assert config["max_batch_size"] == 8
        assert config["instance_group"][0]["count"] == 3 and config["instance_group"][0]["kind"] == "KIND_CPU"
        batching = config["dynamic_batching"]
        assert batching["preferred_batch_size"] == [4, 8] and batching["max_queue_delay_microseconds"] == 100
        assert batching["priority_levels"] == 3 and batching["default_priority_level"] == 2
        assert batching["default_queue_policy"] == {
            "timeout_action": "DELAY", "default_timeout_microseconds": 5000000, "allow_timeout_override": True,
            "max_queue_size": 7}
        assert config["version_policy"] == {"specific": {"versions": [1, 3]}}
        assert [(t["name"], t["dims"]) for t in config["input"] + config["output"]] == [("image", [4]), ("scores", [4])]
        assert len(server.get("/v2/admin/models/m/replicas", port=server.admin_port).json["replicas"]) == 3
        # The file's names are the model's; those of the package are good too.
        answer = ask(server).json
        assert answer["outputs"] == [{"name": "scores", "shape": [1, 4], "datatype": "FP32",
                                      "data": fake_expected(ROW)}]
        assert ask(server, name="ARGS[0]").status == ask(server, name="INPUT__0").status == 200
        warnings = [line for line in server.log if "is not followed in" in line]
        assert len(warnings) == 2  # one for each version
        assert re.search(r"m version 1: \S+/m/config\.pbtxt is not followed in: response_cache \(line \d+\), "
                         r"optimization \(line \d+\)", warnings[0]), warnings


def test_the_server_s_own_settings_win(tmp_path):
    flags = ["--set", "m.max_batch_size=5", "--set", "*.queue=9", "--set", "m.replicas=1", "--versions", "latest",
             "--set", "m.devices=auto"]
    with Server(model(tmp_path, CONFIG, (1, 3)), flags=flags) as server:
        config = server.get("/v2/models/m/config").json
        assert config["max_batch_size"] == 5
        assert config["dynamic_batching"]["default_queue_policy"]["max_queue_size"] == 9
        assert config["dynamic_batching"]["priority_levels"] == 3  # nobody said otherwise
        assert [m["version"] for m in server.post("/v2/repository/index", b"").json] == ["3"]
        replicas = server.get("/v2/admin/models/m/replicas", port=server.admin_port).json["replicas"]
        assert [r["device"] for r in replicas] == ["cpu"]  # auto: the package is for the CPU


@pytest.mark.parametrize("policy, versions", [
    ("version_policy { latest { num_versions: 2 } }", ["2", "3"]), ("version_policy { all { } }", ["1", "2", "3"]),
    ("", ["3"])])
def test_version_policy(tmp_path, policy, versions):
    with Server(model(tmp_path, policy, (1, 2, 3))) as server:
        assert [m["version"] for m in server.post("/v2/repository/index", b"").json] == versions


@pytest.mark.parametrize("config, said", [
    ("max_batch_size: ", "line 1: expected a value of 'max_batch_size' [", ),
    ("max_batch_size: 8 input { name: 'x' data_type: TYPE_INT32 dims: 4 }",
     "input 'x' is INT32 [-1, 4] there, in the package FP32 [-1, 4] (ARGS[0])"),
    ("max_batch_size: 8 input { name: 'x' data_type: TYPE_FP32 dims: 5 }", "input 'x' is FP32 [-1, 5] there"),
    ("max_batch_size: 8 input [ { name: 'x' }, { name: 'y' } ]", "the file has 2 fields input, the package 1: 'ARGS[0]'"),
    ("parameters { key: 'sconce.nothing' value { string_value: '1' } }", "unknown setting of a model: nothing ("),
    ("instance_group { kind: KIND_GPU }", "cuda"),
    ("model_warmup { name: 'w' inputs { key: 'other' value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }",
     "the model has no input 'other'"),
    ("model_warmup { name: 'w' batch_size: 2 inputs { key: 'INPUT__0' value { data_type: TYPE_FP32 dims: 4 "
     "input_data_file: 'row' } } }", "does not have the 32 bytes of the input"),
    ("model_warmup { name: 'w' batch_size: 1 inputs { key: 'INPUT__0' value { data_type: TYPE_FP32 dims: 4 "
     "input_data_file: '../1/model.pt2' } } }", "expected a file below"),
])
def test_what_is_wrong_in_the_file_is_said(tmp_path, config, said):
    code, log = run_serve(model(tmp_path, config))
    assert code != 0 and said in log, log
    with Server(model(tmp_path, config), flags=["--exit-on-error", "false"], wait=False) as server:
        until(lambda: server.index().get("m", ("", ""))[0] == "UNAVAILABLE")
        assert said in server.index()["m"][1]
        # With the file corrected it loads.
        (tmp_path / "m/config.pbtxt").write_text("")
        assert server.post("/v2/repository/models/m/load", b"", port=server.admin_port).status == 200
        assert ask(server, name="INPUT__0").status == 200


def test_a_changed_file_is_taken_up(tmp_path):
    with Server(model(tmp_path, "max_batch_size: 4"), flags=["--watch", "50ms"]) as server:
        assert server.get("/v2/models/m/config").json["max_batch_size"] == 4
        (tmp_path / "m/next").write_text("max_batch_size: 6")
        os.replace(tmp_path / "m/next", tmp_path / "m/config.pbtxt")
        until(lambda: server.get("/v2/models/m/config").json["max_batch_size"] == 6)


def test_a_package_with_other_shapes_keeps_its_order(tmp_path):
    """Names that the package knows mean its tensors, in whatever order the file has them."""
    (tmp_path / "m/1").mkdir(parents=True)
    shutil.copy(PACKAGES / "several.pt2", tmp_path / "m/1/model.pt2")
    with Server(tmp_path) as server:
        assert len(server.post("/v2/repository/index", b"").json) == 4  # no file: as it was


# Versions by name.

def test_labels_for_versions(tmp_path):
    flags = ["--versions", "all", "--set", "m.version_labels=stable:1,canary:3,gone:2"]
    with Server(model(tmp_path, None, (1, 3)), flags=flags) as server:
        for label, version in (("stable", "1"), ("canary", "3")):
            assert ask(server, f"m/versions/{label}", "INPUT__0").json["model_version"] is not None
            assert server.get(f"/v2/models/m/versions/{label}").json["versions"] == [version]
            assert server.get(f"/v2/models/m/versions/{label}/ready").status == 200
            stats = server.get(f"/v2/models/m/versions/{label}/stats").json["model_stats"]
            assert [m["version"] for m in stats] == [version] and stats[0]["inference_count"] == 1
            body = {"instances": [ROW]}
            assert server.post(f"/v1/models/m/labels/{label}:predict", body).json == {
                "predictions": [fake_expected(ROW)]}
            assert server.post(f"/v1/models/m/versions/{label}:predict", body).status == 200
            assert server.get(f"/v1/models/m/labels/{label}").json["model_version_status"][0]["version"] == version
            assert server.get(f"/v2/admin/models/m/versions/{label}/weights", port=server.admin_port).status == 200
        index = {m["version"]: m.get("labels") for m in server.post("/v2/repository/index", b"").json}
        assert index == {"1": ["stable"], "3": ["canary"]}
        for path in ("m/versions/gone", "m/versions/none", "m/versions/2"):
            assert ask(server, path, "INPUT__0").status == 404
        assert server.get("/v1/models/m/labels/none").status == 404
    code, log = run_serve(tmp_path, "--set", "m.version_labels=1:2")
    assert code != 0 and "expected LABEL:VERSION" in log


# Warm-up.

def requests_file(path, values):
    path.write_bytes(safetensors({"r/inputs/INPUT__0": ("F32", [1, 4], struct.pack("<4f", *values))}))
    return path


def test_warm_up_from_a_file(tmp_path):
    good = requests_file(tmp_path / "good.safetensors", ROW)
    with Server(f"m={PACKAGE}", flags=["--set", f"m.warm_up_requests={good}", "--set", "m.replicas=2"]) as server:
        assert ask(server, name="INPUT__0").status == 200
        stats = server.get("/v2/models/m/stats").json["model_stats"][0]
        assert stats["inference_count"] == 1  # warming up is no request
    bad = requests_file(tmp_path / "bad.safetensors", [-1e30, 0, 0, 0])  # the fake model fails
    code, log = run_serve(f"m={PACKAGE}", "--set", f"m.warm_up_requests={good},{bad}")
    assert code != 0 and "[request r of warm-up file " in log, log
    code, log = run_serve(f"m={PACKAGE}", "--set", f"m.warm_up_requests={tmp_path / 'none.npz'}")
    assert code != 0 and "warm-up file" in log


# Server-Timing.

def test_server_timing():
    with Server(f"m={PACKAGE}", flags=["--server-timing", "true"]) as server:
        for answer in (ask(server, name="INPUT__0"), server.post("/v1/models/m:predict", {"instances": [ROW]})):
            times = dict(re.findall(r"(\w+);dur=(\d+\.\d{3})(?:, |$)", answer.headers["Server-Timing"]))
            assert list(times) == ["queue", "input", "compute", "output", "total"]
            assert sum(float(times[part]) for part in ("queue", "input", "compute", "output")) <= float(times["total"]) + 0.1
            assert float(times["total"]) > 0
        slow = server.infer("m", {"INPUT__0": ("FP32", [1, 4], [-2e30, 0, 0, 0])})  # sleeps 50 ms
        assert float(re.search(r"compute;dur=([\d.]+)", slow.headers["Server-Timing"]).group(1)) >= 50
        assert server.infer("m", {}).headers["Server-Timing"] is None  # an error
        assert server.get("/v2/models/m").headers["Server-Timing"] is None
    with Server(f"m={PACKAGE}") as server:
        assert ask(server, name="INPUT__0").headers["Server-Timing"] is None
