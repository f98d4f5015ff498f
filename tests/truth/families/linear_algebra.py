"""Factorisations, solutions and what rests on them: src/ops/linalg_*.cpp, factorise_*.cpp.

Factors are not unique: their products are compared with the matrix, solutions by their residuals, both in float64 and beside what ATen
leaves; shapes, strides, info and structure (triangles, permutations, orthonormal columns) to the bit or to rounding. What an
operator is not to read (the other triangle, the diagonal of unit triangles) holds numbers that would show.

Limits: LU by halves from 9 columns and 1024 elements on, 16 and 8 columns at its turns; triangles in one piece up to 64 (kBase), stripes
of 16 columns, up to 3 columns one by one; squares of triangles in one piece up to 96; reflectors by 32, in one panel up to 64;
symmetric eigenvalues by LAPACK alone below 3 and far from 1; complex matrices by LAPACK alone; the products' own limits (gemm.cpp).
"""
import math

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
    """Of each matrix, one for all its elements."""
    m = wide(m)
    return torch.linalg.vector_norm(m.abs(), dim=(-2, -1), keepdim=True) if m.numel() else torch.zeros([*m.shape[:-2], 1, 1], dtype=torch.float64)


def layout_of(*tensors):
    """Strides that are to be the same, but where they mean nothing."""
    return torch.tensor([s if n > 1 else -1 for t in tensors for s, n in zip(t.stride(), t.shape)] if all(t.numel() for t in tensors) else [])


def adjoint(m):
    return m.transpose(-2, -1).conj()


def eye(n, like):
    return torch.eye(n, dtype=like.dtype).expand(*like.shape[:-2], n, n)


def composed(label, name, function, arguments, exact, error, magnitude, **options):
    """function(call, *arguments) -> tensors, with `call` one of ours or ATen's; exact likewise, of what is wide."""
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
    """Of the precision of the arguments, by which errors are measured."""
    if t.is_complex():
        return t.to(torch.complex64 if dtype in (torch.float32, torch.complex64) else torch.complex128)
    if t.is_floating_point():
        return t.to(torch.float32 if dtype == torch.complex64 else torch.float64 if dtype == torch.complex128 else dtype)
    return t


def by_function(label, name, function, arguments, exact, error, magnitude, **options):
    """The same of what has a C function alone."""
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
        layouts = [way for way in layouts if way != "expanded"]  # whose rows or columns are the same
    return d.laid_out(x.to(dtype), layouts), kind


def draw(d):
    return d.choice((lu, lu, lu_solve, solve, inverse, determinant, triangular, triangular, cholesky, cholesky, cholesky_solve,
                     cholesky_inverse, qr, qr, geqrf, householder, ormqr, eigh, eigh, eig, svd, svd, ldl, exponential, pseudo_inverse,
                     unpack, roots, polar, errors, combination))(d)


def lu(d):
    dtype, m, n = d.choice(ALL), size(d), size(d)
    a, kind = matrices(d, dtype, m, n)
    k = min(m, n)
    label = f"{dtype} {list(a.shape)} {a.stride()} {kind}"
    eps_terms = 8 + max(m, n)

    def structure(l, u):
        unit = torch.allclose(torch.diagonal(l, dim1=-2, dim2=-1), torch.ones((), dtype=l.dtype))
        zeros = bool((l.triu(1) == 0).all()) and bool((u.tril(-1) == 0).all())
        bounded = bool((l.abs() <= 1.0001).all()) if not l.is_complex() else True
        return torch.tensor([unit, zeros, bounded])

    if d.chance(0.4):
        def run(call, a):
            p, l, u = call(a)
            right = torch.tensor(bool((p.sum(-1) == 1).all()) and bool((p.sum(-2) == 1).all()) and bool(((p == 0) | (p == 1)).all()))
            return [wide(p) @ wide(l) @ wide(u), structure(l, u), right, layout_of(p, l, u)]

        return composed(label, "linalg_lu", run, [a], lambda v: [v] + 3 * [torch.zeros(())], eps_terms,
                        lambda v: [norm(v)] + 3 * [torch.zeros(())], strides=False)

    def run(call, a):
        packed, pivots, info = call(a)
        if packed.numel() == 0:
            return [packed, info, layout_of(packed, pivots)]
        p, l, u = torch.lu_unpack(packed, pivots)
        exact_zero = info if kind == "zero column" and m >= n else torch.zeros((), dtype=torch.int32)
        return [wide(p) @ wide(l) @ wide(u), structure(l, u), exact_zero, layout_of(packed, pivots)]

    if m == 0 or n == 0 or 0 in a.shape:
        return composed(label, "linalg_lu_factor_ex", run, [a], lambda v: [v] + 2 * [torch.zeros(())], eps_terms,
                        lambda v: [norm(v)] + 2 * [torch.zeros(())], strides=False)
    return composed(label, "linalg_lu_factor_ex", run, [a], lambda v: [v] + 3 * [torch.zeros(())], eps_terms,
                    lambda v: [norm(v)] + 3 * [torch.zeros(())], strides=False)


