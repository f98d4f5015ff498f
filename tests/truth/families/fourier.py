"""Discrete Fourier transforms: src/cpu/linalg/fft.cpp, fft_plan.cpp, fft_lines.h.

All dtypes against float64, with the error of a sum of n terms by log n. Limits: radices 4, 2, 3, 5 and odd ones up to 31,
other factors by a convolution; 8 floats or 4 doubles side by side, two real lines in one complex one; lines from 1024 on
as a matrix (sides are multiples of the lanes, up to 2048); 2 MB of buffers for lines side by side; plans kept up to 4
million elements.
"""
import math

import torch

import case

SMALL = (2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 25, 27, 29, 31, 32, 37, 41, 49, 60, 64, 97, 100, 101, 121, 127, 128, 169, 210, 211, 240, 243, 256,
         961, 962)
LONG = (1023, 1024, 1025, 1031, 1280, 1536, 2000, 2048, 2401, 3072, 4000, 4093, 4096, 4097, 6144, 8192, 10007, 16384, 20000, 32768, 65536,
        65537, 100000, 131072)
LAYOUTS = ("packed", "packed", "permuted", "permuted", "sliced", "offset", "padded", "expanded")


def length(d, most):
    if d.chance(0.15):
        return d.randint(1, min(most, 300))
    fits = [n for n in SMALL if n <= most] + ([n for n in LONG if n <= most] if d.chance(0.3) else [])
    return d.choice(fits) if fits else 1


def draw(d):
    made = transform(d)
    if made is not None and 0 in made.arguments[0].stride():
        made.error *= 6  # with equal elements the sum far exceeds their root mean square
    return by_line(made) if made is not None and " special " in made.label else made


def by_line(made):
    """Where a line with NaN or infinity gets NaN depends on the algorithm; no other line may change."""
    dims = made.arguments[1]

    def clean(function):
        def run(x, *rest):
            found = case.flat(function(x, *rest))[0]
            finite = (torch.view_as_real(x).isfinite().all(-1) if x.is_complex() else x.isfinite()).to(torch.uint8)
            for n in dims:
                finite = finite.amin(n, True)
            strides = found.stride()
            found = torch.where(finite.bool().expand(found.shape), found, torch.zeros((), dtype=found.dtype))
            return [torch.empty_strided(found.shape, strides, dtype=found.dtype).copy_(found)]
        return run

    made.ours, made.torch = clean(made.ours), clean(made.torch)
    return made


def transform(d):
    kind = d.choice(("_fft_c2c", "_fft_c2c", "_fft_r2c", "_fft_r2c", "_fft_c2r", "_fft_c2r"))
    double = d.chance(0.35)
    rank = d.choice((1, 1, 2, 2, 2, 3, 3, 4))
    most = d.choice((2000, 8000, 8000, 30000)) if d.chance(0.97) else 150000
    count = d.randint(1, min(rank, 3))
    dims = d.sample(range(rank), count)
    sizes, left = [0] * rank, most
    for n in dims:
        sizes[n] = length(d, max(left, 1))
        left //= max(sizes[n], 1)
    for n in range(rank):
        if n not in dims:
            sizes[n] = d.size(2, 4, 8, 16, 32, low=0 if d.chance(0.05) else 1, high=max(1, min(left, 40)))
            left //= max(sizes[n], 1)
    values = d.choice(("normal", "normal", "few", "wide", "zero", "special"))
    normalization = d.choice((0, 1, 2))
    named = dims  # ATen's transforms crash on negative dimensions
    elements = max(math.prod(sizes[n] for n in dims), 1)
    scale = (1, elements ** -0.5, 1 / elements)[normalization]

    def magnitude(v, *_):
        # Each output has n terms of the input's size.
        return (v.nan_to_num(0, 0, 0).abs().double() ** 2).sum(dims, keepdim=True).sqrt().mul(scale)

    # Bluestein's convolution takes three transforms of longer lines.
    error = 8 + (12 if double else 6) * math.log2(elements + 1)  # radices of 31 sum as many
    if kind == "_fft_r2c":
        x = d.tensor(torch.float64 if double else torch.float32, sizes, values, LAYOUTS)
        one = d.chance(0.7)
        return case.named(f"{x.dtype} {sizes} {x.stride()} over {named} {values} normalization {normalization} onesided {one}", kind, "",
                          x, named, normalization, one, error=error, magnitude=magnitude)
    dtype = torch.complex128 if double else torch.complex64
    if kind == "_fft_c2c":
        x = d.tensor(dtype, sizes, values, LAYOUTS)
        forward = d.chance(0.5)
        if d.chance(0.02):
            named = []
        return case.named(f"{x.dtype} {sizes} {x.stride()} over {named} {values} normalization {normalization} forward {forward}", kind, "",
                          x, named, normalization, forward, error=error, magnitude=magnitude)
    last = sizes[dims[-1]]
    if last == 0 or 0 in sizes:
        return None
    sizes[dims[-1]] = last // 2 + 1
    x = d.tensor(dtype, sizes, values, LAYOUTS)

    def halves(v, *_):
        # Half a spectrum represents both halves.
        return magnitude(v) * 2 ** 0.5

    return case.named(f"{x.dtype} {sizes} {x.stride()} over {named} {values} normalization {normalization} to {last}", kind, "", x, named,
                      normalization, last, error=error, magnitude=halves)
