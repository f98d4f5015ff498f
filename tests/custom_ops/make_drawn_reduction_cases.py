"""Writes tests/data/drawn_reductions.cases: one case per class of failures that random cases of sums, norms and losses
found (tests/truth).

    .venv/bin/python tests/custom_ops/make_drawn_reduction_cases.py      # torch 2.15
"""
import torch

from aten_cases import Atens, Samples


def no_dimension(out):
    """An empty list means no dimension for any and all, but every dimension for sums."""
    for dtype in (torch.float32, torch.uint8, torch.bool):
        x = torch.tensor([[0, 1, 2], [0, 0, 0]]).to(dtype)
        for name in ("any.dims", "all.dims"):
            for keep in (False, True):
                out.add(name, x, [], keep)
                out.add(name, x.t(), [], keep)
                out.add(name, x, None, keep)


def rounding(out):
    """Half products whose sum is small only if they are not rounded; the deviation of a long, constant row."""
    for dtype in (torch.float16, torch.bfloat16):
        last = torch.finfo(dtype).eps
        a, b = torch.full((4096,), 1 + last, dtype=dtype), torch.full((4096,), 1 + last, dtype=dtype)
        a[1::2], b[1::2] = -1, 1 + 2 * last
        out.add("dot", a, b, tolerance=1e-2)
        out.add("vdot", a, b, tolerance=1e-2)
    for dtype in (torch.float64, torch.complex128):
        x = torch.full((1,), 0.1, dtype=dtype).expand(200003)
        out.add("std_mean.correction", x, [0], 1, False, tolerance=1e-14)
        out.add("var_mean.correction", x, None, 0, True, tolerance=1e-14)
        out.add("sum.dim_IntList", x, [0], False, None, tolerance=1e-14)


def memory_orders(out, s):
    """Results have ATen's strides."""
    x, y = s.sample(torch.float32, [5, 4, 3]).permute(2, 0, 1), s.sample(torch.float32, [5, 3, 4]).transpose(0, 1)
    grad = s.sample(torch.float32, [3, 5, 4], layouts=("packed",))
    for name, extra in (("mse_loss", ()), ("smooth_l1_loss", (0.5,)), ("huber_loss", (0.5,))):
        out.add(f"{name}_backward", grad, x, y, 0, *extra, tolerance=1e-6)
        out.add(f"{name}_backward", torch.tensor(0.5), x, y, 1, *extra, tolerance=1e-6)
    p, q = x.sigmoid(), y.sigmoid()
    for target in (q, q.contiguous()):
        out.add("binary_cross_entropy", p, target, None, 0, tolerance=1e-6)
        out.add("binary_cross_entropy", p[:, :1].expand(3, 5, 4), target, None, 0, tolerance=1e-6)
        out.add("binary_cross_entropy_backward", grad, p, target, None, 0, tolerance=1e-5)
        out.add("binary_cross_entropy_with_logits", x, target, None, None, 0, tolerance=1e-6)
        out.add("binary_cross_entropy_with_logits", x, target, None, p[0, 0], 0, tolerance=1e-6)
    row = s.sample(torch.float32, [1, 4], layouts=("packed",)).expand(3, 4)
    turned = s.sample(torch.float32, [4, 3], layouts=("packed",)).t()
    out.add("binary_cross_entropy_with_logits", turned, row.sigmoid(), None, None, 0, tolerance=1e-6)
    out.add("binary_cross_entropy_with_logits", turned, row.sigmoid()[:1].expand(3, 4), None, row[0], 0, tolerance=1e-6)
    out.add("huber_loss", row, turned, 0, 1.0, tolerance=1e-6)
    for dtype in (torch.float32, torch.float16):
        out.add("soft_margin_loss", x.to(dtype), y.sign().contiguous().to(dtype), 0, tolerance=2e-3)
    # Dimensions of size 1 may have any stride.
    odd = s.sample(torch.float32, [8, 5, 2, 3], layouts=("packed",)).permute(0, 3, 2, 1).as_strided([8, 3, 2, 1, 5], [30, 1, 15, 30, 3])
    for training in (False, True):
        out.add("native_batch_norm", odd, torch.ones(3), None, torch.zeros(3) if not training else None,
                torch.ones(3) if not training else None, training, 0.1, 1e-5, tolerance=1e-5)
    single = s.sample(torch.float32, [4, 6, 5], layouts=("packed",)).as_strided([1, 5, 4, 6], [5, 1, 30, 5])
    ones = torch.ones(5)
    out.add("native_batch_norm_backward", torch.empty_strided([1, 5, 4, 6], [5, 1, 30, 5]).copy_(single.flip(1)), single, ones, None, None,
            single.mean([0, 2, 3]), ones, True, 1e-5, [True, True, True], tolerance=1e-4)
    image = s.sample(torch.float32, [2, 4, 5, 3], layouts=("packed",)).permute(0, 3, 1, 2)
    out.add("_fused_rms_norm", image, [5], torch.ones(5), 1e-5, tolerance=1e-5)
    out.add("_fused_rms_norm", image[:, :, :, ::2], [3], None, None, tolerance=1e-5)
    out.add("linalg_matrix_exp", torch.tensor([[1.0, 2], [0, -1]]).t()[:, :, None, None], tolerance=1e-6)
    out.add("_masked_softmax_backward", torch.tensor(2.0), torch.tensor(1.0), torch.tensor(False), None)