def right_sides(d, dtype, lead, n, columns, left):
    if d.chance(0.2) and lead:
        lead = d.choice(([], [1] * len(lead)))
    return d.tensor(dtype, [*lead, n, columns] if left else [*lead, columns, n], d.choice(("normal", "few", "wide")), LAYOUTS)


def few_columns(d):
    return d.size(1, 2, 3, 4, 16, 17, 32, high=70)


def solution_sizes(a, b, left):
    """|A| |X| + |B| of the solution, for what a residual may be."""
    a, b = wide(a), wide(b)
    x = torch.linalg.solve(a, b, left=left) if a.numel() and b.numel() else b
    return norm(a) * norm(x) + norm(b)


def lu_solve(d):
    dtype, n, columns, left, adjoint_of = d.choice(ALL), size(d, 1), few_columns(d), d.chance(0.6), d.chance(0.4)
    a, _ = matrices(d, dtype, n, n, "solid")
    packed, pivots = torch.linalg.lu_factor(a)
    packed = d.laid_out(packed.cpu(), ("packed", "permuted", "sliced"))
    b = right_sides(d, dtype, list(a.shape[:-2]), n, columns, left)
    p, l, u = torch.lu_unpack(packed, pivots)
    full = wide(p) @ wide(l) @ wide(u)
    of = adjoint(full) if adjoint_of else full

    def run(call, packed, pivots, b):
        x = call(packed, pivots, b, left=left, adjoint=adjoint_of)
        return [of @ wide(x) if left else wide(x) @ of, layout_of(x)]

    return composed(f"{dtype} {list(a.shape)} {list(b.shape)} {packed.stride()} {b.stride()} left {left} adjoint {adjoint_of}",
                    "linalg_lu_solve", run, [packed, pivots, b],
                    lambda packed, pivots, b: [b.expand(torch.broadcast_shapes(of.shape[:-2], b.shape[:-2]) + b.shape[-2:]),
                                               torch.zeros(())], 8 + n,
                    lambda packed, pivots, b: [solution_sizes(of, b.expand(torch.broadcast_shapes(of.shape[:-2], b.shape[:-2]) + b.shape[-2:]), left),
                                               torch.zeros(())], strides=False)


def solve(d):
    dtype, n, columns, left = d.choice(ALL), size(d, 1), few_columns(d), d.chance(0.6)
    singular = d.chance(0.1)
    a, kind = matrices(d, dtype, n, n, "zero column" if singular else d.choice(("solid", "solid", "normal")))
    lead = list(a.shape[:-2])
    vector = left and d.chance(0.15)
    b = d.tensor(dtype, [*lead, n], "normal", LAYOUTS) if vector else right_sides(d, dtype, lead, n, columns, left)

    def run(call, a, b):
        x, packed, pivots, info = call(a, b, left=left)
        if singular:
            return [info, layout_of(x, packed, pivots)]
        p, l, u = torch.lu_unpack(packed, pivots)
        columns_of = x.unsqueeze(-1) if vector else x
        product = wide(a) @ wide(columns_of) if left else wide(columns_of) @ wide(a)
        return [product, wide(p) @ wide(l) @ wide(u), info, layout_of(x, packed, pivots)]

    def sides(a, b):
        b = b.unsqueeze(-1) if vector else b
        return b.expand(torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:])

    label = f"{dtype} {list(a.shape)} {list(b.shape)} {a.stride()} {b.stride()} left {left} {kind}"
    if singular:
        return composed(label, "_linalg_solve_ex", run, [a, b], lambda a, b: 2 * [torch.zeros(())], 1, None, strides=False)
    return composed(label, "_linalg_solve_ex", run, [a, b], lambda a, b: [sides(a, b), a, torch.zeros(()), torch.zeros(())], 8 + n,
                    lambda a, b: [solution_sizes(a, sides(a, b), left), norm(a), torch.zeros(()), torch.zeros(())], strides=False)


def inverse(d):
    dtype, n = d.choice(ALL), size(d)
    singular = n > 0 and d.chance(0.1)
    a, kind = matrices(d, dtype, n, n, "zero column" if singular else d.choice(("solid", "solid", "normal", "graded")))

    def run(call, a):
        x, info = call(a)
        return [info, layout_of(x)] if singular else [wide(a) @ wide(x), info, layout_of(x)]

    label = f"{dtype} {list(a.shape)} {a.stride()} {kind}"
    if singular:
        return composed(label, "linalg_inv_ex", run, [a], lambda a: 2 * [torch.zeros(())], 1, None, strides=False)
    return composed(label, "linalg_inv_ex", run, [a], lambda a: [eye(n, a), torch.zeros(()), torch.zeros(())], 8 + n,
                    lambda a: [norm(a) * norm(torch.linalg.inv(a)), torch.zeros(()), torch.zeros(())], strides=False)


