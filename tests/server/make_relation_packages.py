"""Writes packages/relations.pt2: models whose inputs' sizes are tied to each other, or may be 0.

Run with a Python that has torch 2.15 and a C++ compiler; the result is checked in, stripped of symbols.
"""
import sys

import torch
from make_packages import HERE, OPTIONS, strip
from torch._inductor.package import package_aoti
from torch.export import Dim


class Half(torch.nn.Module):
    def forward(self, x, y):
        return x[: x.shape[0] // 2] + y


class Plus(torch.nn.Module):
    def forward(self, x, y):
        return x + y[1:]


class Cat(torch.nn.Module):
    def forward(self, past, new, mask):
        return torch.cat([past, new]) * mask


class View(torch.nn.Module):
    def forward(self, x):
        return x.view(-1, 1496, 4).sum(1)


class Even(torch.nn.Module):
    """A convolution of stride 2; the weights are ones."""

    def forward(self, x):
        return torch.nn.functional.conv2d(x, torch.ones(1, 1, 3, 3), stride=2, padding=1)


class Empty(torch.nn.Module):
    """What a detector's classifier does, for any number of rows, none as well."""

    def forward(self, x):
        hidden = torch.nn.functional.conv2d(x, torch.ones(2, 1, 3, 3), padding=1).relu()
        rows = hidden.flatten(1)
        return rows @ torch.ones(32, 3), rows.softmax(1), rows.softmax(0), rows.sum(0), x.amax((1, 2, 3))


class Two(torch.nn.Module):
    """Compiled for two rows or more, where it is one row that others are added to."""

    def forward(self, x, y):
        return x * 2 + y, (x.transpose(0, 1) @ y).contiguous()


def main():
    s, n = Dim("s", min=1, max=64), Dim("n", min=1)
    auto = {0: Dim.AUTO}
    models = {
        "half": (Half(), (torch.randn(6, 4), torch.randn(3, 4)), ({0: 2 * s}, {0: s})),
        "plus": (Plus(), (torch.randn(6, 4), torch.randn(7, 4)), ({0: s}, {0: s + 1})),
        "cat": (Cat(), (torch.randn(6, 4), torch.randn(7, 4), torch.randn(13, 4)), (auto, auto, auto)),
        "view": (View(), (torch.randn(4488, 4),), ({0: 1496 * n},)),
        "even": (Even(), (torch.randn(2, 1, 8, 6),), ({0: Dim("b", min=1, max=8), 2: 2 * Dim("h", min=1, max=16)},)),
        "empty": (Empty(), (torch.randn(2, 1, 4, 4),), ({0: Dim("b", min=0, max=8)},)),
        "two": (Two(), (torch.randn(3, 4), torch.randn(3, 4)), ({0: Dim("b", min=2, max=8)},) * 2),
    }
    compiled = {}
    for name, (model, args, shapes) in models.items():
        program = torch.export.export(model.eval(), args, dynamic_shapes=shapes)
        compiled[name] = torch._inductor.aot_compile(program.module(), *program.example_inputs, options=OPTIONS)
    target = HERE / "packages" / "relations.pt2"
    package_aoti(str(target), compiled)
    strip(target)
    print(target, target.stat().st_size)


if __name__ == "__main__":
    sys.exit(main())
