"""Writes packages/loops.pt2: one small language model with random weights in three forms, for tests of loops.

Model "explicit" takes a token, its position and a cache, and returns logits and the new cache; it has a batch.
Model "buffers" has the cache in a buffer that it writes. Model "prefix" takes all tokens so far.

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

VOCABULARY, WIDTH, LENGTH = 32, 16, 48


class Cell(nn.Module):
    """One layer of attention over the embeddings so far."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def enter(self, tokens, positions):
        return self.embedding(tokens) + self.places(positions)

    def leave(self, x, memory, hidden):
        """x [B, T, W] sees memory [B, L, W], but not where hidden [B, T, L] is true."""
        scores = self.query(x) @ memory.transpose(1, 2) / WIDTH**0.5
        return self.head(x + torch.softmax(scores.masked_fill(hidden, float("-inf")), -1) @ memory) * 3


class Explicit(Cell):
    def forward(self, token, position, cache):
        x = self.enter(token, position)
        here = torch.arange(LENGTH) == position  # [B, L]
        cache = torch.where(here[:, :, None], x, cache)
        return self.leave(x, cache, (torch.arange(LENGTH) > position)[:, None]), cache


class Buffers(Cell):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(1, LENGTH, WIDTH))

    def forward(self, token, position):
        x = self.enter(token, position)
        self.cache.index_copy_(1, position[0], x)
        return self.leave(x, self.cache, (torch.arange(LENGTH) > position)[:, None])


class Prefix(Cell):
    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.enter(tokens, torch.arange(length)[None])
        return self.leave(x, x, torch.ones(length, length, dtype=torch.bool).triu(1)[None])


def main():
    batch = torch.export.Dim("batch", min=1, max=64)
    length = torch.export.Dim("length", min=2, max=LENGTH)
    two = torch.zeros(2, 1, dtype=torch.int64)
    one = torch.zeros(1, 1, dtype=torch.int64)
    forms = {
        "explicit": (Explicit(), (two, two + 1, torch.zeros(2, LENGTH, WIDTH)), ({0: batch},) * 3),
        "buffers": (Buffers(), (one, one + 1), None),
        "prefix": (Prefix(), (torch.zeros(1, 5, dtype=torch.int64),), ({1: length},)),
    }
    models = {}
    for name, (model, args, dynamic) in forms.items():
        with torch.no_grad():
            program = torch.export.export(model.eval(), args, dynamic_shapes=dynamic)
            models[name] = torch._inductor.aot_compile(program.module(), *program.example_inputs,
                                                       options={**OPTIONS, "always_keep_tensor_constants": True})
    target = HERE / "packages/loops.pt2"
    package_aoti(str(target), models)
    make_portable(target, "x86-64-v3")
    strip(target)
    print(target, target.stat().st_size)


if __name__ == "__main__":
    main()
