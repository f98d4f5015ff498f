"""Writes tests/data/copy.cases: python tests/cpu/make_copy_cases.py [seed [cases [file]]]"""
import pathlib
import sys

import torch
from case_writer import DTYPES, CaseWriter, Samples

SMALL = [torch.float16, torch.bfloat16, torch.float8_e5m2, torch.float8_e4m3fn, torch.float8_e5m2fnuz,
         torch.float8_e4m3fnuz, torch.float8_e8m0fnu]
WRITABLE = ("packed", "permuted", "sliced", "offset")


def copy_into(destination, source):
    return destination.copy_(source)


def main(seed=1, count=120, path=pathlib.Path(__file__).parents[1] / "data" / "copy.cases"):
    s = Samples(seed)
    out = CaseWriter(path)

    # Rounding is tested at every exponent, with random and with half-way fractions.
    exponents = torch.arange(0, 256, dtype=torch.int32).repeat_interleave(3)
    fractions = torch.randint(0, 1 << 23, exponents.shape, generator=s.g, dtype=torch.int32)
    halfway = torch.tensor([0, 1 << 20, 3 << 20, 1 << 22, 3 << 21, 1 << 21, 1 << 15, 1 << 12, 7 << 20], dtype=torch.int32)
    chosen = halfway[torch.randint(len(halfway), exponents.shape, generator=s.g)]
    fractions = torch.where(torch.rand(exponents.shape, generator=s.g) < 0.5, fractions, chosen)
    bits = (exponents << 23) | fractions | (torch.randint(2, exponents.shape, generator=s.g, dtype=torch.int32) << 31)
    floats = bits.view(torch.float32)
    codes = torch.arange(256, dtype=torch.uint8)
    for dtype in SMALL:
        out.add("copy", copy_into, torch.zeros(floats.shape, dtype=dtype), floats, written=[0])
        if dtype.itemsize == 1:
            out.add("copy", copy_into, torch.zeros(256), codes.view(dtype), written=[0])

    # Every pair of dtypes. Values that an integer cannot hold are left out, because converting them is undefined; only NaN and
    # infinity are defined for signed integers.
    everything = list(DTYPES)
    numbers = torch.tensor([0.0, -0.0, 1.0, -1.0, 1.5, 2.5, -2.5, 100.25, 126.99, 0.001, 3.0])
    odd = torch.tensor([float("nan"), float("inf"), float("-inf")])
    for source in everything:
        for destination in everything:
            x = numbers.abs() if not (source.is_signed or source == torch.bool) or not destination.is_signed else numbers
            if destination in (torch.int32, torch.int64, torch.float32, torch.bfloat16, torch.bool) and (
                    source in (torch.float16, torch.float32, torch.float64, torch.bfloat16)):
                x = torch.cat([x, odd])
            x = x.to(source)
            if source.is_complex:
                x = (x + 2j * x.flip(0)).to(source) if source != torch.complex32 else (
                    x.to(torch.complex64) + 2j).to(source)
            x = x.repeat(2)[:s.pick([5, 17, 28])] if s.below(2) else x
            out.add("copy", copy_into, torch.zeros(x.shape, dtype=destination), x, written=[0])

    for _ in range(count):
        destination = s.pick([torch.float32, torch.float64, torch.int64, torch.int16, torch.uint8, torch.complex128,
                              torch.bfloat16, torch.bool])
        source = destination if s.below(2) else s.pick([torch.float32, torch.int32, torch.float16, torch.int8])
        shape = s.pick([s.shape(max_rank=3, max_size=4), s.shape(max_rank=5, max_size=2), s.shape(max_rank=2, max_size=9)])
        x = s.sample(source, shape, special=0.1 if destination.is_floating_point else 0, low=0)
        if s.below(3) == 0 and shape:  # broadcast
            d = s.below(len(shape))
            x = x.narrow(d, 0, 1) if shape[d] else x
            x = x[0] if d == 0 and shape[0] and s.below(2) else x
        out.add("copy", copy_into, s.strided(s.values(destination, shape), WRITABLE), x, written=[0])
    for dtype in (torch.uint8, torch.int16, torch.float32, torch.float64):  # transposition, whole blocks and edges
        for rows, columns in ((9, 37), (33, 17)):
            out.add("copy", copy_into, torch.zeros(columns, rows, dtype=dtype),
                    s.values(dtype, [rows, columns], 0, 100).t(), written=[0])
    out.add("copy", copy_into, torch.zeros(3, 4), torch.zeros(2, 4), written=[0], message="")
    out.add("copy", copy_into, torch.zeros(3, 4), torch.zeros(2, 3, 4), written=[0], message="")
    base = torch.arange(8.0)
    out.add("copy", lambda b, d, x: d.copy_(x), base, base[:4], base[2:6], message="refer to a single memory location")
    out.add("copy", copy_into, torch.zeros(1).expand(4), torch.ones(4), message="refers to a single memory location")

    for _ in range(count // 2):
        x = s.sample(s.pick([torch.float32, torch.int64, torch.uint8, torch.complex64]), s.shape(max_size=3))
        out.add("clone", torch.clone, x)
        out.add("to_dtype", lambda t, d: t.to(t.dtype if d else torch.float64), x, False)
        if x.numel():
            out.add("clone_preserve_strides",
                    lambda t: torch.as_strided(t, [1 + sum((n - 1) * k for n, k in zip(t.shape, t.stride()))], [1])
                    .clone().as_strided(t.shape, t.stride()), x)
    for _ in range(count // 3):
        dtype = s.pick(everything)
        shape = s.shape(max_size=3)
        t = s.strided(s.values(torch.float32, shape).to(dtype), WRITABLE)
        v = s.pick([0.0, 1.0, 3.7, 100.0, float(s.below(50))])
        v = max(v, 1.0) if dtype == torch.float8_e8m0fnu else v
        out.add("fill__Scalar", lambda a, b: a.fill_(b), t, v, written=[0])
    for v, dtype in ((0.0, torch.float8_e8m0fnu), (300.0, torch.uint8), (-1.0, torch.uint8), (float("nan"), torch.int32), (float("inf"), torch.int64),
                     (1e10, torch.float16), (1e39, torch.float32), (1e39, torch.bfloat16), (500.0, torch.float8_e4m3fn),
                     (70000.0, torch.float8_e5m2), (9.3e18, torch.int64), (1.9e19, torch.uint64)):
        out.add("fill__Scalar", lambda a, b: a.fill_(b), torch.zeros(3, dtype=dtype), v, message="without overflow")
    for v, dtype in ((5.0, torch.bool), (0.5, torch.bool), (float("nan"), torch.float16), (float("inf"), torch.bfloat16),
                     (-3.7, torch.int8), (9.2e18, torch.int64), (1.8e19, torch.uint64), (float("-inf"), torch.float32),
                     (2.5, torch.complex64), (448.0, torch.float8_e4m3fn)):
        out.add("fill__Scalar", lambda a, b: a.fill_(b), torch.zeros(3, dtype=dtype), v, written=[0])
    out.close()


if __name__ == "__main__":
    a = sys.argv[1:]
    main(*([int(a[0])] if a else []), *([int(a[1])] if len(a) > 1 else []), *a[2:3])
