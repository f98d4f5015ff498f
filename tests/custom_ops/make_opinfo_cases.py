"""Writes tests/data/opinfo.cases: one case per class of failures that tests/opinfo found.

    .venv/bin/python tests/custom_ops/make_opinfo_cases.py      # torch 2.15
"""
import argparse
import importlib.util
import sys

argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
if not importlib.util.find_spec("torch"):
    sys.exit("make_opinfo_cases.py: this Python has no torch: pip install torch==2.15.0")
import torch  # noqa: E402

from aten_cases import FLOATS, HALVES, Atens, Samples  # noqa: E402

INF = float("inf")
WIDE = [torch.uint16, torch.uint32, torch.uint64]


def wide_integers(out, s):
    """Comparisons and limits of unsigned wide integers, of float8 and of bool."""
    for dtype in WIDE:
        most = torch.iinfo(dtype).max
        a, b = torch.tensor([0, 1, most, most - 1, 7], dtype=dtype), torch.tensor([most, 1, most, 3, 9], dtype=dtype)
        for name in ("eq.Tensor", "ne.Tensor", "maximum", "minimum", "clamp_min.Tensor", "clamp_max.Tensor"):
            out.add(name, a, b)
        out.add("clamp.Tensor", a, torch.minimum(b, a), b)
        out.add("eq.Scalar", a, 1)
        out.add("clamp_min", a, 3)
        out.add("clamp_max", a, 3)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        a, b = torch.tensor([0.5, -2, 8]).to(dtype), torch.tensor([0.5, 2, 8]).to(dtype)
        out.add("eq.Tensor", a, b)
        out.add("ne.Tensor", a, b)
    a, b = torch.tensor([True, False, True, False]), torch.tensor([True, True, False, False])
    out.add("clamp_min.Tensor", a, b)
    out.add("clamp_max.Tensor", a, b)
    out.add("clamp.Tensor", a, b, b, message="not implemented for")
    for alpha in (False, True):
        out.add("index_add", a, 0, torch.tensor([0, 1]), torch.tensor([True, True]), alpha)


def layouts_of_nothing(out, s):
    """empty_like keeps the strides of empty tensors."""
    out.add("gather", torch.arange(5.0), 0, torch.zeros(2, 0, dtype=torch.uint8), False)
    out.add("scatter.src", torch.arange(5.0), 0, torch.zeros(0, dtype=torch.uint8), torch.zeros(3))
    out.add("view_copy", torch.arange(25.0).view(5, 5).expand(3, 5, 5), [15, 5])
    out.add("where.self", (torch.arange(25).view(5, 5) % 3 > 0).t().expand(2, 5, 5),
            torch.arange(50.0).view(5, 5, 2).permute(2, 1, 0), torch.tensor(7.0))
    out.add("log_sigmoid_forward", torch.randn(3, 4, generator=s.g).double().t(), tolerance=1e-10)
    out.add("frexp.Tensor", torch.zeros(2, 0, 6)[::2, :, ::2])
    out.add("frexp.Tensor", torch.randn(3, 8, generator=s.g)[:, ::2])


def infinities(out, s):
    """Running means that become NaN after an infinity, and distances that subtract infinities."""
    for dtype in FLOATS + HALVES + [torch.complex64]:
        rows = torch.tensor([[1, INF, 2], [1, 2, INF], [-INF, 1, 2], [INF, -INF, 1], [1, 2, 4]], dtype=dtype)
        for name in ("var_mean.correction", "std_mean.correction"):
            out.add(name, rows, [1], 1, False, tolerance=1e-2 if dtype in HALVES else 1e-6)
    a, b = torch.tensor([[1.0, INF], [2.0, 3.0], [-INF, 0.0]]), torch.tensor([[1.0, 2.0], [-1.0, -2.0], [INF, 1.0]])
    out.add("_euclidean_dist", a, b, tolerance=1e-5)
    x, w, b2 = torch.randn(4, 3, 5, generator=s.g), torch.tensor([1.0, INF, -2.0]), torch.tensor([0.5, 1.0, -INF])
    for dtype in [torch.float32, torch.float16]:
        values = [t.to(dtype) for t in (x, w, b2)]
        out.add("_native_batch_norm_legit.no_stats", *values, True, 0.1, 1e-5, tolerance=2e-3)
        out.add("native_batch_norm", *values, torch.zeros(3, dtype=dtype), torch.ones(3, dtype=dtype), False, 0.1, 1e-5,
                tolerance=2e-3)
    out.add("_euclidean_dist", b.double(), b.double() * 2, tolerance=1e-10)


