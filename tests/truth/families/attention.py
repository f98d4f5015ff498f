"""Flash attention, forward and backward: src/cpu/attention/attention.cpp, attention_rows.h, attention_backward.cpp.

Compared with the formula in float64, and with ATen's operator in the same dtype. The error of a row may grow with its
scores, because the exponential multiplies their rounding. ATen's operator takes no bool masks (callers convert them to
numbers) and divides by zero for empty sizes; there only the formula counts.
Limits: blocks of 56 queries (up to 64 form one block), of 512 keys (up to 768 form one), keys and values of a head kept
if they fit 1 MiB, keys as rows for few queries (dot_rows), panels of 8 to 64 keys and head dimensions, 32 KiB of
scratch on the stack, 10^6 multiplications per thread; masks converted or read in place; small floats, copies; for few queries keys
and values of half types in place, if both have unit stride.
"""
import math

import torch

import abi
import case

DEVICES = ("cpu",)
QUERIES, KEYS = (4, 6, 8, 14, 56, 64, 112, 120), (8, 16, 32, 48, 64, 512, 768, 1024)
DEPTHS = (8, 16, 24, 32, 48, 64, 80, 96, 128)
FORWARD = "_scaled_dot_product_flash_attention_for_cpu"


def heads_repeated(t, heads):
    return t.repeat_interleave(heads // max(t.size(1), 1), 1) if t.size(1) != heads else t


def scores_of(q, k, causal, mask, scale):
    """Scores, masked ones at -infinity, and the sums of their terms' absolute values."""
    k = heads_repeated(k, q.size(1))
    scale = scale if scale is not None else 1 / math.sqrt(q.size(3))
    s, size = q @ k.mT * scale, q.abs() @ k.abs().mT * abs(scale)
    if mask is not None:
        more = added(mask, s).to(s.dtype)
        s, size = s + more, size + more.abs().nan_to_num(0, 0, 0)
    if causal:
        s = s.masked_fill(~torch.ones(s.shape[-2:], dtype=torch.bool).tril(), -math.inf)
    return s, size.nan_to_num(0, 0, 0)


def added(mask, like):
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=like.dtype).masked_fill(~mask, -math.inf)


def weights_of(s):
    return torch.softmax(s, -1).masked_fill((s == -math.inf).all(-1, keepdim=True), 0)


def formula(q, k, v, p, causal, mask, scale):
    if k.size(2) == 0:
        return torch.zeros_like(q), torch.zeros(q.shape[:3], dtype=q.dtype)
    s, _ = scores_of(q, k, causal, mask, scale)
    lse = torch.logsumexp(s, -1).masked_fill((s == -math.inf).all(-1), 0)
    return weights_of(s) @ heads_repeated(v, q.size(1)), lse


def operands(d):
    dtype = d.choice((torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16))
    batch, groups = d.size(1, 2, 4, low=0 if d.chance(0.02) else 1, high=9), d.choice((1, 1, 2, 3, 4))
    heads = groups * d.choice((1, 1, 1, 2, 3))
    queries, keys = d.size(*QUERIES, high=300), d.size(*KEYS, high=1100 if d.chance(0.1) else 300)
    if d.chance(0.3):
        queries = d.choice((1, 2, 3, 4, 5, 6, 7, 8))
    if d.chance(0.4):
        queries = keys if keys <= 300 else queries
    depth = d.size(*DEPTHS, low=1, high=260)
    most = 6e6 if d.chance(0.1) else 1.5e6
    while batch * heads * queries * keys * depth > most and batch > 1:
        batch //= 2
    while heads * queries * keys * depth > most:
        if heads > groups:
            heads = groups
        elif groups > 1:
            heads = groups = 1
        elif queries > 64:
            queries //= 2
        elif depth > 33:
            depth //= 2
        else:
            keys //= 2
    keys = max(keys, 0 if d.chance(0.2) else 1)
    queries = queries if queries or d.chance(0.2) else 1
    kind = d.choice(("normal", "normal", "few", "wide"))
    way = d.random()
    if way < 0.25 and queries == keys and groups == heads:
        # Views of one packed tensor, [B, T, 3, H, D] or [B, T, H, 3, D].
        one = d.values(dtype, (batch, queries, 3, heads, depth), kind)
        if d.chance(0.5):
            q, k, v = one.permute(2, 0, 3, 1, 4).unbind(0)
        else:
            one = one.transpose(2, 3).contiguous()
            q, k, v = one.permute(3, 0, 2, 1, 4).unbind(0)
    elif way < 0.6:
        # [B, T, H, D], transposed as in models.
        q, k, v = (d.values(dtype, (batch, t, h, depth), kind).transpose(1, 2)
                   for t, h in ((queries, heads), (keys, groups), (keys, groups)))
    else:
        layouts = ("packed", "packed", "permuted", "sliced", "offset", "padded", "expanded")
        q, k, v = (d.tensor(dtype, (batch, h, t, depth), kind, layouts)
                   for t, h in ((queries, heads), (keys, groups), (keys, groups)))
    causal = d.chance(0.3)
    mask = None
    if d.chance(0.5) and (not causal or d.chance(0.2)):
        full = [batch, heads, queries, keys]
        shape = full[2:] if d.chance(0.4) else full
        shape = [1 if d.chance(0.25) else n for n in shape]
        mask_dtype = d.choice((dtype, dtype if dtype == torch.float64 else torch.float32, torch.bool))
        if mask_dtype == torch.bool:
            m = torch.rand(shape, generator=d.torch) < d.choice((0.1, 0.5, 0.9))
        else:
            m = torch.randn(shape, generator=d.torch).to(mask_dtype)
            hidden = torch.rand(shape, generator=d.torch) < d.choice((0, 0.2, 0.8))
            m = m.masked_fill(hidden, d.choice((-math.inf, -math.inf, torch.finfo(mask_dtype).min)))
        if d.chance(0.3) and m.dim() and m.shape[-2]:
            m[..., d.randrange(m.shape[-2]), :] = False if mask_dtype == torch.bool else -math.inf
        mask = d.laid_out(m, ("packed", "packed", "permuted", "sliced", "offset", "padded"))
    # Negative scales only without a mask: ATen scales its -infinity and gives NaN.
    scale = d.choice((None, None, 0.125, 1.0, 1.0 if causal else -0.5))
    if d.chance(0.03) and dtype != torch.float16:
        scale = 3.0  # saturates
    label = (f"{dtype} B {batch} H {heads}/{groups} L {queries} N {keys} D {depth} {kind} strides {list(q.stride())} "
             f"{list(k.stride())} {list(v.stride())} causal {causal} scale {scale} mask "
             f"{None if mask is None else (mask.dtype, list(mask.shape), list(mask.stride()))}")
    return label, q, k, v, causal, mask, scale


