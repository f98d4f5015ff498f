"""Cases of against_torch.py: both sides of the switches between a kernel for the usual form and the general one."""
import torch

from against_torch import call, call_named, case
from operator_cases import FLOATS, loose, name_of, ops, randint, randn, same

HALVES = [torch.float16, torch.bfloat16]


def unaligned(x):
    """The same values one element behind an aligned address."""
    longer = torch.empty(x.numel() + 1, dtype=x.dtype, device="cuda")
    longer[1:] = x.reshape(-1)
    return longer[1:].view(x.shape)


def element_cases():
    special = torch.tensor([0.0, -0.0, 1.0, -1.0, 1e-40, -1e-40, 3e38, 1e6, -1e6, 1e30, torch.inf, -torch.inf, torch.nan, 2.5, -3.0,
                            7.0], device="cuda")
    for dtype in (torch.float32, torch.float64, torch.float16):
        tag, r = name_of(dtype), loose(dtype, 0.1)
        for shape in ((0,), (4, 4096), (3, 1001), (5, 7)):
            length, angle = randn(*shape, dtype=dtype), (randn(*shape) * 20).to(dtype)
            for label, a, b in (("", length, angle), ("unaligned", unaligned(length), unaligned(angle)),
                                ("one length", length.reshape(-1)[:1].expand(shape) if length.numel() else length, angle),
                                ("turned", length.t().contiguous().t() if len(shape) == 2 else length, angle)):
                for name in ("polar", "complex"):
                    if dtype == torch.float16 and name == "complex":
                        continue
                    run = (lambda a=a, b=b, name=name: call_named(name, "", a, b)) if name == "complex" else (
                        lambda a=a, b=b: call("polar", a, b))
                    case(f"{name} {tag} {list(shape)} {label}", run,
                         lambda a=a, b=b, name=name: getattr(torch, name)(a, b), r, r)
        lengths, angles = (t.reshape(-1).contiguous().to(dtype) for t in torch.meshgrid(special, special, indexing="ij"))
        case(f"polar {tag} special", lambda: call("polar", lengths, angles), lambda: torch.polar(lengths, angles), r, r)
    for dtype in FLOATS:
        tag, r = name_of(dtype), loose(dtype, 0.1)
        bases, powers = (t.reshape(-1).contiguous().to(dtype) for t in torch.meshgrid(special, special, indexing="ij"))
        for label, a, b in (("", bases, powers), ("unaligned", unaligned(bases), unaligned(powers)),
                            ("square", bases.view(16, 16), powers.view(16, 16)),
                            ("by rows", bases.view(16, 16), special.to(dtype)),
                            ("by columns", bases.view(16, 16), special.to(dtype)[:, None])):
            case(f"pow_Tensor_Tensor {tag} special {label}", lambda a=a, b=b: call("pow_Tensor_Tensor", a, b),
                 lambda a=a, b=b: torch.pow(a, b), r, r)
        for exponent in (0.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 1.7, -3.3, float("inf"), float("nan")):
            for label, a in (("", bases), ("unaligned", unaligned(bases)), ("turned", bases.view(16, 16).t())):
                case(f"pow_Tensor_Scalar {tag} special {exponent} {label}", lambda a=a: call("pow_Tensor_Scalar", a, exponent),
                     lambda a=a: torch.pow(a, exponent), r, r)
            case(f"pow_Scalar {tag} special {exponent}", lambda: call("pow_Scalar", exponent, bases),
                 lambda: torch.pow(exponent, bases), r, r)


