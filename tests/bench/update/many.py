#!/usr/bin/env python3
"""Measures how long new weights take to reach many servers on this machine, with and without a relay.

    ./dev build && tests/bench/update/many.py [--build DIR] [--servers N] [--rounds N]

The Python client pushes 16 MiB from memory. Prints the time until all have staged, the time from the first commit's request
to the last commit's answer, how far the servers' own times of publication lie apart (they are given in milliseconds), and
the bytes that the coordinator sent.
"""
import argparse
import contextlib
import datetime
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
FEATURES = 2097152  # of tests/fake_model's fake_large: two tensors of 8 MiB


def stamp(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def push(client, servers, state_dict, relay):
    """Seconds to stage and to commit, spread in seconds, bytes sent."""
    from sconce import _blocking, _client_weights
    sent, times = [], {}
    plain_send, plain_commit = _blocking.Connection.send, _client_weights._Push.commit

    def send(self, buffers, deadline):
        sent.append(sum(map(len, buffers)))
        return plain_send(self, buffers, deadline)

    def commit(self):
        times["commit"] = time.perf_counter()
        return plain_commit(self)

    _blocking.Connection.send, _client_weights._Push.commit = send, commit
    try:
        begin = time.perf_counter()
        told = client.weights.push("large", state_dict, relay=relay, digest=False, progress=False)
        end = time.perf_counter()
    finally:
        _blocking.Connection.send, _client_weights._Push.commit = plain_send, plain_commit
    published = [stamp(next(s["since"] for s in document["sets"] if s["state"] == "active")) for document in told.values()]
    spread = (max(published) - min(published)).total_seconds()
    return times["commit"] - begin, end - times["commit"], spread, sum(sent)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--servers", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ["SCONCE_PROGRAM"] = str(options.build / "server/sconce")
    sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "tests/server")]
    try:
        import numpy as np
        from admin_server import LARGE, AdminServer  # which imports pytest
    except ImportError as error:
        sys.exit(f"many.py: {error}: pip install -r tests/server/requirements.txt")
    import pure  # noqa: F401 (finds the package)
    from sconce.client import Client

    flags = ["--weights-peers", "127.0.0.1", "--io-threads", "1"]
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(AdminServer(f"large={LARGE}", flags=flags)) for _ in range(options.servers)]
        client = stack.enter_context(Client(f"http://127.0.0.1:{servers[0].port}", timeout=60,
                                            admin=[f"http://127.0.0.1:{s.admin_port}" for s in servers]))
        for relay in (False, True):
            rounds = []
            for n in range(options.rounds + 1):
                state_dict = {name: np.full(FEATURES, n, np.float32) for name in ("scale.w", "scale.b")}
                rounds.append(push(client, servers, state_dict, relay))
            staged, committed, spread, sent = (statistics.median(column) for column in zip(*rounds[1:]))
            print(f"{options.servers} servers, 16 MiB, {'relay' if relay else 'one by one'}: staged {staged:.3f} s, committed "
                  f"{1e3 * committed:.1f} ms, spread {1e3 * spread:.0f} ms, sent {sent / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
