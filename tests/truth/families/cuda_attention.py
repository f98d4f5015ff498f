"""Attention of [B, H, T, D] on a device, and its gradients: every entry point, against products and a softmax in float64.

Limits (flash_plan.cpp, for a device with 132 multiprocessors): 64, 128 and 256 elements per head; rows of whole 16-byte
units at multiples of 16 bytes, else products; flash_few_kernel up to 16 queries, or below 1024 keys more if all blocks
of 8 run at once (396), with parts from 512 keys on; other kernels split from 1024 keys on (float32: 8 tiles of 32 or
16) if there are few blocks; 32 queries per warp if blocks of 128 fill the device; cuDNN from 5e8 operations on, whose
shapes come from a list, because planning one takes tens of milliseconds; several heads with one query over one key head
become queries of one head. With and without logsumexp, padded to 32 rows or not."""
import torch

import abi
import case
from attention_reference import Attention, hidden

DEVICES = ("cuda",)
HEAD_SIZES = (8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 136, 160, 192, 200, 256, 12, 20, 36, 4, 7, 33, 65, 264)
ENOUGH_FOR_DNN = ((2, 8, 8, 512, 512, 64), (1, 16, 4, 400, 640, 128), (1, 8, 8, 1000, 333, 128), (4, 4, 4, 384, 777, 96),
                  (1, 6, 2, 700, 700, 256), (1, 8, 1, 1024, 520, 80))


