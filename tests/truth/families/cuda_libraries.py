"""Fourier transforms, linear algebra and recurrent networks on a device: NVIDIA's libraries with our own layouts.

Limits: cuFFT plans of three dimensions, copies of tensors that it cannot describe (fft.cpp); batched factorisations for
matrices up to 512 and 256 (kBatchedSize, kBatchedRows in linalg_library.cpp); our own LU and singular values for sides up to
64 that fit in 96 KB, LU in 48 KB or, real ones up to 32, in lanes (small_matrices.h, linalg_lu_kernels.cu). Judges products of
factors if several factors are right."""
import torch

import abi
import case

DEVICES = ("cuda",)
aten = torch.ops.aten
REALS, COMPLEX = (torch.float32, torch.float32, torch.float64), (torch.complex64, torch.complex64, torch.complex128)
# ATen's own choice, gesvdj, writes beyond the results of some wide matrices (torch 2.11).
DRIVER = "gesvd"
LAYOUTS = ("packed", "packed", "permuted", "sliced", "offset", "padded")


def transform(d):
    rank = d.choice((1, 2, 2, 3, 3, 4))
    shape = d.shape(rank, 12000, (2, 3, 7, 8, 16, 30, 31, 32, 64, 131), low=1)
    dims = d.sample(range(rank), d.randrange(1, rank + 1))
    norm = d.choice((0, 1, 2))
    way = d.choice(("c2c", "r2c", "c2r"))
    terms = torch.Size([shape[i] for i in dims]).numel()
    label = f"{shape} {dims} {norm}"
    # Each result sums all elements: its size is the root of the sum of squares, times the logarithm of steps.
    if way == "c2c":
        x, forward = d.tensor(d.choice(COMPLEX), shape, "normal", LAYOUTS), d.chance(0.5)
        f = lambda x, *r: aten._fft_c2c(x, *r)
        arguments = [x, dims, norm, forward]
    elif way == "r2c":
        x, one = d.tensor(d.choice(REALS), shape, "normal", LAYOUTS), d.chance(0.6)
        f = lambda x, *r: aten._fft_r2c(x, *r)
        arguments = [x, dims, norm, one]
    else:
        x = d.tensor(d.choice(COMPLEX), shape, "normal", LAYOUTS)
        size = d.choice((2 * (shape[dims[-1]] - 1), 2 * shape[dims[-1]] - 1))
        if size < 1:
            return None
        f = lambda x, *r: aten._fft_c2r(x, *r)
        arguments = [x, dims, norm, size]
        terms *= 2
    scale = {0: 1.0, 1: terms ** -0.5, 2: 1.0 / terms}[norm]
    options = dict(error=64.0, magnitude=lambda x, *_: (x.abs().amax() * terms ** 0.5 * scale).reshape(()), torch=f, strides=False)
    if way == "c2r":
        options.pop("torch")
        return case.named(f"{x.dtype} {x.stride()} {label} {arguments[3]}", "_fft_c2r", "", *arguments, **options)
    return case.shim(f"{x.dtype} {x.stride()} {label} {arguments[3]}", f"_fft_{way}", *arguments, **options)


def matrices(d, dtype, m, n, kind=""):
    batch = d.choice(((), (), (1,), (3,), (2, 2), (9,)))
    a = d.values(dtype, (*batch, m, n))
    if kind == "positive":
        a = a @ a.mH + n * torch.eye(n, dtype=dtype)
    elif kind == "regular":
        a = a + n * torch.eye(n, dtype=dtype)
    return d.laid_out(a, ("packed", "packed", "permuted", "padded", "offset")), batch


SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 40, 64)
TYPES = (torch.float32, torch.float32, torch.float64, torch.complex64, torch.complex128)


