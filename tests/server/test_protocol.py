"""Open Inference Protocol v2 and the call-spec endpoint, against the real program."""
import base64
import json
import math
import struct
import time

import pytest
from serving import FAIL_INPUT, binary, fake_expected


def test_health(server):
    assert server.get("/v2/health/live").json == {"live": True}
    assert server.get("/v2/health/ready").json == {"ready": True}
    assert server.get("/v2/models/fake/ready").json == {"name": "fake", "ready": True}
    assert server.get("/v2/models/fake/versions/1/ready").status == 200
    assert server.get("/v2/models/fake/versions/2/ready").status == 404
    assert server.get("/v2/models/nope/ready").status == 404


def test_server_metadata(server):
    meta = server.get("/v2").json
    assert meta["name"] == "sconce"
    assert "binary_tensor_data" in meta["extensions"] and "statistics" in meta["extensions"]


def test_metadata_has_the_structure_of_the_call(server):
    """As `sconce inspect --json` shows it."""
    call = server.get("/v2/models/several.calls").json["call_spec"]
    assert call["args"]["kind"] == "tuple" and call["kwargs"]["keys"] == ["scale", "mask"]
    picked = call["result"]["children"][call["result"]["keys"].index("picked")]
    assert picked["kind"] == "tuple" and [c["kind"] for c in picked["children"]] == ["leaf", "leaf"]


