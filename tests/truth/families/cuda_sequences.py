"""Attention of [B, T, H, D] and over sequences of several lengths on a device: _flash_attention_forward, also with paged
keys and in place, _efficient_attention_forward; windows, ALiBi slopes, numbers of used keys; and gradients."""
import torch

import abi
from attention_reference import Attention, hidden
from cuda_attention import judged, padded

DEVICES = ("cuda",)
FLASH, EFFICIENT = "_flash_attention_forward", "_efficient_attention_forward"


def declare():
    """Functions that torch declares from 2.12 on."""
    forward = abi.signatures.get(FLASH)
    if forward is None or f"{FLASH}_v2" in abi.signatures:
        return
    first = next(i for i, p in enumerate(forward) if p.endswith("ret0"))
    abi.signatures[f"{FLASH}_v2"] = forward[:first] + ["AtenTensorHandle* block_table", "int64_t* num_splits"] + forward[first:]
    abi.signatures[f"{FLASH}_no_dropout_inplace_v2"] = ["AtenTensorHandle out"] + forward[:first] + ["AtenTensorHandle* block_table", "int64_t* num_splits", forward[first]]


def ends(lengths, device, dtype=torch.int32):
    return torch.tensor([sum(lengths[:i]) for i in range(len(lengths) + 1)], dtype=dtype, device=device)


def sight(d, causal, tq):
    """window to the left and right, as _flash_attention_forward takes them."""
    if d.chance(0.6):
        return None, None
    return d.choice((None, 0, 1, 5, 30)), None if causal else d.choice((None, 0, 3, 30))


def attention(q, k, v, scale, causal, left, right, slopes, dtype, most_queries, most_keys):
    """[T, H, D] each. A window as wide as the longest sequence counts as none."""
    tq, tk, device = q.shape[0], k.shape[0], q.device
    base = tk - tq
    hides = causal and (most_queries > 1 or slopes is not None)
    left = None if left is None or left >= most_keys else left
    right = 0 if hides else None if right is None or right >= most_keys else right
    bias = None
    if slopes is not None:
        key, place = torch.arange(tk, device=device), torch.arange(tq, device=device)[:, None] + base
        bias = (slopes.double()[:, None, None] * (key.expand(tq, tk) if right == 0 and left is None else -(place - key).abs()))[None]
    mask = hidden(tq, tk, device, right, left, base) if left is not None or right is not None else None
    a = Attention(*[t.transpose(0, 1)[None] for t in (q, k, v)], scale, mask, bias)
    a.dtype = dtype
    return a