def scatter_cases():
    for dtype in FLOATS + [torch.int32]:
        tag, r = name_of(dtype), loose(dtype, 8)
        for width in (8, 12, 32, 7):
            x, source = randn(20, width).mul(2).to(dtype), randn(50, width).mul(2).to(dtype)
            if dtype.is_floating_point:
                source[3, 1] = torch.nan
            rows = randint(20, 50)
            rows[3] = 19
            for label, index, src, into in (
                    ("", rows[:, None].expand(-1, width), source, x),
                    ("unaligned", rows[:, None].expand(-1, width), unaligned(source), x),
                    ("own index", rows[:, None].expand(-1, width).contiguous(), source, x),
                    ("three", rows[:, None, None].expand(-1, 2, width), torch.stack([source] * 2, 1), torch.stack([x] * 2, 1))):
                for reduce in ("sum", "prod", "amax", "amin", "mean"):
                    for include in (True, False):
                        out = torch.empty_like(into)
                        case(f"scatter_reduce_two_out {tag} {width} {label} {reduce} {include}",
                             lambda: (call("scatter_reduce_two_out", out, into, 0, index, src, reduce, include), [out])[1],
                             lambda: torch.scatter_reduce(into.cpu(), 0, index.cpu(), src.cpu(), reduce, include_self=include).cuda()
                             if dtype not in HALVES else
                             torch.scatter_reduce(into, 0, index, src, reduce, include_self=include), r, r)
    # Offsets that need 64-bit keys, and those that need few bits.
    few = randn(300, 40)
    at = randint(300, 2000)
    for label, index in (("rows", [at]), ("columns", [None, at % 40]), ("both", [at, at % 40])):
        values = randn(*few[tuple(slice(None) if i is None else i for i in index)].shape)
        case(f"index_put sums {label}", lambda: call("index_put", few, index, values, True),
             lambda: torch.index_put(few.double(), [slice(None) if i is None else i for i in index] if None in index else index,
                                     values.double(), True).float() if None not in index else
             few.double().index_add(1, index[1], values.double()).float(), 1e-4, 1e-4)
    many = torch.zeros(2**31 + 64, dtype=torch.int8, device="cuda")
    far = torch.tensor([5, 2**31 + 63, 5, 2**31 + 1, 0, 2**31 + 63], device="cuda")
    ones = torch.ones(6, dtype=torch.int8, device="cuda")

    def taken(result):
        return [result[far], result.count_nonzero()]
    case("index_put sums beyond 2^31", lambda: taken(call("index_put", many, [far], ones, True)[0]),
         lambda: taken(torch.index_put(many, [far], ones, True)))


def pooling_cases():
    for dtype in FLOATS:
        tag, r = name_of(dtype), loose(dtype, 0.4)
        for sizes in ((2, 3, 6, 8, 10), (2, 3, 5, 7, 9), (1, 2, 1, 2, 3), (1, 4, 9, 4, 12)):
            x = randn(*sizes, dtype=dtype)
            arguments = ([3, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1], False)
            for label, given in (("", x), ("sliced", randn(*sizes[:-1], sizes[-1] + 3, dtype=dtype)[..., 2:-1]),
                                 ("channels last", x.to(memory_format=torch.channels_last_3d))):
                out, at = ops.max_pool3d_with_indices(given, *arguments)
                same("max_pool3d_with_indices_backward", f"{tag} {list(sizes)} {label}", torch.randn_like(out), given, *arguments,
                     at, rtol=r, atol=r)
            flat = x.flatten(1, 2)
            for kernel, size in (([2, 2], [2, 2]), ([1, 2], [1, 3]), ([1, 1], [2, 3])):
                if any(n + k - 1 > s for n, k, s in zip(size, kernel, flat.shape[2:])):
                    continue
                samples = torch.rand(*flat.shape[:2], 2, device="cuda").to(dtype)
                same("fractional_max_pool2d", f"{tag} {list(sizes)} {kernel} {size}", flat, kernel, size, samples)
    for out, size in (([8, 8, 8], [4, 4, 4]), ([3, 4, 5], [12, 12, 12]), ([40, 6, 7], [4, 6, 3])):
        for dtype in FLOATS:
            r = loose(dtype, 4)
            for corners in (False, True):
                same("upsample_trilinear3d_backward", f"{name_of(dtype)} {out} {size} {corners}", randn(2, 3, *out, dtype=dtype), out,
                     [2, 3, *size], corners, None, None, None, rtol=r, atol=r)
    # An infinity reaches the inputs that its output draws on and no others.
    grad = torch.zeros(1, 1, 8, 8, 8, device="cuda")
    grad[0, 0, 3, 4, 5] = torch.inf
    same("upsample_trilinear3d_backward", "infinity", grad, [8, 8, 8], [1, 1, 4, 4, 4], False, None, None, None, rtol=1e-4, atol=1e-4)
    # More than 2^31 elements.
    wide = torch.empty(1, 2, 40000, 30000, dtype=torch.float16, device="cuda").uniform_()
    samples = torch.tensor([[[0.3, 0.7], [0.9, 0.1]]], dtype=torch.float16, device="cuda")
    same("fractional_max_pool2d", "beyond 2^31", wide, [2, 3], [50, 60], samples)
    del wide