def dtypes(out, s):
    x = s.sample(torch.complex64, [3, 4], layouts=("packed",)).to(torch.complex32)
    out.add("var.correction", x, [1], 1, False, tolerance=2e-3)
    out.add("var_mean.correction", x, None, 0, False, tolerance=2e-3)
    out.add("linalg_vector_norm", x, 2, [0], True, None, tolerance=2e-3)
    out.add("linalg_vector_norm", x, 3, None, False, None, tolerance=2e-3)
    y = s.sample(torch.complex64, [3, 4], layouts=("packed",)) / 9
    for reduction in (0, 1, 2):
        out.add("soft_margin_loss", y, torch.where(y.real > 0, 1.0, -1.0).to(y.dtype), reduction, tolerance=1e-5)
    # Numbers with so few bits that ATen's intermediate rounding is exact.
    a = torch.tensor([[0.0, 3], [4, 0], [1, 2]], dtype=torch.float16)
    for dtype in (torch.float16, torch.bfloat16):
        out.add("_euclidean_dist", a.to(dtype), a.flip(0).to(dtype), tolerance=1e-2)


def edges(out):
    out.add("native_layer_norm", torch.zeros(3, 0), [0], torch.zeros(0), None, 1e-5)
    out.add("native_layer_norm", torch.zeros(2, 3, 0, dtype=torch.float16), [3, 0], None, None, 1e-5)
    x = torch.tensor([-2.0, 80.0, 87.7, 88.3, 88.72, -88.5, 600.0])
    # Values at the limit of log1p, in vectors and alone.
    for repeats in (1, 5):
        out.add("soft_margin_loss", x.repeat(repeats), torch.full((7 * repeats,), -1.0), 0, tolerance=1e-5)
        out.add("soft_margin_loss", x.repeat(repeats).double() * 8, -torch.ones(7 * repeats, dtype=torch.float64), 0, tolerance=1e-12)
    for dtype in (torch.float32, torch.float64):
        p = torch.tensor([1e-13, 1 - 1e-7, 0.0, 1.0], dtype=dtype)
        out.add("binary_cross_entropy_backward", torch.ones_like(p), p, torch.full_like(p, 0.25), None, 0, tolerance=1e-9)
    weight = torch.tensor([0.5, 2.0, 0.25])
    for reduction in (0, 1, 2):
        out.add("nll_loss_forward", torch.tensor([1.0, 2.0, 3.0]), torch.tensor(1), weight, reduction, -100)
        out.add("nll_loss_forward", torch.tensor([1.0, 2.0, 3.0]), torch.tensor(1), None, reduction, 1)


def main():
    out, s = Atens("drawn_reductions.cases"), Samples(3)
    no_dimension(out)
    rounding(out)
    memory_orders(out, s)
    dtypes(out, s)
    edges(out)
    out.out.close()


main()
