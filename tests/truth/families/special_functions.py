"""Special functions: src/cpu/elementwise/special.cpp, incomplete_gamma.cpp, function_table.h, and mvlgamma of real_functions.cpp.

ATen's own are truncated series (its Bessel functions err by 1e-8 in float64), so mpmath gives exact values, for the few
different numbers that a tensor holds, and ATen only infinities and NaN. Arguments lie around the bounds of the tables
(-64, -32, -12, 1/64, 1, 4, 33, 64) and series (10, 25, 500), zeros and poles. Polynomials are computed by recurrence in
float64, with errors relative to their terms: one degree per row (64 side by side), or one per element.
"""
import functools
import math

import mpmath
import torch

import case
import elements

DEVICES = ("cpu",)
mp = mpmath.mp
mp.dps = 40
PLACES = 40  # different numbers per tensor
# name: kind of arguments, error, what errors are relative to besides the result, exact value
UNARY = {
    "digamma": ("gamma", 8, 8, mp.digamma), "erfinv": ("unit", 8, 0, mp.erfinv),
    "i0": ("bessel", 16, 0, lambda x: mp.besseli(0, x)), "special_i0e": ("bessel", 16, 0, lambda x: mp.exp(-abs(x)) * mp.besseli(0, x)),
    "special_i1": ("bessel", 16, 0, lambda x: mp.besseli(1, x)),
    "special_i1e": ("bessel", 16, 0, lambda x: mp.exp(-abs(x)) * mp.besseli(1, x)),
    "special_bessel_j0": ("bessel", 16, 1, lambda x: mp.besselj(0, x)), "special_bessel_j1": ("bessel", 16, 1, lambda x: mp.besselj(1, x)),
    "special_bessel_y0": ("bessel", 16, 1, lambda x: mp.bessely(0, x)), "special_bessel_y1": ("bessel", 16, 1, lambda x: mp.bessely(1, x)),
    "special_modified_bessel_i0": ("bessel", 16, 0, lambda x: mp.besseli(0, x)),
    "special_modified_bessel_i1": ("bessel", 16, 0, lambda x: mp.besseli(1, x)),
    "special_modified_bessel_k0": ("positive", 16, 0, lambda x: mp.besselk(0, x)),
    "special_modified_bessel_k1": ("positive", 16, 0, lambda x: mp.besselk(1, x)),
    "special_scaled_modified_bessel_k0": ("positive", 16, 0, lambda x: mp.exp(x) * mp.besselk(0, x)),
    "special_scaled_modified_bessel_k1": ("positive", 16, 0, lambda x: mp.exp(x) * mp.besselk(1, x)),
    "special_spherical_bessel_j0": ("bessel", 8, 0.1, lambda x: mp.sin(x) / x if x else mp.mpf(1)),
    "special_airy_ai": ("airy", 32, 1, mp.airyai), "special_entr": ("positive", 8, 0.1, lambda x: -x * mp.log(x)),
    "special_erfcx": ("erfcx", 16, 0, lambda x: mp.exp(x * x) * mp.erfc(x)),
    "special_log_ndtr": ("normal", 16, 0, lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2) if x < 5 else mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)),
    "special_ndtri": ("fraction", 16, 0, lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1)),
    "mvlgamma": ("above", 16, 4, None), "polygamma": ("gamma", 24, 0, None)}
POLYNOMIALS = ["special_" + n for n in (
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
    "legendre_polynomial_p")]
HALVES = ("i0", "special_i0e", "digamma", "erfinv", "special_entr", "mvlgamma", "polygamma", "special_i1", "special_i1e")


@functools.lru_cache(maxsize=100000)
def exactly(name, order, *numbers):
    """To 40 places, or None if it is not finite."""
    try:
        x = [mp.mpf(n) for n in numbers]
        if name == "mvlgamma":
            value = order * (order - 1) / mp.mpf(4) * mp.log(mp.pi) + sum(mp.loggamma(x[0] - mp.mpf(j) / 2) for j in range(order))
        elif name == "polygamma":
            value = mp.polygamma(order, x[0])
        elif name == "igamma":
            value = mp.gammainc(x[0], 0, x[1], regularized=True)
        elif name == "igammac":
            value = mp.gammainc(x[0], x[1], mp.inf, regularized=True)
        elif name == "special_zeta":
            value = mp.zeta(x[0], x[1])
        else:
            value = UNARY[name][3](x[0])
        return float(mp.re(value)) if mp.im(value) == 0 and mp.isfinite(value) else None
    except (ValueError, ZeroDivisionError, OverflowError, mpmath.libmp.NoConvergence):
        return None


