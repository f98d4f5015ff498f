#!/usr/bin/env python3
"""Throughput of replicas on all GPUs of this machine: several_gpus.py BENCH [PACKAGE...] [--seconds N]

BENCH is build/release/tests/bench_cuda_call. Runs one replica and one thread per device for N seconds (2): each device by
itself, then the first two, four... together. 1.000 is the sum of the single devices' throughput. Takes the better of two
turns. Ends with a line for each package, and with 1 if one is below 0.95.

Without PACKAGE, compiles a transformer in float16 in two sizes: 24 layers 1,024 wide on 8 x 512 tokens, whose kernels take
longer than launches, and 2 layers 256 wide on 4 x 64, whose launches count. This needs PyTorch with CUDA and a C++ compiler.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SIZES = {"large": (24, 1024, 8, 512), "small": (2, 256, 4, 64)}  # layers, width, rows, tokens


def compile_transformer(path, layers, width, rows, tokens):
    import torch
    layer = torch.nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0, batch_first=True)
    net = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).half().cuda().eval()
    with torch.no_grad():
        program = torch.export.export(net, (torch.randn(rows, tokens, width, device="cuda").half(),))
        torch._inductor.aoti_compile_and_package(program, package_path=path)


def rate(options, package, devices):
    """Runs per second on these devices together; 0 if a run failed or outputs differ."""
    best = 0.0
    for _ in range(2):
        done = subprocess.run([options.bench, "--throughput", ",".join(map(str, devices)), options.seconds, package],
                              capture_output=True, text=True)
        if done.returncode != 0:
            print(f"devices {devices}: failed: {(done.stderr.strip() or str(done.returncode)).splitlines()[-1]}")
            return 0.0
        result = json.loads(done.stdout.splitlines()[-1])
        if not result["same"]:
            print(f"devices {devices}: outputs differ")
            return 0.0
        best = max(best, result["runs_per_second"])
    return best


def measure(options, package, count):
    """The share of linear on all devices."""
    alone = []
    for device in range(count):
        alone.append(rate(options, package, [device]))
        print(f"device {device}: {alone[-1]:.0f} runs/s", flush=True)
    share = 1.0
    for devices in [range(n) for n in (2, 4, 8) if n <= count]:
        together = rate(options, package, devices)
        share = together / sum(alone[: len(devices)]) if all(alone) else 0.0
        print(f"{len(devices)} devices: {together:.0f} runs/s, {share:.3f} of linear, {share * len(devices):.2f} of one", flush=True)
    return share


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", metavar="BENCH")
    parser.add_argument("packages", metavar="PACKAGE", nargs="*")
    parser.add_argument("--seconds", metavar="N", default="2")
    options = parser.parse_args()
    count = len(subprocess.run(["nvidia-smi", "-L"], check=True, capture_output=True, text=True).stdout.splitlines())
    with tempfile.TemporaryDirectory() as folder:
        for name, size in SIZES.items() if not options.packages else ():
            options.packages.append(os.path.join(folder, f"{name}.pt2"))
            compile_transformer(options.packages[-1], *size)
        shares = {}
        for package in options.packages:
            print(pathlib.Path(package).stem, flush=True)
            shares[package] = measure(options, package, count)
    for package, share in shares.items():
        print(f"{pathlib.Path(package).stem}: {count} devices: {share:.3f} of linear")
    return 0 if min(shares.values()) >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
