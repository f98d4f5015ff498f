"""torchvision's operators: src/cpu/vision, src/cuda/vision, src/tensor/spatial/region_taps.h, deform_taps.h. Needs torchvision.

nms and pooled maxima are compared to the bit; on CPUs all of roi_align, roi_pool, ps_roi_align and ps_roi_pool is, since every
operation rounds alike. Limits: vectors of 4 and 8 boxes; 64 boxes a block of the GPU's kernel; ties of scores, boxes that are equal,
overlaps at the threshold to the bit, NaN; regions outside of the image, across its edges, turned round, of a point, far larger than
the image, with more than kManyPoints points (not of half types, where several points round to one); sampling_ratio set or not; 64
places a block of deform_conv2d's columns.
torchvision reads other memory at coordinates that are NaN, so those are not drawn.
"""
import math

import torch

import abi
import case

try:
    import torchvision
except ImportError:
    torchvision = None

DEVICES = ("cpu", "cuda")
FLOATS = (torch.float32, torch.float32, torch.float32, torch.float64, torch.float16)
LAYOUTS = ("packed", "packed", "channels_last", "permuted", "sliced", "offset", "padded", "expanded")


def draw(d):
    if torchvision is None:
        raise abi.Missing("torchvision")
    return d.choice((nms, nms, roi_align, roi_align, roi_pool, ps_roi_align, ps_roi_pool, deform_conv2d))(d)


def nms(d):
    dtype = d.choice((torch.float32, torch.float32, torch.float64) + ((torch.float16,) if d.device == "cuda" else ()))
    n = d.size(4, 8, 16, 64, 128, 200, high=500)
    side = d.choice((4, 8, 30, 100))
    if d.chance(0.5):  # whole coordinates: overlaps are equal to simple fractions
        corners, sizes = (torch.randint(0, side, (n, 2), generator=d.torch).double(),
                          torch.randint(1, 6, (n, 2), generator=d.torch).double())
    else:
        corners, sizes = (torch.rand(n, 2, generator=d.torch, dtype=torch.float64) * side,
                          torch.rand(n, 2, generator=d.torch, dtype=torch.float64) * side / d.choice((1, 2, 5)))
    boxes = torch.cat([corners, corners + sizes], 1)
    if d.chance(0.1):
        boxes = torch.where(torch.rand(boxes.shape, generator=d.torch) < 0.05, d.choice((math.nan, math.inf, -math.inf)), boxes)
    if d.chance(0.1):
        boxes = boxes[:, [2, 3, 0, 1]]  # turned round: no overlap at all
    scores = d.values(torch.float64, [n], d.choice(("normal", "few", "few", "positive", "special", "zero")))
    threshold = d.choice((0.5, 0.5, 0.7, 1 / 3, 0.25, 0.2, 0.0, 1.0, -0.5, 0.1, 0.6, math.nan, d.random()))
    boxes, scores = d.laid_out(boxes.to(dtype), LAYOUTS[3:]), d.laid_out(scores.to(dtype), LAYOUTS[3:-1])
    return case.named(f"{dtype} {n} {threshold} {tuple(boxes.stride())}", "torchvision::nms", "", boxes, scores, threshold, proxied=True)


def image(d, dtype, channels=None):
    height, width = (d.choice((1, 2, 3, 5, 7, 8, 13, 16, 20)) for _ in range(2))
    batch = d.choice((1, 1, 2, 3))
    channels = d.choice((1, 2, 3, 5, 8)) if channels is None else channels
    kind = d.choice(("normal", "few", "few", "wide", "special"))
    return d.tensor(dtype, [batch, channels, height, width], kind, LAYOUTS)


def regions(d, dtype, x, scale, turned, huge):
    k = d.choice((0, 1, 1, 2, 3, 5, 9, 17))
    height, width = x.shape[2:]
    extent = torch.tensor([width, height], dtype=torch.float64) / scale
    way = d.choice(("inside", "inside", "across", "whole", "far") + (("huge", "wide") if huge else ()))
    unit = lambda: torch.rand(k, 2, generator=d.torch, dtype=torch.float64)
    if way == "inside":
        first, last = unit() * extent, unit() * extent
    elif way == "across":
        first, last = (unit() * 2 - 0.5) * extent, (unit() * 2 - 0.5) * extent
    elif way == "whole":
        first, last = (unit() * extent).round(), (unit() * extent).round()
    elif way == "far":
        first, last = (unit() * 9 - 4) * extent, (unit() * 9 - 4) * extent
    elif way == "huge":
        first, last = -unit() * extent * 40, unit() * extent * 40
    else:
        times = torch.tensor(d.choice(((1500.0, 0.5), (0.5, 1500.0))) if dtype != torch.float16 else (9.0, 9.0))
        first, last = -unit() * extent * times, unit() * extent * times
    if not turned:
        first, last = torch.minimum(first, last), torch.maximum(first, last)
    images = torch.randint(x.shape[0], (k, 1), generator=d.torch).double()
    return d.laid_out(torch.cat([images, first, last], 1).to(dtype), ("packed", "packed", "permuted", "sliced", "offset", "padded"))


def settings(d):
    return d.choice((1.0, 1.0, 0.5, 0.25, 0.0625, 2.0, 0.3)), *(d.choice((1, 2, 3, 5, 7)) for _ in range(2))


def compared(d):
    """nvcc joins products and sums, in each compilation in its own way; where a point lies is then not sure to the bit."""
    if d.device == "cpu":
        return {}
    return dict(error=2000, each=True, same_nan=None, magnitude=lambda x, *rest: x.abs().nan_to_num(0, 0, 0).amax().reshape(1) if x.numel()
                else x.new_zeros(1))


