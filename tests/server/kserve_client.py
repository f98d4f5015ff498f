#!/usr/bin/env python3
"""KServe's own Python client against `sconce serve`, over REST and gRPC: kserve_client.py SCONCE

Needs kserve in the Python that runs it (pip install kserve; it was tried with 0.21). Serves the digits example and asks it
through every method of both clients; with --rest and --grpc, asks a server of it that runs. Ends with "N passed, N failed".
"""
import argparse
import asyncio
import pathlib
import re
import subprocess
import sys
import threading

if __name__ == "__main__":
    PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    PARSER.add_argument("program", metavar="SCONCE", nargs="?")
    PARSER.add_argument("--rest", type=int, metavar="PORT", help="of a server on this machine")
    PARSER.add_argument("--grpc", type=int, metavar="PORT", help="of the same")
    OPTIONS = PARSER.parse_args()
    del sys.argv[1:]  # kserve reads them when it is imported

import numpy as np
from kserve import InferInput, InferRequest, InferResponse
from kserve.inference_client import InferenceGRPCClient, InferenceRESTClient, RESTConfig

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = []


def check(good, what, told=""):
    RESULTS.append(bool(good))
    print(f"{'ok  ' if good else 'FAIL'} {what} {'' if good else told}", flush=True)


def request(image, raw):
    tensor = InferInput("INPUT__0", list(image.shape), "FP32")
    tensor.set_data_from_numpy(image, binary_data=raw)
    return InferRequest(model_name="digits", infer_inputs=[tensor], request_id="r1")


def right(answer, expected):
    return isinstance(answer, InferResponse) and any(
        np.array_equal(np.asarray(o.as_numpy()).ravel(), expected) for o in answer.outputs)


async def over_grpc(port, image, expected):
    client = InferenceGRPCClient(url=f"127.0.0.1:{port}")
    check(await client.is_server_live() and await client.is_server_ready(), "gRPC: live and ready")
    check(await client.is_model_ready("digits"), "gRPC: the model is ready")
    for raw in (True, False):
        check(right(await client.infer(request(image, raw)), expected), f"gRPC: infer, {'raw' if raw else 'typed'} contents")
    many = await asyncio.gather(*(client.infer(request(image, True)) for _ in range(64)))
    check(all(right(answer, expected) for answer in many), "gRPC: 64 at once")
    try:
        await client.infer(InferRequest(model_name="none", infer_inputs=request(image, True).inputs))
        check(False, "gRPC: an unknown model is refused")
    except Exception as problem:  # noqa: BLE001, the client's own types differ between versions
        check("NOT_FOUND" in str(problem), "gRPC: an unknown model is refused", problem)
    await client.close()


async def over_rest(port, image, expected):
    client, base = InferenceRESTClient(RESTConfig(protocol="v2")), f"http://127.0.0.1:{port}"
    check(await client.is_server_live(base) and await client.is_server_ready(base), "REST: live and ready")
    check(await client.is_model_ready(base, "digits"), "REST: the model is ready")
    for raw in (True, False):
        answer = await client.infer(base, request(image, raw), model_name="digits")
        check(right(answer, expected), f"REST: infer, {'binary' if raw else 'JSON'} tensors")
    await client.close()
    client = InferenceRESTClient(RESTConfig(protocol="v1"))
    check(await client.is_model_ready(base, "digits"), "REST, v1: the model is ready")
    answer = await client.infer(base, {"instances": image.tolist()}, model_name="digits")
    check(len(answer["predictions"]) == 1, "REST, v1: predict", answer)
    await client.close()


def ask(rest, grpc):
    numbers = [float(n) for n in re.findall(r"[-\d.]+", (ROOT / "examples/digits/request.json").read_text())]
    image, expected = np.array(numbers, np.float32).reshape(1, 8, 8), np.array([9])
    asyncio.run(over_rest(rest, image, expected))
    asyncio.run(over_grpc(grpc, image, expected))


def serve_and_ask(program):
    server = subprocess.Popen([program, "serve", ROOT / "examples/digits/digits.pt2", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
                               "--admin", "off", "--metrics", "off", "--drain-grace", "0"], stderr=subprocess.PIPE, text=True)
    ports = {}
    for line in server.stderr:
        for what in ("inference on", "inference by gRPC on"):
            if found := re.search(rf"{what} \S*?127\.0\.0\.1:(\d+)", line):
                ports[what] = int(found[1])
        if len(ports) == 2:
            break
    threading.Thread(target=server.stderr.read, daemon=True).start()
    try:
        ask(ports["inference on"], ports["inference by gRPC on"])
    finally:
        server.terminate()
        server.wait(30)


def main(options):
    if options.rest and options.grpc:
        ask(options.rest, options.grpc)
    elif options.program:
        serve_and_ask(options.program)
    else:
        PARSER.error("neither SCONCE nor --rest and --grpc")
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return not all(RESULTS)


if __name__ == "__main__":
    sys.exit(main(OPTIONS))
