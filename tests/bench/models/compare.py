#!/usr/bin/env python3
"""Compares Sconce with PyTorch's own loader on packages of real-size models, and both with the machine, in one run.

    ninja -C build/release bench_sconce_loader
    python tests/bench/models/compare.py [--threads 1 2] [--rounds 8] [--seconds 0.4] [--json FILE] [MODEL...]
    python tests/bench/models/compare.py --exact [MODEL...]

Needs torch in the Python that runs it, and a C++ compiler (CXX). MODELs are names of definitions.py or beginnings of them;
the default is all. A model is compiled into --packages the first time (--again: anew), one package for any number of
threads. What cannot be compiled or run is named and left out.

Per model and number of threads, the program of either side holds the package, and they take turns of SECONDS, ROUNDS
times; machine.cpp takes turns with them. A figure is the fastest call of all turns. `ratio` is our time over theirs: less is
better. `GFLOP/s` and `GB/s` are ours: what torch's flop counter counts of matrix products, convolutions and
attention, and the bytes of these operators' arguments and results, each over our time; `limit` is the larger share of
what the machine has reached so far in the run. `first` is the time of our first run over that of a warm one, `load` our and
their time to load, `memory` our and their resident size after the turns.

With --exact, each model runs once on either side, and all elements of the outputs are compared: the row says how far the
farthest is from PyTorch's, over the largest of that output. It fails where this is more than rounding explains."""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import time

here = pathlib.Path(__file__).resolve().parent
root = here.parents[2]


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem + "_of_" + path.parent.name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


loader = module_of(here.parent / "loader/compare.py")


def storage_of(tensor, at):
    return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape),
            "stride": list(tensor.stride()), "offset": 0, "at": at, "bytes": tensor.numel() * tensor.element_size()}


