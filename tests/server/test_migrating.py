"""docs/migrating.md, row by row, as its readers do it: each command and each request that it names does what it says."""
import json
import os
import re
import shutil
import signal
import subprocess

import pytest
from serving import FAKE_MODELS, PROGRAM, ROOT, HeldServer, Server, fake_expected, until

GUIDE = (ROOT / "docs/migrating.md").read_text()
PACKAGE = FAKE_MODELS / "fake_batched.pt2"  # y = x * w + b on rows of four
ROWS = [[1, 2, 3, 4], [5, 6, 7, 8]]
ANSWERS = [fake_expected(row) for row in ROWS]


@pytest.fixture(scope="module")
def triton_user(tmp_path_factory):
    """A repository in Triton's layout, served with the flags that replace Triton's in the guide."""
    folder = tmp_path_factory.mktemp("repository")
    (folder / "resnet/1").mkdir(parents=True)
    shutil.copy(PACKAGE, folder / "resnet/1/model.pt2")
    shutil.copy(PACKAGE, folder / "bert.pt2")
    trace = folder.parent / f"{folder.name}-trace"
    # Loopback: clients of other hosts would need a token where shared memory is allowed.
    with Server(folder, flags=["--http", "127.0.0.1:0", "--metrics", "0.0.0.0:0", "--metrics-open", "true",
                               "--set", "resnet.replicas=4", "--set", "resnet.devices=cpu", "--set", "resnet.queue=100",
                               "--watch", "100ms", "--allow-shared-memory", "true", "--drain-timeout", "20s",
                               "--max-body-bytes", "1M", "--trace-file", trace, "--trace-level", "timestamps",
                               "--log-level", "debug"]) as running:
        running.folder = folder
        yield running


def test_every_flag_and_setting_of_the_guide_exists():
    sample = subprocess.run([PROGRAM, "serve", "--print-config"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"^#?(?:MODEL\.|\*\.)?([a-z_]+) =", sample, re.MULTILINE))
    named = set()
    for right in [line.split("|")[-2] for line in GUIDE.splitlines() if line.count("|") >= 3]:
        named |= {flag.replace("-", "_") for flag in re.findall(r"--([a-z][a-z-]+)", right) if flag != "set"}
        named |= set(re.findall(r"--set \w+\.(\w+)=", right))
    named |= {flag.replace("-", "_") for flag in re.findall(r"`sconce serve [^`]*--([a-z-]+)", GUIDE)}
    assert {"watch", "replicas", "queue", "max_body_bytes", "token_file", "http"} <= named
    assert named <= known, named - known


def test_paths_that_the_guide_links_to_exist():
    for path in re.findall(r"\]\(([^)#]+)\)", GUIDE):
        assert (ROOT / "docs" / path).exists(), path


def test_a_repository_of_triton(triton_user):
    server = triton_user
    assert {(m["name"], m["version"], m["state"]) for m in server.post("/v2/repository/index", b"").json} == {
        ("resnet", "1", "READY"), ("bert", "1", "READY")}
    config = server.get("/v2/models/resnet/config").json
    assert config["max_batch_size"] > 1 and config["dynamic_batching"] is not None
    assert [(t["data_type"], t["dims"]) for t in config["input"] + config["output"]] == [("TYPE_FP32", [4])] * 2
    replicas = server.get("/v2/admin/models/resnet/replicas", port=server.admin_port).json["replicas"]
    assert len(replicas) == 4 and {r["device"] for r in replicas} == {"cpu"}
    assert any(re.search(r"inference on http://127\.0\.0\.1:", line) for line in server.log)
    assert any(re.search(r"metrics on http://0\.0\.0\.0:", line) for line in server.log)


def test_metrics_of_triton(triton_user):
    server = triton_user
    assert server.infer("bert", {"INPUT__0": ("FP32", [2, 4], ROWS)}).status == 200
    metrics = server.metrics()
    labels = '{model="bert",version="1"}'
    assert metrics[f"nv_inference_count{labels}"] == 2 and metrics[f"nv_inference_exec_count{labels}"] == 1
    for name in ("request_success", "request_duration_us", "queue_duration_us", "compute_input_duration_us",
                 "compute_infer_duration_us", "compute_output_duration_us", "pending_request_count"):
        assert f"nv_inference_{name}{labels}" in metrics
    assert any(name.startswith("sconce_inference_request_duration_seconds_bucket") for name in metrics)


