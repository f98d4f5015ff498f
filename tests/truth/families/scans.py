"""cumsum, cumprod, cummax, cummin, logcumsumexp, segment_reduce and its gradient, histograms, bincount: src/cpu/reduction/scan.cpp, scan_loop.h,
scan_logcumsumexp.cpp, segment_reduce.cpp, histogram.cpp, sets.cpp.

Integers, extremes and counts to the bit, the rest near ATen's in float64. Limits: 4 slices at once or 8 and more neighbouring ones,
blocks of 256 neighbours (scan_packed), four floats at a time (cumsum_packed), 4 slices and blocks of 256 of half types
(scan_small_floats), runs of 32 that change nothing (extreme_rows), 16384 elements per thread.
"""
import torch

import case
from indexing import LAYOUTS

DEVICES = ("cpu",)
FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
COMPLEX = (torch.complex64, torch.complex128)
LENGTHS = (2, 3, 4, 8, 31, 32, 33, 64, 255, 256, 257, 1000, 4096)


def sliced(d):
    rank = d.choice((0, 1, 1, 2, 2, 2, 3, 4))
    if not rank:
        return [], d.choice((0, -1))
    n = d.size(*LENGTHS, low=0 if d.chance(0.03) else 1, high=6000)
    shape = d.shape(rank - 1, max(1, min(d.choice((20, 600, 3000)), 60000 // max(n, 1))), (3, 4, 7, 8, 9, 256, 257), low=0 if d.chance(0.02) else 1)
    dim = d.choice((rank - 1, d.randrange(rank)))
    shape.insert(dim, n)
    return shape, dim - rank if d.chance(0.5) else dim


def half(dtype):
    return 2 ** 13 if dtype == torch.float16 else 2 ** 16 if dtype == torch.bfloat16 else 1


def draw_scan(d):
    op = d.choice(("cumsum", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "named"))
    shape, dim = sliced(d)
    n = shape[dim] if shape else 1
    if op in ("cummax", "cummin"):
        dtype = d.choice(FLOATS + WHOLE)
        x = d.tensor(dtype, shape, d.choice(("normal", "few", "special", "wide", "zero")), LAYOUTS)
        if d.chance(0.3) and x.numel():
            x = d.laid_out(x.cpu().sort(dim, descending=d.chance(0.7)).values, LAYOUTS)
        return case.shim(f"{dtype} {shape} {x.stride()} dim {dim}", op, x, dim, torch=getattr(torch, op), zeros=True, both=True)
    if op == "logcumsumexp":
        dtype = d.choice(FLOATS + COMPLEX)
        x = d.tensor(dtype, shape, d.choice(("normal", "few", "special") if not dtype.is_complex else ("normal",)), LAYOUTS)
        big = half(dtype)
        how = dict(error=(8 + n ** 0.5) * 4, magnitude=lambda a, k: torch.logcumsumexp(a.abs(), k).abs() + 1) if not dtype.is_complex else dict(
            error=64.0 + n, magnitude=lambda a, k: torch.logcumsumexp(a.real.abs(), k).abs() + 8)
        # ATen rounds every half sum.
        how["slack"] = 3.0 if big == 1 else 1.0
        if dtype.is_complex:
            how["error"] *= 8
        return case.shim(f"{dtype} {shape} {x.stride()} dim {dim}", op, x, dim, torch=torch.logcumsumexp, **how)
    dtype = d.choice(FLOATS + WHOLE + COMPLEX)
    to = d.choice((None, None, None, torch.float32, torch.float64, torch.int64, torch.int32, torch.float16))
    floats = dtype.is_floating_point or dtype.is_complex
    if to is not None and (dtype.is_complex or not to.is_floating_point and floats):
        to = None
    result = to or (dtype if floats else torch.int64)
    product = op == "cumprod" or op == "named" and d.chance(0.4)
    name = "cumprod" if product else "cumsum"
    kind = d.choice(("normal", "few", "special") if not product else ("positive", "few", "normal"))
    if floats and not product and d.chance(0.2):
        kind = "wide"
    x = d.tensor(dtype, shape, kind, LAYOUTS)
    if product and floats and d.chance(0.6):
        x = d.laid_out((x.cpu() * 0.05 + 0.98).to(dtype), LAYOUTS)
    how = {}
    if result.is_floating_point or result.is_complex:
        how = dict(error=4.0 + 2 * n ** (0.5 if not product else 1), same_nan=not product and not dtype.is_complex,
                   magnitude=lambda a, k, dtype=None: getattr(torch, name)(a.to(torch.complex128 if a.is_complex() else torch.float64).abs(), k).clamp(max=1e308))
    label = f"{dtype} {shape} {x.stride()} dim {dim} to {to} {kind}"
    if op == "named":
        return case.named(label, name, "", x, dim, dtype=to, **how)
    return case.shim(label, name, x, dim, to, torch=lambda a, k, t: getattr(torch, name)(a, k, dtype=t), **how)


def packed(t):
    """With packed strides even for one element, because ATen's segments depend on them."""
    return t.clone(memory_format=torch.contiguous_format)


def draw_segments(d):
    reduce = d.choice(("max", "mean", "min", "sum", "prod"))
    dtype = d.choice(FLOATS)
    axis = d.choice((0, 0, 0, 1))
    outer = [d.size(2, low=1, high=4)] if axis else []
    count = d.size(2, 8, high=30, low=1)
    inner = d.shape(d.choice((0, 0, 1, 2)), 60, (2, 8), low=1)
    lengths = [[d.choice((0, 1, 2, d.randint(0, 40))) for _ in range(count)] for _ in range(outer[0] if outer else 1)]
    size = max(sum(row) for row in lengths)
    for row in lengths:
        row[-1] += size - sum(row)
    if size == 0:
        return None
    x = d.tensor(dtype, outer + [size] + inner, d.choice(("normal", "few", "positive", "special")), LAYOUTS[:-2] + ("expanded",))
    ints = d.choice((torch.int64, torch.int32))
    table = torch.tensor(lengths if axis else lengths[0], dtype=ints)
    by_offsets = d.chance(0.5)
    offsets = torch.cat((torch.zeros_like(table[..., :1]), table.cumsum(-1).to(ints)), -1)
    given = d.laid_out(offsets if by_offsets else table, ("packed",))
    initial = d.choice((None, None, 0.0, 1.0, 2.5, -1.0))
    longest = max(max(row) for row in lengths)
    label = f"{reduce} {dtype} {list(x.shape)} axis {axis} {'offsets' if by_offsets else 'lengths'} {count} initial {initial}"
    how = {}
    if reduce in ("mean", "sum", "prod"):
        how = dict(error=(4 + 2 * longest ** (1 if reduce == "prod" else 0.5)) * half(dtype), same_nan=reduce != "prod",
                   magnitude=lambda a, r, l, i, o, k, u, v: torch.segment_reduce(
                       packed(a.abs()), "sum" if r == "mean" else r, lengths=l, offsets=o, axis=k, initial=None if v is None else abs(v)))
    arguments = [x, reduce, None if by_offsets else given, None, given if by_offsets else None, axis, d.chance(0.5), initial]
    if d.chance(0.6):
        return case.shim(label, "segment_reduce", *arguments, **how, torch=lambda a, r, l, i, o, k, u, v: torch.segment_reduce(
            packed(a), r, lengths=l, offsets=o, axis=k, unsafe=u, initial=v))
    x = x.nan_to_num(0.5, 2, -2)
    if initial is None and reduce == "prod":
        initial = 1.0
    out = torch.segment_reduce(packed(x), reduce, lengths=arguments[2], offsets=arguments[4], axis=axis, initial=initial, unsafe=True)
    # Like ATen, ours divides the gradients of equal extremes only if they are positive.
    gradient = d.tensor(dtype, list(out.shape), "normal", ("packed", "permuted", "sliced", "padded"))
    terms = (8 + 2 * longest) * half(dtype)
    if reduce == "prod" and (x == 0).any() or not out.isfinite().all():
        return None
    return case.shim("gradient " + label, "_segment_reduce_backward", gradient, out, x, reduce, arguments[2], arguments[4], axis, initial,
                     error=terms, magnitude=lambda g, o, a, *r: torch.ops.aten._segment_reduce_backward(
                         packed(g), o, packed(a), r[0], lengths=r[1], offsets=r[2], axis=r[3], initial=r[4]).abs() + (
                             g.abs().max() * 1e-30),
                     torch=lambda g, o, a, r, l, f, k, v: torch.ops.aten._segment_reduce_backward(
                         packed(g), packed(o), packed(a), r, lengths=l, offsets=f, axis=k, initial=v))


def draw_histogram(d):
    op = d.choice(("histc", "histogram", "histogram_edges", "dd", "dd_edges", "dd_tensors", "bincount", "bincount"))
    if op == "bincount":
        dtype = d.choice(WHOLE[:-1])
        n = d.size(8, 64, 1024, low=0, high=5000)
        x = d.laid_out(torch.randint(0, d.choice((1, 2, 50, 120)), [n], generator=d.torch).to(dtype), LAYOUTS)
        weights = d.tensor(d.choice((torch.float32, torch.float64, torch.int64, torch.float16)), [n], "normal", LAYOUTS) if d.chance(0.5) else None
        how = {}
        if weights is not None:
            how = dict(error=4 + 2.0 * n ** 0.5, magnitude=lambda a, w, m: torch.bincount(a.long(), w.abs(), m),
                       exact=lambda a, w, m: torch.bincount(a.long(), w, m))
        return case.named(f"{dtype} {n} weights {None if weights is None else weights.dtype}", op, "", x, weights, d.choice((0, 1, 70, 200)), **how)
    dtype = d.choice((torch.float32, torch.float32, torch.float64))
    shape = d.shape(d.choice((0, 1, 1, 2, 3)), 3000, (8, 64), low=0 if d.chance(0.05) else 1)
    bins = d.choice((1, 2, 3, 10, 63, 64, 65, 100, 257))
    low, high = d.choice(((-1, 1), (0, 4), (-3.0, 3.0), (-0.1, 0.7), (2, 2)))
    kind = d.choice(("normal", "few", "positive", "wide"))
    if op == "histc":
        x = d.tensor(dtype, shape, kind, LAYOUTS)
        if d.chance(0.3) or not x.numel():
            low = high = 0
        return case.shim(f"{dtype} {shape} bins {bins} {low} {high} {kind}", op, x, bins, low, high, torch=torch.histc, both=True)
    density, weighted, limited = d.chance(0.4), d.chance(0.4), d.chance(0.5)
    if low == high or torch.Size(shape).numel() < 2:
        limited = True  # a single value would lie on the edge between two bins
    terms = max(shape + [1])

    def within(bins, size):
        """Values in and around bins of [low, high], none near an edge: ATen's edges depend on its vector width."""
        if low == high:
            return torch.full(size, float(low), dtype=torch.float64)
        width = (high - low) / bins
        place = torch.randint(-1 if limited else 0, bins + (1 if limited else 0), size, generator=d.torch)
        t = low + (place + torch.rand(size, generator=d.torch, dtype=torch.float64) * 0.8 + 0.1) * width
        if t.numel() > 1:
            t.view(-1)[0], t.view(-1)[-1] = low, high
        return t

    if op in ("histogram", "histogram_edges"):
        weight = d.tensor(dtype, shape, "positive", LAYOUTS) if weighted else None
        label = f"{dtype} {shape} bins {bins} weight {weighted} density {density}"
        if op == "histogram":
            x = d.laid_out(within(bins, shape).to(dtype), LAYOUTS[:-2])
            limits = [float(low), float(high)] if limited else None
            made = case.shim(f"{label} {limits}", "histogram_bin_ct", x, bins, limits, weight, density,
                             torch=lambda a, b, r, w, s: torch.histogram(a, b, range=r, weight=w, density=s))
        else:
            x = d.tensor(dtype, shape, kind, LAYOUTS)
            edges = d.laid_out((torch.randn([bins + 1], generator=d.torch)).sort().values.to(dtype), ("packed", "sliced"))
            made = case.named(label, "histogram", "bins_tensor", x, edges, weight=weight, density=density)
    else:
        dims = d.choice((1, 2, 3))
        sizes = [d.size(8, 64, low=0 if d.chance(0.05) else 1, high=600)] + [2] * d.choice((0, 0, 1))
        counts = [d.choice((1, 2, 3, 7)) for _ in range(dims)]
        bins, limited = max(counts), limited or torch.Size(sizes).numel() < 2
        x = d.laid_out(torch.stack([within(n, sizes) for n in counts], -1).to(dtype), LAYOUTS[:-2])
        terms = max(sizes + [1])
        weight = d.tensor(dtype, sizes, "positive", LAYOUTS) if weighted else None
        limits = [float(v) for _ in range(dims) for v in (low, high)] if limited else None
        label = f"{dtype} {list(x.shape)} bins {counts} {limits} weight {weighted} density {density}"
        if op == "dd":
            made = case.shim(label, "_histogramdd_from_bin_cts", x, counts, limits, weight, density,
                             torch=lambda a, b, r, w, s: torch.ops.aten._histogramdd_from_bin_cts(a, b, range=r, weight=w, density=s))
        elif op == "dd_edges":
            made = case.named(label, "_histogramdd_bin_edges", "", x, counts, range=limits, weight=weight, density=density)
        else:
            x = d.tensor(dtype, sizes + [dims], kind, LAYOUTS)
            edges = [torch.randn([n + 1], generator=d.torch).sort().values.to(dtype) for n in counts]
            made = case.named(label, "_histogramdd_from_bin_tensors", "", x, edges, weight=weight, density=density)
    # float64 has other edges: compares with ATen's own result, within one rounding per element of a bin and of widths.
    same = made.torch

    def again(value):
        return value.to(dtype) if isinstance(value, torch.Tensor) else [again(v) for v in value] if isinstance(value, list) else value

    made.exact = lambda *v: same(*[again(a) for a in v])
    made.error, made.slack = 8.0 + 4 * terms ** 0.5 + (8 * bins if density and op not in ("histogram_edges", "dd_tensors") else 0), 0.0
    made.magnitude = lambda *v: [r.abs() + (abs(low) + abs(high) + 1) * (op == "dd_edges" or op == "histogram" and i == 1)
                                 for i, r in enumerate(case.flat(made.exact(*v)))]
    return made


def draw(d):
    way = d.random()
    return draw_scan(d) if way < 0.6 else draw_segments(d) if way < 0.8 else draw_histogram(d)
