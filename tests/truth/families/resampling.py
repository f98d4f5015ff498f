"""Resizing and its gradients: src/cpu/pooling/resample.cpp, resample_lines.h, resample_taps.h, resample_antialias.cpp, resample_backward.cpp.

Compared with ATen in float64. Nearest neighbours and bytes (in ATen's fixed point) are equal to the bit. Separate code for rows of
two neighbours (resample_pairs), bytes, axes that keep their size, and nearest places that lie within one vector (picked_row.h: 32 bytes, 16 for small elements). Nearest neighbours depend on sizes or on the scale: limits are
128 (height and width of a result together) and 3 channels. Scales up and down, given (also different from the sizes') or not; sizes of 1.

Coordinates are computed in the dtype (float32 for half types). In float64 they differ slightly, which moves a linear result by that
times the difference of neighbours. So float32 is compared closely with ATen's own arithmetic in float32.
"""
import math

import torch

import case

DEVICES = ("cpu",)
ATEN = torch.ops.aten
LAYOUTS = ("packed", "packed", "channels_last", "permuted", "sliced", "offset", "padded", "expanded")
FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
NAMES = ("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
         "_upsample_nearest_exact3d", "upsample_linear1d", "upsample_bilinear2d", "upsample_bilinear2d", "upsample_bicubic2d",
         "upsample_bicubic2d", "upsample_trilinear3d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "_upsample_lanczos2d_aa")
SHIMS = ("upsample_bicubic2d_backward", "upsample_linear1d_backward", "upsample_trilinear3d_backward")


def size(d):
    return d.choice((1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 40, 64))


def draw(d):
    name = d.choice(NAMES)
    dims = int(name.split("d")[0][-1]) if not name.endswith("_aa") else 2
    backward = d.chance(0.45)
    nearest = "nearest" in name
    dtype = d.choice(FLOATS)
    if not backward and d.chance(0.2) and (nearest or dims == 2):
        dtype = torch.uint8
    n, c = d.choice((1, 1, 2, 3, 5)), d.choice((1, 1, 2, 3, 4, 5, 8, 16, 31))
    before, after, scales = [], [], []
    way = d.choice(("any", "any", "up", "down", "double", "same"))
    for i in range(dims):
        a = size(d)
        b = {"any": size(d), "up": a * d.choice((2, 3)) + d.choice((0, 0, 1)), "down": max(1, a // d.choice((2, 3))), "double": 2 * a,
             "same": a if d.chance(0.7) else size(d)}[way]
        if dims == 3:
            a, b = min(a, 13), min(b, 17)
        before.append(a)
        after.append(b)
    while n * c * max(math.prod(before), math.prod(after)) > 60000:
        if c > 1:
            c //= 2
        elif n > 1:
            n -= 1
        else:
            at = max(range(dims), key=lambda i: before[i] + after[i])
            before[at], after[at] = max(1, before[at] // 2), max(1, after[at] // 2)
    for a, b in zip(before, after):
        scales.append(d.choice((None, b / a, b / a)))
    if d.chance(0.15):  # not that of the sizes, as torch.nn.functional.interpolate passes for a fraction
        scales = [s and b / a * d.choice((1.02, 0.97, 1.2)) for s, a, b in zip(scales, before, after)]
    if d.chance(0.4):
        scales = [None] * dims
    align = [] if nearest else [d.chance(0.5)]
    label = f"{dtype} [{n}, {c}] {before} to {after} scales {scales} {align}"
    operator = getattr(ATEN, name).default
    if not backward:
        kind = d.choice(("normal", "few", "wide", "special" if d.chance(0.4) else "normal")) if dtype != torch.uint8 else "wide"
        x = d.tensor(dtype, [n, c] + before, kind, LAYOUTS)
        label += f" {tuple(x.stride())}"
        rest = {} if nearest or dtype == torch.uint8 else bounds(name, dtype, operator, kind, max(before))
        drawn = case.named(label, name, "", x, after, *align, *scales, proxied=d.chance(0.5), **rest)
        if dims == 2 and 1 in (before[-1], after[-1]) and not nearest:
            drawn.torch, drawn.strides = of_columns(operator), False
        return drawn
    grad = d.tensor(dtype, [n, c] + after, d.choice(("normal", "few", "wide")), LAYOUTS)
    label += f" {tuple(grad.stride())}"
    name += "_backward"
    operator = getattr(ATEN, name).default
    arguments = [grad, after, [n, c] + before, *align, *scales]
    rest = bounds(name, dtype, operator, "", max(before + after))
    if name in SHIMS:
        return case.shim(label, name, *arguments, torch=operator, **rest)
    return case.named(label, name, "", *arguments, proxied=d.chance(0.5), **rest)


def of_columns(operator):
    """For images or results one element wide, ATen's second pass misreads their memory, except for channels-last ones with
    several channels."""
    def resized(x, *rest):
        wide = torch.cat([x, x], 1).contiguous(memory_format=torch.channels_last)
        return operator(wide, *rest)[:, :x.shape[1]].contiguous()
    return resized


def bounds(name, dtype, operator, kind, longest):
    """The same arithmetic: half types in float32, which ATen rounds once or more often."""
    wide = {torch.float16: torch.float32, torch.bfloat16: torch.float32}.get(dtype, dtype)

    def exact(*values):
        result = (of_columns(operator) if of_one(operator, values) else operator)(*[v.to(wide) if isinstance(v, torch.Tensor) else v for v in values])
        return result.double()

    def magnitude(*values):
        # The sum of absolute weights is below 2 per dimension.
        values = [v.abs() if isinstance(v, torch.Tensor) else v for v in values]
        if name.endswith("_backward"):
            plain = operator(*values)
            return plain.abs() + plain.abs().amax() * (0.2 + longest / 16)
        return around(operator, values) * (1 + longest / 8)

    # Infinity times a weight of 0 is NaN; where depends on the order of dimensions.
    return dict(error=24, each=True, exact=exact, magnitude=magnitude, same_nan=kind != "special")


def of_one(operator, values):
    return values[0].dim() == 4 and 1 in (values[1][-1], values[0].shape[-1]) and "backward" not in operator._schema.name and "nearest" not in operator._schema.name


def around(operator, values):
    x, size = values[0], values[1]
    largest = x.nan_to_num(0, 0, 0).amax(dim=tuple(range(2, x.dim())), keepdim=True)
    return largest.expand(list(x.shape[:2]) + list(size))
