"""Cases of against_torch.py: operators by name that run on the device, besides library_cases.py."""
import torch

from against_torch import Failed, call_named, case, name_of, seed

aten = torch.ops.aten
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.complex64: 1e-4, torch.float64: 1e-12,
             torch.complex128: 1e-11}


def randn(*shape, dtype=torch.float32):
    shape = shape[0] if shape and isinstance(shape[0], tuple) else shape
    if dtype in (torch.float16, torch.bfloat16):
        return torch.randn(shape, device="cuda").to(dtype)
    return torch.randn(shape, dtype=dtype, device="cuda")


def same(name, overload, tag, *arguments, e=0.0, drawn=False, strides=True, **options):
    if not hasattr(aten, name):
        return
    function = getattr(getattr(aten, name), overload or "default")

    def seeded(f):
        if drawn:
            seed(11)
        result = f()
        return list(result) if isinstance(result, (tuple, list)) else [result]
    case(f"aten::{name}{'.' + overload if overload else ''} {tag}",
         lambda: seeded(lambda: call_named(name, overload, *arguments, **options)),
         lambda: seeded(lambda: function(*arguments, **options)), e, e, strides)


def function_cases():
    for dtype, e in TOLERANCE.items():
        tag = name_of(dtype)
        for form, x in (("", randn(7, 33, dtype=dtype)), ("turned", randn(33, 7, dtype=dtype).t()),
                        ("empty", randn(0, 3, dtype=dtype)), ("sliced", randn(9, 40, dtype=dtype)[:, ::3]),
                        ("0-d", randn((), dtype=dtype))):
            for name in ("neg", "reciprocal", "exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "conj_physical", "abs"):
                same(name, "", f"{tag} {form}", x, e=e * (4 if dtype.is_complex else 1))
            y = randn(*x.shape, dtype=dtype) + 2
            same("div", "Tensor", f"{tag} {form}", x, y, e=e)
            same("div", "Scalar", f"{tag} {form}", x, 3.0, e=e)
            same("add", "Scalar", f"{tag} {form}", x, 1.5, e=e)
            same("sub", "Scalar", f"{tag} {form}", x, 1.5, e=e)
            same("pow", "Tensor_Scalar", f"{tag} {form}", x, 2.0, e=e)
    whole = torch.randint(-9, 9, (5, 6), device="cuda")
    same("neg", "", "int64", whole)
    same("exp", "", "int64", whole, e=1e-5)
    same("div", "Tensor", "int64", whole, whole + 20, e=1e-6)
    z = randn(5, 6, dtype=torch.complex64)
    same("div", "Tensor", "complex64 float32", z, randn(6) + 3, e=1e-5)
    for dtype in (torch.float32, torch.float64, torch.float16):
        same("complex", "", name_of(dtype), randn(4, 1, dtype=dtype), randn(4, 5, dtype=dtype))


def sum_cases():
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128, torch.int64,
                  torch.int32, torch.bool):
        whole = dtype in (torch.int64, torch.int32, torch.bool)
        x = torch.randint(0, 2, (5, 70, 11), device="cuda").to(dtype) if whole else randn(5, 70, 11, dtype=dtype)
        e = 0 if whole else TOLERANCE[dtype] * 10
        for form, t in (("", x), ("turned", x.transpose(0, 2)), ("empty", x[:, :0])):
            tag = f"{name_of(dtype)} {form}"
            same("sum", "", tag, t, e=e)
            for dims in ([1], [-1, 0], [0, 1, 2], []):
                for keep in (False, True):
                    same("sum", "dim_IntList", f"{tag} {dims} {keep}", t, dims, keep, e=e, strides=False)
                    if not whole and t.numel():
                        same("mean", "dim", f"{tag} {dims} {keep}", t, dims, keep, e=e, strides=False)
    a, b = (torch.randint(-9, 9, shape, dtype=torch.int8, device="cuda") for shape in ((32, 64), (64, 24)))
    same("_int_mm", "", "int8", a, b)


