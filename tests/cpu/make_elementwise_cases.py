"""Writes tests/data/elementwise.cases: python tests/cpu/make_elementwise_cases.py [seed [cases [file]]]"""
import pathlib
import sys

import torch
from case_writer import DTYPES, CaseWriter, Samples, attempt

aten = torch.ops.aten
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
COMPLEX = [torch.complex64, torch.complex128]
WIDE = [torch.uint16, torch.uint32, torch.uint64]
EVERY = INTEGERS + FLOATS + COMPLEX + WIDE + [torch.bool, torch.complex32, torch.float8_e5m2]


def number(dtype):
    return DTYPES[dtype]


def dtype_of(n):
    return None if n is None else next(d for d, k in DTYPES.items() if k == n)


def main(seed=1, count=24, path=pathlib.Path(__file__).parents[1] / "data" / "elementwise.cases"):
    s = Samples(seed)
    out = CaseWriter(path)

    def values(dtype, shape, **more):
        if dtype == torch.complex32:
            return s.sample(torch.complex64, shape, **more).to(dtype)
        return s.sample(dtype, shape, **more)

    def pair(dtypes, special=0.0, low=-9, high=9):
        """Two operands that broadcast."""
        shape = s.shape()
        shapes = []
        for _ in range(2):
            kept = shape[s.below(len(shape) + 1):] if s.below(4) == 0 else list(shape)
            if s.below(6) == 0:
                kept = []
            shapes.append([1 if s.below(5) == 0 else n for n in kept])
        a = s.pick(dtypes)
        b = a if s.below(2) else s.pick(dtypes)
        return (values(a, shapes[0], special=special, low=low, high=high),
                values(b, shapes[1], special=special, low=low, high=high))

    def near(*tensors):
        """Last bits of transcendental functions depend on the library."""
        dtypes = {t.dtype for t in tensors}
        if dtypes & {torch.float16, torch.complex32}:
            return 2e-3
        if torch.bfloat16 in dtypes:
            return 1.6e-2
        return 4e-6 if dtypes & {torch.float32, torch.complex64} or not dtypes & {torch.float64, torch.complex128} else 1e-13

    # Every pair of dtypes: promotion, with and without dimensions.
    for a in EVERY:
        for b in EVERY:
            x, y = values(a, [3], layouts=("packed",)), values(b, s.pick([[3], []]))
            attempt(out, "mul_Tensor", aten.mul.Tensor, *s.pick([(x, y), (y, x)]),
                    tolerance=near(x, y) if x.is_complex() or y.is_complex() else 0.0)
        attempt(out, "add_Tensor", lambda x, y, k: aten.add.Tensor(x, y, alpha=k), values(a, [4]), values(a, [4]), 1.5,
                tolerance=near(values(a, [4])) if a in (torch.float16, torch.complex32) else 0.0)
        attempt(out, "abs", aten.abs, values(a, [5], special=0.2))
        attempt(out, "angle", aten.angle, values(a, [5], special=0.2), tolerance=2e-3)
        attempt(out, "gcd", aten.gcd, values(a, [5]), values(a, [5]))
        attempt(out, "polar", aten.polar, values(a, [5]), values(a, [5]), tolerance=2e-3)
        attempt(out, "pow_Tensor_Scalar", aten.pow.Tensor_Scalar, values(a, [5]), 2.0, tolerance=1e-3)
        attempt(out, "pow_Tensor_Tensor", aten.pow.Tensor_Tensor, values(a, [5], low=1), values(a, [5], low=0, high=3),
                tolerance=2e-3)
        attempt(out, "pow_Scalar", aten.pow.Scalar, 2.0, values(a, [5], low=-3, high=3), tolerance=2e-3)
        attempt(out, "mul_Scalar", aten.mul.Scalar, values(a, [5]), 0.1)
        attempt(out, "add_Scalar", lambda x, y, k: aten.add.Scalar(x, y, k), values(a, [5]), 0.1, 1.0)
        attempt(out, "subtract_Tensor", lambda x, y, k: aten.subtract.Tensor(x, y, alpha=k), values(a, [5]),
                values(a, [5]), 1.0)
        attempt(out, "amax", aten.amax, values(a, [5]), [], False)
        attempt(out, "hann_window", lambda n, d: aten.hann_window(n, dtype=dtype_of(d)), 9, number(a), tolerance=2e-3)

    real = INTEGERS + FLOATS
    for _ in range(count):
        x, y = pair(FLOATS + COMPLEX, special=0.1)
        # If alpha is not 1, ATen rounds some rows once and others twice.
        attempt(out, "add_Tensor", lambda x, y, k: aten.add.Tensor(x, y, alpha=k), x, y, s.pick([0.3, -2.0]),
                tolerance=near(x, y))
        x, y = pair(FLOATS + INTEGERS)
        attempt(out, "add_Tensor", lambda x, y, k: aten.add.Tensor(x, y, alpha=k), x, y, 1.0)
        attempt(out, "subtract_Tensor", lambda x, y, k: aten.subtract.Tensor(x, y, alpha=k), x, y, 1.0)
        x, y = pair(EVERY[:-2], special=0.0)
        attempt(out, "mul_Tensor", aten.mul.Tensor, x, y,
                tolerance=near(x, y) if x.is_complex() or y.is_complex() else 0.0)
        out.add("mul_Scalar", aten.mul.Scalar, values(s.pick(real + COMPLEX), s.shape()), s.pick([2.0, -0.3, 1e300]))
        x = values(s.pick(real + COMPLEX), s.shape())
        k = s.pick([1.0, 3.0])
        out.add("add_Scalar", lambda x, y, k: aten.add.Scalar(x, y, k), x, s.pick([2.0, -0.3]), k,
                tolerance=near(x) if k != 1.0 and x.dtype.is_floating_point else 0.0)
        out.add("abs", aten.abs, values(s.pick(real), s.shape(), special=0.2))
        x = values(s.pick(COMPLEX), s.shape(), special=0.1)
        out.add("abs", aten.abs, x, tolerance=near(x))
        x = values(s.pick(real + COMPLEX), s.shape(), special=0.1)
        out.add("angle", aten.angle, x, tolerance=near(x))
        out.add("gcd", aten.gcd, *pair(INTEGERS, low=-100, high=100))
        x, y = pair([s.pick([torch.float32, torch.float64])])
        out.add("polar", aten.polar, x, y, tolerance=near(x, y) * 3)
        x, y = pair(INTEGERS, low=-6, high=6)
        out.add("pow_Tensor_Tensor", aten.pow.Tensor_Tensor, x, y)
        x, y = pair(FLOATS, special=0.1)
        attempt(out, "pow_Tensor_Tensor", aten.pow.Tensor_Tensor, x, y, tolerance=near(x, y))
        x = values(s.pick(real), s.shape(), special=0.1)
        e = s.pick([0.0, 1.0, 2.0, 3.0, -2.0, 0.5, -0.5, -1.0, 2.5, -3.0, float("inf")])
        out.add("pow_Tensor_Scalar", aten.pow.Tensor_Scalar, x, e,
                tolerance=0.0 if e in (0.0, 1.0, 2.0, 3.0, -2.0, -1.0) and x.dtype != torch.float16 else near(x))
        x = values(s.pick(COMPLEX), s.shape(), low=1)
        out.add("pow_Tensor_Scalar", aten.pow.Tensor_Scalar, x, s.pick([0.0, 1.0, 2.0, 3.0, -2.0, 0.5, -0.5, -1.0, 2.5]),
                tolerance=3 * near(x))
        x = values(s.pick(real), s.shape(), low=-4, high=4, special=0.1)
        out.add("pow_Scalar", aten.pow.Scalar, s.pick([1.0, 0.0, 2.0, -1.5, 0.3]), x, tolerance=near(x) * 4)
        x = s.sample(s.pick(real + [torch.bool]), s.shape(max_rank=4, zero=False), special=0.05)
        dims = [d - s.pick([0, x.dim()]) for d in torch.randperm(x.dim())[:s.below(x.dim() + 1)].tolist()]
        out.add("amax", aten.amax, x, dims, bool(s.below(2)))
        x = s.sample(torch.float32, [s.below(90) + 1, s.below(40) + 1], special=0.01 * s.below(2))
        out.add("amax", aten.amax, x, [s.below(2)], False)
    for n in (0, 1, 2, 3, 8, 400):
        for dtype in (None, *map(number, FLOATS)):
            out.add("hann_window", lambda n, d: aten.hann_window(n, dtype=dtype_of(d)), n, dtype,
                    tolerance={5: 2e-3, 15: 1.6e-2, 7: 1e-14}.get(dtype, 1e-6))
    smallest = [torch.tensor([torch.iinfo(d).min, torch.iinfo(d).max, -12, 0], dtype=d) for d in INTEGERS[1:]]
    for x in smallest:
        out.add("abs", aten.abs, x)
        out.add("gcd", aten.gcd, x, x.flip(0))
        out.add("gcd", aten.gcd, x, torch.tensor(6, dtype=x.dtype))
        out.add("mul_Tensor", aten.mul.Tensor, x, x)
    # Rows longer than a block, whose operands differ in dtype and spacing.
    for a, b in ((torch.float32, torch.int16), (torch.float16, torch.float32), (torch.int64, torch.int32)):
        x, y = s.sample(a, [700], layouts=("packed",)), s.sample(b, [1400], layouts=("packed",))[::2]
        out.add("mul_Tensor", aten.mul.Tensor, x, y)
        out.add("mul_Tensor", aten.mul.Tensor, x, y[:1])
    add = lambda x, y, k: aten.add.Tensor(x, y, alpha=k)
    out.add("add_Tensor", add, torch.zeros(3), torch.zeros(4), 1.0, message="must match")
    out.add("add_Tensor", add, torch.zeros(3, dtype=torch.int32), torch.zeros(3, dtype=torch.int32), 1.0,
            message="argument alpha must not be a floating point number")
    out.add("amax", aten.amax, torch.zeros(0, 3), [0], False, message="to have non-zero size")
    out.add("amax", aten.amax, torch.zeros(0, 3), [1], False)
    out.add("amax", aten.amax, torch.zeros(0, 3), [], False, message="Expected reduction dim to be specified")
    out.add("amax", aten.amax, torch.zeros(2, 3), [0, -2], False, message="appears multiple times")
    out.add("amax", aten.amax, torch.zeros(2, 3), [2], False, message="Dimension out of range")
    out.add("hann_window", lambda n, d: aten.hann_window(n), -1, None, message="requires non-negative window_length")
    out.add("polar", aten.polar, torch.zeros(2), torch.zeros(2, dtype=torch.float64), message="for second argument")

    def dropout(seed, x, p, train):
        torch.manual_seed(seed)
        return aten.native_dropout(x, p, train)

    for i in range(count):
        x = values(s.pick(FLOATS + COMPLEX), s.shape(max_size=7), special=0.1 if i % 2 else 0.0)
        tolerance = 0.0 if not x.is_complex() else near(x)
        out.add("native_dropout", dropout, 100 + i, x, s.pick([0.0, 0.1, 0.5, 0.9, 1.0]), s.pick([True, None, False]),
                tolerance=tolerance)
    out.add("native_dropout", dropout, 1, torch.randn(3, 700), 0.3, True)
    out.add("native_dropout", dropout, 1, torch.zeros(2, dtype=torch.int32), 0.3, True, message="can't be cast")
    out.add("native_dropout", dropout, 1, torch.zeros(2), 1.5, True, message="[0, 1]")
    out.close()


if __name__ == "__main__":
    main(*[int(a) if a.isdigit() else a for a in sys.argv[1:]])
