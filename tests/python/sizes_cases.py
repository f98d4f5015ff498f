"""Prints what sconce.export records of the sizes of each program here, a JSON line each; run by a Python with torch."""
import json

import torch
from torch.export import Dim

import pure  # noqa: F401 (finds the package's modules)
from sconce import _export_sizes


class Half(torch.nn.Module):
    def forward(self, x, y):
        return x[: x.shape[0] // 2] + y


class Longer(torch.nn.Module):
    def forward(self, x, y, z):
        return torch.cat([x, y])[: max(x.shape[0], y.shape[0])] + z


class Cat(torch.nn.Module):
    def forward(self, past, new, mask):
        return torch.cat([past, new]) * mask


class Twice(torch.nn.Module):
    def forward(self, x):
        return x * 2


class Of(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


AUTO = {0: Dim.AUTO}
S = Dim("s", min=1, max=64)
CASES = {
    "half": (Half(), (6, 3), ({0: 2 * S}, {0: S})),
    "guard": (Half(), (7, 3), (AUTO, AUTO)),
    "longer": (Longer(), (6, 3, 6), (AUTO, AUTO, AUTO)),
    "cat": (Cat(), (6, 7, 13), (AUTO, AUTO, AUTO)),
    "from_zero": (Twice(), (6,), ({0: Dim("b", min=0, max=8)},)),
    "from_two": (Twice(), (6,), ({0: Dim("b", min=2, max=8)},)),
    "fixed": (Twice(), (6,), None),
    "first": (Of(lambda x: x[0]), (6,), ({0: S},)),
    "last": (Of(lambda x: x[-1]), (6,), ({0: S},)),
    "second": (Of(lambda x: x[1]), (6,), ({0: S},)),
    "last_but_one": (Of(lambda x: x[-2]), (6,), ({0: S},)),
    "piece": (Of(lambda x: x[1:2]), (6,), ({0: S},)),
    "narrow": (Of(lambda x: x.narrow(0, 1, 1)), (6,), ({0: S},)),
}

for name, (model, rows, shapes) in CASES.items():
    program = torch.export.export(model, tuple(torch.zeros(n, 4) for n in rows), dynamic_shapes=shapes)
    print(json.dumps({"case": name, "text": _export_sizes.recorded(program)}))
