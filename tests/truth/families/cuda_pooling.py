"""Pooling on a device, forward and backward, and unpooling.

Limits: special kernels for windows of 2 by 2 with stride 2, and 3 by 3 with stride 2 and 1 (pooling_windows.cu; their
gradients with padding 0, 1 and 1, pooling_windows_backward.cu), for float32 and half types, channels-last by fours,
aligned; other windows use 32-bit offsets if possible (pooling_lines.cuh), and then gradients take four channels or four
neighbours of a row at once (pooling_packs.cuh). Gradients of maxima gather if windows overlap, else scatter."""
import torch

import abi
import case

DEVICES = ("cuda",)
aten = torch.ops.aten
FLOATS = (torch.float32, torch.float32, torch.float16, torch.bfloat16, torch.float64)


def place(d, t):
    """In some layout, often channels-last."""
    dims = t.dim()
    if dims in (4, 5) and d.chance(0.4):
        t = t.to(d.device).contiguous(memory_format=torch.channels_last if dims == 4 else torch.channels_last_3d)
        return t
    return d.laid_out(t, ("packed", "packed", "packed", "permuted", "sliced", "offset", "padded"))


def image(d, dims, dtype, kind="normal", most=40000):
    """[N, C, ...] or [C, ...], and the pooled sizes."""
    spatial = [d.size(1, 2, 7, 8, 16, 31, 32, 33, low=1, high=60 if dims == 2 else 17) for _ in range(dims)]
    outer = [d.choice((1, 2, 3, 5, 9)), d.choice((1, 2, 3, 4, 5, 8, 12, 16, 33))]
    while torch.Size(outer + spatial).numel() > most:
        i = d.randrange(2 + dims)
        if i < 2:
            outer[i] = max(1, outer[i] // 2)
        else:
            spatial[i - 2] = max(1, spatial[i - 2] * 2 // 3)
    if d.chance(0.15):
        outer = outer[1:]
    return place(d, d.values(dtype, (*outer, *spatial), kind)), spatial


def window(d, dims, spatial, averages=False):
    way = d.choice(("2", "3", "3 of 1", "any", "any", "any of one"))
    if way in ("2", "3", "3 of 1"):
        n = {"2": 2, "3": 3, "3 of 1": 3}[way]
        kernel, stride = [n] * dims, [1 if way == "3 of 1" else 2] * dims
        padding, dilation = [d.choice((0, 0, 1) if n == 2 else (0, 1, 1))] * dims, [1] * dims
    elif way == "any of one":
        kernel, stride, padding, dilation = [d.randrange(1, 6)], d.choice(([], [1], [2], [3])), [d.choice((0, 1))], [d.choice((1, 1, 2))]
        padding = [min(padding[0], kernel[0] // 2)]
    else:
        kernel = [d.randrange(1, min(7, n + 2)) for n in spatial]
        stride = [d.randrange(1, 5) for _ in spatial] if d.chance(0.8) else []
        padding = [d.randrange(0, k // 2 + 1) for k in kernel]
        dilation = [d.choice((1, 1, 1, 2, 3)) for _ in spatial]
    if averages:
        dilation = [1] * dims
    full = lambda v: v * dims if len(v) == 1 else v
    for n, k, p, q in zip(spatial, full(kernel), full(padding), full(dilation)):
        if n + 2 * p < (k - 1) * q + 1 or p > k // 2:
            return None
    return kernel, stride, padding, dilation, d.chance(0.4)


def summed(terms, dtype):
    """ATen sums gradients in half types; ours sum in float32 and round once."""
    return dict(error=8 + 2.0 * terms)


def maxima(d):
    dims, dtype = d.choice((2, 2, 3)), d.choice(FLOATS)
    x, spatial = image(d, dims, dtype, d.choice(("normal", "few", "special")))
    form = window(d, dims, spatial)
    if form is None:
        return None
    label = f"{dtype} {list(x.shape)} {x.stride()} {form}"
    name = f"max_pool{dims}d_with_indices"
    function = getattr(aten, name)
    if d.chance(0.5):
        # For windows of -inf only, ATen's channels-last kernel returns index 0, its others the first of the window.
        def named(values, indices):
            return values, indices.masked_fill(values == -torch.inf, -1)
        return case.Case(f"{name} {label}", lambda *given: named(*abi.call(name, *given)), lambda *given: named(*function(*given)),
                         [x, *form])
    _, indices = function(x, *form)
    # For windows whose dilated steps all lie outside, PyTorch's 3d kernel returns indices beyond their plane and adds
    # the gradients to other planes.
    if dims == 3 and bool((indices >= torch.Size(spatial).numel()).any()):
        return None
    grad = place(d, d.values(dtype, indices.shape))
    indices = place(d, indices.cpu())
    return case.shim(f"{label} {grad.stride()} {indices.stride()}", f"{name}_backward", grad, x, *form, indices,
                     torch=getattr(aten, f"{name}_backward"), magnitude=lambda g, *rest: getattr(aten, f"{name}_backward")(g.abs(), *rest),
                     **summed(torch.Size(form[0] * (dims if len(form[0]) == 1 else 1)).numel(), dtype))


def averages(d):
    dims, dtype = d.choice((2, 2, 3)), d.choice(FLOATS)
    x, spatial = image(d, dims, dtype)
    form = window(d, dims, spatial, True)
    if form is None:
        return None
    kernel, stride, padding, _, ceil = form
    rest = [kernel, stride, padding, ceil, d.chance(0.5), d.choice((None, None, 1, 3, -2))]
    label = f"{dtype} {list(x.shape)} {x.stride()} {rest}"
    name = f"avg_pool{dims}d"
    terms = torch.Size(kernel * (dims if len(kernel) == 1 else 1)).numel()
    if d.chance(0.5):
        return case.shim(label, name, x, *rest, torch=getattr(aten, name), error=4.0 + terms,
                         magnitude=lambda x, *r: getattr(aten, name)(x.abs(), *r).abs())
    try:
        shape = getattr(aten, name)(x, *rest).shape
    except RuntimeError:
        return None
    grad = place(d, d.values(dtype, shape))

    # PyTorch's kernel for channels-last gradients disagrees with its other kernels.
    def expected(g, x, *r):
        found = getattr(aten, f"{name}_backward")(g.contiguous(), x.contiguous(), *r)
        return torch.empty_like(x, memory_format=torch.preserve_format).copy_(found)
    return case.shim(f"{label} {grad.stride()}", f"{name}_backward", grad, x, *rest, torch=expected, strides=False, error=8 + 2.0 * terms,
                     magnitude=lambda g, x, *r: getattr(aten, f"{name}_backward")(g.abs().contiguous(), x.contiguous(), *r).abs())


def adaptive(d):
    dims, dtype = d.choice((2, 2, 3)), d.choice(FLOATS)
    kind = d.choice(("average", "maximum"))
    x, spatial = image(d, dims, dtype, "few" if kind == "maximum" and d.chance(0.3) else "normal")
    size = [d.choice((1, 2, n, max(1, n // 2), max(1, n // 3), d.randrange(1, n + 4))) for n in spatial]
    label = f"{dtype} {list(x.shape)} {x.stride()} to {size}"
    name = f"_adaptive_avg_pool{dims}d" if kind == "average" else f"adaptive_max_pool{dims}d"
    function = getattr(aten, name)
    terms = 1
    for n, m in zip(spatial, size):
        terms *= -(-n // m) + 1
    if d.chance(0.5):
        # PyTorch's kernel for channels-last input is wrong for one channel whose stride is that of a row, as [3, 1, 8, 6] with
        # strides (48, 6, 6, 1): by 0.8 of values of size 1, torch 2.11.
        packed = lambda x, s: function(x.clone(memory_format=torch.contiguous_format), s)
        return case.shim(label, name, x, size, torch=packed if kind == "average" and x.shape[-dims - 1] == 1 else function,
                         **(dict(error=8.0 + terms, magnitude=lambda x, s: function(x.abs(), s)) if kind == "average" else {}))
    given = function(x, size)
    grad = place(d, d.values(dtype, (given if kind == "average" else given[0]).shape))
    function_back = getattr(aten, f"{name}_backward")

    # PyTorch's 3d kernel reads indices as if they were packed.
    def back(g, x, *at):
        return function_back(g, x, *(i.contiguous() for i in at))
    more = [] if kind == "average" else [place(d, given[1].cpu())]
    covers = 1
    for n, m in zip(spatial, size):
        covers *= -(-m // n) + 1
    return case.shim(f"{label} {grad.stride()}", f"{name}_backward", grad, x, *more, torch=back, error=16 + 4.0 * covers + terms, strides=kind == "average" and dims == 2,
                     magnitude=lambda g, *rest: back(g.abs(), *rest))


def unpool(d):
    dims, dtype = d.choice((2, 3)), d.choice(FLOATS + (torch.int64, torch.int32))
    x, spatial = image(d, dims, dtype, most=15000)
    size = [n + d.randrange(0, n + 3) for n in spatial]
    cells, plane = torch.Size(size).numel(), torch.Size(spatial).numel()
    planes = x.numel() // plane
    at = torch.rand(planes, cells, generator=d.torch).argsort(-1)[:, :plane].reshape(x.shape)
    at = place(d, at)
    label = f"{dtype} {list(x.shape)} {x.stride()} {at.stride()} to {size}"
    if dims == 2:
        return case.shim(label, "max_unpool2d", x, at, size, torch=aten.max_unpool2d)
    stride, padding = [1] * 3, [0] * 3
    return case.shim(label, "max_unpool3d", x, at, size, stride, padding,
                     torch=lambda x, i, s, *_: plain_unpool(x, i, s))


def plain_unpool(x, at, size):
    out = torch.zeros(*x.shape[:-3], torch.Size(size).numel(), dtype=x.dtype, device=x.device)
    out.scatter_(-1, at.flatten(-3), x.flatten(-3))
    return out.unflatten(-1, size)


def fractional(d):
    dims, dtype = d.choice((2, 3)), d.choice(FLOATS)
    x, spatial = image(d, dims, dtype, d.choice(("normal", "few", "special")), 20000)
    kernel = [d.randrange(1, min(n, 4) + 1) for n in spatial]
    size = [d.randrange(1, n - k + 2) for n, k in zip(spatial, kernel)]
    batch = x.shape[:-dims] if x.dim() == dims + 2 else (1, x.shape[0])
    samples = d.laid_out(torch.rand(*batch, dims, generator=d.torch).to(dtype), ("packed", "permuted", "padded"))
    name = f"fractional_max_pool{dims}d"
    function = getattr(aten, name)
    label = f"{dtype} {list(x.shape)} {x.stride()} {kernel} to {size}"
    if d.chance(0.5):
        return case.shim(label, name, x, kernel, size, samples, torch=function)
    try:
        _, at = function(x, kernel, size, samples)
    except RuntimeError:
        return None
    grad, at = place(d, d.values(dtype, at.shape)), place(d, at.cpu())
    back = getattr(aten, f"{name}_backward")
    # ATen only handles packed ones (2d asserts, 3d misreads others).
    expected = lambda g, x, k, s, i: back(g.contiguous(), x.contiguous(), k, s, i.contiguous())
    half = torch.finfo(dtype).eps / 2.0 ** -23 if dtype.itemsize == 2 else 1
    return case.shim(f"{label} {grad.stride()} {at.stride()}", f"{name}_backward", grad, x, kernel, size, at, torch=expected,
                     error=(8 + 2.0 * torch.Size(kernel).numel()) * half, strides=False,
                     magnitude=lambda g, *rest: expected(g.abs(), *rest))


def draw(d):
    return d.choice((maxima, maxima, maxima, averages, averages, adaptive, adaptive, unpool, fractional))(d)