def draw(d):
    label, q, k, v, causal, mask, scale = operands(d)
    inexact = 2 if q.dtype == torch.float64 else 1  # the formula rounds as often
    def aten(q, k, v, p, causal, mask, scale):
        if q.numel() * k.numel() == 0:
            out, lse = formula(q, k, v, p, causal, mask, scale)
            by_token = torch.empty((q.size(0), q.size(2), q.size(1)), dtype=torch.float64 if q.dtype == torch.float64 else torch.float32)
            return torch.empty_like(q).copy_(out), by_token.transpose(1, 2).copy_(lse)
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, p, causal, attn_mask=added(mask, q),
                                                                          scale=scale)

    def magnitude(q, k, v, p, causal, mask, scale):
        s, size = scores_of(q, k, causal, mask, scale)
        seen = size.masked_fill(s < -1e30, 0)
        most = 1 + seen.amax(-1, keepdim=True) if seen.numel() else seen.sum(-1, keepdim=True)
        return most * (weights_of(s) @ heads_repeated(v, q.size(1)).abs()), most.squeeze(-1)

    if d.chance(0.65):
        return case.Case(f"{FORWARD} {label}", lambda *a: abi.call(FORWARD, *a), aten, [q, k, v, 0.0, causal, mask, scale],
                         exact=formula, error=(8 + 0.5 * (q.size(3) ** 0.5 + k.size(2) ** 0.5)) * inexact, magnitude=magnitude)
    if q.numel() == 0:
        return None
    gradient = d.tensor(q.dtype, q.shape, "normal", ("packed", "permuted", "sliced", "padded", "expanded"))
    plain = [t.detach().contiguous() for t in (q, k, v)]
    out, lse = aten(*plain, 0.0, causal, mask, scale)
    out = d.laid_out(out, ("packed", "permuted", "sliced", "padded"))

    def backward(grad, q, k, v, out, lse, p, causal, mask, scale):
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            grad, q, k, v, out, lse, p, causal, attn_mask=added(mask, q), scale=scale)

    def formula_backward(grad, q, k, v, out, lse, p, causal, mask, scale):
        return sums(grad, q, k, v, out, lse, causal, mask, scale, lambda t: t)

    def sums(grad, q, k, v, out, lse, causal, mask, scale, of):
        groups, heads = k.size(1), q.size(1)
        kr, vr = heads_repeated(k, heads), heads_repeated(v, heads)
        s, size = scores_of(q, k, causal, mask, scale)
        weights = torch.exp(s - lse.unsqueeze(-1)).masked_fill(s == -math.inf, 0)
        if of is torch.abs:
            seen = size.masked_fill(s < -1e30, 0)
            # Scores that a mask set to the least number leave nothing that could be rounded.
            weights = weights * (1 + seen + lse.abs().masked_fill(lse < -1e30, 0).unsqueeze(-1))
            slope = weights * (grad.abs() @ vr.abs().mT + (grad.abs() * out.abs()).sum(-1, keepdim=True))
        else:
            slope = weights * (grad @ vr.mT - (grad * out).sum(-1, keepdim=True))
        factor = of(torch.tensor(scale if scale is not None else 1 / math.sqrt(q.size(3)), dtype=torch.float64))
        dq, dk, dv = slope @ of(kr) * factor, slope.mT @ of(q) * factor, weights.mT @ of(grad)
        if groups != heads:
            dk, dv = (t.unflatten(1, (groups, heads // groups)).sum(2) for t in (dk, dv))
        return dq, dk, dv

    terms = max(q.size(2), k.size(2), q.size(3))
    return case.Case(f"{FORWARD}_backward {label}", lambda *a: abi.call(FORWARD + "_backward", *a), backward,
                     [gradient, q, k, v, out, lse, 0.0, causal, mask, scale], exact=formula_backward, error=(10 + terms ** 0.5) * inexact,
                     magnitude=lambda g, q, k, v, o, l, p, c, m, s: sums(g, q, k, v, o, l, c, m, s, torch.abs))
