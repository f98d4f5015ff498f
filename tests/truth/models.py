#!/usr/bin/env python3
"""Whole models with a dynamic batch: models.py --programs FOLDER [--device cuda] [--models REGEX] [--seconds N] [--out FOLDER]

Exports each model of model_zoo.py once with a dynamic batch and compiles it once by AOTInductor, in parallel processes. For batches
1, 2, 3, 5 and 8, two inputs each, eager PyTorch in float64 gives the expected result, and the error of PyTorch's own loader gives the
tolerance. sconce_conformance (in FOLDER) then runs the package: as CUDA graphs, each shape several times, without graphs, and by
several threads at once on several replicas with different inputs. Needs torch and a C++ compiler (CXX). Failed cases stay in --out.
Ends with a table; exits with 1 if an answer was wrong.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "data")]
BATCHES = (1, 2, 3, 5, 8)
MANNERS = {"graphs": ["--rounds", "4"], "no graphs": ["--graphs", "0", "--rounds", "2"],
           "at once": ["--replicas", "3", "--threads", "6", "--rounds", "3"]}
EPS = {"float16": 2.0 ** -10, "bfloat16": 2.0 ** -7, "float32": 2.0 ** -23, "float64": 2.0 ** -52, "complex64": 2.0 ** -23, "complex128": 2.0 ** -52}


class Data:
    """Writes a case's data.bin (tests/conformance/case.h)."""

    def __init__(self):
        self.bytes = bytearray()

    def add(self, t):
        import torch
        self.bytes.extend(b"\0" * (-len(self.bytes) % 64))
        at, size = len(self.bytes), t.untyped_storage().nbytes()
        self.bytes.extend(torch.empty(0, dtype=torch.uint8, device=t.device).set_(t.untyped_storage()).cpu().numpy().tobytes())
        return {"dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape), "stride": list(t.stride()), "offset": t.storage_offset(),
                "device": t.device.type, "at": at, "bytes": size}


def wide(tree):
    import torch
    from torch.utils import _pytree as pytree
    return pytree.tree_map(lambda t: t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t, tree)