def general(d, dtype, m, n, kinds):
    """Matrices of any kind, the numbers that "tiny" and "huge" ones are divided by, and the kind."""
    kind = d.choice(kinds)
    batch = d.choice(((), (), (1,), (3,), (2, 2), (9,), (70,) if m * n < 300 else (5,)))
    a = d.values(dtype, (*batch, m, n), "few" if kind == "few" else "zero" if kind == "zero" else "normal")
    scale = 1.0
    if kind == "low rank":
        r = max(min(m, n) // 2, 1)
        a = d.values(dtype, (*batch, m, r)) @ d.values(dtype, (*batch, r, n))
    elif kind == "equal columns":
        a = a[..., :1].expand(*batch, m, n).contiguous()
    elif kind == "zero column":
        a[..., d.randrange(n)] = 0
    elif kind == "graded":
        a = a * torch.logspace(-6, 6, m, dtype=a.real.dtype).unsqueeze(-1)
    elif kind in ("tiny", "huge"):
        scale = {"tiny": 1e-30, "huge": 1e30}[kind]
        a = a * scale
    return d.laid_out(a, ("packed", "packed", "permuted", "padded", "offset")), scale, kind


def factors(d):
    """LU of matrices whose pivots are not on the diagonal."""
    dtype, m = d.choice(TYPES), d.choice(SIZES + (65, 80, 130))
    n = d.choice((m, m, m, m + 3, max(1, m // 2), max(1, m - 1)))
    # What cuBLAS makes of a zero pivot that is not the last one is no measure, and its pivots may lie outside of the matrix.
    ours = max(m, n) <= 64 and m * n * dtype.itemsize <= 48 << 10
    pivot = d.chance(0.9)
    if pivot:
        a, _, kind = general(d, dtype, m, n, ("normal", "normal", "graded", *(("few", "low rank", "zero column") if ours else ())))
    else:
        (a, _), kind = matrices(d, dtype, m, m, "regular"), "normal"

    def found(packed, pivots, info):
        p, l, u = torch.lu_unpack(packed, pivots)
        parts = torch.view_as_real(l) if l.is_complex() else l
        # Pivots are chosen by length or by the sum of parts.
        small = (parts.abs() <= (1.4143 if l.is_complex() else 1.0001)).all() if pivot else torch.ones((), dtype=torch.bool, device=l.device)
        return [(p @ l @ u).contiguous(), small, info if exact else torch.zeros_like(info),
                pivots[..., 0] if exact and not l.is_complex() else torch.zeros_like(info)]

    exact = kind == "normal" and pivot

    def expected(a):
        right = torch.ones((), dtype=torch.bool, device=a.device)
        if not exact:
            nothing = torch.zeros(a.shape[:-2], dtype=torch.int32, device=a.device)
            return [a.contiguous(), right, nothing, nothing]
        _, pivots, info = aten.linalg_lu_factor_ex(a)
        return [a.contiguous(), right, info, pivots[..., 0] if not a.is_complex() else torch.zeros_like(info)]
    return case.Case(f"linalg_lu_factor_ex {dtype} {list(a.shape)} {a.stride()} {kind} {pivot}",
                     lambda a: found(*abi.call_named("linalg_lu_factor_ex", "", a, pivot=pivot)), expected, [a],
                     magnitude=lambda a: a.abs().amax(), error=64.0 + 16 * max(m, n), strides=False)


def failures(d):
    """The first zero pivot: of a column of zeros, which stay zeros."""
    dtype, m = d.choice(TYPES[:-1]), d.choice(SIZES)
    n = d.choice((m, m, min(64, m + 3), max(1, m // 2)))
    a, at = d.values(dtype, (*d.choice(((), (3,), (70,))), m, n)), d.randrange(n)
    a[..., at] = 0
    a = d.laid_out(a, ("packed", "packed", "permuted", "padded"))
    return case.Case(f"linalg_lu_factor_ex {dtype} {list(a.shape)} {a.stride()} column {at} of zeros",
                     lambda a: [abi.call_named("linalg_lu_factor_ex", "", a)[2]],
                     lambda a: [torch.full(a.shape[:-2], at + 1 if at < m else 0, dtype=torch.int32, device=a.device)], [a], strides=False)


def spectrum(d):
    """Singular values of matrices that are singular, or far from 1."""
    dtype, m = d.choice(TYPES), d.choice(SIZES + (65, 80, 130))
    n = d.choice((m, m, m + 3, max(1, m // 2), max(1, m - 1), 3 * m))
    a, scale, kind = general(d, dtype, m, n, ("normal", "few", "low rank", "low rank", "equal columns", "zero column", "zero", "graded", "tiny", "huge"))
    full, vectors = d.chance(0.4), d.chance(0.8)

    def back(u, s, vh):
        s = s / scale
        if not vectors:
            return [s]
        k = min(m, n)
        return [s, (u[..., :k] @ (s.unsqueeze(-1) * vh[..., :k, :])).contiguous(), (u.mH @ u).contiguous(), (vh @ vh.mH).contiguous()]
    return case.Case(f"_linalg_svd {dtype} {list(a.shape)} {a.stride()} {kind} {full} {vectors}",
                     lambda a: back(*abi.call_named("_linalg_svd", "", a, full_matrices=full, compute_uv=vectors)),
                     lambda a: back(*aten._linalg_svd(a, full_matrices=full, compute_uv=vectors, driver=DRIVER)), [a], error=64.0 + 16 * max(m, n), strides=False,
                     # By LAPACK: cuSOLVER loses a thousand units of the last place where columns are equal.
                     exact=lambda a: back(*torch.linalg.svd(a.cpu(), full_matrices=full)),
                     magnitude=lambda a: 1 + (a / scale).abs().amax() * max(m, n) ** 0.5)


def algebra(d):
    dtype, n = d.choice(TYPES), d.choice(SIZES)
    r = d.choice((1, 2, 3, 8))
    way = d.choice(("lu", "solve", "inverse", "determinant", "cholesky", "cholesky_solve", "triangular", "qr", "svd", "eigh", "lu_solve", "householder", "exp"))
    # Well conditioned, so errors grow only with the size.
    near = dict(error=64.0 + 16 * n, strides=False)
    if way in ("lu", "solve", "inverse", "determinant", "lu_solve", "triangular"):
        a, batch = matrices(d, dtype, n, n, "regular")
        label = f"{dtype} {list(a.shape)} {a.stride()}"
        bound = lambda *v: (1 + v[0].abs().amax())
        if way == "lu":
            return case.named(label, "linalg_lu_factor_ex", "", a, pivot=True, **near, magnitude=bound)
        if way == "inverse":
            return case.named(label, "linalg_inv_ex", "", a, **near, magnitude=lambda a: (1.0 + 0 * a.abs()).amax())
        if way == "determinant":
            return case.Case(f"_linalg_slogdet {label}", lambda a: abi.call_named("_linalg_slogdet", "", a)[:2], lambda a: list(aten._linalg_slogdet(a))[:2], [a],
                             magnitude=lambda a: torch.ones((), dtype=torch.float64, device=a.device) * (1 + n * 4), **near)
        left = d.chance(0.6)
        b = d.laid_out(d.values(dtype, (*batch, *((n, r) if left else (r, n)))), ("packed", "permuted", "padded"))
        label += f" {left} {b.stride()}"
        two = lambda a, b, *_: 4 * b.abs().amax()
        if way == "solve":
            return case.Case(f"_linalg_solve_ex {label}", lambda a, b: abi.call_named("_linalg_solve_ex", "", a, b, left=left)[:1],
                             lambda a, b: list(aten._linalg_solve_ex(a, b, left=left))[:1], [a, b], magnitude=two, **near)
        if way == "lu_solve":
            lu, pivots, _ = aten.linalg_lu_factor_ex(a)
            adjoint = d.chance(0.4)
            return case.named(f"{label} {adjoint}", "linalg_lu_solve", "", lu, pivots, b, left=left, adjoint=adjoint, **near, magnitude=lambda l, p, b: 4 * b.abs().amax())
        upper, unit = d.chance(0.5), d.chance(0.3)
        s = a / (2 * n) if unit else a
        return case.named(f"{label} {upper} {unit}", "linalg_solve_triangular", "", s, b, upper=upper, left=left, unitriangular=unit, **near,
                          magnitude=lambda s, b: 4 * b.abs().amax() * (2.0 ** (n / 8) if unit else 1))
    if way in ("cholesky", "cholesky_solve"):
        a, batch = matrices(d, dtype, n, n, "positive")
        upper = d.chance(0.4)
        label = f"{dtype} {list(a.shape)} {a.stride()} {upper}"
        if way == "cholesky":
            return case.named(label, "linalg_cholesky_ex", "", a, upper=upper, **near, magnitude=lambda a: 1 + a.abs().amax() ** 0.5)
        factor = aten.linalg_cholesky_ex(a, upper=upper)[0]
        b = d.laid_out(d.values(dtype, (*batch, n, r)), ("packed", "permuted", "padded"))
        return case.shim(label, "cholesky_solve", b, factor, upper, torch=lambda b, f, u: torch.cholesky_solve(b, f, u), magnitude=lambda b, *_: 4 * b.abs().amax(), **near)
    if way == "exp":
        # Summed here, because PyTorch 2.11's own degree leaves an error of 1e-13 for small float64 matrices on every
        # device.
        def exponential(a):
            power = total = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device).expand(a.shape)
            for k in range(1, 24):
                power = power @ a / (16 * k)
                total = total + power
            for _ in range(4):
                total = total @ total
            return [total]

        a, _ = matrices(d, dtype, min(n, 16), min(n, 16))
        a = a / n * d.choice((0.01, 0.5, 2.0))
        return case.named(f"{dtype} {list(a.shape)}", "linalg_matrix_exp", "", a, **near, exact=exponential, magnitude=lambda a: 16 * torch.linalg.matrix_exp(a).abs().amax())
    m = d.choice((n, n, n + 3, max(1, n // 2)))
    a, batch = matrices(d, dtype, m, n)
    label = f"{dtype} {list(a.shape)} {a.stride()}"
    size = lambda a: (1 + a.abs().amax() * max(m, n) ** 0.5)
    if way == "qr":
        mode = d.choice(("reduced", "complete"))

        def product(q, r):
            return [(q @ r).contiguous(), (q.mH @ q).contiguous(), r.abs().tril(-1)]
        return case.Case(f"linalg_qr {label} {mode}", lambda a: product(*abi.call_named("linalg_qr", "", a, mode)), lambda a: product(*aten.linalg_qr(a, mode)), [a],
                         magnitude=size, **near)
    if way == "householder":
        if m < n:
            return None
        q, tau = torch.geqrf(a)
        return case.named(label, "linalg_householder_product", "", q, tau, magnitude=lambda q, t: 4 * torch.ones((), dtype=torch.float64, device=q.device), **near)
    if way == "svd":
        full = d.chance(0.4)

        def back(u, s, vh):
            k = min(m, n)
            return [s, (u[..., :k] @ (s.unsqueeze(-1) * vh[..., :k, :])).contiguous(), (u.mH @ u).contiguous(), (vh @ vh.mH).contiguous()]
        return case.Case(f"_linalg_svd {label} {full}", lambda a: back(*abi.call_named("_linalg_svd", "", a, full_matrices=full, compute_uv=True)),
                         lambda a: back(*aten._linalg_svd(a, full_matrices=full, compute_uv=True, driver=DRIVER)), [a], magnitude=lambda a: size(a) * 2, **near)
    if m != n:
        return None
    s = a + a.mH
    s = d.laid_out(s.cpu(), ("packed", "permuted", "padded"))
    uplo = d.choice("LU")

    def held(w, v, s):
        return [w, (s @ v - v * w.unsqueeze(-2)).abs(), (v.mH @ v).abs()]
    return case.Case(f"_linalg_eigh {label} {uplo}", lambda s: held(*abi.call_named("_linalg_eigh", "", s, uplo, True), s),
                     lambda s: held(*aten._linalg_eigh(s, uplo, True), s), [s], magnitude=lambda s: 1 + s.abs().amax() * n, **near)


NETWORKS = ((6, 8, 1, False, 0), (6, 8, 2, True, 0), (5, 4, 2, False, 0), (6, 8, 2, True, 3), (16, 16, 1, False, 0))


def recurrent(d):
    """From a list, because each network is planned once."""
    if d.chance(0.4):
        dtype = d.choice((torch.float32, torch.float64, torch.float16))
        b, h = d.size(1, 7, 8, low=1, high=60), d.size(1, 5, 8, 32, low=1, high=60)
        t = lambda *s: d.tensor(dtype, s, "normal", ("packed", "packed", "permuted", "padded"))
        given = [t(b, 4 * h), t(b, 4 * h), t(b, h), *((t(4 * h), t(4 * h)) if d.chance(0.5) else (None, None))]
        return case.shim(f"{dtype} {b} {h}", "_thnn_fused_lstm_cell", *given, torch=lambda *v: aten._thnn_fused_lstm_cell(*v), error=32.0, strides=False,
                         magnitude=lambda a, *r: 1 + a.abs().amax() if a.numel() else a)
    kind, mode = d.choice((("RNN", 1), ("LSTM", 2), ("GRU", 3)))
    inputs, hidden, layers, both, projection = d.choice(NETWORKS)
    if projection and kind != "LSTM":
        return None
    dtype = d.choice((torch.float32, torch.float64))
    options = {"proj_size": projection} if projection else {}
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = getattr(torch.nn, kind)(inputs, hidden, layers, bidirectional=both, dtype=dtype, **options).to(d.device)
    weights = [w.detach() for w in model._flat_weights]
    stride = len(weights) // (layers * (1 + both))
    steps, batch, first = d.choice((1, 4)), d.choice((1, 3)), d.chance(0.3)
    x = d.tensor(dtype, (batch, steps, inputs) if first else (steps, batch, inputs), "normal", ("packed", "permuted", "padded"))
    states = layers * (1 + both)
    h = d.tensor(dtype, (states, batch, projection or hidden), "normal", ("packed", "permuted"))
    c = d.tensor(dtype, (states, batch, hidden), "normal", ("packed", "permuted")) if kind == "LSTM" else None

    def plain(x, weights, h, c):
        copy = getattr(torch.nn, kind)(inputs, hidden, layers, bidirectional=both, batch_first=first, dtype=weights[0].dtype, **options).to(d.device)
        with torch.no_grad():
            for place, w in zip(copy._flat_weights, weights):
                place.copy_(w)
            with torch.backends.cudnn.flags(enabled=False):
                y, state = copy(x, (h, c) if c is not None else h)
        return [y, *(state if isinstance(state, tuple) else [state])]

    def ours(x, weights, h, c):
        found = abi.call("_cudnn_rnn", x, weights, stride, None, h, c, mode, hidden, projection, layers, first, 0.0, False, both, [], None)[:3]
        return found[:3] if c is not None else found[:2]
    return case.Case(f"_cudnn_rnn {kind} {dtype} {inputs} {hidden} {layers} {both} {projection} {list(x.shape)} {first}", ours, plain, [x, weights, h, c], strides=False,
                     # TF32, as in PyTorch's cuDNN
                     error=2.0 ** 13 if dtype == torch.float32 else 64.0, magnitude=lambda x, *r: 1 + 0 * x.abs().amax())


def draw(d):
    return d.choice((transform, transform, transform, algebra, algebra, algebra, factors, factors, failures, spectrum, spectrum, recurrent))(d)
