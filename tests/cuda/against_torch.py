#!/usr/bin/env python3
"""Compares CUDA operators through the C ABI with PyTorch's: against_torch.py LIBRARY_FOLDER [--times] [NAME...]

Needs a GPU and torch with CUDA. --times measures instead (operator_times.py, whose functions NAME names). Runs every case; a line for each, a summary,
and 1 if one failed. Functions are called as the header of the installed torch declares them.
"""
import argparse
import importlib.util
import os
import sys
import time
import traceback

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder", metavar="LIBRARY_FOLDER")
parser.add_argument("--times", action="store_true")
parser.add_argument("chosen", metavar="NAME", nargs="*")
options = parser.parse_intermixed_args()
if not importlib.util.find_spec("torch"):
    sys.exit("against_torch.py: this Python has no torch: pip install torch==2.15.0")
import torch  # noqa: E402

folder, times, chosen = os.path.abspath(options.folder), options.times, options.chosen
FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [FOLDER, os.path.join(FOLDER, "../truth")]
import abi  # noqa: E402
from abi import DTYPES, NUMBER, TYPE, Failed, Missing, call, call_named, handle, seed, tensor  # noqa: E402, F401

abi.open_libraries(folder, "cuda")
host, cuda, signatures = abi.library["host"], abi.library["cuda"], abi.signatures


def name_of(dtype):
    return str(dtype).split(".")[1]


def differ(got, expected, rtol, atol, strides=True):
    if expected is None or got is None:
        return None
    if not isinstance(expected, torch.Tensor):
        return None if got == expected else f"{got} for {expected}"
    if got.dtype != expected.dtype or list(got.shape) != list(expected.shape):
        return f"{got.dtype} {list(got.shape)} for {expected.dtype} {list(expected.shape)}"
    wanted = [s for s, n in zip(expected.stride(), expected.shape) if n > 1]
    if strides and expected.numel() and [s for s, n in zip(got.stride(), got.shape) if n > 1] != wanted:
        return f"strides {got.stride()} for {expected.stride()}"
    if expected.numel() == 0:
        return None
    a, b = got.to(expected.device), expected
    if a.is_complex():
        a, b = (torch.view_as_real(x.to(torch.complex128).resolve_conj()) for x in (a, b))
    if not a.is_floating_point():
        wrong = (a != b)
        return f"{int(wrong.sum())} of {wrong.numel()} differ" if bool(wrong.any()) else None
    a, b = a.double(), b.double()
    both = (a == b) | (a.isnan() & b.isnan())
    wrong = ~(both | ((a - b).abs() <= atol + rtol * b.abs()))
    if not bool(wrong.any()):
        return None
    first = tuple(wrong.nonzero()[0].tolist())
    return (f"{int(wrong.sum())} of {wrong.numel()} differ, at {first}: {float(a[first])} for {float(b[first])}, "
            f"at most {float((a - b).abs().nan_to_num(posinf=0).max())}")


passed, failed = [], []


def case(label, run, expect, rtol=0.0, atol=0.0, strides=True, judge=None):
    """Compares run() with expect(). If they differ, judge() gives PyTorch's result on the CPU, which may equal
    ours."""
    if chosen and not any(c in label for c in chosen):
        return
    try:
        expected = expect()
        expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
        got = list(run())
        if len(got) < len(expected):
            raise Failed(f"{len(got)} results for {len(expected)}")
        for i, (g, e) in enumerate(zip(got, expected)):
            if text := differ(g, e, rtol, atol, strides):
                if judge is None or differ(g, judge()[i].cuda(), rtol, atol, False):
                    raise Failed(f"result {i}: {text}")
                print("cpu ", label, "- as PyTorch on the CPU; on the device:", text, flush=True)
        passed.append(label)
        print("ok  ", label, flush=True)
    except (Missing, NotImplementedError):  # missing in ours or in PyTorch
        print("none", label, flush=True)
    except Exception as error:  # noqa: BLE001  (the next case must run)
        failed.append(label)
        print("FAIL", label, "-", type(error).__name__ + ":", str(error).replace("\n", " ")[:400], flush=True)


sys.modules["against_torch"] = sys.modules[__name__]

started = time.time()
print("torch", torch.__version__, torch.cuda.get_device_name(), flush=True)
if times:
    import operator_times
    operator_times.run()
    sys.exit(0)
import attention_cases  # noqa: E402
import elementwise_cases  # noqa: E402
import gradient_cases  # noqa: E402
import library_cases  # noqa: E402
import named_cases  # noqa: E402
import order_cases  # noqa: E402
import path_cases  # noqa: E402
import torch_cases  # noqa: E402
import truth_cases  # noqa: E402
for family in (torch_cases, elementwise_cases, gradient_cases, attention_cases, library_cases, named_cases, order_cases, path_cases,
               truth_cases):
    begun = time.time()
    try:
        family.run()
    except Exception:  # noqa: BLE001  (a case that cannot even be made)
        failed.append(family.__name__)
        print("FAIL", family.__name__, traceback.format_exc().replace("\n", " ")[-600:], flush=True)
    print(f"time of {family.__name__}: {time.time() - begun:.0f} s", flush=True)
print(f"{len(passed)} passed, {len(failed)} failed, {time.time() - started:.0f} s")
for label in failed:
    print("  failed:", label)
sys.exit(1 if failed else 0)
