"""Writes tests/data/sampling.cases: python tests/cpu/make_sampling_cases.py [seed [file]]

Tricubic sampling, coordinates that are NaN or infinite, and gradients of arguments with any strides.
"""
import pathlib
import sys

import torch
from case_writer import CaseWriter, Samples

aten = torch.ops.aten
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
TOLERANCE = {torch.float32: 4e-5, torch.float64: 1e-12, torch.float16: 1e-2, torch.bfloat16: 6e-2}
# NaN, infinite and huge coordinates, and those at the edges.
SPECIAL = [float("nan"), float("inf"), float("-inf"), 1e20, -1e20, 1e6, -1e6, -1.0, 1.0, 0.0]


def last_of(t):
    return t.contiguous(memory_format=torch.channels_last if t.dim() == 4 else torch.channels_last_3d)


def grids(s, out):
    def case(dims, dtype, mode, padding, align, special):
        x = s.strided(s.values(dtype, [1 + s.below(2), 1 + s.below(3)] + [1 + s.below(5) for _ in range(dims)]))
        sizes = [x.shape[0]] + [1 + s.below(3) for _ in range(dims)] + [dims]
        grid = torch.rand(sizes, dtype=torch.float64, generator=s.g) * 3 - 1.5
        odd = torch.tensor(SPECIAL, dtype=torch.float64)[torch.randint(len(SPECIAL), sizes, generator=s.g)]
        grid = s.strided(torch.where(torch.rand(sizes, generator=s.g) < special, odd, grid).to(dtype))
        op, gradient = getattr(aten, f"grid_sampler_{dims}d"), getattr(aten, f"grid_sampler_{dims}d_backward")
        out.add(f"grid_sampler_{dims}d", op, x, grid, mode, padding, align, tolerance=TOLERANCE[dtype])
        if dims == 2 and mode == 0 and padding > 0 and special:
            return  # PyTorch would crash
        g = s.strided(s.values(dtype, list(x.shape[:2]) + sizes[1:-1]))
        out.add(f"grid_sampler_{dims}d_backward", gradient, g, x, grid, mode, padding, align,
                [True, bool(s.below(4))], tolerance=TOLERANCE[dtype] * 10)

    for padding in range(3):
        for align in (False, True):
            for dtype in FLOATS:
                case(3, dtype, 2, padding, align, 0.0)
            for dims in (2, 3):
                for mode in range(3):
                    case(dims, FLOATS[s.below(2)], mode, padding, align, 0.15)


def fractional(s, out):
    for dims in (2, 3):
        forward = getattr(aten, f"fractional_max_pool{dims}d")
        gradient = getattr(aten, f"fractional_max_pool{dims}d_backward")
        kernel, pooled = [2, 1, 2][:dims], [3, 2, 4][:dims]
        for dtype in FLOATS:
            for batched in (False, True):
                x = s.values(dtype, [2, 3][1 - batched:] + [6, 5, 7][:dims])
                y, indices = forward(x, kernel, pooled, torch.rand(2 if batched else 1, 3, dims, generator=s.g).to(dtype))
                turned = indices.movedim(0, -1).contiguous().movedim(-1, 0)
                # PyTorch's kernel ignores the strides of indices and reads memory in order. So all memory of a sliced tensor,
                # gaps included, holds valid indices.
                wide = torch.zeros(*indices.shape[:-1], indices.shape[-1] * 2 + 1, dtype=torch.int64)
                wide[..., 1::2] = indices
                wide[..., ::2] = 3
                for at in (indices, turned, wide[..., 1::2]):
                    out.add(f"fractional_max_pool{dims}d_backward", gradient,
                            s.strided(s.values(dtype, y.shape)), s.strided(x), kernel, pooled, at,
                            tolerance=TOLERANCE[dtype])


def formats(s, out):
    """Results must be row-major or channels-last where PyTorch's are, because generated code relies on it."""
    for dtype in FLOATS:
        for channels in (2, 8):
            g = last_of(s.values(dtype, [2, channels, 4, 5, 6]))
            for name in ("upsample_nearest3d_backward", "_upsample_nearest_exact3d_backward"):
                op = getattr(aten, name)
                out.add(name, op, g, [4, 5, 6], [2, channels, 2, 3, 3], None, None, None, tolerance=TOLERANCE[dtype])
    for dtype in FLOATS[:2]:
        for name in ("_upsample_bilinear2d_aa_backward", "_upsample_bicubic2d_aa_backward"):
            op = getattr(aten, name)
            out.add(name, op, last_of(s.values(dtype, [2, 3, 4, 5])), [4, 5], [2, 3, 7, 9], False,
                    None, None, tolerance=TOLERANCE[dtype])


def main(seed=1, path=pathlib.Path(__file__).parents[1] / "data" / "sampling.cases"):
    s = Samples(seed)
    out = CaseWriter(path)
    grids(s, out)
    fractional(s, out)
    formats(s, out)
    out.close()


if __name__ == "__main__":
    main(*[int(a) if a.isdigit() else a for a in sys.argv[1:]])
