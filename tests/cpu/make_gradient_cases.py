"""Writes tests/data/gradients.cases: python tests/cpu/make_gradient_cases.py [seed [cases [file]]]"""
import pathlib
import sys

import torch
from case_writer import CaseWriter, Samples, attempt

aten = torch.ops.aten
FLOATS = [torch.float32, torch.float32, torch.float64]
SMALL = [torch.float16, torch.bfloat16]
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12, torch.float16: 1e-2, torch.bfloat16: 6e-2, torch.int64: 0.0,
             torch.complex64: 2e-5}


class Images:
    def __init__(self, s):
        self.s = s

    def sizes(self, dims, most=8):
        return [1 + self.s.below(most) for _ in range(dims)]

    def layout(self, t, dims):
        """The tensor as it is, as channels-last, or with random strides."""
        s = self.s
        kind = s.below(4)
        if kind == 0 and t.dim() == dims + 2 and dims > 1:
            return t.contiguous(memory_format=torch.channels_last if dims == 2 else torch.channels_last_3d)
        return s.strided(t) if kind == 1 else t.contiguous()

    def of(self, dtype, dims, sizes, batched=True, channels=None, low=-9, high=9):
        s = self.s
        lead = ([1 + s.below(2)] if batched else []) + [channels or 1 + s.below(3)]
        return self.layout(s.values(dtype, lead + sizes, low, high), dims)


