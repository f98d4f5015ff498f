"""Writes tests/data/attention.cases. Needs torch.

    python3 make_attention_cases.py ../data/attention.cases
"""
import sys

import torch

from case_writer import CaseWriter, Samples

op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
NAME = "_scaled_dot_product_flash_attention_for_cpu"
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12, torch.float16: 3e-3, torch.bfloat16: 3e-2}
inf, nan = float("inf"), float("nan")

w = CaseWriter(sys.argv[1])
s = Samples(15)


def normal(dtype, *shape):
    return torch.randn(shape, generator=s.g).to(dtype)


def add(q, k, v, causal=False, mask=None, scale=None, dropout=0.0, message=None):
    def call(q, k, v, dropout, causal, mask, scale):
        return op(q, k, v, dropout, causal, attn_mask=mask, scale=scale)

    w.add(NAME, call, q, k, v, dropout, causal, mask, scale, tolerance=TOLERANCE.get(q.dtype, 0.0), message=message)


for dtype in TOLERANCE:
    q, k, v = normal(dtype, 2, 3, 4, 5), normal(dtype, 2, 3, 6, 5), normal(dtype, 2, 3, 6, 5)
    add(q, k, v)
    add(q, k, v, causal=True)
    add(q, k, v, scale=0.3)
    add(q, k, v, scale=-1.0)
    add(q, k, v, mask=normal(dtype, 4, 6))
    add(q, k, v, causal=True, mask=normal(torch.float32, 2, 1, 1, 6))
    add(q, k, v, mask=normal(torch.float32, 2, 3, 4, 6).transpose(0, 1).contiguous().transpose(0, 1))
    add(q, k, v, mask=normal(dtype, 1, 1, 6, 4).transpose(2, 3))
    add(q, k, v, mask=normal(dtype, 4, 1))
    add(q, k, v, mask=normal(dtype, 1, 6).expand(4, 6))
    # The mask hides all keys from some rows, or adds NaN or infinity.
    mask = torch.zeros(4, 6)
    mask[1] = -inf
    mask[2, :3] = -inf
    add(q, k, v, mask=mask.to(dtype))
    mask[3, 2] = nan
    add(q, k, v, mask=mask.to(dtype))
    mask[3, 2] = inf
    add(q, k, v, mask=mask.to(dtype))
    bad = v.clone()
    bad[0, 0, 1, 0] = nan
    bad[1, 1, 0, 2] = inf
    add(q, k, bad, causal=True)
    # More queries than keys, one query, shared key heads, head sizes around the widths of vectors.
    add(normal(dtype, 1, 2, 9, 8), normal(dtype, 1, 2, 6, 8), normal(dtype, 1, 2, 6, 8), causal=True)
    add(normal(dtype, 1, 4, 1, 16), normal(dtype, 1, 2, 40, 16), normal(dtype, 1, 2, 40, 16))
    add(normal(dtype, 1, 4, 3, 17), normal(dtype, 1, 1, 33, 17), normal(dtype, 1, 1, 33, 17), causal=True)
    add(normal(dtype, 1, 1, 20, 33), normal(dtype, 1, 1, 35, 33), normal(dtype, 1, 1, 35, 33))

# The output has the query's memory order without its gaps. (ATen writes to wrong addresses if the last dimension is not
# innermost in it.)
f = torch.float32
k, v = normal(f, 2, 3, 6, 5), normal(f, 2, 3, 6, 5)
for q in (normal(f, 2, 4, 3, 5).transpose(1, 2), normal(f, 2, 4, 45)[:, :, :15].view(2, 4, 3, 5).transpose(1, 2),
          normal(f, 2, 1, 4, 5).expand(2, 3, 4, 5), normal(f, 1, 3, 4, 5).expand(2, 3, 4, 5),
          normal(f, 2, 3, 4, 10)[..., ::2], normal(f, 2, 1, 45)[:, :, :15].view(2, 1, 3, 5).transpose(1, 2),
          normal(f, 3, 4, 2, 5).permute(2, 0, 1, 3)):
    add(q, k, v)
q = normal(f, 2, 3, 4, 5)
for layout in (lambda t: t.transpose(1, 2).contiguous().transpose(1, 2), lambda t: t[:, :1].expand(2, 3, 6, 5),
               lambda t: t.transpose(2, 3).contiguous().transpose(2, 3),
               lambda t: torch.cat([t, t], -1)[..., 5:]):
    add(q, layout(k), v)
    add(q, k, layout(v))
add(q[:0], k[:0], v[:0])

# 800 keys are several blocks; rows are masked in the first, the last or all of them.
q, k, v = normal(f, 1, 1, 5, 2), normal(f, 1, 1, 800, 2), normal(f, 1, 1, 800, 2)
mask = torch.zeros(5, 800)
mask[0, :600] = -inf
mask[1, 600:] = -inf
mask[2] = -inf
mask[3, ::2] = -inf
add(q, k, v, mask=mask)
add(40 * q, k, v)

q, k, v = normal(f, 2, 3, 4, 5), normal(f, 2, 3, 6, 5), normal(f, 2, 3, 6, 5)
add(q, k, v, dropout=0.1, message="Currently do not support dropout > 0")
add(q[0], k[0], v[0], message="Accept only 4 dims inputs shape of {B, H, T, K}")
add(q, k, v[..., :4], message="Q/K/V should have the same head size")
add(q.int(), k.int(), v.int(), message="Expected data type in FP32, FP64, BF16, FP16, but got ")
add(q, k, v, mask=normal(f, 3, 4, 6), message="Attention mask dim in {2, 4}")
add(q, k, v, mask=normal(f, 4, 6).double(), message="Attention mask is the same data type as query")
add(q.double(), k, v, message="expected ")
add(q, k, v, mask=normal(f, 4, 5), message="")
w.close()
