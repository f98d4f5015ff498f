"""Cases of against_torch.py for NVIDIA's libraries: Fourier transforms, linear algebra, recurrent networks."""
import torch

import against_torch as t
from against_torch import call, call_named, case, name_of

aten = torch.ops.aten
REALS = [torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
TOLERANCE = {torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float32: 2e-4, torch.complex64: 2e-4,
             torch.float64: 1e-10, torch.complex128: 1e-10, torch.complex32: 2e-2}


def randn(*shape, dtype=torch.float32):
    if dtype == torch.complex32:
        return torch.randn(*shape, dtype=torch.complex64, device="cuda").to(dtype)
    if dtype in (torch.float16, torch.bfloat16):
        return torch.randn(*shape, device="cuda").to(dtype)
    return torch.randn(*shape, dtype=dtype, device="cuda")


def forms(x, all_of_them=True):
    """Returns x, and the same numbers with other strides."""
    yield "", x
    if not all_of_them:
        return
    if x.dim() > 1:
        yield "turned", x.transpose(0, -1).contiguous().transpose(0, -1)
        order = list(range(1, x.dim())) + [0]
        back = [order.index(d) for d in range(x.dim())]
        yield "rolled", x.permute(order).contiguous().permute(back)
    wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1] + 1, dtype=x.dtype, device="cuda")
    part = wide[..., 1::2]
    part.copy_(x)
    yield "sliced", part


def fft_cases():
    problems = [((30,), [0]), ((4, 30), [1]), ((4, 30), [0]), ((4, 30), [0, 1]), ((4, 30), [1, 0]),
                ((3, 5, 7), [0, 1, 2]), ((3, 5, 7), [1, 2]), ((3, 5, 7), [2, 1]), ((3, 5, 8), [0, 2]),
                ((2, 3, 8, 9), [1, 3]), ((2, 3, 4, 5), [1, 2, 3]), ((2, 3, 4, 5), [0, 1, 2, 3]),
                ((2, 2, 3, 4, 5, 3), [1, 2, 3, 4, 5]), ((2, 131), [1]), ((3, 1), [1]), ((1, 64), [1])]  # cuFFT refuses an empty batch
    for shape, dims in problems:
        for norm in (0, 1, 2):
            for dtype in COMPLEX if norm == 1 else COMPLEX[:1]:
                tolerance = TOLERANCE[dtype]
                for form, z in forms(randn(*shape, dtype=dtype), norm == 1):
                    for forward in (True, False):
                        case(f"_fft_c2c {name_of(dtype)} {list(shape)} {dims} {norm} {forward} {form}",
                             lambda: call("_fft_c2c", z, dims, norm, forward),
                             lambda: aten._fft_c2c(z, dims, norm, forward), tolerance, tolerance)
                    last = dims[-1]
                    if 0 in shape:
                        continue
                    for size in {2 * (z.shape[last] - 1), 2 * z.shape[last] - 1} - {0}:
                        case(f"_fft_c2r {name_of(dtype)} {list(shape)} {dims} {norm} {size} {form}",
                             lambda: call_named("_fft_c2r", "", z, dims, norm, size),
                             lambda: aten._fft_c2r(z, dims, norm, size), tolerance, tolerance)
            for dtype in REALS if norm == 1 else REALS[:1]:
                tolerance = TOLERANCE[dtype]
                for form, x in forms(randn(*shape, dtype=dtype), norm == 1):
                    for onesided in (True, False):
                        case(f"_fft_r2c {name_of(dtype)} {list(shape)} {dims} {norm} {onesided} {form}",
                             lambda: call("_fft_r2c", x, dims, norm, onesided),
                             lambda: aten._fft_r2c(x, dims, norm, onesided), tolerance, tolerance)
    for shape, dims in [((4, 16), [1]), ((4, 8, 16), [1, 2])]:
        h, z = randn(*shape, dtype=torch.float16), randn(*shape, dtype=torch.complex32)
        case(f"_fft_r2c float16 {list(shape)}", lambda: call("_fft_r2c", h, dims, 1, True),
             lambda: aten._fft_r2c(h, dims, 1, True), 2e-2, 2e-2)
        case(f"_fft_c2c complex32 {list(shape)}", lambda: call("_fft_c2c", z, dims, 1, True),
             lambda: aten._fft_c2c(z, dims, 1, True), 2e-2, 2e-2)
    b = randn(4, 30, dtype=torch.bfloat16)
    case("_fft_r2c bfloat16", lambda: call("_fft_r2c", b, [1], 0, True),
         lambda: aten._fft_r2c(b.float(), [1], 0, True), 1e-4, 1e-3)


