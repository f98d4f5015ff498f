"""examples/ray/protocol.py: requests and answers of the Open Inference Protocol, without Ray and without the runtime."""
import json
import pathlib
import sys
import types

import pytest

np = pytest.importorskip("numpy")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/ray"))

from protocol import BadRequest, Protocol, name_of  # noqa: E402


def tensor(path, dtype="float32", sizes=(None, 2), none=False):
    dims = tuple(types.SimpleNamespace(min=size or 0, is_static=size is not None) for size in sizes)
    return types.SimpleNamespace(path=path, dtype=dtype, dims=dims, none=none)


def node(kind, *children, keys=()):
    return types.SimpleNamespace(kind=kind, children=children, keys=keys)


LEAF = node("leaf")
SIGNATURE = types.SimpleNamespace(
    inputs=(tensor("args[0]"), tensor("args[1]['mask']", "bool"), tensor("kwargs['scale']", "float64", ())),
    outputs=(tensor("result['a'][0]", "int64"), tensor("result['a'][1]"), tensor("result['none']", None, (), none=True)),
    args=node("tuple", LEAF, node("dict", LEAF, node("none"), keys=("mask", "rest"))), kwargs=node("dict", LEAF, keys=("scale",)))
PROTOCOL = Protocol("m", SIGNATURE)
RESULT = {"a": (np.arange(4).reshape(2, 2), np.ones((1, 2), np.float32)), "none": None}
INPUTS = [{"name": "ARGS[0]", "datatype": "FP32", "shape": [2, 2], "data": [1, 2, 3, 4.5]},
          {"name": "ARGS[1][mask]", "datatype": "BOOL", "shape": [1, 2], "data": [True, False]},
          {"name": "KWARGS[scale]", "datatype": "FP64", "shape": [], "data": [0.5]}]


def test_names():
    assert name_of("args[0]['image'][2]") == "ARGS[0][image][2]" and name_of("result") == "RESULT"
    assert PROTOCOL.metadata()["inputs"][1] == {"name": "ARGS[1][mask]", "datatype": "BOOL", "shape": [-1, 2]}
    assert [one["name"] for one in PROTOCOL.metadata()["outputs"]] == ["RESULT[a][0]", "RESULT[a][1]"]


def test_a_request_becomes_a_call_and_its_result_an_answer():
    (args, kwargs), document = PROTOCOL.arguments(json.dumps({"id": "7", "inputs": INPUTS}).encode())
    assert args[0].tolist() == [[1, 2], [3, 4.5]] and args[0].dtype == np.float32
    assert args[1]["mask"].tolist() == [[True, False]] and args[1]["rest"] is None
    assert kwargs["scale"].shape == () and kwargs["scale"] == 0.5
    body, length = PROTOCOL.answer(RESULT, document, {"weight_version": "v2"})
    answer = json.loads(body)
    assert length is None and answer["id"] == "7" and answer["parameters"] == {"weight_version": "v2"}
    assert answer["outputs"] == [{"name": "RESULT[a][0]", "datatype": "INT64", "shape": [2, 2], "data": [0, 1, 2, 3]},
                                 {"name": "RESULT[a][1]", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 1.0]}]


def test_tensors_in_binary_form():
    image = np.array([[1, 2]], np.float32)
    inputs = [{"name": "ARGS[0]", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}, *INPUTS[1:]]
    text = json.dumps({"inputs": inputs, "outputs": [{"name": "RESULT[a][1]", "parameters": {"binary_data": True}},
                                                     {"name": "RESULT[a][0]"}]}).encode()
    (args, _), document = PROTOCOL.arguments(text + image.tobytes(), len(text))
    assert args[0].tolist() == [[1, 2]] and not args[0].flags.owndata
    body, length = PROTOCOL.answer(RESULT, document, {})
    outputs = json.loads(body[:length])["outputs"]
    assert "data" in outputs[0] and outputs[1]["parameters"] == {"binary_data_size": 8}
    assert body[length:] == RESULT["a"][1].tobytes()


def change(at, **words):
    return {"inputs": [{**one, **words} if i == at else one for i, one in enumerate(INPUTS)]}


@pytest.mark.parametrize(("document", "words"), [
    ([], "no request"), ({}, "inputs"), ({"inputs": None}, "no request"), ({"inputs": INPUTS[:2]}, "missing inputs: KWARGS[scale]"),
    (change(0, name="ARGS[7]"), "no input ARGS[7]; there are ARGS[0], "), (change(0, datatype="INT8"), "datatype INT8, expected FP32"),
    (change(0, shape=[2, -2]), "shape [2, -2]"), (change(0, shape=[2, 3]), "reshape"), (change(0, shape=["2"]), "shape ['2']"),
    (change(0, data=["x"] * 4), "no request"), (change(0, data=None), "no request"),
    (change(0, parameters={"binary_data_size": 16}), "did not come"), (change(0, parameters={"binary_data_size": -1}), "did not come"),
    (change(0, parameters=[1]), "no request")])
def test_bad_requests_say_what_is_wrong(document, words):
    with pytest.raises(BadRequest) as error:
        PROTOCOL.arguments(json.dumps(document).encode())
    assert words in str(error.value), str(error.value)


def test_what_is_no_json():
    for body in (b"", b"\xff", b"{", b"[" * 100_000):
        with pytest.raises(BadRequest, match="no request of the protocol"):
            PROTOCOL.arguments(body)


def test_an_output_that_there_is_not():
    with pytest.raises(BadRequest, match="no outputs RESULT.b."):
        PROTOCOL.answer(RESULT, {"outputs": [{"name": "RESULT[b]"}]}, {})


def test_models_that_http_cannot_serve():
    with pytest.raises(ValueError, match="bfloat16 is not for HTTP"):
        Protocol("m", types.SimpleNamespace(inputs=(tensor("args[0]", "bfloat16"),), outputs=(), args=None, kwargs=None))
    built = types.SimpleNamespace(inputs=(tensor("args[0].x"),), outputs=(), kwargs=node("dict"), args=node("tuple", node("dataclass", LEAF)))
    with pytest.raises(BadRequest, match="a dataclass is not for HTTP"):
        Protocol("m", built).arguments(json.dumps({"inputs": [{**INPUTS[0], "name": "ARGS[0].x"}]}).encode())
