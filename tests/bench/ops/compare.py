#!/usr/bin/env python3
"""Compares kernels with ATen's on the same operator, dtype and shape, with one thread and with two, in one run.

    ninja -C build/release bench_ops
    python tests/bench/ops/compare.py [--filter TEXT] [--threads 1 2] [--rounds 5] [--seconds 0.05] [--json FILE]
                                     [--intel]

Needs torch in the Python that runs it. The cases (*_cases.cpp) call the C interface that packages use, which PyTorch
exports too; the same object code is linked with either library. The two programs measure in turns of SECONDS, ROUNDS
times. If a busy machine keeps a program from coming twice within a tenth of its best time, up to 10 times as many turns
follow. A figure is the fastest call of all turns; a ratio is our time over theirs, so less is better. Results are
compared too: a case whose digests differ is marked. Operators that Sconce or PyTorch lacks are listed, not counted.

PyTorch has MKL inside, which takes its fast ways on Intel's CPUs only. --intel tells MKL that this is one: a library that
is loaded first answers for its mkl_serv_intel_cpu_true. Then MKL's code for AVX2 or AVX-512 runs on any x86-64 CPU. That
shows how fast its functions, products, factorisations and transforms are; what an Intel CPU's caches and clock do, it
does not show."""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
root = here.parents[2]


def build_torch_program(build, folder):
    import torch

    base = pathlib.Path(torch.__file__).parent
    out = folder / "torch_ops"
    subprocess.run(["g++", "-O2", "-std=c++20", "-w", str(here / "torch_side.cpp"), "-o", str(out),
                    f"-I{root}", f"-I{root}/include", f"-I{base}/include", f"-L{base}/lib",
                    str(build / "tests/bench/ops/libbench_ops_cases.a"), "-ltorch_cpu", "-lc10",
                    f"-Wl,-rpath,{base}/lib"], check=True)
    return out


def build_intel_answer(folder):
    source, out = folder / "intel.c", folder / "libintel.so"
    source.write_text("int mkl_serv_intel_cpu_true(void) { return 1; }\nint mkl_serv_intel_cpu(void) { return 1; }\n")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", str(source), "-o", str(out)], check=True)
    return {"LD_PRELOAD": str(out)}


class Program:
    def __init__(self, path, weights, threads, more=None):
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), **(more or {}))
        self.process = subprocess.Popen([str(path), str(weights)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def ask(self, *words):
        try:
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SystemExit(f"{self.process.args[0]} ended at {words}: status {self.process.wait()}")
        return line.strip()

    def cases(self):
        cases = []
        line = self.ask("list")
        while line:
            index, rest = line.split(" ", 1)
            cases.append((int(index), *rest.split(" | ", 1)))
            line = self.process.stdout.readline().strip()
        return cases

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def same(ours, theirs, random):
    """Whether digests agree: dtypes and sizes exactly; sums to a fraction of their size, unless numbers are
    random."""
    a, b = ours.split()[1:], theirs.split()[1:]
    if len(a) != len(b):
        return False
    for left, right in zip(a, b):
        left, right = left.split(":"), right.split(":")
        if left[:2] != right[:2]:
            return False
        if random or left == right:
            continue
        scale = 1 + math.sqrt(abs(float(right[3]))) + abs(float(right[2]))
        if any(not abs(float(x) - float(y)) <= 0.02 * max(scale, abs(float(y))) for x, y in zip(left[2:], right[2:])):
            return False
    return True


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def measure(program, index, seconds):
    answer = program.ask("time", index, seconds)
    if not answer.startswith("ok"):
        raise RuntimeError(answer)
    return float(answer.split()[1])


def settled(times):
    return len(times) > 1 and sorted(times)[1] <= 1.1 * min(times)


def summary(rows, threads):
    print(f"\n{'family':32} {'cases':>5} {'mean':>6} {'slowest':>8}   ({threads} thread{'s' * (threads > 1)})")
    for family in dict.fromkeys(r["family"] for r in rows):
        part = [r for r in rows if r["family"] == family]
        worst = max(part, key=lambda r: r["ratio"])
        print(f"{family:32} {len(part):5} {geomean([r['ratio'] for r in part]):6.2f} {worst['ratio']:8.2f}   {worst['name']}")
    ratios = [r["ratio"] for r in rows]
    print(f"{'all':32} {len(rows):5} {geomean(ratios):6.2f} {max(ratios):8.2f}   above 1.5: "
          f"{sum(r > 1.5 for r in ratios)}, above 1: {sum(r > 1 for r in ratios)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build/release")
    parser.add_argument("--against", type=pathlib.Path, help="another build of bench_ops in PyTorch's place: what a change "
                        "did to speed")
    parser.add_argument("--filter", default="", help="only cases with this in 'FAMILY | NAME'; several with a |")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--json", help="write all rows there")
    parser.add_argument("--intel", action="store_true", help="let PyTorch's MKL take its ways for Intel's CPUs")
    args = parser.parse_args()
    if not importlib.util.find_spec("torch"):
        sys.exit("compare.py: this Python has no torch: pip install torch==2.15.0 numpy")
    everything = []
    with tempfile.TemporaryDirectory() as temporary:
        bench = "tests/bench/ops/bench_ops"
        programs = args.build / bench, (args.against / bench if args.against else
                                        build_torch_program(args.build, pathlib.Path(temporary)))
        other = "other" if args.against else "ATen"
        intel = build_intel_answer(pathlib.Path(temporary)) if args.intel else {}
        weights = pathlib.Path(temporary) / "weights"
        subprocess.run([sys.executable, here / "pack_weights.py", weights], check=True)
        for threads in args.threads:
            ours, theirs = Program(programs[0], weights, threads), Program(programs[1], weights, threads, intel)
            rows, missing = [], []
            print(f"{'operator':62} {'ours us':>10} {other + ' us':>10} {'ratio':>6}   ({threads} threads)")
            for index, family, name in ours.cases():
                if not any(part in f"{family} | {name}" for part in args.filter.split("|")):
                    continue
                answers = [p.ask("check", index) for p in (ours, theirs)]
                failed = [f"{who}: {a}" for who, a in zip(("ours", other), answers) if not a.startswith("ok")]
                if failed:
                    missing.append((name, failed))
                    continue
                turns = [], []
                while len(turns[0]) < args.rounds or (not (settled(turns[0]) and settled(turns[1])) and
                                                      len(turns[0]) < 10 * args.rounds):
                    for program, times in zip((ours, theirs), turns):
                        times.append(measure(program, index, args.seconds))
                us, them = map(min, turns)
                for program in (ours, theirs):
                    program.ask("drop")
                differs = "" if same(*answers, family == "random") else "  RESULTS DIFFER"
                rows.append(dict(family=family, name=name, threads=threads, ours=us, aten=them, ratio=us / them,
                                 differs=bool(differs)))
                print(f"{name:62} {us:10.1f} {them:10.1f} {us / them:6.2f}{differs}", flush=True)
                if differs:
                    print(f"    ours {answers[0]}\n    {other} {answers[1]}")
            for name, failed in missing:
                print(f"{name:62} not compared: {'; '.join(failed)[:200]}")
            if rows:
                summary(rows, threads)
            everything += rows
            ours.end()
            theirs.end()
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
