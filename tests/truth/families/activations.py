"""Activations and their gradients: src/cpu/elementwise/activations.cpp, computed.h, lanes.h, vector_math.h.

Compared with ATen in float64, per element: a few units in the last place of the terms, as where gelu subtracts from 1.
Rows of every length and layout; glu_backward has its own code for packed floats (glu_slopes).
"""
import math

import torch

import case
import elements

DEVICES = ("cpu",)
FORWARD = ("relu", "elu", "celu", "gelu", "glu", "hardsigmoid", "hardswish", "hardtanh", "hardshrink", "softshrink",
           "leaky_relu", "log_sigmoid_forward", "mish", "_prelu_kernel", "softplus", "threshold", "sigmoid", "silu", "tanh")
BACKWARD = ("elu_backward", "gelu_backward", "glu_backward", "hardsigmoid_backward", "hardswish_backward", "hardtanh_backward",
            "hardshrink_backward", "softshrink_backward", "leaky_relu_backward", "log_sigmoid_backward", "mish_backward",
            "_prelu_kernel_backward", "silu_backward", "softplus_backward", "threshold_backward", "sigmoid_backward",
            "tanh_backward", "logit_backward", "native_dropout_backward")
WHOLE = ("relu", "hardtanh", "threshold", "threshold_backward", "silu", "sigmoid", "tanh")
COMPLEX = ("sigmoid_backward", "tanh_backward", "silu_backward")
# ATen's vectors compare NaN differently from the last elements of its rows.
WITHOUT_NAN = ("hardshrink_backward", "softshrink_backward", "hardtanh_backward", "elu_backward", "hardswish_backward")


def values(d, dtype, shape):
    way = d.random()
    g = d.torch
    if not dtype.is_floating_point:
        return d.values(dtype, shape, d.choice(("few", "wide")))
    scale = d.choice((0.01, 0.3, 1.0, 3.0, 8.0, 30.0, 100.0))
    x = torch.randn(shape, generator=g, dtype=torch.float64) * scale
    if way < 0.25:
        x = (x * 2).round() / 2
    elif way < 0.35:
        odd = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 3.0, -3.0, 20.0, 1.0, -1.0, 0.5, 6.0, 89.0, -89.0, 104.0, -104.0],
                           dtype=torch.float64)
        x = torch.where(torch.rand(shape, generator=g) < 0.2, odd[torch.randint(len(odd), shape, generator=g)], x)
    return x.to(dtype)


def number(d, *choices):
    """A parameter, mostly an ordinary one."""
    n = d.choice(choices + (0.0, 1.0, 0.5, 2.0, 1.5))
    return d.choice((n, n, int(n)))


