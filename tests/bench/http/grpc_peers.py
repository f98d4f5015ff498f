#!/usr/bin/env python3
"""Compares `sconce serve` over gRPC with the Triton inside nvidia-pytriton, in one run.

Triton and its model, y = x * w + b on four floats in its Python backend, are those of peers.py. Sconce runs the digits
example, which is more: perf_analyzer asks only models with a signature. It asks both, in turns: calls and streams, 1, 8 and
64 at a time. It costs more than the servers do, so ratios are lower than those of the servers alone. Prints requests a second,
medians of all rounds, and the ratios.

    ninja -C build/release sconce_program && tests/bench/http/grpc_peers.py [--build DIR] [--rounds N]
"""
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile

import peers
import perf_analyzer
from run import ROOT, arguments, wait_for

INPUTS = {"sconce": "ARGS[0]:8,8", "triton": "INPUT__0:4"}  # of a row
KINDS = {"calls": [], "streams": ["--streaming"]}


def commands(build, folder, port):
    """The servers' commands and environments, each with its port of gRPC."""
    sconce = [build / "server/sconce", "serve", f"model={ROOT / 'examples/digits/digits.pt2'}", "--http",
              f"127.0.0.1:{port}", "--grpc", f"127.0.0.1:{port + 400}", "--metrics", "off", "--admin", "off", "--drain-grace", "0"]
    triton, env = peers.triton(peers.environment(build, "triton"), folder, port + 1)
    triton[triton.index("--allow-grpc"):triton.index("--allow-grpc") + 2] = ["--grpc-address", "127.0.0.1", "--grpc-port",
                                                                            str(port + 401)]
    return {"sconce": (sconce, {}, port, "/v2/health/ready"), "triton": (triton, env, port + 1, "/v2/models/model/ready")}


def measure(program, env, port, name, flags, count, requests):
    """Requests a second, p50 and p99 in microseconds."""
    out = subprocess.run([program, "-m", "model", "-u", f"127.0.0.1:{port}", "-i", "grpc", "--shape", INPUTS[name], "--async",
                          "--concurrency-range", str(count), "--measurement-mode", "count_windows",
                          "--measurement-request-count", str(requests), "-s", "999", *flags], env=env, capture_output=True, text=True)
    found = [re.search(pattern, out.stdout) for pattern in (r"Throughput: ([\d.]+)", r"p50 latency: (\d+)", r"p99 latency: (\d+)")]
    if not all(found):
        sys.exit(out.stdout[-2000:] + out.stderr[-2000:])
    return [float(match[1]) for match in found]


def main():
    parser = arguments(__doc__, rounds=3)
    parser.add_argument("--requests", type=int, default=5000, help="of a window of perf_analyzer")
    args = parser.parse_args()
    program, env = perf_analyzer.install(args.build / "bench-peers/perf_analyzer")
    cases, results = [(kind, count) for kind in KINDS for count in (1, 8, 64)], {}
    with tempfile.TemporaryDirectory() as folder:
        servers = commands(args.build, pathlib.Path(folder), 18500 + os.getpid() % 300)
        for _ in range(args.rounds):
            for name, (command, more, port, ready) in servers.items():
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                           env={**os.environ, **more}, start_new_session=True)
                try:
                    wait_for(port, ready, 90)
                    for kind, count in cases:
                        results.setdefault((name, kind, count), []).append(
                            measure(program, env, port + 400, name, KINDS[kind], count, args.requests))
                finally:
                    os.killpg(process.pid, signal.SIGTERM)
                    process.wait(60)
    print(f"{'':8} {'at a time':>9} {'sconce/s':>9} {'p50 us':>7} {'p99 us':>7} {'triton/s':>9} {'p50 us':>7} {'p99 us':>7} {'ratio':>6}")
    for kind, count in cases:
        ours, theirs = ([statistics.median(values) for values in zip(*results[name, kind, count], strict=True)]
                        for name in ("sconce", "triton"))
        print(f"{kind:8} {count:9} {ours[0]:9.0f} {ours[1]:7.0f} {ours[2]:7.0f} {theirs[0]:9.0f} {theirs[1]:7.0f} {theirs[2]:7.0f} "
              f"{ours[0] / theirs[0]:6.2f}")


if __name__ == "__main__":
    main()
