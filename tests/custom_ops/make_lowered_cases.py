"""Writes tests/data/lowered.cases: PyTorch's results for the operators of src/custom_ops/aten/lowered.cpp.

    .venv/bin/python tests/custom_ops/make_lowered_cases.py      # torch 2.15
"""
import torch
import torch._inductor.inductor_prims  # registers them

from aten_cases import Atens, Samples, check_covered


def products(out, s):
    a, b = (torch.randint(-128, 128, shape, generator=s.g).to(torch.int8) for shape in ([20, 16], [24, 16]))
    out.add("_int_mm", a, b.t())
    out.add("_int_mm", a[:, :8], b[:8, :8].t())
    out.add("_int_mm", a, b, message="16")


def layers(out, s):
    for reverse in (False, True):
        x, h, c = (s.values(torch.float32, shape, -1, 1) for shape in ([3, 2, 5], [1, 2, 6], [1, 2, 6]))
        w = [s.values(torch.float32, shape, -1, 1) for shape in ([24, 5], [24, 6], [24], [24])]
        # Leaves out the workspace, which only training reads.
        out.define("mkldnn_rnn_layer", lambda *values: torch.ops.aten.mkldnn_rnn_layer(*values)[:3], x, *w, h, c,
                   reverse, [], 2, 6, 1, True, False, False, False, tolerance=1e-5)


def pooling(out, s):
    for shape, kernel, stride, padding, dilation in (([2, 3, 6, 5], [2, 2], [2, 2], [0, 0], [1, 1]),
                                                     ([2, 3, 9, 8], [3, 2], [2, 1], [1, 1], [1, 2]),
                                                     ([1, 2, 5, 6, 4], [3, 2, 2], [1, 2, 2], [1, 0, 1], [2, 1, 1])):
        for dtype in (torch.float32, torch.bfloat16):
            for ceil in (False, True):
                for format in (torch.contiguous_format,
                               torch.channels_last if len(kernel) == 2 else torch.channels_last_3d):
                    x = s.values(dtype, shape, -2, 2).contiguous(memory_format=format)
                    name = "prims::_low_memory_max_pool_"
                    _, offsets = out.add(name + "with_offsets", x, kernel, stride, padding, dilation, ceil)
                    out.add(name + "offsets_to_indices", offsets, kernel, shape[2:], stride, padding, dilation)


def ranges(out):
    for length, start, step in ((5, 0, 1), (4, -3, 2), (3, 9, -3), (0, 2, 1)):
        for dtype in (4, 3, 1):
            out.add("prims::iota", length, start, step, dtype, "cpu", False)


def main():
    torch.set_num_threads(1)
    out, s = Atens("lowered.cases"), Samples(18)
    products(out, s)
    layers(out, s)
    pooling(out, s)
    ranges(out)
    out.out.close()
    check_covered("lowered")


main()
