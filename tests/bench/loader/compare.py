#!/usr/bin/env python3
"""Compares Sconce with PyTorch's own loader on the same packages, in one run, one thread.

    python tests/bench/loader/compare.py --sconce build/release/tests/bench_sconce_loader [--filter NAME] [CASE...]

Needs torch in the Python that runs it (`./dev bench` makes a throw-away environment). CASEs are conformance cases
(folders or packed suites); the default is the MLP of make_mlp.py and, if it is there, the suite models-cpu.
Figures are ratios PyTorch / Sconce, except for the call: Sconce / PyTorch. Runs alternate.
"""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
root = here.parents[2]
NUMBERS = {"uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7,
           "complex64": 9, "complex128": 10, "bool": 11, "bfloat16": 15}


def build_torch_loader(folder, whole):
    import torch

    base = pathlib.Path(torch.__file__).parent
    out = folder / "torch_loader"
    libraries = ["-Wl,--no-as-needed", "-ltorch"] if whole else []
    sources = here / "torch_loader.cpp", here / "bench_case.h"
    if not out.exists() or out.stat().st_mtime < max(s.stat().st_mtime for s in sources):
        subprocess.run(["g++", "-O2", "-std=c++20", "-w", str(sources[0]), "-o", str(out), f"-I{root}",
                        f"-I{base}/include", f"-I{base}/include/torch/csrc/api/include", f"-L{base}/lib", *libraries,
                        "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{base}/lib"], check=True)
    if not whole:
        # PyPI's libtorch.so pulls in the CUDA libraries. Packages name it but only need libtorch_cpu.so, so an empty
        # libtorch.so turns this into the CPU build of PyTorch, which starts sooner and is smaller.
        subprocess.run(["gcc", "-shared", "-xc", "/dev/null", "-o", str(folder / "libtorch.so")], check=True)
        os.environ["LD_LIBRARY_PATH"] = f"{folder}:{base}/lib"
    return out


def write_inputs(step, data, path):
    with open(path, "wb") as file:
        pack = lambda *values: file.write(struct.pack(f"<{len(values)}q", *values))
        pack(len(step["inputs"]))
        for t in step["inputs"]:
            pack(NUMBERS[t["dtype"]], len(t["shape"]), *t["shape"], *t["stride"], t["offset"], t["bytes"])
            file.write(data[t["at"]:t["at"] + t["bytes"]])


def measure(command, package, inputs, seconds):
    env = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    start = time.monotonic()
    done = subprocess.run([*map(str, command), str(package), str(inputs), str(seconds)], capture_output=True, text=True,
                          env=env)
    if done.returncode:
        return {"error": (done.stderr or done.stdout).strip().splitlines()[-1:] or [str(done.returncode)]}
    result = json.loads(done.stdout.strip().splitlines()[-1])
    result["start_ms"] = result["first_output_at_ms"] - 1e3 * start
    return result


def best(results):
    good = [r for r in results if "error" not in r]
    if not good:
        return results[0]
    merged = dict(good[0])
    for key in ("load_ms", "reload_ms", "first_run_ms", "start_ms", "p50_us", "p90_us"):
        merged[key] = min(r[key] for r in good)
    merged["resident_kb"] = min(r["resident_kb"] for r in good)
    return merged


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def unpack(paths, folder):
    for path in paths:
        path = pathlib.Path(path)
        if path.is_file():
            with tarfile.open(path) as archive:
                archive.extractall(folder / path.name, filter="data")
            path = folder / path.name
        yield from sorted(p.parent for p in path.rglob("case.json"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sconce", default=root / "build/release/tests/bench_sconce_loader")
    parser.add_argument("--filter", default="")
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--whole", action="store_true",
                        help="link PyTorch as its CMake package does, with all that PyPI's libtorch.so pulls in")
    parser.add_argument("--python", action="store_true", help="measure the Python loader too")
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()
    if not importlib.util.find_spec("torch"):
        sys.exit("compare.py: this Python has no torch: pip install torch==2.15.0 numpy")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        cases = args.cases
        if not cases:
            subprocess.run([sys.executable, here / "make_mlp.py", folder / "mlp"], check=True)
            cases = [folder / "mlp"]
            suite = root.parent / "shared/conformance/models-cpu.tar.xz"
            if suite.exists():
                cases.append(suite)
        torch_loader = build_torch_loader(folder, args.whole)
        rows = []
        print(f"{'case':32} {'call us':>9} {'torch us':>9} {'call':>6} {'load':>6} {'reload':>6} {'start':>7} "
              f"{'memory':>7}")
        for case in unpack(cases, folder):
            if args.filter not in case.name:
                continue
            info = json.loads((case / "case.json").read_text())
            step = next((s for s in info["steps"] if s["do"] == "run" and not s.get("fails")), None)
            if step is None or any(t["dtype"] not in NUMBERS for t in step["inputs"]):
                continue
            write_inputs(step, (case / "data.bin").read_bytes(), folder / "inputs.bin")
            package = case / info["package"]
            ours, theirs = [], []
            for _ in range(args.rounds):  # alternate, because the machine is shared
                ours.append(measure([args.sconce], package, folder / "inputs.bin", args.seconds))
                theirs.append(measure([torch_loader], package, folder / "inputs.bin", args.seconds))
            a, b = best(ours), best(theirs)
            if "error" in a or "error" in b:
                print(f"{case.name:32} {a.get('error', '')} {b.get('error', '')}")
                continue
            row = dict(name=case.name, call=a["p50_us"] / b["p50_us"], load=b["load_ms"] / a["load_ms"],
                       reload=b["reload_ms"] / a["reload_ms"], start=b["start_ms"] / a["start_ms"],
                       memory=b["resident_kb"] / a["resident_kb"])
            rows.append(row)
            print(f"{case.name:32} {a['p50_us']:9.2f} {b['p50_us']:9.2f} {row['call']:6.2f} {row['load']:6.1f} "
                  f"{row['reload']:6.1f} {row['start']:7.1f} {row['memory']:7.1f}   load {a['load_ms']:.2f}/"
                  f"{b['load_ms']:.2f} ms, again {a['reload_ms']:.2f}/{b['reload_ms']:.2f} ms, start "
                  f"{a['start_ms']:.1f}/{b['start_ms']:.0f} ms, resident {a['resident_kb'] / 1024:.1f}/"
                  f"{b['resident_kb'] / 1024:.0f} MB", flush=True)
            if args.python:
                c = measure([sys.executable, here / "python_loader.py"], package, folder / "inputs.bin", args.seconds)
                print(f"{'  Python loader':32} {c}")
        if rows:
            mean = {key: geomean([r[key] for r in rows]) for key in ("call", "load", "reload", "start", "memory")}
            print(f"{'geometric mean':32} {'':9} {'':9} {mean['call']:6.2f} {mean['load']:6.1f} {mean['reload']:6.1f} "
                  f"{mean['start']:7.1f} {mean['memory']:7.1f}")
            worst = max(rows, key=lambda r: r["call"])
            print(f"slowest call against PyTorch: {worst['name']} {worst['call']:.2f}")


if __name__ == "__main__":
    main()
