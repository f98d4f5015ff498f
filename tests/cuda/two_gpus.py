#!/usr/bin/env python3
"""Throughput of replicas on one, two... all GPUs of this machine: two_gpus.py BENCH PACKAGE [SECONDS]

BENCH is build/release/tests/bench_cuda_call. A process runs one replica on each device, a thread for each, for that
long (3 s). Linear is 1.00; the last line says what the most devices reach. Ends with 1 below 0.95.
"""
import json
import subprocess
import sys

bench, package = sys.argv[1:3]
seconds = sys.argv[3] if len(sys.argv) > 3 else "3"
devices = len(subprocess.run(["nvidia-smi", "-L"], check=True, capture_output=True, text=True).stdout.splitlines())
counts = [n for n in (1, 2, 4, 8) if n <= devices]
single, share = None, 1.0
for count in counts:
    done = subprocess.run([bench, "--throughput", str(count), seconds, package], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{count} devices: failed: {done.stderr.strip().splitlines()[-1] if done.stderr else done.returncode}")
        share = 0.0
        continue
    result = json.loads(done.stdout.splitlines()[-1])
    single = single or result["runs_per_second"]
    share = result["runs_per_second"] / single / count
    print(f"{count} devices: {result['runs_per_second']:.0f} runs/s, {share:.3f} of linear, same outputs: {result['same']}",
          flush=True)
    if not result["same"]:
        share = 0.0
print(f"{counts[-1]} devices: {share:.3f} of linear")
sys.exit(0 if share >= 0.95 else 1)