def test_model_metadata(server):
    meta = server.get("/v2/models/several.calls").json
    assert meta["platform"] == "torch_aoti"
    assert meta["versions"] == ["1"]
    assert {i["name"]: (i["datatype"], i["shape"]) for i in meta["inputs"]} == {
        "ARGS[0]": ("FP32", [2, 3]), "ARGS[1][0]": ("INT64", [2]), "ARGS[1][1][shift]": ("FP32", [3]),
        "KWARGS[scale]": ("FP32", []), "KWARGS[mask]": ("BOOL", [3])}
    assert [o["name"] for o in meta["outputs"]] == [
        "RESULT[y]", "RESULT[picked][0]", "RESULT[picked][1]", "RESULT[any]", "RESULT[n]"]
    last = server.get("/v2/models/several.channels_last/versions/1").json
    assert last["inputs"][0]["shape"] == [-1, 3, 4, 5]
    dtypes = server.get("/v2/models/several.dtypes").json
    assert [i["datatype"] for i in dtypes["inputs"]] == [
        "BOOL", "UINT8", "INT8", "INT16", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64", "FP32", "UINT8"]
    assert dtypes["inputs"][10] == {"name": "ARGS[10]", "datatype": "FP32", "shape": [3, 2],
                                    "parameters": {"dtype": "complex64"}}
    assert dtypes["inputs"][11]["parameters"] == {"dtype": "float8_e4m3fn"}


def test_what_a_package_does_not_say_is_found_out_by_running_it(server):
    meta = server.get("/v2/models/fake").json
    assert meta["outputs"][0]["datatype"] in ("FP32", "UNKNOWN")


def test_config(server):
    config = server.get("/v2/models/several.channels_last/config").json
    assert config["max_batch_size"] == 8
    assert config["input"][0]["dims"] == [3, 4, 5]
    assert config["input"][0]["data_type"] == "TYPE_FP32"
    assert [o["dims"] for o in config["output"]] == [[4, 5], [3, 4, 5]]
    assert config["model_transaction_policy"] == {"decoupled": False}
    assert config["response_cache"] == {"enable": False}
    config = server.get("/v2/models/several.calls/config").json
    assert config["max_batch_size"] == 0
    assert config["input"][0]["dims"] == [2, 3]


def test_index(server):
    index = server.post("/v2/repository/index", b"").json
    assert {"name": "fake", "version": "1", "state": "READY"} in index
    assert server.post("/v2/repository/index", {"ready": True}).json == index
    assert server.post("/v2/repository/index", b'{"ready":1}').status == 400
    assert server.post("/v2/repository/index", b"[" * 60000).status == 400


def test_infer_json(server):
    rows = [[1.0, -2.0, 0.5, 3.0], [0, 1, 2, 3]]
    answer = server.infer("fake", {"INPUT__0": ("FP32", [2, 4], rows)}, id="seven")
    assert answer.status == 200
    body = answer.json
    assert body["id"] == "seven" and body["model_name"] == "fake" and body["model_version"] == "1"
    output, = body["outputs"]
    assert output["shape"] == [2, 4] and output["datatype"] == "FP32" and "parameters" not in output
    assert output["data"] == [v for row in rows for v in fake_expected(row)]


def test_answer_uses_the_name_that_was_asked_for(server):
    x = {"arg0_1": ("FP32", [1, 4], [0, 0, 0, 0])}
    metadata_name = server.get("/v2/models/fake").json["outputs"][0]["name"]
    assert [o["name"] for o in server.infer("fake", x).json["outputs"]] == [metadata_name]
    for name in {metadata_name, "OUTPUT__0", "output0"}:
        assert [o["name"] for o in server.infer("fake", x, [name]).json["outputs"]] == [name]


def test_infer_binary_both_ways(server):
    answer = server.post("/v2/models/fake/infer", *binary(
        struct.pack("<8f", *range(8)), outputs=[{"name": "OUTPUT__0", "parameters": {"binary_data": True}}]))
    assert answer.status == 200
    length = int(answer.headers["Inference-Header-Content-Length"])
    assert answer.headers["Content-Type"] == "application/octet-stream"
    meta = json.loads(answer.body[:length])
    assert meta["outputs"][0]["parameters"] == {"binary_data_size": 32}
    assert list(struct.unpack("<8f", answer.body[length:])) == fake_expected([0, 1, 2, 3]) + fake_expected([4, 5, 6, 7])


def test_raw_binary_request(server):
    answer = server.post("/v2/models/several.channels_last/infer", struct.pack("<60f", *[1.0] * 60),
                         {"Inference-Header-Content-Length": "0"})
    assert answer.status == 200
    length = int(answer.headers["Inference-Header-Content-Length"])
    assert [o["shape"] for o in json.loads(answer.body[:length])["outputs"]] == [[1, 4, 5], [1, 3, 4, 5]]
    assert len(answer.body) == length + 4 * (20 + 60)


def test_every_dtype(server):
    half = struct.pack("<3e", 1.5, -2, 0)
    bfloat = struct.pack("<3H", 0x3f80, 0xc000, 0)
    json_inputs = {
        "ARGS[0]": ("BOOL", [3], [True, False, True]), "ARGS[1]": ("UINT8", [3], [0, 1, 254]),
        "ARGS[2]": ("INT8", [3], [-128, 0, 126]), "ARGS[3]": ("INT16", [3], [-32768, 0, 32766]),
        "ARGS[4]": ("INT32", [3], [-2**31, 0, 2**31 - 2]), "ARGS[5]": ("INT64", [3], [-2**63, 2**53, 2**63 - 2]),
        "ARGS[8]": ("FP32", [3], [0.1, -1e30, 3]), "ARGS[9]": ("FP64", [3], [0.1, 1e300, -2.5]),
        "ARGS[10]": ("FP32", [3, 2], [1, 2, 3, 4, 5, 6]), "ARGS[11]": ("UINT8", [3], [0, 0x38, 0x7e])}
    header = {"inputs": [{"name": n, "datatype": d, "shape": s, "data": v} for n, (d, s, v) in json_inputs.items()],
              "outputs": [{"name": f"RESULT[{i}]", "parameters": {"binary_data": i in (6, 7)}} for i in range(12)]}
    for name, datatype, data in (("ARGS[6]", "FP16", half), ("ARGS[7]", "BF16", bfloat)):
        header["inputs"].append({"name": name, "datatype": datatype, "shape": [3],
                                 "parameters": {"binary_data_size": len(data)}})
    text = json.dumps(header).encode()
    answer = server.post("/v2/models/several.dtypes/infer", text + half + bfloat,
                         {"Inference-Header-Content-Length": str(len(text))})
    assert answer.status == 200, answer.body
    length = int(answer.headers["Inference-Header-Content-Length"])
    outputs = json.loads(answer.body[:length])["outputs"]
    data = [o.get("data") for o in outputs]
    assert data[0] == [False, True, False]
    assert data[1] == [1, 2, 255]
    assert data[2] == [-127, 1, 127]
    assert data[3] == [-32767, 1, 32767]
    assert data[4] == [-2**31 + 1, 1, 2**31 - 1]
    assert data[5] == [-2**63 + 1, 2**53 + 1, 2**63 - 1]
    assert data[8] == [0.2, -2e30, 6.0]
    assert data[9] == [0.2, 2e300, -5.0]
    assert data[10] == [1, 2, 3, 4, 5, 6] and outputs[10]["shape"] == [3, 2] and outputs[10]["datatype"] == "FP32"
    assert data[11] == [0, 0x38, 0x7e] and outputs[11]["datatype"] == "UINT8"
    assert struct.unpack("<3e", answer.body[length:length + 6]) == (3.0, -4.0, 0.0)
    assert struct.unpack("<3H", answer.body[length + 6:]) == (0x4000, 0xc080, 0)


def test_channels_last_inputs_are_laid_out(server):
    values = [float(i) for i in range(120)]
    answer = server.infer("several.channels_last", {"ARGS[0]": ("FP32", [2, 3, 4, 5], values)}, ["RESULT[0]", "OUTPUT__1"])
    assert answer.status == 200, answer.body
    sums, doubled = answer.json["outputs"]
    assert doubled["data"] == [2 * v for v in values]
    assert sums["data"] == [sum(values[n * 60 + c * 20 + i] for c in range(3)) for n in range(2) for i in range(20)]


def test_batch_bounds(server):
    for rows, status in ((1, 200), (8, 200), (9, 400)):
        answer = server.infer("several.channels_last", {"ARGS[0]": ("FP32", [rows, 3, 4, 5], [0] * 60 * rows)})
        assert answer.status == status, answer.body
    assert "input 'ARGS[0]'" in answer.json["error"]
    assert "8" in answer.json["error"] and "9" in answer.json["error"]


def test_nan_and_infinity(server):
    body = '{"inputs":[{"name":"INPUT__0","shape":[1,4],"datatype":"FP32","data":[NaN,Infinity,-Infinity,0]}]}'
    data = server.post("/v2/models/fake/infer", body).json["outputs"][0]["data"]
    assert math.isnan(data[0]) and data[1] == math.inf and data[2] == -math.inf


@pytest.mark.parametrize("inputs, text", [
    ({"ARGS[0]": ("FP32", [1, 3, 4, 6], [0] * 72)}, "input 'ARGS[0]': expected size 5 at dimension 3, got 6"),
    ({"ARGS[0]": ("FP32", [3, 4, 5], [0] * 60)}, "input 'ARGS[0]': expected 4 dimensions, got 3"),
    ({"INPUT__0": ("FP64", [1, 3, 4, 5], [0] * 60)},
     "data-type is 'FP64', model 'several.channels_last' expects 'FP32'"),
    ({"arg0_1": ("FP32", [1, 3, 4, 5], [0] * 59)}, "has 60 elements, 'data' has 59"),
    ({"ARGS[0]": ("FP32", [2**61 + 1, 8], [0] * 8)}, "too many elements"),
    ({"other": ("FP32", [1, 4], [0] * 4)}, "unexpected inference input 'other'"),
    ({}, "expected 1 inputs but got 0"),
])
def test_bad_tensors(server, inputs, text):
    answer = server.infer("several.channels_last", inputs)
    assert answer.status == 400
    assert text in answer.json["error"]


@pytest.mark.parametrize("member, value", [("name", '"INPUT__0"'), ("shape", "[1,3,4,5]"), ("datatype", '"FP32"'),
                                           ("data", "[0]")])
def test_members_of_a_tensor_come_once(server, member, value):
    """A repeated member would be ambiguous."""
    tensor = json.dumps({"name": "INPUT__0", "shape": [1, 3, 4, 5], "datatype": "FP32", "data": [0] * 60})
    twice = tensor[:-1] + f',"{member}":{value}}}'
    answer = server.post("/v2/models/several.channels_last/infer", f'{{"inputs":[{twice}]}}')
    assert answer.status == 400 and answer.json["error"] == f"an input has '{member}' twice"
    outputs = '"outputs":[{"name":"RESULT[0]","name":"RESULT[1]"}]'
    answer = server.post("/v2/models/several.channels_last/infer", f'{{"inputs":[{tensor}],{outputs}}}')
    assert answer.status == 400 and answer.json["error"] == "an output has 'name' twice"


def test_errors_say_all_of_a_name_with_a_nul(server):
    answer = server.infer("several.channels_last", {"a\0b": ("FP32", [1], [0])})
    assert answer.status == 400
    assert "'a\\0b' for model 'several.channels_last'" in answer.json["error"]


def test_bad_values(server):
    for data, text in (([300], "out of range"), ([-1], "out of range"), ([1.5], "expected an integer"),
                       ([True], "expected an integer"), (["1"], "expected an integer"), ([None], "expected an integer")):
        answer = server.infer("several.dtypes", {"ARGS[1]": ("UINT8", [1], data)})
        assert answer.status == 400
        assert "'ARGS[1]'" in answer.json["error"] and text in answer.json["error"]


def test_unknown_models_paths_and_methods(server):
    answer = server.infer("nope", {})
    assert answer.status == 404
    assert answer.json == {"error": "Request for unknown model: 'nope' is not found"}
    answer = server.post("/v2/models/fake/versions/9/infer", {"inputs": []})
    assert answer.status == 404
    assert answer.json == {"error": "Request for unknown model: 'fake' version 9 is not found"}
    assert server.get("/v2/nope").json == {"error": "Not Found"}
    wrong = server.get("/v2/models/fake/infer")
    assert wrong.status == 405 and wrong.json == {"error": "Method Not Allowed"} and wrong.headers["Allow"] == "POST"
    assert server.post("/v2/health/live", b"").status == 405
    assert server.request("DELETE", "/v2").status == 405
    assert server.get("/metrics").status == 404


def test_errors_are_json_whatever_the_client_sends(server):
    answer = server.post("/v2/models/fake/infer", b'{"inputs":[{"name":"\xff"}]}')
    assert answer.status == 400 and "UTF-8" in answer.json["error"]
    answer = server.post("/v2/models/fake/infer", b'{"inputs":[{"name":"\\u0001<b>\\"","shape":[1],"datatype":"X","data":[]}]}')
    assert answer.status == 400 and "\\x01<b>\"" in answer.json["error"]


def test_a_failing_run_is_answered_and_leaves_the_model_usable(server):
    bad = server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [FAIL_INPUT, 0, 0, 0])})
    assert bad.status == 500 and bad.json["error"]
    assert server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [0, 0, 0, 0])}).status == 200
    checked = server.infer("several.checked", {"ARGS[0]": ("FP32", [3], [1, 2, 3]), "ARGS[1]": ("INT64", [2], [0, 7])})
    assert checked.status == 500
    assert "index out of bounds" in checked.json["error"]
    checked = server.infer("several.checked", {"ARGS[0]": ("FP32", [3], [1, 2, 3]), "ARGS[1]": ("INT64", [2], [0, 2])})
    assert checked.json["outputs"][0]["data"] == [1, 3]


