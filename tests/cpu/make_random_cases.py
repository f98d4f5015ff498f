"""Writes tests/data/random.cases, what PyTorch's CPU generator draws: python make_random_cases.py [file [scale]]. torch 2.15."""
import os
import sys

import torch
from case_writer import DTYPES, CaseWriter

aten = torch.ops.aten
f16, bf16, f32, f64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
FLOATS = (f32, f64, f16, bf16)
# float64 results come from libm, whose last bit differs between versions.
LIBM = 1e-14


def layouts(dtype):
    """Tensors to be filled: dense in several orders, with gaps, channels-last, of one element, empty."""
    yield torch.zeros(3, 5, dtype=dtype)
    yield torch.zeros(4, 7, dtype=dtype).t()
    yield torch.zeros(2, 3, 4, 5, dtype=dtype).to(memory_format=torch.channels_last)
    yield torch.zeros(6, 10, dtype=dtype)[::2, 1:8]
    yield torch.zeros(5, 3, 4, dtype=dtype).permute(1, 2, 0)[:, 1:3]
    yield torch.zeros((), dtype=dtype)
    yield torch.zeros(0, 3, dtype=dtype)


def seeded(function):
    def call(seed, *args):
        torch.manual_seed(seed)
        return function(*args)

    return call


def of_dtype(number):
    return None if number is None else next(d for d, n in DTYPES.items() if n == number)


