"""Elementwise functions of two and three tensors, and of a tensor and a number:
src/cpu/elementwise/elementwise_arithmetic.cpp, elementwise_power.cpp, binary_functions.cpp, real_functions.cpp, comparisons.cpp, bitwise.cpp.

Mixed dtypes, zero-dimensional tensors, numbers of every kind (integer, bool, floating, complex); operands broadcast.
Integers, comparisons and choices are compared with ATen to the bit; floats in float64, per element.
"""
import math

import torch

import case
import elements

DEVICES = ("cpu",)
ALL = elements.FLOATS[1:] + elements.INTEGERS + (torch.bool,)
NUMBERS = ("none",)

# kinds of dtypes: r real (floats, integers, bool), f floats, i integers, b integers and bool, c complex, u wide unsigned,
# 8 float8
EXACT = {
    "eq.Tensor": "rcu8", "ne.Tensor": "rcu8", "lt.Tensor": "r", "le.Tensor": "r", "gt.Tensor": "r", "ge.Tensor": "r",
    "eq.Scalar": "rc", "ne.Scalar": "rc", "lt.Scalar": "r", "le.Scalar": "r", "gt.Scalar": "r", "ge.Scalar": "r",
    "maximum": "ru", "minimum": "ru", "fmax": "ru", "fmin": "ru", "bitwise_and.Tensor": "b", "bitwise_or.Tensor": "b",
    "bitwise_xor.Tensor": "b", "bitwise_left_shift.Tensor": "i", "bitwise_right_shift.Tensor": "i",
    "logical_and": "rc", "logical_or": "rc", "logical_xor": "rc", "gcd": "i", "lcm": "i", "heaviside": "same",
    "nextafter": "f", "copysign.Tensor": "r", "copysign.Scalar": "r", "fmod.Tensor": "r", "fmod.Scalar": "r",
    "floor_divide": "r", "isin.Tensor_Tensor": "r", "isin.Tensor_Scalar": "r", "isin.Scalar_Tensor": "r",
    "complex": "same", "where.self": "rcu8", "clamp": "r", "clamp.Tensor": "r", "clamp_min": "r", "clamp_min.Tensor": "r",
    "clamp_max": "r", "clamp_max.Tensor": "r", "masked_fill.Scalar": "rc", "masked_fill.Tensor": "rc"}
NEAR = {
    "add.Tensor": "rcu", "add.Scalar": "rc", "sub.Tensor": "rcu", "sub.Scalar": "rc", "subtract.Tensor": "rc",
    "subtract.Scalar": "rc", "rsub.Tensor": "rc", "rsub.Scalar": "rc", "mul.Tensor": "rcu8", "mul.Scalar": "rc",
    "div.Tensor": "rc", "div.Scalar": "rc", "div.Tensor_mode": "r", "div.Scalar_mode": "r", "remainder.Tensor": "r",
    "remainder.Scalar": "r", "remainder.Scalar_Tensor": "r", "pow.Tensor_Tensor": "rc", "pow.Tensor_Scalar": "rc",
    "pow.Scalar": "rc", "atan2": "r", "hypot": "f", "logaddexp": "fc", "logaddexp2": "f", "xlogy.Tensor": "r",
    "xlogy.Scalar_Other": "r", "xlogy.Scalar_Self": "r", "special_xlog1py": "r", "ldexp.Tensor": "r", "polar": "same",
    "_add_relu.Tensor": "r", "_add_relu.Scalar": "r", "lerp.Tensor": "f", "lerp.Scalar": "fc", "addcmul": "rc",
    "addcdiv": "fc"}
SHIMS = {"add.Tensor": "add_Tensor", "add.Scalar": "add_Scalar", "mul.Tensor": "mul_Tensor", "mul.Scalar": "mul_Scalar",
         "pow.Tensor_Tensor": "pow_Tensor_Tensor", "pow.Tensor_Scalar": "pow_Tensor_Scalar", "pow.Scalar": "pow_Scalar",
         "gcd": "gcd", "polar": "polar"}