def test_what_answers_otherwise(triton_user):
    server = triton_user
    path = "/v2/models/resnet/infer"

    def one(**changes):
        tensor = {"name": "INPUT__0", "shape": [1, 4], "datatype": "FP32", "data": ROWS[0], **changes}
        return {"inputs": [{k: v for k, v in tensor.items() if v is not None}]}

    assert server.post(path, b" " * (2**20 + 1)).status == 413
    assert server.post(path, one(), {"Content-Encoding": "br"}).status == 415
    for bad in (b"{", one(data=[1, 2, 3]), one(shape=[2**61 + 1, 8]), one(data=[1e39, 0, 0, 0])):
        assert server.post(path, bad).status == 400
    for parameters in ({"config": "{}"}, {"file:1/model.pt2": "AAAA", "config": "{}"}):
        answer = server.post("/v2/repository/models/resnet/load", {"parameters": parameters},
                             port=server.admin_port)
        assert answer.status == 400
    plain = server.post(path, one(), {"Accept-Encoding": "gzip, deflate"})
    assert plain.status == 200 and "Content-Encoding" not in plain.headers
    assert server.post(path, one(datatype="BYTES", data=["a"] * 4)).status == 400


def test_not_ready_is_503_with_a_body(tmp_path):
    with HeldServer(f"m={PACKAGE}", flags=["--set", "m.queue=1", "--drain-grace", "20s"]) as server:
        server.process.send_signal(signal.SIGTERM)
        until(lambda: server.get("/v2/health/ready").status == 503)
        answer = server.get("/v2/models/m/ready")
        assert answer.status == 503 and answer.json == {"name": "m", "ready": False}
        assert server.get("/v2/health/live").status == 200  # and it serves
        assert server.infer("m", {"INPUT__0": ("FP32", [1, 4], [0] * 4)}).status == 200


def test_polling_and_explicit_control(triton_user):
    server = triton_user
    shutil.copy(PACKAGE, server.folder / "late.next")
    os.replace(server.folder / "late.next", server.folder / "late.pt2")
    until(lambda: server.get("/v2/models/late/ready").status == 200)
    os.unlink(server.folder / "late.pt2")
    until(lambda: server.get("/v2/models/late").status != 200)
    admin = server.admin_port
    assert server.post("/v2/repository/models/bert/unload", b"").status == 403
    assert server.post("/v2/repository/models/bert/unload", b"", port=admin).status == 200
    until(lambda: server.get("/v2/models/bert/ready").status != 200)
    assert server.post("/v2/repository/models/bert/load", b"", port=admin).status == 200
    assert server.get("/v2/models/bert/ready").status == 200


def test_the_lines_for_tritons_client(triton_user):
    triton = pytest.importorskip("tritonclient.http")
    np = pytest.importorskip("numpy")
    block = re.search(r"Your client stays unchanged:\n\n((?:    .*\n)+)", GUIDE).group(1)
    code = re.sub(r"^    ", "", block, flags=re.MULTILINE)
    code = code.replace("localhost:8000", f"127.0.0.1:{triton_user.port}")
    code = code.replace("[1, 3, 224, 224]", "[1, 4]").replace("(1, 3, 224, 224)", "(1, 4)").replace("print(", "shown.append(")
    shown = []
    exec(code, {"shown": shown})
    np.testing.assert_array_equal(shown[0], [fake_expected([0, 0, 0, 0])])
    assert triton.__name__ == "tritonclient.http"


# TorchServe, KServe, TensorFlow Serving.

@pytest.fixture(scope="module")
def newcomer(tmp_path_factory):
    """`sconce serve m=m.pt2`, with tokens as the guide has them in the place of key_file.json."""
    folder = tmp_path_factory.mktemp("models")
    shutil.copy(PACKAGE, folder / "m.pt2")
    with Server(f"m={folder / 'm.pt2'}") as running:
        yield running


