#!/usr/bin/env python3
"""What open consoles cost the server: CPU time of all its threads as a share of a core, with and without them.

Each console reads GET /v2/admin/live and GET /v2/admin/log/live; nobody asks anything else. The models are the fake one
of the tests, under as many names.

    ninja -C build/release sconce_program fake_models && tests/bench/http/consoles.py [--build DIR] [--consoles N] [--seconds S]
"""
import os
import selectors
import signal
import socket
import subprocess
import time

from idle import megabytes, threads
from run import arguments, cpu_seconds, wait_for


def open_stream(port, path):
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    connection.setblocking(False)
    return connection


def read_for(streams, seconds):
    """Takes what comes on all streams; returns how many overviews that were."""
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        events, end = 0, time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                piece = key.fileobj.recv(1 << 20)
                assert piece, "the server ended a stream"
                events += piece.count(b"event: overview\n")
    return events


def measure(server, streams, seconds):
    read_for(streams, 2)
    spent, begun = cpu_seconds(server.pid), time.monotonic()
    events = read_for(streams, seconds)
    return (cpu_seconds(server.pid) - spent) / (time.monotonic() - begun), events


def main():
    parser = arguments(__doc__, seconds=10)
    parser.add_argument("--consoles", type=int, default=100)
    args = parser.parse_args()
    fake = args.build / "tests/fake_model/fake_model.so"
    print(f"{'models':>7} {'consoles':>9} {'events/s':>9} {'threads':>8} {'MB':>7} {'share of a core':>16}")
    for models in (1, 20):
        port = 18000 + os.getpid() % 400
        server = subprocess.Popen([args.build / "server/sconce", "serve", "--http", f"127.0.0.1:{port}", "--admin",
                                   f"127.0.0.1:{port + 400}", "--metrics", "off", "--drain-grace", "0",
                                   "--max-side-connections", str(2 * args.consoles + 10),
                                   *[f"model{i}={fake}" for i in range(models)]],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        streams = []
        try:
            wait_for(port, "/v2/health/ready", 120)
            for consoles in (0, 1, args.consoles):
                while len(streams) < 2 * consoles:
                    streams += [open_stream(port + 400, path) for path in ("/v2/admin/live", "/v2/admin/log/live")]
                share, events = measure(server, streams, args.seconds)
                print(f"{models:7} {consoles:9} {events / args.seconds:9.1f} {len(threads(server.pid)):8} "
                      f"{megabytes(server.pid):7.1f} {share:15.2%}")
        finally:
            for stream in streams:
                stream.close()
            server.send_signal(signal.SIGTERM)
            server.wait()


if __name__ == "__main__":
    main()
