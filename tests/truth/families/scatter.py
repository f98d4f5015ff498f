"""scatter in all forms, scatter_add, scatter_reduce: src/cpu/indexing/scatter.cpp, scatter_reduce.cpp, scatter_loop.h.

To the bit, except sums, products and means of floats. Limits: packed slices, rows under one index (an index of stride 0) and their
blocks of 256, neighbouring indices; 8192 elements per thread, 16 neighbours, 8 slices (kElementsPerThread and kWorthLooking),
targets balanced from 128 samples (kSamples) with two or more threads; the half types' accumulators.
"""
import torch

import case
from indexing import EVERY, most, numbers, sum_error, values

DEVICES = ("cpu",)
SIZES = (2, 7, 8, 16, 64, 127, 128, 256, 512, 8192)
WRITABLE = ("packed", "permuted", "sliced", "offset", "padded")


def draw(d):
    made = draw_scatter(d)
    if made:
        # ATen's fast path for one index per row refuses int32, which its other paths take, and reads out of bounds if
        # the index is smaller than self; so it gets a packed index.
        numbered = [i for i, a in enumerate(made.arguments) if isinstance(a, torch.Tensor)]
        place = next(i for i in numbered[1:] if isinstance(made.arguments[i - 1], int))
        other, sized = made.torch, made.magnitude
        made.torch = lambda *v: other(*v[:place], (v[place].long() if v[place].dtype == torch.int32 else v[place]).contiguous(), *v[place + 1:])
        if callable(sized):
            made.magnitude = lambda *v: sized(*v[:place], v[place].long().contiguous(), *v[place + 1:])
    return made


def draw_scatter(d):
    dtype = d.choice(EVERY)
    rank = d.choice((0, 1, 1, 2, 2, 2, 3, 4))
    limit = most(d)
    shape = d.shape(rank, limit, SIZES, low=0 if d.chance(0.02) else 1)
    dim = d.randrange(rank) if rank else 0
    own = [d.choice((n, n, n, d.randint(1, max(n, 1)))) for n in shape]
    if rank:
        others = 1
        for i, n in enumerate(own):
            others *= n if i != dim else 1
        own[dim] = d.size(2, 8, 64, 128, 256, 1024, low=0 if d.chance(0.05) else 1, high=max(3, min(9000, max(limit, 3) * 2 // max(others, 1))))
    elif d.chance(0.5):
        own = [1]
    size = shape[dim] if rank else 1
    dtypes = (torch.int64, torch.int64, torch.int32)
    if rank > 1 and d.chance(0.3):  # one index per row
        row = [1] * rank
        row[dim] = own[dim]
        index = numbers(d, size, row, negative=d.chance(0.02), dtypes=dtypes).expand(own)
    else:
        index = numbers(d, size, own, negative=d.chance(0.02), dtypes=dtypes)
    form = d.choice(("src_out", "value_out", "reduce_out", "reduce_out", "src", "value", "add", "reduce", "two", "two", "value_named_out"))
    x = values(d, dtype, shape)
    source = values(d, dtype, [n + d.choice((0, 0, 0, 1, 3)) for n in own])
    if d.chance(0.5) and rank:
        dim -= rank
    label = f"{form} {dtype} {shape} dim {dim} by {index.dtype} {own}"
    floats = dtype.is_floating_point or dtype.is_complex
    number = d.choice((0, 1, 7) if not floats else (0, 1, -2.5, 0.1, float("nan")) if dtype.is_floating_point else (0, 2, 0.5))
    out = d.tensor(dtype, shape, "normal", WRITABLE)
    in_place = d.chance(0.3)
    if in_place:
        x = values(d, dtype, shape, WRITABLE)
    exact = dict(zeros=True, both=True)
    if form == "src_out":
        function = lambda o, a, k, i, s: torch.ops.aten.scatter.src_out(a, k, i, s, out=o)
        # One tensor for both, as compiled code writes in place.
        if in_place:
            return case.Case("scatter_src_out in place " + label, lambda a, k, i, s: __import__("abi").call("scatter_src_out", a, a, k, i, s),
                             lambda a, k, i, s: torch.ops.aten.scatter.src_out(a, k, i, s, out=a), [x, dim, index, source], written=[0], **exact)
        return case.shim(label, "scatter_src_out", out, x, dim, index, source, torch=function, written=[0], **exact)
    if form == "value_out":
        if number != number and dtype == torch.bool:
            number = 1
        return case.shim(label, "scatter_value_out", out, x, dim, index, number, written=[0], **exact,
                         torch=lambda o, a, k, i, v: torch.ops.aten.scatter.value_out(a, k, i, v, out=o))
    if form == "value_named_out":
        return case.named(label, "scatter", "value_out", x, dim, index, number, out=out, **exact)
    if form == "src":
        return case.named(label, "scatter", "src", x, dim, index, source, **exact)
    if form == "value":
        return case.named(label, "scatter", "value", x, dim, index, number, **exact)
    count = max(index.numel() and own[dim] if rank else 1, 1)
    if form in ("add", "reduce"):
        reduce = "add" if form == "add" else d.choice(("add", "multiply"))
        how = dict(both=True)
        if floats:
            how |= dict(error=sum_error(dtype, count) * (1 if reduce == "add" else 2), same_nan=reduce == "add" and not dtype.is_complex)
            if reduce == "add":
                how["magnitude"] = lambda a, k, i, s, reduce=None: torch.scatter_add(a.abs(), k, i, s.abs())
            else:
                how["magnitude"] = lambda a, k, i, s, reduce=None: torch.ops.aten.scatter.reduce(a.abs(), k, i, s.abs(), reduce="multiply")
        if form == "add":
            return case.named(label, "scatter_add", "", x, dim, index, source, **how)
        return case.named(f"{label} {reduce}", "scatter", "reduce", x, dim, index, source, reduce=reduce, **how)
    reduce, include = d.choice(("sum", "prod", "mean", "amax", "amin")), d.chance(0.6)
    how = dict(both=True)
    if floats and reduce in ("sum", "prod", "mean"):
        how |= dict(error=sum_error(dtype, count) * (1 if reduce == "sum" else 2), same_nan=reduce != "prod" and not dtype.is_complex)
        other = lambda a, k, i, s: torch.scatter_reduce(a.abs(), k, i, s.abs(), reduce, include_self=include)
        how["magnitude"] = (lambda o, a, k, i, s, r, n: other(a, k, i, s)) if form == "reduce_out" else (
            lambda a, k, i, s, r, include_self=None: other(a, k, i, s))
    label = f"{label} {reduce} include {include}"
    if form == "two":
        return case.named(label, "scatter_reduce", "two", x, dim, index, source, reduce, include_self=include, **how)
    return case.shim(label, "scatter_reduce_two_out", out, x, dim, index, source, reduce, include, written=[0], **how,
                     torch=lambda o, a, k, i, s, r, n: torch.ops.aten.scatter_reduce.two_out(a, k, i, s, r, include_self=n, out=o))
