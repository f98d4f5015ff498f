#!/usr/bin/env python3
"""CUDA packages through Sconce and through PyTorch's own loader, in one run: python compare.py BENCH PACKAGE...

BENCH is build/release/tests/bench_cuda_call. Needs torch with CUDA. Inputs and outputs stay on the device; a call ends
when the device has finished it. Prints for each package the microseconds per call (with and without CUDA graphs,
PyTorch's loader, PyTorch's loader in a CUDA graph), the milliseconds for load and first call (PyTorch's without import),
and resident memory. A row that fails says so; the others are still measured."""
import argparse
import importlib.util
import json
import subprocess
import sys

CHILD = r"""
import json, sys, time
start = time.perf_counter()
import torch
torch.zeros(1, device="cuda"); torch.cuda.synchronize()
print(json.dumps({"import_ms": (time.perf_counter() - start) * 1e3}), flush=True)

def median(run, warm=200, count=2000):
    for _ in range(warm): run(); torch.cuda.synchronize()
    times = []
    for _ in range(count):
        before = time.perf_counter(); run(); torch.cuda.synchronize(); times.append(time.perf_counter() - before)
    return sorted(times)[count // 2] * 1e6

for line in sys.stdin:
    package, specs = json.loads(line)
    result = {}
    try:
        start = time.perf_counter()
        model = torch._inductor.aoti_load_package(package, run_single_threaded=True)
        inputs = [torch.full(size, 0.03, dtype=getattr(torch, dtype), device=device) for size, dtype, device in specs]
        run = lambda: model.loader.boxed_run(list(inputs))
        with torch.no_grad():
            run(); torch.cuda.synchronize()
            result["first_ms"] = (time.perf_counter() - start) * 1e3
            result["call_us"] = median(run)
            try:
                graph = torch.cuda.CUDAGraph()
                stream = torch.cuda.Stream()
                with torch.cuda.stream(stream):
                    for _ in range(3): run()
                torch.cuda.synchronize()
                with torch.cuda.graph(graph):
                    run()
                result["graph_us"] = median(graph.replay)
            except Exception as error:
                result["no_graph"] = str(error).split("\n")[0][:80]
        resident = next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmRSS")) / 1024
        result["resident_mb"] = resident
        del model
    except Exception as error:
        result["error"] = str(error).split("\n")[0][:200]
    print(json.dumps(result), flush=True)
"""


def ours_of(bench, package, *flags):
    done = subprocess.run([bench, *flags, package], capture_output=True, text=True)
    if done.returncode != 0:
        return {"error": (done.stderr or "failed").strip().splitlines()[-1][:120]}
    return json.loads(done.stdout.splitlines()[-1])


def number(value):
    return f"{value:9.1f}" if isinstance(value, (int, float)) else f"{value or '-':>9}"


def main(bench, packages):
    torch = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    print("torch import:", torch.stdout.readline().strip(), flush=True)
    print(f"{'package':36s} {'graphs':>9s} {'plain':>9s} {'torch':>9s} {'in graph':>9s}  {'first ms':>9s} {'torch':>9s}"
          f"  {'MB':>6s} {'torch':>6s}")
    for package in packages:
        try:
            graphs, plain = ours_of(bench, package), ours_of(bench, package, "--no-graphs")
            torch.stdin.write(json.dumps([package, plain["inputs"]]) + "\n")
            torch.stdin.flush()
            theirs = json.loads(torch.stdout.readline())
            print(f"{package.split('/')[-1][:36]:36s} {number(graphs.get('call_us_p50'))} "
                  f"{number(plain.get('call_us_p50'))} {number(theirs.get('call_us'))} {number(theirs.get('graph_us'))}  "
                  f"{number(plain.get('first_output_ms'))} {number(theirs.get('first_ms'))}  "
                  f"{plain.get('resident_mb', 0):6.0f} {theirs.get('resident_mb', 0):6.0f}  graphs: "
                  f"{graphs.get('graphs', '-')} {graphs.get('error', '')} {theirs.get('error', '')} "
                  f"{theirs.get('no_graph', '')}", flush=True)
        except Exception as error:  # noqa: BLE001  (the next package must be measured)
            print(f"{package}: {error}", flush=True)
    torch.stdin.close()
    torch.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", metavar="BENCH")
    parser.add_argument("packages", metavar="PACKAGE", nargs="+")
    options = parser.parse_args()
    if not importlib.util.find_spec("torch"):
        sys.exit("compare.py: this Python has no torch: pip install torch==2.15.0")
    main(options.bench, options.packages)
