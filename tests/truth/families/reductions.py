"""Sums, means, products, extrema, any and all, variances and norms over dimensions: src/cpu/reduction/{sum,moments,extrema,norms}.cpp.

Integers, positions and bools to the bit, floats against float64. Limits: row_sums.h (4 vectors of 32 bytes, 16 steps of them
in the element's type, 128 columns side by side by 32 rows, 512 halves at once), sum.cpp (a single row is split at 32768;
fewer than 8 columns are transposed), moments.cpp (32 products side by side), norms.cpp (16 sizes, 512 powers), row_extrema.h
(4 vectors), extrema.cpp (threads take 65536 elements), planes.h (32768).
"""
import math

import numpy
import torch

import case
from draw import FLOATS, INTEGERS

ROWS, WIDTHS = (2, 4, 8, 32, 64), (8, 16, 32, 64, 128, 256, 512, 1024)
COMPLEX = (torch.complex64, torch.complex128)
KINDS = ("normal", "normal", "few", "wide", "special", "zero")


def shape_of(d):
    way = d.random()
    if way < 0.5:
        return d.shape(d.choice((0, 1, 2, 2, 3, 3, 4, 5)), 4096, (2, 3, 4, 8, 16, 32, 64, 128))
    if way < 0.85:
        rows, width = d.size(*ROWS, high=130), d.size(*WIDTHS, high=1100)
        sizes = [rows, width] if d.chance(0.6) else [width, rows]
        return sizes if d.chance(0.6) else [d.size(2, 3, high=3), *sizes]
    if way < 0.97:  # around what a thread takes
        width = d.size(*WIDTHS, high=1100, low=1)
        sizes = [max(1, d.choice((32768, 65536)) // width + d.choice((-1, 0, 1, 2))), width]
        return sizes if d.chance(0.6) else sizes[::-1]
    return [d.choice((32768, 65536, 131072)) * d.choice((1, 1, 2, 3)) + d.choice((-1, 0, 1, 31, 33))]


def some_dims(d, rank):
    """Dimensions in any order, some counted from the end."""
    if rank == 0:
        return d.choice(([], [0], [-1]))
    dims = d.sample(range(rank), d.choice((1, 1, 1, 2, d.randint(1, rank))) if rank > 1 else 1)
    return [n - rank if d.chance(0.3) else n for n in dims]


def one_dim(d, rank):
    return d.choice((0, -1)) if rank == 0 else d.randrange(-rank, rank)


def inexact(dtype):
    return dtype.is_floating_point or dtype.is_complex


def drawn(d, dtypes, kinds=KINDS, layouts=None):
    dtype, kind, shape = d.choice(dtypes), d.choice(kinds), shape_of(d)
    x = d.tensor(dtype, shape, kind, *([layouts] if layouts else []))
    return x, kind, f"{dtype} {shape} strides {x.stride()} {kind}"


def over(d, x):
    """Dimensions and keepdim."""
    return (d.choice((None, [])) if d.chance(0.15) else some_dims(d, x.dim())), d.chance(0.4)


def sizes_of(v):
    """Without infinities and NaN."""
    if v.is_complex():
        return sizes_of(v.real) + sizes_of(v.imag)
    return (v.double() if v.dtype == torch.bool else v.abs()).nan_to_num(0, 0, 0).double()


def exactly(dtype, function, real=False):
    """ATen's float64 rounds too; instead function(80-bit numbers), which returns one array or several; the first one
    real."""
    if dtype not in (torch.float64, torch.complex128):
        return {}

    def exact(*values):
        with numpy.errstate(all="ignore"):
            found = function(*[extended(v) if isinstance(v, torch.Tensor) else v for v in values])
        return [torch.from_numpy(numpy.asarray(a, numpy.complex128 if numpy.iscomplexobj(a) else numpy.float64)).to(
            dtype if i or not real else torch.float64) for i, a in enumerate(found if isinstance(found, tuple) else (found,))]

    return dict(exact=exact)


def long_sum(dtype, terms):
    """Sequential double sums."""
    return terms ** 0.5 if dtype in (torch.float64, torch.complex128) else 0


def extended(v):
    return v.contiguous().numpy().astype(numpy.clongdouble if v.is_complex() else numpy.longdouble)


def axes(dims, v):
    return tuple(n % v.ndim for n in dims) if dims and v.ndim else None


def total(d):
    x, kind, label = drawn(d, FLOATS * 2 + INTEGERS + COMPLEX)
    name = d.choice(("sum", "sum", "mean", "nansum") if inexact(x.dtype) else ("sum", "sum", "nansum"))
    dtype = None
    if d.chance(0.2):
        choices = list(COMPLEX) if x.is_complex() else [torch.float32, torch.float64]
        if not x.is_complex() and name != "nansum":
            choices.append(torch.complex128)
        if not inexact(x.dtype):
            choices += [torch.float32, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
            if name == "sum":
                choices += [torch.bool, torch.float16]
        dtype = d.choice(choices)
    options = dict(dtype=dtype) if dtype else {}
    # Rounds the result and the sums of 32 terms. Repeated values all round the same way.
    bounds = dict(error=12 + (long_sum(x.dtype, x.numel()) / 4 if 0 in x.stride() else 0)) if inexact(dtype or x.dtype) else {}
    if name == "mean" and x.is_complex() and kind == "special":
        bounds["same_nan"] = False  # ATen's complex division turns infinities into NaN
    label = f"{label} to {dtype}"
    by = {"sum": numpy.sum, "mean": numpy.mean, "nansum": numpy.nansum}[name]
    if name != "nansum" and d.chance(0.25):
        if bounds:
            bounds["magnitude"] = lambda v, *_: sizes_of(v).sum() / (max(v.numel(), 1) if name == "mean" else 1)
            bounds.update(exactly(dtype or x.dtype, lambda v, *_: by(v)))
        return case.named(label, name, "", x, **options, **bounds)
    dims, keep = over(d, x)
    if bounds:
        added = torch.mean if name == "mean" else torch.sum
        bounds["magnitude"] = lambda v, *_: added(sizes_of(v), dims if dims else list(range(v.dim())), keep)
        bounds.update(exactly(dtype or x.dtype, lambda v, *_: by(v, axes(dims, v), keepdims=keep)))
    label = f"{label} over {dims} keep {keep}"
    if name == "sum" and d.chance(0.25):
        result = dtype or (x.dtype if inexact(x.dtype) else torch.int64)
        kept = torch.sum(torch.empty(x.shape, device="meta"), dims, keep).shape
        out = d.tensor(result, list(kept), "normal", ("packed", "permuted", "sliced", "offset", "padded"))
        return case.named(label, "sum", "IntList_out", x, dims, keep, dtype, out, written=[4], **bounds)
    return case.named(label, name, {"sum": "dim_IntList", "mean": "dim", "nansum": ""}[name], x, dims, keep, **options, **bounds)


def product(d):
    # Products soon overflow, and where depends on their order.
    x, kind, label = drawn(d, FLOATS + INTEGERS + COMPLEX, ("few", "special", "zero", "positive", "normal"))
    dtype = d.choice((torch.float32, torch.float64, torch.int64, torch.int32)) if not inexact(x.dtype) and d.chance(0.3) else None
    options = dict(dtype=dtype) if dtype else {}
    whole = d.chance(0.3)
    dim, keep = one_dim(d, x.dim()), d.chance(0.4)
    width = max(x.numel() if whole or x.dim() == 0 else x.shape[dim], 1)
    if inexact(dtype or x.dtype) and kind in ("normal", "positive", "few"):
        # Absolute values of 0.5 to 2, so that the logarithms of products stay near 0.
        signs = d.values(torch.float64, list(x.shape)).sign()
        spread = min(1.0, 8 / width ** 0.5)
        values = torch.exp2((torch.rand(x.shape, generator=d.torch, dtype=torch.float64) * 2 - 1) * spread) * signs
        if x.is_complex():
            values = values * torch.exp(1j * torch.rand(x.shape, generator=d.torch, dtype=torch.float64) * 6)
        if inexact(x.dtype):
            x = d.laid_out(values.to(x.dtype), ("packed", "permuted", "sliced", "offset", "padded"))
    bounds = dict(error=2 * width + 4) if inexact(dtype or x.dtype) else {}
    if bounds:
        bounds.update(exactly(dtype or x.dtype, lambda v, *_: numpy.prod(v) if whole or v.ndim == 0 else numpy.prod(v, dim, keepdims=keep)))
    if x.is_complex():
        if kind == "special":
            bounds["same_nan"] = False  # products of infinities depend on the order
        bounds["magnitude"] = lambda v, *_: v.abs().prod() if whole else v.abs().prod(dim, keep)
    if dtype and dtype.is_floating_point:
        # For integers these grow beyond exact floats.
        bounds["same_nan"] = False
    if whole:
        return case.named(f"{label} to {dtype}", "prod", "", x, **options, **bounds)
    return case.named(f"{label} over {dim} to {dtype}", "prod", "dim_int", x, dim, keep, **options, **bounds)


def extremum(d):
    x, kind, label = drawn(d, FLOATS + INTEGERS)
    name = d.choice(("amax", "amin", "aminmax", "_aminmax", "max", "min", "argmax", "argmin"))
    dims, keep = over(d, x)
    dim = one_dim(d, x.dim())
    label = f"{label} keep {keep}"
    # If there are several NaNs, any may be the result.
    if name in ("amax", "amin"):
        return case.named(f"{label} over {dims}", name, "", x, dims or [], keep)
    if name == "aminmax":
        return case.named(f"{label} over {dim}", name, "", x, dim=d.choice((None, dim)), keepdim=keep)
    if name == "_aminmax":
        return case.named(label, name, "", x) if d.chance(0.5) else case.named(f"{label} over {dim}", name, "dim", x, dim, keep)
    if name in ("argmax", "argmin"):
        if d.chance(0.3):
            return case.named(label, name, "", x, None, keep)
        return case.named(f"{label} over {dim}", name, "", x, dim, keep)
    if d.chance(0.3):
        return case.named(label, name, "", x)
    return case.named(f"{label} over {dim}", name, "dim", x, dim, keep)


def truth(d):
    dtypes = FLOATS + INTEGERS + COMPLEX
    x, kind, label = drawn(d, dtypes, ("zero", "few", "special", "normal"))
    if d.chance(0.5):  # mostly equal, so that few elements decide
        x = d.laid_out(torch.where(torch.rand(x.shape, generator=d.torch) < 0.01, 1 - x.ne(0).double(), x.ne(0).double()).to(x.dtype)
                       if d.chance(0.5) else torch.full(x.shape, float(d.choice((0, 1)))).to(x.dtype))
        label += f" strides {x.stride()}"
    name = d.choice(("any", "all", "count_nonzero", "any", "all", "_is_any_true", "_is_all_true"))
    if name.startswith("_is"):
        return case.named(label, name, "", x.bool())
    dims, keep = over(d, x)
    dim = one_dim(d, x.dim())
    if name == "count_nonzero":
        if d.chance(0.5):
            return case.named(f"{label} over {dim}", name, "", x, d.choice((None, dim)))
        return case.named(f"{label} over {dims}", name, "dim_IntList", x, dims or [])
    way = d.choice(("", "dim", "dims"))
    if way == "":
        return case.named(label, name, "", x)
    if way == "dim":
        return case.named(f"{label} over {dim} keep {keep}", name, "dim", x, dim, keep)
    return case.named(f"{label} over {dims} keep {keep}", name, "dims", x, dims, keep)


def variance(d):
    x, kind, label = drawn(d, FLOATS * 2 + COMPLEX + (torch.complex32,) * d.chance(0.1),
                           ("normal", "normal", "few", "wide", "special", "zero", "shifted"))
    if kind == "shifted":  # far from 0 compared with their spread
        x = d.laid_out((d.values(torch.float64, list(x.shape)) + d.choice((10, 1000, -3e4))).to(x.dtype))
        label += f" strides {x.stride()}"
    dims, keep = over(d, x)
    correction = d.choice((None, None, 0, 1, 1, 2, 0.5, 7, -1))
    name = d.choice(("var", "std", "var_mean", "std_mean"))
    over_all = dims if dims else list(range(x.dim()))
    width = math.prod(x.shape[n] for n in over_all) if x.dim() else 1

    def magnitude(v, *_):
        # Differences from the mean are as inexact as the elements are large.
        mean = torch.mean(v, over_all, keep)
        variance = torch.var(v, over_all, correction=1 if correction is None else correction, keepdim=keep).double()
        middle = mean.abs().double()
        size = torch.mean(sizes_of(v), over_all, keep)
        # Both are computed in double, whatever the type.
        share = 1.0 if x.dtype in (torch.float64, torch.complex128) else 1e-8
        if "var" in name:
            return [variance + share * (2 * variance.sqrt() * middle + 1e-15 * middle ** 2), size]
        return [variance.sqrt() + share * middle, size]

    def exact(v, *_):
        mean = v.mean(axes(dims, v), keepdims=True)
        apart = numpy.abs(v - mean) ** 2
        found = apart.sum(axes(dims, v), keepdims=keep) / max(width - (1 if correction is None else correction), 0)
        mean = mean if keep else mean.reshape(found.shape)
        return (found if "var" in name else numpy.sqrt(found), mean) if "mean" in name else found if "var" in name else numpy.sqrt(found)

    few = width - (1 if correction is None else correction) < 1
    return case.named(f"{label} over {dims} keep {keep} correction {correction}", name, "correction", x, dims, correction=correction,
                      keepdim=keep, error=16 + long_sum(x.dtype, width), magnitude=magnitude, same_nan=not few,
                      **(exactly(x.dtype, exact, real=True) if kind != "special" else {}))


def norm(d):
    name = d.choice(("linalg_vector_norm", "linalg_vector_norm", "norm", "linalg__powsum", "dist"))
    x, kind, label = drawn(d, FLOATS + COMPLEX + (torch.complex32,) * d.chance(0.1))
    order = d.choice((0, 1, 2, 2, 3, 4, 0.5, 1.5, 2.5, float("inf"), float("-inf"), -1, -2, 5))
    dims, keep = over(d, x)
    # (1 + log(sum) / order) roundings of the power, and those of the sum.
    bounds = dict(error=24 + 4 * abs(order if math.isfinite(order) else 0) + long_sum(x.dtype, x.numel()) / 8)
    dtype = None
    if d.chance(0.2) and name != "dist":
        dtype = d.choice(COMPLEX) if x.is_complex() else d.choice((torch.float32, torch.float64))
        if dtype.itemsize < x.dtype.itemsize:
            dtype = None
    label = f"{label} order {order} over {dims} keep {keep} to {dtype}"

    def powers(v, p):
        return numpy.abs(v) ** numpy.longdouble(p)

    def of(v, p, dims, keep):
        if p == 0:
            return (v != 0).sum(axes(dims, v), keepdims=keep)
        if not math.isfinite(p):
            return (numpy.max if p > 0 else numpy.min)(numpy.abs(v), axes(dims, v), keepdims=keep, initial=0 if p > 0 else numpy.inf)
        return powers(v, p).sum(axes(dims, v), keepdims=keep) ** (1 / numpy.longdouble(p))

    if name == "dist":
        y = d.tensor(x.dtype, d.choice((list(x.shape), list(x.shape[1:]), [1] * x.dim(), [])), kind)
        width = max(x.numel(), 1)

        def magnitude(v, w, *_):
            # Differences are rounded before they are summed.
            return torch.dist(v.abs(), -w.abs(), order) if order > 0 else torch.dist(v, w, order) * width

        if order <= 0:
            # For differences near 0, rounding decides everything.
            order = d.choice((1, 2, 3, float("inf")))
        bounds.update(exactly(x.dtype, lambda v, w, *_: of(v - w, order, None, False), real=True))
        return case.named(f"{label} other {list(y.shape)} order {order}", "dist", "", x, y, order, magnitude=magnitude, **bounds)
    if name == "linalg__powsum":
        if not math.isfinite(order):
            order = 3
        bounds.update(exactly(dtype or x.dtype, lambda v, *_: powers(v, order).sum(axes(dims, v), keepdims=keep), real=True))
        return case.named(label, name, "", x, order, dims, keep, **(dict(dtype=dtype) if dtype else {}), **bounds)
    if dims is None or name == "norm" and d.chance(0.2):
        dims = None
    bounds.update(exactly(dtype or x.dtype, lambda v, *_: of(v, order, dims, keep and (dims is not None or name != "norm")), real=True))
    if name == "linalg_vector_norm":
        return case.named(label, name, "", x, order, dims, keep, **(dict(dtype=dtype) if dtype else {}), **bounds)
    if dims is None:
        return case.named(label, "norm", "Scalar", x, order, **bounds)
    if dtype:
        return case.named(label, "norm", "ScalarOpt_dim_dtype", x, order, dims, keep, dtype=dtype, **bounds)
    return case.named(label, "norm", "ScalarOpt_dim", x, None if order == 2 and d.chance(0.5) else order, dims, keep, **bounds)


def log_of_sums(d):
    x, kind, label = drawn(d, FLOATS * 2 + INTEGERS + COMPLEX)
    dims, keep = over(d, x)
    dims = dims or list(range(x.dim()))
    if x.is_complex() and kind in ("special", "wide"):
        x = d.tensor(x.dtype, list(x.shape), "normal")  # infinities depend on the order

    def magnitude(v, *_):
        # Exponents are rounded at the scale of the largest.
        parts = v.real if v.is_complex() else v.double()
        return 1 + parts.abs().nan_to_num(0, 0, 0).amax(dims, keep) if v.numel() else torch.ones(())

    if x.is_complex():
        width = math.prod(x.shape[n] for n in dims) if x.dim() else 1
        # The sum itself may cancel: the error grows as it gets smaller than its terms.
        def magnitude(v, *_):
            if v.numel() == 0:
                return torch.ones(())
            most = v.real.amax(dims, True)
            terms = torch.exp(v - most).sum(dims, keep).abs()
            return (1 + v.abs().amax(dims, keep)) * (1 + width / (terms + 1e-300))
    return case.named(f"{label} over {dims} keep {keep}", "logsumexp", "", x, dims, keep, error=16, magnitude=magnitude)


def matrix(d):
    name = d.choice(("trace", "renorm", "hash_tensor", "linalg_cross", "addr", "dot", "vdot"))
    if name == "trace":
        dtype = d.choice(FLOATS + INTEGERS + COMPLEX)
        x = d.tensor(dtype, d.shape(2, 8192, (8, 16, 32, 64, 128)), d.choice(("normal", "wide", "special")))
        return case.named(f"{dtype} {list(x.shape)} {x.stride()}", name, "", x,
                          **(dict(error=8, magnitude=lambda v: sizes_of(v.diagonal()).sum()) if inexact(dtype) else {}))
    if name == "renorm":
        x, kind, label = drawn(d, FLOATS + COMPLEX, ("normal", "few", "wide", "zero"))
        if x.dim() < 2:
            return None
        dim, p, most = one_dim(d, x.dim()), d.choice((1, 2, 2, 3, 0.5, float("inf"))), d.choice((0, 1, 0.5, 5, 100))
        return case.named(f"{label} p {p} dim {dim} maxnorm {most}", name, "", x, p, dim, most,
                          error=40 + long_sum(x.dtype, x.numel()) + (2 * x.numel() if 0 in x.stride() and x.dtype.itemsize >= 8 else 0))
    if name == "hash_tensor":
        x, kind, label = drawn(d, FLOATS + INTEGERS)
        dims, keep = over(d, x)
        return case.named(f"{label} over {dims}", name, "", x, dims or [], keepdim=keep)
    dtype = d.choice(FLOATS + (torch.int64, torch.int32, torch.uint8) + COMPLEX)
    kind = d.choice(("normal", "few", "wide"))
    if name == "linalg_cross":
        shape = d.shape(d.choice((0, 1, 2, 3)), 4096, (8, 16, 64))
        at = d.randint(0, len(shape))
        shape.insert(at, 3)
        other = [1 if i != at and d.chance(0.2) else n for i, n in enumerate(shape)]
        x, y = d.tensor(dtype, shape, kind), d.tensor(dtype, other, kind)
        bounds = {}
        if inexact(dtype):
            sizes = lambda v: torch.linalg.vector_norm(v.abs(), dim=at, keepdim=True)
            bounds = dict(error=8, magnitude=lambda v, w, *_: sizes(v) * sizes(w))
        if dtype in (torch.float16, torch.bfloat16):
            bounds["slack"] = 6  # both round at each step
        dim = d.choice((at, at - len(shape)))
        return case.named(f"{dtype} {shape} {other} {x.stride()} {y.stride()} dim {dim}", name, "", x, y, dim=dim, **bounds)
    n = d.size(16, 32, 64, 256, 512, 1024, 32768, high=70000)
    if name == "addr":
        m = d.size(8, 16, 64, high=200)
        n = min(n, 300)
        base = d.tensor(dtype, d.choice(([m, n], [n], [1, n], [m, 1], [])), kind)
        a, b = d.tensor(dtype, [m], kind), d.tensor(dtype, [n], kind)
        beta, alpha = d.choice((1, 0, 2, -1)), d.choice((1, 2, -3, 0))
        if inexact(dtype):
            beta, alpha = d.choice((beta, 0.5)), d.choice((alpha, 0.25))
        return case.named(f"{dtype} {list(base.shape)} {m} {n} beta {beta} alpha {alpha} {kind}", name, "", base, a, b, beta=beta,
                          alpha=alpha, **(dict(error=8, slack=6, magnitude=lambda s, v, w: abs(beta) * s.abs()
                                               + abs(alpha) * torch.outer(v.abs(), w.abs())) if inexact(dtype) else {}))
    x, y = d.tensor(dtype, [n], kind), d.tensor(dtype, [n], kind)
    bounds = dict(error=16, magnitude=lambda v, w: v.abs() @ w.abs()) if inexact(dtype) else {}
    bounds.update(exactly(dtype, lambda v, w: ((numpy.conj(v) if name == "vdot" else v) * w).sum()))
    return case.named(f"{dtype} {n} {x.stride()} {y.stride()} {kind}", name, "", x, y, **bounds)


OPERATORS = (total, total, total, product, extremum, extremum, truth, variance, variance, norm, norm, log_of_sums, matrix)


def draw(d):
    return d.choice(OPERATORS)(d)
