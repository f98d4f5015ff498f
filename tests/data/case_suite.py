"""What the scripts of packed suites have in common: models of our own, compiled for any x86-64 with AVX2.

    python -m venv .venv && .venv/bin/pip install torch==2.15.0 numpy
    .venv/bin/python tests/data/make_cases.py [NAME...]

With names, only those cases are made and left unpacked in build/cases. To be imported before torch.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
os.environ["CXX"] = str(ROOT / "tests/data/portable_cxx.sh")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
os.environ["SCONCE_TORCH_DIR"] = str(pathlib.Path(importlib.util.find_spec("torch").origin).parent)

import torch  # noqa: E402
from torch import nn  # noqa: E402

import torch._inductor.config as inductor  # noqa: E402
from case_writer import Recorder  # noqa: E402

MARCH = "x86-64-v3"
CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


class Function(nn.Module):
    """A model without parameters from a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def record(name, function, *args, dynamic_shapes=None, **options):
    model = function if isinstance(function, nn.Module) else Function(function)
    if dynamic_shapes is not None and not isinstance(function, nn.Module):
        dynamic_shapes = (tuple(dynamic_shapes),)  # *args is one argument
    return Recorder(name, model, args, dynamic_shapes=dynamic_shapes, **options)


def make_suite(name):
    """Makes the cases and packs them as tests/data/NAME.tar.xz."""
    inductor.cpp.simdlen = 256  # AVX2
    inductor.cpp.threads = 1
    names = sys.argv[1:] or list(CASES)
    suite = (ROOT / "build/cases" if sys.argv[1:] else pathlib.Path(tempfile.mkdtemp())) / name
    for made in names:
        torch._dynamo.reset()
        torch.manual_seed(0)
        CASES[made]().write(suite, MARCH)
        print(made, flush=True)
    if not sys.argv[1:]:
        packed = HERE / f"{name}.tar.xz"
        subprocess.run(["tar", "--sort=name", "--owner=0", "--group=0", "--mtime=1980-01-01", "-C", str(suite.parent),
                        "-I", "xz -9e", "-cf", str(packed), name], check=True)
        print(packed, packed.stat().st_size, "bytes")