def count_work(module, inputs):
    """FLOPs, and bytes that the counted operators read and write."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import FlopCounterMode, flop_registry

    aten, total = torch.ops.aten, [0]
    # One layer and direction: input [T, N, I], weights [4H, I] and [4H, H].
    lstm = lambda x, w0, w1, *rest, **named: 2 * x[0] * x[1] * w0[0] * (w0[1] + w1[1])
    layer = aten.mkldnn_rnn_layer

    class Bytes(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            if function._overloadpacket in flop_registry or function._overloadpacket is layer:
                parts, _ = torch.utils._pytree.tree_flatten((args, kwargs, out))
                total[0] += sum(t.numel() * t.element_size() for t in parts if isinstance(t, torch.Tensor))
            return out

    with FlopCounterMode(display=False, custom_mapping={layer: lstm}) as flops, Bytes(), torch.no_grad():
        module(*inputs)
    return flops.get_total_flops(), total[0]


def bytes_of(tensors):
    """Each storage once; of a tensor that is made of others (a quantised one), those."""
    import torch
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    def parts(tensor):
        if not is_traceable_wrapper_subclass(tensor):
            return [tensor] if isinstance(tensor, torch.Tensor) else []
        return [p for name in tensor.__tensor_flatten__()[0] for p in parts(getattr(tensor, name))]

    return sum({t.data_ptr(): t.numel() * t.element_size() for tensor in tensors for t in parts(tensor)}.values())


def compile_model(name, folder):
    import torch
    from definitions import MODELS

    torch.manual_seed(0)
    torch.set_num_threads(2)
    module, inputs, options = MODELS[name]()
    module.eval()
    dtype = options.get("dtype")
    if dtype:
        module.to(dtype)
        inputs = tuple(t.to(dtype) if t.is_floating_point() else t for t in inputs)
    flops, touched = count_work(module, inputs)
    data, described = b"", []
    for t in inputs:
        described.append(storage_of(t, len(data)))
        data += bytes(t.contiguous().view(torch.uint8).flatten().tolist())
    loader.write_inputs({"inputs": described}, data, folder / f"{name}.inputs")
    with torch.no_grad():
        plain = bytes_of([*module.parameters(), *module.buffers()])
        if quantise := options.get("quantise"):
            module = quantise(module, inputs)
        program = torch.export.export(module, inputs)
    weights = bytes_of([*program.state_dict.values(), *program.constants.values()])
    configs = {"freezing": bool(options.get("frozen")), "cpp.dynamic_threads": True}
    with torch.no_grad():
        torch._inductor.aoti_compile_and_package(program, package_path=str(folder / f"{name}.new.pt2"),
                                                 inductor_configs=configs)
    if quantise:  # the float module was counted
        touched += weights - plain
    (folder / f"{name}.json").write_text(json.dumps({"flops": flops, "bytes": touched, "weights": weights}))
    (folder / f"{name}.new.pt2").rename(folder / f"{name}.pt2")


class Program:
    def __init__(self, command, threads):
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
        self.started = time.monotonic()
        self.process = subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=env)
        self.turns = []

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            words = self.process.stderr.read().strip().splitlines()[-1:]
            raise RuntimeError(f"{pathlib.Path(self.process.args[0]).name}: {' '.join(words)}")
        return json.loads(line)

    def turn(self, words=""):
        try:
            self.process.stdin.write(f"{words}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # line() says why
        self.turns.append(self.line())

    def least(self, key):
        return min(turn[key] for turn in self.turns)

    def most(self, key):
        return max(turn[key] for turn in self.turns)

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def compare(name, threads, args, programs, best):
    """`best`: what the machine has reached so far with so many threads, updated."""
    package, inputs = args.packages / f"{name}.pt2", args.packages / f"{name}.inputs"
    work = json.loads((args.packages / f"{name}.json").read_text())
    command = [package, inputs, "turns", threads]
    package.read_bytes()  # into the page cache, or who comes first would wait for the disk
    running = []
    try:
        for program in programs["sconce"], programs["torch"]:
            running.append(Program([program, *command], threads))
            running[-1].first = running[-1].line()
        ours, theirs = running
        machine = Program([programs["machine"], threads], threads)
        running.append(machine)
        for _ in range(args.rounds):
            ours.turn(args.seconds)
            theirs.turn(args.seconds)
            machine.turn()
    finally:
        for program in running:
            program.end()
    a, b = ours.least("least_us"), theirs.least("least_us")
    gflops, gbytes = work["flops"] / a / 1e3, work["bytes"] / a / 1e3
    for key in best:
        best[key] = max(best[key], machine.most(key))
    return {"name": name, "threads": threads, "ours_ms": a / 1e3, "theirs_ms": b / 1e3, "ratio": a / b,
            "gflops": gflops, "gbytes": gbytes, "limit": max(gflops / best["gflops"], gbytes / best["gbytes"]),
            "lanes": machine.turns[0]["lanes"],
            "first": 1e3 * ours.first["first_run_ms"] / ours.least("p50_us"),
            "load_ms": (ours.first["load_ms"], theirs.first["load_ms"]), "weights_mb": work["weights"] / 1e6,
            "memory_mb": (ours.most("resident_kb") / 1024, theirs.most("resident_kb") / 1024)}


def read_inputs(path):
    """What loader.write_inputs wrote, as tensors."""
    import torch

    data, at = path.read_bytes(), 0

    def numbers(count):
        nonlocal at
        at += 8 * count
        return struct.unpack_from(f"<{count}q", data, at - 8 * count)

    dtypes = {number: getattr(torch, name) for name, number in loader.NUMBERS.items()}
    tensors = []
    for _ in range(*numbers(1)):
        dtype, rank = numbers(2)
        sizes, strides, (offset, size) = numbers(rank), numbers(rank), numbers(2)
        storage = torch.frombuffer(bytearray(data[at:at + size]), dtype=dtypes[dtype])
        tensors.append(storage.as_strided(sizes, strides, offset))
        at += size
    return tensors


def read_outputs(data):
    """What `bench_sconce_loader PACKAGE INPUTS values THREADS` printed, as tensors."""
    import torch

    dtypes = {number: getattr(torch, name) for name, number in loader.NUMBERS.items()}
    at, tensors = 0, []
    while at < len(data):
        dtype, rank = struct.unpack_from("<2q", data, at)
        sizes = struct.unpack_from(f"<{rank}q", data, at + 16)
        at += 16 + 8 * rank
        count = math.prod(sizes)
        tensors.append(torch.frombuffer(bytearray(data[at:at + count * dtypes[dtype].itemsize]),
                                        dtype=dtypes[dtype]).view(sizes))
        at += count * dtypes[dtype].itemsize
    return tensors


def compare_values(name, threads, args):
    """The largest difference of an element, over the largest element of its output."""
    import torch

    package, inputs = args.packages / f"{name}.pt2", args.packages / f"{name}.inputs"
    done = subprocess.run([args.sconce, package, inputs, "values", str(threads)], capture_output=True,
                          env=dict(os.environ, OMP_NUM_THREADS=str(threads)))
    if done.returncode:
        raise RuntimeError(" ".join(done.stderr.decode().strip().splitlines()[-1:]))
    ours = read_outputs(done.stdout)
    theirs = torch._inductor.aoti_load_package(str(package))(*read_inputs(inputs))
    theirs = [theirs] if isinstance(theirs, torch.Tensor) else list(theirs)
    if [(a.shape, a.dtype) for a in ours] != [(b.shape, b.dtype) for b in theirs]:
        raise RuntimeError("outputs of other sizes or types")
    worst, allowed = 0.0, 0.0
    for a, b in zip(ours, theirs):
        worst = max(worst, ((a.double() - b.double()).abs().max() / b.double().abs().max()).item())
        # Roundings of single operators add up over the layers.
        allowed = max(allowed, 64 * torch.finfo(b.dtype).eps if b.dtype.is_floating_point else 0)
        if name.endswith("-int8"):  # an activation that rounds to the next of its 256 values moves the outputs by as much
            allowed = max(allowed, 2 / 256)
    return worst, worst <= allowed


def compare_all_values(names, args):
    wrong = 0
    for name in names:
        for threads in args.threads:
            try:
                worst, good = compare_values(name, threads, args)
                print(f"{name:22} {threads:3} differs by {worst:.1e}{'' if good else ', more than rounding'}", flush=True)
            except RuntimeError as failure:
                good = False
                print(f"{name:22} {threads:3} not run: {failure}", flush=True)
            wrong += not good
    return 1 if wrong else 0


def build_machine(folder):
    out = folder / "machine"
    subprocess.run([os.environ.get("CXX", "g++"), "-O2", "-std=c++20", "-fopenmp", here / "machine.cpp", "-o", out],
                   check=True)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sconce", type=pathlib.Path, default=root / "build/release/tests/bench_sconce_loader")
    parser.add_argument("--packages", type=pathlib.Path, default=root / "build/bench-models")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--again", action="store_true", help="compile models that are compiled already")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--exact", action="store_true", help="compare outputs, not times")
    parser.add_argument("--list", action="store_true", help="only print the names")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows there too")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("models", nargs="*")
    args = parser.parse_args()
    if not importlib.util.find_spec("torch"):
        sys.exit("compare.py: this Python has no torch: pip install torch==2.15.0 numpy")
    sys.path.insert(0, str(here))
    args.packages.mkdir(parents=True, exist_ok=True)
    if args.one:
        return compile_model(args.one, args.packages)
    from definitions import MODELS

    names = [n for n in MODELS if not args.models or any(n == m or n.startswith(m + "-") for m in args.models)]
    if args.list or not names:
        return print("\n".join(MODELS))
    for name in list(names):
        if (args.packages / f"{name}.pt2").exists() and not args.again:
            continue
        start = time.monotonic()
        done = subprocess.run([sys.executable, __file__, "--packages", args.packages, "--one", name],
                              capture_output=True, text=True)
        if done.returncode:
            print(f"{name:22} not compiled: {' '.join(done.stderr.strip().splitlines()[-1:])}", flush=True)
            names.remove(name)
        else:
            print(f"{name:22} compiled in {time.monotonic() - start:.0f} s", flush=True)
    if args.compile_only:
        return None
    if args.exact:
        return compare_all_values(names, args)
    rows, best = [], {threads: {"gflops": 0, "gbytes": 0} for threads in args.threads}
    programs = {"sconce": args.sconce, "torch": loader.build_torch_loader(args.packages, False),
                "machine": build_machine(args.packages)}
    for threads in args.threads:
        machine = Program([programs["machine"], threads], threads)
        for _ in range(20):
            machine.turn()
        machine.end()
        best[threads] = {key: machine.most(key) for key in best[threads]}
    print(f"{'model':22} {'thr':>3} {'ms':>9} {'torch ms':>9} {'ratio':>6} {'GFLOP/s':>8} {'GB/s':>6} {'limit':>6} "
          f"{'first':>6} {'load ms':>13} {'memory MB':>13} {'weights':>8}")
    for name in names:
        for threads in args.threads:
            try:
                r = compare(name, threads, args, programs, best[threads])
            except RuntimeError as failure:
                print(f"{name:22} {threads:3} not run: {failure}", flush=True)
                continue
            rows.append(r)
            print(f"{name:22} {threads:3} {r['ours_ms']:9.2f} {r['theirs_ms']:9.2f} {r['ratio']:6.2f} "
                  f"{r['gflops']:8.1f} {r['gbytes']:6.1f} {r['limit']:6.2f} "
                  f"{r['first']:6.1f} {r['load_ms'][0]:6.0f}/{r['load_ms'][1]:6.0f} "
                  f"{r['memory_mb'][0]:6.0f}/{r['memory_mb'][1]:6.0f} {r['weights_mb']:8.0f}", flush=True)
    for threads in args.threads:
        of = [r for r in rows if r["threads"] == threads]
        if of:
            worst = max(of, key=lambda r: r["ratio"])
            print(f"{threads} thread{'s'[:threads - 1]}: geometric mean {loader.geomean([r['ratio'] for r in of]):.2f} of "
                  f"{len(of)} models, slowest {worst['name']} {worst['ratio']:.2f}; the machine: "
                  f"{best[threads]['gflops']:.1f} GFLOP/s ({of[0]['lanes']} lanes), {best[threads]['gbytes']:.1f} GB/s")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    return None


if __name__ == "__main__":
    sys.exit(main())
