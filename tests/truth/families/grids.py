"""grid_sampler and its gradients: src/cpu/pooling/grid_sampler.cpp, grid_taps.h.

Compared with ATen in the same arithmetic (float32 for half types). Limits: blocks of 64 positions, 8 per vector; 32-bit
offsets; separate code for 2d bilinear sampling without reflection (of_bilinear). Grids lie inside, at borders, far
outside, at infinity and NaN; interpolation linear, nearest, cubic (2D); padding zeros, border, reflection. Positions are
kept off the discontinuities of nearest: halfway between two elements, and reflections.
"""
import math

import torch

import case

DEVICES = ("cpu",)
ATEN = torch.ops.aten
LAYOUTS = ("packed", "packed", "channels_last", "permuted", "sliced", "offset", "padded", "expanded")
FLOATS = (torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16)


def draw(d):
    dims = d.choice((2, 2, 2, 3))
    backward = d.chance(0.45)
    dtype = d.choice(FLOATS)
    n, c = d.choice((1, 1, 2, 3)), d.choice((1, 2, 3, 5, 8))
    into = [d.choice((1, 2, 3, 4, 5, 7, 8, 9, 16, 19)) for _ in range(dims)]
    places = d.choice((1, 3, 7, 8, 9, 15, 63, 64, 65, 127, 128, 129, 200))
    out = [1] * (dims - 1) + [places]
    if d.chance(0.6):
        out = [d.choice((1, 2, 3, 5, 8, 9)) for _ in range(dims)]
    # torch has tricubic sampling since 2.15.
    interpolation = d.choice((0, 0, 1, 2)) if dims == 2 else d.choice((0, 0, 1))
    padding, align = d.choice((0, 1, 2)), d.chance(0.5)
    x = d.tensor(dtype, [n, c] + into, d.choice(("normal", "few", "wide")), LAYOUTS)
    if d.chance(0.03) and dims == 2:
        n = 0
        x = x[:0]
    spread = d.choice((0.5, 1.0, 1.3, 3.0))
    grid = (torch.rand([n] + out + [dims], generator=d.torch, dtype=torch.float64) * 2 - 1) * spread
    if interpolation == 1 or d.chance(0.2):
        grid = whole_places(d, grid, into, align)
    elif d.chance(0.2):
        # ATen's results for infinities and NaN depend on its code path, except outside; its gradients crash.
        odd = [-1.0, 1.0, 0.0, 30.0, -777.0]
        if padding == 0 and interpolation == 0 and not backward:
            odd += [math.nan, math.inf, -math.inf] + ([1e10, -1e10, 3e38] if dtype != torch.float16 else [])
        at = torch.rand(grid.shape, generator=d.torch) < 0.1
        odd = torch.tensor(odd, dtype=torch.float64)
        grid = torch.where(at, odd[torch.randint(len(odd), grid.shape, generator=d.torch)], grid)
    grid = d.laid_out(grid.to(dtype), ("packed", "packed", "permuted", "sliced", "padded"))
    name = f"grid_sampler_{dims}d"
    label = f"{dtype} {list(x.shape)} {tuple(x.stride())} {out} {interpolation} {padding} {align}"
    wide = {torch.float16: torch.float32, torch.bfloat16: torch.float32}.get(dtype, dtype)
    if not backward:
        operator = getattr(ATEN, name).default
        bounds = dict(error=4, each=True, same_nan=None,
                      exact=lambda v, g, *r: operator(v.to(wide), g.to(wide), *r).double(),
                      magnitude=lambda v, g, *r: v.abs().amax(dim=tuple(range(2, v.dim())), keepdim=True).expand(
                          list(v.shape[:2]) + out) * (2 + max(into)))
        if d.chance(0.3) and dims == 2 and interpolation != 2 and dtype == torch.float32:
            name = "_grid_sampler_2d_cpu_fallback"
        if dims == 3 and d.chance(0.5):
            return case.shim(label, name, x, grid, interpolation, padding, align, torch=operator, **bounds)
        return case.named(label, name, "", x, grid, interpolation, padding, align, proxied=d.chance(0.5), **bounds)
    grad = d.tensor(dtype, [n, c] + out, "normal", LAYOUTS)
    name += "_backward"
    operator = getattr(ATEN, name).default
    mask = d.choice(([True, True], [True, True], [False, True]))

    def magnitude(g, v, places, *rest):
        steps = max(into)
        first = operator(g.abs(), v.abs(), places, *rest[:-1], [True, True])[0]
        top = g.abs().amax() if g.numel() else torch.tensor(0.0)
        largest = v.abs().amax() if v.numel() else torch.tensor(0.0)
        each = [first.abs() * 2 + top * steps] if mask[0] else []
        return (*each, torch.full(places.shape, float(top * largest) * c * steps * (1 + steps), dtype=torch.float64))

    def exact(g, v, places, *rest):
        return tuple(r if r is None else r.double() for r in operator(g.to(wide), v.to(wide), places.to(wide), *rest))

    bounds = dict(error=8, each=True, same_nan=None, exact=exact, magnitude=magnitude)
    if dims == 2 and interpolation != 2 and dtype == torch.float32 and mask[0] and d.chance(0.3):
        return case.named(label, "_grid_sampler_2d_cpu_fallback_backward", "", grad, x, grid, interpolation, padding, align,
                          proxied=d.chance(0.5), **{**bounds, "exact": lambda *v: exact(*v, mask), "magnitude": lambda *v: magnitude(*v, mask)})
    return case.shim(f"{label} {mask}", name, grad, x, grid, interpolation, padding, align, mask, torch=operator, **bounds)


def whole_places(d, grid, into, align):
    """Near the elements, not halfway between two."""
    index = torch.stack([torch.randint(-2, n + 2, grid.shape[:-1], generator=d.torch) for n in reversed(into)], -1).double()
    index = index + (torch.rand(grid.shape, generator=d.torch, dtype=torch.float64) - 0.5) * 0.6
    size = torch.tensor(list(reversed(into)), dtype=torch.float64)
    return index * 2 / (size - 1).clamp(min=1) - 1 if align else (index * 2 + 1) / size - 1
