"""Writes tests/data/sorting.cases: python tests/cpu/make_sorting_cases.py [seed [scale [file]]]

Scans, sorts, searches and scatters. ATen runs with one thread, because the order in which its threads write one element is
not defined.
"""
import pathlib
import sys

import torch
from case_writer import CaseWriter, Samples

aten = torch.ops.aten
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
WIDE = [torch.uint16, torch.uint32, torch.uint64]
COMPLEX = [torch.complex64, torch.complex128]
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1e-2, torch.float32: 1e-6, torch.float64: 1e-14,
             torch.complex64: 1e-6, torch.complex128: 1e-13}


def distinct(s, dtype, shape):
    """Values that differ along every dimension, so that only one answer is right for positions."""
    count = torch.Size(shape).numel()
    return torch.randperm(count, generator=s.g).to(torch.float32).reshape(shape).to(dtype)


def main(seed=1, scale=1.0, path=pathlib.Path(__file__).parents[1] / "data" / "sorting.cases"):
    torch.set_num_threads(1)
    s = Samples(seed)
    out = CaseWriter(path)
    n = lambda count: int(count * scale * 0.45)
    tensor = torch.tensor

    for _ in range(n(40)):
        shape = s.shape(max_rank=s.pick([1, 3, 4]), max_size=s.pick([4, 4, 9]))
        d = s.below(max(1, len(shape))) - s.pick([0, max(1, len(shape))])
        for op, dtypes in (("cumsum", FLOATS + INTS + COMPLEX + [torch.bool] + WIDE),
                           ("cumprod", FLOATS + INTS + COMPLEX + [torch.bool])):
            dtype = s.pick(dtypes)
            x = s.sample(dtype, shape, special=0.05 if dtype in FLOATS else 0, low=-2, high=2)
            to = s.pick([None, None, None, torch.float64, torch.int32, torch.float32]) if not dtype.is_complex else None
            if to == torch.int32 and dtype in FLOATS:
                to = None
            r = getattr(aten, op)(x, d, dtype=to)
            out.add(op, lambda a, b, c: getattr(aten, op)(a, b, dtype=to), x, d, dtype_number(to),
                    tolerance=TOLERANCE.get(r.dtype, 0) if op == "cumprod" and r.dtype.is_complex else 0)
        x = s.sample(s.pick(FLOATS + INTS + [torch.bool]), shape, special=0.15, low=-3, high=3)
        out.add("cummax", aten.cummax, x, d)
        out.add("cummin", aten.cummin, x, d)
        dtype = s.pick(FLOATS + COMPLEX)
        x = s.sample(dtype, shape, special=0.1 if dtype in FLOATS else 0, low=-3, high=3)
        out.add("logcumsumexp", aten.logcumsumexp, x, d, tolerance=TOLERANCE[dtype])
    for dtype in (torch.float32, torch.int64, torch.float16):
        x = s.values(dtype, [2, 9, 13], low=0, high=3)
        out.add("cumsum", lambda a, b, c: aten.cumsum(a, b), x, 1, None)
        out.add("cumsum", lambda a, b, c: aten.cumsum(a, b), x[0], 1, None)
    out.add("cumsum", lambda a, b, c: aten.cumsum(a, b), s.values(torch.float32, [203]), 0, None, tolerance=1e-6)
    for op in ("cumsum", "cumprod"):
        out.add(op, lambda a, b, c: getattr(aten, op)(a, b), torch.ones(3, 4), 2, None,
                message="Dimension out of range (expected to be in range of [-2, 1], but got 2)")
    out.add("cummax", aten.cummax, torch.ones(3, dtype=torch.complex64), 0, message="not implemented for")
    out.add("logcumsumexp", aten.logcumsumexp, torch.ones(3, dtype=torch.int32), 0, message="not implemented for")

    def stable_sort(a, stable, d, descending):
        return aten.sort.stable(a, stable=stable, dim=d, descending=descending)

    for _ in range(n(60)):
        shape = s.pick([s.shape(max_rank=3, max_size=4), s.shape(max_rank=1, max_size=30), [2, 17 + s.below(9)]])
        d = s.below(max(1, len(shape))) - s.pick([0, max(1, len(shape))])
        dtype = s.pick(FLOATS + INTS + [torch.bool] + WIDE)
        x = s.sample(dtype, shape, special=0.2, low=-4, high=4)
        out.add("sort_stable", stable_sort, x, s.pick([True, None, False]), d, bool(s.below(2)))
        y = s.strided(distinct(s, s.pick([torch.float32, torch.int64, torch.float64]), shape),
                      ("packed", "permuted", "sliced"))
        out.add("sort", aten.sort, y, d, bool(s.below(2)))
        dtype = s.pick(FLOATS + INTS)
        x = s.sample(dtype, shape, special=0.2, low=-4, high=4)
        k = s.below(1 + (shape[d] if shape else 1))
        out.add("topk", aten.topk, x, k, d, bool(s.below(2)), bool(s.below(2)))
    for dtype, size in ((torch.float32, 190), (torch.int64, 110), (torch.float64, 97), (torch.float16, 161),
                        (torch.uint8, 260), (torch.int16, 161), (torch.bool, 100), (torch.int32, 130)):
        x = s.values(dtype, [size], low=-100, high=100, special=0.1)
        for descending in (True, False):
            for stable in (True, False):  # our unstable sort must give ATen's order too
                out.add("sort_stable", stable_sort, x, stable, 0, descending)
        if dtype != torch.bool:
            for k in (2, size):
                out.add("topk", aten.topk, x, k, 0, bool(k % 3), True)
            out.add("topk", aten.topk, x, 20, 0, True, False)
    wide = torch.randint(-2**62, 2**62, (150,), generator=s.g)
    out.add("sort_stable", stable_sort, wide, True, 0, False)
    out.add("sort_stable", stable_sort, wide.to(torch.float64) / 3, True, 0, True)
    x = torch.ones(3, 4)
    for arguments, message in (((x, 5, 1, True, True), "selected index k out of range"),
                               ((x, -1, 1, True, True), "selected index k out of range"),
                               ((tensor(1.0), 2, 0, True, True), "selected index k out of range"),
                               ((x, 1, 3, True, True), "Dimension out of range"),
                               ((x > 0, 1, 0, True, True), "topk does not support bool dtypes on CPU"),
                               ((x.to(torch.complex64), 1, 0, True, True), "topk does not support complex dtypes on CPU")):
        out.add("topk", aten.topk, *arguments, message=message)
    out.add("sort", aten.sort, x.to(torch.complex64), 0, False, message="complex dtypes on CPU")
    out.add("sort", aten.sort, x, -3, False, message="Dimension out of range")

    for _ in range(n(60)):
        dtype = s.pick(FLOATS + INTS)
        m = s.below(12)
        lead = s.shape(max_rank=2, max_size=3) if s.below(2) else []
        sequence = s.values(dtype, lead + [m], special=0.05)
        order = sequence.argsort(dim=-1) if s.below(3) == 0 else None
        if order is None and s.below(4):
            sequence = sequence.sort(dim=-1)[0]
        other = dtype if s.below(3) else s.pick(FLOATS + INTS)
        shape = s.shape(max_rank=3, max_size=4) if not lead else lead + [s.below(11)]
        values = s.sample(other, shape, special=0.05)
        right = bool(s.below(2))
        side = s.pick([None, None, "right"] if right else [None, "left", "right"])
        int32 = bool(s.below(2))
        out.add("searchsorted_Tensor", lambda a, b, i, r, w, o: aten.searchsorted(a, b, out_int32=i, right=r, side=w,
                                                                                 sorter=o),
                s.strided(sequence, ("packed", "permuted", "sliced")), values, int32, right, side, order)
        one = sequence.reshape(-1)[:m]
        out.add("searchsorted_Scalar",
                lambda a, b, i, r, w, o: aten.searchsorted.Scalar(a, b, out_int32=i, right=r, side=w, sorter=o),
                one, s.pick([0.1, -1.0, 2.5, float("nan"), 3.001, 3.0]), int32, right, side, None)
        out.add("bucketize_Tensor", lambda a, b, i, r: aten.bucketize(a, b, out_int32=i, right=r), values, one, int32,
                right)
    b = tensor([0.1, 0.2, 0.3])
    for sequence, values, right, side, sorter, message in (
            (torch.ones(3, 4), torch.ones(2, 3), False, None, None, "must match, but we got"),
            (torch.ones(3, 4), torch.ones(3), False, None, None, "must match, but we got"),
            (torch.ones(3, 4), tensor(1.0), False, None, None, "input value can be a scalar only when boundaries"),
            (b, b, False, "middle", None, "side can only be 'left' or 'right' but got middle"),
            (b, b, True, "left", None, "side and right can't be set to opposites"),
            (b, b, False, None, tensor([0, 1]), "boundary and sorter must have the same size"),
            (b, b, False, None, tensor([0, 1, 9]), "sorter index out of range"),
            (b, b, False, None, tensor([0, 1, 2], dtype=torch.int32), "sorter must be a tensor of long dtype"),
            (b > 0, b > 0, False, None, None, "not implemented for")):
        out.add("searchsorted_Tensor", lambda a, v, i, r, w, o: aten.searchsorted(a, v, out_int32=i, right=r, side=w,
                                                                                 sorter=o),
                sequence, values, False, right, side, sorter, message=message)
    out.add("bucketize_Tensor", lambda a, c, i, r: aten.bucketize(a, c, out_int32=i, right=r), b, torch.ones(2, 2), False,
            False, message="boundaries tensor must be 1 dimension")
    for sequence, value in ((tensor([0.1, 0.2]), 0.1), (tensor([0.1, 0.2], dtype=torch.float64), 0.1),
                            (tensor([1, 2, 3]), 1.5), (tensor([1, 2, 3], dtype=torch.uint8), 300.0)):
        for right in (True, False):
            out.add("searchsorted_Scalar",
                    lambda a, v, i, r, w, o: aten.searchsorted.Scalar(a, v, out_int32=i, right=r, side=w, sorter=o),
                    sequence, value, False, right, None, None)

    def scatter(o, a, d, i, v):
        return aten.scatter_(o.copy_(a), d, i, v)

    for _ in range(n(60)):
        shape = s.shape(max_rank=3, max_size=5)
        d = s.below(max(1, len(shape)))
        wrapped = d - s.pick([0, max(1, len(shape))])
        dtype = s.pick(FLOATS + INTS + COMPLEX + [torch.bool] + WIDE)
        index_shape = [s.below(k + 1) if j != d else s.below(7) for j, k in enumerate(shape)]
        source_shape = [k + s.below(2) for k in index_shape]
        if shape and shape[d] == 0:
            index_shape[d] = 0
        bound = shape[d] if shape else 1
        index = torch.randint(0, max(bound, 1), index_shape, generator=s.g)
        index = s.strided(index.to(s.pick([torch.int64, torch.int64, torch.int32])))
        source = s.sample(dtype, source_shape, special=0.1, low=-3, high=3)
        x = s.sample(dtype, shape, low=-3, high=3)
        target = s.strided(s.values(dtype, shape), ("packed", "permuted", "sliced", "offset"))
        out.add("scatter_src_out", scatter, target, x, wrapped, index, source, written=[0])
        out.add("scatter_value_out", scatter, target.clone(), x, wrapped, index, 3.0, written=[0])
        reduce = s.pick(["sum", "prod", "mean", "amax", "amin"])
        if dtype in WIDE + COMPLEX and reduce in ("amax", "amin") or dtype in WIDE + [torch.bool] and reduce == "mean":
            reduce = "sum"
        include = bool(s.below(2)) or dtype in WIDE
        out.add("scatter_reduce_two_out",
                lambda o, a, dd, i, v, r, inc: aten.scatter_reduce_(o.copy_(a), dd, i, v, r, include_self=inc),
                target.clone(), x, wrapped, index, source, reduce, include, written=[0],
                tolerance=TOLERANCE.get(dtype, 0) if reduce == "mean" or dtype in COMPLEX else 0)
    for dtype in (torch.float32, torch.float16, torch.int64):  # each row has one index
        index = torch.randint(0, 6, (9, 1), generator=s.g).expand(9, 11)
        x, source = s.values(dtype, [6, 11]), s.values(dtype, [9, 11])
        for reduce in ("sum", "amax", "mean"):
            out.add("scatter_reduce_two_out",
                    lambda o, a, dd, i, v, r, inc: aten.scatter_reduce_(o.copy_(a), dd, i, v, r, include_self=inc),
                    torch.zeros_like(x), x, 0, index, source, reduce, True, written=[0],
                    tolerance=TOLERANCE.get(dtype, 0))
        out.add("scatter_src_out", scatter, torch.zeros_like(x), x, 0, index, source, written=[0])
    x = torch.arange(12.0).reshape(3, 4)
    for index, source, d, message in (
            (tensor([[0.0]]), x, 0, "scatter(): Expected dtype int32/int64 for index"),
            (tensor([[-1]]), x, 0, "index -1 is out of bounds for dimension 0 with size 3"),
            (tensor([[3]]), x, 0, "index 3 is out of bounds for dimension 0 with size 3"),
            (tensor([0]), x, 0, "Index tensor must have the same number of dimensions as self tensor"),
            (torch.zeros(2, 5, dtype=torch.int64), x, 0, "to be no larger than self [3, 4] apart from dimension 0"),
            (torch.zeros(5, 4, dtype=torch.int64), x, 0, "to be no larger size than src [3, 4]"),
            (tensor([[0]]), x.double(), 0, "scatter(): Expected self.dtype to be equal to src.dtype"),
            (tensor([[0]]), x, 2, "Dimension out of range")):
        out.add("scatter_src_out", scatter, x.clone(), x, d, index, source, message=message)
    out.add("scatter_value_out", scatter, torch.zeros(3, dtype=torch.uint8), torch.zeros(3, dtype=torch.uint8), 0,
            tensor([0]), 300.0, message="without overflow")
    out.add("scatter_reduce_two_out",
            lambda o, a, dd, i, v, r, inc: aten.scatter_reduce_(o.copy_(a), dd, i, v, r, include_self=inc),
            x.clone(), x, 0, tensor([[0]]), x, "add", True,
            message="reduce argument must be either sum, prod, mean, amax or amin, got add")
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int16):  # small k, short rows
        for size, k in ((32, 1), (64, 4), (128, 8), (131, 16), (300, 32)):
            x = s.values(dtype, [3, size], low=-60, high=60)
            if dtype != torch.bfloat16:  # a row without ties, so that order does not depend on ATen's algorithm
                x[0] = (torch.randperm(size, generator=s.g) - size // 2).to(dtype)
            if dtype.is_floating_point:
                x[2, ::17] = float("nan")
                x[2, 5] = float("-inf")
            out.add("topk_short", aten.topk, x, k, 1, bool(size % 2), True)
            out.add("topk_short", aten.topk, x.t().contiguous().t(), k, -1, not size % 2, True)
    for dtype in (torch.float32, torch.float16, torch.int64, torch.complex64):  # indices that are the same along dimensions
        for index_shape, stretched in (([9, 1, 1], [9, 4, 3]), ([9, 1, 3], [9, 4, 3]), ([9, 1, 1], [9, 2, 3]),
                                       ([9, 4, 1], [9, 4, 2])):
            index = torch.randint(0, 6, index_shape, generator=s.g).expand(stretched)
            x, source = s.values(dtype, [6, 4, 3]), s.values(dtype, [9, 4, 3])
            for include in (True, False):
                out.add("scatter_mean",
                        lambda o, a, dd, i, v, r, inc: aten.scatter_reduce_(o.copy_(a), dd, i, v, r, include_self=inc),
                        torch.zeros_like(x), x, 0, index, source, "mean", include, written=[0],
                        tolerance=TOLERANCE.get(dtype, 0))
    out.close()


def dtype_number(dtype):
    from case_writer import DTYPES
    return None if dtype is None else DTYPES[dtype]


if __name__ == "__main__":
    a = sys.argv[1:]
    main(*([int(a[0])] if a else []), *([float(a[1])] if len(a) > 1 else []), *a[2:3])