def sizes(d):
    """batch, heads, key heads, queries, keys, elements of keys and of values"""
    if d.chance(0.06):
        b, h, hk, tq, tk, size = d.choice(ENOUGH_FOR_DNN)
        return b, h, hk, tq, tk, size, size
    size = d.choice(HEAD_SIZES)
    most = 250000
    b = d.choice((1, 1, 2, 3, 4, 5, 8, 9))
    hk = d.choice((1, 1, 2, 3, 4, 6, 12))
    h = hk * d.choice((1, 1, 1, 2, 3, 4, 8))
    tq = d.choice((1, 2, 5, 7, 8, 9, 15, 16, 17, d.size(31, 32, 33, 63, 64, 65, 127, 128, 129, high=900), d.size(high=900)))
    tk = d.choice((tq, tq, d.size(16, 32, 64, 128, 255, 256, 257, 511, 512, 513, 730, 1023, 1024, 1025, 2048, high=4100)))
    while b > 1 and (b * h * tq * size > most or b * h * tq * tk > 6e6):
        b = (b + 1) // 2
    while h > 1 and (b * h * tq * size > most or b * hk * tk * size > most or b * h * tq * tk > 6e6):
        hk = max(1, hk // 2)
        h = hk if h > hk * 8 or d.chance(0.5) else hk * max(1, h // hk // 2)
        if hk == 1 and h == 1:
            break
    while b * h * tq * tk > 6e6:
        tk = (tk + 1) // 2
    value = size if d.chance(0.8) else d.choice(HEAD_SIZES)
    return b, h, hk, tq, tk, size, value


def tensors(d, dtype, b, h, hk, tq, tk, size, value, kind):
    """q, k, v, and their layout."""
    way = d.choice(("of one", "of one", "by token", "by token", "by head", "wider", "any", "heads of one", "keys of one"))
    make = lambda *shape: d.values(dtype, shape, kind).to(d.device)
    if way == "of one" and tq == tk and size == value:
        all_of_them = make(b, tq, h + 2 * hk, size)
        return [t.transpose(1, 2) for t in all_of_them.split([h, hk, hk], 2)], way
    if way == "heads of one" and tq == tk and h == hk and size == value:
        return [t.transpose(1, 2) for t in make(b, tq, h, 3, size).unbind(3)], way
    if way == "keys of one" and size == value:
        k, v = make(b, tk, 2, hk, size).permute(2, 0, 3, 1, 4)
        return [make(b, tq, h, size).transpose(1, 2), k, v], way
    if way == "by head":
        return [make(b, h, tq, size), make(b, hk, tk, size), make(b, hk, tk, value)], way
    if way == "wider":  # rows with a gap of whole or partial 16-byte units, at an offset of one element
        gap, first = d.choice((1, 4, 8, 16)), d.choice((0, 0, 1, 4, 8))
        return [make(b, n, t, first + s + gap)[..., first:first + s] for n, t, s in ((h, tq, size), (hk, tk, size), (hk, tk, value))], \
            f"wider by {first} and {gap}"
    if way == "any":
        return [d.tensor(dtype, s, kind, ("packed", "permuted", "sliced", "offset", "padded", "expanded")) for s in
                ((b, h, tq, size), (b, hk, tk, size), (b, hk, tk, value))], way
    return [make(b, n, h_, s).transpose(1, 2) for n, h_, s in ((tq, h, size), (tk, hk, size), (tk, hk, value))], "by token"


def bias_of(d, dtype, b, h, tq, tk):
    """Full or broadcast, with rows at multiples of 16 bytes or not; hides some keys, or a whole row."""
    own = [b if d.chance(0.6) else 1, h if d.chance(0.5) else 1, tq if d.chance(0.7) else 1]
    room = d.choice((tk, (tk + 15) // 16 * 16, (tk + 7) // 8 * 8 + 8))
    bias = d.values(dtype, (*own, room)).to(d.device)
    way = d.choice(("numbers", "numbers", "hides", "hides rows"))
    if way != "numbers":
        bias[d.values(torch.float32, (*own, room), "normal").to(d.device) > 0.6] = -torch.inf
    if way == "hides rows" and own[2] > 1:
        bias[:, :, d.randrange(own[2])] = -torch.inf
    return bias[..., :tk].expand(b, h, tq, tk), f"bias {own} {way} rows of {room}"


def judged(label, ours, reference, arguments):
    """reference(*arguments) -> list of (result, its dtype, doubt)."""
    def results(*values):
        return [r.to(t) for r, t, _ in reference(*values)]
    return case.Case(label, ours, results, arguments, error=1.0, strides=False,
                     exact=lambda *values: [r for r, _, _ in reference(*values)],
                     magnitude=lambda *values: [m for _, _, m in reference(*values)])


def padded(sums, rows):
    return torch.nn.functional.pad(sums, (0, rows - sums.shape[-1]), value=torch.inf) if rows else sums[..., :0]


def forward(d, entry, q, k, v, bias, causal, scale, label):
    tq, tk, dtype = q.shape[2], k.shape[2], q.dtype
    wants = d.chance(0.5)
    name = f"_scaled_dot_product_{entry}_attention"
    rows = {"efficient": (tq + 31) // 32 * 32 if wants else 0, "flash": tq, "cudnn": tq}[entry]
    empty = torch.inf if entry == "flash" else -torch.inf
    hides = causal and (tq > 1 or entry != "flash")

    def reference(x, y, z, added=None):
        a = Attention(x, y, z, scale, hidden(tq, tk, x.device, 0, None, tk - tq if entry == "flash" else 0) if hides else None, added)
        a.dtype = dtype
        found = [(a.out(), dtype, a.out_doubt())]
        if entry != "cudnn" or wants:
            sums, doubt = padded(a.sums(empty), rows), padded(a.sums_doubt(), rows).nan_to_num(0, 0, 0)
            if entry == "cudnn":
                sums, doubt = sums.unsqueeze(-1), doubt.unsqueeze(-1)
            found.append((sums, torch.float32, doubt))
        return found

    def ours(x, y, z, added=None):
        if entry == "efficient":
            return abi.call(name, x, y, z, added, wants, 0.0, causal, scale)[:2]
        if entry == "flash":
            return abi.call(name, x, y, z, 0.0, causal, False, scale)[:2]
        return abi.call(name, x, y, z, added, wants, 0.0, causal, False, scale)[:2]
    return judged(f"{name} {label} sums {wants}", ours, reference, [q, k, v] + ([bias] if bias is not None else []))


def backward(d, entry, q, k, v, bias, causal, scale, label):
    tq, tk, dtype = q.shape[2], k.shape[2], q.dtype
    name = f"_scaled_dot_product_{entry}_attention"
    hides = causal and (tq > 1 or entry != "flash")
    of_bias = bias is not None and d.chance(0.5)

    def attention(x, y, z, added):
        a = Attention(x, y, z, scale, hidden(tq, tk, x.device, 0, None, tk - tq if entry == "flash" else 0) if hides else None, added)
        a.dtype = dtype
        return a
    rows = (tq + 31) // 32 * 32 if entry == "efficient" else tq
    a = attention(q, k, v, bias)
    # A row that sees nothing has +inf, and so no share in any gradient.
    sums = padded(a.sums(torch.inf), rows).float()
    out = a.out().to(dtype)
    grad = d.tensor(dtype, out.shape, "normal", ("packed", "permuted", "padded"))
    nothing = torch.empty(0, device=d.device)
    shaped = sums.unsqueeze(-1) if entry == "cudnn" else sums

    def reference(g, x, y, z, added=None):
        parts, doubts = attention(x, y, z, added).gradients(g)
        return [(p, dtype, m) for p, m in list(zip(parts, doubts))[:4 if of_bias and entry == "efficient" else 3]]

    def ours(g, x, y, z, added=None):
        if entry == "efficient":
            return abi.call(f"{name}_backward", g, x, y, z, added, out, shaped, nothing, nothing, 0.0,
                            [True, True, True, of_bias], causal, scale)[:4 if of_bias else 3]
        if entry == "flash":
            return abi.call(f"{name}_backward", g, x, y, z, out, shaped, None, None, tq, tk, 0.0, causal, nothing, nothing, scale)[:3]
        return abi.call(f"{name}_backward", g, x, y, z, out, shaped, nothing, nothing, added, None, None, tq, tk, 0.0, causal, scale)[:3]
    return judged(f"{name}_backward {label} of bias {of_bias}", ours, reference, [grad, q, k, v] + ([bias] if bias is not None else []))


def draw(d):
    entry = d.choice(("efficient", "efficient", "flash", "cudnn"))
    dtype = d.choice((torch.float32, torch.float16, torch.bfloat16)) if entry == "efficient" else d.choice(
        (torch.float16, torch.bfloat16, torch.float16, torch.bfloat16, torch.float32))
    b, h, hk, tq, tk, size, value = sizes(d)
    if entry == "efficient":
        hk = h
    if entry == "flash":
        value = size
    way_back = d.chance(0.25)
    if way_back and b * h * tq * tk > 1.5e6:
        way_back = False
    (q, k, v), layout = tensors(d, dtype, b, h, hk, tq, tk, size, value, d.choice(("normal", "normal", "few")))
    bias, tag = None, "no bias"
    if entry != "flash" and d.chance(0.4) and tq * tk:
        bias, tag = bias_of(d, dtype, b, h, tq, tk)
    causal = d.chance(0.4)
    scale = d.choice((None, None, 0.05, 1.0, 0.3, -0.2))
    label = f"{dtype} {b}x{h}/{hk}x{tq}x{tk}x{size}/{value} {layout} {tag} {'causal' if causal else ''} scale {scale}"
    if tq * tk * b * h == 0 and way_back:
        return None
    return (backward if way_back else forward)(d, entry, q, k, v, bias, causal, scale, label)
