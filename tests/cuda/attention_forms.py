"""Cases of against_torch.py for attention that the installed PyTorch does not compute, or computes wrongly: ALiBi
slopes, paged keys, float8, the gradient of memory-efficient attention with dropout over several lengths. Expected
values are computed here in float64."""
import torch

from against_torch import call, case, seed, signatures
from operator_cases import aten, name_of, randn, refused

HALVES = {torch.float16: 5e-3, torch.bfloat16: 3e-2}
FLOAT8 = torch.float8_e4m3fn

# Functions that torch declares from 2.12 on.
forward = signatures["_flash_attention_forward"]
first = next(i for i, p in enumerate(forward) if p.endswith("ret0"))
signatures.setdefault("_flash_attention_forward_v2", forward[:first] + [
    "AtenTensorHandle* block_table", "int64_t* num_splits"] + forward[first:])
signatures.setdefault("_flash_attention_forward_no_dropout_inplace_v2", ["AtenTensorHandle out"] + forward[:first] + [
    "AtenTensorHandle* block_table", "int64_t* num_splits", forward[first]])


def lengths(*counts):
    return torch.tensor([sum(counts[:i]) for i in range(len(counts) + 1)], dtype=torch.int32, device="cuda")


def attend(q, k, v, scale=None, causal=False, left=-1, right=-1, slopes=None, empty=torch.inf, kept=None):
    """[T, H, D] each, slopes [H], kept: factors of probabilities [H, Tq, Tk]. Returns the result and logsumexp."""
    q, k, v = (t.double() for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) * (scale or q.shape[-1] ** -0.5)
    key = torch.arange(k.shape[0], device="cuda")
    place = torch.arange(q.shape[0], device="cuda")[:, None] + k.shape[0] - q.shape[0]
    right = 0 if causal else right
    if slopes is not None:
        # Causal attention adds the same to all keys of a query.
        scores = scores + slopes.double()[:, None, None] * (key if right == 0 and left < 0 else -(place - key).abs())
    hidden = torch.zeros_like(scores[0], dtype=torch.bool)
    if right >= 0:
        hidden |= key > place + right
    if left >= 0:
        hidden |= key < place - left
    scores = scores.masked_fill(hidden, -torch.inf)
    sums = scores.logsumexp(-1)
    shares = scores.softmax(-1).nan_to_num(0)
    result = torch.einsum("hqk,khd->qhd", shares if kept is None else shares * kept, v)
    return result, sums.masked_fill(sums == -torch.inf, empty)


def joined(parts, dtype):
    return [torch.cat([p[0] for p in parts]).to(dtype), torch.cat([p[1] for p in parts], 1).float()]


def stacked(parts, dtype):
    return [torch.stack([p[0] for p in parts]).to(dtype), torch.stack([p[1] for p in parts]).float()]


def slope_cases():
    name = "_flash_attention_forward"
    for dtype, e in HALVES.items():
        for b, h, hk, tq, tk in ((2, 4, 4, 33, 70), (2, 4, 2, 40, 40), (1, 2, 2, 1, 90), (1, 2, 1, 9, 5)):
            q, k, v = (randn(b, t, n, 64, dtype=dtype) for t, n in ((tq, h), (tk, hk), (tk, hk)))
            for slopes in (torch.rand(h, device="cuda"), torch.rand(b, h, device="cuda")):
                each = slopes if slopes.dim() == 2 else slopes.expand(b, h)
                for causal, left, right in ((False, -1, -1), (True, -1, -1), (False, 7, 3), (True, 7, -1)):
                    sight = (causal, left if left < tk else -1, right if right < tk else -1)
                    case(f"{name} slopes {name_of(dtype)} {b}x{h}/{hk}x{tq}x{tk} {list(slopes.shape)} {sight}",
                         lambda: call(name, q, k, v, None, None, tq, tk, 0.0, causal, False, None, left, right, None,
                                      slopes)[:2],
                         lambda: stacked([attend(q[i], k[i], v[i], None, *sight, each[i]) for i in range(b)], dtype), e, e)
        queries, keys = (5, 0, 30, 1), (9, 4, 30, 17)
        cq, ck = lengths(*queries), lengths(*keys)
        q, k, v = (randn(int(c[-1]), 4, 64, dtype=dtype) for c in (cq, ck, ck))
        for slopes in (torch.rand(4, device="cuda"), torch.rand(4, 4, device="cuda")):
            for causal in (False, True):
                def expected():
                    cut = [t.split(list(n)) for t, n in ((q, queries), (k, keys), (v, keys))]
                    return joined([attend(*parts, None, causal, slopes=slopes[i] if slopes.dim() == 2 else slopes)
                                   for i, parts in enumerate(zip(*cut))], dtype)
                case(f"{name} slopes of several lengths {name_of(dtype)} {list(slopes.shape)} {causal}",
                     lambda: call(name, q, k, v, cq, ck, 30, 30, 0.0, causal, False, None, None, None, None, slopes)[:2],
                     expected, e, e)
        refused(name, f"slopes of other heads {name_of(dtype)}", q, k, v, cq, ck, 30, 30, 0.0, False, False, None, None,
                None, None, torch.rand(3, device="cuda"))


