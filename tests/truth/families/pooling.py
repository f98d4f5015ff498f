"""Pooling forward and backward: src/cpu/pooling/pooling.cpp, pooling_max.cpp, pooling_average.cpp, pooling_backward.cpp, plane_scatter.h,
fractional_pooling.cpp, and Inductor's low-memory max pooling.

Maxima and their indices are compared to the bit, averages and gradients in float64 with as many roundings as a window
has elements. Limits: rows of outputs of 4 (float64) and 8 (float32) lanes, whose last vector overlaps the one before;
windows at least that wide (scan_wide_window, window_sum); strides 1, 2 and more; copied rows if there is padding; 8 and 32
channels of channels-last images; kElementsPerThread 32768; windows entirely in the padding; blocks of 64 gradients.
"""
import math

import torch
import torch._inductor.inductor_prims  # its operators

import case
import elements

DEVICES = ("cpu",)
ATEN = torch.ops.aten
LAYOUTS = ("packed", "packed", "channels_last", "channels_last", "permuted", "sliced", "offset", "padded", "expanded")
FLOATS = (torch.float32, torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16)
WIDTHS = (4, 7, 8, 9, 15, 16, 17, 32)


def image(d, dtype, dims, kind, most=20000, low=1):
    """[N, C, (D,) H, W], N optional; and its spatial sizes."""
    batched = d.chance(0.8)
    left = most
    sizes = []
    for i in range(dims):
        n = d.size(*WIDTHS, low=low, high=max(3, min(67, left // 4)))
        if dims == 3 and i == 0:
            n = d.choice((1, 2, 3, 4, 5, 8))
        n = max(low, min(n, left))
        sizes.append(n)
        left //= n
    if d.chance(0.03):
        sizes[-1], left = d.choice((511, 700)), max(left // 20, 1)
    channels = min(d.choice((1, 2, 3, 4, 7, 8, 9, 16, 31, 32, 33, 40, 64)), max(left, 1))
    n = min(d.choice((1, 1, 2, 3, 5)), max(left // channels, 1))
    if d.chance(0.02):
        n = 0
    x = d.tensor(dtype, [n or 1, channels] + sizes, kind, LAYOUTS)
    if n == 0:
        x = x[:0]
    return (x if batched else x[0] if x.shape[0] else x), sizes


def settings(d, sizes, dilated):
    """Kernel, stride, padding, dilation, ceil_mode."""
    dims = len(sizes)
    kernel, stride, padding, dilation = [], [], [], []
    for n in sizes:
        k = d.choice((1, 2, 2, 3, 3, 3, 4, 5, 7, 8, 9, n, max(n // 2, 1), n - 1))
        dil = d.choice((1, 1, 2, 3)) if dilated else 1
        p = d.randrange(max(k, 0) // 2 + 1) if d.chance(0.6) else 0
        k = max(1, min(k, (n + 2 * p - 1) // dil + 1))
        kernel.append(k)
        padding.append(min(p, k // 2))
        dilation.append(dil)
        stride.append(d.choice((1, 1, 2, 2, 3, k, k + 1, 4)))
    if d.chance(0.3):
        kernel, padding = [kernel[0]] * dims, [min(padding[0], kernel[0] // 2)] * dims
    one = lambda v: v[:1] if len(set(v)) == 1 and d.chance(0.4) else v
    return one(kernel), [] if d.chance(0.25) else one(stride), one(padding), one(dilation), d.chance(0.4)


def lies_in_padding(sizes, given):
    """Whether a window has no element; ATen's indices for such windows differ between vectors and remainders."""
    kernel, stride, padding, dilation, ceil = given
    at = lambda v, i: v[i if len(v) > 1 else 0]
    for i, n in enumerate(sizes):
        k, p, dil = at(kernel, i), at(padding, i), at(dilation, i)
        s = at(stride, i) if stride else k
        outputs = (n + 2 * p - dil * (k - 1) - 1 + (s - 1 if ceil else 0)) // s + 1
        for o in range(outputs):
            begin = o * s - p
            begin += -(begin // dil) * dil if begin < 0 else 0
            if begin >= n or begin > o * s - p + (k - 1) * dil:
                return True
    return False


def kind_of(d, dtype):
    return d.choice(("normal", "few", "few", "wide", "special")) if dtype.is_floating_point else d.choice(("few", "wide"))


def sums(d, dtype):
    """For sums: infinities and NaN spread, but only one at a time."""
    return d.choice(("normal", "normal", "few", "wide", "special" if d.chance(0.3) else "normal"))


def gradient(d, like):
    return d.laid_out(d.values(like.dtype, list(like.shape), d.choice(("normal", "few", "wide"))), LAYOUTS)


def near(count, function):
    return dict(error=4 + math.sqrt(count), each=True, magnitude=function)


def text(x, *settings):
    return f"{x.dtype} {list(x.shape)} {tuple(x.stride())} {settings}"


def draw(d):
    way = d.choice(("max", "max", "max_backward", "avg", "avg", "avg_backward", "adaptive_max", "adaptive_avg", "adaptive_max_backward",
                    "adaptive_avg_backward", "unpool", "fractional", "fractional_backward", "low_memory", "bytes"))
    dims = d.choice((2, 2, 3))
    if way in ("max", "max_backward", "unpool", "low_memory"):
        return maxima(d, way, dims)
    if way in ("avg", "avg_backward"):
        return averages(d, way, dims)
    if way.startswith("adaptive"):
        return adaptive(d, way, dims)
    if way == "bytes":
        return eight_bits(d)
    return fractional(d, way, dims)


def maxima(d, way, dims):
    whole = d.chance(0.2) and way in ("max", "low_memory")
    dtype = d.choice(elements.INTEGERS) if whole else d.choice(FLOATS)
    kind = kind_of(d, dtype)
    x, sizes = image(d, dtype, dims, kind)
    given = settings(d, sizes, True)
    name = f"max_pool{dims}d_with_indices"
    operator = getattr(ATEN, name).default
    if not x.is_contiguous() and dtype.is_floating_point:
        # The remainders of ATen's channels-last rows give no index for -inf.
        x = x if not bool((x == -math.inf).any()) else d.laid_out(torch.where(x == -math.inf, torch.tensor(-77.0, dtype=dtype), x), LAYOUTS)
    skip = [1] if lies_in_padding(sizes, given) else []
    if way == "max":
        return case.shim(text(x, *given), name, x, *given, torch=operator, skip=skip)
    if way == "low_memory":
        return None if skip else low_memory(d, x, dims, given)
    try:
        pooled, indices = operator(x, *given)
    except RuntimeError:
        return None
    if skip or (indices.numel() and int(indices.max()) >= math.prod(sizes)):
        return None  # a window in the padding: ATen's own gradient writes there
    at = d.laid_out(indices, ("packed", "permuted", "channels_last", "sliced"))
    if way == "max_backward":
        if pooled.numel() == 0:
            return None
        grad = gradient(d, pooled)
        backward = getattr(ATEN, f"{name}_backward").default
        return case.shim(text(x, *given), f"{name}_backward", grad, x, *given, at, torch=backward,
                         **near(math.prod(given[0]) ** (3 - len(given[0])), lambda g, y, *rest: backward(g.abs(), y, *rest)))
    values = d.laid_out(d.values(dtype, list(pooled.shape), "normal"), LAYOUTS)
    if dims == 2:
        return case.shim(text(x, *given), "max_unpool2d", values, at, sizes, torch=ATEN.max_unpool2d.default)
    return case.shim(text(x, *given), "max_unpool3d", values, at, sizes, [2, 2, 2], [0, 0, 0], torch=ATEN.max_unpool3d.default)


def low_memory(d, x, dims, given):
    """Converts indices of maxima to offsets within their windows, and back."""
    kernel, stride, padding, dilation, ceil = [list(v) * dims if isinstance(v, list) and len(v) == 1 else v for v in given]
    stride = stride or kernel
    if math.prod(kernel) > 127 or x.dim() != dims + 2:
        return None
    prims = torch.ops.prims
    if d.chance(0.5):
        return case.named(text(x, kernel, stride, padding, dilation, ceil), "prims::_low_memory_max_pool_with_offsets", "", x, kernel,
                          stride, padding, dilation, ceil, proxied=True)
    try:
        _, offsets = prims._low_memory_max_pool_with_offsets(x, kernel, stride, padding, dilation, ceil)
    except RuntimeError:
        return None
    return case.named(text(offsets, kernel, stride, padding, dilation), "prims::_low_memory_max_pool_offsets_to_indices", "",
                      d.laid_out(offsets, LAYOUTS), kernel, list(x.shape[2:]), stride, padding, dilation, proxied=True,
                      strides=False)  # tables computed in Python, which no package calls


def averages(d, way, dims):
    dtype = d.choice(FLOATS if dims == 2 else FLOATS[:4])
    if d.chance(0.08):
        dtype = torch.int64
    x, sizes = image(d, dtype, dims, sums(d, dtype))
    kernel, stride, padding, _, ceil = settings(d, sizes, False)
    rest = (kernel, stride, padding, ceil, d.chance(0.5), d.choice((None, None, 1, 3, -2, 7)))
    name = f"avg_pool{dims}d"
    operator = getattr(ATEN, name).default
    count = math.prod(kernel) ** (dims if len(kernel) == 1 else 1)
    if way == "avg":
        bounds = {} if dtype == torch.int64 else near(count, lambda v, *r: operator(v.abs(), *r).abs())
        return case.shim(text(x, *rest), name, x, *rest, torch=operator, **bounds)
    try:
        pooled = operator(x, *rest)
    except RuntimeError:
        return None
    if pooled.numel() == 0:
        return None
    backward = getattr(ATEN, f"{name}_backward").default
    grad = gradient(d, pooled)
    bounds = {} if dtype == torch.int64 else near(count, lambda g, v, *r: backward(g.abs(), v, *r[:-1], r[-1] and abs(r[-1])))
    return case.shim(text(x, *rest), f"{name}_backward", grad, x, *rest, torch=backward, **bounds)


def adaptive(d, way, dims):
    dtype = d.choice(FLOATS)
    largest = "max" in way
    x, sizes = image(d, dtype, dims, kind_of(d, dtype) if largest else sums(d, dtype))
    out = [d.choice((1, 1, 2, 3, 4, 5, 7, 8, 9, n, max(n // 2, 1), n + 1, 2 * n)) for n in sizes]
    if d.chance(0.02):
        out[0] = 0
    name = f"adaptive_max_pool{dims}d" if largest else f"_adaptive_avg_pool{dims}d"
    operator = getattr(ATEN, name).default
    count = math.prod(-(-n // max(o, 1)) + 1 for n, o in zip(sizes, out))
    if not way.endswith("backward"):
        if largest:
            return case.shim(text(x, out), name, x, out, torch=operator)
        # In 3 dimensions ATen rounds to the half type after every step.
        return case.shim(text(x, out), name, x, out, torch=operator, **near(count, lambda v, o: operator(v.abs(), o)))
    try:
        pooled = operator(x, out)
    except RuntimeError:
        return None
    backward = getattr(ATEN, f"{name}_backward").default
    if largest:
        grad = gradient(d, pooled[0])
        if grad.numel() == 0:
            return None
        at = d.laid_out(pooled[1], ("packed", "permuted", "channels_last", "sliced"))
        # In 3 dimensions ATen reads indices as if they were packed.
        return case.shim(text(x, out), f"{name}_backward", grad, x, at, torch=lambda g, v, i: backward(g, v, i.contiguous()),
                         **near(count, lambda g, v, i: backward(g.abs(), v, i.contiguous())))
    grad = gradient(d, pooled)
    if grad.numel() == 0:
        return None
    return case.shim(text(x, out), f"{name}_backward", grad, x, torch=backward,
                     **near(math.prod(out), lambda g, v: backward(g.abs(), v)))


def fractional(d, way, dims):
    dtype = d.choice(FLOATS)
    x, sizes = image(d, dtype, dims, kind_of(d, dtype), low=2)
    kernel = [d.choice((1, 2, 3)) if n > 2 else 1 for n in sizes]
    most = 1 if dims == 2 else 0  # in 3 dimensions ATen requires one more
    if dims == 3:
        kernel = [min(k, n - 1) for k, n in zip(kernel, sizes)]
    out = [max(1, min(n - k + most, d.choice((1, 2, n // 2, n - k + most)))) for n, k in zip(sizes, kernel)]
    batch = x.shape[0] if x.dim() == dims + 2 else 1
    samples = torch.rand([batch, x.shape[-dims - 1], dims], generator=d.torch, dtype=torch.float64).to(dtype)
    name = f"fractional_max_pool{dims}d"
    operator = getattr(ATEN, name).default
    if way == "fractional":
        return case.shim(text(x, kernel, out), name, x, kernel, out, d.laid_out(samples, ("packed", "sliced", "permuted")), torch=operator)
    if x.numel() == 0:
        return None
    try:
        pooled, indices = operator(x, kernel, out, samples)
    except RuntimeError:
        return None
    grad = d.values(dtype, list(pooled.shape), "normal")
    backward = getattr(ATEN, f"{name}_backward").default
    return case.shim(text(x, kernel, out), f"{name}_backward", grad, x, kernel, out, indices, torch=backward,
                     **near(math.prod(kernel), lambda g, v, *rest: backward(g.abs(), v, *rest)))


def eight_bits(d):
    """quantized::max_pool2d of plain bytes; the result is always channels-last."""
    x, sizes = image(d, torch.uint8, 2, d.choice(("few", "wide")))
    if x.dim() != 4 or x.numel() == 0:
        return None
    kernel, stride, padding, dilation, ceil = [list(v) * 2 if isinstance(v, list) and len(v) == 1 else v for v in settings(d, sizes, True)]
    given = (kernel, stride or kernel, padding, dilation, ceil)
    plain = lambda v, *rest: ATEN.max_pool2d(v.float(), *rest).to(torch.uint8)
    drawn = case.named(text(x, *given), "quantized::max_pool2d", "", x, *given, proxied=True, strides=False)
    drawn.torch = plain
    return drawn
