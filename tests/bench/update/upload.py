#!/usr/bin/env python3
"""Compares staging weights over HTTP with bare Beast servers that read the same body into new memory.

    ninja -C build/release upload_bench && tests/bench/update/upload.py [--build DIR] [--rounds N]

The same client sends 256 MiB of weights from memory to the admin port and to two baselines, in turns: Beast's own
buffer_body, and the faster way of reading the body from the socket after the header. Also times `sconce weights push`,
which reads the file and digests it.
"""
import argparse
import hashlib
import base64
import json
import pathlib
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from run import LARGE, MIB, ROOT, Server, large_package


def body():
    bytes_of_one = 4 * LARGE
    header = json.dumps({"scale.w": {"dtype": "F32", "shape": [LARGE], "data_offsets": [0, bytes_of_one]},
                         "scale.b": {"dtype": "F32", "shape": [LARGE],
                                     "data_offsets": [bytes_of_one, 2 * bytes_of_one]}}).encode()
    header += b" " * (-len(header) % 8)
    return (struct.pack("<Q", len(header)) + header + struct.pack("<f", 3.0) * LARGE + struct.pack("<f", 4.0) * LARGE)


def post(port, path, data, more=""):
    """Seconds from the first byte sent to the answer."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begin = time.perf_counter()
        connection.sendall((f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n"
                            f"Content-Type: application/octet-stream\r\n{more}\r\n").encode())
        connection.sendall(data)
        answer = connection.recv(65536)
        seconds = time.perf_counter() - begin
        if not answer.startswith(b"HTTP/1.1 200"):
            sys.exit(answer.decode(errors="replace"))
        return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    data = body()
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    yardstick = subprocess.Popen([args.build / "tests/bench/update/beast_upload"], stdout=subprocess.PIPE, text=True)
    times = {"Beast, body by Beast": [], "Beast, body from the socket": [], "staged": [], "staged, with Content-Digest": [], "sconce weights push": []}
    stage = "/v2/admin/models/model/weights"
    try:
        port = int(yardstick.stdout.readline())
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "weights.safetensors"
            file.write_bytes(data)
            with Server(args.build, large_package(args.build, folder), 1) as server:
                for _ in range(args.rounds):
                    times["Beast, body by Beast"].append(post(port, "/beast", data))
                    times["Beast, body from the socket"].append(post(port, "/asio", data))
                    times["staged"].append(post(server.admin_port, stage, data))
                    post(server.admin_port, stage + "/abort", b"")
                    times["staged, with Content-Digest"].append(
                        post(server.admin_port, stage, data, f"Content-Digest: sha-256=:{digest}:\r\n"))
                    post(server.admin_port, stage + "/abort", b"")
                    begin = time.perf_counter()
                    subprocess.run([args.build / "server/sconce", "weights", "push", file, "--model", "model", "--to",
                                    f"127.0.0.1:{server.admin_port}"], check=True, stdout=subprocess.DEVNULL)
                    times["sconce weights push"].append(time.perf_counter() - begin)
    finally:
        yardstick.kill()
    yard = times["Beast, body from the socket"]
    print(f"{len(data) / MIB:.0f} MiB, {args.rounds} rounds                 best MiB/s   of socket   median MiB/s   of socket")
    for name, seconds in times.items():
        best, median = min(seconds), statistics.median(seconds)
        print(f"  {name:30} {len(data) / MIB / best:11.0f} {min(yard) / best:11.2f} {len(data) / MIB / median:14.0f}"
              f" {statistics.median(yard) / median:11.2f}")


if __name__ == "__main__":
    main()
