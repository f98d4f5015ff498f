"""Elementwise functions of one tensor: src/cpu/elementwise/functions.cpp, real_functions.cpp, elementwise_unary.cpp, comparisons.cpp.

Compared with ATen in float64, per element: a few units in the last place, or three times ATen's own error. Tests of
elements and rounding to integers are compared to the bit, with the signs of zeros.
Limits: short functions of float32 up to angles of 1e5 and exponents of 87 (708 for float64), for normal numbers (logarithms);
beyond, SLEEF's, element by element, in blocks of 1024.
"""
import math

import torch

import case
import elements

DEVICES = ("cpu",)

# name: range of interesting arguments, and units in the last place
REAL = {
    "acos": ("unit", 4), "acosh": ("above_one", 4), "asin": ("unit", 4), "asinh": ("wide", 4), "atan": ("wide", 4),
    "atanh": ("unit", 4), "cos": ("angle", 4), "cosh": ("power", 4), "deg2rad": ("wide", 2), "erf": ("wide", 4),
    "erfc": ("power", 6), "exp": ("power", 4), "exp2": ("power", 4), "expm1": ("power", 4), "log": ("positive", 4),
    "log10": ("positive", 4), "log1p": ("log1p", 4), "log2": ("positive", 4), "rad2deg": ("wide", 2),
    "reciprocal": ("wide", 2), "rsqrt": ("positive", 3), "sigmoid": ("power", 4), "sin": ("angle", 4), "sinc": ("angle", 8),
    "sinh": ("power", 4), "sqrt": ("positive", 2), "tan": ("angle", 4), "tanh": ("power", 4), "lgamma": ("gamma", 8),
    "logit": ("fraction", 8), "silu": ("power", 6), "angle": ("wide", 2)}
COMPLEX = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "exp2", "expm1", "log", "log10",
           "log1p", "log2", "reciprocal", "rsqrt", "sigmoid", "sin", "sinc", "sinh", "sqrt", "tan", "tanh", "angle",
           "abs", "neg", "sgn", "conj_physical", "_conj_physical", "isnan", "isinf", "logical_not", "nan_to_num", "silu")
EXACT = ("abs", "ceil", "floor", "frac", "neg", "round", "sgn", "sign", "trunc", "isnan", "isinf", "isposinf", "isneginf",
         "signbit", "logical_not", "bitwise_not", "conj_physical", "_conj_physical", "nan_to_num", "round.decimals",
         "frexp.Tensor", "relu", "isfinite", "alias_copy", "positive")
OWNED = [n for n in EXACT if n not in ("isfinite", "alias_copy", "positive")]


def argument(d, kind, dtype, shape):
    g = d.torch
    if dtype.is_complex:
        part = torch.float64
        x = torch.complex(argument(d, kind, part, shape), argument(d, kind, part, shape))
        return x.to(dtype)
    x = torch.randn(shape, generator=g, dtype=torch.float64)
    u = torch.rand(shape, generator=g, dtype=torch.float64)
    big = {torch.float16: 9.0, torch.float64: 600.0}.get(dtype, 80.0)
    if kind == "unit":
        x = u * 2.02 - 1.01
    elif kind == "above_one":
        x = 1 + u * torch.exp(x * 4) - 0.01
    elif kind == "wide":
        x = x * torch.exp(torch.randn(shape, generator=g, dtype=torch.float64) * (2 if dtype == torch.float16 else 8))
    elif kind == "angle":
        x = x * 10 ** d.choice((-3, 0, 0, 1, 2) + ((4, 5, 9) if dtype != torch.float16 else (2,)))
    elif kind == "power":
        x = x * d.choice((1e-3, 0.3, 1.0, 5.0, big / 4, big))
    elif kind == "positive":
        x = torch.exp(x * d.choice((0.01, 1, 5, 20 if dtype != torch.float16 else 5))) * (u > 0.01).double() - (u > 0.98).double()
    elif kind == "log1p":
        x = torch.exp(x * 6) * u.sub(0.5).sign() * d.choice((1e-4, 0.1, 1)) - 1e-3
    elif kind == "gamma":
        x = x * d.choice((1, 10, 100)) if dtype != torch.float16 else x * 10
    elif kind == "fraction":
        x = u
    x = x.to(dtype if dtype.is_floating_point else torch.float64)
    if d.chance(0.15) and x.numel():
        odd = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5]
        if dtype.is_floating_point:
            info = torch.finfo(dtype)
            odd += [info.max, info.min, info.smallest_normal, info.smallest_normal * info.eps, 1 + info.eps, -1 + info.eps]
        at = torch.rand(shape, generator=g) < d.choice((0.03, 0.3))
        x = torch.where(at, torch.tensor(odd, dtype=torch.float64)[torch.randint(len(odd), shape, generator=g)].to(x.dtype), x)
    return x


