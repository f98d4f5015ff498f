"""Cases of against_torch.py: attention with dropout, windows and sequences of several lengths, and its gradients."""
import attention_forms
import torch

from against_torch import call, case, seed
from attention_forms import lengths
from operator_cases import aten, name_of, randn

ops = torch.ops.aten
ROUGH = {torch.float16: 5e-3, torch.bfloat16: 3e-2, torch.float32: 2e-4}


def both(label, name, arguments, keep, tolerance, ours=None):
    """Calls both after the same seed; keep() selects what is compared from the results."""
    def run():
        seed(7)
        call("rand", (3, 5), None, None, None, None)  # so that attention begins in the middle of the random stream
        return keep(call(name, *(ours or arguments)))

    def expect():
        seed(7)
        torch.rand(3, 5, device="cuda")
        return keep(aten(name, *arguments))
    case(f"{name} {label}", run, expect, tolerance, tolerance)


def state(t):
    return t.view(torch.int64) if t.dtype == torch.uint64 else t


def dropout_cases():
    for dtype in (torch.float16, torch.bfloat16):
        for b, h, tq, tk, d in ((2, 3, 40, 70, 64), (1, 2, 129, 129, 128), (2, 1, 16, 33, 32)):
            for causal in (False, True):
                q, k, v = (randn(b, h, t, d, dtype=dtype) for t in (tq, tk, tk))
                label, e = f"dropout {name_of(dtype)} {b}x{h}x{tq}x{tk}x{d} {causal}", ROUGH[dtype]
                name = "_scaled_dot_product_flash_attention"
                both(label, name, [q, k, v, 0.3, causal, False, None], lambda r: [r[0], r[1], state(r[6])], e)
                seed(7)
                out, sums, _, _, mq, mk, rng, unused = aten(name, q, k, v, 0.3, causal, False, None)[:8]
                grad = randn(b, h, tq, d, dtype=dtype)
                given = [grad, q, k, v, out, sums, torch.empty(0, device="cuda"), torch.empty(0, device="cuda"), tq, tk, 0.3,
                         causal, rng, unused, None]
                case(f"{name}_backward {label}", lambda: call(f"{name}_backward", *given),
                     lambda: aten(f"{name}_backward", *given[:6], None, None, *given[8:]), e * 4, e * 4)
    for dtype in (torch.float16, torch.float32):
        for b, h, tq, tk, d in ((2, 3, 40, 70, 64), (1, 2, 33, 129, 32)):
            for causal in (False, True):
                q, k, v = (randn(b, h, t, d, dtype=dtype) for t in (tq, tk, tk))
                label, e = f"dropout {name_of(dtype)} {b}x{h}x{tq}x{tk}x{d} {causal}", ROUGH[dtype]
                name = "_scaled_dot_product_efficient_attention"
                both(label, name, [q, k, v, None, True, 0.25, causal, None],
                     lambda r: [r[0], r[1], r[2].cpu(), r[3].cpu()], e)
                seed(7)
                out, sums, first, second = aten(name, q, k, v, None, True, 0.25, causal, None)
                grad = randn(b, h, tq, d, dtype=dtype)
                case(f"{name}_backward {label}",
                     lambda: call(f"{name}_backward", grad, q, k, v, None, out, sums, first, second, 0.25,
                                  [True, True, True, False], causal, None)[:3],
                     lambda: list(ops._scaled_dot_product_efficient_attention_backward(
                         grad, q, k, v, None, out, sums, first, second, 0.25, [True, True, True, False], causal))[:3],
                     e * 4, e * 4)


