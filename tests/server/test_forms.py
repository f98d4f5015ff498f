"""The other forms of a request: generate, and :predict of KServe and TensorFlow Serving."""
import json

import pytest

IMAGE = [float(i) for i in range(60)]
NESTED = [[[IMAGE[c * 20 + h * 5:c * 20 + h * 5 + 5] for h in range(4)] for c in range(3)]]
CALLS = {"ARGS[0]": [[1, 2, 3], [4, 5, 6]], "ARGS[1][0]": [0, 2], "ARGS[1][1][shift]": [0.5, 0, 0], "KWARGS[scale]": 2,
         "KWARGS[mask]": [True, True, False]}
CHECKED = {"ARGS[0]": [1, 2, 3], "ARGS[1]": [0, 2]}
LAST = "several.channels_last"


@pytest.mark.parametrize("value", [IMAGE, NESTED])
def test_generate(server, value):
    request = {"INPUT__0": value, "id": "g1", "temperature": 0.5, "priority": 1}
    answer = server.post(f"/v2/models/{LAST}/generate", request)
    assert answer.status == 200, answer.body
    body = answer.json
    assert list(body) == ["id", "model_name", "model_version", "RESULT[0]", "RESULT[1]"]
    assert body["id"] == "g1" and body["model_name"] == LAST and body["model_version"] == "1"
    assert body["RESULT[1]"] == [2 * v for v in IMAGE]
    nested = {"parameters": {"INPUT__0": value, "timeout": 5000000}}
    assert server.post(f"/v2/models/{LAST}/versions/1/generate", nested).json["RESULT[1]"] == body["RESULT[1]"]


def test_generate_of_several_rows(server):
    two = server.post(f"/v2/models/{LAST}/generate", {"INPUT__0": NESTED * 2}).json
    assert two["RESULT[1]"] == [2 * v for v in IMAGE] * 2


def test_generate_scalars(server):
    answer = server.post("/v2/models/several.calls/generate", CALLS).json
    assert answer["RESULT[any]"] is True and answer["RESULT[n]"] == 42.0
    assert answer["RESULT[y]"] == [2.5, 4, 6, 8.5, 10, 12]


def test_generate_stream(server):
    answer = server.post("/v2/models/several.checked/generate_stream", CHECKED)
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert answer.body.startswith(b"data: {") and answer.body.endswith(b"}\n\n")
    assert [1, 3] in json.loads(answer.body[6:]).values()


@pytest.mark.parametrize("model, body, text", [
    (LAST, {}, "missing"),
    (LAST, [], "must be an object"),
    (LAST, {"INPUT__0": "text"}, "INPUT"),
    (LAST, {"INPUT__0": IMAGE, "arg0_1": IMAGE}, "twice"),
    (LAST, {"INPUT__0": [[1, 2], [3]]}, "rows of different length"),
    (LAST, {"INPUT__0": IMAGE, "triton_x": 1}, "reserved"),
    (LAST, {"INPUT__0": IMAGE, "timeout": -1}, "timeout"),
    (LAST, {"INPUT__0": IMAGE[1:]}, "59 elements"),
    (LAST, {"INPUT__0": NESTED[0]}, "3 dimensions"),
    ("several.calls", {**CALLS, "ARGS[1][0]": [0.5, 1]}, "expected an integer"),
    ("fake", {"INPUT__0": [1, 2, 3, 4]}, "does not record the dtype"),
])
def test_bad_generate(server, model, body, text):
    answer = server.post(f"/v2/models/{model}/generate", body)
    assert answer.status == 400
    assert text in answer.json["error"] or text == "INPUT", answer.body


def test_predict_rows(server):
    rows = server.post(f"/v1/models/{LAST}:predict", {"instances": NESTED * 3}).json["predictions"]
    assert len(rows) == 3 and rows[2]["RESULT[1]"][0][0] == [0, 2, 4, 6, 8]
    assert list(rows[0]) == ["RESULT[0]", "RESULT[1]"] and rows[0] == rows[1]
    named = {"signature_name": "serving_default", "instances": [{"INPUT__0": NESTED[0]}] * 3}
    assert server.post(f"/v1/models/{LAST}/versions/1:predict", named).json["predictions"] == rows


def test_predict_columns(server):
    outputs = server.post(f"/v1/models/{LAST}:predict", {"inputs": NESTED * 2}).json["outputs"]
    assert list(outputs) == ["RESULT[0]", "RESULT[1]"] and outputs["RESULT[1]"][1][0][0] == [0, 2, 4, 6, 8]
    assert server.post(f"/v1/models/{LAST}:predict", {"inputs": {"ARGS[0]": NESTED * 2}}).json["outputs"] == outputs
    outputs = server.post("/v1/models/several.calls:predict", {"inputs": CALLS}).json["outputs"]
    assert outputs["RESULT[any]"] is True and outputs["RESULT[y]"] == [[2.5, 4, 6], [8.5, 10, 12]]
    assert server.post("/v1/models/several.checked:predict", {"inputs": CHECKED}).json == {"outputs": [1, 3]}


@pytest.mark.parametrize("model, body, text", [
    (LAST, {}, "neither 'instances' nor 'inputs'"),
    (LAST, {"instances": {}}, "must be an array"),
    (LAST, {"instances": NESTED, "inputs": []}, "besides"),
    (LAST, {"instances": [NESTED[0], {"INPUT__0": NESTED[0]}]}, "values and objects"),
    (LAST, {"instances": [{"INPUT__0": NESTED[0]}, NESTED[0]]}, "values and objects"),
    (LAST, {"instances": [{"INPUT__0": NESTED[0]}, {"INPUT__0": [1]}]}, "different shapes"),
    (LAST, {"instances": [{"INPUT__0": NESTED[0]}, {}]}, "instance 1 has no input"),
    (LAST, {"instances": [{"other": NESTED[0]}]}, "unexpected inference input 'other'"),
    (LAST, {"instances": [{"INPUT__0": {"b64": "AAAA"}}]}, "input 'ARGS[0]'"),
    (LAST, {"inputs": NESTED, "signature_name": "other"}, "unknown signature"),
    ("several.calls", {"instances": [[1, 2]]}, "must be by name"),
    ("several.calls", {"instances": [CALLS]}, "dimensions"),
    ("fake", {"instances": [[1, 2, 3, 4]]}, "does not record the dtype"),
])
def test_bad_predict(server, model, body, text):
    answer = server.post(f"/v1/models/{model}:predict", body)
    assert answer.status == 400 and text in answer.json["error"], answer.body


def test_v1_models(server):
    assert "fake" in server.get("/v1/models").json["models"]
    for path in ("/v1/models/fake", "/v1/models/fake/versions/1"):
        assert server.get(path).json == {
            "name": "fake", "ready": True,
            "model_version_status": [{"version": "1", "state": "AVAILABLE",
                                      "status": {"error_code": "OK", "error_message": ""}}]}
    assert server.get("/v1/models/nope").status == 404
    assert server.get("/v1/models/fake/versions/2").status == 404
    meta = server.get("/v1/models/several.calls/metadata").json
    assert meta["model_spec"] == {"name": "several.calls", "signature_name": "", "version": "1"}
    signature = meta["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["inputs"]["ARGS[0]"]["dtype"] == "DT_FLOAT"
    assert [d["size"] for d in signature["inputs"]["ARGS[0]"]["tensor_shape"]["dim"]] == ["2", "3"]
    wrong = server.get("/v1/models/fake:predict")
    assert wrong.status == 405 and wrong.headers["Allow"] == "POST"
