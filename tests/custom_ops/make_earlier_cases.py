"""Writes tests/data/earlier.cases: PyTorch's results for the operators of src/custom_ops/aten/earlier.cpp.

    .venv/bin/python tests/custom_ops/make_earlier_cases.py      # torch 2.15
"""
import warnings

import torch

from aten_cases import FLOATS, HALVES, SMALL, TIGHT, Atens, F, Samples, check_covered

warnings.filterwarnings("ignore")


def products(out, s):
    for dtype in [torch.float32] + HALVES:
        t = {"tolerance": SMALL.get(dtype, 1e-5) * 8}
        x, table = s.values(dtype, [3, 64], -1, 1), s.values(dtype, [2, 16, 2], -1, 1)
        weight = torch.randint(0, 16, (16, 64), generator=s.g, dtype=torch.int32)
        out.add("_weight_int4pack_mm_for_cpu", x, torch.ops.aten._convert_weight_to_int4pack_for_cpu(weight, 1), 32,
                table, **t)
    weight = torch.randint(0, 255, (16, 32), generator=s.g).to(torch.uint8)
    for bias in (None, s.values(torch.float32, [16])):
        table = s.values(torch.float32, [16, 2], -1, 1)
        packed = out.add("_dyn_quant_pack_4bit_weight", weight, table, bias, 32, 64, 16)
        out.add("_dyn_quant_matmul_4bit", s.values(torch.float32, [5, 64], -1, 1), packed, 32, 64, 16, tolerance=1e-4)
    a, b = (s.values(torch.float32, shape, -1, 1).to(torch.float8_e4m3fn) for shape in ([16, 32], [48, 32]))
    for bias in (None, s.values(torch.float32, [48], -1, 1)):
        for dtype in (6, 15):
            given = bias.to(torch.bfloat16) if bias is not None and dtype == 15 else bias
            out.add("_scaled_mm", a, b.t(), torch.tensor(0.5), torch.tensor(0.25), given, None, dtype, False,
                    tolerance=1e-4 if dtype == 6 else 2e-2)
    for dtype in (torch.float32, torch.bfloat16):
        a, b = s.values(dtype, [8, 16], -1, 1), s.values(dtype, [2, 8, 16], -1, 1).transpose(1, 2)
        out.add("_grouped_mm", a, b, torch.tensor([3, 8], dtype=torch.int32), None, None,
                tolerance=1e-5 if dtype == torch.float32 else 2e-2)
    out.add("_grouped_mm", a, b, None, None, None, message="Have to provide offsets")


def layers(out, s):
    for dtype in FLOATS + HALVES:
        t = {"tolerance": TIGHT[dtype] * 20}
        for weight in (None, s.values(dtype, [6])):
            for eps in (None, 1e-3):
                out.add("_fused_rms_norm", s.values(dtype, [2, 3, 6], -2, 2), [6], weight, eps, **t)
    for dtype in FLOATS:
        t = {"tolerance": 1e-4 if dtype == torch.float32 else 1e-10}
        image, grid = s.values(dtype, [2, 2, 3, 3, 4], -2, 2), s.values(dtype, [2, 2, 2, 2, 3], -1, 1)
        for mode in (0, 1):
            for padding in (0, 1, 2):
                for corners in (False, True):
                    y = out.add("grid_sampler_3d", image, grid, mode, padding, corners, **t)
                    out.add("grid_sampler_3d_backward", torch.ones_like(y), image, grid, mode, padding, corners,
                            [True, True], **t)


def others(out, s):
    for length in (0, 1, 2, 5, 16, 400):
        for dtype in (None, 7, 5, 15):
            t = {"tolerance": 1e-6 if dtype in (None, 7) else 2e-3 if dtype == 5 else 2e-2}
            out.add("hann_window", length, dtype, *F[1:], **t)
            for periodic in (True, False):
                out.add("hann_window.periodic", length, periodic, dtype, *F[1:], **t)
    out.add("hann_window.periodic", -1, False, *F, message="non-negative window_length")
    for x in (torch.tensor([[0, 1, 2], [3, 0, 0]]), torch.zeros(4), torch.tensor(1.5)):
        for size in (0, 2, 5):
            for fill in (-1, 7):
                out.add("nonzero_static", x, size, fill)
    like = torch.zeros(4, 5).t()
    for dtype in (None, 7, 15, 3):
        for name, *numbers in (("rand_like",), ("randn_like",), ("randint_like", 40),
                               ("randint_like.low_dtype", -3, 40)):
            if dtype != 3 or numbers:
                torch.manual_seed(1234)  # as the test does before each call
                out.add(name, like, *numbers, dtype, None, None, None, None)
    # The operator is no longer in PyTorch, so results come from its successor.
    for dtype in FLOATS + [torch.complex64]:
        x = s.values(dtype, [2, 4, 4], -1, 1)
        x = x @ x.mH + 3 * torch.eye(4, dtype=dtype)
        for a in (x, x[0]):
            for upper in (False, True):
                out.define("cholesky", lambda a, u: (torch.linalg.cholesky(a, upper=u),), a, upper,
                           tolerance=TIGHT[dtype])
    out.define("cholesky", lambda a, u: (torch.linalg.cholesky(a, upper=u),), torch.zeros(0, 0), False)


def main():
    torch.set_num_threads(1)
    out = Atens("earlier.cases")
    s = Samples(16)
    for part in (products, layers, others):
        part(out, s)
    out.out.close()
    check_covered("earlier")


main()
