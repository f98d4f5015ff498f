"""Distances between rows, and the gradients: src/cpu/normalisation/distance.cpp, distance_norms.h.

Floats against float64. Limits: 16 lanes; from 4 rows against 8 on, 32 rows lie side by side and 128 differences are
summed at once; more than 25 rows use a product (gemm.cpp); threads take 16384 elements.
"""
import torch

import case

LAYOUTS = ("packed", "packed", "permuted", "sliced", "offset", "padded", "expanded")
ORDERS = (0.0, 1.0, 2.0, 2.0, 3.0, 0.5, 1.5, 2.5, float("inf"))


def draw(d):
    return d.choice((cdist, cdist, cdist, cdist_backward, pdist, pdist_backward, euclidean))(d)


def terms(dtype, m):
    """float64 is compared with ATen's own sequential sums."""
    return m if dtype == torch.float64 else m ** 0.5


def rows(d):
    return d.size(2, 4, 8, 25, 26, 32, 64, high=100)


def columns(d, limit=4000):
    return min(d.size(2, 8, 16, 32, 128, 256, high=300), limit)


def pair(d, kinds=("normal", "normal", "few", "wide")):
    dtype, kind = d.choice((torch.float32, torch.float32, torch.float64)), d.choice(kinds)
    p, r, m = rows(d), rows(d), columns(d)
    while p * r * m > 400000:
        m = m // 2
    batch = d.choice(([], [], [d.size(2, 3, high=4)], [2, d.size(1, 3, high=3)]))
    if batch and p * r * m > 100000:
        batch = [1]
    other = batch if d.chance(0.7) else d.choice(([], [1] * len(batch), batch[-1:]))
    x, y = d.tensor(dtype, [*batch, p, m], kind, LAYOUTS), d.tensor(dtype, [*other, r, m], kind, LAYOUTS)
    if d.chance(0.2) and x.numel() and y.numel() and not other and not batch:  # some rows are equal
        n = min(p, r)
        y = d.laid_out(torch.cat([x[:n].cpu(), y[n:].cpu()]) if d.chance(0.5) else y.cpu(), LAYOUTS)
    return dtype, kind, x, y, f"{dtype} {list(x.shape)} {list(y.shape)} {x.stride()} {y.stride()} {kind}"


def by_product(x, y, mode):
    return mode == 1 or (mode in (None, 0) and (x.shape[-2] > 25 or y.shape[-2] > 25))


def forward(name, label, x, y, p, mode, *arguments):
    m = x.shape[-1]
    if p == 2 and by_product(x, y, mode):
        # a|^2 + |b|^2 - 2 ab, whose root magnifies rounding for rows that are close.
        def magnitude(v, w, *_):
            size = (v * v).sum(-1).unsqueeze(-1) + (w * w).sum(-1).unsqueeze(-2)
            exact = torch.cdist(v, w, p, compute_mode="donot_use_mm_for_euclid_dist")
            eps = torch.finfo(x.dtype).eps
            lost = size * eps * (4 + m ** 0.5)
            return torch.minimum(lost.sqrt(), lost / exact.clamp(min=1e-300)) / eps

        return case.named(label, name, "", x, y, *arguments, error=4, magnitude=magnitude,
                          exact=lambda v, w, *_: torch.cdist(v, w, p, compute_mode="donot_use_mm_for_euclid_dist"))
    # Differences are rounded, then powers and their sums. With p = inf, ATen's NaN depends on its
    # position; ours is always NaN, as for other p.
    return case.named(label, name, "", x, y, *arguments, same_nan=p != float("inf"), error=8 + terms(x.dtype, m) + 4 * (p if p < 10 else 0) + (8 / p if 0 < p < 1 else 0))


def cdist(d):
    dtype, kind, x, y, label = pair(d, ("normal", "normal", "few", "wide", "special"))
    p, mode = d.choice(ORDERS), d.choice((None, 0, 1, 2, 2))
    if kind == "special" and p == 2 and by_product(x, y, mode):
        return None  # products of infinities give NaN
    name = "_cdist_forward"
    if d.chance(0.5):
        made = forward(name, f"{label} p {p} mode {mode}", x, y, p, mode, p, mode)
        import abi
        made.ours = lambda v, w, p, mode: abi.call(name, v, w, p, mode)
        made.torch = torch.ops.aten._cdist_forward
        return only_shim(made)
    return only_shim(forward(name, f"{label} p {p} mode {mode}", x, y, p, mode, p, mode))


