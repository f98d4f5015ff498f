"""CUDA packages through Sconce and through PyTorch's own loader, in one run: python compare.py BENCH SCONCE PACKAGE...

BENCH and SCONCE are build/release/tests/bench_cuda_call and build/release/server/sconce. Needs torch with CUDA. Inputs and outputs stay on the device; a call ends
when the device has done it.
"""
import json
import subprocess
import sys
import time

CHILD = r"""
import json, sys, time
start = time.perf_counter()
import torch
model = torch._inductor.aoti_load_package(sys.argv[1])
inputs = [torch.full(size, 0.03, dtype=getattr(torch, dtype), device=device) for size, dtype, device in json.loads(sys.argv[2])]
with torch.no_grad():
    run = lambda: model.loader.boxed_run(list(inputs))
    run(); torch.cuda.synchronize()
    first = time.perf_counter() - start
    for _ in range(200): run(); torch.cuda.synchronize()
    times = []
    for _ in range(2000):
        before = time.perf_counter(); run(); torch.cuda.synchronize(); times.append(time.perf_counter() - before)
times.sort()
resident = next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmRSS")) / 1024
print(json.dumps({"first_output_ms": first * 1e3, "call_us_p50": times[1000] * 1e6, "call_us_p99": times[1980] * 1e6, "resident_mb": resident}))
"""


def inputs_of(sconce, package):
    spec = json.loads(subprocess.run([sconce, "inspect", "--json", package], check=True, capture_output=True, text=True).stdout)
    model = (spec.get("models") or [spec])[0]
    result = []
    for tensor in model["inputs"]:
        sizes = [d if isinstance(d, int) else 8 for d in tensor["shape"]]
        result.append([sizes, tensor["dtype"], tensor.get("device") or "cuda"])
    return result


def main(bench, sconce, packages):
    print(f"{'package':40s} {'call us':>9s} {'torch':>9s} {'ratio':>6s}  {'first ms':>9s} {'torch':>9s}  {'MB':>5s} {'torch':>6s}")
    for package in packages:
        ours = json.loads(subprocess.run([bench, package], check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        theirs = json.loads(subprocess.run([sys.executable, "-c", CHILD, package, json.dumps(inputs_of(sconce, package))],
                                           check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        print(f"{package[-40:]:40s} {ours['call_us_p50']:9.1f} {theirs['call_us_p50']:9.1f} "
              f"{ours['call_us_p50'] / theirs['call_us_p50']:6.2f}  {ours['first_output_ms']:9.0f} {theirs['first_output_ms']:9.0f}  "
              f"{ours['resident_mb']:5.0f} {theirs['resident_mb']:6.0f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