def copy_cases():
    for dtype in (torch.float32, torch.complex64, torch.int64, torch.bool, torch.bfloat16):
        x = randn(4, 6, 5).to(dtype) if not dtype.is_complex else randn(4, 6, 5, dtype=dtype)
        tag = name_of(dtype)
        same("clone", "", tag, x.transpose(0, 2))
        for name, overload, arguments in (
                ("alias_copy", "", ()), ("permute_copy", "", ([2, 0, 1],)), ("select_copy", "int", (1, 3)),
                ("slice_copy", "Tensor", (1, 1, 6, 2)), ("transpose_copy", "int", (0, 1)), ("unsqueeze_copy", "", (1,)),
                ("squeeze_copy", "dim", (0,)), ("narrow_copy", "", (1, 2, 3)), ("diagonal_copy", "", (1, 0, 1)),
                ("unfold_copy", "", (1, 3, 2)), ("as_strided_copy", "", ([3, 4], [5, 1], 2)), ("view_copy", "", ([8, 15],)),
                ("expand_copy", "", ([2, 4, 6, 5],)), ("_unsafe_view", "", ([24, 5],)), ("zero", "", ())):
            same(name, overload, tag, x, *arguments)
        same("roll", "", tag, x, [2, -1], [0, 2])
        same("roll", "", f"{tag} flat", x, [7], [])
        same("new_zeros", "", tag, x, [3, 4])
        same("constant_pad_nd", "", tag, x, [1, 2, 0, 3], 0.0 if dtype != torch.bool else 0)
        same("constant_pad_nd", "", f"{tag} cut", x, [-1, 2, 1, -3], 1.0 if dtype != torch.bool else 1)
        same("diag_embed", "", tag, x, 1, 0, 2)
        same("slice_backward", "", tag, x[:, 1:5:2], [4, 6, 5], 1, 1, 5, 2)
        same("select_backward", "", tag, x[:, 2], [4, 6, 5], 1, 2)
        same("new_ones", "", tag, x.transpose(0, 1), [3])
        same("zeros_like", "", tag, x.transpose(0, 1))
        same("ones_like", "", tag, x[:, ::2])
        if dtype.is_floating_point:
            same("full_like", "", tag, x, 2.5)
            same("new_full", "", tag, x, [2, 0, 3], 1.5)
            same("pixel_shuffle", "", tag, randn(2, 8, 3, 5, dtype=dtype), 2)
        same("copy", "", tag, x, x[:, :1])
        same("as_strided_scatter", "", tag, x, x[0, 0, :4].clone(), [4], [7], 3)
        if dtype.is_floating_point:
            same("fill", "Scalar", tag, x, 2.5)


def matrix_cases():
    for dtype, e in ((torch.float32, 2e-4), (torch.float64, 1e-10), (torch.complex64, 2e-4), (torch.complex128, 1e-10)):
        tag = name_of(dtype)
        for batch in ((), (3,), (2, 2), (0,)):
            for m, n in ((5, 5), (7, 4), (4, 7), (1, 3)):
                a = randn(*batch, m, n, dtype=dtype)
                for form, x in (("", a), ("turned", a.transpose(-1, -2).contiguous().transpose(-1, -2))):
                    label = f"{tag} {[*batch, m, n]} {form}"
                    same("linalg_pinv", "atol_rtol_tensor", label, x, e=e, strides=False)
                    same("linalg_pinv", "atol_rtol_tensor", f"{label} tolerances", x, e=e, strides=False,
                         atol=torch.tensor(0.5, dtype=torch.float64, device="cuda"),
                         rtol=torch.tensor(0.3, dtype=torch.float64, device="cuda"))
                    if m >= n:
                        same("linalg_polar", "", label, x, e=e, strides=False)
            s = randn(*batch, 6, 6, dtype=dtype)
            s = s + s.mH
            same("linalg_pinv", "atol_rtol_tensor", f"{tag} {[*batch, 6]} hermitian", s, e=e * 10, strides=False, hermitian=True)
            same("linalg_matrix_sqrth", "", f"{tag} {[*batch, 6]}", s @ s, e=e * 10, strides=False)
            for scale in (0.01, 1.0, 30.0):
                x = randn(*batch, 6, 6, dtype=dtype) * scale / 6
                limit = e * torch.linalg.matrix_exp(x).abs().amax().item() if x.numel() else e
                same("linalg_matrix_exp", "", f"{tag} {[*batch, 6]} {scale}", x, e=limit)
        x = torch.stack([randn(9, 9, dtype=dtype) * scale for scale in (0.01, 3.0, 0.5, 1.0, 2.0)])
        expected = torch.stack([torch.linalg.matrix_exp(m) for m in x])
        case(f"aten::linalg_matrix_exp {tag} of several norms",
             lambda: [r / r.abs().amax((-1, -2), True) for r in call_named("linalg_matrix_exp", "", x)],
             lambda: [expected / expected.abs().amax((-1, -2), True)], e, e)
        lost = x.clone()
        lost[1, 0, 0] = torch.inf
        case(f"aten::linalg_matrix_exp {tag} not finite",
             lambda: [call_named("linalg_matrix_exp", "", lost)[0][1].abs().isnan()],
             lambda: [torch.ones(9, 9, dtype=torch.bool, device="cuda")])