def only_shim(made):
    """These only have C functions."""
    import abi
    name = made.label.split()[0]
    made.ours = lambda *values: abi.call(name, *values)
    return made


def euclidean(d):
    dtype, kind, x, y, label = pair(d)
    if list(x.shape[:-2]) != list(y.shape[:-2]):
        return None
    if d.chance(0.2) and kind != "wide":
        half = d.choice((torch.float16, torch.bfloat16))
        x, y, label = x.to(half), y.to(half), f"{half} {label}"
    return forward("_euclidean_dist", label, x, y, 2.0, 1)


def slope_sizes(v, w, dist, g, p):
    """Per pair and column: |slope| of a difference."""
    apart = (v.unsqueeze(-2) - w.unsqueeze(-3)).abs()
    dist, g = dist.unsqueeze(-1), g.unsqueeze(-1).abs()
    if p == 1:
        return g.expand(apart.shape)
    if p == float("inf"):
        return g.expand(apart.shape)
    share = torch.where(dist == 0, 0.0, apart / dist)
    return g * share ** (p - 1)


def cdist_backward(d):
    dtype, kind, x, y, label = pair(d, ("normal", "normal", "few"))
    if list(x.shape[:-2]) != list(y.shape[:-2]) or 0 in x.shape or 0 in y.shape:
        return None
    p = d.choice((0.0, 1.0, 2.0, 2.0, 3.0, 1.5, 2.5, float("inf")))
    x, y = x.contiguous(), y.contiguous()  # as autograd passes them
    dist = torch.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist")
    g = d.tensor(dtype, list(dist.shape), "normal", ("packed", "permuted", "offset"))
    if x.shape[-1] * x.shape[-2] * y.shape[-2] > 100000:
        return None

    def magnitude(g, v, w, p, dist):
        return slope_sizes(v, w, dist, g, p).sum(-2)

    return only_shim(case.named(f"{label} p {p} gradient {g.stride()}", "_cdist_backward", "", g, x, y, p, dist,
                                error=16 + 4 * (p if p < 10 else 0) + y.shape[-2] ** 0.5, magnitude=magnitude))


def pdist(d):
    dtype, kind = d.choice((torch.float32, torch.float64)), d.choice(("normal", "normal", "few", "wide", "special"))
    n, m, p = d.size(2, 8, 32, 64, high=100), columns(d), d.choice(ORDERS)
    while n * n * m > 400000:
        m = m // 2
    x = d.tensor(dtype, [n, m], kind, LAYOUTS)
    return only_shim(case.named(f"{dtype} {[n, m]} {x.stride()} {kind} p {p}", "_pdist_forward", "", x, p, same_nan=p != float("inf"),
                                error=8 + terms(dtype, m) + 4 * (p if p < 10 else 0) + (8 / p if 0 < p < 1 else 0)))


def pdist_backward(d):
    dtype, kind = d.choice((torch.float32, torch.float64)), d.choice(("normal", "normal", "few"))
    n, m, p = d.size(2, 8, 32, high=50, low=1), columns(d, 60), d.choice((0.0, 1.0, 2.0, 3.0, 1.5, 2.5, float("inf")))
    x = d.tensor(dtype, [n, m], kind, LAYOUTS).contiguous()
    dist = torch.ops.aten._pdist_forward(x, p)
    g = d.tensor(dtype, list(dist.shape), "normal", ("packed", "sliced", "offset"))

    def magnitude(g, v, p, dist):
        i = torch.triu_indices(n, n, 1)
        square, grads = torch.zeros(n, n, dtype=torch.float64), torch.zeros(n, n, dtype=torch.float64)
        square[i[0], i[1]] = square[i[1], i[0]] = dist
        grads[i[0], i[1]] = grads[i[1], i[0]] = g
        return slope_sizes(v, v, square, grads, p).sum(-2)

    return only_shim(case.named(f"{dtype} {[n, m]} {kind} p {p} gradient {g.stride()}", "_pdist_backward", "", g, x, p, dist,
                                error=16 + 4 * (p if p < 10 else 0) + n ** 0.5, magnitude=magnitude))
