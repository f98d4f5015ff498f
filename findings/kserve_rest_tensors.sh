#!/usr/bin/env bash
# KServe's Python client writes infinity as null, sends an empty binary tensor as `"data": null`, and cannot read some valid
# binary tensors of an answer.
#
# A good guess is that its binary form carries any bytes, and that its JSON form refuses the values that JSON does not have.
# Neither holds:
# - JSON: NaN, infinity and -infinity all become null. The server's own types read null as NaN, so an infinity (a usual mask
#   of attention) arrives as NaN, and no side reports an error.
# - Binary, empty: the client asks whether the bytes are truthy. No bytes are not, so the tensor gets a member `data` that
#   is null beside `binary_data_size` of 0. If no other tensor has bytes, the request is plain JSON, and KServe's own
#   request type refuses it.
# - Binary, answer: the client turns each tensor into a list as if it came as JSON. BYTES that are not UTF-8 raise an error,
#   with the advice to use binary data. BF16, which the protocol asks to be sent raw, raises an error too.
# So a server may not take null for a number, must accept `data: null` together with a size of 0, and cannot rely on this
# client for BF16 or for arbitrary bytes.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" -q install kserve==0.21.0 numpy==2.4.6 orjson==3.13.0
cd "$scratch"
"$scratch/venv/bin/python" - <<'PY'
import json
import sys
from importlib.metadata import version

import numpy as np
import orjson
from kserve import InferInput, InferRequest, InferResponse
from kserve.protocol.rest.v2_datamodels import InferenceRequest

print("kserve", version("kserve"))


def request_of(values, datatype, binary):
    tensor = InferInput("x", list(values.shape), datatype)
    tensor.set_data_from_numpy(values, binary_data=binary)
    return InferRequest("m", [tensor]).to_rest()


def read_by_server(document):
    """Reads a JSON request as KServe's server does: returns its values, or the class of the error."""
    try:
        request = InferRequest.from_inference_request(InferenceRequest(**orjson.loads(orjson.dumps(document))), "m")
    except ValueError as error:
        return type(error).__name__
    return request.inputs[0].as_numpy().tolist()


def read_by_client(datatype, shape, content):
    """Reads an answer with one binary tensor as the client does: returns the answer, or the class and text of the error."""
    tensor = {"name": "y", "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": len(content)}}
    head = json.dumps({"model_name": "m", "outputs": [tensor]}).encode()
    try:
        return InferResponse.from_bytes(head + content, len(head))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


special = np.array([1, np.inf, -np.inf, np.nan], np.float32)
document, _ = request_of(special, "FP32", binary=False)
sent = json.loads(orjson.dumps(document))["inputs"][0]["data"]
arrived = read_by_server(document)
print("JSON of", special.tolist(), "is", sent, "and arrives as", arrived)

empty, length = request_of(np.zeros((0, 4), np.float32), "FP32", binary=True)
print("an empty binary tensor:", {key: empty["inputs"][0].get(key) for key in ("data", "parameters")}, "header length:", length)
refused = read_by_server(empty)
print("KServe's own request type answers:", refused)

text = read_by_client("BYTES", [1], b"\x02\x00\x00\x00" + "é".encode())
octets = read_by_client("BYTES", [1], b"\x02\x00\x00\x00\xff\xfe")
half = read_by_client("FP16", [1], b"\x00\x3c")
brain = read_by_client("BF16", [1], b"\x80\x3f")
print("answer with UTF-8 text:", text.outputs[0].data, "with FP16:", half.outputs[0].data)
print("answer with the bytes ff fe:", octets)
print("answer with BF16:", brain)
sys.exit(
    not (
        sent == [1.0, None, None, None]
        and arrived[0] == 1.0
        and all(np.isnan(arrived[1:]))
        and empty["inputs"][0]["data"] is None
        and empty["inputs"][0]["parameters"] == {"binary_data_size": 0}
        and length is None
        and refused == "ValidationError"
        and text.outputs[0].data == ["é"]
        and half.outputs[0].data == [1.0]
        and str(octets).startswith("InferenceError") and "use binary_data=True" in str(octets)
        and str(brain).startswith("InvalidInput")
    )
)
PY