CALL = {"args": [[[1, 2, 3], [4, 5, 6]], [[0, 2], {"shift": [0.5, 0, 0]}], 2],
        "kwargs": {"mask": [True, True, False], "scale": 2}}
RESULT = {"y": [[2.5, 4, 6], [8.5, 10, 12]], "picked": [[[2.5, 6], [8.5, 12]], None], "any": True, "n": 42.0}


def test_call(server):
    answer = server.post("/v1/models/several.calls:call", CALL)
    assert answer.status == 200, answer.body
    assert answer.json == RESULT
    assert server.post("/v1/models/several.calls/versions/1:call", CALL).json == RESULT
    assert server.post("/v1/models/several.calls/versions/2:call", CALL).status == 404
    dropped = json.loads(json.dumps(CALL))
    for value in (None, "two", 3.5):
        dropped["args"][2] = value
        assert server.post("/v1/models/several.calls:call", dropped).json == RESULT


def test_call_with_base64(server):
    answer = server.post("/v1/models/several.calls:call?tensors=base64", CALL).json
    assert answer["y"]["dtype"] == "float32" and answer["y"]["shape"] == [2, 3]
    assert struct.unpack("<6f", base64.b64decode(answer["y"]["base64"])) == (2.5, 4, 6, 8.5, 10, 12)
    assert answer["picked"][1] is None
    assert answer["any"] == {"dtype": "bool", "shape": [], "base64": "AQ=="}
    call = json.loads(json.dumps(CALL))
    call["args"][0] = {"dtype": "float32", "shape": [2, 3],
                       "base64": base64.b64encode(struct.pack("<6f", 1, 2, 3, 4, 5, 6)).decode()}
    assert server.post("/v1/models/several.calls:call", call).json == RESULT
    assert server.post("/v1/models/several.calls:call?tensors=xml", CALL).status == 400


