"""Softmax, its logarithm, with and without masks, and the gradients: src/cpu/attention/softmax.cpp.

Floats against float64. Limits: columns side by side from 16 on, 256 at once (kSide), half rows of up to 2048 converted
during their computation (kWidest), threads take 4096 elements; row_extrema.h and row_sums.h as in reductions.
"""
import torch

import case
from draw import FLOATS

WIDTHS, INNER = (2, 8, 16, 32, 64, 128, 256, 512, 1024, 2048), (2, 16, 32, 64, 256, 512)
KINDS = ("normal", "normal", "normal", "few", "wide", "special", "zero", "minus")


def shape_of(d):
    """Sizes, and the dimension."""
    way = d.random()
    if way < 0.3:
        sizes = d.shape(d.choice((0, 1, 2, 3, 4, 5)), 4096, (2, 3, 4, 8, 16, 32, 64))
        return sizes, d.randrange(-len(sizes), len(sizes)) if sizes else d.choice((0, -1))
    width = d.size(*WIDTHS, high=2200)
    if way < 0.65:
        rows = d.size(2, 3, 4, 8, high=max(2, 20000 // max(width, 1)))
        return ([rows, width], -1) if d.chance(0.6) else ([d.size(2, 3, high=3), rows, width], 2)
    inner = d.size(*INNER, high=max(2, min(600, 60000 // max(width, 1))))
    outer = d.size(2, 3, high=max(1, min(9, 100000 // max(width * inner, 1))))
    if d.chance(0.3):
        return [outer, width, inner], 1
    return [outer, width, max(1, inner // 4), d.choice((4, 3, 5))], d.choice((1, -3))


def logits(d, dtype, shape, kind):
    if kind == "minus":  # includes rows of -infinity only
        x = d.values(dtype, shape)
        x = torch.where(torch.rand(shape, generator=d.torch) < d.choice((0.3, 0.9, 1.0)), torch.tensor(float("-inf"), dtype=dtype), x)
        return d.laid_out(x)
    return d.tensor(dtype, shape, kind)


def apart(v, dim):
    """The distance to the largest, which is what is rounded."""
    v = v.double()
    if v.dim() == 0 or v.numel() == 0:
        return v.abs()
    return (v - v.amax(dim, True)).abs().nan_to_num(0, 0, 0)


def terms(dtype, width):
    """float64 is compared with ATen's own sequential sums."""
    return width if dtype == torch.float64 else width ** 0.5


def draw(d):
    name = d.choice(("_softmax", "_softmax", "_log_softmax", "_log_softmax", "_safe_softmax", "_softmax_backward_data",
                     "_softmax_backward_data", "_log_softmax_backward_data", "_log_softmax_backward_data", "_masked_softmax",
                     "_masked_softmax_backward"))
    dtype, kind = d.choice(FLOATS), d.choice(KINDS)
    shape, dim = shape_of(d)
    width = shape[dim] if shape else 1
    if name.startswith("_masked"):
        return masked(d, name, dtype, kind, shape, dim, width)
    if not name.endswith("data"):
        x = logits(d, dtype, shape, kind)
        label = f"{dtype} {shape} dim {dim} {x.stride()} {kind}"
        if name == "_safe_softmax":
            to = d.choice((None, None, torch.float32, torch.float64))
            if to and to.itemsize < dtype.itemsize:
                to = None
            return case.named(f"{label} to {to}", name, "", x, dim, **(dict(dtype=to) if to else {}), error=8 + terms(dtype, width),
                              magnitude=lambda v, *_: torch.softmax(v, dim).nan_to_num(0, 0, 0) * (1 + apart(v, dim)))
        if name == "_softmax":
            # e^x is as inexact as x is rounded.
            return case.named(label, name, "", x, dim, d.chance(0.02), error=8 + terms(dtype, width),
                              magnitude=lambda v, *_: torch.softmax(v, dim).nan_to_num(0, 0, 0) * (1 + apart(v, dim)))
        return case.named(label, name, "", x, dim, False, error=8,
                          magnitude=lambda v, *_: 1 + torch.log_softmax(v, dim).abs().nan_to_num(0, 0, 0) + apart(v, dim))
    if kind in ("special", "minus"):
        kind = "normal"
    grad = d.tensor(dtype, shape, kind)
    y = d.laid_out((torch.softmax if name.startswith("_softmax") else torch.log_softmax)(
        d.values(torch.float64, shape, d.choice(("normal", "few", "wide"))), dim).to(dtype))
    input_dtype = dtype
    if dtype == torch.float32 and d.chance(0.2):
        input_dtype = torch.float16

    def magnitude(g, o, *_):
        if name.startswith("_softmax"):
            return o.abs() * (g.abs() + (g * o).abs().sum(dim, True))
        return g.abs() + o.exp() * g.abs().sum(dim, True) * (1 + o.abs().nan_to_num(0, 0, 0))

    return case.named(f"{dtype} {shape} dim {dim} {grad.stride()} {y.stride()} {kind} to {input_dtype}", name, "", grad, y, dim,
                      input_dtype, error=8 + terms(dtype, width), magnitude=magnitude,
                      exact=lambda g, o, *_: getattr(torch.ops.aten, name)(g, o, dim, torch.float64))


def masked_softmax(x, *arguments):
    """For a strided input, ATen writes rows one after the other into a result with the input's strides."""
    found = torch.ops.aten._masked_softmax(x.contiguous(), *arguments)
    return torch.empty_like(x).copy_(found)


def masked(d, name, dtype, kind, shape, dim, width):
    if kind in ("special", "minus"):
        kind = "normal"
    if name == "_masked_softmax":
        mask_type = d.choice((0, 1, 2, 2))
        if mask_type != 2:
            length, heads, batch = d.size(8, 16, 32, 64, high=70, low=1), d.size(2, 3, high=4, low=1), d.size(2, 3, high=5, low=1)
            shape, dim = [batch, heads, length, length], -1
            of_mask = [length, length] if mask_type == 0 else [batch, length]
        else:
            of_mask = shape
        x = d.tensor(dtype, shape, kind)
        mask = d.laid_out(torch.rand(of_mask, generator=d.torch) < d.choice((0.1, 0.5, 0.9)))
        given = d.choice((None, dim)) if dim in (-1, len(shape) - 1) else dim
        if shape and shape[dim] == 0:
            return None  # ATen reads out of bounds
        drawn = case.named(f"{dtype} {shape} dim {given} {x.stride()} mask {mask_type} {mask.stride()} {kind}", name, "", x, mask, given,
                           mask_type, error=8 + terms(dtype, width), magnitude=lambda v, *_: 1 + apart(v, dim))
        drawn.torch = masked_softmax
        return drawn
    grad = d.tensor(dtype, shape, kind)
    mask = d.laid_out(torch.rand(shape, generator=d.torch) < d.choice((0.1, 0.5, 0.9)))
    values = d.values(torch.float64, shape).masked_fill(mask.cpu(), float("-inf"))
    y = d.laid_out(torch.softmax(values, dim).nan_to_num(0).to(dtype))
    given = d.choice((None, dim)) if dim in (-1, len(shape) - 1) else dim
    return case.named(f"{dtype} {shape} dim {given} {grad.stride()} {y.stride()} {mask.stride()} {kind}", name, "", grad, y, mask, given,
                      error=8 + terms(dtype, width),
                      magnitude=lambda g, o, *_: o.abs() * (g.abs() + (g * o).abs().sum(dim, True)))
