"""sort, topk, kthvalue, median, mode, unique, searchsorted, bucketize, isin: src/cpu/sorting/sort.cpp, sort_slice.cpp, rank_sort.cpp, topk.cpp,
tie_order.cpp, order_statistics.cpp, sets.cpp, search.cpp, search_lanes.cpp.

All to the bit, with ATen's order of equal elements where it sorts without promising one. Limits: 160 and 96 keys that are sorted by rank
(kRankSort32, kRankSort64), 16 below which std::sort is stable (kStableUpTo), 6000 for wide digits (kWideDigitsFrom), 8, 11, 16, 22, 24 bits of
keys (radix_sort), upper halves of 64-bit keys and runs of 32 (sort_by_upper_half), k * 64 <= n and blocks of 256 (select_few), 32 distinct
(kMostDistinct), leaves of 48 and 64 at a time (tie_order.cpp), 32768 integers from which ATen sorts differently, 8192 of work per thread;
searches of 4 groups of 8 lanes, blocks of 512.
Left out: NaN in unique and searchsorted's sequences, and in mode of more than 16 elements, where ATen's own results depend on the order of
equal elements or on its algorithm.
"""
import torch

import case
from indexing import LAYOUTS

DEVICES = ("cpu",)
REAL = (torch.float32, torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int64, torch.int32, torch.int16,
        torch.int8, torch.uint8)
LENGTHS = (2, 8, 15, 16, 17, 31, 32, 48, 64, 95, 96, 97, 159, 160, 161, 256, 257, 512, 1000, 1024, 2048, 5999, 6000, 6001)


def keys(d, dtype, shape, layouts=LAYOUTS, nan=True):
    """Values with few or many different bits, few ties or many, rising or falling, with NaN."""
    way = d.random()
    count = torch.Size(shape).numel()
    if way < 0.25 or dtype == torch.bool:
        t = d.values(dtype, shape, d.choice(("normal", "few", "special" if nan else "few", "wide", "zero")))
    elif way < 0.65:
        span = 1 << d.choice((1, 2, 4, 7, 8, 9, 10, 11, 12, 15, 16, 17, 20, 22, 23, 24, 25, 31, 32, 33, 40, 62))
        if not dtype.is_floating_point:
            info = torch.iinfo(dtype)
            span = min(span, info.max - info.min)
            base = d.choice((info.min, 0, max(info.max - span, info.min)))
            base = min(base, info.max - span)
            t = (torch.randint(0, max(span, 1), shape, generator=d.torch) + base).to(dtype)
        else:
            t = (torch.randint(0, max(span, 1), shape, generator=d.torch).double() * d.choice((1.0, 0.5, 1e-3, -1.0)) + d.choice((0, -5.5, 100))).to(dtype)
    elif way < 0.85 and count:
        # A permutation: no ties.
        t = torch.randperm(count, generator=d.torch).reshape(shape)
        t = (t.double() / 7 - 3).to(dtype) if dtype.is_floating_point else t.to(dtype)
    else:
        t = d.values(dtype, shape, "normal" if dtype.is_floating_point else "wide")
        if t.dim() and t.numel():
            t = t.sort(d.randrange(t.dim()), descending=d.chance(0.5)).values
            if d.chance(0.5):
                flat = t.reshape(-1)
                for _ in range(d.choice((1, 3))):
                    flat[d.randrange(flat.numel())] = flat[d.randrange(flat.numel())]
    if nan and dtype.is_floating_point and d.chance(0.15) and count:
        t = torch.where(torch.rand(shape, generator=d.torch) < d.choice((0.01, 0.3)), torch.tensor(float("nan"), dtype=dtype), t)
        if d.chance(0.3):
            t = torch.where(torch.rand(shape, generator=d.torch) < 0.3, torch.tensor(-float("nan"), dtype=dtype), t)
    if dtype.is_floating_point and d.chance(0.15):
        t = torch.where(torch.rand(shape, generator=d.torch) < 0.3, torch.tensor(-0.0, dtype=dtype), t)
    return d.laid_out(t, layouts)


