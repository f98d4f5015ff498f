#!/usr/bin/env python3
"""Compares `sconce serve` over gRPC with the Triton inside nvidia-pytriton, in one run.

Both have the model of peers.py, y = x * w + b on four floats: Triton in its Python backend, Sconce as compiled code, so this
measures the servers. grpc_load.cpp asks each of them in turns: calls and streams, 1, 8 and 64 at a time. "bare" is
grpc_bare_server.cpp, which does nothing but answer: what gRPC's library allows. Prints requests a second, medians of all
rounds, and the ratios.

    ninja -C build/release grpc_bench && tests/bench/http/grpc_peers.py [--build DIR] [--rounds N]

--against PROGRAM compares with another build of `sconce` instead: rounds alternate between them, and the ratio is the
median of the rounds' ratios, with the least and the largest.
"""
import json
import os
import pathlib
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import peers
from run import arguments, ratio_of_rounds, wait_for

KINDS = ("calls", "streams")


def field(number, value):
    """A field of protobuf: bytes, which are shorter than 128."""
    return bytes([number << 3 | 2, len(value)]) + value


def message():
    """ModelInferRequest for a row of four ones."""
    tensor = field(1, b"INPUT__0") + field(2, b"FP32") + field(3, bytes([1, peers.FEATURES]))
    return field(1, b"model") + field(5, tensor) + field(7, struct.pack("<4f", 1, 1, 1, 1))


def expected():
    """The output's bytes: triton_model.py's and tests/fake_model's w and b."""
    return struct.pack("<4f", *(1 + i + 10 * i for i in range(peers.FEATURES)))


def answer():
    """ModelInferResponse with that output."""
    tensor = field(1, b"OUTPUT__0") + field(2, b"FP32") + field(3, bytes([1, peers.FEATURES]))
    return field(1, b"model") + field(2, b"1") + field(5, tensor) + field(6, expected())


def sconce_command(program, build, port):
    return [program, "serve", f"model={build / 'tests/fake_model/fake_model.so'}", "--http", f"127.0.0.1:{port}", "--grpc",
            f"127.0.0.1:{port + 400}", "--metrics", "off", "--admin", "off", "--drain-grace", "0"]


def commands(build, folder, port):
    """The servers' commands and environments, each with its port of HTTP; that of gRPC is 400 higher."""
    sconce = sconce_command(build / "server/sconce", build, port)
    triton, env = peers.triton(peers.environment(build, "triton"), folder, port + 1)
    triton[triton.index("--allow-grpc"):triton.index("--allow-grpc") + 2] = ["--grpc-address", "127.0.0.1", "--grpc-port",
                                                                            str(port + 401)]
    bare = [build / "tests/bench/http/grpc_bare_server", f"127.0.0.1:{port + 402}", folder / "answer", folder / "stream answer"]
    return {"sconce": (sconce, {}, port, "/v2/health/ready"), "triton": (triton, env, port + 1, "/v2/models/model/ready"),
            "bare": (bare, {}, port + 2, None)}


def wait_until_listening(port):
    for _ in range(500):
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    sys.exit(f"nothing listens on port {port}")


def measure(build, folder, port, kind, count, seconds):
    """Requests a second, p50 and p99 in microseconds."""
    out = subprocess.run([build / "tests/bench/http/grpc_load", str(port), kind, str(count), str(seconds), folder / "message",
                          folder / "expected"], stdout=subprocess.PIPE, check=True)
    result = json.loads(out.stdout)
    return [result[key] for key in ("requests_per_second", "p50_us", "p99_us")]


def print_against(results, cases):
    print(f"{'':8} {'at a time':>9} {'this/s':>9} {'other/s':>9} {'ratio':>6}")
    for kind, count in cases:
        ours, theirs = ([rates for rates, *_ in results[name, kind, count]] for name in ("sconce", "other"))
        print(f"{kind:8} {count:9} {statistics.median(ours):9.0f} {statistics.median(theirs):9.0f} {ratio_of_rounds(ours, theirs)}")


def main():
    parser = arguments(__doc__, seconds=3, rounds=3)
    parser.add_argument("--against", type=pathlib.Path, metavar="PROGRAM", help="another build of sconce")
    args = parser.parse_args()
    cases, results = [(kind, count) for kind in KINDS for count in (1, 8, 64)], {}
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        (folder / "message").write_bytes(message())
        (folder / "expected").write_bytes(expected())
        (folder / "answer").write_bytes(answer())
        (folder / "stream answer").write_bytes(field(2, answer()))
        port = 18500 + os.getpid() % 300
        if args.against:
            servers = {name: (sconce_command(program, args.build, port + place), {}, port + place, "/v2/health/ready")
                       for place, (name, program) in enumerate((("sconce", args.build / "server/sconce"), ("other", args.against)))}
        else:
            servers = commands(args.build, folder, port)
        for _ in range(args.rounds):
            for name, (command, more, port, ready) in servers.items():
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                           env={**os.environ, **more}, start_new_session=True)
                try:
                    if ready:
                        wait_for(port, ready, 90)
                    else:
                        wait_until_listening(port + 400)
                    for kind, count in cases:
                        results.setdefault((name, kind, count), []).append(
                            measure(args.build, folder, port + 400, kind, count, args.seconds))
                finally:
                    os.killpg(process.pid, signal.SIGTERM)
                    process.wait(60)
    if args.against:
        return print_against(results, cases)
    print(f"{'':8} {'at a time':>9} {'sconce/s':>9} {'p50 us':>7} {'p99 us':>7} {'triton/s':>9} {'p50 us':>7} {'p99 us':>7} {'ratio':>6} "
          f"{'bare/s':>9} {'p50 us':>7} {'ratio':>6}")
    for kind, count in cases:
        ours, theirs, bare = ([statistics.median(values) for values in zip(*results[name, kind, count], strict=True)]
                              for name in ("sconce", "triton", "bare"))
        print(f"{kind:8} {count:9} {ours[0]:9.0f} {ours[1]:7.0f} {ours[2]:7.0f} {theirs[0]:9.0f} {theirs[1]:7.0f} {theirs[2]:7.0f} "
              f"{ours[0] / theirs[0]:6.2f} {bare[0]:9.0f} {bare[1]:7.0f} {ours[0] / bare[0]:6.2f}")


if __name__ == "__main__":
    main()
