#!/usr/bin/env python3
"""Measures models on demand (docs/lazy_loading.md): the start with many names, cold requests, and requests with room for few models.

    tests/bench/fleet/on_demand.py SCONCE [--package PT2] [--names 10000] [--models 500] [--room 50] [--requests N] [--triton]

SCONCE is the program. Names are hard links of a few dozen files; models are files of their own, each with other bytes, so
that nothing of one is mapped for another. One client asks on one connection and knows which of its requests finds a model
loaded, because it counts as the server does; these hits are compared with the same requests to a server without a budget.
--triton also has the Triton inside nvidia-pytriton load and unload models by hand, if build/release/bench-peers/triton exists.
"""
import argparse
import collections
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
FILES = 48  # that the names are links of
sys.path.insert(0, str(ROOT / "tests/bench/http"))


def other_package(package, path, number):
    """The package under another digest."""
    path.write_bytes(package)
    with zipfile.ZipFile(path, "a") as archive:
        root = archive.namelist()[0].split("/")[0]
        archive.writestr(f"{root}/extra/number", str(number))


class Server:
    def __init__(self, program, folder, *flags):
        self.begin = time.perf_counter()
        self.process = subprocess.Popen(
            [program, "serve", folder, "--load", "demand", "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--admin", "off",
             "--drain-grace", "0", *flags], stderr=subprocess.PIPE, text=True)
        ports = {}
        for line in self.process.stderr:
            if found := re.search(r"(inference|metrics) on http://\S+:(\d+)", line):
                ports[found[1]] = int(found[2])
            if len(ports) == 2:
                break
        else:
            sys.exit("the server ended at its start")
        self.port, self.metrics_port = ports["inference"], ports["metrics"]
        self.client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while self.ask("GET", "/v2/health/ready")[0] != 200:
            time.sleep(0.002)
        self.ready = time.perf_counter() - self.begin

    def ask(self, method, path, body=None, headers=None):
        self.client.request(method, path, body, headers or {})
        answer = self.client.getresponse()
        return answer.status, answer.read()

    def metric(self, name):
        client = http.client.HTTPConnection("127.0.0.1", self.metrics_port)
        client.request("GET", "/metrics")
        text = client.getresponse().read().decode()
        return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)[1])

    def resident(self):
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())[1]) * 1024

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stderr.close()


def request_for(server, model):
    """A body for the model, made from its metadata: ones of the smallest shape."""
    status, text = server.ask("GET", f"/v2/models/{model}")
    if status != 200:
        sys.exit(f"{model}: {status} {text}")
    inputs = []
    for tensor in json.loads(text)["inputs"]:
        shape = [1 if size < 0 else size for size in tensor["shape"]]
        count = 1
        for size in shape:
            count *= size
        inputs.append({"name": tensor["name"], "shape": shape, "datatype": tensor["datatype"], "data": [1] * count})
    return json.dumps({"inputs": inputs}).encode()


def timed(server, model, body):
    begin = time.perf_counter()
    status, text = server.ask("POST", f"/v2/models/{model}/infer", body)
    took = time.perf_counter() - begin
    if status != 200:
        sys.exit(f"{model}: {status} {text}")
    return took * 1e3


def shown(times):
    ordered = sorted(times)
    return f"p50 {statistics.median(ordered):7.3f} ms, p99 {ordered[int(len(ordered) * 0.99)]:7.3f} ms"


def many_names(args, package, folder):
    for i in range(FILES):
        other_package(package, folder.parent / f"file{i}.pt2", i)
    for i in range(args.names):
        os.link(folder.parent / f"file{i % FILES}.pt2", folder / f"model{i:05}.pt2")
    with Server(args.program, folder) as server:
        resident = server.resident()
        print(f"{args.names} names: ready after {server.ready:.3f} s, {resident / 1e6:.1f} MB resident")
        empty = folder.parent / "one"
        empty.mkdir()
        os.link(folder / "model00000.pt2", empty / "model.pt2")
    with Server(args.program, empty) as server:
        per_name = (resident - server.resident()) / max(args.names - 1, 1)
        print(f"    1 name:  ready after {server.ready:.3f} s, {server.resident() / 1e6:.1f} MB resident; "
              f"{per_name:.0f} bytes a name")


def cold(args, folder):
    """Returns the bytes that one model counts, and a body."""
    names = [path.stem for path in sorted(folder.iterdir())]
    with Server(args.program, folder) as server:
        body = request_for(server, names[0])
        one = server.metric('sconce_model_memory_bytes{device="host"}')
        timed(server, names[0], body)
        before = server.resident()
        first = [timed(server, name, body) for name in names[1:]]
        print(f"cold requests to {len(names) - 1} models: {shown(first)}, "
              f"{(server.resident() - before) / (len(names) - 1) / 1e3:.0f} kB resident a model, {one / 1e3:.0f} kB counted")
        again = [timed(server, random.choice(names), body) for _ in range(len(names))]
        print(f"loaded:                       {shown(again)}, cold by loaded {statistics.median(first) / statistics.median(again):.1f}")
    return one, body


