#!/usr/bin/env bash
# Triton's and KServe's Python clients have one form of infinity in JSON that both read rightly: a string in place of a number.
#
# A good guess is that clients of one protocol write special values alike, or that the bare tokens of JavaScript (NaN,
# Infinity), which Python's json and Triton's client write, are what a server should send. KServe's parser refuses those
# tokens, in answers and in requests, so a JSON request of Triton's client with an infinity in it fails at a KServe server.
# null, which KServe's client writes, is NaN to both readers: infinity loses its value and its sign. A number too large, such
# as 1e999, is refused by both. "Infinity", "-Infinity" and "NaN" as strings in the list of numbers are read as the values
# by both, because both hand the list to NumPy, which parses strings for float32 and float64; no protocol text has them.
# Only strings suit both clients in a JSON answer that may hold infinities, and a server meets tokens and null in requests.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" -q install "tritonclient[http]==2.73.0" kserve==0.21.0 numpy==2.4.6
cd "$scratch"
"$scratch/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import numpy as np
from kserve import InferRequest, InferResponse
from tritonclient.http import InferenceServerClient, InferInput

print("tritonclient", version("tritonclient"), "kserve", version("kserve"))


def by_triton(body):
    return InferenceServerClient.parse_response_body(body).as_numpy("y")


def by_kserve(body):
    return InferResponse.from_bytes(body, len(body)).outputs[0].as_numpy()


def read(reader, datatype, form):
    """The value that the client reads from this form in an answer, or "refused"."""
    output = f'{{"name":"y","datatype":"{datatype}","shape":[2],"data":[1.5,{form}]}}'
    try:
        return str(reader(f'{{"model_name":"m","outputs":[{output}]}}'.encode())[1])
    except Exception:
        return "refused"


expected = {
    "Infinity": ("inf", "refused"),
    "-Infinity": ("-inf", "refused"),
    "NaN": ("nan", "refused"),
    "null": ("nan", "nan"),
    "1e999": ("refused", "refused"),
    '"Infinity"': ("inf", "inf"),
    '"-Infinity"': ("-inf", "-inf"),
    '"NaN"': ("nan", "nan"),
}
failed = False
for datatype in ("FP32", "FP64"):
    for form, readings in expected.items():
        seen = (read(by_triton, datatype, form), read(by_kserve, datatype, form))
        print(f"{datatype} {form}: Triton's client reads {seen[0]}, KServe's {seen[1]}")
        failed |= seen != readings

values = InferInput("x", [2], "FP32")
values.set_data_from_numpy(np.array([1, np.inf], np.float32), binary_data=False)
request, _ = InferenceServerClient.generate_request_body([values])
try:
    crossed = str(InferRequest.from_bytes(request, len(request), "m").inputs[0].as_numpy())
except Exception as error:
    crossed = type(error).__name__
print(f"Triton's client sends {request.decode()}; KServe's server: {crossed}")
sys.exit(failed or b'"data":[1.0,Infinity]' not in request or crossed != "InvalidInput")
PY
