#!/usr/bin/env python3
"""Measures weight updates under load: answers, latency and memory.

    ninja -C build/release update_bench && tests/bench/update/run.py [--build DIR] [--only PART] [--json FILE]

The model (tests/fake_model, FAKE_SUMMARY) answers with the least and greatest value of its two weights, which exposes
answers that mix two sets or belong to no published weight version.

  answers   64 clients ask while 1,000 updates, full and partial, are committed on 4 replicas
  latency   64 clients ask while every other second has 20 updates of 1 MiB
  memory    256 MiB of weights: the process's memory before, during and after their replacement
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

SMALL, LARGE = 131072, 33554432  # elements per weight
MIB = 1 << 20
MAGIC = struct.pack("<Q", 0x5CE4C0DEBA5EBA11)


class Server:
    def __init__(self, build, package, replicas, flags=()):
        command = [build / "server/sconce", "serve", f"model={package}", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0",
                   "--metrics", "off", "--drain-grace", "0", "--set", f"model.replicas={replicas}", *flags]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        ports = ports_of(self.process)
        self.port, self.admin_port = ports["inference"], ports["administration"]
        self.admin = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=300)
        self.published = {}  # weight version: (w, b)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def ask_admin(self, method, path, body=None):
        self.admin.request(method, "/v2/admin/models/model/" + path, body, {"Content-Type": "application/octet-stream"})
        response = self.admin.getresponse()
        text = response.read()
        if response.status != 200:
            sys.exit(f"{method} {path}: {response.status} {text.decode(errors='replace')}")
        return json.loads(text)

    def push(self, w=None, b=None, elements=SMALL, commit=True, body=None):
        """Weights filled with w and b; None leaves one as it is. Bodies are cached, so a repeated one costs no time."""
        mode = "partial" if w is None or b is None else "full"
        body = body or weights(w, b, elements)
        answer = self.ask_admin("POST", f"weights?mode={mode}&commit={'true' if commit else 'false'}", body)
        if commit:
            last = self.published[max(self.published)] if self.published else (None, None)
            self.published[answer["generation"]] = (last[0] if w is None else w, last[1] if b is None else b)

    def memory(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return {key: int(re.search(rf"{key}:\s+(\d+)", text).group(1)) * 1024 for key in ("VmRSS", "VmHWM")}


def weights(w, b, elements=SMALL):
    """These weights as a safetensors file."""
    values = {"scale.w": w, "scale.b": b}
    given = {name: value for name, value in values.items() if value is not None}
    header, at = {}, 0
    for name in given:
        header[name] = {"dtype": "F32", "shape": [elements], "data_offsets": [at, at + 4 * elements]}
        at += 4 * elements
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(struct.pack("<f", v) * elements for v in given.values())


class Load:
    """One run of update_load."""

    def __init__(self, build, server, connections, seconds, window=1):
        command = [build / "tests/bench/update/update_load", str(server.port), "model", str(connections), str(seconds),
                   str(window)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def result(self, wait=False):
        """Stops it, or waits for its end."""
        if wait:
            out = self.process.stdout.read()
            self.process.wait()
        else:
            out, _ = self.process.communicate()
        if self.process.returncode != 0:
            sys.exit("the load generator failed")
        return json.loads(out)


def judge(result, published):
    """Counts failures, mixed answers, and answers that do not belong to the weight version they name."""
    mixed = wrong = 0
    for weight_version, w_low, w_high, b_low, b_high, count in result["answers"]:
        if w_low != w_high or b_low != b_high:
            mixed += count
        elif published.get(weight_version) != (w_low, b_low):
            wrong += count
    return {"requests": result["requests"], "failures": result["failures"], "failure": result["failure"], "mixed": mixed,
            "wrong": wrong, "generations_seen": len({a[0] for a in result["answers"]})}


def measure_answers(args):
    with Server(args.build, args.build / "tests/fake_model/fake_update.so", 4) as server:
        server.push(1, 2)
        load = Load(args.build, server, args.connections, 3600)
        begin = time.time()
        for i in range(args.updates):
            # In turn both weights, only w, only b.
            version = float(i + 3)
            server.push(None if i % 3 == 2 else version, None if i % 3 == 1 else version + 0.5)
        seconds = time.time() - begin
        found = judge(load.result(), server.published)
    found.update(updates=args.updates, seconds=seconds, updates_per_second=args.updates / seconds)
    print(f"answers: {args.connections} clients, {args.updates} updates on 4 replicas in {seconds:.1f} s")
    print(f"  {'requests':>10} {'failures':>9} {'mixed':>7} {'of no weight_version':>17} {'weight_versions seen':>17}")
    print(f"  {found['requests']:10} {found['failures']:9} {found['mixed']:7} {found['wrong']:17} "
          f"{found['versions_seen']:17}  {found['failure']}")
    return found


def measure_latency(args):
    with Server(args.build, args.build / "tests/fake_model/fake_update.so", 4) as server:
        server.push(1, 2)
        Load(args.build, server, args.connections, 1).result(wait=True)
        versions = [(float(i), i + 0.5) for i in range(3, 67)]
        bodies = [weights(*version) for version in versions]  # before the clock starts: cores are shared
        load = Load(args.build, server, args.connections, args.seconds, args.window)
        end, number, pushes = time.monotonic() + args.seconds, 0, []
        while time.monotonic() < end:
            # Updates run in odd windows only, so that other load on the machine affects both kinds.
            window = int(time.monotonic() / args.window)
            begin, pushed = window * args.window, 0
            while window % 2 == 1 and time.monotonic() < begin + args.window - 0.5 / args.rate:
                start = time.monotonic()
                server.push(*versions[number % 64], body=bodies[number % 64])
                pushed += 1
                number += 1
                pushes.append(time.monotonic() - start)
                time.sleep(max(0.0, begin + pushed / args.rate - time.monotonic()))
            time.sleep(max(0.0, begin + args.window - time.monotonic()))
        result = load.result(wait=True)
        verdict = judge(result, server.published)
    windows = {w[0]: w[1:] for w in result["windows"]}
    numbers = sorted(windows)[1:-1]  # the first and last window are incomplete
    quiet, busy = ([windows[n] for n in numbers if n % 2 == odd] for odd in (0, 1))

    def median(rows, column):
        return statistics.median(row[column] for row in rows)

    def ratio(column):
        """The ratio of each window with updates to its neighbours; the median of all."""
        ratios = [windows[n][column] / statistics.mean((windows[n - 1][column], windows[n + 1][column]))
                  for n in numbers[1:-1] if n % 2 == 1]
        return statistics.median(ratios)

    found = {"updates": number, "verdict": verdict, "windows": result["windows"], "p50_ratio": ratio(1),
             "p99_ratio": ratio(2), "push_ms": statistics.median(pushes) * 1000}
    print(f"latency: {args.connections} clients, windows of {args.window:g} s with and without {args.rate:g} updates/s of "
          f"1 MiB, medians of {len(busy)}; an update takes {found['push_ms']:.1f} ms")
    print(f"  {'':8} {'requests/s':>11} {'p50 us':>9} {'p99 us':>9}   failures {verdict['failures']}, mixed "
          f"{verdict['mixed']}, of no weight version {verdict['wrong']}")
    for name, rows in (("without", quiet), ("with", busy)):
        print(f"  {name:8} {median(rows, 0) / args.window:11.0f} {median(rows, 1):9.1f} {median(rows, 2):9.1f}")
    print(f"  ratio    {'':11} {found['p50_ratio']:9.2f} {found['p99_ratio']:9.2f}   goals: p50 within 10 %, p99 1.3")
    return found


def large_package(build, folder):
    """fake_update_large with its weights: w is all 1, b is all 2."""
    package = pathlib.Path(folder) / "large.so"
    library = (build / "tests/fake_model/fake_update_large.so").read_bytes()
    with open(package, "wb") as file:
        file.write(library + b" " * (-len(library) % 16384))
        for value in (1.0, 2.0):
            file.write(struct.pack("<f", value) * LARGE)
        file.write(MAGIC)
    return package


def measure_memory(args):
    weights = 8 * LARGE
    found, rows = {"weights": weights}, []

    def note(what, server, peak=False):
        memory = server.memory()
        found[what] = memory
        rows.append((what, memory["VmHWM" if peak else "VmRSS"]))

    def ask(server):
        return Load(args.build, server, 1, 0.5).result(wait=True)

    with tempfile.TemporaryDirectory() as folder:
        with Server(args.build, large_package(args.build, folder), 2, ["--max-body-bytes", "1G"]) as server:
            note("loaded", server)
            ask(server)
            note("serving", server)
            for number in range(1, 4):
                pathlib.Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # resets the peak
                begin = time.time()
                server.push(float(10 * number), float(10 * number + 1), LARGE)
                found[f"push_{number}_seconds"] = time.time() - begin
                result = ask(server)
                wrong = judge(result, server.published)
                if wrong["failures"] or wrong["mixed"] or wrong["wrong"]:
                    sys.exit(f"memory: {wrong}")
                note(f"update {number}, peak", server, peak=True)
                server.ask_admin("POST", "weights/release", b"")
                time.sleep(0.5)
                note(f"update {number}, released", server)
    peak = max(bytes for what, bytes in rows if what.endswith("peak"))
    after = max(bytes for what, bytes in rows if what.endswith("released"))
    found.update(peak=peak, after=after)
    print(f"memory: {weights / MIB:.0f} MiB of weights, resident MiB of the process")
    for what, bytes in rows:
        print(f"  {what:20} {bytes / MIB:8.1f}   {bytes / weights:5.2f} x")
    print(f"  peak is 2 x + {(peak - 2 * weights) / MIB:.1f} MiB (goal 32), after release 1 x + "
          f"{(after - weights) / MIB:.1f} MiB (goal 16)")
    return found


PARTS = {"answers": measure_answers, "latency": measure_latency, "memory": measure_memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--only", choices=PARTS, action="append", help="these parts; default: all")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=20, help="updates a second")
    parser.add_argument("--seconds", type=float, default=40, help="of the measurement of latency")
    parser.add_argument("--window", type=float, default=1, help="seconds of its windows")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    results = {part: PARTS[part](args) for part in args.only or PARTS}
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")
    answers = [results["answers"]] if "answers" in results else []
    answers += [results["latency"]["verdict"]] if "latency" in results else []
    # Only a wrong answer fails; the reader judges timings.
    return 1 if any(a["failures"] or a["mixed"] or a["wrong"] for a in answers) else 0


if __name__ == "__main__":
    sys.exit(main())