def determinant(d):
    dtype, n = d.choice(ALL), min(size(d), 100)  # larger ones leave the range of floats
    name = d.choice(("_linalg_det", "_linalg_slogdet"))
    singular = n > 0 and d.chance(0.1)
    a, kind = matrices(d, dtype, n, n, "zero column" if singular else "solid")

    def run(call, a):
        *found, packed, pivots = call(a)
        if n == 0 or a.numel() == 0:
            return [*found, layout_of(packed, pivots)]
        p, l, u = torch.lu_unpack(packed, pivots)
        product = wide(p) @ wide(l) @ wide(u)
        return [*found, layout_of(packed, pivots), product]

    # ATen factors the transpose of what is packed: either's product is compared with ATen's.
    def exact(a):
        found = list(getattr(torch.ops.aten, name)(a)[:-2])
        if n == 0 or a.numel() == 0:
            return [*found, torch.zeros(())]
        transposed = turned
        return [*found, torch.zeros(()), a.transpose(-2, -1) if transposed else a]

    turned = a.is_contiguous() and not a.is_complex()
    condition = torch.linalg.cond(wide(a)).nan_to_num(1, 1, 1).clamp(max=1e4) if a.numel() and not singular else torch.ones(a.shape[:-2])

    def magnitude(a):
        found = list(getattr(torch.ops.aten, name)(a)[:-2])
        sizes = [finite(f.abs().double()) * condition for f in found]
        if name == "_linalg_slogdet":
            sizes = [torch.zeros(()) + condition, condition * (1 + sizes[1])]
        return sizes + ([torch.zeros(())] if n == 0 or a.numel() == 0 else [torch.zeros(()), norm(a)])

    return composed(f"{dtype} {list(a.shape)} {a.stride()} {kind}", name, run, [a], exact, 8 + 2 * n, magnitude, strides=False)


def spoilt(d, triangle, upper, unit):
    """Numbers where nothing may be read."""
    n = triangle.shape[-1]
    other = torch.ones(n, n, dtype=torch.bool).tril(0 if unit else -1) if upper else torch.ones(n, n, dtype=torch.bool).triu(0 if unit else 1)
    return torch.where(other, torch.full((), d.choice((1e6, float("nan")))).to(triangle.dtype), triangle)


def a_triangle(d, dtype, n, lead, upper, unit):
    t = wide(d.values(dtype, [*lead, n, n])) / max(n, 1) ** 0.5
    t = t / 2 if unit else t
    for i in range(n):
        t[..., i, i] = d.choice((1.5, -2.0))
    kept = t.triu() if upper else t.tril()
    whole = kept.clone()
    if unit:
        for i in range(n):
            whole[..., i, i] = 1
    return kept.to(dtype), wide(whole.to(dtype))


def triangular(d):
    dtype, n, columns = d.choice(ALL), size(d, 1), few_columns(d)
    upper, unit, lead = d.chance(0.5), d.chance(0.3), batch(d)
    kept, whole = a_triangle(d, dtype, n, lead, upper, unit)
    t = d.laid_out(spoilt(d, kept, upper, unit), LAYOUTS[:-1])
    by_name = d.chance(0.6)
    left = d.chance(0.6) if by_name else True
    transposed = not by_name and d.chance(0.5)
    b = right_sides(d, dtype, lead, n, columns, left)
    of = whole.transpose(-2, -1) if transposed else whole
    both = torch.broadcast_shapes(whole.shape[:-2], b.shape[:-2]) + b.shape[-2:]
    exact = lambda *v: [wide(b).expand(both), torch.zeros(())]  # noqa: E731
    sizes = lambda *v: [solution_sizes(of, wide(b).expand(both), left), torch.zeros(())]  # noqa: E731
    label = f"{dtype} {list(t.shape)} {list(b.shape)} {t.stride()} {b.stride()} upper {upper} left {left} unit {unit} transposed {transposed}"
    if by_name:
        def run(call, t, b):
            x = call(t, b, upper=upper, left=left, unitriangular=unit)
            return [of @ wide(x) if left else wide(x) @ of, layout_of(x)]

        made = composed(label, "linalg_solve_triangular", run, [t, b], exact, 8 + n, sizes, strides=False)
        # ATen solves in place of B's own memory order; ours is column-major, as the meta function says.
        return made

    def run(call, b, t):  # noqa: F811
        x, copied = call(b, t, upper, transposed, unit)
        return [of @ wide(x), layout_of(x, copied)]

    return by_function(label, "triangular_solve", run, [b, t], exact, 8 + n, sizes, strides=False)


