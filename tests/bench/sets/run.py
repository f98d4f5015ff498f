#!/usr/bin/env python3
"""Many named sets of one model: variants of its package that differ in the last layer.

    ninja -C build/release sets_bench && tests/bench/sets/run.py [--sets 1000] [--seconds 3] [--rounds 3] [--build DIR]

  memory     the server's resident memory per set, compared with the size of a whole set of weights
  sent       the time to send a whole set, of which the server keeps the difference
  requests   requests/s and p50 for all sets in turn, for one set and for the active set; once with containers for 16 sets per
             replica, once with one container per set
  disk       with memory for a tenth of the sets: the time of a request whose set must be read first
"""
import argparse
import http.client
import json
import pathlib
import re
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/server"))
from listening import ports_of  # noqa: E402

LAST = "classifier."  # the constants in which the variants differ


class Server:
    def __init__(self, build, package, *settings):
        command = [build / "server/sconce", "serve", f"m={package}", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0",
                   "--metrics", "off", "--drain-grace", "0", *(word for s in settings for word in ("--set", f"m.{s}"))]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.ports = ports_of(self.process)
        self.admin = http.client.HTTPConnection("127.0.0.1", self.ports["administration"], timeout=300)
        self.public = http.client.HTTPConnection("127.0.0.1", self.ports["inference"], timeout=300)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def ask(self, connection, method, path, body=None, kind="application/json"):
        connection.request(method, path, body, {"Content-Type": kind})
        answer = connection.getresponse()
        data = answer.read()
        if answer.status != 200:
            sys.exit(f"{path}: {answer.status} {data.decode()}")
        return json.loads(data)

    def put(self, name, data):
        start = time.perf_counter()
        self.ask(self.admin, "POST", f"/v2/admin/models/m/sets/{name}", data, "application/octet-stream")
        return time.perf_counter() - start

    def sets(self):
        return self.ask(self.admin, "GET", "/v2/admin/models/m/sets")

    def resident_kb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


def variants(file, count):
    """The file's tensors, with other values in the last layer for each variant."""
    data = file.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    own = [h["data_offsets"] for name, h in header.items() if name.startswith(LAST)]
    assert own, f"no {LAST}* in {file}"
    for number in range(count):
        changed = bytearray(data)
        for begin, end in own:
            values = struct.pack("<f", 1 + number / 8) * ((end - begin) // 4)
            changed[8 + length + begin:8 + length + end] = values
        yield bytes(changed), sum(end - begin for begin, end in own)


def load(build, server, paths, body, seconds, connections):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "paths").write_text("".join(f"{p}\n" for p in paths))
        (folder / "body").write_bytes(body)
        output = subprocess.run([build / "tests/bench/sets/sets_load", str(server.ports["inference"]), str(connections),
                                 str(seconds), folder / "paths", folder / "body"], check=True, capture_output=True)
    return json.loads(output.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    options = parser.parse_args()
    package = ROOT / "examples/digits/digits.pt2"
    weights = ROOT / "examples/digits/digits-v2.safetensors"
    body = (ROOT / "examples/digits/request.json").read_bytes()
    path, names = "/v1/models/m{}:call", [f"s{i}" for i in range(options.sets)]
    whole = weights.stat().st_size
    figures = {}

    for bound in (16, options.sets):
        with Server(options.build, package, f"sets={options.sets}", f"sets_instances={bound}") as server:
            # All variants share their first layers with weights that are made active first.
            server.ask(server.admin, "POST", "/v2/admin/models/m/weights?commit=true", weights.read_bytes(),
                       "application/octet-stream")
            server.ask(server.public, "POST", path.format(""), body)
            before, sent, own = server.resident_kb(), [], 0
            for name, (data, own) in zip(names, variants(weights, options.sets)):
                sent.append(server.put(name, data))
            each = (server.resident_kb() - before) * 1024 / options.sets
            held = server.sets()["bytes"] / options.sets
            print(f"each replica keeps containers of {bound} sets")
            print(f"  memory of a set: {held:.0f} bytes of values, {each:.0f} resident; its last layer {own}, "
                  f"a whole set {whole}: {held / whole:.2f} and {each / whole:.2f} of it")
            print(f"  sending a whole set: median {statistics.median(sent) * 1e3:.2f} ms, longest {max(sent) * 1e3:.1f} ms")
            kinds = {"active": [path.format("")], "one set": [path.format("@s1")],
                     "all sets in turn": [path.format(f"@{n}") for n in names]}
            runs = {kind: [] for kind in kinds}
            for _ in range(options.rounds):
                for kind, paths in kinds.items():
                    runs[kind].append(load(options.build, server, paths, body, options.seconds, options.connections))
            best = {kind: max(all_runs, key=lambda run: run["rps"]) for kind, all_runs in runs.items()}
            for kind, run in best.items():
                print(f"  {kind}: {run['rps']:.0f} requests/s, p50 {run['p50']:.0f} us, p99 {run['p99']:.0f} us; "
                      f"{run['rps'] / best['active']['rps']:.2f} of the active set's requests/s, "
                      f"{run['p50'] / best['active']['p50']:.2f} of its p50")
            after = (server.resident_kb() - before) * 1024 / options.sets
            print(f"  memory of a set after all were asked: {after:.0f} resident")
            figures[f"bound {bound}"] = {"best": best, "resident_each": each, "held_each": held, "after_each": after,
                                         "sent_ms": statistics.median(sent) * 1e3}

    with tempfile.TemporaryDirectory() as folder:
        budget = options.sets * (own + 64) // 10
        with Server(options.build, package, f"sets={options.sets}", f"sets_memory={budget}", f"sets_folder={folder}") as server:
            server.ask(server.admin, "POST", "/v2/admin/models/m/weights?commit=true", weights.read_bytes(),
                       "application/octet-stream")
            written = [server.put(name, data) for name, (data, _) in zip(names, variants(weights, options.sets))]
            on_disk = [s["name"] for s in server.sets()["sets"] if s["state"] == "disk"]
            read, there = [], []
            for name in on_disk[:200]:
                for times in (read, there):
                    start = time.perf_counter()
                    server.ask(server.public, "POST", path.format(f"@{name}"), body)
                    times.append(time.perf_counter() - start)
            print(f"sending with a file: median {statistics.median(written) * 1e3:.2f} ms")
            print(f"{len(on_disk)} of {options.sets} on disk; a request whose set is read first: median "
                  f"{statistics.median(read) * 1e3:.2f} ms, longest {max(read) * 1e3:.1f} ms; the next one "
                  f"{statistics.median(there) * 1e3:.2f} ms")
            figures.update(read_ms=statistics.median(read) * 1e3, there_ms=statistics.median(there) * 1e3)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
