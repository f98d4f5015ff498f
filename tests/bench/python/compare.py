#!/usr/bin/env python3
"""Compares sconce's Python package with PyTorch's own loader in Python, on the same packages, in one run, one thread.

    ninja -C build/release sconce_python_package bench_sconce_loader
    python tests/bench/python/compare.py [--build build/release] [--filter NAME] [CASE...]

The Python that runs it has torch, NumPy and, for bfloat16, ml_dtypes, and is of the version that the package is built for.
CASEs are conformance cases (folders or packed suites); the default is the MLP of ../loader/make_mlp.py and, if it is there,
the suite models-cpu.

For each case it prints the microseconds of a call in C++ (bench_sconce_loader), through sconce with NumPy arrays and with
torch's tensors, and through torch._inductor.aoti_load_package; then what Python adds to C++, the ratio to PyTorch, and how
many times sooner a new process has its first output, imports included. Processes alternate; the best of each counts. Calls
with torch's tensors are made in the process of PyTorch's loader, after its own.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
root = here.parents[2]
sys.path.insert(0, str(here.parent / "loader"))

from compare import NUMBERS, geomean, unpack, write_inputs  # noqa: E402

# Runs in a process of its own: LOADER PACKAGE CASE SECONDS.
CHILD = r"""
import json, sys, time
loader, package, folder, seconds = sys.argv[1:]
import numpy as np
info = json.loads(open(folder + "/case.json").read())
step = next(s for s in info["steps"] if s["do"] == "run" and not s.get("fails"))
data = np.fromfile(folder + "/data.bin", np.uint8)
arrays = []
for t in step["inputs"]:
    if t["dtype"] == "bfloat16" and loader == "sconce":
        import ml_dtypes
        dtype = np.dtype(ml_dtypes.bfloat16)
    else:
        dtype = np.dtype(np.int16 if t["dtype"] == "bfloat16" else t["dtype"])
    storage = data[t["at"]:t["at"] + t["bytes"]].copy()
    arrays.append(np.ndarray(t["shape"], dtype, storage, t["offset"] * dtype.itemsize,
                             [s * dtype.itemsize for s in t["stride"]]))
name = info.get("model", "model")
if loader == "sconce":
    import sconce
    model = sconce.load(package, model_name=name, check_inputs=False, threads=1)
    ready = arrays
else:
    import torch
    import torch._inductor
    torch.set_num_threads(1)
    model = torch._inductor.aoti_load_package(package, run_single_threaded=True)
    ready = [torch.from_numpy(a) for a in arrays]
    ready = [a.view(torch.bfloat16) if t["dtype"] == "bfloat16" else a for a, t in zip(ready, step["inputs"])]
args, kwargs = ready, {}
structure = json.loads(open(folder + "/call.json").read())
if structure:
    def build(node):
        if isinstance(node, dict):
            return {k: build(v) for k, v in node.items()}
        if isinstance(node, list):
            return [build(v) for v in node]
        return ready[node] if node is not None else 0
    args, kwargs = build(structure["args"]), build(structure["kwargs"])
    args = [tuple(a) if isinstance(a, list) else a for a in args]

