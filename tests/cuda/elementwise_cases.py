"""Cases of against_torch.py: elementwise operators, parts, searches and rows."""
import torch

from against_torch import call, call_named, case, name_of

aten = torch.ops.aten
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
WHOLE = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
COMPLEX = [torch.complex64, torch.complex128, torch.complex32]
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.complex64: 1e-5,
             torch.complex32: 4e-3,
             torch.float64: 1e-12, torch.complex128: 1e-12}


def numbers(*shape, dtype):
    if dtype == torch.bool:
        return torch.rand(*shape, device="cuda") < 0.5
    if dtype in WHOLE:
        return torch.randint(0 if dtype == torch.uint8 else -9, 10, shape, device="cuda").to(dtype)
    if dtype.is_complex:
        return torch.randn(*shape, dtype=torch.complex64, device="cuda").to(dtype)
    return torch.randn(*shape, device="cuda").to(dtype)


def arithmetic_cases():
    for dtype in FLOATS + WHOLE + COMPLEX + [torch.bool]:
        e, tag = TOLERANCE.get(dtype, 0), name_of(dtype)
        a, b = numbers(5, 7, dtype=dtype), numbers(5, 7, dtype=dtype)
        row, turned = numbers(7, dtype=dtype), numbers(7, 5, dtype=dtype).t()
        for label, x, y in (("", a, b), ("row", a, row), ("turned", turned, a), ("both", turned, turned)):
            case(f"mul_Tensor {tag} {label}", lambda: call("mul_Tensor", x, y), lambda: x * y, e, e)
            if dtype.is_floating_point or dtype.is_complex:
                case(f"aten::add.Tensor {tag} {label}", lambda: call_named("add", "Tensor", x, y, alpha=1),
                     lambda: torch.add(x, y), e, e)
                case(f"add_Tensor {tag} {label}", lambda: call("add_Tensor", x, y, 2.5),
                     lambda: torch.add(x, y, alpha=2.5), e, e * 4)
        if dtype != torch.bool:
            case(f"abs {tag}", lambda: call("abs", turned), lambda: turned.abs(), e, e)
            base = a.abs() + 1 if not dtype.is_complex else a
            power = numbers(5, 7, dtype=dtype) if dtype.is_floating_point or dtype.is_complex else b.abs() % 4
            case(f"pow_Tensor_Tensor {tag}", lambda: call("pow_Tensor_Tensor", base, power), lambda: base ** power,
                 e * 20, e * 20)
        if dtype.is_floating_point or dtype.is_complex:
            case(f"mul_Scalar {tag}", lambda: call("mul_Scalar", a, 1.5), lambda: a * 1.5, e, e)
            case(f"add_Scalar {tag}", lambda: call("add_Scalar", a, 1.5, 2.0), lambda: torch.add(a, 1.5, alpha=2.0), e, e)
            case(f"angle {tag}", lambda: call("angle", turned), lambda: turned.angle(), e * 4, e * 4)
            for exponent in (0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 1.7):
                x = a if dtype.is_complex else a.abs() + 0.5
                case(f"pow_Tensor_Scalar {tag} {exponent}", lambda: call("pow_Tensor_Scalar", x, exponent),
                     lambda: x ** exponent, e * 20, e * 20)
            case(f"pow_Scalar {tag}", lambda: call("pow_Scalar", 2.5, a), lambda: torch.pow(2.5, a), e * 20, e * 20)
    for dtype in WHOLE:
        a, b = numbers(50, dtype=dtype), numbers(50, dtype=dtype)
        case(f"gcd {name_of(dtype)}", lambda: call("gcd", a, b), lambda: torch.gcd(a, b))
        case(f"angle {name_of(dtype)}", lambda: call("angle", a), lambda: a.angle(), 1e-6, 1e-6)
    for dtype in (torch.float32, torch.float64):
        r, w = numbers(4, 6, dtype=dtype).abs(), numbers(4, 6, dtype=dtype)
        case(f"polar {name_of(dtype)}", lambda: call("polar", r, w), lambda: torch.polar(r, w), 1e-5, 1e-5)
    whole, half, single = numbers(4, 5, dtype=torch.int32), numbers(4, 5, dtype=torch.float16), numbers(5, dtype=torch.float32)
    case("mul_Tensor mixed", lambda: call("mul_Tensor", whole, half), lambda: whole * half, 4e-3, 4e-3)
    case("mul_Tensor wider", lambda: call("mul_Tensor", half, single), lambda: half * single, 1e-5, 1e-5)
    scalar = torch.tensor(2.5)
    case("mul_Tensor number of the host", lambda: call("mul_Tensor", half, scalar), lambda: half * scalar, 4e-3, 4e-3)
    big = numbers(3, 4, 5, 6, dtype=torch.float32).to(memory_format=torch.channels_last)
    case("mul_Tensor channels last", lambda: call("mul_Tensor", big, big), lambda: big * big, 1e-6, 1e-6)

    def filled():
        out = torch.empty(3, 4, device="cuda")
        call("fill__Scalar", out, 2.5)
        return [out]
    case("fill__Scalar", filled, lambda: torch.full((3, 4), 2.5, device="cuda"))
    case("_efficientzerotensor", lambda: call("_efficientzerotensor", (3, 4), torch.float64, None, None, None),
         lambda: torch.zeros(3, 4, dtype=torch.float64, device="cuda"))


