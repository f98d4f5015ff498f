"""_foreach_*: an operator over lists of tensors: src/custom_ops/aten/lists.cpp. Compared with ATen's list operators.

Lists of one to five tensors of different sizes, layouts and dtypes. The second operand is a list, a number, one number per
tensor, or a tensor of numbers. ATen has a fast path if all tensors are alike, and a slow one.
"""
import torch

import case
import elements
from unary import argument

DEVICES = ("cpu",)
UNARY = {"abs": None, "acos": "unit", "asin": "unit", "atan": "wide", "ceil": "wide", "cos": "angle", "cosh": "power", "erf": "wide",
         "erfc": "power", "exp": "power", "expm1": "power", "floor": "wide", "frac": "wide", "lgamma": "gamma", "log": "positive",
         "log10": "positive", "log1p": "log1p", "log2": "positive", "neg": "wide", "reciprocal": "wide", "round": "wide",
         "rsqrt": "positive", "sigmoid": "power", "sign": "wide", "sin": "angle", "sinh": "power", "sqrt": "positive", "tan": "angle",
         "tanh": "power", "trunc": "wide"}
EXACT = ("abs", "ceil", "floor", "frac", "neg", "round", "sign", "trunc")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "clamp_max", "clamp_min", "pow")


def draw(d):
    count = d.choice((1, 1, 2, 3, 5))
    dtype = d.choice(elements.FLOATS)
    alike = d.chance(0.5)
    first = elements.sizes(d, 600)
    shapes = [first if alike else elements.sizes(d, 600) for _ in range(count)]
    layouts = ("packed",) if d.chance(0.5) else elements.LAYOUTS
    way = d.choice(("unary", "unary", "binary", "binary", "ternary", "lerp", "copy", "reduced"))
    label = f"{dtype} {shapes}"

    def tensors(kind="normal", of=None):
        return [d.laid_out(d.values(of or dtype, s, kind), layouts) for s in shapes]

    def near(error, **more):
        return dict(error=error, each=True, proxied=True, lists=count, **more)

    if way == "unary":
        name = d.choice(list(UNARY))
        xs = [d.laid_out(argument(d, UNARY[name] or "wide", dtype, s), layouts) for s in shapes]
        if name in EXACT:
            return case.named(label, f"_foreach_{name}", "", xs, proxied=True, lists=count)
        return case.named(label, f"_foreach_{name}", "", xs, **near(6))
    if way == "binary":
        return binary(d, label, count, dtype, tensors, near)
    if way == "ternary":
        name = d.choice(("addcmul", "addcdiv"))
        xs, first, second = tensors(), tensors(), tensors("positive" if name == "addcdiv" else "normal")
        operator = (lambda a, b: a.abs() * b.abs()) if name == "addcmul" else (lambda a, b: a.abs() / b.abs())

        def magnitude(s, a, b, values):
            values = [values] * count if isinstance(values, (int, float)) else list(values) if not isinstance(values, torch.Tensor) else values.tolist()
            return [x.abs().double() + abs(v) * operator(p.double(), q.double()) for x, p, q, v in zip(s, a, b, values)]

        overload = d.choice(("Scalar", "ScalarList", "Tensor"))
        values = {"Scalar": d.choice((1, 2, -0.5)), "ScalarList": [d.choice((1.0, 2.0, -0.5)) for _ in range(count)],
                  "Tensor": torch.randn(count, generator=d.torch, dtype=torch.float64)}[overload]
        return case.named(f"{label} {values}", f"_foreach_{name}", overload, xs, first, second, values, **near(8, magnitude=magnitude))
    if way == "lerp":
        xs, ends, weights = tensors(), tensors(), tensors("positive")
        return case.named(label, "_foreach_lerp", "List", xs, ends, weights, **near(
            8, magnitude=lambda a, b, w: [p.abs().double() + 2 * (q - p).abs() for p, q in zip(a, b)]))
    if way == "copy":
        name = d.choice(("clone", "copy", "zero"))
        xs = tensors("special")
        if name == "copy":
            return case.named(label, "_foreach_copy", "", xs, tensors("wide", d.choice((dtype, torch.float64))), proxied=True, lists=count)
        return case.named(label, f"_foreach_{name}", "", xs, proxied=True, lists=count)
    name = d.choice(("norm", "powsum", "max"))
    if name == "max":
        if any(0 in s for s in shapes):
            return None
        return case.named(label, "_foreach_max", "", tensors(), proxied=True, lists=count)
    order = d.choice((0, 1, 2, 3.5, float("inf") if name == "norm" else 2))
    if any(0 in s for s in shapes):
        return None
    longest = max(torch.Size(s).numel() for s in shapes)
    given = tensors()
    # Repeated values all round the same way.
    return case.named(f"{label} order {order}", f"_foreach_{name}", "Scalar", given, order, **near(
        6 + longest ** 0.5 + (longest / 4 if any(0 in t.stride() for t in given) else 0), magnitude=lambda xs, p: [getattr(torch.ops.aten, f"_foreach_{name}").Scalar([x.double()], p)[0] for x in xs]))


def binary(d, label, count, dtype, tensors, near):
    name = d.choice(BINARY)
    overload = d.choice(("List", "Scalar", "ScalarList") + (("ScalarAndTensor",) if name == "pow" else ()))
    xs = tensors("positive" if name == "pow" else "normal")
    options = {}
    if overload == "List":
        ys = tensors(d.choice(("normal", "positive")))
        arguments = [xs, ys]
        if name in ("add", "sub") and d.chance(0.5):
            options["alpha"] = d.choice((2, 0.5, -1))
    elif overload == "Scalar":
        arguments = [xs, d.choice((2, 0.5, -1.5, 3))]
    elif overload == "ScalarList":
        arguments = [xs, [d.choice((2.0, 0.5, -1.5)) for _ in range(count)]]
    else:
        arguments = [d.choice((2.0, 0.5)), xs]
    if name in ("maximum", "minimum", "clamp_max", "clamp_min"):
        return case.named(f"{label} {arguments[1] if overload != 'List' else ''}", f"_foreach_{name}", overload, *arguments, proxied=True, lists=count)
    rest = {}
    if name in ("add", "sub"):
        alpha = abs(options.get("alpha", 1))

        def magnitude(a, b):
            b = list(b) if isinstance(b, (list, tuple)) else [b] * count
            return [x.abs().double() + alpha * torch.as_tensor(abs(y), dtype=torch.float64) for x, y in zip(a, b)]

        rest["magnitude"] = magnitude
    return case.named(f"{label} {options} {overload}", f"_foreach_{name}", overload, *arguments, **near(4, **rest), **options)