def dtypes(d, kinds, count):
    sets = {"r": ALL, "f": elements.FLOATS[1:], "i": elements.INTEGERS, "b": elements.INTEGERS + (torch.bool,),
            "same": elements.FLOATS[1:4]}
    if kinds == "same":
        return [d.choice(sets["same"])] * count
    kind = "r" if kinds[0] == "r" and d.chance(0.75) else d.choice(kinds)
    if kind == "c":
        first = d.choice(elements.COMPLEX)
        return [first if d.chance(0.7) else d.choice(elements.COMPLEX + ALL) for _ in range(count)]
    if kind == "u":
        return [d.choice(elements.WIDE_UNSIGNED)] * count
    if kind == "8":
        return [d.choice(elements.FLOAT8)] * count
    first = d.choice(sets[kind])
    if d.chance(0.55):
        return [first] * count
    return [d.choice(sets[kind]) for _ in range(count)]


def number(d, like, whole=False):
    """A number for a tensor of that dtype."""
    way = d.random()
    if like.is_complex and way < 0.3:
        return complex(d.choice((0, 1, -2, 0.5)), d.choice((0, 1, -0.75)))
    if whole or way < 0.6:
        return d.choice((0, 1, 2, 3, -1, -2, 7, 100, -100)) if way > 0.1 else d.randrange(-9, 10)
    if way < 0.65:
        return d.chance(0.5)
    if way < 0.7:
        return d.choice((math.inf, -math.inf, math.nan, -0.0))
    return d.choice((0.0, 0.5, -0.5, 1.0, 2.0, 3.0, -1.0, -2.0, 1.5, -2.5, 0.1, 1e-3, 13.7))


def tensor(d, dtype, shape, kind):
    layouts = elements.LAYOUTS
    if dtype.is_floating_point and kind == "half":
        return d.laid_out((d.values(torch.float32, shape, "few") / 2).to(dtype), layouts)
    if not dtype.is_floating_point and not dtype.is_complex and kind in ("normal", "half"):
        kind = d.choice(("few", "few", "wide"))
    return d.tensor(dtype, shape, kind, layouts)


def smallest(dtype):
    return torch.iinfo(dtype).min if not dtype.is_floating_point and not dtype.is_complex and dtype != torch.bool else 0


