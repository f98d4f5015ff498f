#!/usr/bin/env python3
"""Throughput of replicas on all GPUs of this machine: several_gpus.py BENCH PACKAGE [SECONDS]

BENCH is build/release/tests/bench_cuda_call. Runs one replica and one thread per device for SECONDS (2): each device by
itself, then the first two, four... together. 1.00 is the sum of the single devices' throughput. Takes the better of two
turns. The last line gives the figure for all devices; exits with 1 if it is below 0.95.
"""
import argparse
import json
import subprocess
import sys

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("bench", metavar="BENCH")
parser.add_argument("package", metavar="PACKAGE")
parser.add_argument("seconds", metavar="SECONDS", nargs="?", default="2")
options = parser.parse_args()
bench, package, seconds = options.bench, options.package, options.seconds
count = len(subprocess.run(["nvidia-smi", "-L"], check=True, capture_output=True, text=True).stdout.splitlines())


def rate(devices):
    """Runs per second on these devices together; 0 if a run failed or outputs differ."""
    best = 0.0
    for _ in range(2):
        done = subprocess.run([bench, "--throughput", ",".join(map(str, devices)), seconds, package], capture_output=True,
                              text=True)
        if done.returncode != 0:
            print(f"devices {devices}: failed: {(done.stderr.strip() or str(done.returncode)).splitlines()[-1]}")
            return 0.0
        result = json.loads(done.stdout.splitlines()[-1])
        if not result["same"]:
            print(f"devices {devices}: outputs differ")
            return 0.0
        best = max(best, result["runs_per_second"])
    return best


alone = []
for device in range(count):
    alone.append(rate([device]))
    print(f"device {device}: {alone[-1]:.0f} runs/s", flush=True)
share = 1.0
for devices in [range(n) for n in (2, 4, 8) if n <= count]:
    together = rate(devices)
    share = together / sum(alone[: len(devices)]) if all(alone) else 0.0
    print(f"{len(devices)} devices: {together:.0f} runs/s, {share:.3f} of linear", flush=True)
print(f"{count} devices: {share:.3f} of linear")
sys.exit(0 if share >= 0.95 else 1)
