"""Elementwise operators, copies and parts on a device: by their functions, and by name.

Limits: 16 bytes at once for packed, aligned rows (elementwise_kernels.cu, strided_copy.cu); transposes through squares
of 32 from 8 elements on; quotients by multiplication below 2^31."""
import torch

import abi
import case

DEVICES = ("cuda",)
aten = torch.ops.aten
FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
COMPLEX = (torch.complex64, torch.complex128)
LIMITS = (2, 4, 7, 8, 16, 31, 32, 33, 64, 256)
LAYOUTS = ("packed", "packed", "permuted", "permuted", "sliced", "offset", "padded", "expanded", "channels_last")


def shape_of(d, most=30000):
    return d.shape(d.choice((0, 1, 2, 2, 3, 4, 4, 5)), most, LIMITS, low=d.choice((0, 1, 1, 1, 1)))


def other_of(d, dtype, shape, kind, number=True):
    """A tensor of the shape, or one that broadcasts to it."""
    cut = d.choice((0, 0, 0, min(1, len(shape)), len(shape))) if number else 0
    sizes = [n if d.chance(0.8) else 1 for n in shape[cut:]] if d.chance(0.5) else list(shape[cut:])
    return d.tensor(dtype, sizes, kind, LAYOUTS)


def tolerance(dtype, ulps=4):
    return dict(error=float(ulps)) if dtype.is_floating_point or dtype.is_complex else {}


def arithmetic(d):
    op = d.choice(("add", "add", "mul", "sub", "div", "pow", "gcd", "polar", "complex"))
    dtype = d.choice(FLOATS + WHOLE + COMPLEX + (torch.bool,))
    kind = d.choice(("normal", "normal", "few", "special", "wide"))
    if dtype.is_complex and kind in ("special", "wide"):
        kind = "normal"
    shape = shape_of(d)
    if op == "gcd":
        dtype = d.choice(WHOLE)
        x, y = d.tensor(dtype, shape, "wide", LAYOUTS), other_of(d, dtype, shape, d.choice(("wide", "few")))
        return case.shim(f"{dtype} {shape} {list(y.shape)}", "gcd", x, y, torch=torch.gcd, strides=False)
    if op in ("polar", "complex"):
        dtype = d.choice((torch.float32, torch.float64) if op == "polar" else (torch.float32, torch.float64, torch.float16))
        x, y = d.tensor(dtype, shape, "normal", LAYOUTS), other_of(d, dtype, shape, "normal")
        label = f"{dtype} {shape} {x.stride()} {list(y.shape)} {y.stride()}"
        if op == "complex":
            return case.named(label, op, "", x, y)
        # Large angles lose float32's precision; |x| bounds each part.
        return case.shim(label, op, x, y, torch=torch.polar, error=8.0, magnitude=lambda a, b: a.abs())
    other_type = d.choice((dtype, dtype, dtype, torch.float32, torch.int32))
    if op == "pow" and torch.bool in (dtype, other_type):
        return None
    if op == "sub" and torch.bool in (dtype, other_type):
        return None
    if op == "pow":
        kind = "positive" if dtype.is_floating_point else "few"
    x, y = d.tensor(dtype, shape, kind, LAYOUTS), other_of(d, other_type, shape, kind if not other_type.is_complex or kind not in ("special", "wide") else "normal")
    if op == "pow" and not other_type.is_floating_point and not other_type.is_complex:
        y = d.laid_out(y.cpu().abs() % 5, ("packed", "permuted"))
    if op == "div" and not other_type.is_floating_point and not other_type.is_complex:
        y = d.laid_out(torch.where(y.cpu() == 0, torch.ones((), dtype=y.dtype), y.cpu()), ("packed", "permuted"))
    result = torch.promote_types(dtype, other_type)
    # alpha is passed as a floating number, which integers refuse.
    if op in ("add", "sub") and not (result.is_floating_point or result.is_complex):
        op = "mul"
    if op == "div" and not (result.is_floating_point or result.is_complex):
        result = torch.float32
    label = f"{dtype} {shape} {x.stride()} by {other_type} {list(y.shape)} {y.stride()} {kind}"
    number = d.chance(0.3)
    options = tolerance(result, 64 if op == "pow" else 4)
    if op in ("add", "sub") and options:
        options["magnitude"] = lambda a, b, *_: (a.abs() + (3 * abs(b) if isinstance(b, (int, float)) else 3 * b.abs()))
    if result.is_complex and op in ("mul", "div", "pow") and options:
        # A part may cancel; the absolute value bounds it.
        options["magnitude"] = lambda a, b, *_: getattr(torch, op)(a, b).abs()
    if kind in ("special", "wide") or result.is_complex:
        options.setdefault("error", None)
    if op == "div" and number:
        return case.named(f"{label} number", "div", "Scalar", x, d.choice((3.0, -0.5, 7.0)), **tolerance(result if result != torch.int64 else torch.float32)) \
            if dtype.is_floating_point or dtype.is_complex else None
    alpha = d.choice((1, 1, 2, -0.5)) if op in ("add", "sub") else None
    if number:
        value = d.choice((2.0, -1.5, 0.0, 3.0)) if dtype.is_floating_point or dtype.is_complex else None
        if value is None:
            return None
        if op == "pow":
            exponent = d.choice((0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 1.7))
            if exponent < 0 and dtype.is_complex:  # at its pole, which part is NaN and which infinite is arbitrary
                x = d.laid_out(torch.where(x.cpu() == 0, torch.ones((), dtype=dtype), x.cpu()))
            return case.named(f"{label} exponent {exponent}", "pow", "Tensor_Scalar", x, exponent, error=64.0, magnitude=lambda a, b: torch.pow(a, b).abs())
        if op in ("add", "sub"):
            return case.named(f"{label} {value} {alpha}", op, "Scalar", x, value, alpha, **tolerance(dtype) | dict(magnitude=lambda a, *_: a.abs() + 10))
        return case.named(f"{label} {value}", "mul", "Scalar", x, value, **tolerance(dtype))
    if op in ("add", "sub"):
        return case.named(f"{label} {alpha}", op, "Tensor", x, y, alpha=alpha, **options)
    if op == "pow":
        return case.named(label, op, "Tensor_Tensor", x, y, **options)
    return case.named(label, op, "Tensor", x, y, **options)


