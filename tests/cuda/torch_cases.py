"""Cases of against_torch.py: an operator's arguments, and PyTorch's result for them."""
import torch

import against_torch as t
from against_torch import call, case, name_of, seed

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def randn(*shape, dtype=torch.float32, scale=1.0):
    return (torch.randn(*shape, device="cuda") * scale).to(dtype)


def seeded(run):
    def wrapped():
        seed(1234)
        run()  # the second draw shows how many numbers the first one took
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
    a8, b8 = e4m3(32, 64), e4m3(48, 64).t()
    one = torch.tensor(1.0, device="cuda")

    def scaled_into():
        out = torch.empty(32, 48, dtype=torch.bfloat16, device="cuda")
        call("_scaled_mm_out", out, a8, b8, one, one, None, None, torch.bfloat16, 0)
        return [out]
    case("_scaled_mm_out", scaled_into,
         lambda: torch._scaled_mm(a8, b8, scale_a=one, scale_b=one, out_dtype=torch.bfloat16), 1e-2, 1e-2)
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
        for rows in (1, 7, 16, 17):
            xx = randn(rows, k, dtype=torch.bfloat16)
            case(f"_weight_int4pack_mm {rows}x{n}x{k} inner {inner} group {group}",
                 lambda: call("_weight_int4pack_mm", xx, packed, group, scales),
                 lambda: torch.ops.aten._weight_int4pack_mm(xx, packed, group, scales), 2e-2, 0.5)
    w8 = torch.randint(-128, 128, (64, 96), dtype=torch.int8, device="cuda")
    for rows in (1, 3, 9):
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            s8, x8 = torch.rand(64, device="cuda").to(dtype), randn(rows, 96, dtype=dtype)
            case(f"_weight_int8pack_mm {rows} {name_of(dtype)}", lambda: call("_weight_int8pack_mm", x8, w8, s8),
                 lambda: ((x8.float() @ w8.float().t()) * s8.float()).to(dtype), 2e-2, 0.5)


def attention_cases():
    ops = torch.ops.aten
    for dtype, rtol, atol in [(torch.float32, 1e-4, 1e-5), (torch.float16, 5e-3, 5e-3), (torch.bfloat16, 3e-2, 3e-2)]:
        for b, h, tq, tk, d, causal in [(1, 1, 16, 16, 32, False), (2, 4, 33, 33, 64, True), (2, 4, 40, 72, 64, False),
                                        (3, 8, 128, 128, 128, True)]:
            q, k, v = (randn(b, n, h, d, dtype=dtype).transpose(1, 2) for n in (tq, tk, tk))
            tag = f"{name_of(dtype)} {b}x{h}x{tq}x{tk}x{d} {'causal' if causal else ''}"
            for bias in (None, randn(b, h, tq, (tk + 15) // 16 * 16, dtype=dtype)[..., :tk]):
                if bias is not None and causal:
                    continue
                case(f"_scaled_dot_product_efficient_attention {tag} {'bias' if bias is not None else ''}",
                     lambda: call("_scaled_dot_product_efficient_attention", q, k, v, bias, 1, 0.0, causal, None)[:2],
                     lambda: ops._scaled_dot_product_efficient_attention(q, k, v, bias, True, 0.0, causal)[:2],
                     rtol, atol)
            if dtype == torch.float32:
                continue
            case(f"_scaled_dot_product_flash_attention {tag}",
                 lambda: call("_scaled_dot_product_flash_attention", q, k, v, 0.0, causal, 0, None)[:2],
                 lambda: ops._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False)[:2], rtol, atol)
            case(f"_scaled_dot_product_cudnn_attention {tag}",
                 lambda: call("_scaled_dot_product_cudnn_attention", q, k, v, None, 1, 0.0, causal, 0, None)[:2],
                 lambda: ops._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal, False)[:2], rtol, atol)