def sliced(d, most=12000):
    """A shape, and the dimension that is sorted."""
    rank = d.choice((0, 1, 1, 2, 2, 2, 3, 4)) if not d.chance(0.02) else 5
    if not rank:
        return [], d.choice((0, -1))
    n = d.size(*LENGTHS, low=0 if d.chance(0.03) else 1, high=most)
    if rank == 1 and d.chance(0.01):
        n = d.choice((32767, 32768, 40000, 70000))
    shape = d.shape(rank - 1, max(1, d.choice((4, 40, 40000)) if n < 100 else min(24000 // max(n, 1), 40)), (2, 3, 8), low=0 if d.chance(0.02) else 1)
    dim = d.choice((rank - 1, rank - 1, d.randrange(rank)))
    shape.insert(dim, n)
    return shape, dim - rank if d.chance(0.5) else dim


def draw_sort(d):
    shape, dim = sliced(d)
    dtype = d.choice(REAL + (torch.bool,))
    x = keys(d, dtype, shape)
    descending = d.chance(0.5)
    label = f"{dtype} {shape} {x.stride()} dim {dim} descending {descending}"
    way = d.random()
    exact = dict(zeros=True, both=True)
    if way < 0.4:
        return case.shim(label, "sort", x, dim, descending, torch=lambda a, k, r: torch.ops.aten.sort.default(a, k, r), **exact)
    stable = d.choice((True, True, False, None))
    return case.shim(f"{label} stable {stable}", "sort_stable", x, stable, dim, descending, **exact,
                     torch=lambda a, s, k, r: torch.ops.aten.sort.stable(a, stable=s, dim=k, descending=r))


def draw_topk(d):
    shape, dim = sliced(d)
    dtype = d.choice(REAL)
    n = shape[dim] if shape else 1
    k = d.choice((1, 1, 2, 3, 5, 8, 16, 31, 32, 33, 50, 64, n // 64, n // 64 + 1, n // 8, n // 2, n - 1, n, d.randint(0, max(n, 1))))
    k = max(0, k) if d.chance(0.02) else min(max(k, 0), n)
    x = keys(d, dtype, shape)
    largest, ordered = d.chance(0.5), d.chance(0.75)
    return case.shim(f"{dtype} {shape} {x.stride()} k {k} dim {dim} largest {largest} sorted {ordered}", "topk", x, k, dim, largest, ordered,
                     torch=torch.topk, zeros=True, both=True)


def draw_chosen(d):
    op = d.choice(("kthvalue", "median", "nanmedian", "median_dim", "nanmedian_dim", "mode"))
    shape, dim = sliced(d, 3000)
    dtype = d.choice(REAL + ((torch.bool,) if op == "mode" else ()))
    n = shape[dim] if shape else 1
    x = keys(d, dtype, shape, nan=op != "mode" or n <= 16)
    keep = d.chance(0.4)
    label = f"{dtype} {shape} {x.stride()} dim {dim} keep {keep}"
    if op == "kthvalue":
        k = d.choice((1, n, (n + 1) // 2, d.randint(1, max(n, 1)), n + 1 if d.chance(0.05) else 1))
        return case.shim(f"{label} k {k}", op, x, k, dim, keep, torch=torch.kthvalue, zeros=True, both=True)
    if op in ("median", "nanmedian"):
        return case.shim(label, op, x, torch=getattr(torch, op), zeros=True, both=True)
    if op == "mode":
        return case.shim(label, op, x, dim, keep, torch=torch.mode, zeros=True, both=True)
    made = case.named(label, op[:-4], "dim", x, dim, keep, zeros=True, both=True)
    made.torch = lambda a, *r: getattr(torch.ops.aten, op[:-4]).dim(a.contiguous(), *r)  # ATen misreads expanded slices
    return made


def draw_unique(d):
    op = d.choice(("_unique2", "_unique", "unique_consecutive", "unique_consecutive_dim", "unique_dim", "unique_dim_consecutive"))
    dtype = d.choice(REAL + (torch.bool,))
    inverse, counts, ordered = d.chance(0.7), d.chance(0.7), d.chance(0.8)
    if "dim" in op:
        shape = d.shape(d.choice((1, 2, 2, 3)), d.choice((20, 300, 2000)), (2, 16, 17, 64), low=0 if d.chance(0.02) else 1)
        dim = d.randrange(len(shape))
        # Equal slices.
        size = list(shape)
        size[dim] = d.choice((1, 2, 3, 5, max(shape[dim], 1)))
        t = keys(d, dtype, size, ("packed",), nan=False)
        if d.chance(0.5):
            t = t[tuple(slice(0, 1) if i and i != dim and d.chance(0.3) else slice(None) for i in range(t.dim()))].expand(size).contiguous()
        at = torch.randint(0, size[dim], [shape[dim]], generator=d.torch)
        if "consecutive" in op:
            at = at.sort().values
        x = d.laid_out(t.index_select(dim, at), LAYOUTS)
        if d.chance(0.5):
            dim -= len(shape)
        label = f"{dtype} {shape} {x.stride()} dim {dim}"
        # For unsorted results and for slices, PyTorch returns inverse and counts even if they were not asked for.
        if op == "unique_dim":
            return case.named(label, op, "", x, dim, True, inverse, counts, both=True)
        if op == "unique_dim_consecutive":
            return case.named(label, op, "", x, dim, inverse, counts, both=True)
        return case.named(label, "unique_consecutive", "", x, inverse, counts, dim, both=True)
    shape, _ = sliced(d, 7000)
    x = keys(d, dtype, shape, nan=False)
    label = f"{dtype} {shape} {x.stride()} sorted {ordered} inverse {inverse} counts {counts}"
    if op == "_unique2":
        return case.named(label, op, "", x, ordered, inverse, counts)
    if op == "_unique":
        return case.named(label, op, "", x, ordered, inverse)
    return case.named(label, op, "", x, inverse, counts, None)


def draw_search(d):
    op = d.choice(("searchsorted", "searchsorted", "searchsorted_sorter", "searchsorted_scalar", "bucketize", "isin", "isin_scalar", "isin_of_scalar"))
    dtype = d.choice(REAL)
    if op.startswith("isin"):
        x = keys(d, dtype, d.shape(d.choice((0, 1, 2, 3)), 3000, (8, 64, 512), low=0), nan=True)
        tests = keys(d, dtype if d.chance(0.7) else d.choice(REAL), d.shape(d.choice((0, 1, 2)), 600, (2, 8, 64), low=0), nan=True)
        if tests.dtype != x.dtype:  # ATen, in floats, takes integers that round to one number for duplicates
            x, tests = (d.laid_out(t.clamp(-120, 120) if t.dtype != torch.uint8 else t, LAYOUTS) if t.dim() else t for t in (x, tests))
        if x.numel() and tests.numel() and tests.dtype == x.dtype and d.chance(0.7):
            tests = torch.cat((tests.reshape(-1), x.reshape(-1)[:: d.choice((1, 2, 7))]))
            tests = tests[torch.randperm(tests.numel(), generator=d.torch)][:5000]
        invert = d.chance(0.4)
        label = f"{x.dtype} {list(x.shape)} in {tests.dtype} {list(tests.shape)} invert {invert}"
        if op == "isin":
            return case.named(label, op, "Tensor_Tensor", x, tests, assume_unique=False, invert=invert)
        number = d.choice((0, 1, 3, -2, 1.5))
        if op == "isin_scalar":
            return case.named(f"{label} {number}", "isin", "Tensor_Scalar", x, number, assume_unique=False, invert=invert)
        return case.named(f"{label} {number}", "isin", "Scalar_Tensor", number, tests, assume_unique=False, invert=invert)
    n = d.size(2, 7, 8, 16, 31, 32, 33, 64, 255, 256, 1000, low=0 if d.chance(0.05) else 1, high=5000)
    m = d.size(2, 4, 8, 16, 31, 32, 33, 64, 511, 512, 513, 2048, low=0 if d.chance(0.05) else 1, high=6000)
    rows = d.shape(d.choice((0, 0, 1, 2)), max(1, min(60, 30000 // max(n, m, 1))), (2, 3), low=1)
    scalar = op == "searchsorted_scalar"
    one = scalar or op == "bucketize" or d.chance(0.3)
    sequence = keys(d, dtype, [n] if one else rows + [n], ("packed",), nan=False)
    right, narrow = d.chance(0.5), d.chance(0.4)
    sorter = None
    if op == "searchsorted_sorter":
        sorter = d.laid_out(sequence.argsort(-1), LAYOUTS[:-2])
        sequence = d.laid_out(sequence, LAYOUTS[:-2])
    else:
        sequence = d.laid_out(sequence.sort(-1).values, LAYOUTS[:-2])
    other = dtype if d.chance(0.8) else d.choice(REAL)
    values = keys(d, other, (rows + [m]) if not one or d.chance(0.8) else d.shape(d.choice((0, 1, 2)), 2000, low=0), nan=True)
    if sequence.numel() and values.dtype == sequence.dtype and values.numel() and d.chance(0.6):
        # Includes the sequence's own elements.
        flat = sequence.reshape(-1)
        at = torch.randint(0, flat.numel(), values.shape, generator=d.torch)
        values = d.laid_out(torch.where(torch.rand(values.shape, generator=d.torch) < 0.6, flat[at], values.cpu()), LAYOUTS)
    label = f"{dtype} {list(sequence.shape)} {sequence.stride()} for {other} {list(values.shape)} right {right} int32 {narrow}"
    if op == "bucketize":
        return case.shim(label, "bucketize_Tensor", values, sequence, narrow, right, both=True,
                         torch=lambda v, b, n_, r: torch.ops.aten.bucketize.Tensor(v, b, out_int32=n_, right=r))
    side = d.choice((None, None, "left" if not right else "right", "right" if right else "left"))
    if scalar:
        number = d.choice((0, 1, -3, 2.5, 7.0, float(sequence[d.randrange(n)]) if n else 0.0))
        return case.shim(f"{label} {number}", "searchsorted_Scalar", sequence, float(number), narrow, right, side, None, both=True,
                         torch=lambda s, v, n_, r, w, o: torch.ops.aten.searchsorted.Scalar(s, v, out_int32=n_, right=r, side=w, sorter=o))
    return case.shim(label, "searchsorted_Tensor", sequence, values, narrow, right, side, sorter, both=True,
                     torch=lambda s, v, n_, r, w, o: torch.ops.aten.searchsorted.Tensor(s, v, out_int32=n_, right=r, side=w, sorter=o))


def draw(d):
    return d.choice((draw_sort, draw_sort, draw_topk, draw_topk, draw_chosen, draw_unique, draw_search, draw_search))(d)