def steady(args, folder, one, body):
    names = [path.stem for path in sorted(folder.iterdir())]
    chosen = random.Random(7)
    chosen.shuffle(names)
    # As traffic is: the n-th model is asked for 1/n as often as the first.
    sequence = chosen.choices(names, [1 / (i + 1) for i in range(len(names))], k=args.requests)
    hits, loaded = [], collections.OrderedDict()
    for name in sequence:
        hits.append(name in loaded)
        loaded[name] = None
        loaded.move_to_end(name)
        if len(loaded) > args.room:
            loaded.popitem(last=False)
    results = {}
    for label, flags in (("no budget", []), ("budget", ["--memory-budget", str(int(one * (args.room + 0.5)))])):
        with Server(args.program, folder, *flags) as server:
            if not flags:
                for name in names:
                    timed(server, name, body)
            begin = time.perf_counter()
            times = [timed(server, name, body) for name in sequence]
            rate = len(sequence) / (time.perf_counter() - begin)
            results[label] = [took for took, hit in zip(times, hits) if hit]
            missed = [took for took, hit in zip(times, hits) if not hit]
            print(f"{label:9}: hits {shown(results[label])}; {'misses' if flags else 'the others'} {shown(missed)}; "
                  f"{rate:.0f} requests/s; {int(server.metric('sconce_demand_evictions_total'))} unloaded, "
                  f"{server.resident() / 1e6:.0f} MB resident")
    ratio = statistics.median(results["no budget"]) / statistics.median(results["budget"])
    print(f"{sum(hits)} of {len(sequence)} requests are hits; without a budget they take {ratio:.2f} times as long as with one")


def triton(args, cold_ms):
    import peers
    python = ROOT / "build/release/bench-peers/triton/bin/python"
    if not python.exists():
        return print("no Triton: build/release/bench-peers/triton is not there")
    with tempfile.TemporaryDirectory() as name:
        folder, port = pathlib.Path(name), 18500 + os.getpid() % 400
        command, env = peers.triton(python, folder, port)
        model = folder / "triton/model"
        for i in range(args.triton_models):
            subprocess.run(["cp", "-r", model, folder / f"triton/model{i}"], check=True)
        process = subprocess.Popen([*command, "--model-control-mode", "explicit"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env={**os.environ, **env}, start_new_session=True)
        try:
            client = None
            for _ in range(600):
                with contextlib.suppress(OSError, http.client.HTTPException):
                    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                    client.request("GET", "/v2/health/ready")
                    if client.getresponse().read() is not None:
                        break
                time.sleep(0.1)

            def ask(path, body):
                client.request("POST", path, body)
                answer = client.getresponse()
                text = answer.read()
                if answer.status != 200:
                    sys.exit(f"triton: {answer.status} {text}")

            body = json.dumps({"inputs": [{"name": "INPUT__0", "shape": [1, 4], "datatype": "FP32", "data": [1] * 4}]})
            times = []
            for i in range(args.triton_models):
                begin = time.perf_counter()
                ask(f"/v2/repository/models/model{i}/load", "{}")
                ask(f"/v2/models/model{i}/infer", body)
                times.append((time.perf_counter() - begin) * 1e3)
                ask(f"/v2/repository/models/model{i}/unload", "{}")
            print(f"Triton, load and request by hand, {args.triton_models} models of its Python backend: {shown(times)}; "
                  f"Triton by Sconce {statistics.median(times) / cold_ms:.0f}")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, metavar="SCONCE")
    parser.add_argument("--package", type=pathlib.Path, default=ROOT / "examples/digits/digits.pt2")
    parser.add_argument("--names", type=int, default=10_000)
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--room", type=int, default=50, help="how many models the budget is for")
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--triton", action="store_true")
    parser.add_argument("--triton-models", type=int, default=20)
    args = parser.parse_args()
    package = args.package.read_bytes()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part in ("names", "models"):
            (folder / part).mkdir()
        many_names(args, package, folder / "names")
        for i in range(args.models):
            other_package(package, folder / f"models/m{i:03}.pt2", FILES + i)
        one, body = cold(args, folder / "models")
        steady(args, folder / "models", one, body)
        if args.triton:
            with Server(args.program, folder / "models") as server:
                cold_ms = statistics.median(timed(server, f"m{i:03}", body) for i in range(args.triton_models))
            triton(args, cold_ms)


if __name__ == "__main__":
    main()
