"""Ports that stay ours while nothing listens on them: for a server that starts again where it was, and for refusals."""
import fcntl
import os
import pathlib
import random
import socket
import tempfile

LOCKS = pathlib.Path(tempfile.gettempdir()) / f"sconce-test-ports-{os.getuid()}"
held = []  # a lock ends with this process


def candidates():
    """In random order. The system gives ports of its own range to whoever connects or listens next, so ours lie outside."""
    first, last = map(int, pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    ports = [*range(max(1024, first - 12000), first), *range(last + 1, 65536)]
    return random.sample(ports, len(ports))


def is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


remaining = iter(candidates())


def reserve_port():
    """A port of 127.0.0.1 on which nothing listens and which no other test is given."""
    LOCKS.mkdir(exist_ok=True)
    for port in remaining:
        lock = (LOCKS / str(port)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        if is_free(port):
            held.append(lock)
            return port
        lock.close()
    raise RuntimeError("no port is free")
