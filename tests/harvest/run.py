#!/usr/bin/env python3
"""Runs tests of PyTorch's own as packages: each model that a test compiles is exported, compiled by AOTInductor, run by
PyTorch's loader, and the package is then run by sconce_conformance with the same inputs.

    pip install torch expecttest numpy
    ninja -C build/release sconce_conformance
    python tests/harvest/run.py --tests PYTORCH/test/inductor test_aot_inductor:AOTInductorTestABICompatibleCpu
    python tests/harvest/run.py --tests PYTORCH/test/inductor test_torchinductor:CpuTests:conv test_fused_attention:SDPAPatternRewriterCpuTests

Tests of an older PyTorch than the torch that is installed do mostly: imports that are gone get stand-ins, and tests that
need them record nothing. With --device cuda, classes for GPUs. Cases that fail stay in --out (build/harvest), and
report.jsonl there names every test. The exit status is 1 if a case failed.

So far: random tests of Inductor from PyTorch 2.6, run under torch 2.11, gave 375 packages of 304 tests for the CPU
(AVX-512), and 413 packages for an H100 and an H200. All equal PyTorch's loader. Not comparable are memory that nothing
wrote, operators that a test defines in Python, and half-precision functions that PyTorch's loader silently leaves out.
"""
import argparse
import collections
import importlib.util
import json
import os
import pathlib
import queue
import random
import re
import select
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("classes", nargs="+", metavar="MODULE:CLASS[:REGEX]")
    parser.add_argument("--tests", type=pathlib.Path, required=True, help="the folder that has the modules")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--workers", type=int, default=1, help="tests at the same time")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no test after this time")
    parser.add_argument("--test-seconds", type=float, default=240, help="give a test up after this time")
    parser.add_argument("--shuffle", type=int, help="a seed: tests of all classes in random order")
    parser.add_argument("--resume", action="store_true", help="leave out the tests that report.jsonl names")
    parser.add_argument("--keep", action="store_true", help="keep the cases that pass as well")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/harvest")
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/release/tests/sconce_conformance")
    options = parser.parse_args()
    if not importlib.util.find_spec("torch"):
        sys.exit("run.py: this Python has no torch: pip install torch==2.15.0 numpy expecttest")
    return options


class Worker:
    def __init__(self, options, number):
        given = {"tests": str(options.tests.resolve()), "device": options.device, "tool": str(options.tool.resolve()),
                 "cases": str(options.out / "cases"), "log": str(options.out / f"worker{number}.log"),
                 "keep": options.keep}
        caches = {"TORCHINDUCTOR_CACHE_DIR": str(options.out / f"cache{number}"),
                  "TRITON_CACHE_DIR": str(options.out / f"triton{number}")}
        self.process = subprocess.Popen([sys.executable, str(HERE / "worker.py"), json.dumps(given)],
                                        env=os.environ | caches, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.log = given["log"]
        if not self.read(300):
            raise SystemExit(f"a worker did not start: {pathlib.Path(self.log).read_text()[-2000:]}")

    def read(self, seconds):
        """An answer; None if the process ended or took too long."""
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            return None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def ask(self, request, seconds):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        return self.read(seconds)

    def end(self):
        self.process.kill()
        self.process.wait()


def listed(options):
    """(module, class, test) of all that is to be run."""
    worker, found = Worker(options, "list"), []
    for words in options.classes:
        module, name, pattern = (words.split(":", 2) + ["", ""])[:3]
        answer = worker.ask({"module": module, "class": name}, 300)
        if answer is None:
            answer = {"tests": [], "error": "the process ended or took too long"}
            worker.end()
            worker = Worker(options, "list")
        names = [t for t in answer["tests"] if re.search(pattern, t)]
        print(f"{module}:{name}: {len(names)} tests {answer.get('error', '')}", flush=True)
        found += [(module, name, t) for t in names]
    worker.end()
    if options.shuffle is not None:
        random.Random(options.shuffle).shuffle(found)
    return found


def main():
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    report = options.out / "report.jsonl"
    done = set()
    if options.resume and report.exists():
        done = {json.loads(line)["test"] for line in report.read_text().splitlines()}
    elif report.exists():
        report.unlink()
    todo = queue.Queue()
    for test in listed(options):
        if ":".join(test) not in done:
            todo.put(test)
    counts, lock, end = collections.Counter(), threading.Lock(), time.monotonic() + options.seconds

    def note(result):
        with lock, report.open("a") as file:
            file.write(json.dumps(result) + "\n")
            counts["tests"] += 1
            counts["tests without a package"] += not result["cases"]
            for case in result["cases"]:
                counts["passed" if case["passed"] else "failed"] += 1
                if not case["passed"]:
                    print(f"FAIL {case['case']}: {case['reason'].strip()}", flush=True)

    def work(number):
        worker = Worker(options, number)
        while time.monotonic() < end:
            try:
                module, name, test = todo.get_nowait()
            except queue.Empty:
                break
            result = worker.ask({"module": module, "class": name, "test": test}, options.test_seconds)
            if result is None:
                result = {"test": f"{module}:{name}:{test}", "status": "ended its process or took too long",
                          "notes": [], "cases": []}
                worker.end()
                worker = Worker(options, number)
            note(result)
        worker.end()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(options.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{counts['tests']} tests, {counts['tests without a package']} without a package, {todo.qsize()} left; "
          f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
