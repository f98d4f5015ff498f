"""LU, Cholesky, LDL, triangular matrices, and solutions: src/cpu/linalg/linalg_lu.cpp, linalg_factored.cpp, linalg_factor.cpp, factorise_lu.cpp,
factorise_triangles.cpp. tests/truth/matrices.py says how factors are compared.

What an operator must not read (the other triangle, unit diagonals) holds numbers that would show. Limits: LU by halves
from 9 columns and 1024 elements on, 16 and 8 columns at its turns; triangles in one piece up to 64 (kBase), stripes of 16 columns, up to
3 columns one by one; squares of triangles in one piece up to 96; complex matrices by LAPACK alone; the products' own limits (gemm.cpp).
"""
import torch

import case
from matrices import (ALL, LAYOUTS, size, batch, wide, finite, norm, layout_of, adjoint, eye, composed, by_function, matrices,
                      few_columns, right_sides, solution_sizes, other_triangle, positive)


def draw(d):
    return d.choice((lu, lu, lu_solve, solve, inverse, determinant, triangular, triangular, cholesky, cholesky, cholesky_solve,
                     cholesky_inverse, ldl, unpack, errors, combination))(d)


def lu(d):
    dtype, m, n = d.choice(ALL), size(d), size(d)
    a, kind = matrices(d, dtype, m, n)
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
    dtype, n = d.choice(ALL), min(size(d), 100)  # larger ones exceed the range of floats
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

    # ATen factors the transpose of a packed matrix, so both products are compared with ATen's.
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
    exact = lambda *v: [wide(b).expand(both), torch.zeros(())]
    sizes = lambda *v: [solution_sizes(of, wide(b).expand(both), left), torch.zeros(())]
    label = f"{dtype} {list(t.shape)} {list(b.shape)} {t.stride()} {b.stride()} upper {upper} left {left} unit {unit} transposed {transposed}"
    if by_name:
        def run(call, t, b):
            x = call(t, b, upper=upper, left=left, unitriangular=unit)
            return [of @ wide(x) if left else wide(x) @ of, layout_of(x)]

        made = composed(label, "linalg_solve_triangular", run, [t, b], exact, 8 + n, sizes, strides=False)
        # ATen keeps B's memory order; ours is column-major, as the meta function says.
        return made

    def run(call, b, t):
        x, copied = call(b, t, upper, transposed, unit)
        return [of @ wide(x), layout_of(x, copied)]

    return by_function(label, "triangular_solve", run, [b, t], exact, 8 + n, sizes, strides=False)


def cholesky(d):
    dtype, n, upper, lead = d.choice(ALL), size(d), d.chance(0.5), batch(d)
    whole = positive(d, dtype, n, lead)
    fails = n > 0 and d.chance(0.15)
    if fails:
        at = d.randrange(n)
        whole[..., at, at] = -50
    whole = wide(whole.to(dtype))
    a = d.laid_out(other_triangle(d, whole.to(dtype), upper), LAYOUTS[:-1])

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
    exact = lambda *v: [wide(b).expand(both), torch.zeros(())]
    sizes = lambda *v: [solution_sizes(whole, wide(b).expand(both), True), torch.zeros(())]
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
    sizes = lambda *v: [solution_sizes(whole, b, True), nothing, nothing][:3]
    if d.chance(0.5):
        def run(call, a, b):
            packed, pivots, info = call(a, hermitian=hermitian)
            x = torch.linalg.ldl_solve(packed, pivots, b, hermitian=hermitian)
            return [whole @ wide(x), info, layout_of(packed, pivots)]

        return composed(label, "linalg_ldl_factor_ex", run, [a, b], lambda a, b: [b, nothing, nothing], 16 + n, sizes, strides=False)
    packed, pivots, _ = torch.linalg.ldl_factor_ex(a, hermitian=hermitian)

    def run(call, packed, pivots, b):
        x = call(packed, pivots, b, hermitian=hermitian)
        return [whole @ wide(x), layout_of(x)]

    return composed(label, "linalg_ldl_solve", run, [packed, pivots, b], lambda p, q, b: [b, nothing], 16 + n, sizes, strides=False)


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
        made.torch = lambda v, w: torch.tensordot(w, v, 1)  # ATen skips coefficients and reads out of bounds
        made.strides = False
    return made