def exact_of(name, operator, order=None):
    def exact(*values):
        tensors = torch.broadcast_tensors(*[v.double() for v in values if isinstance(v, torch.Tensor)])
        plain = operator(*[v.double() if isinstance(v, torch.Tensor) else v for v in values]).double()
        flat = torch.stack([t.reshape(-1) for t in tensors], -1).tolist()
        out, seen = plain.reshape(-1).tolist(), {}
        for i, row in enumerate(flat):
            if all(math.isfinite(n) for n in row):
                key = tuple(row)
                if key not in seen:
                    seen[key] = exactly(name, order, *row)
                out[i] = seen[key] if seen[key] is not None else out[i]
        return torch.tensor(out, dtype=torch.float64).reshape(plain.shape)
    return exact


def pool(d, x, shape):
    """A tensor filled with the few numbers of x."""
    return x[torch.randint(len(x), shape, generator=d.torch)]


def argument(d, kind, dtype, shape):
    g = d.torch
    count = d.choice((4, PLACES))
    x = torch.randn(count, generator=g, dtype=torch.float64)
    u = torch.rand(count, generator=g, dtype=torch.float64)
    if kind == "unit":
        x = d.choice((u * 2 - 1, x.sign() * (1 - torch.exp(-u * 30)), x * 1e-3))
    elif kind == "fraction":
        x = d.choice((u, u / 64, 1 - u / 64, torch.exp(-u * (9 if dtype == torch.float16 else 60)), 0.5 + x * 1e-3, 0.5 + x * 1e-6))
    elif kind == "gamma":
        x = d.choice((u * 20, x * 3, torch.exp(x * 3), (x * 4).round() / 2, -u * 10))
    elif kind == "bessel":
        x = d.choice((x, x * 10, x * 30, u * 600 - 300 if dtype != torch.float16 else x, x * 1e-4))
    elif kind == "positive":
        x = d.choice((torch.exp(x), u * 30, torch.exp(x * 3), u * 2, u * 800 - 1))
    elif kind == "airy":
        x = d.choice((x, x * 5, u * 16 - 12, u * 100))
    elif kind == "erfcx":
        x = d.choice((x, u * 30, x * 4, u * 60 - 5, u * 2 + 24))
    elif kind == "normal":
        x = d.choice((x, x * 5, x * 30, -u * 2))
    elif kind == "above":
        x = u * d.choice((1, 10, 100)) + 3
    if d.chance(0.12):
        odd = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 64.0, 33.0, -12.0, 500.0], dtype=torch.float64)
        x = torch.where(torch.rand(count, generator=g) < 0.3, odd[torch.randint(len(odd), (count,), generator=g)], x)
    return pool(d, x, shape).to(dtype if dtype.is_floating_point else torch.float64)


def sizes(d):
    shape = elements.sizes(d, 512)
    return shape if math.prod(shape) < 4000 else [d.size(8, 16, 64, 512, 1024, high=2100)]


def draw(d):
    way = d.random()
    if way < 0.3:
        return polynomial(d)
    if way < 0.45:
        return two(d)
    shape = sizes(d)
    name = d.choice(list(UNARY))
    kind, error, floor, _ = UNARY[name]
    whole = d.chance(0.1)
    dtype = d.choice(elements.INTEGERS + (torch.bool,)) if whole else d.choice(elements.FLOATS)
    if dtype in elements.HALVES and name not in HALVES:
        dtype = torch.float32  # ATen has none
    x = d.laid_out(d.values(dtype, shape, "few") if whole else argument(d, kind, dtype, shape), elements.LAYOUTS)
    label = f"{dtype} {shape} {tuple(x.stride())}"
    arguments, order = [x], None
    if name == "mvlgamma":
        order = d.choice((1, 2, 3, 5))
        arguments.append(order)
    if name == "polygamma":
        order = d.choice((0, 1, 1, 2, 3, 5, 16, 17))
        x[(x <= 0) & (x == x.to(torch.float64).round())] = 1  # poles, which ATen treats as finite numbers
        arguments.insert(0, order)
    exact = exact_of(name, getattr(torch.ops.aten, name), order)
    if name == "polygamma" and order > 1:
        error *= 16  # Boost reflects negative arguments into a polynomial of cotangents
    # At infinity ATen has NaN where the limit is 0.
    return case.named(f"{label} {order or ''}", name, "", *arguments, error=error, each=True, exact=exact, same_nan=None,
                      magnitude=lambda *v: exact(*v).abs() + floor * scale(name, v[0]), proxied=d.chance(0.5))


