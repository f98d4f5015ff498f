#!/usr/bin/env python3
"""What a server costs while nobody asks: wake-ups and CPU time of all its threads, and memory, with many models loaded.

A wake-up is a voluntary context switch of one of the server's threads. The models are the fake one of the tests, under
as many names; the first seconds after the start are not counted, nor is what follows a last request.

    ninja -C build/release sconce_program fake_models && tests/bench/http/idle.py [--build DIR] [--models N] [--seconds S]
"""
import collections
import os
import pathlib
import re
import signal
import subprocess
import time

from run import arguments, cpu_seconds, wait_for


def threads(pid):
    """Wake-ups of each thread, by its number; and its name."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        status = (task / "status").read_text()
        found[task.name] = int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE)[1]), \
            (task / "comm").read_text().strip()
    return found


def megabytes(pid):
    return int(re.search(r"^VmRSS:\s*(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1]) / 1024


def measure(build, models, seconds):
    fake = build / "tests/fake_model/fake_model.so"
    port = 18000 + os.getpid() % 400
    server = subprocess.Popen([build / "server/sconce", "serve", "--http", f"127.0.0.1:{port}", "--admin",
                               f"127.0.0.1:{port + 400}", "--metrics", "off", "--drain-grace", "0",
                               *[f"model{i}={fake}" for i in range(models)]],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, "/v2/health/ready", 120)
        time.sleep(5)
        woken, spent = threads(server.pid), cpu_seconds(server.pid)
        time.sleep(seconds)
        later = threads(server.pid)
        causes = collections.Counter()
        for task, (count, name) in later.items():
            causes[name] += count - woken.get(task, (0,))[0]
        return {"models": models, "threads": len(later), "wakes": sum(causes.values()), "causes": causes,
                "cpu": cpu_seconds(server.pid) - spent, "megabytes": megabytes(server.pid)}
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def main():
    parser = arguments(__doc__, seconds=30)
    parser.add_argument("--models", type=int, default=100)
    args = parser.parse_args()
    print(f"{'models':>8} {'threads':>8} {'MB':>7} {'wake-ups/s':>11} {'CPU ms/s':>9}")
    for models in (1, args.models):
        told = measure(args.build, models, args.seconds)
        print(f"{told['models']:8} {told['threads']:8} {told['megabytes']:7.1f} {told['wakes'] / args.seconds:11.2f} "
              f"{1000 * told['cpu'] / args.seconds:9.2f}  {dict(+told['causes']) or ''}")


if __name__ == "__main__":
    main()
