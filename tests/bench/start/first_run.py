#!/usr/bin/env python3
"""How much longer the first run of a small model takes than later ones, as there is no warm-up run for it.

    tests/bench/start/first_run.py build/release/src/libsconce.so PACKAGE... [--rounds 5]

Loads each package with less than 1 MiB of weights into processes of its own, without a trial, and runs it eight times on ones of
its smallest sizes. The process with the fastest first run counts. Prints in milliseconds, for each package, the first run, the
fastest later one and the difference, then the median and the largest difference.
"""
import argparse
import ctypes
import json
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "examples"))

import embed_ctypes as c_api  # noqa: E402

SMALL, RUNS = 1 << 20, 8


def runs(library, path):
    """The bytes of the model's weights and the times of its runs."""
    sconce = c_api.library(library)
    package, model, about = ctypes.c_void_p(), ctypes.c_void_p(), c_api.ModelInfo()
    sconce.sconce_package_open(path.encode(), ctypes.byref(package))
    sconce.sconce_model_load(package, None, ctypes.byref(model))
    sconce.sconce_model_get_info(model, ctypes.byref(about))
    inputs = []
    for i in range(about.inputs):
        info = c_api.TensorInfo()
        sconce.sconce_model_input(model, i, ctypes.byref(info))
        inputs.append(c_api.ones(info))
    given = (ctypes.POINTER(c_api.Tensor) * max(about.inputs, 1))(*map(ctypes.pointer, inputs))
    times = []
    for _ in range(RUNS):
        outputs = (ctypes.POINTER(c_api.ManagedTensor) * max(about.outputs, 1))()
        start = time.perf_counter()
        sconce.sconce_model_run(model, given, about.inputs, outputs, about.outputs, None, None)
        times.append(1e3 * (time.perf_counter() - start))
        for i in range(about.outputs):
            sconce.sconce_tensor_free(outputs[i])
    sconce.sconce_model_free(model)
    sconce.sconce_package_free(package)
    return about.constant_bytes, times


def child(library, path):
    done = subprocess.run([sys.executable, __file__, library, path, "--once"], capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout) if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", metavar="LIBSCONCE")
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        return print(json.dumps(runs(options.library, options.packages[0])))
    differences = []
    for path in options.packages:
        tries = [child(options.library, path) for _ in range(options.rounds)]
        if None in tries:
            print(f"{path}: it does not run on ones", file=sys.stderr)
            continue
        size, (first, *later) = min(tries, key=lambda each: each[1][0])
        if size >= SMALL:
            continue
        differences.append(first - min(later))
        print(f"{first:8.3f} {min(later):8.3f} {differences[-1]:8.3f}  {path}")
    if differences:
        print(f"{len(differences)} packages: {statistics.median(differences):.3f} longer, at most {max(differences):.3f}")


if __name__ == "__main__":
    main()