def positive(d, dtype, n, lead):
    m = wide(d.values(dtype, [*lead, n, n])) / max(n, 1) ** 0.5
    return m @ adjoint(m) + d.choice((0.01, 1.0)) * torch.eye(n, dtype=m.dtype)


def other_triangle(d, a, upper):
    """A Hermitian matrix, of which the other triangle holds something else."""
    n = a.shape[-1]
    other = torch.ones(n, n, dtype=torch.bool).tril(-1) if upper else torch.ones(n, n, dtype=torch.bool).triu(1)
    return torch.where(other, torch.full((), 1e6).to(a.dtype), a)


def cholesky(d):
    dtype, n, upper, lead = d.choice(ALL), size(d), d.chance(0.5), batch(d)
    whole = positive(d, dtype, n, lead)
    fails = n > 0 and d.chance(0.15)
    if fails:
        at = d.randrange(n)
        whole[..., at, at] = -50
    whole = wide(whole.to(dtype))
    a = d.laid_out(other_triangle(d, whole.to(dtype), upper), LAYOUTS[:-1])
    by_name = not fails and d.chance(0.15)

    def run(call, a):
        l, info = call(a, upper=upper)
        if fails:
            return [info, layout_of(l)]
        zeros = torch.tensor(bool((l.tril(-1) if upper else l.triu(1)).eq(0).all()))
        return [adjoint(wide(l)) @ wide(l) if upper else wide(l) @ adjoint(wide(l)), info, zeros, layout_of(l)]

    label = f"{dtype} {list(a.shape)} {a.stride()} upper {upper} fails {fails}"
    if fails:
        return composed(label, "linalg_cholesky_ex", run, [a], lambda v: 2 * [torch.zeros(())], 1, None, strides=False)
    return composed(label, "linalg_cholesky_ex", run, [a], lambda v: [whole] + 3 * [torch.zeros(())], 8 + n,
                    lambda v: [norm(whole)] + 3 * [torch.zeros(())], strides=False)


def cholesky_solve(d):
    dtype, n, columns, upper, lead = d.choice(ALL), size(d, 1), few_columns(d), d.chance(0.5), batch(d)
    whole = positive(d, dtype, n, lead) + torch.eye(n)
    factor = torch.linalg.cholesky(whole, upper=upper).to(dtype)
    whole = adjoint(wide(factor)) @ wide(factor) if upper else wide(factor) @ adjoint(wide(factor))
    b = right_sides(d, dtype, lead, n, columns, True)
    both = torch.broadcast_shapes(whole.shape[:-2], b.shape[:-2]) + b.shape[-2:]
    exact = lambda *v: [wide(b).expand(both), torch.zeros(())]  # noqa: E731
    sizes = lambda *v: [solution_sizes(whole, wide(b).expand(both), True), torch.zeros(())]  # noqa: E731
    t = d.laid_out(spoilt(d, factor, upper, False), LAYOUTS[:-1])
    label = f"{dtype} {list(t.shape)} {list(b.shape)} {t.stride()} {b.stride()} upper {upper}"

    def run(call, b, t):
        x = call(b, t, upper)
        return [whole @ wide(x), layout_of(x)]

    if d.chance(0.5):
        return by_function(label, "cholesky_solve", run, [b, t], exact, 8 + n, sizes, strides=False)
    if list(t.shape[:-2]) != list(b.shape[:-2]):
        return None
    return composed(label, "_cholesky_solve_helper", run, [b, t], exact, 8 + n, sizes, strides=False)


def cholesky_inverse(d):
    dtype, n, upper, lead = d.choice(ALL), size(d), d.chance(0.5), batch(d)
    factor = torch.linalg.cholesky(positive(d, dtype, n, lead) + torch.eye(n), upper=upper).to(dtype)
    whole = adjoint(wide(factor)) @ wide(factor) if upper else wide(factor) @ adjoint(wide(factor))
    t = d.laid_out(spoilt(d, factor, upper, False), LAYOUTS[:-1])

    def run(call, t):
        x = call(t, upper)
        return [whole @ wide(x), torch.tensor(torch.equal(x, adjoint(x))) if not x.is_complex() else torch.tensor(True), layout_of(x)]

    return by_function(f"{dtype} {list(t.shape)} {t.stride()} upper {upper}", "cholesky_inverse", run, [t],
                       lambda v: [eye(n, whole), torch.zeros(()), torch.zeros(())], 8 + n,
                       lambda v: [norm(whole) * norm(torch.linalg.inv(whole)) if n else torch.ones(()), torch.zeros(()), torch.zeros(())],
                       strides=False)


