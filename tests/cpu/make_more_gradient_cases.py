"""Writes tests/data/more_gradients.cases: python tests/cpu/make_more_gradient_cases.py [seed [cases [file]]]"""
import pathlib
import sys
import warnings

import torch
from case_writer import CaseWriter, Samples, attempt
from make_gradient_cases import FLOATS, SMALL, TOLERANCE, Images

aten = torch.ops.aten
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def reductions(s, out, count):
    for _ in range(count * 3):
        dtype = s.pick(FLOATS + SMALL + INTEGERS + [torch.bool, torch.complex64])
        shape = [1 + s.below(5) for _ in range(s.below(4))]
        if dtype in (torch.bool, torch.complex64) and len(shape) < 2:  # PyTorch refuses them below two dimensions
            dtype = torch.uint8
        dim = s.below(max(1, len(shape)))
        n = s.below(6) if shape else 1
        index = torch.randint(0, shape[dim] if shape else 1, [n] if shape or s.below(2) else [], dtype=s.pick([torch.int64, torch.int32]))
        x = s.sample(dtype, shape, low=-3, high=3)
        source = s.sample(dtype, shape[:dim] + [n] + shape[dim + 1:] if shape else [], low=-3, high=3)
        attempt(out, "index_reduce", lambda x, d, i, v, r, b: aten.index_reduce(x, d, i, v, r, include_self=b), x, dim, index,
                source, s.pick(["prod", "mean", "amax", "amin"]),
                dtype in (torch.bool, torch.complex64) or bool(s.below(2)),  # PyTorch needs self for them
                tolerance=TOLERANCE.get(dtype, 0.0))
        dtype = s.pick(FLOATS + SMALL + [torch.int64, torch.complex64])
        b, i, j, o = [1 + s.below(4) for _ in range(4)]
        sums = s.pick([[2, 3], [3], [0, 2], []])
        attempt(out, "_trilinear", aten._trilinear, s.sample(dtype, [b, i], low=-2, high=2),
                s.sample(dtype, [o, i, j], low=-2, high=2), s.sample(dtype, [b, j], low=-2, high=2), [1, 3], [0], [1, 2], sums,
                1, tolerance=TOLERANCE.get(dtype, 0.0))
        dtype = s.pick(FLOATS + SMALL)
        shape = [s.below(5) for _ in range(s.below(3))]
        x = s.sample(dtype, shape)
        mask = s.strided(torch.rand(shape) < 0.5)
        attempt(out, "masked_scatter_backward", aten.masked_scatter_backward, x, mask, [s.below(6), 1 + s.below(5)])
        y = s.strided(torch.sign(s.values(dtype, shape)))
        reduction = s.below(3)
        g = s.values(dtype, shape if reduction == 0 else [])
        if x.numel():
            out.add("soft_margin_loss_backward", aten.soft_margin_loss_backward, g.contiguous(), x.contiguous(),
                    y.contiguous(), reduction, tolerance=TOLERANCE[dtype] * 2)
    for bad in ((torch.ones(3), 0, torch.tensor([3]), torch.ones(1), "prod"), (torch.ones(3), 0, torch.tensor([-1]), torch.ones(1), "prod"),
                (torch.ones(3), 0, torch.tensor([1]), torch.ones(2), "prod"), (torch.ones(3), 0, torch.tensor([1]), torch.ones(1), "sum"),
                (torch.ones(3), 0, torch.tensor([1.0]), torch.ones(1), "prod"), (torch.ones(3), 0, torch.tensor([1]), torch.ones(1).double(), "prod")):
        attempt(out, "index_reduce", lambda x, d, i, v, r, b: aten.index_reduce(x, d, i, v, r, include_self=b), *bad, True)
    for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64):
        out.add("_efficientzerotensor", lambda size, d: aten._efficientzerotensor(size, dtype=torch.zeros(0, dtype=d.dtype).dtype).clone(),
                [2, 3], torch.zeros(0, dtype=dtype))


def embeddings(s, out, count):
    for _ in range(count * 2):
        dtype = s.pick(FLOATS + SMALL)
        rows, columns, bags = 2 + s.below(5), 1 + s.below(5), 1 + s.below(4)
        n = bags + s.below(5)
        index_dtype = s.pick([torch.int64, torch.int32])
        indices = torch.randint(0, rows, [n], dtype=index_dtype)
        offsets = torch.sort(torch.cat([torch.zeros(1), torch.randint(0, n + 1, [bags - 1]).float()]))[0].to(index_dtype)
        mode = s.below(3)
        padding = s.pick([-1, -1, 0])
        weight = s.sample(dtype, [rows, columns])
        scales = s.values(dtype, [n]) if mode == 0 and s.below(2) else None
        _, _, bag_size, most = aten._embedding_bag(weight, indices, offsets, False, mode, False, scales, False, padding)
        offset2bag = (torch.searchsorted(offsets, torch.arange(n, dtype=index_dtype), right=True) - 1).to(index_dtype)
        # Of several bags with one offset, all but the last are empty.
        g = s.sample(dtype, [bags, columns])
        attempt(out, "_embedding_bag_dense_backward", aten._embedding_bag_dense_backward, g, indices, offset2bag,
                bag_size, most, rows, bool(s.below(2)) and mode != 2, mode, scales, padding, tolerance=TOLERANCE[dtype])
        attempt(out, "_embedding_bag_per_sample_weights_backward",
                aten._embedding_bag_per_sample_weights_backward, g, weight, indices, offsets,
                s.pick([offset2bag, offset2bag[:0]]), 0, padding, tolerance=TOLERANCE[dtype])


