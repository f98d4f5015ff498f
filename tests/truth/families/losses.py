"""Losses and their gradients: src/cpu/normalisation/loss.cpp, src/cpu/normalisation/margin_loss.cpp.

Floats against float64. Elementwise loops of computed.h (blocks of 256 for bfloat16, vectors of both instruction sets),
reductions as in reductions.py; rows of classes one after the other.
"""
import torch

import case
from draw import FLOATS

SIZES = (8, 16, 32, 64, 256, 512)
LAYOUTS = ("packed", "packed", "permuted", "sliced", "offset", "padded", "expanded")


def draw(d):
    return d.choice((pairwise, pairwise, pairwise, entropy, entropy, soft_margin, margin, multilabel, likelihood, likelihood))(d)


def shape_of(d):
    if d.chance(0.1):
        return [d.choice((32768, 65536)) + d.choice((-1, 0, 1))]
    return d.shape(d.choice((0, 1, 2, 3, 4)), 5000, SIZES)


def broadcast(d, shape):
    return shape if d.chance(0.85) else d.choice(([1 if d.chance(0.4) else n for n in shape], shape[1:]))


def averaged(sizes, reduction):
    """The terms of the sum, or the elements."""
    return sizes.mean() if reduction == 1 else sizes.sum() if reduction == 2 else sizes


def gradient(d, dtype, shape, reduction):
    """Of the loss."""
    return d.tensor(dtype, shape if reduction == 0 else [], "normal", LAYOUTS)


def slack(dtype):
    # ATen rounds halves at each step.
    return 8 if dtype in (torch.float16, torch.bfloat16) else 3


def pairwise(d):
    name = d.choice(("mse_loss", "smooth_l1_loss", "huber_loss"))
    dtype, kind, shape, reduction = d.choice(FLOATS), d.choice(("normal", "few", "wide", "special")), shape_of(d), d.choice((0, 1, 2))
    other = broadcast(d, shape)
    x, y = d.tensor(dtype, shape, kind, LAYOUTS), d.tensor(dtype, other, kind, LAYOUTS)
    extra = [] if name == "mse_loss" else [d.choice((1.0, 0.5, 2.0, 0.01, 10.0) + ((0.0,) if name == "smooth_l1_loss" else ()))]
    label = f"{dtype} {shape} {other} {x.stride()} {y.stride()} {kind} reduction {reduction} {extra}"

    def size(v, w):
        apart = v.abs() + w.abs()
        by = extra[0] if extra else 1.0
        finite = (apart * (v - w).abs()).nan_to_num(0, 0, 0)
        # Near the threshold both forms agree except for rounding.
        return finite * (1 / by if name == "smooth_l1_loss" and by > 0 else 1) + apart.nan_to_num(0, 0, 0) * (
            by if name == "huber_loss" else 1 if extra else 0)

    if d.chance(0.5):
        return case.named(label, name, "", x, y, reduction, *extra, error=16, slack=slack(dtype),
                          magnitude=lambda v, w, *_: averaged(size(v, w), reduction))
    other = shape
    y = d.tensor(dtype, other, kind, LAYOUTS)
    g = gradient(d, dtype, shape, reduction)
    n = max(x.numel(), 1) if reduction == 1 else 1
    by = extra[0] if extra else 1.0
    if name == "smooth_l1_loss" and by == 0 and kind in ("few", "special"):
        return None  # 0 / 0 and its sign

    def magnitude(g, v, w, *_):
        apart = (v.abs() + w.abs()).nan_to_num(0, 0, 0)
        return g.abs() * (apart * (2 if not extra else 1 / by if name == "smooth_l1_loss" and by > 0 else 1)) / n

    # At a threshold either form is right, where they agree.
    return case.named(f"{label} gradient {list(g.shape)} {g.stride()}", f"{name}_backward", "", g, x, y, reduction, *extra, error=16,
                      slack=slack(dtype), magnitude=magnitude)


