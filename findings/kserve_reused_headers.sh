#!/usr/bin/env bash
# KServe's REST client writes the length of one request's JSON into the caller's dictionary of headers, and the next request
# sends it again.
#
# A good guess is that `infer(..., headers=...)` only reads what it is given, so that one dictionary (an Authorization
# header, most often) serves all calls. A request with binary tensors puts `inference-header-content-length` and
# `content-type` into that dictionary itself. A later JSON request with the same dictionary keeps both: its body is JSON
# from end to end, but the headers say octet-stream and give the length of the first request's JSON. A longer body then
# looks like JSON that is cut off with binary data behind it, a shorter one like JSON that is incomplete. A server sees
# malformed requests of a correct program, and only from clients that mix binary and JSON.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" -q install kserve==0.21.0 numpy==2.4.6
cd "$scratch"
"$scratch/venv/bin/python" - <<'PY'
import asyncio
import sys
from importlib.metadata import version

import httpx
import numpy as np
from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig

print("kserve", version("kserve"))
names = ("content-type", "content-length", "inference-header-content-length")
seen = []


def server(request):
    seen.append({name: request.headers.get(name) for name in names})
    output = {"name": "y", "datatype": "FP32", "shape": [1], "data": [0.0]}
    return httpx.Response(200, json={"model_name": "m", "outputs": [output]})


def request(count, binary):
    tensor = InferInput("x", [count], "FP32")
    tensor.set_data_from_numpy(np.ones(count, np.float32), binary_data=binary)
    return InferRequest("m", [tensor], request_id="7")


async def send(headers):
    config = RESTConfig(protocol="v2", transport=httpx.MockTransport(server))
    async with InferenceRESTClient(config) as client:
        for count, binary in ((2, True), (2, False), (64, False)):
            await client.infer("http://localhost", request(count, binary), model_name="m", headers=headers)


headers = {"authorization": "Bearer token"}
asyncio.run(send(headers))
asyncio.run(send(None))
for what, sent in zip(("binary", "short JSON", "long JSON") * 2, seen):
    print(f"{what}: {sent}")
print("the caller's dictionary afterwards:", headers)
stale = seen[0]["inference-header-content-length"]
bodies = [int(sent["content-length"]) for sent in seen]
sys.exit(
    not (
        stale is not None
        and bodies[1] < int(stale) < bodies[2]
        and all(sent["inference-header-content-length"] == stale for sent in seen[:4])
        and all(sent["content-type"] == "application/octet-stream" for sent in seen[:4])
        and all(sent["inference-header-content-length"] is None for sent in seen[4:])
        and all(sent["content-type"] == "application/json" for sent in seen[4:])
        and headers["inference-header-content-length"] == stale
    )
)
PY