def well_behaved(*shape, dtype):
    """Square matrices far from singular."""
    n = shape[-1]
    return randn(*shape, dtype=dtype) + n * torch.eye(n, dtype=dtype, device="cuda")


def positive(*shape, dtype):
    a = randn(*shape, dtype=dtype)
    return a @ a.mH + shape[-1] * torch.eye(shape[-1], dtype=dtype, device="cuda")


def layouts(a, all_of_them=True):
    yield "", a
    if a.numel() and all_of_them:
        yield "turned", a.mT.contiguous().mT


def solve_cases(dtype):
    tag, e = name_of(dtype), TOLERANCE[dtype]
    named = call_named
    for batch in [(), (3,), (2, 2), (0,)]:
        for n in [5] if batch == (0,) else [1, 5, 40] + ([600] if batch == () and dtype == torch.float32 else []):
            for form, a in layouts(well_behaved(*batch, n, n, dtype=dtype)):
                label = f"{tag} {[*batch, n]} {form}"
                for check in (False, True):
                    case(f"linalg_lu_factor_ex {label} {check}",
                         lambda: named("linalg_lu_factor_ex", "", a, pivot=True, check_errors=check),
                         lambda: aten.linalg_lu_factor_ex(a, pivot=True, check_errors=check), e, e)
                case(f"linalg_lu {label}", lambda: named("linalg_lu", "", a), lambda: aten.linalg_lu(a), e, e)
                if n < 10:
                    case(f"_linalg_det {label}", lambda: named("_linalg_det", "", a), lambda: aten._linalg_det(a), e * 10, e)
                case(f"_linalg_slogdet {label}", lambda: named("_linalg_slogdet", "", a),
                     lambda: aten._linalg_slogdet(a), e * 10, e)
                case(f"linalg_inv_ex {label}", lambda: named("linalg_inv_ex", "", a), lambda: aten.linalg_inv_ex(a), e, e)
                lu, pivots, _ = aten.linalg_lu_factor_ex(a)
                for data, wants in ((True, True), (True, False), (False, True)):
                    case(f"lu_unpack {label} {data} {wants}", lambda: call("lu_unpack", lu, pivots, data, wants),
                         lambda: torch.lu_unpack(lu, pivots, data, wants))
                for left in (True, False):
                    for form_b, b in layouts(randn(*batch, *((n, 3) if left else (3, n)), dtype=dtype), not form):
                        case(f"_linalg_solve_ex {label} {left} {form_b}",
                             lambda: named("_linalg_solve_ex", "", a, b, left=left),
                             lambda: aten._linalg_solve_ex(a, b, left=left), e, e)
                        for adjoint in (True, False):
                            case(f"linalg_lu_solve {label} {left} {adjoint} {form_b}",
                                 lambda: named("linalg_lu_solve", "", lu, pivots, b, left=left, adjoint=adjoint),
                                 lambda: aten.linalg_lu_solve(lu, pivots, b, left=left, adjoint=adjoint), e, e)
                        for upper in (True, False):
                            for unit in (True, False):
                                s = a / n if unit else a
                                case(f"linalg_solve_triangular {label} {left} {upper} {unit} {form_b}",
                                     lambda: named("linalg_solve_triangular", "", s, b, upper=upper, left=left,
                                                   unitriangular=unit),
                                     lambda: aten.linalg_solve_triangular(s, b, upper=upper, left=left,
                                                                          unitriangular=unit), e * 10, e * 10)
                                if left:
                                    for turn in (True, False):
                                        case(f"triangular_solve {label} {upper} {turn} {unit} {form_b}",
                                             lambda: call("triangular_solve", b, s, upper, turn, unit),
                                             lambda: aten.triangular_solve(b, s, upper, turn, unit), e * 10, e * 10)
                vector = randn(*batch, n, dtype=dtype)
                case(f"_linalg_solve_ex vector {label}", lambda: named("_linalg_solve_ex", "", a, vector),
                     lambda: aten._linalg_solve_ex(a, vector), e, e)
            for form, p in layouts(positive(*batch, n, n, dtype=dtype)):
                label = f"{tag} {[*batch, n]} {form}"
                b = randn(*batch, n, 2, dtype=dtype)
                for upper in (True, False):
                    case(f"linalg_cholesky_ex {label} {upper}", lambda: named("linalg_cholesky_ex", "", p, upper=upper),
                         lambda: aten.linalg_cholesky_ex(p, upper=upper), e, e)
                    factor = aten.linalg_cholesky_ex(p, upper=upper)[0]
                    case(f"cholesky_solve {label} {upper}", lambda: call("cholesky_solve", b, factor, upper),
                         lambda: torch.cholesky_solve(b, factor, upper), e, e)
                    case(f"cholesky_inverse {label} {upper}", lambda: call("cholesky_inverse", factor, upper),
                         lambda: torch.cholesky_inverse(factor, upper), e, e)
    broken = positive(3, 4, 4, dtype=dtype)
    broken[1] = -broken[1]
    singular = well_behaved(3, 4, 4, dtype=dtype)
    singular[2, :, 1] = 0
    case(f"linalg_cholesky_ex not positive {tag}", lambda: named("linalg_cholesky_ex", "", broken)[1:],
         lambda: aten.linalg_cholesky_ex(broken)[1:])
    case(f"linalg_lu_factor_ex singular {tag}", lambda: named("linalg_lu_factor_ex", "", singular)[2:],
         lambda: aten.linalg_lu_factor_ex(singular)[2:])
    case(f"linalg_inv_ex singular {tag}", lambda: named("linalg_inv_ex", "", singular)[1:],
         lambda: aten.linalg_inv_ex(singular)[1:])
    for name, matrix in (("linalg_cholesky_ex", broken), ("linalg_inv_ex", singular)):
        def message():
            try:
                named(name, "", matrix, check_errors=True)
            except t.Failed as error:
                return [str(error).split(name, 1)[-1].split(": (Batch", 1)[-1][:60]]
            return ["no error"]

        def expected():
            try:
                getattr(aten, name)(matrix, check_errors=True)
            except RuntimeError as error:
                return [str(error).split(": (Batch", 1)[-1][:60]]
            return ["no error"]
        case(f"{name} reports {tag}", message, expected)
    plain = well_behaved(2, 6, 6, dtype=dtype)
    case(f"linalg_lu_factor_ex without pivots {tag}", lambda: named("linalg_lu_factor_ex", "", plain, pivot=False),
         lambda: aten.linalg_lu_factor_ex(plain, pivot=False), e, e)
    wide, tall = randn(2, 4, 7, dtype=dtype), randn(2, 7, 4, dtype=dtype)
    for label, m in (("wide", wide), ("tall", tall)):
        case(f"linalg_lu {label} {tag}", lambda: named("linalg_lu", "", m), lambda: aten.linalg_lu(m), e, e)
        lu, pivots, _ = aten.linalg_lu_factor_ex(m)
        case(f"lu_unpack {label} {tag}", lambda: call("lu_unpack", lu, pivots, True, True),
             lambda: torch.lu_unpack(lu, pivots))