def attention(s, out, count):
    for _ in range(count):
        dtype = s.pick(FLOATS + SMALL)
        b, h, tq, tk, d = 1 + s.below(2), 1 + s.below(3), 1 + s.below(9), 1 + s.below(9), s.pick([4, 8, 16])
        # D is innermost in memory, as PyTorch's kernel assumes without checking.
        q, k, v = (torch.randn(b, t, h, d, dtype=dtype).transpose(1, 2) for t in (tq, tk, tk))
        causal = bool(s.below(2))
        mask = None
        if not causal and s.below(2):
            mask = torch.randn(s.pick([[tq, tk], [b, h, tq, tk], [b, 1, tq, tk]]), dtype=dtype)
        scale = s.pick([None, 0.3])
        y, lse = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, attn_mask=mask, scale=scale)
        g = torch.randn(b, h, tq, d, dtype=dtype)
        attempt(out, "_scaled_dot_product_flash_attention_for_cpu_backward",
                lambda g, q, k, v, y, l, c, m, f: aten._scaled_dot_product_flash_attention_for_cpu_backward(
                    g, q, k, v, y, l, 0.0, c, attn_mask=m, scale=f), g, q, k, v, y, lse, causal, mask, scale,
                tolerance=TOLERANCE[dtype] * 2)


def convolutions(s, out, count):
    images = Images(s)
    for i in range(count * 2):
        dims = 1 + i % 3
        dtype = s.pick(FLOATS + SMALL)
        groups = s.pick([1, 1, 2])
        transposed = bool(s.below(2))
        cin, cout = groups * (1 + s.below(3)), groups * (1 + s.below(3))
        kernel = [1 + s.below(3) for _ in range(dims)]
        stride = [1 + s.below(2) for _ in range(dims)]
        dilation = [1 + s.below(2) for _ in range(dims)]
        padding = [s.below(2) for _ in range(dims)]
        extra = [s.below(max(a, b)) if transposed else 0 for a, b in zip(stride, dilation)]
        extra = [min(e, a - 1) for e, a in zip(extra, stride)]
        sizes = [k * d + 2 + s.below(4) for k, d in zip(kernel, dilation)]
        x = images.layout(s.values(dtype, [1 + s.below(2), cin] + sizes, -2, 2), dims)
        w = s.strided(s.values(dtype, ([cin, cout // groups] if transposed else [cout, cin // groups]) + kernel, -2, 2))
        try:
            y = aten.convolution(x, w, None, stride, padding, dilation, transposed, extra, groups)
        except RuntimeError:  # oneDNN does not support some transposed convolutions
            continue
        g = images.layout(s.values(dtype, y.shape, -2, 2), dims)
        mask = [bool(s.below(4)) for _ in range(3)]

        def call(*a):
            # Results are made row-major, because PyTorch's layout depends on its oneDNN. It may also return gradients that the
            # mask leaves out, and two-dimensional ones for weights of one dimension.
            sizes = (a[1].shape, a[2].shape, a[3])
            return [torch.empty(size, dtype=t.dtype).copy_(t.reshape(size))
                    for t, size, asked in zip(aten.convolution_backward(*a), sizes, a[-1]) if asked]

        if any(mask):
            attempt(out, "convolution_backward", call, g, x, w, [cout], stride, padding, dilation, transposed, extra, groups, mask,
                    tolerance=TOLERANCE[dtype] * 2)


def observers(s, out, count):
    for _ in range(count):
        shape = [1 + s.below(4) for _ in range(1 + s.below(3))]
        rows = len(shape) > 1 and bool(s.below(2))
        axis = 0 if rows else s.below(len(shape))
        n = shape[axis] if rows else 1
        x = s.sample(torch.float32, shape, low=s.pick([-5, 0]), high=5)
        low, high = torch.full([n], s.pick([float("inf"), -1.0])), torch.full([n], s.pick([float("-inf"), 2.0]))
        low_q, high_q = s.pick([(-128, 127), (0, 255), (0, 15)])
        args = (x, torch.tensor([s.below(3) > 0]), torch.tensor([s.below(3) > 0]), low, high, torch.full([n], 0.05),
                torch.zeros(n, dtype=torch.int32), 0.1, low_q, high_q, axis, rows, bool(s.below(2)))
        out.add("_fused_moving_avg_obs_fq_helper_functional",
                aten._fused_moving_avg_obs_fq_helper_functional, *args, tolerance=1e-6)


def main(seed=1, count=10, path=pathlib.Path(__file__).parents[1] / "data" / "more_gradients.cases"):
    warnings.simplefilter("ignore")
    s = Samples(seed)
    torch.manual_seed(seed)
    out = CaseWriter(path)
    reductions(s, out, count)
    embeddings(s, out, count)
    attention(s, out, count)
    convolutions(s, out, count)
    observers(s, out, count)
    out.close()


if __name__ == "__main__":
    main(*[int(a) if a.isdigit() else a for a in sys.argv[1:]])