def part_cases():
    for dtype in (torch.float32, torch.float16, torch.int64, torch.complex64, torch.bool):
        tag = name_of(dtype)
        x, y = numbers(2, 3, 5, 6, dtype=dtype), numbers(2, 4, 5, 6, dtype=dtype)
        last, other = x.to(memory_format=torch.channels_last), y.to(memory_format=torch.channels_last)
        case(f"cat {tag}", lambda: call("cat", [x, y, x], 1), lambda: torch.cat([x, y, x], 1))
        case(f"cat channels last {tag}", lambda: call("cat", [last, other], 1), lambda: torch.cat([last, other], 1))
        case(f"cat turned {tag}", lambda: call("cat", [x.transpose(1, 2), x.transpose(1, 2)], -1),
             lambda: torch.cat([x.transpose(1, 2)] * 2, -1))
        case(f"aten::repeat {tag}", lambda: call_named("repeat", "", x, [2, 1, 1, 3]), lambda: x.repeat(2, 1, 1, 3))
        for pads in ([1, 2], [1, 0, 2, 3], [-1, 1], [0, 0, 1, 1, 2, 0]):
            for form in (x, last):
                case(f"pad constant {tag} {pads} {form.stride()}", lambda: call("pad", form, pads, "constant", None),
                     lambda: torch.nn.functional.pad(form, pads))
        if dtype != torch.bool:
            for mode in ("reflect", "replicate", "circular"):
                for pads in ([1, 2, 2, 1], [2, 0]) if mode != "circular" else ([1, 2, 2, 1],):
                    source = x if len(pads) == 4 else x[0]
                    if dtype == torch.int64 and mode != "circular":
                        continue
                    case(f"pad {mode} {tag} {pads}", lambda: call("pad", source, pads, mode, None),
                         lambda: torch.nn.functional.pad(source, pads, mode=mode))
    x = numbers(4, 6, dtype=torch.float32)
    views = {
        ("select", "int"): (x, 1, 2), ("transpose", "int"): (x, 0, 1), ("t", ""): (x,), ("unsqueeze", ""): (x, 1),
        ("squeeze", "dim"): (x[:1], 0), ("permute", ""): (x, [1, 0]), ("view", ""): (x, [3, 8]),
        ("slice", "Tensor"): (x, 1, 1, 5, 2), ("expand", ""): (x[:1], [4, 6]), ("diagonal", ""): (x, 1, 0, 1),
        ("as_strided", ""): (x, [2, 2], [3, 1], 1), ("unfold", ""): (x, 1, 2, 2), ("flatten", "using_ints"): (x, 0, 1),
    }
    for (name, overload), arguments in views.items():
        case(f"aten::{name}", lambda: call_named(name, overload, *arguments),
             lambda: getattr(getattr(aten, name), overload or "default")(*arguments))
    mask = numbers(9, 7, dtype=torch.float32) > 0.3
    for size in (0, 5, 100):
        case(f"nonzero_static {size}", lambda: call("nonzero_static", mask, size, -1),
             lambda: torch.nonzero_static(mask, size=size, fill_value=-1))