def factor_cases(dtype):
    tag, e = name_of(dtype), TOLERANCE[dtype] * 10
    named = call_named
    for batch in [(), (3,), (12,), (0,)]:  # batches of twelve use the batched factorisation
        for m, n in [(1, 1), (6, 4), (4, 6), (33, 33), (70, 20)]:
            for form, a in layouts(randn(*batch, m, n, dtype=dtype)):
                label = f"{tag} {[*batch, m, n]} {form}"
                case(f"geqrf {label}", lambda: call("geqrf", a), lambda: torch.geqrf(a), e, e)
                q, tau = torch.geqrf(a)
                if m >= n:
                    case(f"linalg_householder_product {label}",
                         lambda: named("linalg_householder_product", "", q, tau),
                         lambda: aten.linalg_householder_product(q, tau), e, e)
                for left in (True, False):
                    c = randn(*batch, *((m, 3) if left else (3, m)), dtype=dtype)
                    for turn in (True, False):
                        case(f"ormqr {label} {left} {turn}", lambda: call("ormqr", q, tau, c, left, turn),
                             lambda: torch.ormqr(q, tau, c, left, turn), e, e)
                for mode in ("reduced", "complete", "r"):
                    case(f"linalg_qr {label} {mode}", lambda: named("linalg_qr", "", a, mode),
                         lambda: aten.linalg_qr(a, mode), e, e)
                for full in (True, False):
                    def svd(run):
                        u, s, vh = run()
                        k = min(m, n)
                        back = u[..., :k] @ (s.unsqueeze(-1) * vh[..., :k, :]) if a.numel() else a
                        return [s, back.contiguous(), (u.mH @ u).contiguous(), (vh @ vh.mH).contiguous(),
                                torch.empty_strided(u.shape, u.stride(), device="cuda").zero_(),
                                torch.empty_strided(vh.shape, vh.stride(), device="cuda").zero_()]
                    case(f"_linalg_svd {label} {full}",
                         lambda: svd(lambda: named("_linalg_svd", "", a, full_matrices=full, compute_uv=True)),
                         lambda: svd(lambda: aten._linalg_svd(a, full_matrices=full, compute_uv=True)), e, e)
                case(f"_linalg_svd values {label}",
                     lambda: named("_linalg_svd", "", a, compute_uv=False)[1:2],
                     lambda: aten._linalg_svd(a, compute_uv=False)[1:2], e, e)
        for n in (1, 5, 33):
            p = positive(*batch, n, n, dtype=dtype)
            for form, s in layouts(p):
                for uplo in ("L", "U"):
                    def eigh(run):
                        w, v = run()
                        return [w, (s @ v - v * w.unsqueeze(-2)).contiguous() / n,
                                torch.empty_strided(v.shape, v.stride(), device="cuda").zero_()]
                    case(f"_linalg_eigh {tag} {[*batch, n]} {uplo} {form}",
                         lambda: eigh(lambda: named("_linalg_eigh", "", s, uplo, True)),
                         lambda: eigh(lambda: aten._linalg_eigh(s, uplo, True)), e, e)
                case(f"_linalg_eigh values {tag} {[*batch, n]} {form}",
                     lambda: named("_linalg_eigh", "", s, "L", False)[:1],
                     lambda: aten._linalg_eigh(s, "L", False)[:1], e, e)
            g = randn(*batch, n, n, dtype=dtype)

            def in_order(w):
                w = w.to(torch.complex128)
                key = w.real.round(decimals=3) * 1e6 + w.imag
                return w.gather(-1, key.argsort(-1)).to(torch.complex64) if w.numel() else w

            def eig():
                w, v = named("linalg_eig", "", g)
                c = g.to(w.dtype)
                norms = v.abs().square().sum(-2).sqrt().to(torch.float32)
                return [in_order(w), (c @ v - v * w.unsqueeze(-2)).abs().to(torch.float32), norms]

            def expected():
                w = torch.linalg.eigvals(g)
                return [in_order(w), torch.zeros(g.shape, device="cuda"), torch.ones(g.shape[:-1], device="cuda")]
            case(f"linalg_eig {tag} {[*batch, n]}", eig, expected, e, e * n, strides=False)
            case(f"_linalg_eigvals {tag} {[*batch, n]}", lambda: [in_order(named("_linalg_eigvals", "", g)[0])],
                 lambda: [in_order(torch.linalg.eigvals(g))], e, e * n)


