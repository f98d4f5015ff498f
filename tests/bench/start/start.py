#!/usr/bin/env python3
"""How long `sconce serve` takes from the start of the process until it is ready, with and without the child process that tries
the model first (trial_timeout=0), in turns.

    tests/bench/start/start.py build/release/server/sconce [--against PROGRAM] [--rounds 25] [--cores 0,1]

Prints medians in milliseconds: until the log says "ready" (`/v2/health/ready` is 200 from then on), and of the first request
after that and the tenth. Ratios are to the first line.
"""
import argparse
import http.client
import os
import pathlib
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]


def ask(port, model, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.connect()
    times = []
    for _ in range(10):
        start = time.perf_counter()
        connection.request("POST", f"/v1/models/{model}:call", body)
        answer = connection.getresponse()
        answer.read()
        times.append(1e3 * (time.perf_counter() - start))
        assert answer.status == 200
    connection.close()
    return times[0], times[-1]


def start(command, package, body, cores):
    settle = (lambda: os.sched_setaffinity(0, cores)) if cores else None
    begin = time.perf_counter()
    process = subprocess.Popen([command[0], "serve", str(package), "--http", "127.0.0.1:0", "--metrics", "off", "--admin", "off",
                                "--drain-grace", "0", *command[1:]], stderr=subprocess.PIPE, text=True, preexec_fn=settle)
    port, lines = 0, []
    for line in process.stderr:
        lines.append(line)
        if "inference on http" in line:
            port = int(line.rsplit(":", 1)[1])
        if line.rstrip().endswith(" ready") and "is ready" not in line:
            ready = 1e3 * (time.perf_counter() - begin)
            break
    else:
        raise SystemExit("it ended at its start:\n" + "".join(lines))
    requests = ask(port, package.stem, body) if body else (0, 0)
    process.terminate()
    process.stderr.read()
    process.wait()
    return ready, *requests


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="SCONCE")
    parser.add_argument("--against", metavar="PROGRAM", help="another program, of an earlier state")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--cores", help="as 0,1: where the servers run")
    parser.add_argument("--package", type=pathlib.Path, default=ROOT / "examples/digits/digits.pt2")
    parser.add_argument("--request", type=pathlib.Path, help="a body for :call; none is sent without")
    options = parser.parse_args()
    if options.package == parser.get_default("package"):
        options.request = options.request or ROOT / "examples/digits/request.json"
    body = options.request.read_bytes() if options.request else b""
    cores = [int(core) for core in options.cores.split(",")] if options.cores else None
    programs = {}
    for name, program in [("against", options.against), ("sconce", options.program)]:
        if program:
            programs[f"{name}, no trial"] = [program, "--set", "*.trial_timeout=0"]
            programs[name] = [program]
    figures = {name: [] for name in programs}
    for command in programs.values():
        start(command, options.package, body, cores)  # files come into memory
    for _ in range(options.rounds):
        for name, command in programs.items():
            figures[name].append(start(command, options.package, body, cores))
    print(f"{'':20} {'ready, ms':>10} {'lowest':>8} {'ratio':>6} {'first request, ms':>18} {'tenth':>7}")
    base = statistics.median(ready for ready, *_ in next(iter(figures.values())))
    for name, rows in figures.items():
        ready, first, tenth = (statistics.median(column) for column in zip(*rows))
        print(f"{name:20} {ready:10.1f} {min(rows)[0]:8.1f} {ready / base:6.2f} {first:18.2f} {tenth:7.2f}")


if __name__ == "__main__":
    main()