def curl(server, line, port=None):
    """A line of the guide, with this server's port and rows that its model takes."""
    line = line.strip().removeprefix("$ ").split("   ")[0]
    line = line.replace("localhost:8000", f"127.0.0.1:{port or server.port}")
    line = line.replace("[[0.1, 0.2]]", json.dumps(ROWS)).replace("[[1, 2], [3, 4]]", json.dumps(ROWS))
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_curl_lines(newcomer):
    lines = [line for line in GUIDE.splitlines() if line.startswith("    $ curl") and line.endswith("# Sconce")]
    assert len(lines) == 2
    for line in lines:
        assert curl(newcomer, line) == {"predictions": ANSWERS}


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_how_curl_sends_a_file(newcomer, tmp_path):
    """-d takes line ends away and says that it is a form; bodies above a megabyte ask to be waited for."""
    for name, rows in (("small", ROWS), ("large", ROWS * 20_000)):
        text = json.dumps({"inputs": rows}, indent=1) + "\n"
        (tmp_path / name).write_text(text)
        for how in ("-d", "--data-binary", "--json"):
            if how == "--json" and b"--json" not in subprocess.run(["curl", "--help", "all"], capture_output=True).stdout:
                continue
            line = f"curl -s localhost:8000/v1/models/m:predict {how} @{tmp_path / name}"
            if name == "large":
                line += " -o " + str(tmp_path / "out") + " -w '%{http_code}'"
                assert curl(newcomer, line) in (200, 400)  # 400: the batch has too many rows
            else:
                assert curl(newcomer, line) == {"outputs": ANSWERS}
    # curl -T sends PUT, which TorchServe accepts. Here the answer names the allowed methods.
    refused = newcomer.request("PUT", "/v1/models/m:predict", b"{}")
    assert refused.status == 405 and refused.headers["Allow"] == "POST"


def test_rows_of_torchserve(newcomer):
    server, admin = newcomer, newcomer.ports["administration"]
    assert server.post("/v1/models/m:call", {"args": [ROWS]}).json == ANSWERS
    assert server.post("/v1/models/m:predict", {"instances": ROWS}).json == {"predictions": ANSWERS}
    assert server.get("/v2/health/ready").status == 200
    assert server.get("/v1/models").json == {"models": ["m"]}
    assert server.get("/v2/models/m").json["name"] == "m"
    assert server.post("/v2/admin/models/m/replicas", {"count": 3}, port=admin).status == 200
    assert len(server.get("/v2/admin/models/m/replicas", port=admin).json["replicas"]) == 4
    assert server.post("/v2/repository/models/m/unload", b"", port=admin).status == 200
    until(lambda: server.get("/v2/models/m/ready").status != 200)
    assert server.post("/v2/repository/models/m/load", b"", port=admin).status == 200
    assert server.get("/v2/models/m/ready").status == 200
    assert any(name.startswith("sconce_inference_request_duration_seconds") for name in server.metrics())
    for path in ("/predictions/m", "/ping", "/models"):  # the routes of the other servers do not exist
        assert server.get(path).status == 404


def test_rows_of_kserve_and_tensorflow_serving(newcomer):
    server = newcomer
    status = server.get("/v1/models/m").json
    assert status["name"] == "m" and status["ready"] is True
    assert status["model_version_status"] == [
        {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}]
    assert server.get("/v1/models/m/versions/1").json == status
    assert "signature_def" in server.get("/v1/models/m/metadata").json["metadata"]
    for path in ("/v1/models/m:predict", "/v1/models/m/versions/1:predict"):
        assert server.post(path, {"instances": ROWS}).json == {"predictions": ANSWERS}
        assert server.post(path, {"inputs": ROWS}).json == {"outputs": ANSWERS}
        assert server.post(path, {"signature_name": "serving_default", "instances": ROWS}).json == {"predictions": ANSWERS}
    for path in ("/v2/health/live", "/v2/health/ready"):
        assert server.get(path).status == 200
    for action in ("explain", "classify", "regress"):
        assert server.post(f"/v1/models/m:{action}", {"instances": ROWS}).status == 404
    assert server.get("/v1/models/m/labels/stable").status == 404
    assert server.post("/v1/models/m:predict", {"instances": [{"b64": "AAAA"}]}).status == 400
    assert server.post("/v1/models/m:predict", {"signature_name": "other", "instances": ROWS}).status == 400