def put_together(name, a):
    """P L U, whether no multiplier is long, and info."""
    lu, pivots, info = call_named(name, "", a)
    p, lower, upper = torch.lu_unpack(lu, pivots)
    return [p.to(a.dtype) @ lower @ upper, bool((lower.abs() <= 1.5).all()), info]


def matrix_cases():
    for dtype in (torch.complex64, torch.complex128, torch.float32, torch.float64):
        tag = name_of(dtype)
        e = 1e-3 if dtype in (torch.complex64, torch.float32) else 1e-8
        for batch in ((), (3,), (40,)):
            for m, n in ((1, 1), (3, 3), (16, 16), (17, 9), (32, 32), (9, 32), (33, 33), (64, 20)):
                a = torch.randn(*batch, m, n, device="cuda", dtype=dtype)
                # Which of several good pivots is taken depends on the library that PyTorch calls for a size.
                case(f"linalg_lu_factor_ex {tag} {[*batch, m, n]}", lambda: put_together("linalg_lu_factor_ex", a),
                     lambda: [a, True, torch.zeros(batch, dtype=torch.int32, device="cuda")], e, e)
        singular = torch.randn(3, 8, 8, device="cuda", dtype=dtype)
        singular[1, :, 2] = 0
        case(f"linalg_lu_factor_ex {tag} singular", lambda: put_together("linalg_lu_factor_ex", singular),
             lambda: [singular, True, ops.linalg_lu_factor_ex(singular)[2]], e, e)
    for batch, m, n in (((), 1024, 1024), ((5,), 100, 70), ((300,), 3, 3), ((), 6145, 3), ((0,), 4, 4), ((2,), 0, 3), ((2,), 70, 1)):
        lu = randn(*batch, m, n)
        k = min(m, n)
        pivots = (torch.rand(*batch, k, device="cuda") * (m - torch.arange(k, device="cuda"))).int() + torch.arange(
            1, k + 1, device="cuda", dtype=torch.int32)
        case(f"lu_unpack {[*batch, m, n]}", lambda: call("lu_unpack", lu, pivots, True, True), lambda: torch.lu_unpack(lu, pivots))
    for count in (3, 15, 64, 1001):
        for dtype in (torch.complex64, torch.complex128):
            z = torch.randn(count, device="cuda", dtype=dtype)
            e = 1e-4 if dtype == torch.complex64 else 1e-10
            case(f"_fft_c2c scaled {count} {name_of(dtype)}", lambda: call("_fft_c2c", z, [0], 2, True),
                 lambda: ops._fft_c2c(z, [0], 2, True), e, e)
            case(f"_fft_c2r scaled {count} {name_of(dtype)}", lambda: call_named("_fft_c2r", "", z, [0], 1, 2 * count - 1),
                 lambda: ops._fft_c2r(z, [0], 1, 2 * count - 1), e, e)


def run():
    for cases in (element_cases, scatter_cases, pooling_cases, matrix_cases):
        torch.manual_seed(0)
        cases()