def steps_in_half(out, s):
    """Operators that ATen composes of several others, each of which rounds."""
    for dtype in HALVES:
        x, y = torch.tensor([12, -12, 1.5, 3, 0.25], dtype=dtype), torch.tensor([-1, 1, 1, -1, 1], dtype=dtype)
        for reduction in (0, 1, 2):
            grad = out.add("soft_margin_loss", x, y, reduction, tolerance=1e-6)
            out.add("soft_margin_loss_backward", torch.ones_like(grad), x, y, reduction, tolerance=1e-6)
    for n in (2, 3, 4):
        out.add("polygamma", n, torch.tensor([0, 3, 22, 0], dtype=torch.uint8), tolerance=1e-5)
        out.add("polygamma", n, torch.tensor([0.0, -1.0, -2.0, 1.5, -INF, INF]), tolerance=1e-5)
    out.add("polygamma", 1, torch.tensor([0.0, 1.5, -INF, INF]), tolerance=1e-5)
    x = torch.tensor([float("nan"), -1.0, 0.0, 2.0, -INF, INF])
    for is_result in (False, True):
        out.add("elu_backward", torch.full((6,), 0.5), 1.5, 1.0, 2.0, is_result, x, tolerance=1e-6)


def complex_logsumexp(out, s):
    """Subtracts the largest real part, unless it is infinite."""
    nan = float("nan")
    odd = [[1 + 2j, 3 - 1j], [1000 + 1j, 1000 - 2j], [complex(INF, 1), 1], [complex(INF, 1), complex(INF, 2)],
           [complex(-INF, 1), complex(-INF, 3)], [complex(nan, 0), 1], [complex(1, nan), 2], [complex(1, INF), 2],
           [complex(-INF, INF), 3], [3j, -3j], [1 + 400j, 2]]
    for dtype, tolerance in ((torch.complex64, 2e-6), (torch.complex128, 1e-13)):
        t = {"tolerance": tolerance}
        out.add("logsumexp", torch.tensor(odd, dtype=dtype), [1], False, **t)
        x = s.sample(dtype, [2, 3, 4], low=-3, high=3)
        for dims, keep in (([1], True), ([0, -1], False), ([2, 0], True), ([], True)):
            out.add("logsumexp", x, dims, keep, **t)
        out.add("logsumexp", torch.tensor(1 - 2j, dtype=dtype), [0], False, **t)
        out.add("logsumexp", torch.zeros(2, 0, dtype=dtype), [1], False)
        out.add("logsumexp", torch.zeros(2, 0, dtype=dtype), [0], True)
        out.add("logsumexp", x, [3], False, message="Dimension out of range")
    out.add("logsumexp", torch.zeros(2, dtype=torch.complex32), [0], False, message="not implemented for")


def infinite_neighbours(out, s):
    """An infinite neighbour counts even with weight 0 or used twice; resizes that keep a size."""
    for dtype in FLOATS + HALVES:
        x = torch.zeros(1, 2, 2, 3, dtype=dtype)
        x[0, 0, 1, 0], x[0, 1, 0, 2] = INF, -INF
        for size in ([2, 5], [4, 3], [2, 3], [3, 5], [1, 2]):
            for align in (False, True):
                out.add("upsample_bilinear2d", x, size, align, None, None)
                out.add("upsample_bicubic2d", x, size, align, None, None)
        for size in ([5], [3], [2]):
            out.add("upsample_linear1d", x[:, 0], size, False, None)
            out.add("upsample_linear1d", x[:, 1], size, True, None)
        out.add("upsample_trilinear3d", x[None], [2, 2, 5], False, None, None, None)
    x = s.values(torch.float32, [1, 1, 4, 6])
    for dtype in FLOATS + [torch.uint8]:
        y = x.to(dtype) if dtype.is_floating_point else torch.arange(24).reshape(1, 1, 4, 6).to(dtype)
        for size, scale in (([4, 6], 0.5), ([4, 7], 0.5), ([3, 6], 2.0)):
            out.add("upsample_bilinear2d", y, size, False, scale, scale, tolerance=1e-5)
            out.add("upsample_bicubic2d", y, size, False, scale, scale, tolerance=1e-5)
    x[0, 0, 2, 3] = INF
    for dtype in FLOATS + [torch.uint8]:
        y = x.to(dtype) if dtype.is_floating_point else torch.arange(24).reshape(1, 1, 4, 6).to(dtype)
        for size, h, w in (([4, 6], 1.0, 0.7), ([4, 3], 0.5, None), ([3, 6], None, 0.7), ([8, 6], None, None)):
            out.add("_upsample_bilinear2d_aa", y, size, False, h, w, tolerance=1e-6)
            out.add("_upsample_bicubic2d_aa", y, size, False, h, w, tolerance=1e-5)