def entropy(d):
    dtype, shape, reduction = d.choice(FLOATS), shape_of(d), d.choice((0, 1, 2))
    name = d.choice(("binary_cross_entropy", "binary_cross_entropy_backward", "binary_cross_entropy_with_logits"))
    y = d.laid_out(torch.rand(shape, generator=d.torch, dtype=torch.float64).mul(d.choice((1, 1, 0))).to(dtype)
                   if d.chance(0.7) else d.values(torch.bool, shape).to(dtype), LAYOUTS)
    w = d.tensor(dtype, d.choice((shape, shape[1:], [1] * len(shape))), "positive", LAYOUTS) if d.chance(0.5) else None
    if name.endswith("logits"):
        x = d.tensor(dtype, shape, d.choice(("normal", "wide", "zero", "few")), LAYOUTS)
        p = d.tensor(dtype, d.choice((shape, shape[-1:], [1] * len(shape))), "positive", LAYOUTS) if d.chance(0.5) else None
        # The logarithm of the sigmoid is computed as a difference.
        return case.named(f"{dtype} {shape} {x.stride()} {y.stride()} weight {w is not None} {p is not None} reduction {reduction}", name,
                          "", x, y, w, p, reduction, error=16, slack=slack(dtype),
                          magnitude=lambda v, t, w, p, *_: averaged((1 + v.abs()) * (1 + (p.abs() if p is not None else 0)) * (
                              w.abs() if w is not None else 1), reduction))
    values = torch.rand(shape, generator=d.torch, dtype=torch.float64)
    if d.chance(0.3):
        values = torch.where(torch.rand(shape, generator=d.torch) < 0.2, values.round(), values)
    if d.chance(0.03) and values.numel():
        values.view(-1)[d.randrange(values.numel())] = d.choice((-0.1, 1.1, float("nan")))  # refused
    x = d.laid_out(values.to(dtype), LAYOUTS)
    label = f"{dtype} {shape} {x.stride()} {y.stride()} weight {list(w.shape) if w is not None else None} reduction {reduction}"
    if name == "binary_cross_entropy":
        return case.named(label, name, "", x, y, w, reduction, error=16, slack=slack(dtype),
                          magnitude=lambda v, t, w, *_: averaged((1 + t * v.log().clamp(-100).abs() + (1 - t) * (-v).log1p().clamp(
                              -100).abs()).nan_to_num(0) * (w.abs() if w is not None else 1), reduction))
    g = gradient(d, dtype, shape, reduction)
    n = max(x.numel(), 1) if reduction == 1 else 1
    if w is not None and list(w.shape) != shape:
        w = d.tensor(dtype, shape, "positive", LAYOUTS)
    # 1 - x of halves is exact near one.
    least = 1e-12
    return case.named(f"{label} gradient {g.stride()}", name, "", g, x, y, w, reduction, error=16, slack=slack(dtype),
                      magnitude=lambda g, v, t, w, *_: g.abs() * (v.abs() + t.abs()) / ((1 - v) * v).clamp(min=least) * (
                          w.abs() if w is not None else 1) / n * (1 + 1 / (1 - v).clamp(min=1e-3)))


def soft_margin(d):
    dtype, shape, reduction = d.choice(FLOATS + (torch.complex64,)), shape_of(d), d.choice((0, 1, 2))
    kind = d.choice(("normal", "few", "wide" if dtype != torch.float16 else "normal"))
    x = d.tensor(dtype, shape, kind, LAYOUTS)
    y = d.laid_out((d.values(torch.bool, shape).double() * 2 - 1).to(dtype), LAYOUTS)
    label = f"{dtype} {shape} {x.stride()} {y.stride()} {kind} reduction {reduction}"
    if dtype.is_complex and kind == "wide":
        return None  # infinities
    if d.chance(0.5) or dtype.is_complex:
        return case.named(label, "soft_margin_loss", "", x, y, reduction, error=16, slack=slack(dtype),
                          magnitude=lambda v, t, *_: averaged(1 + v.abs(), reduction))
    g = gradient(d, dtype, shape, reduction)
    n = max(x.numel(), 1) if reduction == 1 else 1
    if dtype in (torch.float32, torch.float64) and kind == "wide":
        return None  # e^x overflows: NaN, where both are infinite
    return case.shim(label, "soft_margin_loss_backward", g, x, y, reduction,
                     torch=torch.ops.aten.soft_margin_loss_backward, error=16, slack=slack(dtype),
                     magnitude=lambda g, v, t, *_: g.abs() * (1 + v.abs()) / n)


def classes_of(d):
    count, classes = d.size(2, 8, 32, high=70, low=1), d.size(2, 3, 10, 16, 100, high=200, low=1)
    return ([count, classes], [count]) if d.chance(0.85) else ([classes], d.choice(([], [1])))


def margin(d):
    dtype, reduction = d.choice((torch.float32, torch.float64, torch.float32)), d.choice((0, 1, 2))
    shape, of_target = classes_of(d)
    x, target = d.tensor(dtype, shape, d.choice(("normal", "few", "wide")), LAYOUTS), d.indices(shape[-1], of_target)
    w = d.tensor(dtype, [shape[-1]], "positive", LAYOUTS) if d.chance(0.5) else None
    p, gap = d.choice((1, 2)), d.choice((1.0, 0.5, 2.0, 0.0))
    label = f"{dtype} {shape} {x.stride()} target {list(target.shape)} {target.stride()} p {p} margin {gap} weight {w is not None} {reduction}"

    def size(v):
        return (v.abs().amax() * 2 + gap + 1) ** p

    if d.chance(0.5):
        return case.named(label, "multi_margin_loss", "", x, target, p, gap, w, reduction, error=16,
                          magnitude=lambda v, *_: size(v) * (max(v.shape[0], 1) if reduction == 2 else 1))
    g = d.tensor(dtype, of_target if reduction == 0 and len(shape) == 2 else [], "normal", LAYOUTS)
    return case.named(label, "multi_margin_loss_backward", "", g, x, target, p, gap, w, reduction, error=16,
                      magnitude=lambda g, v, *_: 4 * g.abs().amax() * size(v) / v.shape[-1] * (1 + v.shape[-1] ** 0.5)
                      / (v.shape[0] if reduction == 1 and v.dim() == 2 else 1))


