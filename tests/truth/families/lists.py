"""Operators on lists, each tensor for itself (_foreach_*): src/custom_ops/aten/lists.cpp.

Integers to the bit, floats near ATen's in float64. Varies lists with several dtypes, shapes and layouts (ATen's slow path) and
lists of one; numbers that promote; empty tensors.
"""
import torch

import case
from indexing import LAYOUTS

DEVICES = ("cpu",)
FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = (torch.int64, torch.int32, torch.uint8)
UNARY = {"abs": "normal", "acos": "unit", "asin": "unit", "atan": "normal", "ceil": "normal", "cos": "normal", "cosh": "normal", "erf": "normal", "erfc": "normal",
         "exp": "normal", "expm1": "normal", "floor": "normal", "frac": "normal", "lgamma": "positive", "log": "positive", "log10": "positive",
         "log1p": "positive", "log2": "positive", "neg": "normal", "reciprocal": "positive", "round": "normal", "rsqrt": "positive", "sigmoid": "normal",
         "sign": "normal", "sin": "normal", "sinh": "normal", "sqrt": "positive", "tan": "unit", "tanh": "normal", "trunc": "normal", "zero": "normal",
         "clone": "special"}


def half(dtype):
    return 2 ** 13 if dtype == torch.float16 else 2 ** 16 if dtype == torch.bfloat16 else 1


def draw(d):
    count = d.choice((1, 2, 3, 5))
    dtypes = [d.choice(FLOATS)] * count if d.chance(0.8) else [d.choice(FLOATS) for _ in range(count)]
    shapes = [d.shape(d.choice((0, 1, 2, 3)), d.choice((20, 500, 3000)), (2, 8, 16, 64), low=0 if d.chance(0.05) else 1) for _ in range(count)]
    layouts = ("packed",) if d.chance(0.4) else LAYOUTS

    def tensors(kind="normal", own=None, layouts=layouts):
        made = []
        for dtype, shape in zip(own or dtypes, shapes):
            t = d.values(dtype, shape, kind if kind != "unit" else "normal")
            if kind == "unit":
                t = torch.tanh(t.double()).mul(0.9).to(dtype)
            made.append(d.laid_out(t, layouts))
        return made

    worst = max(half(t) for t in dtypes)
    label = f"{[str(t)[6:] for t in dtypes]} {shapes}"
    op = d.choice(("unary", "unary", "binary", "binary", "scalar", "scalar", "scalars", "three", "max", "norm", "powsum", "lerp", "copy", "mm", "integers"))
    near = dict(error=16.0 * worst)
    if op == "unary":
        name = d.choice(list(UNARY))
        how = near if name not in ("ceil", "floor", "round", "trunc", "zero", "clone", "sign", "neg", "abs", "frac") else {}
        return case.named(label, f"_foreach_{name}", "", tensors(UNARY[name]), **how)
    if op == "binary":
        name = d.choice(("add", "sub", "mul", "div", "clamp_max", "clamp_min", "maximum", "minimum", "pow"))
        a, b = tensors("positive" if name == "pow" else "normal"), tensors("positive" if name == "div" else "normal")
        options = dict(alpha=d.choice((1, 2, -0.5))) if name in ("add", "sub") else {}
        how = near if name != "add" and name != "sub" else near | dict(
            magnitude=lambda x, y: [i.abs() + j.abs() * abs(options["alpha"]) for i, j in zip(x, y)])
        return case.named(label, f"_foreach_{name}", "List", a, b, **options, **how)
    if op in ("scalar", "scalars"):
        name = d.choice(("add", "sub", "mul", "div", "clamp_max", "clamp_min", "maximum", "minimum", "pow"))
        x = tensors("positive" if name == "pow" else "normal")
        numbers = (2.0, 0.5, -1.5, 3.0)
        how = dict(near)
        if name in ("add", "sub"):
            how["magnitude"] = lambda x, s: [i.abs() + 3 for i in x]
        if op == "scalar":
            return case.named(label, f"_foreach_{name}", "Scalar", x, d.choice(numbers), **how)
        return case.named(label, f"_foreach_{name}", "ScalarList", x, [d.choice(numbers) for _ in x], **how)
    if op == "three":
        name, form = d.choice(("addcdiv", "addcmul")), d.choice(("Scalar", "ScalarList", "Tensor"))
        a, b, c = tensors(), tensors(), tensors("positive")
        value = {"Scalar": d.choice((1.0, 0.5, -2.0)), "ScalarList": [d.choice((1.0, 0.5, -2.0)) for _ in a],
                 "Tensor": torch.tensor([d.choice((1.0, 0.5, -2.0)) for _ in a])}[form]
        return case.named(f"{label} {form}", f"_foreach_{name}", form, a, b, c, value, error=32.0 * worst,
                          magnitude=lambda x, y, z, v: [i.abs() + 2 * (j.abs() / k if name == "addcdiv" else j.abs() * k) for i, j, k in zip(x, y, z)])
    if op == "max":
        if any(0 in s for s in shapes):
            return None
        return case.named(label, "_foreach_max", "", tensors("special" if d.chance(0.3) else "normal"))
    if op in ("norm", "powsum"):
        largest = max(torch.Size(s).numel() for s in shapes)
        given = tensors()
        repeated = any(0 in t.stride() for t in given)  # repeated values all round the same way
        return case.named(label, f"_foreach_{op}", "Scalar", given, d.choice((1, 2) if op == "powsum" else (1, 2, 2, 0.5, float("inf"))),
                          error=8 + 4 * largest ** 0.5 + (largest / 4 if repeated else 0))
    if op == "lerp":
        return case.named(label, "_foreach_lerp", "List", tensors(), tensors(), tensors("positive"), error=16.0 * worst,
                          magnitude=lambda a, b, w: [2 * (x.abs() + y.abs()) for x, y in zip(a, b)])
    if op == "copy":
        return case.named(label, "_foreach_copy", "", tensors(layouts=("packed", "permuted", "sliced", "padded", "expanded")), tensors("special"), False, zeros=True)
    if op == "mm":
        m, k, n = (d.size(2, 8, low=1, high=30) for _ in range(3))
        dtype = d.choice(FLOATS)
        a = [d.tensor(dtype, [m, k], "normal", layouts) for _ in range(count)]
        b = [d.tensor(dtype, [k, n], "normal", layouts) for _ in range(count)]
        return case.named(f"{dtype} {m} {k} {n} x {count}", "_foreach_mm", "", a, b, error=4 + 2 * k ** 0.5,
                          magnitude=lambda x, y: [i.abs() @ j.abs() for i, j in zip(x, y)])
    dtypes = [d.choice(WHOLE)] * count
    label = f"{dtypes[0]} {shapes}"
    name = d.choice(("mul", "maximum", "minimum"))  # alpha would be passed as a float
    if d.chance(0.5):
        return case.named(label, f"_foreach_{name}", "List", tensors("wide", dtypes), tensors("wide", dtypes))
    name = d.choice(("abs", "neg", "sign"))
    return case.named(label, f"_foreach_{name}", "", tensors("wide", dtypes))