def of_one(d):
    name = d.choice(("abs", "angle", "neg", "reciprocal", "exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "conj_physical"))
    dtype = d.choice(FLOATS + COMPLEX + (WHOLE if name != "conj_physical" else ()) + ((torch.bool,) if name in ("exp", "sin", "sqrt", "sigmoid") else ()))
    kind = d.choice(("normal", "few", "special", "wide")) if not dtype.is_complex else "normal"
    if name in ("sin", "cos") and kind == "wide":
        kind = "normal"
    x = d.tensor(dtype, shape_of(d), kind, LAYOUTS)
    floating = dtype.is_floating_point or dtype.is_complex or name not in ("abs", "neg", "conj_physical")
    options = dict(error=32.0 if dtype.is_complex else 8.0) if floating and name not in ("abs", "neg", "conj_physical") or dtype.is_complex else {}
    if dtype.is_complex and options and name not in ("abs", "angle"):
        options["magnitude"] = lambda v: getattr(torch, name)(v).abs() + (1 if name in ("log", "tanh", "sigmoid") else 0)
    if name in ("sin", "cos", "log", "angle") and options:
        options["magnitude"] = options.get("magnitude") or (lambda v: getattr(torch, name)(v).abs() + 1)
    return case.named(f"{dtype} {list(x.shape)} {x.stride()} {kind}", name, "", x, **options)


def copies(d):
    dtype = d.choice(FLOATS + WHOLE + COMPLEX + (torch.bool,))
    x = d.tensor(dtype, shape_of(d, 60000), "few", LAYOUTS)
    rank, shape = x.dim(), list(x.shape)
    label = f"{dtype} {shape} {x.stride()}"
    way = d.choice(("cat", "cat", "pad", "pad", "repeat", "roll", "clone", "permute_copy", "constant_pad_nd", "slice", "copy", "flip"))
    if way == "cat" and rank:
        dim = d.randrange(rank)
        others = [d.tensor(d.choice((dtype, dtype, dtype, torch.float32)), [d.size(1, 3, 8, low=0, high=40) if i == dim else n for i, n in enumerate(shape)], "few", LAYOUTS)
                  for _ in range(d.randrange(0, 4))]
        while sum(t.numel() for t in others) > 200000:
            others.pop()
        parts = [x, *others]
        d.shuffle(parts)
        return case.shim(f"{label} {[list(t.shape) for t in parts]} {[str(t.dtype) for t in parts]} {dim}", "cat", parts, dim - rank if d.chance(0.3) else dim,
                         torch=torch.cat)
    if way == "pad" and rank:
        mode = d.choice(("constant", "constant", "reflect", "replicate", "circular"))
        count = d.randrange(1, rank + 1) if mode == "constant" else max(1, min(rank - 1, 3))
        if mode != "constant" and (rank < 2 or rank > 5 or 0 in shape or dtype == torch.bool or not (dtype.is_floating_point)):
            return None
        if mode != "constant":
            count = {2: 1, 3: 2 if d.chance(0.5) else 1, 4: 2 if d.chance(0.6) else 3, 5: 3}[rank]
        pads = []
        for n in reversed(shape[rank - count:]):
            most = {"constant": 5, "reflect": n - 1, "replicate": 5, "circular": n}[mode]
            pads += [d.randrange(0, min(most, 5) + 1) for _ in range(2)]
            if mode == "constant" and d.chance(0.2) and n > 3:
                pads[-1] = -1
        value = d.choice((None, 0.0, 2.0)) if mode == "constant" else None
        return case.shim(f"{label} {pads} {mode} {value}", "pad", x, pads, mode, value, torch=lambda x, p, m, v: aten.pad(x, p, m, v), strides=False)
    if way == "repeat":
        times = [d.choice((1, 1, 2, 3)) for _ in range(rank + d.choice((0, 0, 1)))]
        return case.named(f"{label} {times}", "repeat", "", x, times)
    if way == "roll" and rank:
        shifts = [d.randrange(-5, 6) for _ in range(d.randrange(1, rank + 1))]
        return case.named(f"{label} {shifts}", "roll", "", x, shifts, d.sample(range(rank), len(shifts)))
    if way == "permute_copy" and rank:
        order = d.sample(range(rank), rank)
        return case.named(f"{label} {order}", "permute_copy", "", x, order, strides=False)
    if way == "constant_pad_nd" and rank:
        pads = [d.randrange(0, 4) for _ in range(2 * d.randrange(1, rank + 1))]
        return case.named(f"{label} {pads}", "constant_pad_nd", "", x, pads, 1)
    if way == "slice" and rank:
        dim = d.randrange(rank)
        first, last, step = d.randrange(-3, shape[dim] + 2), d.randrange(0, shape[dim] + 3), d.choice((1, 2, 3))
        return case.shim(f"{label} {dim} {first} {last} {step}", "slice_Tensor", x, dim, first, last, step, torch=lambda x, *r: aten.slice(x, *r))
    if way == "copy":
        to = d.choice(FLOATS + WHOLE + COMPLEX + (torch.bool,))
        if dtype.is_complex and not to.is_complex:
            return None
        out = d.laid_out(torch.zeros(shape, dtype=to), ("packed", "permuted", "sliced", "offset", "padded"))
        return case.named(f"{label} to {to} {out.stride()}", "copy", "", out, x)
    return case.named(label, "clone", "", x)


def fills(d):
    dtype = d.choice(FLOATS + WHOLE + COMPLEX)
    out = d.tensor(dtype, shape_of(d, 60000), "few", ("packed", "permuted", "sliced", "offset", "padded"))
    value = d.choice((0.0, 1.0, 2.5 if dtype.is_floating_point else 2.0, 3.0))
    return case.Case(f"fill__Scalar {dtype} {list(out.shape)} {out.stride()} {value}", lambda o: abi.call("fill__Scalar", o, value),
                     lambda o: None if o.fill_(value) is None else None, [out], written=[0])


def makers(d):
    x = d.tensor(d.choice(FLOATS + WHOLE + COMPLEX + (torch.bool,)), shape_of(d), "few", LAYOUTS)
    label = f"{x.dtype} {list(x.shape)} {x.stride()}"
    name = d.choice(("zeros_like", "ones_like", "full_like", "new_full", "new_zeros", "new_ones"))
    if name.startswith("new"):
        size = d.shape(2, 1000)
        return case.named(f"{label} {size}", name, "", x, size, *([2.0] if name == "new_full" and x.dtype.is_floating_point else [1.0] if name == "new_full" else []))
    return case.named(label, name, "", x, *([2.0 if x.dtype.is_floating_point else 1.0] if name == "full_like" else []))


def loss(d):
    dtype = d.choice(FLOATS)
    shape = shape_of(d)
    x = d.tensor(dtype, shape, "normal", LAYOUTS)
    target = d.laid_out((torch.randint(0, 2, shape, generator=d.torch) * 2 - 1).to(dtype), LAYOUTS)
    reduction = d.choice((0, 1, 2))
    grad = d.tensor(dtype, shape if reduction == 0 else (), "normal", LAYOUTS)
    if x.numel() == 0:
        return None
    return case.shim(f"{dtype} {shape} {reduction} {x.stride()} {target.stride()} {grad.stride()}", "soft_margin_loss_backward", grad, x, target, reduction,
                     torch=lambda *v: aten.soft_margin_loss_backward(*v), error=16.0, strides=False,
                     magnitude=lambda g, x, t, r: g.abs().expand(x.shape) / (x.numel() if r == 1 else 1))


def draw(d):
    return d.choice((arithmetic,) * 4 + (of_one,) * 3 + (copies,) * 4 + (fills, makers, loss))(d)
