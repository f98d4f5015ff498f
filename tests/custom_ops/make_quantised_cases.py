"""Writes tests/data/by_name_quantised.cases: operators of quantised models that are called by name.

    .venv/bin/python tests/custom_ops/make_quantised_cases.py      # torch 2.15
"""
import re

import torch
from torch.ao.quantization.fx import _decomposed as exported

from aten_cases import HALVES, HERE, NUMBERS, Atens, Samples

INT8, UINT8, INT16 = NUMBERS[torch.int8], NUMBERS[torch.uint8], NUMBERS[torch.int16]
FLOAT, BFLOAT = NUMBERS[torch.float32], 15
RANGES = {INT8: (-128, 127), UINT8: (0, 255), INT16: (-1000, 1000)}
D = "quantized_decomposed::"
DTYPE = {INT8: torch.int8, UINT8: torch.uint8, INT16: torch.int16}


def per_tensor(out, s):
    for dtype, (least, most) in RANGES.items():
        for kind in [torch.float32, *HALVES]:
            x = s.sample(kind, [3, 5]) * 3
            scale, zero = torch.tensor([0.037], dtype=torch.float64), torch.tensor([3])
            q = out.add(D + "quantize_per_tensor", x, 0.037, 3, least, most, dtype)
            out.add(D + "quantize_per_tensor.tensor", x, scale, zero, least, most, dtype)
            limits = torch.tensor(least), torch.tensor(most)
            out.add(D + "quantize_per_tensor.tensor2", x, scale.float(), zero, *limits, dtype)
            for to in (None, FLOAT, BFLOAT):
                out.add(D + "dequantize_per_tensor", q, 0.037, 3, least, most, dtype, to)
                out.add(D + "dequantize_per_tensor.tensor", q, scale, zero, least, most, dtype, to)
                out.add(D + "dequantize_per_tensor.tensor2", q, scale, zero, *limits, dtype, to)
            out.add(D + "choose_qparams.tensor", x, least, most, 1e-5, dtype)
            out.add(D + "choose_qparams_symmetric.tensor", x, least, most, 1e-5, dtype)
            out.add(D + "choose_qparams.tensor", x * 0, least, most, 1e-5, dtype)
    x = s.sample(torch.float32, [4])
    out.add(D + "quantize_per_tensor", x.double(), 1.0, 0, 0, 255, UINT8, message="Expecting input to have dtype")
    out.add(D + "quantize_per_tensor", x, 1.0, 0, -1, 255, UINT8, message="quant_min out of bounds for dtype")
    out.add(D + "quantize_per_tensor", x, 1.0, 0, 0, 256, UINT8, message="quant_max out of bounds for dtype")
    out.add(D + "dequantize_per_tensor", x, 1.0, 0, 0, 255, UINT8, None, message="Expecting input to have dtype")
    out.add(D + "choose_qparams.tensor", x, 3, 255, 1e-5, UINT8, message="must include 0")


def per_channel(out, s):
    for dtype, (least, most) in RANGES.items():
        for axis in (0, 1, 2):
            x = s.sample(torch.float32, [3, 2, 4]) * 3
            n = x.shape[axis]
            scales, zeros = torch.rand(n, generator=s.g) + 0.02, torch.randint(0, 5, (n,), generator=s.g)
            for kind in (torch.float32, torch.float64):
                q = out.add(D + "quantize_per_channel", x, scales.to(kind), zeros, axis, least, most, dtype)
                for z in (zeros, None):
                    out.add(D + "dequantize_per_channel", q, scales.to(kind), z, axis, least, most, dtype, None)
            out.add(D + "dequantize_per_channel", q, scales, zeros, axis, least, most, dtype, BFLOAT)
        x = s.sample(torch.float32, [3, 8], layouts=("packed",)) * 3
        for size, groups in ((4, 2), (2, 4), (16, 1)):
            scales, zeros = torch.rand(3, groups, generator=s.g) + 0.02, torch.randint(0, 5, (3, groups), generator=s.g)
            q = out.add(D + "quantize_per_channel_group", x, scales, zeros, least, most, dtype, size)
            for z in (zeros, None):
                out.add(D + "dequantize_per_channel_group", q, scales, z, least, most, dtype, size, FLOAT)
        out.add(D + "quantize_per_channel_group", x, scales, zeros, least, most, dtype, 3, message="divisible by group_size")