def flash(d):
    declare()
    dtype = d.choice((torch.float16, torch.bfloat16, torch.float16, torch.float32))
    size = d.choice((8, 16, 32, 40, 64, 64, 96, 128, 128, 256))
    hk = d.choice((1, 2, 3, 4))
    h = hk * d.choice((1, 1, 2, 4))
    causal = d.chance(0.5)
    scale = d.choice((None, 0.2, 0.05))
    several = d.chance(0.7)
    pages = several and d.chance(0.35)
    if several:
        n = d.choice((1, 2, 3, 5))
        queries = [d.choice((0, 1, 1, 2, 5, 17, 33, d.size(64, high=150))) for _ in range(n)]
        keys = [d.choice((q, q + 3, d.size(1, 16, 64, 128, 256, high=700))) for q in queries]
    else:
        n = d.choice((1, 2, 3))
        queries, keys = [d.choice((1, 2, 16, 17, 33, d.size(64, 128, high=300)))] * n, None
        keys = [d.choice((queries[0], d.size(1, 64, 128, 256, 512, 1024, low=1, high=1500)))] * n
        if queries[0] == 0:
            return None
    if several and (max(queries) == 0 or max(keys) == 0):
        return None
    left, right = sight(d, causal, max(queries))
    v = lambda *s: d.values(dtype, s).to(d.device)
    tq, tk = sum(queries), sum(keys)
    form = d.choice(("apart", "of one"))
    most_q, most_k = max(queries), max(keys)
    slopes = None
    if d.chance(0.25):
        slopes = d.values(torch.float32, d.choice(((h,), (n, h))), "positive").to(d.device)
    if left is None and right is None and slopes is None and not causal and d.chance(0.1):
        scale = -0.1
    label = f"{dtype} {queries} {keys} {h}/{hk}x{size} {'causal' if causal else ''} window {left} {right} scale {scale} slopes {slopes is not None and list(slopes.shape)} {form}"
    each = lambda i: None if slopes is None else slopes[i] if slopes.dim() == 2 else slopes

    def reference(q, parts_of_keys):
        """Several lengths are packed, one length is a batch."""
        outs, sums, doubts, sum_doubts = [], [], [], []
        for i, (x, (y, z)) in enumerate(zip(q, parts_of_keys)):
            a = attention(x, y, z, scale, causal, left, right, each(i), dtype, most_q, most_k)
            outs.append(a.out()[0].transpose(0, 1))
            doubts.append(a.out_doubt()[0].transpose(0, 1))
            sums.append(a.sums(torch.inf)[0])
            sum_doubts.append(a.sums_doubt()[0])
        if several:
            return [(torch.cat(outs), dtype, torch.cat(doubts)), (torch.cat(sums, 1), torch.float32, torch.cat(sum_doubts, 1))]
        return [(torch.stack(outs), dtype, torch.stack(doubts)), (torch.stack(sums), torch.float32, torch.stack(sum_doubts))]
    if pages:
        page = d.choice((1, 5, 16, 64, 256))
        most = max(-(-k // page) for k in keys) + d.choice((0, 1))
        k, w = v(max(most * 2, 8), page, hk, size), v(max(most * 2, 8), page, hk, size)
        table = torch.randint(0, k.shape[0], (n, most), generator=d.torch).to(torch.int32).to(d.device)
        count = torch.tensor(keys, dtype=torch.int32, device=d.device)
        q, cq = v(tq, h, size), ends(queries, d.device)
        way = d.choice(("numbers", "both", "bounds"))
        ck, used = {"numbers": (None, count), "both": (ends([9] * n, d.device), count), "bounds": (ends(keys, d.device), None)}[way]

        def rows(t, i):
            return t[table[i].long()].flatten(0, 1)[:keys[i]]

        def paged(q, k, w):
            return reference(q.split(queries), [(rows(k, i), rows(w, i)) for i in range(n)])
        given = lambda q, k, w: [q, k, w, cq, ck, most_q, most_k, 0.0, causal, False, scale, left, right, used, slopes, table, None]
        if d.chance(0.3) and slopes is None:
            out = torch.empty(tq, h, size, dtype=dtype, device=d.device)
            return judged(f"in place, pages of {page} {way} {label}", lambda q, k, w: [out] + abi.call(f"{FLASH}_no_dropout_inplace_v2", out, *given(q, k, w)), paged, [q, k, w])
        return judged(f"{FLASH}_v2 pages of {page} {way} {label}", lambda q, k, w: abi.call(f"{FLASH}_v2", *given(q, k, w))[:2], paged, [q, k, w])
    if several:
        if form == "of one" and queries == keys:
            q, k, w = v(tq, h + 2 * hk, size).split([h, hk, hk], 1)
        else:
            q, (k, w) = v(tq, h, size), v(tk, 2, hk, size).unbind(1)
        kind = d.choice((torch.int32, torch.int32, torch.int64))
        cq, ck, used = ends(queries, d.device, kind), ends(keys, d.device, kind), None
        had = list(keys)
        if d.chance(0.2):
            had = [d.randrange(0, n_ + 1) for n_ in keys]
            used = torch.tensor(had, dtype=torch.int32, device=d.device)

        def joined(q, k, w):
            return reference(q.split(queries), [(y[:m], z[:m]) for y, z, m in zip(k.split(keys), w.split(keys), had)])
        return judged(f"{FLASH} several lengths used {used is not None and had} {label}",
                      lambda q, k, w: abi.call(FLASH, q, k, w, cq, ck, most_q, most_k, 0.0, causal, False, scale, left, right, used, slopes)[:2], joined, [q, k, w])
    t, s = queries[0], keys[0]
    q, (k, w) = v(n, t, h, size), v(n, s, 2, hk, size).unbind(2)
    if d.chance(0.2):
        q = d.tensor(dtype, (n, t, h, size), "normal", ("permuted", "padded", "sliced", "offset"))

    def batch(q, k, w):
        return reference(q.unbind(0), list(zip(k.unbind(0), w.unbind(0))))
    return judged(f"{FLASH} one length {label}", lambda q, k, w: abi.call(FLASH, q, k, w, None, None, t, s, 0.0, causal, False, scale, left, right, None, slopes)[:2],
                  batch, [q, k, w])


def efficient(d):
    """mask 1 aligns with the first key, mask 2 with the last."""
    dtype = d.choice((torch.float32, torch.float16, torch.bfloat16))
    size, value, h = d.choice((8, 32, 48, 64, 72, 128)), d.choice((0, 0, 16, 80)), d.choice((1, 2, 3, 4))
    value = value or size
    mask, wants = d.choice((0, 1, 2)), d.chance(0.6)
    scale = d.choice((None, 0.3))
    several = d.chance(0.5)
    n = d.choice((1, 2, 3, 5))
    window = d.choice((None, None, None, 9, 40)) if mask else None
    if several:
        queries = [d.choice((1, 2, 17, 33, d.size(64, low=1, high=150))) for _ in range(n)]
        keys = [d.choice((q, d.size(1, 16, 64, 256, low=1, high=600))) for q in queries]
    else:
        queries, keys = [d.size(16, 33, 64, low=1, high=300)] * n, [d.size(16, 64, 256, 1024, low=1, high=1500)] * n
    v = lambda *s: d.values(dtype, s).to(d.device)
    most_q, most_k = max(queries), max(keys)
    rows = (most_q + 31) // 32 * 32 if wants else 0
    label = f"{dtype} {queries} {keys} {h}x{size}/{value} mask {mask} window {window} scale {scale} sums {wants}"

    def one(x, y, z, bias=None):
        tq, tk = x.shape[0], y.shape[0]
        base = tk - tq if mask == 2 else 0
        hide = hidden(tq, tk, x.device, 0 if mask else None, None if not window else window - 1, base) if mask or window else None
        a = Attention(*[t.transpose(0, 1)[None] for t in (x, y, z)], scale, hide, bias)
        a.dtype = dtype
        return a

    def collect(found, join):
        outs = [a.out()[0].transpose(0, 1) for a in found]
        doubts = [a.out_doubt()[0].transpose(0, 1) for a in found]
        sums = torch.stack([padded(a.sums(-torch.inf)[0], rows) for a in found])
        wrong = torch.stack([padded(a.sums_doubt()[0], rows).nan_to_num(0, 0, 0) for a in found])
        return [(join(outs), dtype, join(doubts)), (sums, torch.float32, wrong)]
    if several:
        q, k, w = v(1, sum(queries), h, size), v(1, sum(keys), h, size), v(1, sum(keys), h, value)
        cq, ck = ends(queries, d.device), ends(keys, d.device)
        return judged(f"{EFFICIENT} several lengths {label}",
                      lambda q, k, w: abi.call(EFFICIENT, q, k, w, None, cq, ck, most_q, most_k, 0.0, mask, wants, scale, None, window)[:2],
                      lambda q, k, w: collect([one(*p) for p in zip(q[0].split(queries), k[0].split(keys), w[0].split(keys))], lambda t: torch.cat(t)[None]), [q, k, w])
    t, s = queries[0], keys[0]
    if t == s and value == size and d.chance(0.5):
        q, k, w = v(n, t, 3, h, size).unbind(2)
    else:
        q, k, w = v(n, t, h, size), v(n, s, h, size), v(n, s, h, value)
    bias = v(d.choice((1, n)), d.choice((1, h)), t, (s + 7) // 8 * 8)[..., :s].expand(n, h, t, s) if d.chance(0.4) else None

    def batch(q, k, w, *b):
        return collect([one(q[i], k[i], w[i], b[0][i][None] if b else None) for i in range(n)], torch.stack)
    return judged(f"{EFFICIENT} one length bias {bias is not None} {label}",
                  lambda q, k, w, *b: abi.call(EFFICIENT, q, k, w, b[0] if b else None, None, None, None, None, 0.0, mask, wants, scale, None, window)[:2],
                  batch, [q, k, w] + ([bias] if bias is not None else []))


def gradients(d):
    dtype = d.choice((torch.float16, torch.bfloat16, torch.float32))
    size, h, n = d.choice((8, 32, 64, 72)), d.choice((1, 2, 3)), d.choice((1, 2, 3))
    causal = d.chance(0.5)
    queries = [d.choice((1, 5, 17, 33, 64)) for _ in range(n)]
    keys = [d.choice((q, q + 7, d.size(16, 64, low=1, high=200))) for q in queries]
    v = lambda *s: d.values(dtype, s).to(d.device)
    q, k, w, grad = v(sum(queries), h, size), v(sum(keys), h, size), v(sum(keys), h, size), v(sum(queries), h, size)
    cq, ck = ends(queries, d.device), ends(keys, d.device)
    left = d.choice((None, None, 5))
    of = lambda q, k, w: [attention(*p, None, causal, left, None, None, dtype, max(queries), max(keys)) for p in zip(q.split(queries), k.split(keys), w.split(keys))]
    sums = torch.cat([a.sums(torch.inf)[0] for a in of(q, k, w)], 1).float()
    nothing, state = torch.empty(0, device=d.device), torch.zeros(2, dtype=torch.int64, device=d.device)

    def reference(g, q, k, w):
        parts = [a.gradients(x.transpose(0, 1)[None]) for a, x in zip(of(q, k, w), g.split(queries))]
        return [(torch.cat([p[0][i][0].transpose(0, 1) for p in parts]), dtype, torch.cat([p[1][i][0].transpose(0, 1) for p in parts])) for i in range(3)]
    return judged(f"_flash_attention_backward {dtype} {queries} {keys} {h}x{size} {causal} {left}",
                  lambda g, q, k, w: abi.call("_flash_attention_backward", g, q, k, w, nothing, sums, cq, ck, max(queries), max(keys), 0.0, causal, state, nothing, None, left, None)[:3],
                  reference, [grad, q, k, w])


def draw(d):
    return d.choice((flash, flash, efficient, efficient, gradients))(d)
