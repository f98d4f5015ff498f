"""Writes packages/sequences.pt2: three small models that write their buffers, for tests of sequences.

Model "running" keeps a history of its last four inputs and a sum; model "controlled" has Triton's control inputs: it adds
up its inputs, from the beginning where START is set, and answers the sum, the sequence's number and whether END is set.
Model "cache" is an attention step with a cache of keys and values, as a decoder has it.

Run with a Python that has torch 2.15 and a C++ compiler; the results are checked in.
"""
import importlib.util
import os
import pathlib
import sys
import tempfile

# What is compiled names no path of this machine. Before torch.
os.environ["CXX"] = str(pathlib.Path(__file__).resolve().parents[2] / "tests/data/portable_cxx.sh")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
os.environ["SCONCE_TORCH_DIR"] = str(pathlib.Path(importlib.util.find_spec("torch").origin).parent)

import torch
from make_packages import HERE, OPTIONS, strip
from torch import nn
from torch._inductor.package import package_aoti

sys.path.insert(0, str(HERE.parent / "data"))
from portable_package import make_portable

WIDTH, LENGTH = 8, 32


class Running(nn.Module):
    """y = weight * (x + history's mean) + sum, over [4] inputs; the initial history is 1, 2, 3, 4 and the sum is 0."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(1.0, 17.0))
        self.register_buffer("history", torch.arange(1.0, 5.0)[:, None].repeat(1, 16))
        self.register_buffer("sum", torch.zeros(16))

    def forward(self, x):
        y = self.weight * (x + self.history.mean(0)) + self.sum
        self.history.copy_(torch.cat([self.history[1:], x[None]]))
        self.sum.add_(x)
        return y


class Controlled(nn.Module):
    """The sum begins anew where start is set, whatever the buffer has."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.full((1,), 100.0))

    def forward(self, x, start, end, ready, number):
        total = torch.where(start != 0, torch.zeros_like(self.total), self.total) + x
        self.total.copy_(total)
        return total.clone(), number + 0, end * 10 + ready, start * 2


class Cache(nn.Module):
    """One step of attention with weights of the identity, over what was written to the cache so far."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, WIDTH, bias=False)
        self.register_buffer("keys", torch.zeros(LENGTH, WIDTH))
        self.register_buffer("values", torch.zeros(LENGTH, WIDTH))
        self.register_buffer("used", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        at = self.used % LENGTH
        self.keys.index_copy_(0, at, self.key(x)[None])
        self.values.index_copy_(0, at, self.value(x)[None])
        self.used.add_(1)
        scores = self.keys @ self.query(x) / WIDTH**0.5
        scores = scores.masked_fill(torch.arange(LENGTH) >= self.used, float("-inf"))
        return torch.softmax(scores, 0) @ self.values


def main():
    one, number = torch.zeros(1), torch.ones(1, dtype=torch.int64)
    models = {}
    for name, model, args in (("running", Running(), (torch.zeros(16),)),
                              ("controlled", Controlled(), (one, one + 1, one + 2, one + 3, number)),
                              ("cache", Cache(), (torch.zeros(WIDTH),))):
        with torch.no_grad():
            program = torch.export.export(model.eval(), args)
            models[name] = torch._inductor.aot_compile(program.module(), *program.example_inputs,
                                                       options={**OPTIONS, "always_keep_tensor_constants": True})
    target = HERE / "packages/sequences.pt2"
    package_aoti(str(target), models)
    make_portable(target, "x86-64-v3")
    strip(target)
    print(target, target.stat().st_size)


if __name__ == "__main__":
    main()