def test_call_every_dtype(server):
    args = [[True, False, True], [1, 2, 3], [-1, 0, 1], [1, 2, 3], [1, 2, 3], [2**62, 0, 1], [0.5, 1, 2], [0.5, 1, 2],
            [0.1, 1, 2], [0.1, 1, 2], [[1, 2], [3, 4], [5, -6]], [0.5, 1.0, 448.0]]
    result = server.post("/v1/models/several.dtypes:call", {"args": args}).json
    assert result[0] == [False, True, False]
    assert result[5] == [2**62 + 1, 1, 2]
    assert result[6] == [1, 2, 4] and result[7] == [1, 2, 4]
    assert result[8] == [0.2, 2, 4]
    assert result[10] == [[1, 2], [3, 4], [5, -6]]
    assert result[11] == [0.5, 1, 448]


def test_call_errors_say_where(server):
    def error(change):
        call = json.loads(json.dumps(CALL))
        change(call)
        answer = server.post("/v1/models/several.calls:call", call)
        assert answer.status == 400
        return answer.json["error"]

    assert 'args[1][1]["shift"] is missing' in error(lambda c: c["args"][1][1].clear())
    assert 'kwargs has no key \'scales\'' in error(lambda c: c["kwargs"].update(scales=1))
    assert "args[1][0]" in error(lambda c: c["args"][1].__setitem__(0, [0.5, 1]))
    assert "rows of different length" in error(lambda c: c["args"].__setitem__(0, [[1, 2, 3], [4, 5]]))
    assert "input 'ARGS[0]'" in error(lambda c: c["args"].__setitem__(0, [[1, 2], [3, 4]]))


