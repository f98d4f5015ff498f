"""QR, eigenvalues, singular values, and functions of matrices: src/cpu/linalg/linalg_factor.cpp, linalg_general.cpp, linalg_exp.cpp,
linalg_roots.cpp, factorise_qr.cpp, factorise_symmetric.cpp. tests/truth/matrices.py says how factors are compared.

Limits: reflectors by 32, in one panel up to 64 columns; symmetric eigenvalues by LAPACK alone below 3 rows and for sizes far from
1; complex matrices by LAPACK alone; each exponential of a batch is scaled and squared by its own norm.
"""
import torch

import case
from matrices import (ALL, LAYOUTS, size, batch, wide, norm, layout_of, adjoint, eye, composed, narrow, by_function, matrices,
                      other_triangle, positive)


def draw(d):
    return d.choice((qr, qr, geqrf, householder, ormqr, eigh, eigh, eig, svd, svd, exponential, pseudo_inverse, roots, polar))(d)


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
        # H_1 ... H_k R, by definition.
        product = wide(packed).triu().clone()
        for i in reversed(range(min(m, n))):
            v = wide(packed)[..., :, i].clone()
            v[..., :i], v[..., i] = 0, 1
            product = product - wide(tau)[..., i, None, None] * v.unsqueeze(-1) @ (v.conj().unsqueeze(-2) @ product)
        return [product, layout_of(packed, tau)]

    return by_function(f"{dtype} {list(a.shape)} {a.stride()} {kind}", "geqrf", run, [a], lambda v: [v, torch.zeros(())], 8 + m + n,
                       lambda v: [norm(v), torch.zeros(())], strides=False)


def reflectors(d, dtype, m, n, lead):
    """geqrf's result, with numbers where nothing may be read."""
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
    values = lambda: torch.linalg.eigvalsh(whole)
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
        trace = lambda m: torch.diagonal(m, dim1=-2, dim2=-1).sum(-1)
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


def exponential(d):
    dtype = d.choice(ALL + (torch.float16, torch.bfloat16))
    n = d.size(2, 3, 4, 8, 16, 32, high=40)
    scale = d.choice((0.001, 0.1, 1, 2, 3, 4, 6, 12, 20))
    scale = min(scale, 3) if dtype == torch.float16 else scale  # float16 products of ATen soon overflow
    lead = batch(d)
    a = wide(d.values(dtype, [*lead, n, n]))
    if lead and d.chance(0.3):  # matrices of one batch with different scales
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
    whole = lambda v: torch.linalg.pinv(v, rtol=1e-3)
    made.exact = lambda v: [v, whole(v)]
    made.error = 16 + 2 * (m + n)
    made.magnitude = lambda v: [norm(v) * (norm(v) * norm(whole(v)) + 1), norm(whole(v)) * (norm(v) * norm(whole(v)) + 1) ** 2]
    return made


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
