"""Writes tests/data/inductor.cases: PyTorch's results for the operators of src/custom_ops/aten/inductor_rows.cpp.

    .venv/bin/python tests/custom_ops/make_inductor_cases.py      # torch 2.15
"""
import torch
import torch._inductor.inductor_prims  # registers them

from aten_cases import Atens, Samples


def main():
    out, s = Atens("inductor.cases"), Samples(17)

    def add(name, *args, **options):
        torch.manual_seed(1234)  # as the test does before each call
        return out.add("prims::inductor_" + name, *args, **options)

    add("seed", "cpu")
    for count in (0, 1, 5):
        seeds = add("seeds", count, "cpu")
    for index in (0, 3, -1):
        one = add("lookup_seed", seeds, index)
    add("lookup_seed", seeds, 5, message="index 5")
    for size in ([], [7], [3, 0], [5, 20]):
        for mode in ("rand", "randn"):
            for dtype in (None, 5):
                add("random", size, one, mode, dtype)
        add("randint", -3, 40, size, one)
    add("randint", 2, 2, [3], one, message="'from'")
    for x in (s.values(torch.float32, [3, 4]), s.values(torch.bfloat16, [4, 3]).t(), torch.arange(12).view(3, 4)):
        for stride in sorted([list(x.stride()), [1, x.shape[0]], [x.shape[1], 1]]):
            add("force_stride_order", x, stride)
    out.out.close()


main()