def test_page(server):
    text = server.get("/")
    assert text.headers["Content-Type"].startswith("text/plain")
    assert b"fake, version 1: ready" in text.body and b":call" in text.body
    html = server.get("/", headers={"Accept": "text/html,*/*"})
    assert html.headers["Content-Type"].startswith("text/html") and html.body.startswith(b"<!doctype html>")


def test_statistics_and_metrics_count_every_request(server):
    def state():
        stats = server.get("/v2/models/several.channels_last/stats").json["model_stats"][0]
        return stats, server.metrics()

    label = '{model="several.channels_last",version="1"}'
    stats, metrics = state()
    for rows in (1, 3, 8):
        assert server.infer("several.channels_last", {"ARGS[0]": ("FP32", [rows, 3, 4, 5], [0] * 60 * rows)}).status == 200
    assert server.infer("several.channels_last", {"ARGS[0]": ("FP32", [9, 3, 4, 5], [0] * 540)}).status == 400
    after, metrics_after = state()
    assert after["inference_count"] - stats["inference_count"] == 12
    assert after["execution_count"] - stats["execution_count"] == 3
    for key in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        assert after["inference_stats"][key]["count"] - stats["inference_stats"][key]["count"] == 3
    assert after["inference_stats"]["fail"]["count"] - stats["inference_stats"]["fail"]["count"] == 1
    assert after["inference_stats"]["success"]["ns"] > stats["inference_stats"]["success"]["ns"]
    assert after["last_inference"] > 1.7e12
    assert server.get("/v2/models/stats").json["model_stats"]

    def grown(name):
        return metrics_after[name] - metrics[name]

    assert grown("nv_inference_request_success" + label) == 3
    assert grown("nv_inference_count" + label) == 12
    assert grown("nv_inference_exec_count" + label) == 3
    assert grown('nv_inference_request_failure{model="several.channels_last",reason="OTHER",version="1"}') == 1
    assert grown("sconce_inference_request_duration_seconds_count" + label) == 3
    buckets = [v for k, v in metrics_after.items() if k.startswith("sconce_inference_request_duration_seconds_bucket")
               and 'model="several.channels_last"' in k]
    assert buckets == sorted(buckets) and buckets[-1] == metrics_after[
        "sconce_inference_request_duration_seconds_count" + label]
    assert metrics_after["nv_inference_pending_request_count" + label] == 0