def test_requests_of_kserves_client(newcomer):
    """As kserve's InferenceRESTClient sends them, v1 and v2, with the fields that httpx adds."""
    server = newcomer
    headers = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate", "Connection": "keep-alive",
               "User-Agent": "python-httpx/0.28.1", "Content-Type": "application/json"}
    assert server.get("/v2/health/live", headers=headers).json == {"live": True}
    assert server.get("/v2/health/ready", headers=headers).json == {"ready": True}
    assert server.get("/v2/models/m/ready", headers=headers).json == {"name": "m", "ready": True}
    assert server.get("/v1/models/m", headers=headers).json["ready"] is True
    assert server.post("/v1/models/m:predict", {"instances": ROWS}, headers).json == {"predictions": ANSWERS}
    request = {"id": "5f8b", "inputs": [{"name": "ARGS[0]", "shape": [2, 4], "datatype": "FP32", "data": sum(ROWS, []),
                                         "parameters": {}}], "parameters": {}}
    answer = server.post("/v2/models/m/infer", request, headers).json
    assert answer["id"] == "5f8b" and answer["model_name"] == "m" and answer["model_version"] == "1"
    output, = answer["outputs"]
    assert output == {"name": "RESULT", "shape": [2, 4], "datatype": "FP32", "data": sum(ANSWERS, [])}


def test_kserves_client(newcomer):
    """The real one, where it is installed (it brings 450 MB): v1 and v2, JSON and binary tensors."""
    kserve = pytest.importorskip("kserve", reason="kserve is not installed: pip install kserve")
    import asyncio

    import numpy as np

    async def exam():
        base = f"http://127.0.0.1:{newcomer.port}"
        v2 = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2"))
        assert await v2.is_server_live(base) and await v2.is_server_ready(base) and await v2.is_model_ready(base, "m")
        asked = kserve.protocol.infer_type.RequestedOutput("RESULT", parameters={"binary_data": True})
        for binary in (False, True):
            for outputs in ({}, {"request_outputs": [asked]}):
                tensor = kserve.InferInput("ARGS[0]", [2, 4], "FP32")
                tensor.set_data_from_numpy(np.array(ROWS, np.float32), binary_data=binary)
                request = kserve.InferRequest(model_name="m", infer_inputs=[tensor], request_id="q", **outputs)
                answer = await v2.infer(base, request, model_name="m")
                assert answer.id == "q" and answer.outputs[0].as_numpy().tolist() == ANSWERS
        with pytest.raises(Exception, match="unknown model: 'none'"):
            await v2.infer(base, kserve.InferRequest(model_name="none", infer_inputs=[tensor]), model_name="none")
        v1 = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v1"))
        assert await v1.is_model_ready(base, "m")
        assert await v1.infer(base, {"instances": ROWS}, model_name="m") == {"predictions": ANSWERS}

    asyncio.run(exam())


def test_tokens_in_the_place_of_a_key_file(tmp_path):
    (tmp_path / "tokens").write_text("infer inference-key-16\nadmin management-key-16\n")
    with Server(f"m={PACKAGE}", flags=["--token-file", str(tmp_path / "tokens")], wait=False) as server:
        inference = {"Authorization": "Bearer inference-key-16"}
        management = {"Authorization": "Bearer management-key-16"}
        until(lambda: server.request("GET", "/v2/models/m/ready", headers=inference).status == 200)
        assert server.post("/v1/models/m:predict", {"instances": ROWS}).status == 401
        assert server.post("/v1/models/m:predict", {"instances": ROWS}, inference).json == {"predictions": ANSWERS}
        admin = server.admin_port
        path = "/v2/admin/models/m/replicas"
        assert server.request("GET", path, headers=inference, port=admin).status == 403
        assert server.request("GET", path, headers=management, port=admin).status == 200