def draw(d):
    exact = d.chance(0.45)
    table = EXACT if exact else NEAR
    name = d.choice(list(table))
    short, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, short), overload or "default")
    count = 3 if name in ("where.self", "clamp.Tensor", "lerp.Tensor", "addcmul", "addcdiv") else 2
    types = dtypes(d, table[name], count)
    if short == "_add_relu" and types[0] in (torch.bool, torch.uint8, torch.float16, torch.bfloat16):
        return None  # ATen has no maximum of float8 and clamps all to 0
    shapes = elements.broadcast(d, count)
    kind = d.choice(("normal", "normal", "half", "wide", "special"))
    operands = [tensor(d, t, s, kind) for t, s in zip(types, shapes)]
    scalar = "Scalar" in overload or name in ("clamp", "clamp_min", "clamp_max")
    proxied = d.chance(0.7)  # else numbers are passed as floats
    options = {}
    if short in ("add", "sub", "subtract", "rsub", "_add_relu") and (d.chance(0.5) or not proxied):
        options["alpha"] = d.choice((0, 1, 2, -3)) if d.chance(0.6) else number(d, types[0])
        halves = [t for t in types if t in (torch.float16, torch.bfloat16)]
        if halves and isinstance(options["alpha"], float):  # ATen rounds alpha to the half type
            options["alpha"] = torch.tensor(options["alpha"], dtype=halves[0]).item()
    if short in ("addcmul", "addcdiv"):
        options["value"] = d.choice((1, 2, -3)) if d.chance(0.5) else number(d, types[0])
    if overload.endswith("_mode"):
        options["rounding_mode"] = d.choice((None, "floor", "trunc"))
    arguments = operands[:]
    a, b = operands[0], operands[1]
    integers = all(not t.is_floating_point and not t.is_complex for t in types)
    if short in ("floor_divide", "remainder", "fmod", "div") and integers:
        # The least integer divided by -1 crashes ATen.
        if kind == "special" or d.chance(0.9):
            b.masked_fill_(b == 0, 3) if b.dtype != torch.bool else b.fill_(True)
        if any(bool((t == smallest(t.dtype)).any()) for t in (a, b) if t.dtype not in (torch.bool, torch.uint8)):
            for t in (a, b):
                t.masked_fill_(t == -1, 5) if t.dtype not in (torch.bool, torch.uint8) else None
    if scalar:
        # Numbers of unknown kind are passed as floats.
        n = number(d, types[0])
        if short in ("floor_divide", "remainder", "fmod", "div") and integers and (n == 0 or isinstance(n, bool)):
            n = 3
        if name in ("isin.Scalar_Tensor", "remainder.Scalar_Tensor", "pow.Scalar", "xlogy.Scalar_Self"):
            arguments = [n, a]
        elif name == "clamp":
            low, high = d.choice(((n, None), (None, n), (n, number(d, types[0])), (n, n)))
            arguments = [a, low, high]
        elif name == "clamp_min" or name == "clamp_max":
            arguments = [a, n]
        elif name == "lerp.Scalar":
            b = operands[1]
            arguments = [a, b if b.dtype == a.dtype else b.to(a.dtype), n]
        elif name == "masked_fill.Scalar":
            mask = d.tensor(torch.bool, shapes[1], layouts=elements.LAYOUTS)
            arguments = [a, mask, n]
        else:
            arguments = [a, n]
        if d.chance(0.3) and a.dtype.is_floating_point and isinstance(n, float):
            # Some elements equal the number, as the dtype rounds it.
            a = d.laid_out(torch.where(torch.rand(a.shape, generator=d.torch) < 0.3, torch.tensor(n, dtype=torch.float64).to(a.dtype), a),
                           elements.LAYOUTS)
            arguments = [a if v is operands[0] else v for v in arguments]
        if short == "xlogy" and any(isinstance(v, complex) for v in arguments):
            return None
    elif count == 2 and b.dim() == 0 and a.dtype.is_floating_point and b.dtype.is_floating_point and d.chance(0.5):
        a = d.laid_out(torch.where(torch.rand(a.shape, generator=d.torch) < 0.3, b.to(a.dtype), a), elements.LAYOUTS)
        arguments = [a, b]
    if name == "masked_fill.Tensor":
        mask = d.tensor(torch.bool, shapes[1], layouts=elements.LAYOUTS)
        arguments = [a, mask, tensor(d, types[1], [], kind)]
    if name == "where.self":
        flag = torch.bool if d.chance(0.9) else torch.uint8
        arguments = [d.tensor(flag, shapes[0], layouts=elements.LAYOUTS), tensor(d, types[1], shapes[1], kind),
                     tensor(d, types[2], shapes[2], kind)]
    if name == "clamp.Tensor":
        low, high = d.choice(((operands[1], None), (None, operands[1]), (operands[1], operands[2])))
        arguments = [a, low, high]
    if name == "lerp.Tensor":
        weight = operands[2] if d.chance(0.9) else tensor(d, d.choice((torch.float64, types[0])), [], kind)
        arguments = [a, b.to(a.dtype) if d.chance(0.9) else b, weight.to(a.dtype) if weight.dim() else weight]
    if short == "ldexp" and b.dtype == torch.int64:
        arguments = [a, torch.fmod(b, 2 ** 31)]  # ATen only uses the low 32 bits of the exponent
    if short.startswith("isin"):
        options = {"invert": d.chance(0.5), "assume_unique": False}
        tensors = [t for t in arguments if isinstance(t, torch.Tensor)]
        if len(tensors) == 2 and any(t.dtype.is_floating_point for t in tensors):
            # ATen finds different integers that become the same float, depending on whether it sorts.
            arguments = [torch.fmod(t, 256) if isinstance(t, torch.Tensor) and not t.dtype.is_floating_point and t.dtype.itemsize > 1
                         else t for t in arguments]
    proxied = proxied or any(isinstance(v, complex) for v in arguments + list(options.values()))
    label = f"{[t if not isinstance(t, torch.Tensor) else f'{t.dtype} {list(t.shape)} {tuple(t.stride())}' for t in arguments]} {options}"
    label = label.replace("torch.", "")
    first = f"{types[0]} "
    if name in SHIMS and not options and d.chance(0.3) and all(not isinstance(v, (bool, complex)) for v in arguments):
        numbers = [float(v) if isinstance(v, (int, float)) else v for v in arguments]
        if short == "add":
            numbers.append(1.0)
        rest = {"alpha": 1.0} if short == "add" else {}
        call = lambda **o: case.shim(first + label, SHIMS[name], *numbers, torch=lambda *w: operator(*w[:2], **rest), **o)
    else:
        call = lambda **o: case.named(first + label, short, overload, *arguments, proxied=proxied, **options, **o)
        if exact and name in SHIMS:
            return call(zeros=True)
    if short == "floor_divide" and any(t in elements.HALVES for t in types):
        # ATen rounds the steps of the quotient to the half type.
        return call(error=1, each=True)
    if exact:
        return call(zeros=name not in ("maximum", "minimum", "fmax", "fmin") and not short.startswith("clamp"))
    return call(**bounds(name, operator, options))


