"""pad in every mode, its named forms and their gradients: src/cpu/movement/pad.cpp, pad_backward in src/cpu/*.

To the bit; gradients, which are sums, near ATen's. Varies rows with contiguous elements or not (pad_rows, fill_borders), 32768
elements per thread, borders cropped on one side, inputs with one or two extra dimensions, channels-last results.
"""
import torch

import abi
import case
from indexing import EVERY, MOVED
from movement import LAYOUTS

DEVICES = ("cpu",)
SIZES = (2, 3, 8, 16, 31, 32, 64, 128)
FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)


def draw(d):
    op = d.choice(("constant", "constant", "reflect", "replicate", "circular", "named", "backward"))
    dims = d.choice((1, 2, 2, 3))
    rank = dims + d.choice((1, 2)) if op != "constant" else d.choice((0, 1, 2, 3, 4, 5))
    most = d.choice((100, 1000, 1000, 5000, 60000))
    shape = d.shape(rank, most, SIZES, low=0 if d.chance(0.03) else 1)
    dtype = d.choice(MOVED if op in ("constant", "circular") else EVERY[:-3] + (torch.complex64, torch.complex128))
    kind = d.choice(("normal", "few", "special", "wide"))
    x = d.tensor(dtype, shape, kind, LAYOUTS)
    label = f"{op} {dtype} {shape} {x.stride()}"
    if op == "constant":
        pad = []
        for i in range(d.randint(0, rank)):
            n = shape[rank - 1 - i]
            pad += [d.choice((0, 0, 1, 2, 5, 17, -1, -d.randint(0, n))) for _ in range(2)]
        value = d.choice((0, 1, 3) if not dtype.is_floating_point else (0.0, 1.0, -2.5, float("inf"), float("nan")))
        size = 1
        for i, n in enumerate(reversed(shape)):
            size *= n + sum(pad[2 * i:2 * i + 2])
        if size > 400000:
            return None
        if d.chance(0.4):
            return case.named(f"{label} {pad} {value}", "constant_pad_nd", "", x, pad, value, zeros=True, both=True)
        return case.shim(f"{label} {pad} {value}", "pad", x, pad, "constant", value or d.choice((value, None)),
                         torch=torch.ops.aten.pad, zeros=True, both=True)
    if min(shape[-dims:]) < 1:
        return None
    pad = []
    for i in range(dims):
        n = shape[rank - 1 - i]
        largest = n - 1 if op == "reflect" else n if op == "circular" else 9
        pad += [d.choice((0, 1, 2, largest, -1 if d.chance(0.3) else 0, d.randint(0, max(largest, 0)))) for _ in range(2)]
        if d.chance(0.03):
            pad[-1] = largest + 1
        if op == "circular" and n + min(pad[-1], 0) + min(pad[-2], 0) < max(pad[-2:]) <= n:
            pad[-2:] = [max(pad[-1], 0), max(pad[-2], 0)]  # ATen's circular padding would read what it has not written
    if op in ("reflect", "replicate", "circular"):
        return case.shim(f"{label} {pad}", "pad", x, pad, op, None, torch=torch.ops.aten.pad, zeros=True, both=True)
    mode = d.choice(("reflection", "replication"))
    pad = [min(max(p, 0), shape[rank - 1 - i // 2] - 1) if mode == "reflection" else max(p, 0) for i, p in enumerate(pad)]
    name = f"{mode}_pad{dims}d"
    if op == "named":
        return case.named(f"{label} {pad}", name, "", x, pad, zeros=True, both=True)
    dtype = d.choice(FLOATS + (torch.complex64,))
    x = d.tensor(dtype, shape, "normal", LAYOUTS)
    sizes = list(shape)
    for i in range(dims):
        sizes[rank - 1 - i] += pad[2 * i] + pad[2 * i + 1]
    gradient = d.tensor(dtype, sizes, d.choice(("normal", "few", "wide")), LAYOUTS)
    half = 2 ** 13 if dtype == torch.float16 else 2 ** 16 if dtype == torch.bfloat16 else 1
    terms = 1
    for p in pad:
        terms *= 1 + p
    label = f"{dtype} {shape} {x.stride()} {pad} gradient {gradient.stride()} {dtype}"
    how = dict(error=(4 + 2 * min(terms, 4096) ** 0.5) * half, magnitude=lambda g, a, p: getattr(torch.ops.aten, name + "_backward")(g.abs(), a.abs(), p))
    if name + "_backward" in abi.signatures and d.chance(0.5):
        return case.shim(label, name + "_backward", gradient, x, pad, torch=getattr(torch.ops.aten, name + "_backward"), **how)
    return case.named(label, name + "_backward", "", gradient, x, pad, **how)
