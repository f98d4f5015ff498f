"""Writes tests/data/statistics.cases: python tests/cpu/make_statistics_cases.py [seed [cases [file]]]"""
import pathlib
import sys

import torch
from case_writer import CaseWriter, Samples, attempt

aten = torch.ops.aten
FLOATS = [torch.float32, torch.float64]
SMALL = [torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def order_statistics(s, out, count):
    for _ in range(count * 3):
        shape = [s.below(s.pick([4, 9, 40])) + (s.below(9) > 0) for _ in range(s.below(4))]
        dtype = s.pick(FLOATS + SMALL + INTEGERS)
        special = s.pick([0.0, 0.0, 0.2])
        t = s.sample(dtype, shape, special)
        dim = s.below(max(1, len(shape))) - s.below(2) * len(shape)
        n = t.size(dim) if shape else 1
        attempt(out, "kthvalue", aten.kthvalue, t, 1 + s.below(n + 1), dim, bool(s.below(2)))
        attempt(out, "median", aten.median, t)
        attempt(out, "nanmedian", aten.nanmedian, t)
        t = s.sample(s.pick(FLOATS + SMALL + INTEGERS + [torch.bool]), shape, 0.0 if n > 16 else special, low=-3, high=3)
        attempt(out, "mode", aten.mode, t, dim, bool(s.below(2)))
    for op, call in (("kthvalue", lambda t: aten.kthvalue(t, 1)), ("median", aten.median), ("nanmedian", aten.nanmedian),
                     ("mode", aten.mode)):
        more = {"kthvalue": (1, -1, False), "mode": (-1, False)}.get(op, ())
        attempt(out, op, lambda *a, op=op: getattr(aten, op)(*a), torch.ones(3, dtype=torch.complex64), *more)
    attempt(out, "kthvalue", aten.kthvalue, torch.ones(3), 4, 0, False)
    attempt(out, "kthvalue", aten.kthvalue, torch.ones(0, 3), 1, 0, False)
    attempt(out, "kthvalue", aten.kthvalue, torch.ones(3, dtype=torch.bool), 1, 0, False)
    attempt(out, "mode", aten.mode, torch.ones(0, 3), 0, False)
    attempt(out, "mode", aten.mode, torch.ones(3), 1, False)


def histograms(s, out, count):
    for _ in range(count * 2):
        dtype = s.pick(FLOATS + FLOATS + SMALL)
        t = s.sample(dtype, [s.below(30), 1 + s.below(3)], s.pick([0.0, 0.0, 0.1]))
        low = s.pick([0, 0, -3.5, 2])
        attempt(out, "histc", aten.histc, t, s.pick([1, 7, 20]), low, low + s.pick([0, 4, 10.5, -1]),
                tolerance=TOLERANCE[dtype])
        bounds = s.pick([None, None, [-4.0, 5.5], [1.0, 1.0], [2.0, -1.0], [1.0]])
        weight = s.pick([None, s.values(dtype, t.shape, 0, 4)])
        attempt(out, "histogram_bin_ct", lambda x, n, r, w, d: aten.histogram.bin_ct(x, n, range=r, weight=w, density=d), t,
                s.pick([1, 5, 16]), bounds, weight, bool(s.below(3) == 0), tolerance=TOLERANCE[dtype])
        dims = 1 + s.below(3)
        t = s.sample(dtype, [s.below(4) + (s.below(9) > 0) for _ in range(s.below(2))] + [1 + s.below(20), dims])
        bounds = s.pick([None, [-4.0, 5.5] * dims])
        weight = s.pick([None, s.values(dtype, t.shape[:-1], 0, 4)])
        attempt(out, "_histogramdd_from_bin_cts",
                lambda x, n, r, w, d: aten._histogramdd_from_bin_cts(x, n, range=r, weight=w, density=d), t,
                [1 + s.below(5) for _ in range(dims)], bounds, weight, bool(s.below(3) == 0), tolerance=TOLERANCE[dtype])
    for bad in ((torch.ones(3), 0, 0, 1), (torch.ones(3), 3, 0, float("inf")), (torch.ones(3, dtype=torch.int32), 3, 0, 1)):
        attempt(out, "histc", aten.histc, *bad)
    attempt(out, "_histogramdd_from_bin_cts",
            lambda x, n, r, w, d: aten._histogramdd_from_bin_cts(x, n, range=r, weight=w, density=d), torch.ones(3), [2],
            None, None, False)


def distances(s, out, count):
    for _ in range(count * 2):
        dtype = s.pick(FLOATS)
        p = s.pick([0.0, 0.5, 1.0, 1.5, 2.0, 2.0, 3.0, float("inf")])
        m = s.below(s.pick([5, 40])) + (s.below(9) > 0)
        batch1, batch2 = s.pick([([], []), ([2], [2]), ([3, 1], [2]), ([], [2]), ([0], [0])])
        rows = s.pick([4, 30])
        x1 = s.sample(dtype, batch1 + [s.below(rows), m])
        x2 = s.sample(dtype, batch2 + [s.below(rows), m])
        mode = s.pick([None, 1, 2]) if rows < 25 else 2
        attempt(out, "_cdist_forward", aten._cdist_forward, x1, x2, p, mode, tolerance=TOLERANCE[dtype] * 20)
        x1, x2 = x1.contiguous(), x2.contiguous()
        d = aten._cdist_forward(x1, x2, p, 2)
        g = s.values(dtype, d.shape)
        attempt(out, "_cdist_backward", aten._cdist_backward, g, x1, x2, p, d, tolerance=TOLERANCE[dtype] * 20)
        x = s.sample(dtype, [1 + s.below(9), m]).contiguous()
        attempt(out, "_pdist_forward", aten._pdist_forward, x, p, tolerance=TOLERANCE[dtype] * 20)
        d = aten._pdist_forward(x, p)
        g = s.values(dtype, d.shape)
        if x.size(0) > 1 and m > 0:  # otherwise PyTorch reads out of bounds
            attempt(out, "_pdist_backward", aten._pdist_backward, g, x, p, d, tolerance=TOLERANCE[dtype] * 20)
    near = torch.rand(40, 3)
    out.add("_cdist_forward", aten._cdist_forward, near * 9, near.flip(0) * 7, 2.0, None, tolerance=1e-3)
    for bad in ((torch.ones(3), torch.ones(3), 2.0, None), (torch.ones(2, 3), torch.ones(2, 4), 2.0, None),
                (torch.ones(2, 3), torch.ones(2, 3), -1.0, None), (torch.ones(2, 3).half(), torch.ones(2, 3).half(), 1.0, None),
                (torch.ones(2, 3).long(), torch.ones(2, 3).long(), 1.0, None), (torch.ones(2, 3), torch.ones(2, 3), 2.0, 3)):
        attempt(out, "_cdist_forward", aten._cdist_forward, *bad)


def segments(s, out, count):
    call = lambda d, r, l, i, o, a, u, v: aten.segment_reduce(d, r, lengths=l, indices=i, offsets=o, axis=a, unsafe=u,
                                                             initial=v)
    slope = lambda g, y, d, r, l, o, a, v: aten._segment_reduce_backward(g, y, d, r, lengths=l, offsets=o, axis=a,
                                                                        initial=v)
    for _ in range(count * 4):
        dtype = s.pick(FLOATS + SMALL)
        axis = s.below(2)
        outer = [1 + s.below(3)] * axis
        rows = [[s.below(4) for _ in range(3)] for _ in range(outer[0] if outer else 1)]
        total = max(1, max(sum(r) for r in rows))
        for r in rows:
            r.append(total - sum(r))
        lengths = torch.tensor(rows if axis else rows[0], dtype=s.pick([torch.int64, torch.int32]))
        offsets = torch.nn.functional.pad(lengths.cumsum(-1), (1, 0)).to(lengths.dtype)
        data = s.sample(dtype, outer + [total] + [1 + s.below(3)] * s.below(2), s.pick([0.0, 0.1]))
        reduce = s.pick(["sum", "mean", "max", "min", "prod"])
        initial = s.pick([None, None, 0, 1.5])
        by = (lengths, None) if s.below(2) else (None, offsets)
        attempt(out, "segment_reduce", call, data, reduce, by[0], None, by[1], axis, False, initial,
                tolerance=TOLERANCE[dtype])
        data = data.contiguous()
        if not data.isnan().any():
            y = call(data, reduce, by[0], None, by[1], axis, False, initial)
            g = s.values(dtype, y.shape, 1, 5)
            attempt(out, "_segment_reduce_backward", slope, g, y, data, reduce, by[0], by[1], axis, initial,
                    tolerance=TOLERANCE[dtype])
    x = torch.ones(4)
    for bad in (("sum", torch.tensor([2, 3]), None, None, 0, False, None), ("sum", torch.tensor([5, -1]), None, None, 0, False, None),
                ("what", torch.tensor([4]), None, None, 0, False, None), ("sum", None, None, None, 0, False, None),
                ("sum", torch.tensor([4]), None, None, 1, False, None)):
        attempt(out, "segment_reduce", call, x, *bad)


def extrema(s, out):
    for dtype in FLOATS + SMALL + INTEGERS + [torch.bool]:
        for shape, special in (([1, 90], 0.03), ([1, 90], 0.0), ([3, 67], 0.02)):
            x = s.sample(dtype, shape, special)
            out.add("amax", aten.amax, x, [1], False)
            out.add("amin", aten.amin, x, [], True)
            out.add("aminmax", lambda t, keep: aten.aminmax(t, dim=None, keepdim=keep), x, special == 0)
            out.add("aminmax", lambda t, keep: aten.aminmax(t, dim=None, keepdim=keep), x.contiguous(), special > 0)


def error_function(out):
    odd = torch.tensor([0.0, -0.0, 5e-324, -1e-300, 1e-9, 0.85, -0.85, 0.8499999999999999, 6.0, -6.1, 1e300, float("inf"),
                        float("-inf"), float("nan")], dtype=torch.float64)
    out.add("erf", aten.erf, torch.cat([odd, torch.linspace(-6.5, 6.5, 333, dtype=torch.float64)]), tolerance=2.3e-16)


def main(seed=1, count=12, path=pathlib.Path(__file__).parents[1] / "data" / "statistics.cases"):
    s = Samples(seed)
    torch.manual_seed(seed)
    out = CaseWriter(path)
    order_statistics(s, out, count)
    histograms(s, out, count)
    distances(s, out, count)
    segments(s, out, count)
    extrema(s, out)
    error_function(out)
    out.close()


if __name__ == "__main__":
    main(*[int(a) if a.isdigit() else a for a in sys.argv[1:]])