def flash_cases():
    name = "_flash_attention_forward"
    rest = [None] * 5  # scale, window left and right, seqused_k, alibi_slopes
    for dtype in (torch.float16, torch.bfloat16):
        e = ROUGH[dtype]
        for causal in (False, True):
            q, k, v = (randn(2, t, 4, 64, dtype=dtype) for t in (33, 70, 70))
            tag = f"{name_of(dtype)} {causal}"
            take = lambda r: [r[0], r[1]]
            both(f"one length {tag}", name, [q, k, v, None, None, 33, 70, 0.0, causal, False, *rest], take, e)
            both(f"one length dropout {tag}", name, [q, k, v, None, None, 33, 70, 0.2, causal, False, *rest],
                 lambda r: [r[0], r[1], state(r[2])], e)
            both(f"window {tag}", name, [q, k, v, None, None, 33, 70, 0.0, causal, False, 0.2, 10, 5, None, None], take, e)
            both(f"window of the left {tag}", name, [q, k, v, None, None, 33, 70, 0.0, causal, False, None, 20, -1, None, None],
                 take, e)
            shared = [q, k[:, :, :2], v[:, :, :2]]
            both(f"fewer heads of keys {tag}", name, [*shared, None, None, 33, 70, 0.0, causal, False, *rest], take, e)
            cq, ck = lengths(5, 0, 30, 1), lengths(9, 4, 30, 17)
            q, k, v = (randn(int(c[-1]), 4, 64, dtype=dtype) for c in (cq, ck, ck))
            for dropout in (0.0, 0.3):
                both(f"several lengths {tag} {dropout}", name, [q, k, v, cq, ck, 30, 30, dropout, causal, False, *rest], take,
                     e)
                seed(7)
                out, sums, rng, unused = aten(name, q, k, v, cq, ck, 30, 30, dropout, causal, False, *rest)[:4]
                grad = randn(36, 4, 64, dtype=dtype)
                given = [grad, q, k, v, out, sums, cq, ck, 30, 30, dropout, causal, rng, unused, None, None, None]
                case(f"_flash_attention_backward {tag} {dropout}", lambda: call("_flash_attention_backward", *given),
                     lambda: aten("_flash_attention_backward", *given), e * 4, e * 4)
            both(f"several lengths window {tag}", name, [q, k, v, cq, ck, 30, 30, 0.0, causal, False, None, 6, 3, None, None],
                 take, e)
            out = torch.empty_like(q)
            if hasattr(ops, "_flash_attention_forward_no_dropout_inplace"):
                inplace = "_flash_attention_forward_no_dropout_inplace"

                def ours():
                    return [out] + call(inplace, out, q, k, v, cq, ck, 30, 30, 0.0, causal, False, *[None] * 6)
                case(f"{inplace} {tag}", ours,
                     lambda: aten(name, q, k, v, cq, ck, 30, 30, 0.0, causal, False, *rest)[:2], e, e)