def record(name, device, folder):
    """Makes the case of one model. Prints what cannot be compared."""
    import copy

    import torch
    import torch._inductor.config as inductor
    from torch.utils import _pytree as pytree

    import model_zoo
    torch.manual_seed(0)
    module, inputs = model_zoo.MODELS[name]()
    module = module.eval().to(device)
    of = lambda b: [t.to(device) for t in inputs(b)]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    with torch.no_grad():
        batch = torch.export.Dim("batch", min=1, max=64)
        given = tuple(of(4))
        shapes = {"args": tuple({0: batch} for _ in given)} if isinstance(module, model_zoo.Of) else tuple({0: batch} for _ in given)
        program = torch.export.export(module, given, dynamic_shapes=shapes)
        package = str(folder / "model.pt2")
        quick = "aot_inductor.compile_wrapper_opt_level"
        torch._inductor.aoti_compile_and_package(program, package_path=package, inductor_configs={quick: "O0"} if quick in inductor.get_config_copy() else {})
        loader = torch._inductor.aoti_load_package(package)
        exactly = copy.deepcopy(module).double()
        data, steps = Data(), []
        for b in [b for b in BATCHES for _ in range(2)]:
            torch.manual_seed(100 + len(steps))
            tensors = of(b)
            leaves = lambda tree: [t for t in pytree.tree_leaves(tree)]
            same = leaves(module(*tensors))
            loaded = leaves(loader(*tensors))
            try:
                exact = leaves(exactly(*wide(tensors)))
            except (RuntimeError, NotImplementedError):  # the model computes in float32 itself
                exact = same
            step = {"do": "run", "inputs": [data.add(t) for t in tensors], "outputs": [], "compare": "value", "rtol": 0.0, "atol": 0.0}
            for i, (s, g, e) in enumerate(zip(same, loaded, exact)):
                kind = str(s.dtype).removeprefix("torch.")
                stored = torch.empty_strided(g.shape, g.stride(), dtype=s.dtype, device=device)
                if kind in EPS:
                    stored.copy_(e.to(s.dtype))
                    size = float(e.abs().nan_to_num(0, 0, 0).max()) if e.numel() else 0.0
                    off = float((g.to(e.dtype) - e).abs().nan_to_num(0, 0, 0).max()) if e.numel() else 0.0
                    eager = float((s.to(e.dtype) - e).abs().nan_to_num(0, 0, 0).max()) if e.numel() else 0.0
                    if off > 20 * eager + 2000 * EPS[kind] * size + (2e-3 * size if device == "cuda" else 0):
                        print(f"NOTE {name} batch {b} output {i}: PyTorch's own loader is off by {off:.3g} of {size:.3g}, eager by {eager:.3g}", flush=True)
                    entry = data.add(stored) | {"rtol": 4 * EPS[kind], "atol": 3 * min(max(off, eager), 20 * eager + 2000 * EPS[kind] * size + 2e-3 * size) + 32 * EPS[kind] * size}
                else:
                    if not torch.equal(g, s):
                        print(f"NOTE {name} batch {b} output {i}: PyTorch's own loader gives other {kind} than eager: taken from it", flush=True)
                    stored.copy_(g)
                    entry = data.add(stored)
                step["outputs"].append(entry)
            steps.append(step)
    (folder / "data.bin").write_bytes(data.bytes)
    case = {"format": 1, "name": f"truth/{name}", "source": name, "torch": re.match(r"[\d.]+", torch.__version__)[0], "device": device, "tags": [],
            "package": "model.pt2", "model": "model", "metadata": {}, "steps": steps}
    if device == "cuda":
        case["sm"] = "".join(map(str, torch.cuda.get_device_capability()))
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def make_all(options, deadline):
    """The cases made, and the reasons for those that were not."""
    import model_zoo
    waiting = [n for n in model_zoo.MODELS if re.search(options.models, n)]
    running, made, reasons, notes = {}, [], {}, []
    environment = dict(os.environ, OMP_NUM_THREADS="2", TORCHINDUCTOR_COMPILE_THREADS="2", CXX=os.environ.get("CXX", "/usr/bin/g++"))
    while waiting or running:
        while waiting and len(running) < options.jobs and time.time() < deadline:
            name = waiting.pop(0)
            log = open(options.out / f"{name}.log", "w+")
            running[name] = (subprocess.Popen([sys.executable, __file__, "--make", name, "--device", options.device, "--out", str(options.out)], stdout=log,
                                              stderr=subprocess.STDOUT, env=environment), log)
        if time.time() > deadline:
            reasons.update({n: "no time was left" for n in waiting})
            waiting = []
            for process, _ in running.values():
                process.kill()
        for name, (process, log) in list(running.items()):
            if process.poll() is None:
                continue
            del running[name]
            log.seek(0)
            text = log.read()
            notes += [line for line in text.splitlines() if line.startswith("NOTE")]
            if process.returncode == 0:
                made.append(name)
            else:
                lines = [line for line in text.splitlines() if re.match(r"\S*(Error|Exception|Violation)\b", line)] or text.strip().splitlines() or ["killed"]
                reasons[name] = lines[-1][:250]
                shutil.rmtree(options.out / name, ignore_errors=True)
        time.sleep(0.2)
    return made, reasons, notes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, help="where sconce_conformance is")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--models", default=".", help="a regular expression")
    parser.add_argument("--seconds", type=int, default=1500, help="for all of it")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) * 3 // 4), help="models that are compiled at a time")
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parents[1] / "build/truth-models")
    parser.add_argument("--make", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not importlib.util.find_spec("torch"):
        sys.exit("models.py: this Python has no torch: pip install torch==2.15.0 numpy")
    if options.make:
        record(options.make, options.device, options.out / options.make)
        return 0
    begun = time.time()
    options.out = options.out.resolve()
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    made, reasons, notes = make_all(options, begun + options.seconds * 0.7)
    print("\n".join(notes[:40]))
    print(f"{len(made)} models made in {time.time() - begun:.0f} s", flush=True)
    wrong = {}
    table = {name: {} for name in made}
    for manner, flags in MANNERS.items():
        if manner == "no graphs" and options.device == "cpu":
            continue
        left = begun + options.seconds - time.time()
        report = options.out / "report.json"
        report.unlink(missing_ok=True)
        if left > 5 and made:
            try:
                run = subprocess.run([str(options.programs.resolve() / "sconce_conformance"), *flags, "--json", str(report), "-j", "4", "--limit", "120",
                                      *(str(options.out / n) for n in made)], capture_output=True, text=True, timeout=left)
            except subprocess.TimeoutExpired:
                print(f"{manner}: took longer than {left:.0f} s")
        cases = json.loads(report.read_text())["cases"] if report.exists() else []
        if left > 5 and made and not cases:
            print(f"{manner}: no report: {(run.stdout + run.stderr)[-300:]}")
        for case in cases:
            name = case["name"].rsplit("/", 1)[-1]
            table[name][manner] = case["status"]
            if case["status"] == "FAIL":
                wrong[name] = True
                print(f"FAIL {name}, {manner}: {case['reason'][:300]}", flush=True)
    manners = list(MANNERS)
    print(f"\n{'model':28}" + "".join(f"{m:>12}" for m in manners))
    for name in made:
        print(f"{name:28}" + "".join(f"{table[name].get(m, '-'):>12}" for m in manners))
        if name not in wrong:
            shutil.rmtree(options.out / name, ignore_errors=True)
    for name, reason in reasons.items():
        print(f"{name:28} not made: {reason}")
    answers = sum(len(t) for t in table.values()) * len(BATCHES) * 2
    failed = sum(v == "FAIL" for t in table.values() for v in t.values())
    print(f"{len(made)} models, {len(reasons)} not made, batches {', '.join(map(str, BATCHES))}, {answers} answers at least, {options.device}, {time.time() - begun:.0f} s")
    print(f"{sum(v == 'PASS' for t in table.values() for v in t.values())} passed, {failed} failed")
    return 1 if failed or not made else 0


if __name__ == "__main__":
    sys.exit(main())