def scale(name, x):
    """Oscillations decay, so errors are relative to their amplitude."""
    if name in ("special_bessel_j0", "special_bessel_j1", "special_bessel_y0", "special_bessel_y1"):
        small = x.double().abs().clamp(max=1) if name.endswith("j1") else 1
        return small * (1 + x.double().abs()) ** -0.5 + 4e-16 * x.double().abs()
    return 1


def two(d):
    name = d.choice(("igamma", "igammac", "special_zeta"))
    dtype = d.choice(elements.FLOATS if name != "special_zeta" else (torch.float32, torch.float64))
    first, second = elements.broadcast(d, 2, 256)
    if math.prod(first) > 2000 or math.prod(second) > 2000:
        return None
    u = lambda high: torch.rand(6, generator=d.torch, dtype=torch.float64) * high
    if name == "special_zeta":
        a, b = u(d.choice((2, 10, 60))) + 1.05, u(d.choice((1, 10, 100))) + 0.1
        if d.chance(0.2):
            a, b = a.round(), b.round()
    else:
        high = d.choice((1, 5, 30, 200))
        a, b = u(high), u(high * d.choice((0.5, 1, 2)))
    a, b = [d.laid_out(pool(d, t, s).to(dtype), elements.LAYOUTS) for t, s in ((a, first), (b, second))]
    exact = exact_of(name, getattr(torch.ops.aten, name))
    return case.named(f"{dtype} {first} {second}", name, "", a, b, error=32 if dtype != torch.float64 else 1000, each=True,
                      exact=exact, magnitude=lambda *v: exact(*v).abs() + (1e-3 if name != "special_zeta" else 0),
                      proxied=d.chance(0.5))


def recurrence(name, x, n, majorant=False):
    """The polynomials of degrees n at x in float64; majorant: the sum of absolute terms."""
    x, n = torch.broadcast_tensors(torch.as_tensor(x, dtype=torch.float64), torch.as_tensor(n).to(torch.int64))
    y = 2 * x - 1 if "shifted" in name else x
    if majorant:
        y = y.abs() + (1 if "shifted" in name else 0)
    sign = 1 if majorant else -1
    first = {"t": y, "u": 2 * y, "v": 2 * y + sign, "w": 2 * y + 1, "h": 2 * y, "he": y, "l": 1 + (y if majorant else -y),
             "p": y}[name.rsplit("_", 1)[1]]
    before, now = torch.ones_like(y), first
    out = torch.where(n < 0, torch.zeros_like(y), torch.where(n == 0, before, now))
    for k in range(1, int(n.max()) if n.numel() else 1):
        if "chebyshev" in name:
            after = 2 * y * now + sign * before
        elif name.endswith("_h"):
            after = 2 * y * now + sign * 2 * k * before
        elif name.endswith("_he"):
            after = y * now + sign * k * before
        elif name.endswith("_l"):
            after = ((2 * k + 1 + (y if majorant else -y)) * now + sign * k * before) / (k + 1)
        else:
            after = ((2 * k + 1) * y * now + sign * k * before) / (k + 1)
        before, now = now, after
        out = torch.where(n > k, now, out)
    return out


def polynomial(d):
    name = d.choice(POLYNOMIALS)
    dtype = d.choice((torch.float32, torch.float32, torch.float64))
    first, second = elements.broadcast(d, 2, 512)
    if math.prod(first) > 3000 or math.prod(second) > 3000:
        return None
    g = d.torch
    high = d.choice((2, 6, 20)) if "hermite" in name or "laguerre" in name else d.choice((2, 6, 30, 70))
    x = (torch.rand(first, generator=g, dtype=torch.float64) * 2.4 - 1.2).to(dtype)
    n = torch.randint(-1, high, second, generator=g).to(dtype if d.chance(0.7) else torch.int64)
    if d.chance(0.1):
        x = torch.where(torch.rand(first, generator=g) < 0.2, torch.tensor([1.0, -1.0, 0.0])[
            torch.randint(3, first, generator=g)].to(dtype), x)
    x, n = d.laid_out(x, elements.LAYOUTS), d.laid_out(n, elements.LAYOUTS)
    way = d.choice(("", "", "n_scalar", "x_scalar"))
    arguments = [x, n]
    if way == "n_scalar":
        arguments = [x, d.choice((0, 1, 2, 5, high - 1))]
    elif way == "x_scalar":
        arguments = [d.choice((0.0, 0.5, 1.0, -1.0, 0.75)), n]
    return case.named(f"{dtype} {first} {second} up to {high}", name, way, *arguments, each=True, proxied=d.chance(0.6),
                      error=8, exact=lambda a, b: recurrence(name, a, b), same_nan=False,
                      magnitude=lambda a, b: recurrence(name, a, b, True))
