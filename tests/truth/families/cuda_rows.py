"""Scans, sums, norms and distances of rows on a device.

Limits: rows longer than 16 by blocks in tiles of 1024, few rows of 16 tiles and more in chunks, int64 of one row by CUB
(scan_kernels.cu); strided rows copied below 4096 columns and above 64 elements (scan.cpp); a warp per row up to 1024
elements, 16 bytes at once if aligned (rms_norm_kernels.cu); distances in squares of 64, parts of 16, from 16 rows on; 256
threads per row of a sum, in float64."""
import torch

import abi
import case

DEVICES = ("cuda",)
aten = torch.ops.aten
FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = (torch.int64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
COMPLEX = (torch.complex64, torch.complex128)


def rows(d, dtype, kind):
    length = d.size(1, 16, 17, 64, 65, 1023, 1024, 1025, 2048, low=0, high=5000)
    if d.chance(0.12):
        length = d.choice((16383, 16384, 16385, 17408, 32768, 33000, 70001, 120000))
    others, left = [], 130000 // max(length, 1)
    while left > 1 and len(others) < 3 and d.chance(0.7):
        others.append(d.size(2, 3, 7, 32, low=1, high=min(left, 200)))
        left //= others[-1]
    if length < 30 and d.chance(0.4):
        others = [d.size(4095, 4096, 4097, low=1, high=4200)]
    if d.chance(0.03):
        others.append(0)
    shape, dim = list(others), d.randrange(len(others) + 1)
    shape.insert(dim, length)
    x = d.tensor(dtype, shape, kind)
    return x, dim, length, f"{dtype} {shape} along {dim} {kind} {x.stride()}"


def finite(x):
    # One part may be finite although the other is not.
    return torch.view_as_real(x).nan_to_num(0, 0, 0).norm(dim=-1) if x.is_complex() else x.abs().nan_to_num(0, 0, 0)


def scan(d):
    op = d.choice(("cumsum", "cumsum", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"))
    dtype = d.choice(FLOATS if op == "logcumsumexp" else FLOATS + WHOLE + (COMPLEX if op in ("cumsum", "cumprod") else ()))
    kind = {"cumprod": d.choice(("few", "positive")), "cumsum": d.choice(("normal", "few", "special", "wide"))}.get(op, d.choice(("normal", "few", "special")))
    if dtype.is_complex and kind == "positive":
        kind = "few"
    x, dim, length, label = rows(d, dtype, kind)
    if op in ("cummax", "cummin"):
        return case.shim(label, op, x, dim, torch=getattr(torch, op))
    if op == "logcumsumexp":
        # Sequential: each step adds a rounding of the current size.
        return case.shim(label, op, x, dim, torch=torch.logcumsumexp, error=16 + 4.0 * length ** 0.5, magnitude=lambda x, _: 1 + finite(x).amax() + torch.logcumsumexp(finite(x), dim)
                         if x.numel() else x)
    to = d.choice((None, None, None, torch.float64, torch.float32)) if not dtype.is_complex else None
    floating = (to or dtype).is_floating_point or dtype.is_complex
    if op == "cumprod" and floating:
        # Products that underflow or overflow on the way: as in ATen, step by step.
        x = d.laid_out((1 + d.values(torch.float64 if not dtype.is_complex else torch.complex128, x.shape) * min(0.05, 3 / max(length, 1) ** 0.5)).to(dtype)
                       if dtype.is_floating_point or dtype.is_complex else x.cpu())
    wide = lambda x: x.cpu().to(x.dtype if x.is_complex() else torch.float64)
    # Sequential on the host, because infinity from the middle of a row times an earlier zero must not give NaN.
    exact = lambda x: [getattr(torch, op)(wide(x), dim).to(x.device)]
    if op == "cumsum":
        # Equal terms round the same way every time.
        options = dict(error=8 + 2.0 * length ** 0.5 + (length / 32 if kind == "special" else 0) + (length / 2 if length and x.stride(dim) == 0 else 0),
                       magnitude=lambda x: finite(wide(x)).cumsum(dim))
    else:
        options = dict(error=(8 + 2.0 * length ** 0.5) * (1 + length ** 0.5), magnitude=lambda x: wide(x).abs().cumprod(dim))
    if to is None and dtype.itemsize == 2 and dtype.is_floating_point:  # ATen sums these in half precision
        options.update(slack=1.0)
    return case.Case(f"{op} {label} {to}", lambda x: abi.call(op, x, dim, to), lambda x: getattr(torch, op)(x, dim, dtype=to), [x],
                     **(dict(exact=exact, **options) if floating else {}))


def total(d):
    dtype = d.choice(FLOATS + WHOLE + COMPLEX)
    shape = d.shape(d.choice((1, 2, 3, 4)), 100000, (1, 32, 255, 256, 257, 1000, 4096), low=d.choice((0, 1, 1, 1)))
    kind = d.choice(("normal", "few", "special", "wide")) if not dtype.is_complex else "normal"
    x = d.tensor(dtype, shape, kind)
    dims = d.sample(range(len(shape)), d.randrange(0, len(shape) + 1))
    dims = [n - len(shape) if d.chance(0.3) else n for n in dims]
    keep = d.chance(0.4)
    op = d.choice(("sum", "mean")) if dtype.is_floating_point or dtype.is_complex else "sum"
    width = torch.Size([shape[n] for n in dims] if dims else shape).numel()
    if op == "mean" and width == 0:
        return None
    to = d.choice((None, None, None, torch.float64)) if not dtype.is_complex else None
    floating = dtype.is_floating_point or dtype.is_complex or to is not None
    options = dict(error=4 + 0.5 * width ** 0.5, strides=False, magnitude=lambda x, *_: getattr(torch, op)(
        x.to(x.dtype if x.is_complex() else torch.float64).abs().nan_to_num(0, 0, 0), dim=dims or None, keepdim=keep)) if floating else dict(strides=False)
    label = f"{dtype} {shape} {kind} {x.stride()} {dims} {keep} {to}"
    if not dims and not keep and d.chance(0.5):
        return case.named(label, op, "", x, dtype=to, **options)
    return case.named(label, op, "dim_IntList" if op == "sum" else "dim", x, dims, keep, dtype=to, **options)


def rms(d):
    dtype = d.choice(FLOATS)
    length, n = d.size(1, 4, 8, 31, 32, 33, 64, 1023, 1024, 1025, 4096, low=1, high=5000), d.size(1, 7, 8, 9, low=1, high=60)
    while n * length > 60000:
        n = (n + 1) // 2
    shape = d.choice(([n, length], [n, length], [1, n, length], [length]))
    normalized = [length] if d.chance(0.8) or len(shape) < 2 else shape[-2:]
    x = d.tensor(dtype, shape, "normal", ("packed", "packed", "offset", "permuted", "padded"))
    weight = d.tensor(dtype, normalized, "normal", ("packed", "offset", "permuted")) if d.chance(0.6) else None
    eps = d.choice((None, 1e-5, 1e-3, 0.0))
    count = torch.Size(normalized).numel()
    return case.shim(f"{dtype} {shape} {normalized} {x.stride()} weight {weight is not None and weight.stride()} eps {eps}", "_fused_rms_norm", x, normalized, weight, eps,
                     torch=lambda *v: aten._fused_rms_norm(*v), exact=lambda x, s, w, e: norm_of(x, len(normalized), w, torch.finfo(torch.float64 if dtype == torch.float64
                                                                                                                 else torch.float32).eps if e is None else e),
                     error=8 + 0.5 * count ** 0.5, strides=False)


def norm_of(x, dims, w, eps):
    over = list(range(-dims, 0))
    root = (x.square().mean(over, True) + eps).rsqrt()
    return [x * root * (1 if w is None else w), root]


def distances(d):
    dtype = d.choice((torch.float32, torch.float64))
    p, r, m = d.size(15, 16, 17, 63, 64, 65, low=0, high=150), d.size(15, 16, 17, 63, 64, 65, low=0, high=150), d.size(1, 15, 16, 17, low=0, high=70)
    norm = d.choice((0.0, 0.5, 1.0, 1.5, 2.0, 3.5, float("inf")))
    kind = d.choice(("normal", "few"))
    way = d.choice(("cdist", "cdist", "cdist back", "pdist", "pdist back"))
    tolerance = dict(error=32 + 8.0 * m ** 0.5 + (64 if norm not in (0, 1, 2, float("inf")) else 0))
    if way.startswith("pdist"):
        x = d.tensor(dtype, (p, m), kind, ("packed", "permuted", "padded"))
        label = f"{dtype} {p}x{m} {norm} {kind} {x.stride()}"
        if way == "pdist":
            return case.shim(label, "_pdist_forward", x, norm, torch=lambda x, n: aten._pdist_forward(x.contiguous(), n), **tolerance)
        if m == 0:
            return None
        found = aten._pdist_forward(x.contiguous(), norm)
        grad = d.tensor(dtype, found.shape, "normal", ("packed", "padded", "sliced"))
        if norm in (0.5, float("inf")) and kind == "few":
            return None  # of equal rows
        tolerance["error"] += 64 + 8 * p
        return case.shim(label, "_pdist_backward", grad, x, norm, found, torch=lambda g, x, n, f: aten._pdist_backward(g.contiguous(), x.contiguous(), n, f),
                         magnitude=lambda g, x, n, f: torch.full_like(x, 1.0) * (g.abs().amax() * p * slope_bound(norm, f) if g.numel() else 1), strides=False, **tolerance)
    batch = d.choice(((), (), (2,), (3, 1)))
    other = batch if d.chance(0.7) else tuple(1 for _ in batch)
    a, b = d.tensor(dtype, (*batch, p, m), kind), d.tensor(dtype, (*other, r, m), kind)
    label = f"{dtype} {list(a.shape)} {list(b.shape)} {norm} {kind}"

    def plain(a, b, n):
        return direct(a.double(), b.double(), n)
    if way == "cdist":
        return case.shim(label, "_cdist_forward", a, b, norm, d.choice((None, 0, 1, 2)), torch=lambda a, b, n, _: plain(a, b, n).to(dtype),
                         exact=lambda a, b, n, _: [plain(a, b, n)], strides=False, **tolerance)
    if batch != other or p * r * m == 0 or (norm in (0.5, float("inf")) and kind == "few"):
        return None
    found = plain(a, b, norm).to(dtype)
    grad = d.tensor(dtype, found.shape, "normal", ("packed", "permuted", "padded"))
    tolerance["error"] += 64 + 8 * r
    return case.shim(label, "_cdist_backward", grad, a, b, norm, found, torch=lambda g, a, b, n, f: aten._cdist_backward(g.contiguous(), a.contiguous(), b.contiguous(), n, f),
                     magnitude=lambda g, a, b, n, f: torch.full_like(a, 1.0) * (g.abs().amax() * r * slope_bound(norm, f)), strides=False, **tolerance)


def slope_bound(norm, found):
    """Roughly the size of a slope."""
    return 1.0 if norm >= 1 or norm == 0 else 100.0


def direct(a, b, p):
    if a.shape[-1] == 0:
        shape = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return torch.zeros(*shape, a.shape[-2], b.shape[-2], dtype=a.dtype, device=a.device)
    between = (a.unsqueeze(-2) - b.unsqueeze(-3)).abs()
    if p == 0:
        return (between != 0).sum(-1).to(a.dtype)
    if p == float("inf"):
        return between.amax(-1)
    return between.pow(p).sum(-1).pow(1 / p)


def segments(d):
    dtype = d.choice(FLOATS)
    reduce = d.choice(("sum", "mean", "max", "min", "prod"))
    n, parts = d.size(1, 32, 100, low=1, high=200), d.size(1, 3, 8, low=1, high=20)
    inner = d.choice(((), (1,), (5,), (33,), (2, 3)))
    cuts = sorted(d.randrange(n + 1) for _ in range(parts - 1))
    lengths = torch.tensor([b - a for a, b in zip([0] + cuts, cuts + [n])], dtype=d.choice((torch.int64, torch.int32))).to(d.device)
    x = d.tensor(dtype, (n, *inner), d.choice(("normal", "few")) if reduce != "prod" else "positive", ("packed", "permuted", "padded"))
    initial = d.choice((None, None, 0.0, 1.0, 2.5))
    label = f"{dtype} {n} in {parts} {inner} {reduce} {initial} {lengths.dtype} {x.stride()}"
    half = torch.finfo(dtype).eps / 2.0 ** -23 if dtype.itemsize == 2 else 1

    def plain(x, how, lengths, _, __, axis, unsafe, initial):
        return aten.segment_reduce(x.contiguous(), how, lengths=lengths, axis=axis, unsafe=unsafe, initial=initial)
    return case.shim(label, "segment_reduce", x, reduce, lengths, None, None, 0, True, initial,
                     torch=plain, error=(8 + 2.0 * n) * half,
                     magnitude=lambda x, *rest: plain(x.abs(), *rest) if reduce not in ("max", "min") else x.abs().amax())


def draw(d):
    return d.choice((scan, scan, scan, scan, total, total, rms, distances, distances, segments))(d)