def size_of(value):
    if not isinstance(value, torch.Tensor):
        return torch.tensor(abs(value), dtype=torch.float64)
    if not value.is_complex():
        return value.double().abs()
    # One part may be finite although the other is not.
    return torch.view_as_real(value.to(torch.complex128).resolve_conj()).nan_to_num(0, 0, 0).norm(dim=-1)


def bounds(name, operator, options):
    short = name.partition(".")[0]
    if short == "_add_relu":
        # The last elements of ATen's rows turn NaN into 0; its vectors keep NaN.
        return dict(bounds("add", operator, options), same_nan=False)
    if short in ("add", "sub", "subtract", "rsub"):
        alpha = abs(options.get("alpha", 1))
        swap = short == "rsub"
        return dict(error=2, each=True, magnitude=lambda a, b, *_: (
            size_of(a) * (alpha if swap else 1) + size_of(b) * (1 if swap else alpha)))
    if short in ("mul", "div") and "mode" not in name:
        return dict(error=3, each=True, same_nan=None, magnitude=lambda a, b: size_of(operator(a, b)))
    if short == "div":
        return dict(error=1, each=True)
    if short == "remainder":
        return dict(error=1, each=True, magnitude=lambda a, b: size_of(b) + size_of(operator(a, b)))
    if short in ("logaddexp", "logaddexp2"):
        return dict(error=4, each=True, same_nan=None, magnitude=lambda a, b: size_of(a) + size_of(b) + 1)
    if short == "lerp":
        return dict(error=4, each=True, same_nan=None, magnitude=lambda a, b, w: (
            size_of(a) + size_of(b - a) * (1 + size_of(w))))
    if short == "addcmul":
        value = abs(options["value"])
        return dict(error=4, each=True, same_nan=None, magnitude=lambda s, a, b: size_of(s) + value * size_of(a) * size_of(b))
    if short == "addcdiv":
        value = abs(options["value"])
        return dict(error=6, each=True, same_nan=None, magnitude=lambda s, a, b: size_of(s) + value * size_of(a) / size_of(b))
    if short == "polar":
        return dict(error=3, each=True, same_nan=None, magnitude=lambda a, b: size_of(a))
    if short == "pow":
        def exact(*values):  # ATen rounds an integer exponent to float32
            wide = [v.double() if isinstance(v, torch.Tensor) and not v.is_complex() else v for v in values]
            return operator(*wide)
        return dict(error=4, each=True, same_nan=None, exact=exact, magnitude=lambda a, b: size_of(operator(a, b)))
    return dict(error=6, each=True)