def roi_align(d):
    dtype, aligned = d.choice(FLOATS), d.chance(0.5)
    x, (scale, height, width) = image(d, dtype), settings(d)
    ratio = d.choice((-1, 0, 0, 1, 2, 2, 3, 5, 40))
    # torchvision's CPU kernel fails to allocate a list of fewer than no points, as of regions that are turned round.
    r = regions(d, dtype, x, scale, not aligned or ratio > 0, huge=ratio < 3)
    label = f"{dtype} {list(x.shape)} {tuple(x.stride())} {list(r.shape)} {scale} {height} {width} {ratio} {aligned}"
    return case.named(label, "torchvision::roi_align", "", x, r, scale, height, width, ratio, aligned, proxied=True, **compared(d))


def roi_pool(d):
    dtype = d.choice(FLOATS)
    x, (scale, height, width) = image(d, dtype), settings(d)
    r = regions(d, dtype, x, scale, True, huge=True)
    label = f"{dtype} {list(x.shape)} {tuple(x.stride())} {list(r.shape)} {scale} {height} {width}"
    return case.named(label, "torchvision::roi_pool", "", x, r, scale, height, width, proxied=True)


def by_position(d, pooled):
    return d.choice((1, 2, 3)) * pooled[0] * pooled[1]


def ps_roi_align(d):
    dtype, (scale, height, width) = d.choice(FLOATS), settings(d)
    x = image(d, dtype, by_position(d, (height, width)))
    ratio = d.choice((-1, 0, 0, 1, 2, 3, 40))
    r = regions(d, dtype, x, scale, True, huge=ratio < 3)
    label = f"{dtype} {list(x.shape)} {tuple(x.stride())} {list(r.shape)} {scale} {height} {width} {ratio}"
    return case.named(label, "torchvision::ps_roi_align", "", x, r, scale, height, width, ratio, proxied=True, **compared(d))


def ps_roi_pool(d):
    dtype, (scale, height, width) = d.choice(FLOATS), settings(d)
    x = image(d, dtype, by_position(d, (height, width)))
    r = regions(d, dtype, x, scale, True, huge=True)
    label = f"{dtype} {list(x.shape)} {tuple(x.stride())} {list(r.shape)} {scale} {height} {width}"
    return case.named(label, "torchvision::ps_roi_pool", "", x, r, scale, height, width, proxied=True, **compared(d))


def deform_conv2d(d):
    dtype = d.choice(FLOATS)
    groups, offset_groups = d.choice((1, 1, 2, 3)), d.choice((1, 1, 2, 4))
    channels = math.lcm(groups, offset_groups) * d.choice((1, 1, 2, 3))
    kernel = [d.choice((1, 2, 3, 3, 5)) for _ in range(2)]
    stride, pad, dilation = ([d.choice(c) for _ in range(2)] for c in ((1, 1, 2, 3), (0, 1, 2), (1, 1, 2)))
    sizes = [max(d.choice((1, 3, 5, 8, 9, 16, 17)), dl * (k - 1) + 1 - 2 * p) for k, p, dl in zip(kernel, pad, dilation)]
    out = [(n + 2 * p - dl * (k - 1) - 1) // s + 1 for n, k, s, p, dl in zip(sizes, kernel, stride, pad, dilation)]
    batch, made = d.choice((0, 1, 1, 2, 3, 6)), groups * d.choice((1, 2, 3, 8))
    masked, taps = d.chance(0.6), offset_groups * kernel[0] * kernel[1]
    x = d.tensor(dtype, [batch, channels, *sizes], d.choice(("normal", "few")), LAYOUTS)
    w = d.tensor(dtype, [made, channels // groups, *kernel], d.choice(("normal", "few")), LAYOUTS)
    spread = d.choice((0.0, 0.5, 1.0, 4.0, 30.0))
    shift = torch.randn(batch, 2 * taps, *out, generator=d.torch, dtype=torch.float64) * spread
    if d.chance(0.3):
        shift = shift.round()
    offset = d.laid_out(shift.to(dtype), LAYOUTS[:-1])
    mask = d.tensor(dtype, [batch, taps, *out], "positive", LAYOUTS) if masked else torch.zeros(batch, 1, dtype=dtype).to(d.device)
    bias = d.tensor(dtype, [made], "normal", ("packed", "sliced"))
    terms = channels // groups * kernel[0] * kernel[1]

    def magnitude(x, w, offset, mask, bias, *rest):
        top = x.abs().amax() if x.numel() else x.new_zeros(())
        each = w.abs().sum((1, 2, 3)).view(1, -1, 1, 1) * top + bias.abs().view(1, -1, 1, 1)
        return each.expand(x.shape[0], -1, *out)

    # Where a point lies is rounded in the elements' dtype, which float64 does not show.
    arithmetic = torch.finfo(dtype).eps / torch.finfo(torch.float32 if dtype == torch.float16 else dtype).eps
    label = f"{dtype} {list(x.shape)} {list(w.shape)} {stride} {pad} {dilation} {groups} {offset_groups} {masked} {spread}"
    return case.named(label, "torchvision::deform_conv2d", "", x, w, offset, mask, bias, *stride, *pad, *dilation, groups, offset_groups,
                      masked, proxied=True, error=(8 + math.sqrt(terms)) * arithmetic, magnitude=magnitude,
                      exact=lambda *v: torch.ops.torchvision.deform_conv2d(*narrow(dtype, v)).double())


def narrow(dtype, values):
    """Half types' places in their own precision: the oracle is torchvision, not ideal arithmetic."""
    return [v.to(dtype) if isinstance(v, torch.Tensor) else v for v in values]