def incomplete_gamma(out, s):
    """NaN beside a value that alone decides the result; rows of every kind."""
    odd = [float("nan"), 0.0, -0.0, 1.0, INF, -INF, -1.0, 1e-3, 1e-30, 40.0, 1e4]
    for dtype in FLOATS + HALVES:
        # ATen computes halves in single precision, where its own error reaches 1e-5.
        t = {"tolerance": {torch.float64: 1e-12, torch.float32: 3e-5}.get(dtype, 4e-3)}
        ends = torch.tensor(odd[:7], dtype=dtype)
        for name in ("igamma", "igammac"):
            out.add(name, ends[:, None], ends[None], **t)
            if dtype == torch.float64:
                continue
            out.add(name, torch.linspace(0.05, 33, 23).to(dtype)[:, None], torch.linspace(0.02, 60, 29).to(dtype)[None],
                    **t)
            out.add(name, torch.tensor(odd[7:], dtype=dtype)[:, None], torch.linspace(0.25, 50, 19).to(dtype)[None], **t)


def gamma_slopes(out, s):
    """Arguments above and below 0 and at poles, in half types too."""
    x = torch.cat([torch.tensor([0.0, -0.0, -1.0, INF, -INF, float("nan"), 1e-20, 1e20, 1.4616]),
                   torch.linspace(-5.3, 30, 61)])
    for dtype, tolerance in ((torch.float32, 2e-5), (torch.float16, 4e-3), (torch.bfloat16, 3e-2)):
        out.add("digamma", x.to(dtype), tolerance=tolerance)
        for n in (1, 2, 5):
            out.add("polygamma", n, x[9 + 14:].to(dtype), tolerance=tolerance)


def rows_of_every_kind(out, s):
    """Operators with special code for packed rows: extremes, halves, layouts that are not packed."""
    for dtype, tolerance in ((torch.float32, 2e-6), (torch.float64, 1e-12), (torch.float16, 2e-3), (torch.bfloat16, 1e-2)):
        t = {"tolerance": tolerance}
        wide = dtype in FLOATS
        x = s.values(dtype, [4, 35], low=-30, high=30)
        x[1, :5] = -INF
        x[2, 7] = INF
        x[3, 9] = float("nan")
        y = x[:1].expand(4, 35)
        for name in ("_softmax", "_log_softmax"):
            for a in (x, y, x.t().contiguous().t()):
                out.add(name, a, 1, False, **t)
        flat = torch.full([2, 40], -INF).to(dtype)
        flat[0, 3] = 100
        result = out.add("_log_softmax", flat, -1, False, **t)
        grad = s.values(dtype, [2, 40])
        out.add("_log_softmax_backward_data", grad, result, 1, out_dtype(dtype), **t)
        out.add("_softmax_backward_data", grad, result.exp(), 1, out_dtype(dtype), **t)
        if wide:
            out.add("logsumexp", x, [1], False, **t)
            out.add("logsumexp", flat, [1], True, **t)
        z = s.values(dtype, [3, 6, 5])
        for dim, shape in ((1, [3, 3, 5]), (-2, [3, 3, 5])):
            out.add("glu_backward", s.values(dtype, shape), z, dim, **t)
        out.add("glu_backward", s.values(dtype, [3, 5, 3]).transpose(1, 2), z, 1, **t)
        out.add("glu_backward", s.values(dtype, [3, 4, 5]), s.values(dtype, [3, 4, 10]), -1, **t)
        a, b = s.values(dtype, [4, 3, 2]), s.values(dtype, [4, 3, 2])
        out.add("linalg_cross", a, b, 1, **t)
        out.add("linalg_cross", a.transpose(1, 2), b.transpose(1, 2), -1, **t)
        out.add("linalg_cross", a[:1], b, 1, **t)
        out.add("linalg_cross", a[:0], b[:0], 1, **t)
        rows = torch.ones(6, 33, dtype=torch.float64)
        rows *= torch.tensor([1, 1e30, 1e-30, 1e-19, 1e19, 0]).double()[:, None]
        rows[0, 5] = 1e-3
        if wide:
            for order in (2.0, 1.0, INF):
                out.add("linalg_vector_norm", rows.to(dtype), order, [1], False, None, **t)
            bad = torch.ones(3, 33, dtype=dtype)
            bad[0, 32], bad[1, 4], bad[2, 32] = INF, float("nan"), -INF
            out.add("linalg_vector_norm", bad, 2.0, [1], True, None, **t)


def out_dtype(dtype):
    return {torch.float32: 6, torch.float64: 7, torch.float16: 5, torch.bfloat16: 15}[dtype]


def main():
    torch.set_num_threads(1)
    out, s = Atens("opinfo.cases"), Samples(21)
    for part in (wide_integers, layouts_of_nothing, infinities, steps_in_half, complex_logsumexp, infinite_neighbours,
                 incomplete_gamma, rows_of_every_kind, gamma_slopes):
        part(out, s)
    out.out.close()


main()