def row_cases():
    for dtype in FLOATS + WHOLE:
        tag = name_of(dtype)
        rows, values = numbers(3, 20, dtype=dtype).sort(-1)[0], numbers(3, 8, dtype=dtype)
        for right in (False, True):
            for narrow in (False, True):
                case(f"searchsorted_Tensor {tag} {right} {narrow}",
                     lambda: call("searchsorted_Tensor", rows, values, narrow, right, None, None),
                     lambda: torch.searchsorted(rows, values, out_int32=narrow, right=right))
            case(f"bucketize_Tensor {tag} {right}", lambda: call("bucketize_Tensor", values, rows[0], False, right),
                 lambda: torch.bucketize(values, rows[0].contiguous(), right=right))
            case(f"searchsorted_Scalar {tag} {right}",
                 lambda: call("searchsorted_Scalar", rows[0], 1.0, False, right, None, None),
                 lambda: torch.searchsorted(rows[0].contiguous(), 1.0, right=right))
        shuffled = numbers(3, 20, dtype=dtype)
        order = shuffled.argsort(-1)
        case(f"searchsorted_Tensor sorter {tag}",
             lambda: call("searchsorted_Tensor", shuffled, values, False, False, "right", order),
             lambda: torch.searchsorted(shuffled, values, side="right", sorter=order))
    for dtype in (torch.float32, torch.float64):
        a, b = numbers(2, 30, 5, dtype=dtype), numbers(2, 7, 5, dtype=dtype)
        for p in (0.0, 1.0, 2.0, 3.5, float("inf")):
            case(f"_cdist_forward {name_of(dtype)} {p}", lambda: call("_cdist_forward", a, b, p, None),
                 lambda: aten._cdist_forward(a, b, p, None), 1e-4, 1e-3)
    for dtype in FLOATS:
        e = TOLERANCE[dtype] * 2
        x, w = numbers(4, 3, 600, dtype=dtype), numbers(600, dtype=dtype)
        case(f"_fused_rms_norm {name_of(dtype)}", lambda: call("_fused_rms_norm", x, [600], w, 1e-5),
             lambda: aten._fused_rms_norm(x, [600], w, 1e-5), e, e)
        case(f"_fused_rms_norm plain {name_of(dtype)}", lambda: call("_fused_rms_norm", x, [3, 600], None, None)[:1],
             lambda: aten._fused_rms_norm(x, [3, 600], None, None)[:1], e, e)
        m, v, s = numbers(6, 8, dtype=dtype), numbers(8, dtype=dtype), numbers(6, dtype=dtype)
        case(f"addmv {name_of(dtype)}", lambda: call("addmv", s, m, v, 0.5, 2.0),
             lambda: torch.addmv(s, m, v, beta=0.5, alpha=2.0), e * 4, e * 4)
        p, q, c = numbers(3, 4, 6, dtype=dtype), numbers(3, 6, 5, dtype=dtype), numbers(4, 5, dtype=dtype)
        case(f"addbmm {name_of(dtype)}", lambda: call("addbmm", c, p, q, 1.0, 1.0), lambda: torch.addbmm(c, p, q),
             e * 4, e * 8)
        t = numbers_of_eight(dtype)
        for gelu in (False, True):
            # cuBLASLt's gelu uses float32 constants for float64; compare with the formula then.
            case(f"_addmm_activation {name_of(dtype)} {gelu}", lambda: call("_addmm_activation", v, m, t, 1.0, 1.0, gelu),
                 lambda: aten._addmm_activation(v, m, t, beta=1, alpha=1, use_gelu=gelu), e * 4, e * 8,
                 judge=lambda: [torch.nn.functional.gelu(torch.addmm(v, m, t), approximate="tanh")])


def numbers_of_eight(dtype):
    return (torch.arange(64, device="cuda").reshape(8, 8) / 64 - 0.5).to(dtype)


def run():
    torch.manual_seed(0)
    arithmetic_cases()
    part_cases()
    row_cases()
