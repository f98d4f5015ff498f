"""Writes packages/trial.tar.xz: models that PyTorch answers and that made-up inputs can end, for tests of trials.

Each package is one row of the table below. Index checks of a parallel loop, integer divisions and loops whose end depends
on values end a process or never end; so nobody may run them on inputs of his own in a server. trial/expected.json has an
input of each, and PyTorch's answer.

Run with a Python that has torch 2.15 and a C++ compiler; names as arguments make only those. The results are checked in.
"""
import importlib.util
import json
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


def whole(*sizes):
    """Weights in few bytes once packed."""
    numbers = torch.arange(torch.Size(sizes).numel()).reshape(sizes)
    return ((numbers * 37) % 251 - 125).float() / 64


class Types(nn.Module):
    """Words and their types, of which there is one: RoBERTa and its like."""

    def __init__(self, words=100, width=64):
        super().__init__()
        self.words = nn.Parameter(whole(words, width))
        self.types = nn.Parameter(whole(1, width))

    def forward(self, words, types):
        return nn.functional.embedding(words, self.words) + nn.functional.embedding(types, self.types)


class Pictures(nn.Module):
    """A table of colours for pictures from 0 to 1."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(whole(256, 8))

    def forward(self, x):
        return self.table[(x * 255).long()].sum(-1)


class Tabular(nn.Module):
    """The category stands in a matrix of floats."""

    def __init__(self):
        super().__init__()
        self.categories = nn.Parameter(whole(10, 32))

    def forward(self, x):
        return nn.functional.embedding(x[:, 0].long(), self.categories) + x[:, 1:33]


class Offset(nn.Module):
    """Positions begin at 2, as in OPT."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(whole(66, 32))

    def forward(self, ids):
        return nn.functional.embedding(ids - 2, self.table).sum(1)


class Divided(nn.Module):
    def forward(self, places, size):
        return torch.div(places, size.unsqueeze(1), rounding_mode="trunc")


class Until(nn.Module):
    """Halves until all are small: of infinity that has no end."""

    def forward(self, x):
        return torch.while_loop(lambda y: (y.abs() > 1).any(), lambda y: (y * 0.5,), (x,))[0]


class Endless(nn.Module):
    """Does not end for what anybody makes up, but for large numbers. 1 MiB of weights."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(whole(512, 512))

    def forward(self, x):
        y = torch.while_loop(lambda y: (y.abs().amax() < 1e6), lambda y: (y * 1.0,), (x,))[0]
        return y @ self.weight


b = {0: Dim("b", min=1, max=16)}
token = torch.randint(0, 100, (2, 128), generator=torch.Generator().manual_seed(1))
MODELS = {
    "types": (Types(), (token, torch.zeros_like(token)), (b, b)),
    "types_large": (Types(4096, 128), (token, torch.zeros_like(token)), (b, b)),
    "pictures": (Pictures(), (torch.linspace(0, 1, 2 * 512).reshape(2, 512),), (b,)),
    "tabular": (Tabular(), (torch.arange(2 * 33).reshape(2, 33).float() % 10,), (b,)),
    "offset": (Offset(), (token % 60 + 2,), (b,)),
    "divided": (Divided(), (torch.arange(2 * 256).reshape(2, 256), torch.tensor([3, -7])), (b, b)),
    "until": (Until(), (torch.tensor([[3.0, 0.5], [-2.0, 1.5]]),), (b,)),
    "endless": (Endless(), (torch.full((2, 512), 2e6),), (b,)),
}


def main():
    folder = pathlib.Path(tempfile.mkdtemp()) / "trial"
    folder.mkdir()
    names = sys.argv[1:] or list(MODELS)
    expected = {}
    for name in names:
        model, args, shapes = MODELS[name]
        with torch.no_grad():
            program = torch.export.export(model.eval(), args, dynamic_shapes=shapes)
            path = str(folder / f"{name}.pt2")
            torch._inductor.aoti_compile_and_package(program, package_path=path,
                                                     inductor_configs={**OPTIONS, "cpp.threads": 2})
            strip(path, deflate=False)
            make_portable(path, "x86-64-v3")
            expected[name] = {"inputs": [{"shape": list(x.shape), "datatype": "INT64" if x.dtype == torch.int64 else "FP32",
                                          "data": x.flatten().tolist()} for x in args],
                              "output": model(*args).flatten().tolist()}
        print(path, pathlib.Path(path).stat().st_size)
    (folder / "expected.json").write_text(json.dumps(expected))
    if sys.argv[1:]:
        return
    packed = HERE / "packages/trial.tar.xz"
    subprocess.run(["tar", "--sort=name", "--owner=0", "--group=0", "--mtime=1980-01-01", "-C", str(folder.parent),
                    "-I", "xz -9e", "-cf", str(packed), "trial"], check=True)
    print(packed, packed.stat().st_size)


if __name__ == "__main__":
    main()
