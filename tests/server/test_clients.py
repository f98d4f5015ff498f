"""What real clients and gateways send, and what they expect in the answers (docs/http.md)."""
import gzip
import json

import pytest
from serving import FAKE_MODELS, PACKAGES, ROOT, Server

FAKE = FAKE_MODELS / "fake_model.so"
DIGITS = ROOT / "examples/digits/digits.pt2"
DATA = [1, 2, 3, 4]


@pytest.fixture(scope="module")
def server():
    with Server(f"fake={FAKE}", f"batched={FAKE_MODELS / 'fake_batched.pt2'}", DIGITS) as running:
        yield running


def tensor(**more):
    return {"name": "INPUT__0", "datatype": "FP32", "shape": [1, 4], "data": DATA, **more}


def outputs(answer):
    assert answer.status == 200, answer.body
    return answer.json["outputs"][0]["data"]


def test_members_that_are_null_count_as_absent(server):
    plain = outputs(server.post("/v2/models/fake/infer", {"inputs": [tensor()]}))
    nulls = {"id": None, "parameters": None, "outputs": None, "unknown": None,
             "inputs": [tensor(parameters=None, unknown=None)]}
    assert outputs(server.post("/v2/models/fake/infer", nulls)) == plain
    nulls = {"parameters": {"timeout": None, "priority": None, "sequence_id": None, "binary_data_output": None, "mine": None},
             "inputs": [tensor(parameters={"binary_data_size": None, "shared_memory_region": None})],
             "outputs": [{"name": "OUTPUT__0", "parameters": None}]}
    assert outputs(server.post("/v2/models/fake/infer", nulls)) == plain
    predict = {"signature_name": None, "parameters": None, "instances": [DATA], "inputs": None}
    assert server.post("/v1/models/batched:predict", predict).status == 200
    assert server.post("/v2/repository/index", {"ready": None}).status == 200
    missing = server.post("/v2/models/fake/infer", {"inputs": None})
    assert missing.status == 400 and "no 'inputs'" in missing.json["error"]
    missing = server.post("/v2/models/fake/infer", {"inputs": [tensor(data=None)]})
    assert missing.status == 400 and "neither 'data'" in missing.json["error"]


def test_no_rows_beside_a_binary_size(server):
    """As kserve's client sends a tensor without elements by binary_data=True."""
    head = json.dumps({"inputs": [{"name": "INPUT__0", "datatype": "FP32", "shape": [1, 4], "data": None,
                                   "parameters": {"binary_data_size": 16}}]}).encode()
    answer = server.post("/v2/models/fake/infer", head + bytes(16), {"Inference-Header-Content-Length": str(len(head))})
    assert answer.status == 200, answer.body


def test_no_instances():
    with Server(DIGITS) as server:
        answer = server.post("/v1/models/digits:predict", {"instances": []})
        message = answer.json
        # Its batch is at least 1, as the package says; the shape is right, and the reason is the batch.
        assert answer.status in (200, 400) and "dimensions" not in message.get("error", "")


def test_sequence_parameters_without_state_are_ignored(server):
    request = {"inputs": [tensor()], "parameters": {"sequence_id": 7, "sequence_start": True, "sequence_end": True}}
    assert server.post("/v2/models/fake/infer", request).status == 200


def test_a_slash_at_the_end_means_nothing(server):
    assert server.get("/v1/models/").json == server.get("/v1/models").json
    for path in ("/v1/models/fake/", "/v2/models/fake/", "/v2/health/ready/", "/v2/"):
        assert server.get(path).status == 200, path
    assert server.post("/v1/models/batched:predict/", {"instances": [DATA]}).status == 200
    for path in ("//", "/v1//models", "/v1/models//", "/v2//"):
        assert server.get(path).status == 400, path


def test_names_of_models(server):
    assert server.get("/v2/models").json == server.get("/v1/models").json
    assert set(server.get("/v2/models").json["models"]) >= {"fake", "batched", "digits"}


def test_metrics_are_compressed_for_whoever_asks(server):
    port = server.ports["metrics"]
    plain = server.get("/metrics", port=port)
    packed = server.get("/metrics", port=port, headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain.headers and packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.body) < len(plain.body) / 3
    assert b"sconce_http_connections" in gzip.decompress(packed.body)


def test_each_family_of_metrics_has_one_name(server):
    """In OpenMetrics a counter's family is its name without _total."""
    families = {}
    for line in server.get("/metrics", port=server.ports["metrics"]).body.decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            families.setdefault(name.removesuffix("_total") if kind == "counter" else name, []).append(kind)
    assert families and all(len(kinds) == 1 for kinds in families.values()), families


def test_nan_is_null_if_the_setting_says_so():
    request = {"inputs": [{**tensor(), "data": [float("nan"), float("inf"), float("-inf"), 1]}]}
    with Server(f"fake={FAKE}") as server:
        text = server.post("/v2/models/fake/infer", json.dumps(request)).body.decode()
        assert "NaN" in text and "null" not in text
    with Server(f"fake={FAKE}", flags=["--nan-as-null", "true"]) as server:
        text = server.post("/v2/models/fake/infer", json.dumps(request)).body.decode()
        assert "NaN" not in text and "Infinity" not in text and "-null" not in text
        values = json.loads(text, parse_constant=lambda name: pytest.fail(name))["outputs"][0]["data"]
        assert values[0] is None and values[3] is not None


def test_streams_tell_proxies_to_pass_tokens_on(tmp_path):
    loop = tmp_path / "loop.json"
    loop.write_text(json.dumps({"token": {"input": "INPUT__0", "output": "OUTPUT__0"}, "feed": {"OUTPUT__1": "INPUT__2"},
                                "count": {"input": "INPUT__1", "below": 48}, "stop": {"steps": 60}}))
    with Server(PACKAGES / "loops.pt2", flags=["--set", f"loops.explicit.loop={loop}"]) as server:
        request = {"prompt": [3], "max_tokens": 4}
        answer = server.post("/v2/models/loops.explicit/generate_stream", request)
        assert answer.status == 200 and answer.body.count(b"data: ") > 1, answer.body
        assert answer.headers["X-Accel-Buffering"] == "no"
        answer = server.post("/v2/models/loops.explicit/generate", request)
        assert answer.status == 200 and "X-Accel-Buffering" not in answer.headers, answer.body


def test_parameters_of_a_config_are_handed_on(tmp_path):
    import shutil
    (tmp_path / "m/1").mkdir(parents=True)
    shutil.copy(FAKE_MODELS / "fake_batched.pt2", tmp_path / "m/1/model.pt2")
    (tmp_path / "m/config.pbtxt").write_text("""
        parameters { key: "metadata" value { string_value: "{'task': 'classify', 'names': {0: 'zero'}}" } }
        parameters { key: "INTRA_OP_THREAD_COUNT" value { string_value: "1" } }
        metric_tags { key: "team" value: "vision" }""")
    with Server(tmp_path) as server:
        config = server.get("/v2/models/m/config").json
        assert config["parameters"]["metadata"] == {"string_value": "{'task': 'classify', 'names': {0: 'zero'}}"}
        assert config["parameters"]["INTRA_OP_THREAD_COUNT"] == {"string_value": "1"}
        assert config["metric_tags"] == {"team": "vision"}
        assert not [line for line in server.log if "is not followed" in line]