def test_other_listeners(server):
    metrics = server.get("/metrics", port=server.ports["metrics"])
    assert metrics.headers["Content-Type"].startswith("text/plain")
    types = [line.split()[2:] for line in metrics.body.decode().splitlines() if line.startswith("# TYPE")]
    assert len({name for name, _ in types}) == len(types)
    admin = server.admin_port
    assert server.get("/v2/health/ready", port=admin).status == 200
    assert server.get("/v2/models/fake", port=admin).status == 200
    assert server.post("/v2/models/fake/infer", b"{}", port=server.ports["metrics"]).status == 404
    body = {"inputs": [{"name": "INPUT__0", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}
    there, here = server.post("/v2/models/fake/infer", body), server.post("/v2/models/fake/infer", body, port=admin)
    assert (here.status, here.json) == (200, there.json)


def test_metrics_by_route(server):
    def count(code, route):
        return server.metrics().get(f'sconce_http_responses_total{{code="{code}",route="{route}"}}', 0)

    infer = "/v2/models/{model}/infer"
    before = [count(200, infer), count(404, infer), count(404, "none"), count(405, "none")]
    good = {"INPUT__0": ("FP32", [1, 4], [0, 0, 0, 0])}
    for _ in range(3):
        assert server.infer("fake", good).status == 200
    assert server.infer("nope", good).status == 404
    assert server.get("/v2/nope").status == 404
    assert server.get("/v2/models/fake/infer").status == 405
    after = [count(200, infer), count(404, infer), count(404, "none"), count(405, "none")]
    assert [b - a for a, b in zip(before, after)] == [3, 1, 1, 1]
    metrics = server.metrics()
    assert metrics["sconce_http_inflight_body_bytes"] == 0 and metrics["sconce_trace_records_dropped_total"] == 0
    assert 0 <= metrics["nv_cpu_utilization"] <= 1
    assert 0 < metrics["nv_cpu_memory_used_bytes"] < metrics["nv_cpu_memory_total_bytes"]
    last = metrics['sconce_model_last_success_timestamp_seconds{model="fake",version="1"}']
    assert abs(last - time.time()) < 60
