"""Writes packages/faults.tar.xz: models that fail for some values of their inputs, each in a parallel loop of two threads.

faults/embedding.pt2 looks rows of a table up (100 rows of 64): an index of 100 or more fails a check of the generated code.
faults/division.pt2 divides integers and truncates: the generated code is a bare `/`, so 0 as a divisor is SIGFPE.
faults/normalised.pt2 looks rows up, and normalises and sums them in loops with barriers between.

Run with a Python that has torch 2.15 and a C++ compiler; names as arguments make only those, and print where they are.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

# What is compiled names no path of this machine. Before torch.
os.environ["CXX"] = str(pathlib.Path(__file__).resolve().parents[2] / "tests/data/portable_cxx.sh")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
os.environ["SCONCE_TORCH_DIR"] = str(pathlib.Path(importlib.util.find_spec("torch").origin).parent)

import torch
from torch import nn
from torch.export import Dim

from make_packages import HERE, OPTIONS, strip

sys.path.insert(0, str(HERE.parent / "data"))
from portable_package import make_portable

THREADS = OPTIONS | {"cpp.threads": 2}


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(100, 64)

    def forward(self, ids):
        return self.table(ids)


class Division(nn.Module):
    def forward(self, a, b):
        return torch.div(a, b, rounding_mode="trunc")


class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(100, 64)
        self.norm = nn.LayerNorm(64)

    def forward(self, ids):
        x = self.norm(self.table(ids))
        return x - x.mean(1, keepdim=True)


IDS = torch.arange(4 * 256).reshape(4, 256) % 100
INTEGERS = torch.arange(1, 4 * 256 + 1).reshape(4, 256)
MODELS = {"embedding": (Embedding, (IDS,)), "division": (Division, (INTEGERS, INTEGERS + 1)), "normalised": (Normalised, (IDS,))}


def make(name, folder):
    torch.manual_seed(0)
    kind, inputs = MODELS[name]
    rows = Dim("rows", min=1, max=64)
    with torch.no_grad():
        program = torch.export.export(kind().eval(), inputs, dynamic_shapes=({0: rows},) * len(inputs))
    path = folder / f"{name}.pt2"
    torch._inductor.aoti_compile_and_package(program, package_path=str(path), inductor_configs=THREADS)
    strip(path, deflate=False)
    make_portable(path, "x86-64-v3")
    return path


def main():
    folder = pathlib.Path(tempfile.mkdtemp()) / "faults"
    folder.mkdir()
    for name in sys.argv[1:] or MODELS:
        print(make(name, folder))
    if not sys.argv[1:]:
        subprocess.run(["tar", "--sort=name", "--owner=0", "--group=0", "--mtime=1980-01-01", "-C", str(folder.parent),
                        "-I", "xz -9e", "-cf", str(HERE / "packages/faults.tar.xz"), "faults"], check=True)


if __name__ == "__main__":
    main()