def set_cases():
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.bool, torch.float32, torch.float16, torch.float64):
        for shape in ((40,), (7, 9), (1,), (0,), (3000,)):
            x = torch.randint(0, 2 if dtype == torch.bool else 20, shape, device="cuda").to(dtype)
            if dtype.is_floating_point and x.numel() > 3:
                x.view(-1)[1:3] = torch.nan
                x.view(-1)[3] = -0.0
            for inverse, counts in ((False, False), (True, True), (False, True)):
                same("_unique2", "", f"{name_of(dtype)} {list(shape)} {inverse} {counts}", x, True, inverse, counts)
            if dtype in (torch.int64, torch.int32, torch.uint8) and x.dim() == 1:
                for weights in (None, torch.rand(shape, device="cuda"), torch.rand(shape, device="cuda", dtype=torch.float64)):
                    for least in (0, 50):
                        tag = f"{name_of(dtype)} {list(shape)} {weights is not None and name_of(weights.dtype)} {least}"
                        same("bincount", "", tag, x, weights, least, e=1e-5)


def resize_cases():
    for dtype, e in ((torch.float32, 1e-5), (torch.float64, 1e-11), (torch.float16, 3e-3), (torch.bfloat16, 2e-2)):
        for h, w, to in ((33, 47, [11, 20]), (16, 16, [16, 16]), (9, 10, [31, 27]), (50, 20, [20, 50])):
            for last in (False, True):
                x = randn(2, 3, h, w, dtype=dtype)
                g = randn(2, 3, *to, dtype=dtype)
                if last:
                    x, g = (t.to(memory_format=torch.channels_last) for t in (x, g))
                for corners in (False, True):
                    for kind in ("bilinear", "bicubic"):
                        tag = f"{name_of(dtype)} {h}x{w} {to} {corners} {'channels last' if last else ''}"
                        same(f"_upsample_{kind}2d_aa", "", tag, x, to, corners, e=e)
                        same(f"_upsample_{kind}2d_aa", "", f"{tag} scales", x, to, corners, to[0] / h, to[1] / w, e=e)
                        # PyTorch sums half types in half precision.
                        same(f"_upsample_{kind}2d_aa_backward", "", tag, g, to, [2, 3, h, w], corners, e=e * 10)


def random_cases():
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        tag = name_of(dtype)
        for shape in ((1000,), (4, 1000), (3, 7)):
            weights = torch.rand(*shape, device="cuda").to(dtype) + 0.01
            weights[..., 1] = 0
            same("multinomial", "", f"{tag} {list(shape)}", weights, 1, drawn=True)
            same("multinomial", "", f"{tag} {list(shape)} replaced", weights, 1, True, drawn=True)
            if dtype in (torch.float32, torch.float64):  # equal elements may come in any order
                same("multinomial", "", f"{tag} {list(shape)} several", weights, 5, drawn=True)
        p, mean, std = torch.rand(40, 7, device="cuda").to(dtype), randn(40, 7, dtype=dtype), torch.rand(7, device="cuda").to(dtype)
        e = TOLERANCE[dtype]
        same("bernoulli", "", tag, p, drawn=True)
        same("bernoulli", "p", tag, p, 0.3, drawn=True)
        same("normal", "Tensor_float", tag, mean, 2.0, drawn=True, e=e)
        same("normal", "float_Tensor", tag, 1.5, std, drawn=True, e=e)
        same("normal", "Tensor_Tensor", tag, mean, std, drawn=True, e=e)
    whole = torch.zeros(30, 7, dtype=torch.int64, device="cuda")
    same("randint_like", "", "int64", whole, 90, drawn=True)
    same("randint_like", "low_dtype", "int64", whole, -5, 90, drawn=True)
    same("rand_like", "", "float32", mean.float(), drawn=True)
    same("randn_like", "", "float32", mean.float(), drawn=True, e=1e-6)

    def fails(*arguments):
        try:
            call_named("multinomial", "", *arguments)
        except Failed:
            return [True]
        return [False]
    for label, arguments in (("with replacement", (torch.rand(9, device="cuda"), 2, True)),
                             ("of a negative weight", (-torch.rand(9, device="cuda"), 1)),
                             ("of nothing", (torch.zeros(9, device="cuda"), 1)),
                             ("of NaN", (torch.full((9,), torch.nan, device="cuda"), 1))):
        case(f"aten::multinomial {label} refused", lambda: fails(*arguments), lambda: [True])


def run():
    for cases in (function_cases, sum_cases, copy_cases, matrix_cases, set_cases, resize_cases, random_cases):
        torch.manual_seed(0)
        cases()
