#!/usr/bin/env python3
"""Compares `sconce serve` on a no-op model with two servers that answer as many bytes, in one run: a bare Beast server,
and a loop over epoll without any HTTP library, which shows what the kernel allows.

All of them run on the same cores, in turns, several times over; the load generator has its own cores if there are
enough. Prints a table of requests per second and latencies, and the ratio.

    ninja -C build/release http_bench && tests/bench/http/run.py [--build DIR] [--package PT2] [--seconds S]

--against PROGRAM compares with another build of `sconce` instead, such as that of an earlier commit: both run all the time,
and rounds alternate between them, on one thread that asks at each number of --connections. Each figure is the median of
the rounds, and the ratio that of the rounds' ratios, with the least and the largest.
"""
import argparse
import http.client
import json
import os
import pathlib
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]


def request_bytes(model, rows, features):
    """A v2 request with binary tensors, as tritonclient sends it."""
    data = struct.pack(f"<{rows * features}f", *([1.0] * rows * features))
    header = json.dumps({
        "inputs": [{"name": "INPUT__0", "shape": [rows, features], "datatype": "FP32",
                    "parameters": {"binary_data_size": len(data)}}],
        "outputs": [{"name": "OUTPUT__0", "parameters": {"binary_data": True}}],
    }, separators=(",", ":")).encode()
    return (f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: localhost\r\n"
            f"Inference-Header-Content-Length: {len(header)}\r\nContent-Length: {len(header) + len(data)}\r\n\r\n"
            ).encode() + header + data


def wait_for(port, path, deadline=20):
    end = time.time() + deadline
    while time.time() < end:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.02)
    sys.exit(f"nothing answers on port {port}")