def attention_shape_cases():
    """The range of the single kernel and its limits: head sizes, layouts, groups of heads, long keys, masks."""
    ops = torch.ops.aten
    for dtype, rtol, atol in [(torch.float16, 5e-3, 5e-3), (torch.bfloat16, 3e-2, 3e-2)]:
        for b, h, hk, tq, tk, d, causal in [(2, 3, 3, 70, 70, 80, True), (1, 2, 2, 129, 300, 96, False),
                                            (1, 2, 2, 65, 65, 160, True), (2, 2, 2, 100, 130, 256, False),
                                            (2, 8, 2, 50, 50, 64, True), (1, 8, 1, 200, 200, 128, False),
                                            (1, 4, 4, 1, 4000, 128, False), (1, 2, 2, 5, 3000, 64, False),
                                            (1, 2, 2, 16, 2000, 192, True), (4, 16, 16, 512, 512, 64, True),
                                            (8, 16, 4, 300, 1100, 128, True), (1, 1, 1, 9, 5, 64, True),
                                            # Large enough for cuDNN's kernels.
                                            (2, 16, 16, 1024, 1024, 64, False), (2, 16, 16, 1536, 1536, 64, True),
                                            (2, 16, 16, 1000, 1000, 128, True), (1, 32, 8, 1024, 1000, 128, False),
                                            (1, 8, 8, 2048, 2048, 256, True), (2, 16, 16, 1001, 777, 96, False)]:
            for layout in ("by token", "by head", "of one"):
                if layout == "by token":
                    q, k, v = (randn(b, n, m, d, dtype=dtype).transpose(1, 2)
                               for n, m in ((tq, h), (tk, hk), (tk, hk)))
                elif layout == "by head":
                    q, k, v = (randn(b, m, n, d, dtype=dtype) for n, m in ((tq, h), (tk, hk), (tk, hk)))
                elif tq == tk and h == hk:
                    q, k, v = (t.transpose(1, 2) for t in randn(b, tq, 3, h, d, dtype=dtype).unbind(2))
                else:
                    continue
                tag = f"{name_of(dtype)} {b}x{h}/{hk}x{tq}x{tk}x{d} {'causal' if causal else ''} {layout}"
                case(f"_scaled_dot_product_flash_attention {tag}",
                     lambda: call("_scaled_dot_product_flash_attention", q, k, v, 0.0, causal, 0, None)[:2],
                     lambda: ops._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False)[:2], rtol, atol)
                if h == hk:
                    case(f"_scaled_dot_product_efficient_attention {tag}",
                         lambda: call("_scaled_dot_product_efficient_attention", q, k, v, None, 1, 0.0, causal, 0.3)[:2],
                         lambda: ops._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, causal,
                                                                             scale=0.3)[:2], rtol * 2, atol * 2)
    for b, h, tq, tk, d, dv in [(2, 3, 70, 70, 80, 80), (1, 2, 33, 300, 36, 20), (1, 2, 65, 65, 200, 256),
                                (1, 4, 1, 4000, 128, 128), (4, 16, 512, 512, 64, 64)]:
        for causal in (False, True):
            q, k, v = (randn(b, h, n, m) for n, m in ((tq, d), (tk, d), (tk, dv)))
            case(f"_scaled_dot_product_efficient_attention float32 {b}x{h}x{tq}x{tk}x{d}/{dv} {causal}",
                 lambda: call("_scaled_dot_product_efficient_attention", q, k, v, None, 1, 0.0, causal, None)[:2],
                 lambda: ops._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, causal)[:2], 1e-4, 1e-5)
    q, k, v = (randn(2, 4, 48, 64, dtype=torch.float16) for _ in range(3))
    for shape in [(2, 4, 48, 48), (1, 4, 48, 48), (2, 1, 48, 48), (1, 1, 1, 48)]:
        bias = randn(*shape, dtype=torch.float16).expand(2, 4, 48, 48)
        case(f"_scaled_dot_product_efficient_attention bias {shape}",
             lambda: call("_scaled_dot_product_efficient_attention", q, k, v, bias, 1, 0.0, 0, None)[:2],
             lambda: ops._scaled_dot_product_efficient_attention(q, k, v, bias, True, 0.0, False)[:2], 5e-3, 5e-3)
    hidden = torch.zeros(2, 4, 48, 48, dtype=torch.float16, device="cuda")
    hidden[..., 7:, 30:] = -torch.inf
    hidden[:, :, 5] = -torch.inf
    case("_scaled_dot_product_efficient_attention a query that sees nothing",
         lambda: call("_scaled_dot_product_efficient_attention", q, k, v, hidden, 0, 0.0, 0, None)[:1],
         lambda: ops._scaled_dot_product_efficient_attention(q, k, v, hidden, False, 0.0, False)[:1], 5e-3, 5e-3)