def draw(d):
    name = d.choice(FORWARD + BACKWARD)
    dtype = d.choice(elements.FLOATS)
    if name in WHOLE and d.chance(0.25):
        dtype = d.choice(elements.INTEGERS + ((torch.bool,) if name in ("silu", "sigmoid", "tanh") else ()))
    if name in COMPLEX and d.chance(0.2):
        dtype = d.choice(elements.COMPLEX[:2])
    shape = elements.sizes(d)
    t = lambda s, kind=dtype: d.laid_out(
        values(d, kind, s) if not kind.is_complex else d.values(kind, s), elements.LAYOUTS)
    label = f"{dtype} {shape}"
    options, arguments, proxied = {}, [], d.chance(0.7)
    if name in ("glu", "glu_backward"):
        if not shape:
            shape = [6]
        dim = d.randrange(len(shape))
        shape[dim] = shape[dim] // 2 * 2
        half = [n // 2 if i == dim else n for i, n in enumerate(shape)]
        dim = d.choice((dim, dim - len(shape)))
        x = t(shape) if d.chance(0.6) else d.laid_out(values(d, dtype, shape), ("packed",))
        if name == "glu":
            arguments = [x, dim]
        else:
            grad = d.laid_out(values(d, dtype, half), ("packed",) if x.is_contiguous() and d.chance(0.7) else elements.LAYOUTS)
            arguments = [grad, x, dim]
        label = f"{dtype} {shape} {tuple(x.stride())} dim {dim}"
    elif name == "_prelu_kernel" or name == "_prelu_kernel_backward":
        weight = t(shape) if d.chance(0.3) else d.laid_out(
            values(d, dtype, [n if i == 1 or d.chance(0.1) else 1 for i, n in enumerate(shape)]), ("packed",))
        weight = weight.expand(shape) if d.chance(0.8) else weight
        arguments = [t(shape), weight] if name == "_prelu_kernel" else [t(shape), t(shape), weight]
    elif name in FORWARD:
        arguments = [t(shape)]
        label += f" {tuple(arguments[0].stride())}"
    else:
        same = d.chance(0.8)
        other = dtype if d.chance(0.93) or dtype.is_complex or not dtype.is_floating_point else d.choice(elements.FLOATS)
        arguments = [t(shape, other), t(shape)]
        if same and not arguments[0].is_contiguous():
            arguments[1] = d.laid_out(arguments[1], elements.LAYOUTS)
        label += f" {[tuple(a.stride()) for a in arguments]} {other}"
    if name in ("elu", "elu_backward"):
        rest = [number(d, 1.6733, 1.0), number(d, 1.0507), number(d, 0.7)]
        arguments[1:1] = rest
        if name == "elu_backward":
            arguments.insert(4, d.chance(0.4))
    elif name == "celu":
        arguments.append(number(d, 1.3) or 1.0)
    elif name in ("gelu", "gelu_backward"):
        options["approximate"] = d.choice(("none", "tanh"))
    elif name in ("hardtanh", "hardtanh_backward"):
        low = d.choice((-1, -1.0, 0, 0.0, -6, -0.5, -2.5, 3))
        arguments += [low, low + d.choice((0, 2, 6, 0.25, 7))]
        if dtype == torch.uint8 and low < 0:
            arguments[-2:] = [0, 6]
    elif name in ("hardshrink", "softshrink", "hardshrink_backward", "softshrink_backward"):
        arguments.append(number(d, 0.5, 0.3))
    elif name in ("leaky_relu", "leaky_relu_backward"):
        arguments.append(number(d, 0.01, 0.2))
        if name == "leaky_relu_backward":
            arguments.append(False)
    elif name in ("softplus", "softplus_backward"):
        arguments += [number(d, 1.0, 0.7) or 1, d.choice((20, 20, 20.0, 1, 0, 5.5, 100, 200))]
    elif name in ("threshold", "threshold_backward"):
        arguments.append(d.choice((0, 1, -2, 0.5)))
        if name == "threshold":
            arguments.append(d.choice((0, 20, -1.0)))
    elif name == "log_sigmoid_backward":
        x = arguments[1]
        buffer = torch.ops.aten.log_sigmoid_forward(x)[1]
        arguments.append(buffer)
    elif name == "logit_backward":
        arguments[1] = d.laid_out(torch.rand(shape, generator=d.torch, dtype=torch.float64).to(dtype), elements.LAYOUTS)
        arguments.append(d.choice((None, 1e-3, 0.3, -1.0)))
    elif name in ("sigmoid_backward", "tanh_backward"):
        if not dtype.is_complex:
            y = torch.rand(shape, generator=d.torch, dtype=torch.float64)
            arguments[1] = d.laid_out((y if name == "sigmoid_backward" else y * 2 - 1).to(dtype), elements.LAYOUTS)
    elif name == "native_dropout_backward":
        arguments = [arguments[0], d.tensor(torch.bool, shape, layouts=elements.LAYOUTS), d.choice((1.0, 2.0, 1.25))]
    label += f" {[a for a in arguments if not isinstance(a, torch.Tensor)]} {options or ''}"
    whole = not dtype.is_floating_point and not dtype.is_complex
    if name in WITHOUT_NAN:
        arguments = [d.laid_out(torch.nan_to_num(a, 0.25, math.inf, -math.inf), elements.LAYOUTS)
                     if isinstance(a, torch.Tensor) else a for a in arguments]
    if name in ("relu", "hardtanh", "hardshrink", "threshold", "threshold_backward", "hardshrink_backward", "softshrink_backward"):
        return case.named(label, name, "", *arguments, proxied=proxied or whole, **options)
    return case.named(label, name, "", *arguments, proxied=proxied or whole, error=8, each=True, magnitude=complex_slope if dtype.is_complex else magnitude(name),
                      same_nan=None if dtype.is_complex else True, **options)


def size_of(x):
    return x.abs().nan_to_num(0, 0, 0)


def complex_slope(g, x):
    s = torch.sigmoid(x).abs()
    return g.abs() * (1 + x.abs()) ** 2 * (1 + s) ** 2


def magnitude(name):
    """An upper bound for the terms of the last sum, as results may be far smaller."""
    if name in ("gelu", "silu", "mish"):
        return lambda x, *_: size_of(x)
    if name in ("gelu_backward", "silu_backward", "mish_backward"):
        return lambda g, x, *_: size_of(g) * (1 + size_of(x))
    if name == "softshrink":
        return lambda x, n: size_of(x) + abs(n)
    if name in ("elu_backward", "sigmoid_backward", "tanh_backward", "softplus_backward", "log_sigmoid_backward",
                "hardswish_backward", "logit_backward"):
        return lambda g, *_: size_of(g) * 4
    if name == "glu_backward":
        return lambda g, x, dim: torch.cat([size_of(g), size_of(g) * (1 + size_of(x.narrow(dim, 0, g.shape[dim])))], dim)
    if name in ("hardsigmoid", "hardswish"):
        return lambda x: size_of(x) + 3
    return None
