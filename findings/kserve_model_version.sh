#!/usr/bin/env bash
# KServe's InferRequest asks for a model version by gRPC and for any version by REST, and the answer's version is dropped by
# REST.
#
# A good guess is that one InferRequest means the same in both protocols: the Open Inference Protocol has the version in the
# URL (/v2/models/NAME/versions/VERSION/infer) and in ModelInferRequest, and both answers name the version that ran. The
# gRPC form has it. The REST client posts to /v2/models/NAME/infer whatever model_version says and does not write it into
# the body, so the server chooses. InferResponse then has None as its version even if the server named one, so the caller
# cannot see which version answered. The version as part of model_name ("m/versions/3") gives the right URL by REST, and is
# a wrong name by gRPC.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" -q install kserve==0.21.0 numpy==2.4.6
cd "$scratch"
"$scratch/venv/bin/python" - <<'PY'
import asyncio
import json
import sys
from importlib.metadata import version

import httpx
import numpy as np
from kserve import InferenceRESTClient, InferInput, InferRequest, InferResponse, RESTConfig
from kserve.protocol.grpc.grpc_predict_v2_pb2 import ModelInferResponse

print("kserve", version("kserve"))
seen = []


def server(request):
    seen.append((request.url.path, sorted(json.loads(request.content))))
    output = {"name": "y", "datatype": "FP32", "shape": [1], "data": [0.0]}
    return httpx.Response(200, json={"model_name": "m", "model_version": "3", "outputs": [output]})


def request():
    tensor = InferInput("x", [1], "FP32")
    tensor.set_data_from_numpy(np.ones(1, np.float32), binary_data=False)
    return InferRequest("m", [tensor], request_id="7", model_version="3")


async def send(*names):
    async with InferenceRESTClient(RESTConfig(protocol="v2", transport=httpx.MockTransport(server))) as client:
        return [await client.infer("http://localhost", request(), model_name=name) for name in names]


answers = asyncio.run(send("m", "m/versions/3"))
by_grpc = request().to_grpc().model_version
read_by_grpc = InferResponse.from_grpc(ModelInferResponse(model_name="m", model_version="3")).model_version
for (path, members), answer in zip(seen, answers):
    print(f"REST: POST {path} with members {members}; the answer's version: {answer.model_version}")
print(f"gRPC: the request's version: {by_grpc}, the answer's version: {read_by_grpc}")
sys.exit(
    not (
        seen == [(path, ["id", "inputs", "model_name"]) for path in ("/v2/models/m/infer", "/v2/models/m/versions/3/infer")]
        and [answer.model_version for answer in answers] == [None, None]
        and (by_grpc, read_by_grpc) == ("3", "3")
    )
)
PY