def write(path, scale):
    w = CaseWriter(path)
    seeds = iter(range(1, 10**9))

    rand = seeded(lambda size, dtype: aten.rand(size, dtype=of_dtype(dtype)))
    randn = seeded(lambda size, dtype: aten.randn(size, dtype=of_dtype(dtype)))
    for size in ([], [1], [3, 4], [7], [0, 4], [15], [16], [17], [37], [64], [313 * scale], [700 * scale]):
        for dtype in FLOATS:
            w.add("rand", rand, next(seeds), size, DTYPES[dtype])
            w.add("randn", randn, next(seeds), size, DTYPES[dtype], tolerance=LIBM if dtype == f64 else 0.0)
    for dtype in (torch.complex64, torch.complex128, torch.complex32):
        w.add("rand", rand, next(seeds), [3, 5], DTYPES[dtype])
        w.add("randn", randn, next(seeds), [3, 5], DTYPES[dtype], tolerance=LIBM)
    w.add("rand", rand, 2**63 - 1, [5], None)
    w.add("rand", rand, -3, [5], None)
    w.add("rand", rand, 2**32 + 1, [5], None)
    w.add("randn", randn, 5, [5], None)
    w.add("rand", rand, 1, [-1], None, message="negative dimension")
    w.add("rand", rand, 1, [2], DTYPES[torch.int32], message="not implemented for")
    w.add("randn", randn, 1, [2], DTYPES[torch.int64], message="not implemented for")

    like = {"rand_like": aten.rand_like, "randn_like": aten.randn_like}
    for name, op in like.items():
        call = seeded(lambda t, dtype, format, op=op: op(t, dtype=of_dtype(dtype), memory_format=(
            None, torch.contiguous_format, torch.preserve_format, torch.channels_last)[format]))
        for t in layouts(f32):
            for format in (0, 1, 2, 3) if t.dim() == 4 else (0, 1, 2):
                w.add(name, call, next(seeds), t, None, format)
        for dtype in (f64, f16, bf16):
            w.add(name, call, next(seeds), torch.zeros(3, 9), DTYPES[dtype], 0, tolerance=LIBM)
        w.add(name, call, 1, torch.zeros(2, 3), None, 3, message="rank")

    randint = seeded(lambda high, size, dtype: aten.randint(high, size, dtype=of_dtype(dtype)))
    randint_low = seeded(lambda low, high, size, dtype: aten.randint.low(low, high, size, dtype=of_dtype(dtype)))
    integers = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32,
                torch.uint64, torch.bool)
    for dtype in integers + FLOATS:
        top = 2 if dtype == torch.bool else 100
        w.add("randint", randint, next(seeds), top, [50 * scale], DTYPES[dtype])
        w.add("randint", randint, next(seeds), 1, [5], DTYPES[dtype])
    for low, high in ((-5, 5), (-2**31, 2**31 - 1), (0, 2**28 - 1), (0, 2**28), (3, 2**28 + 3), (-2**62, 2**62),
                      (-2**63, 2**63 - 1), (2**40, 2**40 + 7), (-3, -2)):
        w.add("randint_low", randint_low, next(seeds), low, high, [30 * scale], DTYPES[torch.int64])
    for dtype, low, high in ((f16, 0, 65504), (f16, -65504, 2), (bf16, 257, 1000), (f32, 2**24 + 1, 2**24 + 9),
                             (f32, -2**40, 2**40), (f64, -2**60, 2**60), (f16, 2049, 4100)):
        w.add("randint_low", randint_low, next(seeds), low, high, [30 * scale], DTYPES[dtype])
    w.add("randint", randint, 1, 3, [2], None)
    w.add("randint", randint, 1, 0, [2], None, message="'from'")
    w.add("randint", randint, 1, 300, [2], DTYPES[torch.uint8], message="out of bounds")
    w.add("randint", randint, 1, 3, [2], DTYPES[torch.bool], message="out of bounds")
    w.add("randint_low", randint_low, 1, -1, 5, [2], DTYPES[torch.uint64], message="out of bounds")
    w.add("randint_low", randint_low, 1, 70000, 70001, [2], DTYPES[f16], message="")
    w.add("randint", randint, 1, 3, [2], DTYPES[torch.complex64], message="")

    randint_like = seeded(lambda t, low, high: aten.randint_like.low_dtype(t, low, high))
    for t in layouts(torch.int64):
        w.add("randint_like_low_dtype", randint_like, next(seeds), t, -7, 1000)
    w.add("randint_like", seeded(lambda t, high: aten.randint_like(t, high)), next(seeds), torch.zeros(3, 4).t(), 9)
    out = seeded(lambda out, low, high, size: aten.randint.low_out(low, high, size, out=out))
    w.add("randint_low_out", out, next(seeds), torch.zeros(3, 4, dtype=torch.int64), 2, 30, [3, 4], written=[1])
    w.add("randint_low_out", out, next(seeds), torch.zeros(4, 3, dtype=torch.int32).t(), 2, 30, [3, 4], written=[1])
    w.add("randint_low_out", out, next(seeds), torch.zeros(2, 5, dtype=torch.int64), 2, 30, [3], written=[1])
    w.add("randint_low_out", out, next(seeds), torch.zeros(2, 5), -2, 30, [2, 5], written=[1])

    randperm = seeded(lambda n, dtype: aten.randperm(n, dtype=of_dtype(dtype)))
    for n in (0, 1, 2, 11, 50, 700 * scale):
        w.add("randperm", randperm, next(seeds), n, None)
    for dtype, n in ((torch.int32, 30), (torch.int16, 30), (torch.int8, 128), (torch.uint8, 256), (f16, 40), (f32, 40),
                     (f64, 40), (bf16, 300)):
        w.add("randperm", randperm, next(seeds), n, DTYPES[dtype])
    w.add("randperm", randperm, 1, -1, None, message="negative")
    w.add("randperm", randperm, 1, 129, DTYPES[torch.int8], message="")
    w.add("randperm", randperm, 1, 2050, DTYPES[f16], message="")
    w.add("randperm", randperm, 1, 5, DTYPES[torch.bool], message="not implemented for")
    w.add("randperm", randperm, 1, 5, DTYPES[torch.uint16], message="not implemented for")

    bernoulli = seeded(lambda t, p: t.bernoulli_(p))
    for dtype in (f32, f64, f16, bf16, torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        w.add("bernoulli__float", bernoulli, next(seeds), torch.zeros(41, dtype=dtype), 0.3, written=[1])
    for t in layouts(f32):
        w.add("bernoulli__float", bernoulli, next(seeds), t, 0.5, written=[1])
        if t.dim():
            p = torch.linspace(0, 1, max(t.shape[-1], 1))[:t.shape[-1]]
            w.add("bernoulli__Tensor", bernoulli, next(seeds), t.clone(), p, written=[1])
            w.add("bernoulli__Tensor", bernoulli, next(seeds), t.clone(), p.double(), written=[1])
    for p in (0.0, 1.0, 1e-300, 1 - 2**-53):
        w.add("bernoulli__float", bernoulli, next(seeds), torch.zeros(300), p, written=[1])
    for p in (f16, bf16, f32, f64):
        w.add("bernoulli__Tensor", bernoulli, next(seeds), torch.zeros(4, 5, dtype=torch.bool),
              torch.rand(4, 5, dtype=p).t().contiguous().t(), written=[1])
    w.add("bernoulli__float", bernoulli, 1, torch.zeros(3), 1.5, message="[0, 1]")
    w.add("bernoulli__float", bernoulli, 1, torch.zeros(3), float("nan"), message="[0, 1]")
    w.add("bernoulli__float", bernoulli, 1, torch.zeros(1).expand(3), 0.5, message="unsupported operation")
    w.add("bernoulli__float", bernoulli, 1, torch.zeros(3, dtype=torch.complex64), 0.5, message="not implemented for")
    w.add("bernoulli__Tensor", bernoulli, 1, torch.zeros(3), torch.tensor([0.5, 2.0, 0.5]), message="")
    w.add("bernoulli__Tensor", bernoulli, 1, torch.zeros(3), torch.zeros(3, dtype=torch.int64),
          message="not implemented for")
    w.add("bernoulli__Tensor", bernoulli, 1, torch.zeros(3), torch.zeros(4), message="")

    uniform = seeded(lambda t, low, high: aten.uniform(t, low, high))
    normal = seeded(lambda t, mean, std: aten.normal_functional(t, mean, std))
    exponential = seeded(lambda t, rate: aten.exponential(t, rate))
    for dtype in FLOATS:
        for t in layouts(dtype):
            w.add("uniform", uniform, next(seeds), t, -1.3, 2.7)
            w.add("normal_functional", normal, next(seeds), t, 0.5, 1.7, tolerance=LIBM if dtype == f64 else 0.0)
            w.add("exponential", exponential, next(seeds), t, 1.5, tolerance=LIBM if dtype == f64 else 0.0)
        w.add("uniform", uniform, next(seeds), torch.zeros(200 * scale, dtype=dtype), 1.0, 1.001)
        w.add("uniform", uniform, next(seeds), torch.zeros(3, dtype=dtype), 2.0, 2.0)
        w.add("normal_functional", normal, next(seeds), torch.zeros(7, dtype=dtype), 3.0, 0.0)
        w.add("exponential", exponential, next(seeds), torch.zeros(7, dtype=dtype), float("inf"))
    w.add("uniform", uniform, next(seeds), torch.zeros(5, dtype=torch.complex64), -1.0, 1.0)
    w.add("normal_functional", normal, next(seeds), torch.zeros(9, dtype=torch.complex64), 1.0, 2.0)
    w.add("uniform", uniform, 1, torch.zeros(3), 2.0, 1.0, message="")
    w.add("uniform", uniform, 1, torch.zeros(3, dtype=f16), 0.0, 1e6, message="out of bounds")
    w.add("uniform", uniform, 1, torch.zeros(3), float("nan"), 1.0, message="out of bounds")
    w.add("uniform", uniform, 1, torch.zeros(3, dtype=torch.int32), 0.0, 1.0, message="not implemented for")
    w.add("normal_functional", normal, 1, torch.zeros(3), 0.0, -1.0, message="std")
    w.add("exponential", exponential, 1, torch.zeros(3), 0.0, message="lambda")
    w.add("exponential", exponential, 1, torch.zeros(3, dtype=torch.int64), 1.0, message="floating point")

    def mixed():
        a = [torch.rand(3), torch.randn(5), torch.randint(9, (4,)), torch.randn(7), torch.rand(2, dtype=f64)]
        a += [torch.randn(700), torch.randn(3), torch.randn(20)[::2].clone(), torch.zeros(4).exponential_(2.0)]
        return a + [torch.randperm(9), torch.zeros(9).bernoulli_(0.4), torch.randn(1), torch.rand(1)]

    for _ in range(scale):
        w.add("stream", seeded(mixed), next(seeds))
    w.close()


if __name__ == "__main__":
    folder = os.path.dirname(os.path.abspath(__file__))
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(folder, "..", "data", "random.cases")
    write(path, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
