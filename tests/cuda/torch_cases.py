"""The cases of against_torch.py: an operator's arguments, and what PyTorch makes of them."""
import torch

import against_torch as t
from against_torch import call, case, seed

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def name_of(dtype):
    return str(dtype).split(".")[1]


def randn(*shape, dtype=torch.float32, scale=1.0):
    return (torch.randn(*shape, device="cuda") * scale).to(dtype)


def seeded(run):
    def wrapped():
        seed(1234)
        run()  # the second draw depends on how much the first one took
        return run()
    return wrapped


def random_cases():
    sizes = [(1,), (7,), (256,), (1000, 3), (132 * 8 * 256 * 4 + 5,)]
    for size in sizes:
        for dtype in FLOATS:
            tag = f"{list(size)} {name_of(dtype)}"
            case(f"rand {tag}", seeded(lambda: call("rand", size, dtype, None, None, None)),
                 seeded(lambda: torch.rand(size, dtype=dtype, device="cuda")))
            case(f"randn {tag}", seeded(lambda: call("randn", size, dtype, None, None, None)),
                 seeded(lambda: torch.randn(size, dtype=dtype, device="cuda")))
            like = torch.empty(size, dtype=dtype, device="cuda")
            case(f"uniform {tag}", seeded(lambda: call("uniform", like, -2.5, 7.0, None)),
                 seeded(lambda: torch.empty_like(like).uniform_(-2.5, 7.0)))
            case(f"normal_functional {tag}", seeded(lambda: call("normal_functional", like, 1.5, 0.25, None)),
                 seeded(lambda: torch.empty_like(like).normal_(1.5, 0.25)))
            case(f"exponential {tag}", seeded(lambda: call("exponential", like, 1.7, None)),
                 seeded(lambda: torch.empty_like(like).exponential_(1.7)))
            x = randn(*size, dtype=dtype)
            case(f"native_dropout {tag}", seeded(lambda: call("native_dropout", x, 0.3, 1)),
                 seeded(lambda: torch.ops.aten.native_dropout(x, 0.3, True)))
        for dtype in [torch.int64, torch.int32, torch.uint8, torch.float32, torch.float16]:
            tag = f"{list(size)} {name_of(dtype)}"
            case(f"randint {tag}", seeded(lambda: call("randint", 100, size, dtype, None, None, None)),
                 seeded(lambda: torch.randint(100, size, dtype=dtype, device="cuda")))
        case(f"randint wide {list(size)}",
             seeded(lambda: call("randint_low", -5, 1 << 40, size, torch.int64, None, None, None)),
             seeded(lambda: torch.randint(-5, 1 << 40, size, device="cuda")))

        def seeds():
            out = torch.empty(size, dtype=torch.int64, device="cuda")
            call("randint_low_out", out, -2**63, 2**63 - 1, size)
            return [out]
        case(f"randint_low_out seeds {list(size)}", seeded(seeds),
             seeded(lambda: torch.randint(-2**63, 2**63 - 1, size, device="cuda")))
        for dtype in FLOATS + [torch.bool, torch.int64]:
            def flip():
                out = torch.empty(size, dtype=dtype, device="cuda")
                call("bernoulli__float", out, 0.3, None)
                return [out]
            case(f"bernoulli__float {list(size)} {name_of(dtype)}", seeded(flip),
                 seeded(lambda: torch.empty(size, dtype=dtype, device="cuda").bernoulli_(0.3)))
            p = torch.rand(size, device="cuda")

            def flip_each():
                out = torch.empty(size, dtype=dtype, device="cuda")
                call("bernoulli__Tensor", out, p, None)
                return [out]
            case(f"bernoulli__Tensor {list(size)} {name_of(dtype)}", seeded(flip_each),
                 seeded(lambda: torch.empty(size, dtype=dtype, device="cuda").bernoulli_(p)))
    last = torch.empty(3, 5, 7, 2, device="cuda").to(memory_format=torch.channels_last)
    case("rand_like channels last", seeded(lambda: call("rand_like", last, None, None, None, None, None)),
         seeded(lambda: torch.rand_like(last)))
    turned = torch.empty(33, 65, device="cuda").t()
    case("randn_like turned", seeded(lambda: call("randn_like", turned, None, None, None, None, None)),
         seeded(lambda: torch.randn_like(turned)))
    for n in [0, 1, 2, 5, 100, 1000, 40000, 100000, 1000000]:
        case(f"randperm {n}", seeded(lambda: call("randperm", n, None, None, None, None)),
             seeded(lambda: torch.randperm(n, device="cuda")))