def p50_us(model):
    for _ in range(20): model(*args, **kwargs)
    end = time.monotonic() + float(seconds)
    times = []
    while time.monotonic() < end or len(times) < 20:
        start = time.perf_counter()
        model(*args, **kwargs)
        times.append(time.perf_counter() - start)
    times.sort()
    return 1e6 * times[len(times) // 2]

model(*args, **kwargs)
result = {"first": time.monotonic(), "p50_us": p50_us(model)}
if loader != "sconce":
    import sconce
    model = sconce.load(package, model_name=name, check_inputs=False, threads=1, outputs="torch")
    model(*args, **kwargs)
    result["tensors_us"] = p50_us(model)
print(json.dumps(result))
"""

DESCRIBE = r"""
import json, sys
import sconce
info = sconce.inspect(sys.argv[1]).models
model = info[sys.argv[2]] if sys.argv[2] in info else next(iter(info.values()))
at = {tensor.path: i for i, tensor in enumerate(model.signature.inputs)}
def build(node, path):
    if node.kind == "leaf":
        return at.get(path)
    if node.kind == "none":
        return None
    keys = node.keys if len(node.keys) == len(node.children) else range(len(node.children))
    values = [build(c, f"{path}[{k!r}]") for k, c in zip(keys, node.children)]
    return dict(zip(keys, values)) if node.kind.endswith("ict") else values
s = model.signature
print(json.dumps(s.args and {"args": build(s.args, "args"), "kwargs": build(s.kwargs, "kwargs")}))
"""


def child(loader, package, folder, seconds, env):
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", CHILD, loader, str(package), str(folder), str(seconds)],
                          capture_output=True, text=True, env=env)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["?"])[-1][:200]}
    result = json.loads(done.stdout.strip().splitlines()[-1])
    result["first"] = 1e3 * (result["first"] - start)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build/release")
    parser.add_argument("--filter", default="")
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=pathlib.Path, help="keep each case's figures in this file, and sum up all that it has")
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()
    if not importlib.util.find_spec("torch"):
        sys.exit("compare.py: this Python has no torch: pip install torch==2.15.0 numpy")
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
           "PYTHONPATH": os.pathsep.join(filter(None, [str((args.build / "python").resolve()), os.environ.get("PYTHONPATH")]))}
    loader = args.build / "tests/bench_sconce_loader"
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        cases = args.cases
        if not cases:
            subprocess.run([sys.executable, here.parent / "loader/make_mlp.py", folder / "mlp"], check=True)
            cases = [folder / "mlp"]
            suite = root.parent / "shared/conformance/models-cpu.tar.xz"
            if suite.exists():
                cases.append(suite)
        print(f"{'case':32} {'C++ us':>8} {'numpy us':>9} {'tensor us':>9} {'torch us':>9} {'added us':>8} {'call':>6} "
              f"{'start ms':>8} {'torch ms':>8} {'sooner':>6}")
        for case in unpack(cases, folder):
            if args.filter not in case.name:
                continue
            info = json.loads((case / "case.json").read_text())
            step = next((s for s in info["steps"] if s["do"] == "run" and not s.get("fails")), None)
            named = info.get("model", "model") == "model"  # aoti_load_package takes no other
            if step is None or not named or any(t["dtype"] not in NUMBERS for t in step["inputs"]):
                continue
            package = case / info["package"]
            described = subprocess.run([sys.executable, "-c", DESCRIBE, package, info.get("model", "model")], env=env,
                                       capture_output=True, text=True, check=True)
            (case / "call.json").write_text(described.stdout)
            write_inputs(step, (case / "data.bin").read_bytes(), folder / "inputs.bin")
            best = {}
            for _ in range(args.rounds):  # alternate, because the machine is shared
                cpp = subprocess.run([loader, package, folder / "inputs.bin", str(args.seconds)], capture_output=True,
                                     text=True, env=env)
                found = {"c++": json.loads(cpp.stdout) if cpp.returncode == 0 else {"error": cpp.stderr.strip()}}
                for name in ("sconce", "torch"):
                    found[name] = child(name, package, case, args.seconds, env)
                for name, result in found.items():
                    kept = best.setdefault(name, result)
                    if "error" not in result:
                        best[name] = {key: min(result[key], kept.get(key, result[key]))
                                      for key in ("p50_us", "tensors_us", "first") if key in result}
            errors = [f"{name}: {result['error']}" for name, result in best.items() if "error" in result]
            if errors:
                print(f"{case.name:32} {'; '.join(errors)}")
                continue
            cpp, ours, theirs = (best[name]["p50_us"] for name in ("c++", "sconce", "torch"))
            tensors = best["torch"]["tensors_us"]
            row = dict(case=case.name, added=ours - cpp, call=tensors / theirs, numpy=ours / theirs,
                       sooner=best["torch"]["first"] / best["sconce"]["first"])
            rows.append(row)
            print(f"{case.name:32} {cpp:8.2f} {ours:9.2f} {tensors:9.2f} {theirs:9.2f} {row['added']:8.2f} {row['call']:6.2f} "
                  f"{best['sconce']['first']:8.0f} {best['torch']['first']:8.0f} {row['sooner']:6.1f}", flush=True)
    if args.rows:
        known = [json.loads(line) for line in args.rows.read_text().splitlines()] if args.rows.exists() else []
        rows = list({row["case"]: row for row in known + rows}.values())
        args.rows.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if rows:
        sum_up(rows)


def sum_up(rows):
    def line(title, key, mean, worst):
        row = worst(rows, key=lambda row: row[key])
        print(f"{title:44} {mean([row[key] for row in rows]):8.2f} {row[key]:8.2f}  {row['case']}")

    print(f"\n{len(rows)} cases{'':36} {'mean':>8} {'worst':>8}")
    line("a call with torch's tensors / PyTorch's call", "call", geomean, max)
    line("a call with NumPy arrays / PyTorch's call", "numpy", geomean, max)
    line("first output, times sooner", "sooner", geomean, min)
    line("us that Python adds to C++ (mean: the median)", "added", statistics.median, max)


if __name__ == "__main__":
    main()
