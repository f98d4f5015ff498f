#!/usr/bin/env python3
"""Compares a Ray Serve replica that runs a package with Sconce (examples/ray) with one that runs it with PyTorch.

    ninja -C build/release sconce_python_package
    python tests/bench/fleet/ray_serve.py [--build build/release] [--seconds 3] [--rounds 3]

The Python that runs it has torch, NumPy and Ray Serve, and is of the version that the package is built for. The model is
the digits example. Both deployments have one replica, one thread, the same code for HTTP and the same settings of Ray; they
are deployed and measured by turns, and the best of each counts, except memory, of which the last counts.

It prints requests/s and the median latency through a handle and over HTTP (JSON), the memory of the replica's process and
what it has beyond that of a replica that does nothing, and the time from deploying to the first answer, of which the
replica's constructor with its imports is a part. Then the ratios: how many times better Sconce is.
"""
import argparse
import http.client
import importlib.util
import json
import os
import pathlib
import socket
import statistics
import sys
import threading
import time
import types

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Base:
    """A replica that does nothing, and tells of its process."""

    seconds = 0.0

    async def call(self, images):
        return images

    async def tell(self):
        import os
        import re
        fields = dict(re.findall(r"^(\w+): +(\d+) kB", open("/proc/self/smaps_rollup").read(), re.MULTILINE))
        return {"seconds": self.seconds, "rss": int(fields["Rss"]) / 1024, "pss": int(fields["Pss"]) / 1024, "pid": os.getpid()}

    async def __call__(self, request):
        return await self.inner(request)


class WithSconce(Base):
    def __init__(self, package, signature):
        import time
        begin = time.perf_counter()
        import deployment
        self.inner = deployment.Sconce.func_or_class(package, load={"threads": 1})
        self.call = self.inner.call
        self.seconds = time.perf_counter() - begin


class WithTorch(Base):
    def __init__(self, package, signature):
        import time
        begin = time.perf_counter()
        import torch
        torch.set_num_threads(1)
        model = torch._inductor.aoti_load_package(package, run_single_threaded=True)
        self.seconds = time.perf_counter() - begin
        from protocol import Protocol
        from starlette.responses import Response
        protocol = Protocol("digits", signature)

        async def call(images):
            # A copy, because PyTorch takes no memory that it may not write.
            return {name: value.numpy() for name, value in model(torch.from_numpy(images.copy())).items()}

        async def inner(request):
            (args, _), document = protocol.arguments(await request.body())
            body, _ = protocol.answer(await call(*args), document, {})
            return Response(body, media_type="application/json")

        self.call, self.inner = call, inner


def plain(value):
    """A signature as objects that a process without Sconce can read."""
    if isinstance(value, (list, tuple)):
        return tuple(map(plain, value))
    if not hasattr(value, "__dataclass_fields__"):
        return value
    found = {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return types.SimpleNamespace(**found, is_static=getattr(value, "is_static", None))


def closed_loop(clients, seconds, ask_of):
    """(requests/s, median seconds) of clients that each ask again when they are answered."""
    times, lock = [], threading.Lock()
    end = time.perf_counter() + seconds

    def client():
        ask, mine = ask_of(), []
        while (begin := time.perf_counter()) < end:
            ask()
            mine.append(time.perf_counter() - begin)
        with lock:
            times.extend(mine)

    begin = time.perf_counter()
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(times) / (time.perf_counter() - begin), statistics.median(times)


def over_http(port, body):
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask():
        connection.request("POST", "/v2/models/digits/infer", body)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text
        return text
    return ask


def measure(serve, kind, arguments, port, signature, images, body):
    """One deployment: its figures by name."""
    begin = time.perf_counter()
    options = {"num_replicas": 1, "max_ongoing_requests": 32, "ray_actor_options": {"num_cpus": 0.5}}
    bound = serve.deployment(name=kind.__name__, **options)(kind)
    handle = serve.run(bound.bind(*([] if kind is Base else [str(arguments.package), signature])), name="bench")
    handle.call.remote(images).result()
    found = {"deploy to first answer, s": time.perf_counter() - begin}
    if kind is not Base:
        found["constructor, s"] = handle.tell.remote().result()["seconds"]
        through_handle = lambda: lambda: handle.call.remote(images).result()
        for name, ask_of in (("handle", through_handle), ("HTTP", lambda: over_http(port, body))):
            closed_loop(arguments.clients, 0.5, ask_of)
            found[f"{name}, requests/s"] = closed_loop(arguments.clients, arguments.seconds, ask_of)[0]
            found[f"{name}, one client, ms"] = 1e3 * closed_loop(1, arguments.seconds / 2, ask_of)[1]
    told = handle.tell.remote().result()
    found |= {"process, RSS, MB": told["rss"], "process, PSS, MB": told["pss"]}
    serve.delete("bench")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--package", type=pathlib.Path, default=ROOT / "examples/digits/digits.pt2")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=8)
    arguments = parser.parse_args()
    for name in ("torch", "ray"):
        if not importlib.util.find_spec(name):
            sys.exit(f"ray_serve.py: this Python has no {name}: pip install torch==2.15.0 numpy 'ray[serve]==2.60.0'")
    paths = [str((arguments.build / "python").resolve()), str(ROOT / "examples/ray")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*paths, os.environ.get("PYTHONPATH")]))
    sys.path[:0] = paths
    # A worker at niceness 15 would measure what else the machine does.
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
                   "OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled"}
    import numpy as np
    import ray
    import sconce
    from ray import serve

    images = (np.arange(8 * 64, dtype=np.float32).reshape(8, 8, 8) * 7) % 17
    signature = plain(sconce.inspect(arguments.package).models["model"].signature)
    body = json.dumps({"inputs": [{"name": "ARGS[0]", "datatype": "FP32", "shape": [8, 8, 8],
                                   "data": images.reshape(-1).tolist()}]}).encode()
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    kinds = {"nothing": Base, "Sconce": WithSconce, "PyTorch": WithTorch}
    rounds = {name: [] for name in kinds}
    # The first turn fills caches of the disk, and PyTorch's own, and counts for nothing.
    for turn in range(arguments.rounds + 1):
        for name, kind in kinds.items():
            found = measure(serve, kind, arguments, port, signature, images, body)
            rounds[name] += [found] if turn else []
            print(f"# round {turn}, {name}: {found}", file=sys.stderr, flush=True)
    serve.shutdown()
    ray.shutdown()
    report(rounds)


def report(rounds):
    best = {name: {key: max(one[key] for one in found) if key.endswith("/s") else
                   found[-1][key] if key.endswith("MB") else min(one[key] for one in found) for key in found[0]}
            for name, found in rounds.items()}
    for kind in ("RSS", "PSS"):
        for name in ("Sconce", "PyTorch"):
            best[name][f"beyond nothing, {kind}, MB"] = best[name][f"process, {kind}, MB"] - best["nothing"][f"process, {kind}, MB"]
    print(f"{'':28} {'nothing':>9} {'Sconce':>9} {'PyTorch':>9} {'ratio':>7}")
    for key, ours in best["Sconce"].items():
        theirs, nothing = best["PyTorch"][key], best["nothing"].get(key)
        ratio = ours / theirs if key.endswith("/s") else theirs / ours
        print(f"{key:28} {'' if nothing is None else format(nothing, '.2f'):>9} {ours:9.2f} {theirs:9.2f} {ratio:7.2f}")


if __name__ == "__main__":
    main()