def per_token(out, s):
    def chosen(x, dtype):  # dtypes as declared to the compiler
        scales, zeros = exported.choose_qparams_per_token(x, torch.int8)
        return scales.double(), zeros.long()

    for kind in [torch.float32, *HALVES]:
        x = s.sample(kind, [2, 3, 5], layouts=("packed", "permuted")) * 3
        tolerance = 1e-6 if kind == torch.float32 else 1e-3
        out.covered.add(D + "choose_qparams_per_token")
        out.out.add(D + "choose_qparams_per_token", chosen, x, INT8, tolerance=tolerance)
        for name in ("choose_qparams_per_token_asymmetric", "_choose_qparams_per_token_asymmetric_impl"):
            scales, zeros = out.add(D + name, x, INT8)
        for dtype, (least, most) in RANGES.items():
            q = out.add(D + "quantize_per_token", x.float(), scales, zeros, least, most, dtype)
            out.add(D + "dequantize_per_token", q, scales, zeros, least, most, dtype, FLOAT)


def embeddings(out, s):
    name = "quantized::embedding_bag_byte_rowwise_offsets"
    for kind in (torch.float32, torch.float16):
        out.add("quantized::embedding_bag_byte_prepack", s.sample(kind, [6, 5], layouts=("packed",)))
    w = torch.ops.quantized.embedding_bag_byte_prepack(torch.randn(7, 12, generator=s.g))
    out.add("quantized::embedding_bag_byte_unpack", w, tolerance=1e-6)
    for kind in (torch.int64, torch.int32):
        i, o = torch.tensor([3, 0, 6, 6, 1], dtype=kind), torch.tensor([0, 2, 2, 5], dtype=kind)
        factors = torch.rand(5, generator=s.g)
        for p in (None, factors):
            out.add(name, w, i, o[:3], False, 0, False, p, None, False, tolerance=1e-6)
            out.add(name, w, i, o, False, 0, False, p, None, True, tolerance=1e-6)
        out.add(name, w, torch.tensor([[0, 1], [5, 5], [2, 6]], dtype=kind), None, False, 0, False, None, None, False,
                tolerance=1e-6)
        mapping = torch.tensor([2, -1, 0, 1, -1, 3, 6, 5], dtype=torch.int32)
        out.add(name, w, i, o[:3], False, 0, True, None, mapping, False, tolerance=1e-6)
    out.add(name, w, i, None, False, 0, False, None, None, False, message="expects offsets to be set for 1D indices")


def pooling(out, s):
    name = "quantized::max_pool2d"
    for channels in (1, 3, 20):
        x = torch.randint(0, 256, (2, channels, 7, 8), generator=s.g).to(torch.uint8)
        x = x.contiguous(memory_format=torch.channels_last)
        for window in (([2, 2], [2, 2], [0, 0], [1, 1], False), ([3, 3], [2, 2], [1, 1], [1, 1], True),
                       ([2, 3], [1, 2], [1, 1], [2, 1], False)):
            out.add(name, x, *window)
    out.add(name, x.float(), *window, message="")


def main():
    torch.set_num_threads(1)
    out, s = Atens("by_name_quantised.cases"), Samples(31)
    for part in (per_tensor, per_channel, per_token, embeddings, pooling):
        part(out, s)
    out.out.close()
    source = (HERE.parents[1] / "src/custom_ops/aten/quantised_rows.cpp").read_text()
    rows = set(re.findall(r'\{"(quantized\w*::[\w.]+)\(', source))
    assert rows <= Atens.covered, sorted(rows - Atens.covered)


main()
