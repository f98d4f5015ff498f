"""Grid sampling, gradients of resizing and of replication padding, fake quantisation on a device (resample.cpp)."""
import torch

import abi
import case

DEVICES = ("cuda",)
aten = torch.ops.aten
FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)


def place(d, t):
    if t.dim() in (4, 5) and d.chance(0.3):
        return t.to(d.device).contiguous(memory_format=torch.channels_last if t.dim() == 4 else torch.channels_last_3d)
    return d.laid_out(t, ("packed", "packed", "permuted", "sliced", "offset", "padded"))


def near(dtype, terms):
    half = torch.finfo(dtype).eps / 2.0 ** -23 if dtype.itemsize == 2 else 1
    return dict(error=(32 + 4.0 * terms) * half, strides=False)


def grid(d):
    """PyTorch's own half kernels round coordinates to the half type, so they are judged in float32."""
    dims = d.choice((2, 3, 3))
    dtype = d.choice((torch.float32, torch.float32, torch.float64))
    n, c = d.choice((1, 2, 3)), d.choice((1, 2, 3, 5))
    sizes = [d.size(1, 2, 7, 8, low=1, high=16 if dims == 3 else 40) for _ in range(dims)]
    outs = [d.size(1, 2, 7, low=1, high=12 if dims == 3 else 30) for _ in range(dims)]
    x = place(d, d.values(dtype, (n, c, *sizes)))
    at = d.laid_out((torch.rand(n, *outs, dims, generator=d.torch, dtype=torch.float64) * 2.6 - 1.3).to(dtype), ("packed", "permuted", "padded"))
    mode, padding, corners = d.choice((0, 0, 1, 2) if dims == 2 else (0, 0, 1)), d.choice((0, 1, 2)), d.chance(0.5)
    back = dims == 2 or d.chance(0.5)
    label = f"{dtype} {list(x.shape)} {x.stride()} {list(at.shape)} {at.stride()} {mode} {padding} {corners}"
    if mode == 1:  # ties go either way, so both use the same float32 steps
        exact = lambda f: (lambda *v: f(*[t.to(dtype) if isinstance(t, torch.Tensor) else t for t in v]))
    else:
        exact = lambda f: f
    slack = dict(error=2.0 ** 8, strides=False)
    if not back:
        f = lambda *v: aten.grid_sampler_3d(*v)
        return case.shim(label, "grid_sampler_3d", x, at, mode, padding, corners, torch=f, exact=exact(f), magnitude=lambda x, *_: x.abs().amax(), **slack)
    grad = place(d, d.values(dtype, (n, c, *outs)))
    mask = d.choice(([True, True], [True, True], [False, True]))
    name = f"grid_sampler_{dims}d_backward"
    f = lambda *v: [t for t, wanted in zip(getattr(aten, name)(*v), mask) if wanted]
    some = max(sizes) * 8.0 * c
    # A coordinate near an integer may fall on either side in float32 and float64, where slopes differ.
    return case.Case(f"{name} {label} {mask}", lambda *v: [t for t, wanted in zip(abi.call(name, *v, mode, padding, corners, mask), mask) if wanted],
                     lambda *v: f(*v, mode, padding, corners, mask), [grad, x, at], exact=(lambda *v: f(*[t.to(dtype) for t in v], mode, padding, corners, mask)),
                     magnitude=lambda g, x, a: [g.abs().amax() * 8 * torch.Size(outs).numel() ** 0.5] * (mask[0]) + [(g.abs().amax() * x.abs().amax() * some)], **slack)