def pooling(s, out, count):
    images = Images(s)
    for i in range(count * 2):
        dims = 2 + i % 2
        dtype = s.pick(FLOATS + SMALL)
        batched = s.below(4) > 0
        kernel = [1 + s.below(3) for _ in range(dims)]
        stride = [1 + s.below(3) for _ in range(dims)]
        padding = [s.below(k // 2 + 1) for k in kernel]
        dilation = [1 + s.below(2) for _ in range(dims)]
        ceil = bool(s.below(2))
        sizes = [k * 2 + s.below(4) for k in kernel]
        x = images.of(dtype, dims, sizes, batched)
        forward = (aten.max_pool2d_with_indices, aten.max_pool3d_with_indices)[dims - 2]
        y, indices = forward(x, kernel, stride, padding, dilation, ceil)
        g = images.layout(s.values(dtype, y.shape), dims)
        op = (aten.max_pool2d_with_indices_backward, aten.max_pool3d_with_indices_backward)[dims - 2]
        attempt(out, f"max_pool{dims}d_with_indices_backward", op, g, x, kernel, stride, padding, dilation,
                ceil, indices, tolerance=TOLERANCE[dtype])
        dtype = s.pick(FLOATS + (SMALL if dims == 2 else []) + [torch.int64])
        x = images.of(dtype, dims, sizes, batched)
        include, divisor = bool(s.below(2)), s.pick([None, None, 3])
        y = (aten.avg_pool2d, aten.avg_pool3d)[dims - 2](x, kernel, stride, padding, ceil, include, divisor)
        op = (aten.avg_pool2d_backward, aten.avg_pool3d_backward)[dims - 2]
        attempt(out, f"avg_pool{dims}d_backward", op, images.layout(s.values(dtype, y.shape), dims), x,
                kernel, stride, padding, ceil, include, divisor, tolerance=TOLERANCE[dtype])
        dtype = s.pick(FLOATS + SMALL)
        x = images.of(dtype, dims, sizes, batched)
        pooled = images.sizes(dims, 5)
        op = (aten._adaptive_avg_pool2d_backward, aten._adaptive_avg_pool3d_backward)[dims - 2]
        g = images.layout(s.values(dtype, list(x.shape[:-dims]) + pooled), dims)
        attempt(out, f"_adaptive_avg_pool{dims}d_backward", op, g, x, tolerance=TOLERANCE[dtype])
        y, indices = (aten.adaptive_max_pool2d, aten.adaptive_max_pool3d)[dims - 2](x, pooled)
        op = (aten.adaptive_max_pool2d_backward, aten.adaptive_max_pool3d_backward)[dims - 2]
        attempt(out, f"adaptive_max_pool{dims}d_backward", op, g, x, indices, tolerance=TOLERANCE[dtype])
        # Unpooling. Planes are sometimes too small, which is an error.
        dtype = s.pick(FLOATS + SMALL)
        x = images.of(dtype, dims, [2] * dims, batched)
        plane = [2 + s.below(3) for _ in range(dims)]
        volume = torch.Size(plane).numel()
        lead = x.shape[:-dims].numel()
        places = torch.stack([torch.randperm(max(volume, 2 ** dims))[:2 ** dims] for _ in range(lead)]).reshape(x.shape)
        if dims == 2:
            attempt(out, "max_unpool2d", aten.max_unpool2d, x, places, plane)
        else:
            attempt(out, "max_unpool3d", aten.max_unpool3d, x, places, plane, [1, 1, 1], [0, 0, 0])
        # Fractional.
        dtype = s.pick(FLOATS)
        x = images.of(dtype, dims, [k + 3 + s.below(3) for k in kernel], batched)
        pooled = [1 + s.below(3) for _ in range(dims)]
        samples = torch.rand([x.shape[0] if batched else 1, x.shape[-dims - 1], dims], dtype=dtype)
        op = (aten.fractional_max_pool2d, aten.fractional_max_pool3d)[dims - 2]
        attempt(out, f"fractional_max_pool{dims}d", op, x, kernel, pooled, samples)
        y, indices = op(x, kernel, pooled, samples)
        op = (aten.fractional_max_pool2d_backward, aten.fractional_max_pool3d_backward)[dims - 2]
        attempt(out, f"fractional_max_pool{dims}d_backward", op,
                images.layout(s.values(dtype, y.shape), dims), x, kernel, pooled, indices, tolerance=TOLERANCE[dtype])
    x = torch.zeros(1, 2, 4, 4)
    i = torch.zeros(1, 2, 2, 2, dtype=torch.int64)
    attempt(out, "max_pool2d_with_indices_backward", aten.max_pool2d_with_indices_backward, x, x, [2], [], [0],
            [1], False, i)
    attempt(out, "max_unpool2d", aten.max_unpool2d, i.float(), i + 99, [4, 4])
    attempt(out, "max_unpool2d", aten.max_unpool2d, i.float(), i.int(), [4, 4])
    attempt(out, "max_unpool2d", aten.max_unpool2d, i, i, [4, 4])
    attempt(out, "fractional_max_pool2d", aten.fractional_max_pool2d, x, [3, 3], [4, 4], torch.rand(1, 2, 2))
    attempt(out, "avg_pool2d_backward", aten.avg_pool2d_backward, x.int(), x.int(), [1, 1], [], [0, 0], False,
            True, None)


def resampling(s, out, count):
    images = Images(s)
    for i in range(count * 3):
        dims = 1 + i % 3
        dtype = s.pick(FLOATS + SMALL)
        before, after = images.sizes(dims, 6), images.sizes(dims, 9)
        if s.below(5) == 0:
            after = list(before)
        lead = [1 + s.below(2), 1 + s.below(3)]
        align = bool(s.below(2))
        scales = [s.pick([None, a / b, 1.7]) for a, b in zip(after, before)]
        name = ("upsample_linear1d_backward", "upsample_bicubic2d_backward", "upsample_trilinear3d_backward")[dims - 1]
        op = getattr(aten, name)
        g = images.layout(s.values(dtype, lead + after), dims)
        attempt(out, name, op, g, after, lead + before, align, *scales, tolerance=TOLERANCE[dtype] * 4)
        if dims < 3:
            dtype = s.pick(FLOATS + SMALL + [torch.complex64])
            x = images.of(dtype, dims, [3 + s.below(4) for _ in range(dims)], s.below(3) > 0)
            padding = [s.below(5) - 1 for _ in range(2 * dims)]
            name = f"replication_pad{dims}d_backward"
            op = getattr(aten, name)
            y = torch.nn.functional.pad(x, padding, mode="replicate")
            attempt(out, name, op, images.layout(s.values(dtype, y.shape), dims), x, padding,
                    tolerance=TOLERANCE[dtype])
        # Sampling.
        dims = max(2, dims)
        dtype = s.pick(FLOATS + [torch.float64])
        mode, padding_mode = s.below(3 if dims == 2 else 2), s.below(3)
        x = images.of(dtype, dims, images.sizes(dims, 5))
        # Coordinates stay a tenth away from whole numbers, where one more rounding would select another neighbour.
        grid = s.strided(torch.rand([x.shape[0]] + images.sizes(dims, 4) + [dims], dtype=torch.float64).mul(3).sub(1.5).to(dtype))
        g = images.layout(s.values(dtype, list(x.shape[:2]) + list(grid.shape[1:-1])), dims)
        name = f"grid_sampler_{dims}d_backward"
        op = getattr(aten, name)
        attempt(out, name, op, g, x, grid, mode, padding_mode, align, [True, True], tolerance=TOLERANCE[dtype] * 10)
        if dims == 3:
            attempt(out, "grid_sampler_3d", aten.grid_sampler_3d, x, grid, mode, padding_mode, align,
                    tolerance=TOLERANCE[dtype] * 10)
    x, grid = torch.zeros(1, 1, 3, 3, 3), torch.zeros(1, 2, 2, 2, 3)
    for bad in ((x, grid[..., :2], 0, 0, False), (x, grid.double(), 0, 0, False), (x, grid[0], 0, 0, False),
                (x[:, :, :0], grid, 0, 0, False), (x.int(), grid.int(), 0, 0, False)):
        attempt(out, "grid_sampler_3d", aten.grid_sampler_3d, *bad)
    grid = torch.tensor([float("nan"), float("inf"), -1e30, 0.1, 5.0, -3.0]).reshape(1, 1, 1, 2, 3)
    for padding_mode in range(3):
        out.add("grid_sampler_3d", aten.grid_sampler_3d, torch.arange(27.0).reshape(1, 1, 3, 3, 3) + 1,
                grid[..., 1:, :], 0, padding_mode, False, tolerance=1e-5)
    attempt(out, "upsample_linear1d_backward", aten.upsample_linear1d_backward, torch.ones(1, 1, 4), [5],
            [1, 1, 3], False, None)
    attempt(out, "replication_pad1d_backward", aten.replication_pad1d_backward, torch.ones(1, 1, 4),
            torch.ones(1, 1, 4), [1, 1])


def main(seed=1, count=8, path=pathlib.Path(__file__).parents[1] / "data" / "gradients.cases"):
    s = Samples(seed)
    torch.manual_seed(seed)
    out = CaseWriter(path)
    pooling(s, out, count)
    resampling(s, out, count)
    out.close()


if __name__ == "__main__":
    main(*[int(a) if a.isdigit() else a for a in sys.argv[1:]])