def qr(d):
    dtype, m, n, mode = d.choice(ALL), size(d), size(d), d.choice(("reduced", "complete", "r"))
    a, kind = matrices(d, dtype, m, n)
    k = min(m, n)

    def run(call, a):
        q, r = call(a, mode)
        zeros = torch.tensor(bool((r.tril(-1) == 0).all()))
        if mode == "r":
            return [adjoint(wide(r)) @ wide(r), zeros, layout_of(r), q]
        return [wide(q) @ wide(r), zeros, layout_of(q, r), adjoint(wide(q)) @ wide(q), signs(r)]

    def signs(r):
        # Reflectors have LAPACK's signs.
        diagonal = torch.diagonal(r, dim1=-2, dim2=-1).real
        return torch.sign(diagonal).to(torch.int8) if kind in ("normal", "graded") and m > n else torch.zeros((), dtype=torch.int8)

    nothing = torch.zeros(())
    if mode == "r":
        return composed(f"{dtype} {list(a.shape)} {a.stride()} {kind} {mode}", "linalg_qr", run, [a],
                        lambda v: [adjoint(v) @ v, nothing, nothing, torch.zeros(0, dtype=v.dtype)], 8 + m + n,
                        lambda v: [norm(v) ** 2, nothing, nothing, nothing], strides=False)
    return composed(f"{dtype} {list(a.shape)} {a.stride()} {kind} {mode}", "linalg_qr", run, [a],
                    lambda v: [v, nothing, nothing, eye(m if mode == "complete" else k, v), nothing], 8 + m + n,
                    lambda v: [norm(v), nothing, nothing, torch.ones(()), nothing], strides=False)


def geqrf(d):
    dtype, m, n = d.choice(ALL), size(d, 1), size(d, 1)
    a, kind = matrices(d, dtype, m, n, lead=[n for n in batch(d) if n])

    def run(call, a):
        packed, tau = call(a)
        # H_1 ... H_k R, by the definition.
        product = wide(packed).triu().clone()
        for i in reversed(range(min(m, n))):
            v = wide(packed)[..., :, i].clone()
            v[..., :i], v[..., i] = 0, 1
            product = product - wide(tau)[..., i, None, None] * v.unsqueeze(-1) @ (v.conj().unsqueeze(-2) @ product)
        return [product, layout_of(packed, tau)]

    return by_function(f"{dtype} {list(a.shape)} {a.stride()} {kind}", "geqrf", run, [a], lambda v: [v, torch.zeros(())], 8 + m + n,
                       lambda v: [norm(v), torch.zeros(())], strides=False)


def reflectors(d, dtype, m, n, lead):
    """What geqrf makes, and numbers where nothing may be read."""
    a = d.values(dtype, [*lead, m, n])
    packed, tau = torch.geqrf(a)
    upper = torch.ones(m, n, dtype=torch.bool).triu()
    return torch.where(upper, torch.full((), d.choice((1e6, 3.0))).to(dtype), packed), tau