def multilabel(d):
    dtype, reduction = d.choice((torch.float32, torch.float64)), d.choice((0, 1, 2))
    shape, _ = classes_of(d)
    classes = shape[-1]
    x = d.tensor(dtype, shape, d.choice(("normal", "few", "wide")), LAYOUTS)
    # Distinct classes, up to the first negative one.
    order = torch.argsort(torch.rand(shape, generator=d.torch), -1)
    known = torch.randint(0, classes + 1, shape[:-1] + [1], generator=d.torch)
    target = torch.where(torch.arange(classes) < known, order, torch.where(torch.arange(classes) == known, -1, order))
    target = d.laid_out(target, ("packed", "permuted", "sliced", "offset"))
    label = f"{dtype} {shape} {x.stride()} {target.stride()} reduction {reduction}"
    rows = shape[0] if len(shape) == 2 else 1

    def size(v):
        return (1 + 2 * v.abs().amax()) * classes

    if d.chance(0.5):
        return case.named(label, "multilabel_margin_loss_forward", "", x, target, reduction, error=16,
                          magnitude=lambda v, *_: [size(v) * (rows if reduction == 2 else 1), torch.ones(())])
    flags = torch.ops.aten.multilabel_margin_loss_forward(x, target, reduction)[1]
    g = d.tensor(dtype, [rows] if reduction == 0 and len(shape) == 2 else [], "normal", LAYOUTS)
    return case.named(label, "multilabel_margin_loss_backward", "", g, x, target, reduction, d.laid_out(flags, ("packed", "permuted")),
                      error=16, magnitude=lambda g, *_: g.abs().amax() * (1 + classes ** 0.5) / (rows if reduction == 1 else 1))


def likelihood(d):
    dtype, reduction, two = d.choice(FLOATS), d.choice((0, 1, 2)), d.chance(0.5)
    classes = d.size(2, 3, 10, 100, high=150, low=1)
    if two:
        n, h, w = d.size(2, 3, high=5), d.size(2, 4, 8, high=12), d.size(2, 4, 8, high=12)
        shape, of_target = [n, classes, h, w], [n, h, w]
    else:
        n = d.size(2, 8, 64, high=300)
        shape, of_target = ([n, classes], [n]) if d.chance(0.85) else ([classes], [])
    x = d.tensor(dtype, shape, d.choice(("normal", "few", "wide", "special")), LAYOUTS)
    target = torch.randint(0, classes, of_target, generator=d.torch)
    ignored = d.choice((-100, -100, 0, classes - 1, -1))
    if d.chance(0.4):
        target = torch.where(torch.rand(of_target, generator=d.torch) < d.choice((0.2, 1.0)), ignored, target)
    forward = d.chance(0.5)
    if forward and d.chance(0.04) and target.numel():
        target.view(-1)[0] = classes  # refused; ATen's backward writes out of bounds
    target = d.laid_out(target.to(d.choice((torch.int64, torch.int64, torch.uint8)) if ignored >= 0 and not two else torch.int64),
                        ("packed", "permuted", "sliced", "offset"))
    weight = d.tensor(dtype, [classes], "positive", ("packed", "sliced", "offset")) if d.chance(0.5) else None
    name = "nll_loss2d" if two else "nll_loss"
    label = f"{dtype} {shape} {x.stride()} target {target.dtype} {target.stride()} weight {weight is not None} ignored {ignored} {reduction}"
    terms = max(target.numel(), 1)

    def size(v):
        return v.abs().nan_to_num(0, 0, 0).amax() if v.numel() else torch.zeros(())

    if forward:
        # ATen sums halves in half precision.
        return case.named(label, f"{name}_forward", "", x, target, weight, reduction, ignored, error=16, slack=slack(dtype),
                          magnitude=lambda v, *_: [size(v) * (terms if reduction == 2 else 1), torch.tensor(float(terms))])
    g = d.tensor(dtype, of_target if reduction == 0 else [], "normal", LAYOUTS)
    total = torch.tensor(float(d.choice((3, 17.5)))).to(dtype)
    return case.named(label, f"{name}_backward", "", g, x, target, weight, reduction, ignored, total, error=16, slack=slack(dtype))