def attention_bias_cases():
    """A bias for each kernel (few queries, many, cuDNN's): one row for all queries, and rows that hide all keys."""
    efficient, cudnn = "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention"
    ops = torch.ops.aten
    for dtype, rtol, atol in [(torch.float32, 1e-4, 1e-5), (torch.float16, 5e-3, 5e-3), (torch.bfloat16, 3e-2, 3e-2)]:
        for b, h, tq, tk, d in [(2, 16, 1001, 1001, 128), (4, 16, 512, 512, 64), (2, 3, 333, 333, 80), (1, 12, 128, 128, 64),
                                (4, 32, 1, 1000, 128)]:
            q, k, v = (randn(b, n, h, d, dtype=dtype).transpose(1, 2) for n in (tq, tk, tk))
            for bb, bh, bq in [(b, h, tq), (1, h, tq), (b, 1, tq), (b, 1, 1)]:
                bias = randn(bb, bh, bq, (tk + 15) // 16 * 16, dtype=dtype)[..., :tk]
                hides = bh == 1 and bq > 1
                if bh == 1:
                    bias[..., tk - tk // 8:] = -torch.inf
                if hides:
                    bias[b - 1, :, 5] = -torch.inf
                expanded = bias.expand(b, h, tq, tk)
                for causal in (False, True) if tq > 1 else (False,):
                    tag = f"{name_of(dtype)} {b}x{h}x{tq}x{tk}x{d} {'causal' if causal else ''}"
                    tag += f" bias [{bb}, {bh}, {bq}, {tk}] {'that hides a row' if hides else ''}"
                    case(f"{efficient} {tag}",
                         lambda: call(efficient, q, k, v, expanded, 0, 0.0, causal, None)[:1],
                         lambda: ops._scaled_dot_product_efficient_attention(q, k, v, expanded, False, 0.0, causal)[:1],
                         rtol, atol)
                    if not hides:  # PyTorch does not define their logsumexp
                        case(f"{efficient} {tag} sums",
                             lambda: call(efficient, q, k, v, expanded, 1, 0.0, causal, None)[:2],
                             lambda: ops._scaled_dot_product_efficient_attention(q, k, v, expanded, True, 0.0, causal)[:2],
                             rtol, atol)
                    if dtype != torch.float32 and bb == b and bq > 1:
                        case(f"{cudnn} {tag}", lambda: call(cudnn, q, k, v, bias, 0, 0.0, causal, 0, None)[:1],
                             lambda: ops._scaled_dot_product_cudnn_attention(q, k, v, bias, False, 0.0, causal, False)[:1],
                             rtol, atol)


def selection_cases():
    for dtype in FLOATS + [torch.int64, torch.int32, torch.uint8, torch.bool]:
        x = (torch.randint(0, 5, (7, 33), device="cuda").to(dtype) if not dtype.is_floating_point
             else randn(7, 33, dtype=dtype))
        tag = name_of(dtype)
        for descending in (False, True):
            case(f"sort_stable {tag} {descending}", lambda: call("sort_stable", x, 1, -1, descending),
                 lambda: torch.sort(x, stable=True, dim=-1, descending=descending))
        case(f"nonzero {tag}", lambda: call("nonzero", x), lambda: torch.nonzero(x))
        if dtype == torch.bool:
            continue
        for dim in (0, 1):
            case(f"cumsum {tag} {dim}", lambda: call("cumsum", x, dim, None), lambda: torch.cumsum(x, dim), 5e-2, 8e-2)
        if dtype.is_floating_point:
            # Equal elements may come in any order.
            case(f"topk {tag}", lambda: call("topk", x, 5, -1, 1, 1)[:1], lambda: torch.topk(x, 5)[:1])
        index = torch.randint(0, 7, (7, 33), device="cuda").argsort(0)
        out = torch.empty_like(x)
        case(f"scatter_src_out {tag}", lambda: (call("scatter_src_out", out, x, 0, index, x.flip(1)), [out])[1],
             lambda: torch.scatter(x, 0, index, x.flip(1)))
        case(f"scatter_value_out {tag}", lambda: (call("scatter_value_out", out, x, 0, index, 1.0), [out])[1],
             lambda: torch.scatter(x, 0, index, 1))
        for reduce in ("sum", "amax", "amin", "prod", "mean"):
            again = torch.randint(0, 7, (7, 33), device="cuda")
            case(f"scatter_reduce_two_out {tag} {reduce}",
                 lambda: (call("scatter_reduce_two_out", out, x, 0, again, x.flip(1), reduce, 1), [out])[1],
                 lambda: torch.scatter_reduce(x, 0, again, x.flip(1), reduce), 2e-2, 2e-2)
        rows = torch.tensor([3, -1, 0, 3], device="cuda")
        columns = torch.tensor([5, 6, -2, 5], device="cuda")
        case(f"index_Tensor {tag}", lambda: call("index_Tensor", x, [rows, columns]), lambda: x[rows, columns])
        case(f"index_Tensor rows {tag}", lambda: call("index_Tensor", x, [None, columns]), lambda: x[:, columns])
        mask = x > 1
        case(f"index_Tensor mask {tag}", lambda: call("index_Tensor", x, [mask]), lambda: x[mask])
        case(f"masked_select {tag}", lambda: call("masked_select", x, mask), lambda: torch.masked_select(x, mask))
        for accumulate in (False, True):
            at = rows[:3], columns[:3]
            values = x[0, :3]
            case(f"index_put {tag} {accumulate}", lambda: call("index_put", x, list(at), values, accumulate),
                 lambda: torch.index_put(x, at, values, accumulate), 2e-2, 2e-2)
        case(f"index_put many {tag}", lambda: call("index_put", x, [index[:, 0]], x, 1),
             lambda: torch.index_put(x, (index[:, 0],), x, True), 2e-2, 2e-2)


def other_cases():
    for dtype in FLOATS:
        tag = name_of(dtype)
        tolerance = {torch.float64: 1e-10, torch.float32: 2e-3}.get(dtype, 3e-2)
        for shape, weight, groups in [((2, 8, 17, 19), (12, 8, 3, 3), 1), ((2, 8, 17, 19), (16, 4, 3, 3), 2),
                                      ((1, 3, 32), (5, 3, 4), 1), ((1, 4, 6, 7, 8), (6, 4, 3, 3, 3), 1)]:
            x, w = randn(*shape, dtype=dtype), randn(*weight, dtype=dtype)
            bias = randn(weight[0], dtype=dtype)
            rank = len(shape) - 2
            for last in (False, True):
                if last and rank != 2:
                    continue
                xx = x.to(memory_format=torch.channels_last) if last else x
                case(f"convolution {tag} {shape} {weight} {last}",
                     lambda: call("convolution", xx, w, bias, [1] * rank, [1] * rank, [1] * rank, 0, [0] * rank, groups),
                     lambda: torch.convolution(xx, w, bias, [1] * rank, [1] * rank, [1] * rank, False, [0] * rank, groups),
                     tolerance, tolerance * 10)
        x, w = randn(2, 6, 9, 9, dtype=dtype), randn(6, 4, 3, 3, dtype=dtype)
        case(f"convolution transposed {tag}",
             lambda: call("convolution", x, w, None, [2, 2], [1, 1], [1, 1], 1, [1, 1], 1),
             lambda: torch.convolution(x, w, None, [2, 2], [1, 1], [1, 1], True, [1, 1], 1), tolerance, tolerance * 10)
        x = randn(2, 3, 16, 16, dtype=dtype)
        case(f"max_pool2d_with_indices {tag}",
             lambda: call("max_pool2d_with_indices", x, [3, 3], [2, 2], [1, 1], [1, 1], 0),
             lambda: torch.ops.aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1], [1, 1], False))
        case(f"avg_pool2d {tag}", lambda: call("avg_pool2d", x, [3, 3], [2, 2], [1, 1], 0, 1, None),
             lambda: torch.ops.aten.avg_pool2d(x, [3, 3], [2, 2], [1, 1], False, True, None), tolerance, tolerance)
        case(f"_adaptive_avg_pool2d {tag}", lambda: call("_adaptive_avg_pool2d", x, [5, 7]),
             lambda: torch.ops.aten._adaptive_avg_pool2d(x, [5, 7]), tolerance, tolerance)
        table = randn(20, 6, dtype=dtype)
        indices, offsets = torch.randint(0, 20, (15,), device="cuda"), torch.tensor([0, 4, 4, 9], device="cuda")
        for mode in (0, 1):
            case(f"_embedding_bag {tag} {mode}",
                 lambda: call("_embedding_bag", table, indices, offsets, 0, mode, 0, None, 0, -1)[:1],
                 lambda: torch.ops.aten._embedding_bag(table, indices, offsets, False, mode)[:1], tolerance, tolerance)
        case(f"_fused_rms_norm {tag}", lambda: call("_fused_rms_norm", table, [6], table[0], 1e-5)[:1],
             lambda: torch.ops.aten._fused_rms_norm(table, [6], table[0], 1e-5)[:1], tolerance, tolerance)


def run():
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = True  # the default, as in Sconce
    random_cases()
    torch.manual_seed(0)
    product_cases()
    for extra in ("selection_cases", "attention_cases", "attention_shape_cases", "attention_bias_cases",
                  "other_cases"):
        if function := globals().get(extra):
            torch.manual_seed(0)
            function()
    import operator_cases
    operator_cases.run()


__all__ = ["run", "t"]