def recurrent_cases():
    modes = {"RNN_RELU": 0, "RNN_TANH": 1, "LSTM": 2, "GRU": 3}
    for dtype, e in [(torch.float32, 2e-3), (torch.float64, 1e-10), (torch.float16, 1e-2), (torch.bfloat16, 6e-2)]:
        for kind, mode in modes.items():
            for layers, both, bias, first, projection in [(1, False, True, False, 0), (2, True, True, True, 0),
                                                          (2, False, False, False, 0), (2, True, True, False, 3)]:
                if projection and kind != "LSTM":
                    continue
                options = {} if not kind.startswith("RNN") else {"nonlinearity": kind[4:].lower()}
                if projection:
                    options["proj_size"] = projection
                model = getattr(torch.nn, kind.split("_")[0])(
                    6, 8, layers, bias=bias, batch_first=first, bidirectional=both, device="cuda", dtype=dtype, **options)
                weights = [w.detach() for w in model._flat_weights]
                stride = len(weights) // (layers * (1 + both))
                x = randn(5, 3, 6, dtype=dtype) if not first else randn(3, 5, 6, dtype=dtype)
                states = layers * (1 + both)
                hx = randn(states, 3, projection or 8, dtype=dtype)
                cx = randn(states, 3, 8, dtype=dtype) if kind == "LSTM" else None
                label = f"{kind} {name_of(dtype)} {layers} {both} {bias} {first} {projection}"

                def run_torch(data, sizes=(), h=hx, c=cx):
                    with torch.no_grad():
                        return aten._cudnn_rnn(data, weights, stride, None, h, c, mode, 8, projection, layers, first, 0.0,
                                               False, both, list(sizes), None)[:3]

                def run_own(data, sizes=(), buffer=None, train=False):
                    return call("_cudnn_rnn", data, weights, stride, buffer, hx, cx, mode, 8, projection, layers, first,
                                0.0, train, both, list(sizes), None)[:3]
                case(f"_cudnn_rnn {label}", lambda: run_own(x), lambda: run_torch(x), e, e)
                case(f"_cudnn_rnn training {label}", lambda: run_own(x, train=True), lambda: run_torch(x), e, e)
                if not first:
                    rows = randn(10, 6, dtype=dtype)
                    case(f"_cudnn_rnn packed {label}", lambda: run_own(rows, [3, 3, 2, 1, 1]),
                         lambda: run_torch(rows, [3, 3, 2, 1, 1]), e, e)
                if dtype == torch.float32:
                    def own_buffer():
                        made = call("_cudnn_rnn", x, weights, stride, None, hx, cx, mode, 8, projection, layers, first,
                                    0.0, False, both, [], None)[4]
                        return run_own(x, buffer=made)
                    case(f"_cudnn_rnn buffer {label}", own_buffer, lambda: run_torch(x), e, e)
        for bias in (True, False):
            a, b, c = randn(7, 20, dtype=dtype), randn(7, 20, dtype=dtype), randn(7, 5, dtype=dtype)
            one, two = (randn(20, dtype=dtype), randn(20, dtype=dtype)) if bias else (None, None)
            e2 = {torch.float64: 1e-12, torch.float32: 1e-5}.get(dtype, e)
            case(f"_thnn_fused_lstm_cell {name_of(dtype)} {bias}",
                 lambda: call("_thnn_fused_lstm_cell", a, b, c, one, two),
                 lambda: aten._thnn_fused_lstm_cell(a, b, c, one, two), e2, e2)


def run():
    torch.manual_seed(0)
    fft_cases()
    for dtype in REALS + COMPLEX:
        torch.manual_seed(0)
        solve_cases(dtype)
        factor_cases(dtype)
    torch.manual_seed(0)
    recurrent_cases()
