#!/usr/bin/env python3
"""A pipeline of two models against two requests one after the other, in one run; also Triton's ensemble of two models of its
Python backend against two requests to these, where `peers.py --only triton` works.

Each rate is of a client's whole answers: the two requests count as one. More than 1 means that the pipeline is faster.

    ninja -C build/release http_bench fake_models && tests/bench/http/pipelines.py [--build DIR] [--only sconce,triton]
"""
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

from peers import FEATURES, Server, environment, triton
from run import arguments, request_bytes

MODELS = ("first", "second")
PIPELINE = {"inputs": ["INPUT__0"], "outputs": ["OUTPUT__0"], "steps": [
    {"model": "first", "inputs": {"INPUT__0": "INPUT__0"}, "outputs": {"OUTPUT__0": "between"}},
    {"model": "second", "inputs": {"INPUT__0": "between"}, "outputs": {"OUTPUT__0": "OUTPUT__0"}}]}
ENSEMBLE = f"""
platform: "ensemble"
max_batch_size: 64
input [{{ name: "INPUT__0", data_type: TYPE_FP32, dims: [{FEATURES}] }}]
output [{{ name: "OUTPUT__0", data_type: TYPE_FP32, dims: [{FEATURES}] }}]
ensemble_scheduling {{ step [
  {{ model_name: "first" model_version: -1
    input_map {{ key: "INPUT__0" value: "INPUT__0" }} output_map {{ key: "OUTPUT__0" value: "between" }} }},
  {{ model_name: "second" model_version: -1
    input_map {{ key: "INPUT__0" value: "between" }} output_map {{ key: "OUTPUT__0" value: "OUTPUT__0" }} }} ] }}
"""


def sconce(build, folder, port, flags):
    (folder / "both.pipeline.json").write_text(json.dumps(PIPELINE))
    package = build / "tests/fake_model/fake_batched.pt2"
    return [build / "server/sconce", "serve", *[f"{name}={package}" for name in MODELS], folder / "both.pipeline.json",
            "--http", f"127.0.0.1:{port}", "--metrics", "off", "--admin", "off", "--drain-grace", "0", *flags], {}


def ensemble(build, folder, port):
    command, env = triton(environment(build, "triton"), folder, port)
    models = folder / "triton"
    for name in MODELS:
        shutil.copytree(models / "model", models / name)
    shutil.rmtree(models / "model")
    (models / "both/1").mkdir(parents=True)
    (models / "both/config.pbtxt").write_text(ENSEMBLE)
    return command, env


def main():
    parser = arguments(__doc__, seconds=2, rounds=3)
    parser.add_argument("--connections", default="1,8,64")
    parser.add_argument("--only", default="sconce,lanes,triton")
    args = parser.parse_args()
    connections = [int(c) for c in args.connections.split(",")]
    port = 18900 + os.getpid() % 90
    print(f"{'':8} {'connections':>11} {'one request/s':>14} {'pipeline/s':>11} {'pipeline / two requests':>24}")
    for number, name in enumerate(args.only.split(",")):
        with tempfile.TemporaryDirectory() as place:
            folder, at = pathlib.Path(place), port + 100 * number
            if name == "sconce":
                command, env = sconce(args.build, folder, at, [])
            elif name == "lanes":
                command, env = sconce(args.build, folder, at, ["--inline-below", "0"])
            elif name == "triton":
                command, env = ensemble(args.build, folder, at)
            else:
                sys.exit(f"no such server: {name}")
            rates = {model: {count: [] for count in connections} for model in ("first", "both")}
            for _ in range(args.rounds):
                for model in rates:
                    server = Server(name, command, at, f"/v2/models/{model}/ready", request_bytes(model, 1, FEATURES), env=env)
                    for count, result in server.measure(args.build, connections, args.seconds).items():
                        if count in rates[model]:
                            rates[model][count].append(result["requests_per_second"])
            for count in connections:
                one, both = (statistics.median(rates[model][count]) for model in ("first", "both"))
                print(f"{name:8} {count:11} {one:14.0f} {both:11.0f} {both / (one / 2):24.2f}")


if __name__ == "__main__":
    main()
