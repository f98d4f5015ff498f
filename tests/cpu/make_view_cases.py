"""Writes tests/data/view.cases, views, resizes and padding: python tests/cpu/make_view_cases.py [seed [cases [file]]]"""
import pathlib
import sys

import torch
from case_writer import DTYPES, CaseWriter, Samples, attempt

aten = torch.ops.aten
FORMATS = (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d)


def dtype_of(number):
    return next(d for d, n in DTYPES.items() if n == number)


def factorisation(s, n):
    """Sizes whose product is n, with some ones."""
    sizes = []
    while n > 1:
        f = s.pick([d for d in range(1, n + 1) if n % d == 0])
        sizes.append(f)
        n //= f
    if s.below(2):
        sizes.insert(s.below(len(sizes) + 1), 1)
    return sizes


def main(seed=1, count=24, path=pathlib.Path(__file__).parents[1] / "data" / "view.cases"):
    s = Samples(seed)
    out = CaseWriter(path)
    f32 = torch.float32

    def x(dtype=f32, **more):
        return s.sample(dtype, s.shape(**more))

    for _ in range(count):
        t = x()
        out.add("permute", aten.permute, t, [d - s.pick([0, t.dim()]) for d in torch.randperm(t.dim()).tolist()])
        t = x()
        shape = factorisation(s, t.numel()) if t.numel() else s.pick([[0], [0, 3], [2, 0, 1], list(t.shape)])
        if shape and t.numel() and s.below(2):
            shape[s.below(len(shape))] = -1
        out.add("reshape", aten.reshape, t, shape)
        t = x(zero=True)
        attempt(out, "slice_Tensor", aten.slice.Tensor, t, s.below(6) - 3, s.pick([None, s.below(14) - 7]),
                s.pick([None, s.below(14) - 7, 2**63 - 1]), s.pick([1, 1, 2, 3, 9]))
        attempt(out, "squeeze_dim", aten.squeeze.dim, s.sample(f32, s.pick([[2, 1, 3], [1], [], [1, 1, 0]])),
                s.below(8) - 4)
        attempt(out, "narrow", aten.narrow, x(), s.below(4) - 2, s.below(9) - 4, s.below(5) - 1)
        t = s.sample(s.pick([torch.uint8, torch.int16, torch.int32, torch.int64, torch.complex64]),
                     s.pick([[4], [2, 8], [3, 4], [2, 3, 16], [2, 0], []]))
        attempt(out, "view_dtype", lambda t, d: aten.view.dtype(t, dtype_of(d)), t,
                DTYPES[s.pick([torch.int8, torch.bfloat16, torch.float32, torch.float64, torch.complex128])])
        out.add("view_as_real", aten.view_as_real, s.sample(s.pick([torch.complex64, torch.complex128]), s.shape()))
        t = s.sample(s.pick([f32, torch.float64, torch.float16]), s.shape(max_rank=3) + [2])
        attempt(out, "view_as_complex", aten.view_as_complex, t)
        t = s.strided(s.values(f32, s.shape()), ("packed", "permuted", "sliced", "offset"))
        size = s.pick([list(t.shape), list(t.shape)[::-1], s.shape(max_rank=2)])
        # If the storage grows, its new bytes are undefined, so only cases that do not grow are compared.
        if t.storage_offset() + torch.Size(size).numel() <= t.untyped_storage().nbytes() // 4:
            out.add("resize_", lambda t, z: aten.resize_(t, z), t, size, written=[0])
            out.add("resize_as_", lambda t, z: aten.resize_as_(t, z), t.clone(), torch.zeros_like(t), written=[0])
    message = [
        ("permute", aten.permute, torch.zeros(2, 3), [0], ""), ("permute", aten.permute, torch.zeros(2, 3), [0, 0], "duplicate dims"),
        ("permute", aten.permute, torch.zeros(2, 3), [0, 2], "Dimension out of range"),
        ("reshape", aten.reshape, torch.zeros(2, 3), [4, -1], "is invalid"), ("reshape", aten.reshape, torch.zeros(2, 3), [-1, -1], "only one dimension can be inferred"),
        ("reshape", aten.reshape, torch.zeros(0, 3), [-1, 0], "ambiguous"), ("reshape", aten.reshape, torch.zeros(2, 3), [-2, 3], "invalid"),
        ("reshape", aten.reshape, torch.zeros(2, 3), [5], "is invalid"), ("view_as_real", aten.view_as_real, torch.zeros(2), "complex tensors"),
        ("view_as_complex", aten.view_as_complex, torch.zeros(2, dtype=torch.int32), ""),
        ("view_as_complex", aten.view_as_complex, torch.zeros(3, 3)[:, 1:], ""),
        ("view_as_complex", aten.view_as_complex, torch.zeros(3, 4)[:, 1:3], ""),
        ("view_as_complex", aten.view_as_complex, torch.zeros(()), ""),
        ("slice_Tensor", aten.slice.Tensor, torch.zeros(()), 0, None, None, 1, "0-dim"),
        ("slice_Tensor", aten.slice.Tensor, torch.zeros(3), 0, None, None, 0, "step must be positive"),
        ("narrow", aten.narrow, torch.zeros(3), 0, 0, -1, "non-negative"),
        ("resize_", aten.resize_, torch.zeros(3), [-1], ""),
    ]
    for op, function, *args, text in message:
        out.add(op, function, *args, message=text)
    for t in (torch.zeros(2, 3, 4, 5), torch.zeros(120), torch.zeros(5, 4, 3, 2).permute(3, 2, 1, 0)):
        for format in (0, 2):
            out.add("resize_", lambda t, z, f: aten.resize_(t, z, memory_format=FORMATS[f]), t.clone(), [2, 3, 4, 5],
                    format, written=[0])
        for format in (0, 1, 2):
            out.add("resize_as_", lambda t, z, f: aten.resize_as_(t, z, memory_format=FORMATS[f]), t.clone(),
                    torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last), format, written=[0])
    out.add("resize_", lambda t, z, f: aten.resize_(t, z, memory_format=FORMATS[f]), torch.zeros(240), [2, 3, 2, 4, 5], 3,
            written=[0])
    out.add("resize_", lambda t, z, f: aten.resize_(t, z, memory_format=FORMATS[f]), torch.zeros(6), [2, 3], 1,
            message="memory format")
    out.add("resize_", lambda t, z, f: aten.resize_(t, z, memory_format=FORMATS[f]), torch.zeros(6), [2, 3], 2,
            message="")
    # The result keeps the dtype of the tensor that is set.
    for source in (torch.ones(2, 2).t(), torch.arange(9.0)[1::2], torch.arange(6, dtype=torch.int32)):
        out.add("set__source_Tensor", lambda t, z: aten.set_.source_Tensor(t, z), torch.zeros(3), source)

    def pad(t, sides, mode, value=None):
        return aten.pad(t, sides, mode, value)

    padded = [torch.float32, torch.float64, torch.float16, torch.int64, torch.uint8, torch.complex128]
    for _ in range(count):
        for mode in ("constant", "reflect", "replicate", "circular"):
            dims = s.below(3) + 1
            rank = dims + 1 + s.below(2)
            t = s.sample(s.pick(padded), [1 + s.below(4) for _ in range(rank)])
            if rank >= 4 and s.below(3) == 0:
                t = t.contiguous(memory_format=torch.channels_last if rank == 4 else torch.channels_last_3d)
            if mode == "circular":
                # If one side is cropped, the other may wrap at most what is left; PyTorch reads uninitialised memory beyond.
                sides = []
                for d in range(dims):
                    n = t.shape[-1 - d]
                    left = s.below(2 * n) - n + 1
                    sides += [left, s.below(n + min(left, 0) + 1) if left < 0 else s.below(n + 1)]
            else:
                sides = [s.below(7) - 2 for _ in range(2 * dims)]
            attempt(out, "pad", pad, t, sides, mode, s.pick([None, 1.0]) if mode == "constant" else None)
        t = s.sample(s.pick(padded + [torch.bool, torch.int16]), s.shape(max_rank=5, max_size=3))
        sides = [s.below(6) - 2 for _ in range(2 * s.below(t.dim() + 1))]
        attempt(out, "pad", pad, t, sides, "constant", s.pick([None, 2.0]))
    out.add("pad", pad, torch.zeros(2, 3, 400), [170, 200], "reflect", None)
    out.add("pad", pad, s.values(f32, [1, 2, 5, 6]).contiguous(memory_format=torch.channels_last), [1, 2, 3, 1], "reflect", None)
    for dtype in (torch.bool, torch.uint16, torch.float8_e5m2, torch.complex32):
        t = s.values(torch.float32 if dtype == torch.complex32 else torch.uint8, [2, 3], 0, 1).to(dtype)
        out.add("pad", pad, t, [1, 2], "constant", None)
        out.add("pad", pad, t, [1, 2], "circular", None)
        out.add("pad", pad, t, [1, 2], "reflect", None, message="not implemented for")
        out.add("pad", pad, t, [1, 2], "replicate", None, message="not implemented for")
    out.add("pad", pad, torch.zeros(2, 3), [1], "constant", None, message="divisible by 2")
    out.add("pad", pad, torch.zeros(3), [1, 1, 1, 1], "constant", None, message="Padding length should be less")
    out.add("pad", pad, torch.zeros(2, 3), [1, 1], "mirror", None, message="Unrecognised padding mode mirror")
    out.add("pad", pad, torch.zeros(2, 3), [1, 1], "reflect", 1.0, message="doesn't take in value argument")
    out.add("pad", pad, torch.zeros(2, 3), [3, 1], "reflect", None, message="Padding size should be less")
    out.add("pad", pad, torch.zeros(2, 3), [4, 1], "circular", None, message="wrapping around more than once")
    out.add("pad", pad, torch.zeros(2, 3, 4, 5), [1, 1], "replicate", None, message="is not supported for 4D")
    out.add("pad", pad, torch.zeros(2, 3, dtype=torch.uint8), [1, 1], "constant", 300.0, message="overflow")
    out.add("pad", pad, torch.zeros(0, 3, 4), [1, 1], "reflect", None)
    out.add("pad", pad, torch.zeros(2, 0), [1, 1], "constant", 4.0)
    out.close()


if __name__ == "__main__":
    main(*[int(a) if a.isdigit() else a for a in sys.argv[1:]])