def householder(d):
    dtype, lead = d.choice(ALL), [n for n in batch(d) if n]
    m = size(d, 1)
    n = d.choice((m, max(1, m - 1), max(1, m // 2), 1))
    packed, tau = reflectors(d, dtype, m, n, lead)
    k = d.choice((n, n, max(0, n - 1), n // 2))
    tau = d.laid_out(tau[..., :k].clone(), ("packed", "permuted", "sliced"))
    packed = d.laid_out(packed, LAYOUTS[:-1])

    def run(call, packed, tau):
        q = call(packed, tau)
        return [wide(q), layout_of(q)]

    return composed(f"{dtype} {list(packed.shape)} {packed.stride()} reflectors {k}", "linalg_householder_product", run, [packed, tau],
                    lambda p, t: [torch.linalg.householder_product(p, t), torch.zeros(())], 8 + m + n,
                    lambda p, t: [torch.ones(()), torch.zeros(())], strides=False)


def ormqr(d):
    dtype, lead, left, transposed = d.choice(ALL), [n for n in batch(d) if n], d.chance(0.5), d.chance(0.5)
    order, other = size(d, 1), size(d, 1)
    k = d.choice((order, max(1, order - 1), max(1, order // 2), 1))
    packed, tau = reflectors(d, dtype, order, k, lead)
    packed, tau = d.laid_out(packed, LAYOUTS[:-1]), d.laid_out(tau, ("packed", "permuted", "sliced"))
    c = d.tensor(dtype, [*lead, order, other] if left else [*lead, other, order], "normal", LAYOUTS)

    def run(call, packed, tau, c):
        x = call(packed, tau, c, left, transposed)
        return [wide(x), layout_of(x)]

    return by_function(f"{dtype} {list(packed.shape)} {list(c.shape)} {packed.stride()} {c.stride()} left {left} transposed {transposed}",
                       "ormqr", run, [packed, tau, c], lambda p, t, c: [torch.ormqr(p, t, c, left, transposed), torch.zeros(())],
                       8 + order + other, lambda p, t, c: [norm(c), torch.zeros(())], strides=False)


def eigh(d):
    dtype, n, upper, lead = d.choice(ALL), size(d, high=100), d.chance(0.5), batch(d)
    m = wide(d.values(dtype, [*lead, n, n], d.choice(("normal", "few", "wide"))))
    whole = m + adjoint(m)
    way = d.choice(("plain", "plain", "low rank", "diagonal", "large", "tiny"))
    if way == "low rank":
        whole = m[..., :, :max(1, n // 3)] @ adjoint(m[..., :, :max(1, n // 3)])
    if way == "diagonal":
        whole = torch.diag_embed(torch.diagonal(whole, dim1=-2, dim2=-1))
    whole = wide(whole.to(dtype)) * {"large": 1e25, "tiny": 1e-25}.get(way, 1.0)
    whole = wide(whole.to(dtype))
    a = d.laid_out(other_triangle(d, whole.to(dtype), upper), LAYOUTS[:-1])
    vectors = d.chance(0.7)
    letter = ("U" if upper else "L") if d.chance(0.8) else ("u" if upper else "l")

    def run(call, a):
        w, v = call(a, letter, vectors)
        if not vectors:
            return [w, layout_of(w), v]
        return [w, layout_of(w, v), wide(v) @ (wide(w).unsqueeze(-1).to(wide(v).dtype) * adjoint(wide(v))), adjoint(wide(v)) @ wide(v)]

    nothing = torch.zeros(())
    label = f"{dtype} {list(a.shape)} {a.stride()} {letter} vectors {vectors} {way}"
    values = lambda: torch.linalg.eigvalsh(whole)  # noqa: E731
    if not vectors:
        return composed(label, "_linalg_eigh", run, [a], lambda v: [values(), nothing, torch.zeros(0)], 8 + n,
                        lambda v: [norm(whole).squeeze(-1), nothing, nothing], strides=False)
    return composed(label, "_linalg_eigh", run, [a], lambda v: [values(), nothing, whole, eye(n, whole)], 8 + n,
                    lambda v: [norm(whole).squeeze(-1), nothing, norm(whole), torch.ones(())], strides=False)


def eig(d):
    dtype, n, vectors = d.choice(ALL), size(d, high=60), d.chance(0.6)
    a, kind = matrices(d, dtype, n, n, d.choice(("normal", "normal", "few", "solid")))
    if a.numel() and vectors and d.chance(0.02):
        a = a.contiguous()
        a.view(-1)[d.randrange(a.numel())] = float("nan")  # refused

    def run(call, a):
        found = call(a)
        w = found[0] if vectors else found
        square = torch.complex(*(2 * [torch.zeros(a.shape[:-2], dtype=torch.float64)]))
        sums = [wide(w).sum(-1) + square, (wide(w) ** 2).sum(-1) + square]
        if not vectors:
            return [*sums, layout_of(w)]
        v = wide(found[1])
        return [*sums, layout_of(w, found[1]), wide(a).to(v.dtype) @ v - v * wide(w).unsqueeze(-2), (v.abs() ** 2).sum(-2)]

    def exact(a):
        a = a.to(torch.complex128)
        trace = lambda m: torch.diagonal(m, dim1=-2, dim2=-1).sum(-1)  # noqa: E731
        found = [trace(a), trace(a @ a), torch.zeros(())]
        return found + [torch.zeros(a.shape, dtype=torch.complex128), torch.ones(a.shape[:-1], dtype=torch.float64)] if vectors else found

    def sizes(a):
        one = norm(a).squeeze(-1).squeeze(-1)
        return [one * max(n, 1) ** 0.5, one ** 2 * max(n, 1) ** 0.5, torch.zeros(())] + ([norm(a), torch.ones(())] if vectors else [])

    return composed(f"{dtype} {list(a.shape)} {a.stride()} {kind}", "linalg_eig" if vectors else "_linalg_eigvals", run, [a], exact,
                    16 + 2 * n, sizes, strides=False)


def svd(d):
    dtype, m, n = d.choice(ALL), size(d, high=100), size(d, high=100)
    a, kind = matrices(d, dtype, m, n)
    full, vectors = d.chance(0.5), d.chance(0.75)

    def run(call, a):
        u, s, vh = call(a, full, vectors)
        if not vectors:
            return [s, layout_of(s), u, vh]
        k = s.shape[-1]
        product = (wide(u)[..., :, :k] * wide(s).unsqueeze(-2)) @ wide(vh)[..., :k, :]
        return [s, layout_of(s), layout_of(u), layout_of(vh), product, adjoint(wide(u)) @ wide(u), wide(vh) @ adjoint(wide(vh))]

    nothing, k = torch.zeros(()), min(m, n)
    label = f"{dtype} {list(a.shape)} {a.stride()} {kind} full {full} vectors {vectors}"
    if not vectors:
        return composed(label, "_linalg_svd", run, [a], lambda v: [torch.linalg.svdvals(v), nothing, torch.zeros(0), torch.zeros(0)],
                        8 + m + n, lambda v: [norm(v).squeeze(-1), nothing, nothing, nothing], strides=False)
    return composed(label, "_linalg_svd", run, [a],
                    lambda v: [torch.linalg.svdvals(v), nothing, nothing, nothing, v, eye(m if full else k, v), eye(n if full else k, v)],
                    8 + m + n, lambda v: [norm(v).squeeze(-1), nothing, nothing, nothing, norm(v), torch.ones(()), torch.ones(())],
                    strides=False)


def ldl(d):
    dtype, n, columns, lead = d.choice(ALL), size(d, 1, 70), few_columns(d), [n for n in batch(d) if n]
    hermitian = d.chance(0.5) and dtype.is_complex
    m = wide(d.values(dtype, [*lead, n, n]))
    whole = m + (adjoint(m) if hermitian else m.transpose(-2, -1))
    for i in range(n):
        whole[..., i, i] += d.choice((4, -4)) * n ** 0.5
    whole = wide(whole.to(dtype))
    a = d.laid_out(other_triangle(d, whole.to(dtype), False), LAYOUTS[:-1])
    b = d.tensor(dtype, [*lead, n, columns], "normal", LAYOUTS)
    nothing = torch.zeros(())
    label = f"{dtype} {list(a.shape)} {list(b.shape)} {a.stride()} {b.stride()} hermitian {hermitian}"
    sizes = lambda *v: [solution_sizes(whole, b, True), nothing, nothing][:3]  # noqa: E731
    if d.chance(0.5):
        def run(call, a, b):
            packed, pivots, info = call(a, hermitian=hermitian)
            x = torch.linalg.ldl_solve(packed, pivots, b, hermitian=hermitian)
            return [whole @ wide(x), info, layout_of(packed, pivots)]

        return composed(label, "linalg_ldl_factor_ex", run, [a, b], lambda a, b: [b, nothing, nothing], 16 + n, sizes, strides=False)
    packed, pivots, _ = torch.linalg.ldl_factor_ex(a, hermitian=hermitian)

    def run(call, packed, pivots, b):  # noqa: F811
        x = call(packed, pivots, b, hermitian=hermitian)
        return [whole @ wide(x), layout_of(x)]

    return composed(label, "linalg_ldl_solve", run, [packed, pivots, b], lambda p, q, b: [b, nothing], 16 + n, sizes, strides=False)


def exponential(d):
    dtype = d.choice(ALL + (torch.float16, torch.bfloat16))
    n = d.size(2, 3, 4, 8, 16, 32, high=40)
    scale = d.choice((0.001, 0.1, 1, 2, 3, 4, 6, 12, 20))
    lead = batch(d)
    a = wide(d.values(dtype, [*lead, n, n]))
    if lead and d.chance(0.3):  # matrices of one batch that are scaled differently
        a = a * torch.exp2(torch.randint(-12, 2, [*lead, 1, 1], generator=d.torch).double())
    a = a / max(n, 1) * scale
    a = d.laid_out(a.to(dtype), LAYOUTS)

    def run(call, a):
        x = call(a)
        return [x, layout_of(x)]

    most = float(torch.linalg.matrix_norm(wide(a), 1).max()) if a.numel() else 0.0
    return composed(f"{dtype} {list(a.shape)} {a.stride()} scale {scale}", "linalg_matrix_exp", run, [a],
                    lambda v: [torch.linalg.matrix_exp(v), torch.zeros(())], (16 + 2 * n) * (1 + most),
                    lambda v: [norm(torch.linalg.matrix_exp(v)), torch.zeros(())], strides=False)


def pseudo_inverse(d):
    dtype, m, n = d.choice(ALL), size(d, high=60), size(d, high=60)
    hermitian = d.chance(0.25)
    lead = batch(d)
    if hermitian:
        n = m
        x = wide(d.values(dtype, [*lead, n, n]))
        a = x + adjoint(x) + torch.eye(n) * d.choice((4, -4)) * max(n, 1) ** 0.5
        a = d.laid_out(a.to(dtype), LAYOUTS[:-1])
        kind = "hermitian"
    else:
        a, kind = matrices(d, dtype, m, n, d.choice(("normal", "low rank")), lead=lead)
    tolerance = 1e-3 if kind == "low rank" else d.choice((None, 1e-3))
    real = torch.float32 if dtype in (torch.float32, torch.complex64) else torch.float64
    rtol = None if tolerance is None else torch.full(d.choice(([], lead)), tolerance, dtype=real)
    atol = torch.full([], 1e-5, dtype=real) if d.chance(0.2) else None
    made = case.named(f"{dtype} {list(a.shape)} {a.stride()} {kind} tolerances {tolerance} {atol is not None}", "linalg_pinv",
                      "atol_rtol_tensor", a, atol=atol, rtol=rtol, hermitian=hermitian, strides=False)
    call, reference = made.ours, made.torch

    def check(found, a):
        x = wide(found)
        return [narrow(wide(a) @ x @ wide(a), dtype), narrow(x @ wide(a) @ x, dtype)]

    made.ours = lambda a: check(call(a)[0], a)
    made.torch = lambda a: check(reference(a), a)
    whole = lambda v: torch.linalg.pinv(v, rtol=1e-3)  # noqa: E731
    made.exact = lambda v: [v, whole(v)]
    made.error = 16 + 2 * (m + n)
    made.magnitude = lambda v: [norm(v) * (norm(v) * norm(whole(v)) + 1), norm(whole(v)) * (norm(v) * norm(whole(v)) + 1) ** 2]
    return made


def unpack(d):
    dtype, m, n = d.choice(ALL), size(d), size(d)
    a, _ = matrices(d, dtype, m, n, "normal")
    if 0 in a.shape:
        return None
    packed, pivots = torch.linalg.lu_factor(a)
    packed = d.laid_out(packed, LAYOUTS[:-1])
    data, order = d.chance(0.8), d.chance(0.8)
    return case.shim(f"{dtype} {list(a.shape)} {packed.stride()} data {data} pivots {order}", "lu_unpack", packed, pivots, data, order,
                     torch=torch.ops.aten.lu_unpack)


def roots(d):
    dtype, n, lead = d.choice(ALL), size(d, high=60), batch(d)
    whole = wide(positive(d, dtype, n, lead).to(dtype))
    a = d.laid_out(whole.to(dtype), LAYOUTS[:-1])

    def run(call, a):
        x = wide(call(a))
        return [x @ x]

    return composed(f"{dtype} {list(a.shape)} {a.stride()}", "linalg_matrix_sqrth", run, [a], lambda v: [whole], 16 + 2 * n,
                    lambda v: [norm(whole)], strides=False)


def polar(d):
    dtype, n = d.choice(ALL), size(d, 1, 50)
    m = n + d.choice((0, 1, 5))
    a, kind = matrices(d, dtype, m, n, "normal", lead=[n for n in batch(d) if n])

    def run(call, a):
        u, h = call(a)
        return [wide(u) @ wide(h), adjoint(wide(u)) @ wide(u), wide(h) - adjoint(wide(h))]

    return composed(f"{dtype} {list(a.shape)} {a.stride()}", "linalg_polar", run, [a],
                    lambda v: [v, eye(n, v), torch.zeros([*v.shape[:-2], n, n], dtype=v.dtype)], 16 + 2 * (m + n),
                    lambda v: [norm(v), torch.ones(()), norm(v)], strides=False)


def errors(d):
    info = torch.tensor([d.choice((0, 0, 0, 0, 1, -4)) for _ in range(d.randint(1, 6))], dtype=torch.int32)
    name = d.choice(("linalg.inv_ex", "torch.linalg.solve_ex", "linalg.cholesky_ex", "linalg.svd", "linalg.eigh", "torch.linalg.lu_factor_ex"))
    info = info[0] if d.chance(0.3) else info
    return case.named(f"{info.tolist()} {name}", "_linalg_check_errors", "", info, name, is_matrix=info.dim() == 0,
                      fails="linalg" if bool((info != 0).any()) else None)


def combination(d):
    dtype = d.choice(ALL)
    k, rows, shape = d.size(2, 4, 8, low=1, high=10), d.size(2, 3, low=1, high=8), d.shape(d.choice((1, 2, 3)), 500, (8, 16), low=1)
    x, c = d.tensor(dtype, [k, *shape], "normal", LAYOUTS), d.tensor(dtype, [rows, k], "normal", LAYOUTS)
    made = case.named(f"{dtype} {list(x.shape)} {list(c.shape)} {x.stride()} {c.stride()}", "_compute_linear_combination", "", x, c,
                      error=8 + k, magnitude=lambda v, w: torch.tensordot(w.abs(), v.abs(), 1))
    if dtype.is_complex:
        made.torch = lambda v, w: torch.tensordot(w, v, 1)  # ATen skips every second coefficient, and reads beyond them
        made.strides = False
    return made