def resize(d):
    name, dims = d.choice((("upsample_linear1d_backward", 1), ("upsample_bicubic2d_backward", 2), ("upsample_trilinear3d_backward", 3)))
    dtype = d.choice(FLOATS)
    n, c = d.choice((1, 2, 3)), d.choice((1, 3, 4, 8))
    sizes = [d.size(1, 2, 7, 8, low=1, high={1: 200, 2: 40, 3: 12}[dims]) for _ in range(dims)]
    outs = [d.choice((s, 2 * s, s * 3 // 2 + 1, max(1, s // 2), d.randrange(1, 3 * s + 2))) for s in sizes]
    grad = place(d, d.values(dtype, (n, c, *outs)))
    corners = d.chance(0.5)
    scales = [d.choice((None, o / s)) for o, s in zip(outs, sizes)] if d.chance(0.5) else [None] * dims
    f = getattr(aten, name)
    covers = 1
    for o, s in zip(outs, sizes):
        covers *= 4 * (-(-o // s) + 1)
    return case.shim(f"{dtype} {list(grad.shape)} {grad.stride()} to {sizes} {corners} {scales}", name, grad, outs, [n, c, *sizes], corners, *scales,
                     torch=lambda *v: f(*v), **near(dtype, covers), magnitude=lambda g, *r: g.abs().amax() * covers ** 0.5)


def low_pass(d):
    kind = d.choice(("bilinear", "bicubic"))
    dtype = d.choice(FLOATS)
    n, c, h, w = d.choice((1, 2)), d.choice((1, 3, 4)), *(d.size(1, 7, 16, 32, low=1, high=50) for _ in range(2))
    to = [d.choice((s, 2 * s, s * 3 // 2 + 1, max(1, s // 2), max(1, s // 5))) for s in (h, w)]
    corners = d.chance(0.4)
    label = f"{dtype} {n}x{c}x{h}x{w} to {to} {corners}"
    if d.chance(0.5):
        x = place(d, d.values(dtype, (n, c, h, w)))
        return case.named(f"{label} {x.stride()}", f"_upsample_{kind}2d_aa", "", x, to, corners, None, None, **near(dtype, 16), magnitude=lambda x, *_: x.abs().amax())
    g = place(d, d.values(dtype, (n, c, *to)))
    covers = max(1, (to[0] * to[1] * 16) // (h * w))
    return case.named(f"{label} {g.stride()}", f"_upsample_{kind}2d_aa_backward", "", g, to, [n, c, h, w], corners, None, None, **near(dtype, 64 + covers),
                      magnitude=lambda g, *_: g.abs().amax() * (covers + 4) ** 0.5)


def padding(d):
    dims, dtype = d.choice((1, 2)), d.choice(FLOATS)
    shape = [d.choice((1, 2, 5)), d.choice((1, 3, 8)), *(d.size(1, 2, 8, low=1, high=60) for _ in range(dims))]
    if d.chance(0.2):
        shape = shape[1:]
    pads = [d.randrange(0, 5) for _ in range(2 * dims)]
    x = place(d, d.values(dtype, shape))
    big = list(shape)
    for i in range(dims):
        big[-1 - i] += pads[2 * i] + pads[2 * i + 1]
    grad = place(d, d.values(dtype, big))
    name = f"replication_pad{dims}d_backward"
    return case.shim(f"{dtype} {shape} {pads} {grad.stride()}", name, grad, x, pads, torch=lambda *v: getattr(aten, name)(*v), **near(dtype, 8 + max(pads) ** dims * 4),
                     magnitude=lambda g, x, p: getattr(aten, name)(g.abs(), x, p))


def observed(d):
    """The scale follows the data; both compute it in the same float32 steps."""
    rows = d.chance(0.4)
    x = d.tensor(torch.float32, (d.size(1, 5, 8, low=1, high=40), d.size(1, 31, 256, 2048, low=1, high=3000)), d.choice(("normal", "wide", "positive")), ("packed", "packed", "permuted", "padded"))
    n = x.shape[0] if rows else 1
    observe, quantise, symmetric = d.choice((0, 1, 1)), d.choice((0, 1, 1)), d.chance(0.5)
    t = lambda v, dtype=torch.float32: torch.full((n,), v, dtype=dtype, device=d.device)
    state = [torch.tensor([observe], device=d.device), torch.tensor([quantise], device=d.device), t(-1.0), t(2.5), t(0.02), t(3, torch.int32)]
    low, high = d.choice(((-128, 127), (0, 255), (0, 15)))
    rest = [d.choice((0.01, 0.5, 1.0)), low, high, 0, rows, symmetric]
    name = "_fused_moving_avg_obs_fq_helper_functional"
    return case.shim(f"{list(x.shape)} {x.stride()} {observe} {quantise} {rest}", name, x, *state, *rest, torch=lambda *v: getattr(aten, name)(*v),
                     exact=lambda x, *v: [r.double() if r.is_floating_point() else r for r in getattr(aten, name)(x.float(), *[w.float() if isinstance(w, torch.Tensor) and w.dtype == torch.float64
                                                                                                            else w for w in v])], error=16.0, strides=False)


def draw(d):
    return d.choice((grid, grid, resize, resize, low_pass, padding, observed))(d)
