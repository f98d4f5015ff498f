"""Writes tests/data/pooling.cases: python tests/cpu/make_pooling_cases.py [seed [cases [file]]]"""
import pathlib
import sys

import torch
from case_writer import RAISED, CaseWriter, Samples

aten = torch.ops.aten
FLOATS = [torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-14, torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.int64: 0.0}


def attempt(out, op, function, *args, **more):
    try:
        function(*args)
    except RAISED as e:
        if "numeric_limits<integer" not in str(e):  # PyTorch's channels-last kernels refuse small integers
            out.add(op, function, *args, message="")
    else:
        out.add(op, function, *args, **more)


def main(seed=1, count=12, path=pathlib.Path(__file__).parents[1] / "data" / "pooling.cases"):
    s = Samples(seed)
    out = CaseWriter(path)

    def image(dims, dtype, special=0.1, large=True):
        """[N, C, sizes], sometimes without N, in any layout. Few channels or many, rows shorter and longer than a vector."""
        rank = dims + 1 + (s.below(4) > 0)
        sizes = [1 + s.below(s.pick([3, 9, 22]) if large and dims == 2 else s.pick([3, 9])) for _ in range(dims)]
        volume = torch.Size(sizes).numel()
        channels = s.pick([1, 2, 3, 8, 13, 37] if volume < 60 else [1, 2, 9] if volume < 150 else [1, 2])
        t = s.values(dtype, [s.below(2) + (s.below(9) > 0), channels][2 + dims - rank:] + sizes, special=special)
        layout = s.below(5)
        last = torch.channels_last if dims == 2 else torch.channels_last_3d
        if layout == 0 and rank == dims + 2:
            return t.contiguous(memory_format=last)
        if layout == 1 and rank == dims + 1:
            return t[None].contiguous(memory_format=last)[0]
        if layout == 2:
            return s.strided(t)
        if layout == 3 and rank == dims + 2:  # channels-last with gaps
            wide = torch.zeros(*t.shape[:-1], t.shape[-1] + 2, dtype=dtype).contiguous(memory_format=last)
            wide[..., 1:-1] = t
            return wide[..., 1:-1]
        return t

    def settings(dims, dilated):
        kernel = [1 + s.below(s.pick([3, 6, 12])) for _ in range(dims)]
        stride = s.pick([[], [1 + s.below(3) for _ in range(dims)], [2], [1]])
        padding = s.pick([[0], [s.below(k // 2 + 1) for k in kernel]])
        dilation = s.pick([[1], [1 + s.below(3) for _ in range(dims)]]) if dilated else [1]
        return (kernel if s.below(3) else kernel[:1]), stride, padding, dilation

    for i in range(count * 3):
        dims = 2 + (i % 3 == 0)
        kernel, stride, padding, dilation = settings(dims, True)
        op = (aten.max_pool2d_with_indices, aten.max_pool3d_with_indices)[dims - 2]
        dtype = s.pick(FLOATS + INTEGERS[:3 if dims == 3 else 5])
        attempt(out, f"max_pool{dims}d_with_indices", op, image(dims, dtype), kernel, stride, padding,
                dilation, bool(s.below(2)))
        kernel, stride, padding, _ = settings(dims, False)
        op = (aten.avg_pool2d, aten.avg_pool3d)[dims - 2]
        dtype = s.pick((FLOATS if dims == 2 else [torch.float32, torch.float64]) + [torch.int64])
        attempt(out, f"avg_pool{dims}d", op, image(dims, dtype, special=0.02), kernel, stride, padding,
                bool(s.below(2)), bool(s.below(2)), s.pick([None, None, 3, -2]), tolerance=TOLERANCE[dtype])
        size = [s.below(s.pick([2, 5, 20])) + (s.below(9) > 0) for _ in range(dims)]
        op = (aten._adaptive_avg_pool2d, aten._adaptive_avg_pool3d)[dims - 2]
        dtype = s.pick(FLOATS)
        attempt(out, f"_adaptive_avg_pool{dims}d", op, image(dims, dtype, special=0.02), size,
                tolerance=TOLERANCE[dtype])
        op = (aten.adaptive_max_pool2d, aten.adaptive_max_pool3d)[dims - 2]
        attempt(out, f"adaptive_max_pool{dims}d", op, image(dims, s.pick(FLOATS)), size)
    # Ties, NaNs and minus infinity everywhere.
    for layout in (torch.contiguous_format, torch.channels_last):
        for fill in (float("-inf"), float("nan"), 0.0):
            t = torch.full((1, 9, 5, 19), fill).contiguous(memory_format=layout)
            out.add("max_pool2d_with_indices", aten.max_pool2d_with_indices, t, [3, 3], [2, 2], [1, 1], [1, 1], False)
            out.add("max_pool2d_with_indices", aten.max_pool2d_with_indices, t, [5, 17], [1, 1], [0, 0], [1, 1], False)
            out.add("adaptive_max_pool2d", aten.adaptive_max_pool2d, t, [1, 1])
        out.add("_adaptive_avg_pool2d", aten._adaptive_avg_pool2d,
                s.values(torch.float32, [1, 9, 7, 7]).contiguous(memory_format=layout), [1, 1], tolerance=2e-6)
    x = torch.zeros(1, 2, 5, 5)
    for args, message in ((([3, 3, 3], [], [0], [1], False), "must"), (([3], [], [2], [1], False), "pad should be"),
                          (([0], [1], [0], [1], False), "kernel size should be greater than zero"),
                          (([2], [], [-1], [1], False), "pad must be non-negative"),
                          (([7], [1], [0], [1], False), "Output size is too small"),
                          (([2], [], [0], [0], False), "dilation should be greater than zero")):
        out.add("max_pool2d_with_indices", aten.max_pool2d_with_indices, x, *args, message=message)
    out.add("max_pool2d_with_indices", aten.max_pool2d_with_indices, x.bool(), [2], [], [0], [1], False,
            message="not implemented for")
    out.add("avg_pool2d", aten.avg_pool2d, x, [2], [], [0], False, True, 0, message="divisor must be not zero")
    out.add("avg_pool2d", aten.avg_pool2d, x.int(), [2], [], [0], False, True, None, message="not implemented for")
    out.add("avg_pool3d", aten.avg_pool3d, x[None].half(), [1], [], [0], False, True, None,
            message="not implemented for")
    out.add("avg_pool3d", aten.avg_pool3d, torch.zeros(1, 2, 2, 3), [3, 1, 1], [], [1, 0, 0], False, True,
            None, message="smaller than")
    out.add("_adaptive_avg_pool2d", aten._adaptive_avg_pool2d, x, [2], message="output_size must")
    out.add("_adaptive_avg_pool2d", aten._adaptive_avg_pool2d, x, [2, -1], message="")
    out.add("adaptive_max_pool2d", aten.adaptive_max_pool2d, torch.zeros(1, 2, 0, 3), [1, 1],
            message="Expected input to have non-zero size for non-batch dimensions")
    out.close()


if __name__ == "__main__":
    main(*[int(a) if a.isdigit() else a for a in sys.argv[1:]])