def product_cases():
    for dtype, rtol in [(torch.float32, 1e-5), (torch.float64, 1e-12), (torch.float16, 2e-3), (torch.bfloat16, 2e-2),
                        (torch.complex64, 1e-5)]:
        for m, k, n in [(1, 64, 1), (1, 64, 128), (128, 1, 64), (33, 65, 17), (256, 512, 384)]:
            if dtype.is_complex:
                a = torch.randn(m, k, device="cuda", dtype=dtype)
                b = torch.randn(k, n, device="cuda", dtype=dtype)
            else:
                a, b = randn(m, k, dtype=dtype), randn(k, n, dtype=dtype)
            for turn in (False, True):
                bb = b.t().contiguous().t() if turn else b
                out = torch.empty(m, n, dtype=dtype, device="cuda")
                case(f"mm_out {name_of(dtype)} {m}x{k}x{n} {'turned' if turn else ''}",
                     lambda: (call("mm_out", out, a, bb), [out])[1], lambda: a @ bb, rtol, rtol * 10)
            bias = randn(n, dtype=dtype) if not dtype.is_complex else torch.randn(n, device="cuda", dtype=dtype)
            case(f"addmm_out {name_of(dtype)} {m}x{k}x{n}",
                 lambda: (call("addmm_out", out, bias, a, b, 0.5, 2.0), [out])[1],
                 lambda: torch.addmm(bias, a, b, beta=0.5, alpha=2.0), rtol, rtol * 20)
    for dtype in [torch.float16, torch.bfloat16]:
        a, b = randn(64, 96, dtype=dtype), randn(96, 48, dtype=dtype)
        out = torch.empty(64, 48, device="cuda")
        case(f"mm_dtype_out {name_of(dtype)}", lambda: (call("mm_dtype_out", out, a, b, torch.float32), [out])[1],
             lambda: a.float() @ b.float(), 1e-4, 1e-3)
    for m, k, n in [(32, 64, 64), (17, 16, 8), (3, 5, 7)]:
        a = torch.randint(-128, 128, (m, k), device="cuda", dtype=torch.int8)
        b = torch.randint(-128, 128, (k, n), device="cuda", dtype=torch.int8)
        out = torch.empty(m, n, dtype=torch.int32, device="cuda")
        case(f"_int_mm_out {m}x{k}x{n}", lambda: (call("_int_mm_out", out, a, b), [out])[1],
             lambda: (a.double() @ b.double()).int())

    def e4m3(*shape):
        return torch.randn(*shape, device="cuda").to(torch.float8_e4m3fn)
    for m, k, n in [(16, 32, 16), (1, 64, 32), (128, 256, 64), (5, 48, 16)]:
        a, b = e4m3(m, k), e4m3(n, k).t()
        sa, sb = torch.tensor(0.5, device="cuda"), torch.tensor(1.5, device="cuda")
        bias = randn(n, dtype=torch.bfloat16)
        for out_dtype in [torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn]:
            for add in (None, bias):
                if add is not None and out_dtype != torch.bfloat16:
                    continue
                case(f"_scaled_mm {m}x{k}x{n} {name_of(out_dtype)} {'bias' if add is not None else ''}",
                     lambda: call("_scaled_mm", a, b, sa, sb, add, None, out_dtype, 0),
                     lambda: torch._scaled_mm(a, b, scale_a=sa, scale_b=sb, bias=add, out_dtype=out_dtype), 1e-2, 1e-2)
        ra, rb = torch.rand(m, 1, device="cuda") + 0.5, torch.rand(1, n, device="cuda") + 0.5
        case(f"_scaled_mm rows {m}x{k}x{n}",
             lambda: call("_scaled_mm", a, b, ra, rb, None, None, torch.bfloat16, 0),
             lambda: torch._scaled_mm(a, b, scale_a=ra, scale_b=rb, out_dtype=torch.bfloat16), 1e-2, 1e-2)
    offs = torch.tensor([16, 48, 48, 64], dtype=torch.int32, device="cuda")
    a, b = e4m3(64, 128), e4m3(4, 96, 128).transpose(-2, -1)
    sa, sb = torch.rand(64, device="cuda") + 0.5, torch.rand(4, 96, device="cuda") + 0.5
    case("_scaled_grouped_mm rows", lambda: call("_scaled_grouped_mm", a, b, sa, sb, offs, None, None, torch.bfloat16, 1),
         lambda: torch._scaled_grouped_mm(a, b, sa, sb, offs=offs, out_dtype=torch.bfloat16, use_fast_accum=True),
         1e-2, 1e-2)
    x, w = randn(64, 128, dtype=torch.bfloat16), randn(4, 96, 128, dtype=torch.bfloat16).transpose(-2, -1)
    case("_grouped_mm rows", lambda: call("_grouped_mm", x, w, offs, None, None),
         lambda: torch._grouped_mm(x, w, offs=offs), 2e-2, 2e-2)
    y = randn(4, 64, 128, dtype=torch.bfloat16)
    case("_grouped_mm batched", lambda: call("_grouped_mm", y, w, None, None, None),
         lambda: torch._grouped_mm(y, w), 2e-2, 2e-2)
    for n, k, inner, group in [(64, 128, 2, 32), (128, 256, 8, 128), (64, 256, 4, 64)]:
        quantised = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device="cuda")
        packed = torch.ops.aten._convert_weight_to_int4pack(quantised, inner)
        scales = randn(k // group, n, 2, dtype=torch.bfloat16)
        xx = randn(17, k, dtype=torch.bfloat16)
        case(f"_weight_int4pack_mm {n}x{k} inner {inner} group {group}",
             lambda: call("_weight_int4pack_mm", xx, packed, group, scales),
             lambda: torch.ops.aten._weight_int4pack_mm(xx, packed, group, scales), 2e-2, 0.5)
    w8 = torch.randint(-128, 128, (64, 96), dtype=torch.int8, device="cuda")
    s8, x8 = torch.rand(64, device="cuda").to(torch.bfloat16), randn(9, 96, dtype=torch.bfloat16)
    case("_weight_int8pack_mm", lambda: call("_weight_int8pack_mm", x8, w8, s8),
         lambda: ((x8.float() @ w8.float().t()) * s8.float()).to(torch.bfloat16), 2e-2, 0.5)


def run():
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    random_cases()
    torch.manual_seed(0)
    product_cases()
    for extra in ("selection_cases", "attention_cases", "other_cases"):
        if function := globals().get(extra):
            torch.manual_seed(0)
            function()


__all__ = ["run", "t"]