def efficient_cases():
    name = "_efficient_attention_forward"
    for dtype in (torch.float16, torch.float32):
        e = ROUGH[dtype]
        for mask in (0, 1, 2):
            tag = f"{name_of(dtype)} {mask}"
            q, k, v = (randn(2, t, 4, d, dtype=dtype) for t, d in ((33, 64), (70, 64), (70, 48)))
            bias = randn(2, 4, 33, 72, dtype=dtype)[..., :70]
            take = lambda r: [r[0], r[1]]
            both(f"one length {tag}", name, [q, k, v, None, None, None, None, None, 0.0, mask, True, 0.3, None, None], take, e)
            both(f"bias {tag}", name, [q, k, v, bias, None, None, None, None, 0.0, mask, True, None, None, None], take, e)
            both(f"dropout {tag}", name, [q, k, v, None, None, None, None, None, 0.3, mask, True, None, None, None],
                 lambda r: [r[0], r[1], r[2].cpu(), r[3].cpu()], e)
            both(f"bias and dropout {tag}", name, [q, k, v, bias, None, None, None, None, 0.3, mask, True, None, None, None],
                 lambda r: [r[0]], e)
            if mask:
                both(f"window {tag}", name, [q, k, v, None, None, None, None, None, 0.0, mask, True, None, None, 9],
                     lambda r: [r[0]], e)
            cq, ck = lengths(5, 30, 1), lengths(9, 30, 17)
            pq, pk, pv = (randn(1, int(c[-1]), 4, 64, dtype=dtype) for c in (cq, ck, ck))
            for dropout in (0.0, 0.3):
                packed = [pq, pk, pv, None, cq, ck, 30, 30, dropout, mask, True, None, None, None]
                both(f"several lengths {tag} {dropout}", name, packed,
                     lambda r: [r[0]] + [r[1][i, :, :n] for i, n in enumerate((5, 30, 1))], e)
                for form in ("one length", "several lengths"):
                    several = form != "one length"
                    x, y, z = (pq, pk, pv) if several else (q, k, v)
                    forward = packed if several else [q, k, v, bias, None, None, None, None, dropout, mask, True, None, None,
                                                      None]
                    seed(7)
                    out, sums, first, second, mq, mk = aten(name, *forward)
                    grad = randn(*out.shape, dtype=dtype)
                    given = [grad, x, y, z, forward[3], out, forward[4], forward[5], mq, mk, sums, dropout, first, second, mask,
                             not several, None, None, None, False]
                    if several and dropout:
                        attention_forms.gradient_case(f"{form} {tag}", given, packed, e * 4)
                        continue
                    case(f"_efficient_attention_backward {form} {tag} {dropout}",
                         lambda: call("_efficient_attention_backward", *given)[:3],
                         lambda: aten("_efficient_attention_backward", *given)[:3], e * 4, e * 4)


def without_sums_cases():
    """Attention without logsumexp, with keys in one part and in several: views of one packed tensor, as in models."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for b, t, h, d in ((1, 730, 3, 48), (2, 730, 3, 48), (3, 730, 3, 48), (1, 2049, 2, 64), (1, 1500, 1, 256), (2, 197, 6, 64)):
            for queries in (t, 1, 7, 16, 17):
                q, k, v = randn(b, t, 3, h, d, dtype=dtype).permute(2, 0, 3, 1, 4)
                q = q[:, :, :queries]
                exact = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double()).to(dtype)
                for name, rest in (("efficient", (0.0, False, None)), ("cudnn", (0.0, False, False, None))):
                    name = f"_scaled_dot_product_{name}_attention"
                    case(f"{name} without sums {name_of(dtype)} {b}x{h}x{queries}x{t}x{d}",
                         lambda: call(name, q, k, v, None, False, *rest)[:1], lambda: [exact], ROUGH[dtype] / 10 if dtype ==
                         torch.float32 else ROUGH[dtype], ROUGH[dtype] / 10, strides=False)


def one_head_cases():
    """One head with a meaningless stride and several batches, of sizes that no kernel covers, so that products are
    used; and negative scales, under which the lowest score becomes the highest."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for b, t, h, d, scale in ((2, 67, 1, 33, None), (9, 15, 1, 264, 0.3), (2, 512, 8, 64, -0.2), (1, 1024, 8, 80, -0.2)):
            q, k, v = randn(b, t, 3, h, d, dtype=dtype).permute(2, 0, 3, 1, 4)
            for causal in (False, True):
                exact = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal,
                                                                         scale=scale).to(dtype)
                for name, rest in (("efficient", (None, False, 0.0, causal, scale)), ("flash", (0.0, causal, False, scale))):
                    name = f"_scaled_dot_product_{name}_attention"
                    case(f"{name} one head {name_of(dtype)} {b}x{h}x{t}x{d} {causal} {scale}", lambda: call(name, q, k, v, *rest)[:1],
                         lambda: [exact], ROUGH[dtype], ROUGH[dtype], strides=False)


def run():
    for cases in (without_sums_cases, one_head_cases, dropout_cases, flash_cases, efficient_cases, *attention_forms.FAMILIES):
        torch.manual_seed(0)
        cases()