def start(command, cores):
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            preexec_fn=lambda: os.sched_setaffinity(0, cores))


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(server, build, port, connections, seconds, request, cores):
    before = cpu_seconds(server.pid)
    out = subprocess.run([build / "tests/bench/http/http_load", str(port), str(connections), str(seconds), request],
                         stdout=subprocess.PIPE, check=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    result = json.loads(out.stdout)
    result["cpu_us"] = (cpu_seconds(server.pid) - before) * 1e6 / (result["requests_per_second"] * seconds)
    return result


def arguments(doc, seconds=None, rounds=None):
    """A parser that knows --build, and --seconds and --rounds where a default is given."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    if seconds:
        parser.add_argument("--seconds", type=float, default=seconds)
    if rounds:
        parser.add_argument("--rounds", type=int, default=rounds)
    return parser


def serve(program, args, package, port, cores):
    extra = [part for s in args.set for part in ("--set", s)]
    extra += ["--inline-below", args.inline_below] if args.inline_below else []
    return start([program, "serve", f"model={package}", "--http", f"127.0.0.1:{port}", "--metrics", "off", "--admin", "off",
                  "--io-threads", str(args.threads), "--drain-grace", "0", *extra], cores)


def ratio_of_rounds(one, two):
    """The median of the rounds' ratios, with the least and the largest."""
    ratios = sorted(a / b for a, b in zip(one, two, strict=True))
    return f"{statistics.median(ratios):6.3f} ({ratios[0]:.2f}-{ratios[-1]:.2f})"


def against(args, package):
    """Both programs run all the time. In each round each one is asked, the first one of the round before as the second."""
    cores = sorted(os.sched_getaffinity(0))
    server_cores = set(cores[:args.threads])
    load_cores = set(cores[args.threads:]) or set(cores)
    programs = {"this": args.build / "server/sconce", "other": args.against}
    ports = {name: 18400 + os.getpid() % 1000 + i for i, name in enumerate(programs)}
    figures = ("requests_per_second", "p50_us", "p99_us", "cpu_us")
    servers = {}
    try:
        with tempfile.NamedTemporaryFile() as request:
            request.write(request_bytes("model", args.rows, args.features))
            request.flush()
            for name, program in programs.items():
                servers[name] = serve(program, args, package, ports[name], server_cores)
                wait_for(ports[name], "/v2/health/ready")
            print(f"{args.threads} io threads, {args.rounds} rounds of {args.seconds:g} s"
                  f"{', inline_below ' + args.inline_below if args.inline_below else ''}; "
                  "this build, the other one, and this one's share of the other's")
            print(f"{'connections':>11}" + "".join(f"{figure:>40}" for figure in figures))
            told = {}
            for connections in args.connections:
                results = {name: [] for name in programs}
                for round_ in range(args.rounds):
                    for name in sorted(programs, reverse=round_ % 2 == 1):
                        results[name].append(load(servers[name], args.build, ports[name], connections, args.seconds, request.name,
                                                  load_cores))
                line = f"{connections:11}"
                for figure in figures:
                    one, two = ([r[figure] for r in results[name]] for name in programs)
                    line += f"{statistics.median(one):11.1f} {statistics.median(two):9.1f} {ratio_of_rounds(one, two)}"
                print(line, flush=True)
                told[connections] = results
            if args.json:
                args.json.write_text(json.dumps(told, indent=1) + "\n")
    finally:
        for server in servers.values():
            server.send_signal(signal.SIGTERM)
            server.wait()


def main():
    parser = arguments(__doc__, seconds=3, rounds=3)
    parser.add_argument("--package", type=pathlib.Path, help="default: the fake model of the tests")
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--features", type=int, default=4)
    parser.add_argument("--connections", type=lambda text: [int(n) for n in text.split(",")], default=[8],
                        help="such as 1,8,64")
    parser.add_argument("--against", type=pathlib.Path, metavar="PROGRAM", help="another build of sconce")
    parser.add_argument("--threads", type=int, default=1, help="io threads of Sconce and Beast")
    parser.add_argument("--set", action="append", default=[], help="passed to sconce serve")
    parser.add_argument("--inline-below", help="passed to sconce serve; 0: every request goes through a lane")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    package = args.package or args.build / "tests/fake_model/fake_model.so"
    if args.against:
        return against(args, package)
    results = {connections: side_by_side(args, package, connections) for connections in args.connections}
    if args.json:
        args.json.write_text(json.dumps(results if len(results) > 1 else results[args.connections[0]], indent=1) + "\n")


def side_by_side(args, package, connections):
    """Sconce, Beast and epoll in turns. Prints their table; returns all figures."""
    cores = sorted(os.sched_getaffinity(0))
    server_cores = set(cores[:args.threads])
    load_cores = set(cores[args.threads:]) or set(cores)
    port = 18400 + os.getpid() % 1000
    with tempfile.NamedTemporaryFile() as request:
        request.write(request_bytes("model", args.rows, args.features))
        request.flush()
        results = {"sconce": [], "beast": [], "epoll": []}
        body = None
        for _ in range(args.rounds):
            server = serve(args.build / "server/sconce", args, package, port, server_cores)
            try:
                wait_for(port, "/v2/health/ready")
                result = load(server, args.build, port, connections, args.seconds, request.name, load_cores)
                results["sconce"].append(result)
                body = result["body_bytes"]
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait()
            # The loop over epoll has one thread.
            for name, threads in (("beast", [str(args.threads)]), ("epoll", [])):
                server = start([args.build / f"tests/bench/http/http_{name}_server", str(port), *threads, str(body)],
                               server_cores)
                try:
                    wait_for(port, "/")
                    results[name].append(
                        load(server, args.build, port, connections, args.seconds, request.name, load_cores))
                finally:
                    server.kill()
                    server.wait()

    def median(name, key):
        return statistics.median(r[key] for r in results[name])

    print(f"{connections} connections, {args.threads} io threads, answers of {body} bytes, median of "
          f"{args.rounds} rounds of {args.seconds:g} s")
    print(f"{'':12} {'requests/s':>12} {'p50 us':>9} {'p99 us':>9} {'p99.9 us':>9} {'CPU us/request':>15}")
    for name in results:
        print(f"{name:12} {median(name, 'requests_per_second'):12.0f} {median(name, 'p50_us'):9.1f} "
              f"{median(name, 'p99_us'):9.1f} {median(name, 'p999_us'):9.1f} {median(name, 'cpu_us'):15.2f}")
    ratios = {name: median("sconce", "requests_per_second") / median(name, "requests_per_second")
              for name in ("beast", "epoll")}
    for name, ratio in ratios.items():
        print(f"of {name:9} {100 * ratio:11.1f} %")
    return {"ratios": ratios, **results}


if __name__ == "__main__":
    main()