def page_cases():
    name = "_flash_attention_forward_v2"
    for dtype, e in HALVES.items():
        for page, h, hk in ((256, 4, 2), (16, 4, 4), (5, 2, 1)):
            queries, used = (1, 4, 1, 0, 3), (300, 4, 17, 9, 0)
            most = max((n + page - 1) // page for n in used) + 1
            k, v = (randn(64, page, hk, 64, dtype=dtype) for _ in range(2))
            table = torch.randint(0, 64, (5, most), dtype=torch.int32, device="cuda")
            cq, q = lengths(*queries), randn(sum(queries), h, 64, dtype=dtype)
            count = torch.tensor(used, dtype=torch.int32, device="cuda")

            def expected(causal, left):
                def rows(t, i):
                    return t[table[i].long()].flatten(0, 1)[:used[i]]
                return joined([attend(part, rows(k, i), rows(v, i), 0.2, causal, left)
                               for i, part in enumerate(q.split(list(queries)))], dtype)
            for causal, left in ((False, -1), (True, -1), (True, 6)):
                tag = f"{name_of(dtype)} {page} {h}/{hk} {causal} {left}"
                for form, ck, lens in (("numbers of keys", None, count), ("both", lengths(*[9] * 5), count),
                                       ("cumulative lengths", lengths(*used), None)):
                    given = [q, k, v, cq, ck, 4, 300, 0.0, causal, False, 0.2, left, None, lens, None, table, None]
                    case(f"{name} pages {tag} {form}", lambda: call(name, *given)[:2], lambda: expected(causal, left), e, e)
                inplace, out = "_flash_attention_forward_no_dropout_inplace_v2", torch.empty_like(q)
                case(f"{inplace} pages {tag}", lambda: [out] + call(inplace, out, *given),
                     lambda: expected(causal, left), e, e)
            given = [q, k, v, cq, None, 4, 300, 0.0, False, False, None, None, None, count, None]
            refused(name, f"too few pages {name_of(dtype)} {page}", *given, table[:, :1], None)
            refused(name, f"no numbers of keys {name_of(dtype)} {page}", *given[:-2], None, None, table, None)


def quantized_cases():
    """The tolerance allows one rounding of the factors to bfloat16, besides that of the result."""
    e = 4e-2

    def eights(*shape):
        return (torch.randn(*shape, device="cuda") * 4).to(FLOAT8)

    def wide(t, factors):
        """[B, H, T, D] times factors [B, key heads]."""
        if factors is None:
            return t.double()
        return t.double() * factors.repeat_interleave(t.shape[1] // factors.shape[1], 1)[..., None, None].double()
    for b, h, hk, tq, tk, d in ((2, 4, 4, 40, 40, 64), (2, 4, 2, 33, 70, 128), (1, 8, 1, 1, 300, 64),
                                (1, 2, 2, 300, 300, 256), (2, 16, 16, 1024, 1024, 64)):
        for layout in ("by head", "by token"):
            q, k, v = (eights(b, n, t, d) if layout == "by head" else eights(b, t, n, d).transpose(1, 2)
                       for n, t in ((h, tq), (hk, tk), (hk, tk)))
            for some in ((True, True, True), (False, False, False), (True, False, True), (False, True, False)):
                factors = [torch.rand(b, hk, device="cuda") * 0.3 + 0.05 if s else None for s in some]
                for causal in (False, True):
                    def expected():
                        ws = [wide(t, f).transpose(1, 2) for t, f in zip((q, k, v), factors)]
                        parts = [attend(*[w[i] for w in ws], 0.02, causal, empty=-torch.inf) for i in range(b)]
                        out, sums = stacked(parts, torch.bfloat16)
                        order = torch.empty_like(q, dtype=torch.bfloat16)
                        return [order.copy_(out.transpose(1, 2)), sums]
                    tag = f"{b}x{h}/{hk}x{tq}x{tk}x{d} {layout} {some} {causal}"
                    name = "_scaled_dot_product_flash_attention_quantized"
                    case(f"{name} {tag}", lambda: call(name, q, k, v, *factors, 0.0, causal, False, 0.02)[:2], expected, e, e)

                    def states():
                        results = call(name, q, k, v, *factors, 0.0, causal, False, 0.02)
                        return results[4:6] + [t.view(torch.int64) for t in results[6:8]] + [results[8]]
                    nothing = torch.zeros(2, dtype=torch.int64, device="cuda")
                    case(f"{name} state {tag}", states, lambda: [tq, tk, nothing, nothing[0],
                                                                 nothing[:0].to(torch.bfloat16)])
                    own = "_flash_attention_forward_quantized"
                    case(f"{own} {tag}",
                         lambda: [t.transpose(1, 2) if t.dim() == 4 else t for t in call(
                             own, *[t.transpose(1, 2) for t in (q, k, v)], None, None, tq, tk, 0.0, causal, False, *factors,
                             0.02, None, None, None, None)[:2]], expected, e, e)
    queries, keys = (5, 0, 30, 1), (9, 4, 30, 17)
    cq, ck = lengths(*queries), lengths(*keys)
    q, k, v = (eights(int(c[-1]), n, 64) for c, n in ((cq, 4), (ck, 2), (ck, 2)))
    factors = [torch.rand(4, 2, device="cuda") * 0.3 + 0.05 for _ in range(3)]
    for causal in (False, True):
        def several():
            parts = []
            for i, part in enumerate(zip(q.split(list(queries)), k.split(list(keys)), v.split(list(keys)))):
                parts.append(attend(*[wide(t.transpose(0, 1)[None], f[i:i + 1])[0].transpose(0, 1)
                                      for t, f in zip(part, factors)], 0.02, causal, empty=-torch.inf))
            return joined(parts, torch.bfloat16)
        name = "_flash_attention_forward_quantized"
        case(f"{name} several lengths {causal}",
             lambda: call(name, q, k, v, cq, ck, 30, 30, 0.0, causal, False, *factors, 0.02, None, None, None, None)[:2],
             several, e, e)
    half = [randn(2, 4, 33, 64, dtype=torch.float16) for _ in range(3)]
    name = "_scaled_dot_product_flash_attention"
    case(f"{name}_quantized of float16", lambda: call(f"{name}_quantized", *half, None, None, None, 0.0, True, False, None)[:2],
         lambda: aten(name, *half, 0.0, True, False, None)[:2], 5e-3, 5e-3)
    refused(f"{name}_quantized", "dropout", *[eights(1, 2, 8, 64) for _ in range(3)], None, None, None, 0.1, False, False, None)
    refused(f"{name}_quantized", "factors of other heads", *[eights(1, 2, 8, 64) for _ in range(3)],
            torch.rand(1, 3, device="cuda"), None, None, 0.0, False, False, None)


def gradient_case(label, given, packed, e):
    """_efficient_attention_backward over several lengths with dropout. PyTorch's gradient drops other elements than its
    forward call, so we read off what that call drops by giving it unit vectors as values."""
    name = "_efficient_attention_backward"
    grad, q, k, v, cq, ck, dropout, mask = *given[:4], given[6], given[7], given[11], given[14]
    queries, keys = cq.diff().tolist(), ck.diff().tolist()
    units = torch.cat([torch.eye(n, 32, device="cuda") for n in keys]).to(q.dtype)
    units = units[None, :, None].expand(-1, -1, v.shape[2], -1).contiguous()
    seed(7)
    shares = aten("_efficient_attention_forward", q, k, units, *packed[3:])[0][0]

    def expected():
        results = []
        at = zip(q[0].split(queries), k[0].split(keys), v[0].split(keys), grad[0].split(queries), shares.split(queries), keys)
        for *parts, g, share, count in at:
            x, y, z = (t.detach().double().requires_grad_() for t in parts)
            kept = (share[..., :count].transpose(0, 1) != 0).double() / (1 - dropout)
            # Mask 1 aligns the first query with the first key, mask 2 the last query with the last key.
            place = torch.arange(x.shape[0], device="cuda")[:, None] + (count - x.shape[0] if mask == 2 else 0)
            scores = torch.einsum("qhd,khd->hqk", x, y) * x.shape[-1] ** -0.5
            if mask:
                scores = scores.masked_fill(torch.arange(count, device="cuda") > place, -torch.inf)
            out = torch.einsum("hqk,khd->qhd", scores.softmax(-1).nan_to_num(0) * kept, z)
            results.append(torch.autograd.grad(out, (x, y, z), g.double()))
        return [torch.cat([r[i] for r in results])[None].to(q.dtype) for i in range(3)]
    case(f"{name} {label} {dropout}, what its result dropped", lambda: call(name, *given)[:3], expected, e, e)


FAMILIES = (slope_cases, page_cases, quantized_cases)