def draw(d):
    exact = d.chance(0.4)
    name = d.choice(OWNED if exact else list(REAL))
    kinds = ["float"] * 12 + ["integer"] * 4 + (["complex"] * 4 if name in COMPLEX else [])
    kind = d.choice(kinds)
    shape = elements.sizes(d)
    layouts = elements.LAYOUTS
    if kind == "integer":
        dtype = d.choice(elements.INTEGERS + (torch.bool,))
        x = d.tensor(dtype, shape, d.choice(("normal", "few", "wide")), layouts)
    else:
        dtype = d.choice(elements.FLOATS if kind == "float" else elements.COMPLEX)
        where = REAL[name][0] if not exact else d.choice(("wide", "few", "angle"))
        values = d.values(dtype, shape, "few") if where == "few" else argument(d, where, dtype, shape)
        if where == "few" and dtype.is_floating_point:
            values = values / 2
        x = d.laid_out(values, layouts)
    label = f"{dtype} {shape} {tuple(x.stride())}"
    short, _, overload = name.partition(".")
    options = {}
    if name == "logit":
        options["eps"] = d.choice((None, 1e-3, 0.0, 0.25, -1.0))
    if name == "round.decimals":
        options["decimals"] = d.choice((-3, -1, 0, 1, 2, 5))
    if name == "nan_to_num":
        for key in ("nan", "posinf", "neginf"):
            options[key] = d.choice((None, None, 0.0, 3.5, -1e4))
    if name == "conj_physical" and not dtype.is_complex:
        return None  # a real tensor is returned itself
    proxied = d.chance(0.3)
    if exact:
        if name == "sgn" and dtype.is_complex or name == "abs" and dtype.is_complex:
            return case.named(label, short, overload, x, error=4, each=True, proxied=proxied, same_nan=None,
                              magnitude=elements.relative(getattr(torch, short)), **options)
        if name == "round.decimals":
            # ATen rounds half types between the steps.
            return case.named(f"{label} {options}", short, overload, x, proxied=proxied, **options)
        # For complex numbers, ATen's vectors subtract from 0 and lose the sign of a zero; its last elements keep it.
        return case.named(f"{label} {options}", short, overload, x, zeros=name != "neg" or not dtype.is_complex,
                          proxied=proxied, **options)
    operator = getattr(getattr(torch.ops.aten, short), overload or "default")
    magnitude = elements.relative(lambda v: operator(v, **options)) if dtype.is_complex else None
    if name == "sinc":  # the angle is rounded
        magnitude = lambda v: torch.sinc(v).abs() * (1 + 3.15 * v.abs() if v.dtype != torch.bool else 1)
    if name == "acos" and dtype.is_complex:  # ATen is only as exact as a quarter turn
        magnitude = lambda v: torch.acos(v).abs() + 1
    if name == "silu" and dtype.is_complex:  # 0 where the exponential overflows
        magnitude = lambda v: torch.nn.functional.silu(v).abs() + v.abs() / torch.finfo(dtype).max / torch.finfo(dtype).eps
    if name == "abs" and not dtype.is_complex and d.chance(0.5):
        return case.shim(label, "abs", x, torch=torch.abs, zeros=True)
    if name == "angle" and d.chance(0.5):
        return case.shim(label, "angle", x, torch=torch.angle, error=2, each=True)
    rest = {}
    if kind == "integer":
        rest["exact"] = lambda v: operator(v.double(), **options)
    # ATen's complex quotients by infinity give NaN instead of 0.
    return case.named(f"{label} {options or ''}", short, overload, x, error=REAL[name][1], each=True, magnitude=magnitude,
                      proxied=proxied, same_nan=None if dtype.is_complex else True, **rest, **options)
