"""Matrices for random cases of linear algebra, and comparison of their factors: shared by families/linear_*.py.

Factors are not unique, so their product is compared with the matrix, and solutions by their residual, both in float64 and relative to
ATen's; shapes, strides, info and structure (triangles, permutations, orthonormal columns) to the bit or to rounding.
"""
import torch

import abi
import case

LAYOUTS = ("packed", "packed", "permuted", "permuted", "sliced", "offset", "padded", "expanded")
REAL, ALL = (torch.float32, torch.float64), (torch.float32, torch.float32, torch.float64, torch.float64, torch.complex64, torch.complex128)
LIMITS = (2, 3, 8, 9, 16, 32, 33, 64, 65, 96)


def size(d, low=0, high=140):
    if d.chance(0.04):
        return d.choice((192, 200, 257))
    return d.size(*LIMITS, low=low, high=high if d.chance(0.5) else 40)


def batch(d):
    return d.choice(([], [], [], [1], [2], [3], [2, 2], [0] if d.chance(0.1) else [5]))


def wide(t):
    return t.to(torch.complex128 if t.is_complex() else torch.float64)


def finite(m):
    return m.nan_to_num(0, 0, 0)


def norm(m):
    """One per matrix, for all its elements."""
    m = wide(m)
    return torch.linalg.vector_norm(m.abs(), dim=(-2, -1), keepdim=True) if m.numel() else torch.zeros([*m.shape[:-2], 1, 1], dtype=torch.float64)


def layout_of(*tensors):
    """Strides that must be equal, except where they mean nothing."""
    return torch.tensor([s if n > 1 else -1 for t in tensors for s, n in zip(t.stride(), t.shape)] if all(t.numel() for t in tensors) else [])


def adjoint(m):
    return m.transpose(-2, -1).conj()


def eye(n, like):
    return torch.eye(n, dtype=like.dtype).expand(*like.shape[:-2], n, n)


def composed(label, name, function, arguments, exact, error, magnitude, **options):
    """function(call, *arguments) -> tensors, where `call` is ours or ATen's; `exact` takes wide ones."""
    operator = getattr(torch.ops.aten, name)

    def aten(*values, **keywords):
        return operator(*values, **keywords)

    def ours(*values, **keywords):
        found = abi.call_named(name, "", *values, **keywords)
        return found[0] if len(found) == 1 else tuple(found)

    def level(tensors, dtype):
        return [narrow(t, dtype) for t in tensors]

    dtype = next(t.dtype for t in arguments if isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex()))
    made = case.Case(f"{name} {label}", lambda *v: level(function(ours, *v), dtype), lambda *v: level(function(aten, *v), dtype),
                     list(arguments), error=error, magnitude=magnitude, exact=exact, **options)
    return made


def narrow(t, dtype):
    """The precision of the arguments, by which errors are measured."""
    if t.is_complex():
        return t.to(torch.complex64 if dtype in (torch.float32, torch.complex64) else torch.complex128)
    if t.is_floating_point():
        return t.to(torch.float32 if dtype == torch.complex64 else torch.float64 if dtype == torch.complex128 else dtype)
    return t


def by_function(label, name, function, arguments, exact, error, magnitude, **options):
    """The same for operators with only a C function."""
    made = composed(label, name, function, arguments, exact, error, magnitude, **options)

    def ours(*values):
        found = abi.call(name, *values)
        return found[0] if len(found) == 1 else tuple(found)

    dtype = arguments[0].dtype
    made.ours = lambda *v: [narrow(t, dtype) for t in function(ours, *v)]
    return made


def matrices(d, dtype, m, n, kind=None, layouts=LAYOUTS, lead=None):
    kind = kind or d.choice(("normal", "normal", "normal", "few", "graded", "low rank", "zero column"))
    lead = batch(d) if lead is None else lead
    shape = [*lead, m, n]
    if kind == "low rank":
        r = max(min(m, n) // 2, 1)
        x = wide(d.values(dtype, [*lead, m, r])) @ wide(d.values(dtype, [*lead, r, n]))
    elif kind == "graded":
        x = wide(d.values(dtype, shape)) * torch.logspace(-3, 3, m, dtype=torch.float64).unsqueeze(-1)
    elif kind == "zero column":
        x = wide(d.values(dtype, shape))
        if n:
            x[..., d.randrange(n)] = 0
    elif kind == "solid":  # well conditioned
        x = wide(d.values(dtype, shape)) / max(n, 1) ** 0.5
        for i in range(min(m, n)):
            x[..., i, i] += d.choice((2, -2))
    else:
        x = wide(d.values(dtype, shape, kind))
    if kind in ("solid", "normal", "graded", "zero column"):
        layouts = [way for way in layouts if way != "expanded"]  # it has equal rows or columns
    return d.laid_out(x.to(dtype), layouts), kind


def few_columns(d):
    return d.size(1, 2, 3, 4, 16, 17, 32, high=70)


def right_sides(d, dtype, lead, n, columns, left):
    if d.chance(0.2) and lead:
        lead = d.choice(([], [1] * len(lead)))
    return d.tensor(dtype, [*lead, n, columns] if left else [*lead, columns, n], d.choice(("normal", "few", "wide")), LAYOUTS)


def solution_sizes(a, b, left):
    """|A| |X| + |B|, which bounds the residual."""
    a, b = wide(a), wide(b)
    x = torch.linalg.solve(a, b, left=left) if a.numel() and b.numel() else b
    return norm(a) * norm(x) + norm(b)


def other_triangle(d, a, upper):
    """A Hermitian matrix whose other triangle holds other numbers."""
    n = a.shape[-1]
    other = torch.ones(n, n, dtype=torch.bool).tril(-1) if upper else torch.ones(n, n, dtype=torch.bool).triu(1)
    return torch.where(other, torch.full((), 1e6).to(a.dtype), a)


def positive(d, dtype, n, lead):
    m = wide(d.values(dtype, [*lead, n, n])) / max(n, 1) ** 0.5
    return m @ adjoint(m) + d.choice((0.01, 1.0)) * torch.eye(n, dtype=m.dtype)
