"""Writes tests/data/movement.cases, functions.cases and lists.cases: PyTorch's results for operators that are called by name,
mainly for complex elements.

    .venv/bin/python tests/custom_ops/make_function_cases.py      # torch 2.15
"""
import torch

from aten_cases import COMPLEX, FLOATS, HALVES, INTS, Atens, Samples


def movement(out, s):
    x = lambda dtype=torch.complex64, shape=(2, 3, 4), **k: s.sample(dtype, list(shape), **k)
    gapless = {"layouts": ("packed", "permuted")}
    for dtype in (torch.complex64, torch.complex128, torch.float32, torch.bfloat16, torch.int16, torch.bool):
        a = x(dtype)
        for dims in ([0], [1, -1], []):
            out.add("prims::rev", a, [d % 3 for d in dims])
            out.add("flip", a, dims)
        for offset, d1, d2 in ((0, 0, 1), (1, -1, 0), (-1, 1, 2), (5, 0, 1)):
            out.add("diagonal", a, offset, d1, d2)
            b = x(dtype, **gapless)
            out.add("diagonal_scatter", b, x(dtype, b.diagonal(offset, d1, d2).shape), offset, d1, d2)
        for d, size, step in ((0, 2, 1), (2, 2, 2), (-1, 0, 1), (1, 3, 5)):
            out.add("unfold", a, d, size, step)
        for dims in ([0], [0, 2], []):
            out.add("squeeze.dims", x(dtype, (1, 3, 1)), dims)
        for repeats in ([2, 1, 3], [2, 1, 1, 2], [0, 1, 1], [1, 1, 1]):
            out.add("repeat", a, repeats)
        out.add("repeat", torch.tensor(1, dtype=dtype), [3])
        for number in (0, 1) + ((1 + 2j, 2.5) if dtype.is_complex else ()):
            for pad in ([1, 2], [0, 1, 2, 0], [-1, 1, 1, -2]):
                out.add("constant_pad_nd", a, pad, number)
        b = x(dtype, **gapless)
        out.add("slice_scatter", b, x(dtype, (2, 2, 4)), 1, 0, 2, 1)
        out.add("slice_scatter", b, x(dtype, (2, 3, 2)), -1, 1, None, 2)
        out.add("select_scatter", b, x(dtype, (2, 4)), 1, -1)
        out.add("as_strided_scatter", b, x(dtype, (2, 2)), [2, 2], [3, 1], 2)
        out.add("as_strided_scatter", b, x(dtype, (2, 2)), [2, 2], [3, 1], None)
        out.add("as_strided_copy", b, [2, 2], [3, 1], 2)
        out.add("copy", b, x(dtype), False)
        out.add("copy", b, x(torch.int32, (3, 1)), False)
        out.add("lift_fresh_copy", a)
        for d in (0, 1, -1):
            index = torch.randint(2, (2, 2, 3), generator=s.g)
            out.add("gather", a, d, index, False)
            out.add("scatter.src", a, d, index.expand(2, 2, 3), x(dtype, (2, 3, 4)))
            out.add("scatter.value", a, d, index, 1 + 2j if dtype.is_complex else 1)
            out.add("scatter.value_out", a, d, index, 1 + 2j if dtype.is_complex else 1, torch.zeros(2, 3, 4, dtype=dtype),
                    written=[4])
            if dtype != torch.bool:
                t = {"tolerance": 2e-2 if dtype == torch.bfloat16 else 1e-6}
                out.add("scatter.reduce", a, d, index, x(dtype), "add", **t)
                out.add("scatter.reduce", a, d, index, x(dtype), "multiply", **t)
                out.add("scatter_add", a, d, index, x(dtype), **t)
            rows = torch.randint(a.shape[d], (5,), generator=s.g)
            shape = list(a.shape)
            shape[d] = 5
            out.add("index_add", a, d, rows, x(dtype, shape), 1, tolerance=3e-2 if dtype == torch.bfloat16 else 1e-5)
            if not dtype.is_complex and dtype != torch.bool:
                out.add("index_add", a, d, rows.int(), x(dtype, shape), 2, tolerance=3e-2)
        rows, columns = torch.tensor([1, 0, -1]), torch.tensor([[2], [0]])
        for name, tail in (("_unsafe_index.Tensor", ()), ("_unsafe_index_put", (x(dtype, (2, 3, 4)), False))):
            out.add(name, a, [rows, columns], *tail)
        out.add("index_put_", x(dtype, layouts=("packed", "permuted")), [rows, columns], x(dtype, (2, 3, 4)), False,
                written=[0])
        mask = torch.tensor([True, False, True])
        wild = torch.tensor([1, 99, 0])
        out.add("_unsafe_masked_index", a, mask[:, None, None], [wild], 0)
        out.add("_unsafe_masked_index", a, mask.expand(2, 3)[..., None], [columns // 2, wild], 1)
        if dtype != torch.bool:
            out.add("_unsafe_masked_index_put_accumulate", a, mask[:, None, None], [wild], x(dtype, (3, 3, 4)),
                    tolerance=2e-2 if dtype == torch.bfloat16 else 1e-6)
        out.add("embedding", x(dtype, (5, 3)), torch.tensor([[4, 0], [1, 1]]), -1, False, False)
        out.add("embedding", x(dtype, (5, 3)), torch.tensor(2, dtype=torch.int32), 0, False, False)
    for dtype in (torch.complex64, torch.float32):
        a = x(dtype)
        out.add("detach_copy", a)
        out.add("_reshape_copy", a, [4, 6])
        if dtype.is_complex:
            out.add("_conj_copy", a)
        out.add("_stack", [a, a], 1)
        for reduce in ("sum", "prod", "mean"):
            out.add("scatter_reduce.two", a, 1, torch.randint(3, (2, 2, 4), generator=s.g), x(dtype), reduce, True,
                    tolerance=1e-5)
        out.add("select_copy.int", a, 1, -1)
        out.add("slice_copy.Tensor", a, 2, 1, None, 2)
        out.add("split_copy.Tensor", a, 2, 1)
    out.add("view_as_real_copy", x(layouts=("packed",)))
    out.add("view_as_complex_copy", x(torch.float32, (3, 2), layouts=("packed",)))
    for dtype in FLOATS + HALVES:
        for norm in (2.0, 1.0, float("inf"), 3.0):
            out.add("embedding_renorm", s.sample(dtype, [5, 3], layouts=("packed",)), torch.tensor([[4, 0], [4, 1]]), 1.5,
                    norm, tolerance={torch.float16: 4e-3, torch.bfloat16: 4e-2}.get(dtype, 1e-5))
    for dtype, to in ((torch.float32, 9), (torch.complex64, 9), (torch.complex64, 10), (torch.int32, 9),
                      (torch.bool, 9), (torch.float32, 7)):
        out.add("prims::convert_element_type", x(dtype, **gapless), to)
    for dtype, to in ((torch.float32, 15), (torch.bfloat16, 6), (torch.float32, 6)):
        out.add("quantized_decomposed::convert_element_type.no_fuse", x(dtype, **gapless), to)
    for number, dtype in ((3, None), (2.5, 7), (True, 11), (1 + 2j, 9), (0, 9)):
        out.add("scalar_tensor", number, dtype, None, None, None)
    out.add("new_empty_strided", x(), [2, 0], [3, 1], None, None, None, None)
    out.add("empty_permuted", [2, 0, 3], [2, 0, 1], 9, None, None, None)
    out.add("empty_permuted", [2, 0], [0], 9, None, None, None, message="Number of dimensions in size does not match")
    out.add("gather", x(), 1, torch.full((2, 1, 4), 3), False, message="is out of bounds for dimension 1 with size 3")
    out.add("gather", x(), 1, torch.zeros(2, 1, dtype=torch.int64), False, message="same number of dimensions")
    out.add("diagonal", x(), 0, 1, 1, message="diagonal dimensions cannot be identical")
    out.add("unfold", x(), 0, 3, 1, message="maximum size for tensor at dimension 0 is 2")
    out.add("repeat", x(), [2], message="can not be smaller than number of dimensions of tensor")
    out.add("slice_scatter", x(), x(), 1, 0, 1, 1, message="expected src to have a size equal to the slice of self")
    out.add("index_add", x(), 0, torch.tensor([2]), x(shape=(1, 3, 4)), 1, message="is out of bounds for dimension 0 with size 2")
    out.add("flip", x(), [0, 0], message="appears multiple times in the list of dims")
    for first, shape in ((False, [5, 3, 2]), (True, [3, 5, 2]), (False, [5, 3]), (False, [5, 3, 2, 2])):
        for dtype in (torch.float32, torch.float16, torch.int64):
            for lengths in ([5, 3, 1], [4, 4, 4], [1, 1, 1]):
                out.add("_pack_padded_sequence", s.sample(dtype, shape), torch.tensor(lengths), first)
    x = s.sample(torch.float32, [5, 3, 2])
    for lengths, text in (([3, 5, 1], "sorted in decreasing order"), ([5, 3, 0], "greater than 0"),
                          ([5, 3], "to be equal to batch_size")):
        out.add("_pack_padded_sequence", x, torch.tensor(lengths), False, message=text)
    out.add("_pack_padded_sequence", x[:0], torch.tensor([1, 1, 1]), False, message="Cannot pack empty tensors")


def functions(out, s):
    tolerance = {torch.complex64: 2e-5, torch.complex128: 1e-11, torch.float32: 2e-6, torch.float64: 1e-13,
                 torch.float16: 2e-3, torch.bfloat16: 2e-2}
    unary = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "exp2", "expm1", "log", "log10",
             "log1p", "log2", "reciprocal", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "silu", "neg",
             "sgn", "isnan", "isinf", "logical_not"]
    for name in unary:
        for dtype in COMPLEX + FLOATS + HALVES + [torch.int32, torch.bool]:
            if (name == "silu" and not (dtype.is_floating_point or dtype.is_complex)) or (
                    name == "neg" and dtype == torch.bool):
                continue
            for shape in ([3, 5], [], [0]):
                a = s.sample(dtype, shape, low=-2, high=2)
                if name in ("reciprocal", "rsqrt", "log", "log2", "log10") and dtype.is_complex:
                    a = torch.where(a == 0, torch.ones((), dtype=dtype), a)
                out.add(name, a, tolerance=tolerance.get(dtype, 2e-6))
    for dtype in COMPLEX:
        odd = torch.complex(torch.tensor([1.0, float("nan"), float("inf"), 0.0]), torch.tensor([float("nan"), 1.0, 0.0, 0.0]))
        for name in ("isnan", "isinf", "logical_not"):
            out.add(name, odd.to(dtype))
        out.add("conj_physical", s.sample(dtype, [2, 3]))
        out.add("_conj_physical", s.sample(dtype, [2, 3]))
    out.add("neg", torch.tensor([True]), message="on a bool tensor is not supported")
    for dtype in (torch.float16, torch.float32, torch.float64):
        out.add("complex", s.sample(dtype, [2, 3]), s.sample(dtype, [3]))
    out.add("complex", torch.ones(2), torch.ones(2).double(), message="Expected object of scalar type")
    anything = FLOATS + HALVES + [torch.int64, torch.int32, torch.uint8, torch.bool] + COMPLEX
    for _ in range(60):
        shape = s.shape(max_rank=3, max_size=4)
        other = [s.pick([1, k]) for k in shape]
        a, b, c = (s.sample(s.pick(anything), sizes, low=-3, high=3) for sizes in (shape, other, shape))
        t = {"tolerance": max(tolerance.get(torch.result_type(a, b), 1e-6), 1e-6)}
        if b.dtype.is_complex:
            b = torch.where(b == 0, torch.ones((), dtype=b.dtype), b)
        out.add("div.Tensor", a, b, **t)
        for number in (2, 2.5, 1 - 2j) if a.dtype in COMPLEX else (2, 2.5):
            out.add("div.Scalar", a, number, **t)
            out.add("eq.Scalar", a, number)
            out.add("ne.Scalar", a, number)
        out.add("eq.Tensor", a, b)
        out.add("ne.Tensor", a, b)
        for name in ("logical_and", "logical_or", "logical_xor"):
            out.add(name, a, b)
        condition = s.sample(torch.bool, other)
        out.add("where.self", condition, a, b)
        out.add("masked_fill.Scalar", a, condition, 2)
        out.add("masked_fill.Tensor", a, condition, torch.ones((), dtype=a.dtype))
        same, end, weight = (s.sample(s_dtype, sizes, low=-2, high=2) for s_dtype, sizes in
                             zip([s.pick(COMPLEX + FLOATS)] * 3, (shape, other, shape)))
        t = {"tolerance": 1e-5}
        out.add("lerp.Tensor", same, end, weight, **t)
        for number in (0.25, 0.75, 2) + ((0.25 + 1j,) if same.dtype.is_complex else ()):
            out.add("lerp.Scalar", same, end, number, **t)
            out.add("addcmul", same, end, weight, number, **t)
            out.add("addcdiv", same, end, torch.where(weight == 0, 1, weight), number, **t)
        out.add("ldexp.Tensor", same.clone(memory_format=torch.contiguous_format), s.sample(torch.int32, other, low=-3, high=3, layouts=("packed",)), **t)
    for dtype in INTS + FLOATS + HALVES:
        a, b = s.sample(dtype, [3, 4]), s.sample(dtype, [4], low=1)
        for mode in (None, "floor", "trunc"):
            for divisor in (b, -b) if dtype.is_signed else (b,):
                out.add("div.Tensor_mode", a, divisor, mode, tolerance=tolerance.get(dtype, 1e-6))
            for number in (2, 3):
                out.add("div.Scalar_mode", a, number, mode, tolerance=tolerance.get(dtype, 1e-6))
    for dtype in COMPLEX:
        a = s.sample(dtype, [3, 4], low=1)
        out.add("div.Tensor_mode", a, a, None, tolerance=1e-5)
        out.add("div.Scalar_mode", a, 2 + 1j, None, tolerance=1e-5)
    out.add("div.Tensor_mode", torch.ones(2), torch.ones(2), "up", message="expected rounding_mode to be one of None")
    unary = ["digamma", "special_i0e", "special_i1e", "special_ndtri", "special_airy_ai", "special_modified_bessel_k0",
             "special_modified_bessel_k1", "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1",
             "special_spherical_bessel_j0"]
    ends = torch.tensor([0.0, 0.25, 0.5, 1.0, 2.5, 9.0, 40.0, float("nan")])
    for dtype in FLOATS + [torch.int32]:
        t = {"tolerance": 1e-9 if dtype == torch.float64 else 2e-5}
        for name in unary:
            if dtype != torch.int32:
                out.add(name, ends.to(dtype), **t)
            if "ndtri" not in name and "bessel_k" not in name:
                out.add(name, s.sample(dtype, [3, 5], low=1), **t)
        for n in (0, 1, 2, 4):
            out.add("polygamma", n, s.sample(dtype, [3, 5], low=1), **t)
        if dtype != torch.int32:
            for name in ("igamma", "igammac"):
                out.add(name, s.sample(dtype, [3, 5], low=1), s.sample(dtype, [5], low=1), **t)
                out.add(name, torch.tensor([0.0, 0.0, 1.0, 3.0, -1.0]).to(dtype),
                        torch.tensor([0.0, 2.0, 0.0, 30.0, 1.0]).to(dtype), **t)
        x = s.sample(dtype, [3, 5], low=-1, high=1) / (1 if dtype == torch.int32 else 2)
        n = torch.tensor([0, 1, 2, 3, 5])
        for name in ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
                     "chebyshev_polynomial_w", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
                     "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "hermite_polynomial_h",
                     "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"):
            out.add("special_" + name, x, n.to(dtype), tolerance=1e-4)
            out.add(f"special_{name}.n_scalar", x, 4, tolerance=1e-4)
            out.add(f"special_{name}.n_scalar", x, -1)
            out.add(f"special_{name}.x_scalar", 0.5, n.to(dtype), tolerance=1e-4)
    out.add("polygamma", -1, torch.ones(2), message="does not support negative n")
    for flags in (torch.tensor([True, False]), torch.tensor([True]), torch.zeros(0, dtype=torch.bool)):
        out.add("_is_all_true", flags)
        out.add("_is_any_true", flags)
    out.add("_assert_async", torch.tensor(2.5))
    out.add("_assert_async", torch.tensor([0]), message="Expected Tensor with single nonzero value, but got zero")
    out.add("_assert_async.msg", torch.tensor(True), "it is zero")
    out.add("_assert_async.msg", torch.tensor(0.0), "it is zero", message="it is zero")
    out.add("_functional_assert_async.msg", torch.tensor(True), "it is zero", torch.ones(2))
    out.add("_functional_assert_async.msg", torch.tensor(False), "it is zero", torch.ones(2), message="it is zero")
    for dtype in INTS:
        a = s.sample(dtype, [2, 3])
        out.add("addcmul", a, a, a, 3)
        for number in (0, 1, 2, 3):
            out.add("pow.Tensor_Scalar", a, number)
        out.add("pow.Scalar", 2, s.sample(dtype, [2, 3], low=0, high=5))
        out.add("pow.Scalar", 1, a)
    for dtype in COMPLEX:
        a = s.sample(dtype, [2, 3], low=-2, high=2)
        for number in (0, 1, 2, 0.5, -1, 3.7, 1 + 1j):
            out.add("pow.Tensor_Scalar", a, number, tolerance=2e-4)
            if number != 0:
                out.add("pow.Scalar", number, a, tolerance=2e-4)
    out.add("pow.Tensor_Scalar", torch.tensor([2]), -1, message="Integers to negative integer powers are not allowed")
    out.add("pow.Tensor_Scalar", torch.tensor([2, 3]), 0.5, tolerance=1e-6)
    for dtype in FLOATS + [torch.bfloat16]:
        a, b = s.sample(dtype, [3, 4], special=0.2), s.sample(dtype, [4], special=0.2)
        out.add("nextafter", a, b)
        out.add("nextafter", a, a)
    for dtype in COMPLEX + FLOATS + HALVES:
        t = {"tolerance": max(tolerance[dtype], 1e-5)}
        a = s.sample(dtype, [2, 3, 4], low=-2, high=2)
        out.add("mean", a, None, **t)
        out.add("prod", a, None, **t)
        for d, keep in ((1, False), (-1, True)):
            out.add("mean.dim", a, [d], keep, None, **t)
            out.add("prod.dim_int", a, d, keep, None, **t)
        for d, keep in (([0, 2], False), (None, True), ([1], True)):
            out.add("mean.dim", a, d, keep, None, **t)
            for correction in (None, 0, 2, 0.5):
                out.add("var.correction", a, d, correction, keep, **t)
                out.add("var_mean.correction", a, d, correction, keep, **t)
    out.add("mean", torch.ones(2, dtype=torch.int32), 6)
    out.add("mean", torch.ones(2, dtype=torch.int32), None, message="could not infer output dtype")
    out.add("mean.dim", torch.ones(0, 3), [0], False, None)
    out.add("var.correction", torch.ones(1, 3), [0], 1, False)
    for dtype in anything + [torch.int8]:
        a = s.sample(dtype, [2, 3, 4], low=-1, high=1)
        out.add("any", a)
        out.add("any.dim", a, 1, False)
        out.add("any.dims", a, [0, -1], True)
        out.add("any.dims", a, None, False)
        if not dtype.is_floating_point and not dtype.is_complex:
            out.add("prod", a, None)
            out.add("prod.dim_int", a, -1, False, None)


def lists(out, s):
    t = {"tolerance": 1e-5}
    unary = ["acos", "asin", "atan", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p", "log2", "sigmoid", "sin",
             "sinh", "tan", "tanh", "neg", "reciprocal", "rsqrt", "sqrt", "erf", "erfc", "lgamma", "ceil", "floor",
             "frac", "round", "trunc", "abs", "zero"]
    for name in unary:
        for dtype in (torch.float32, torch.float64, torch.complex64, torch.int32):
            if dtype.is_complex and name in ("erf", "erfc", "lgamma", "ceil", "floor", "frac", "round", "trunc"):
                continue
            if dtype == torch.int32 and name == "frac":
                continue
            low = 1 if name in ("log", "log2", "log10", "sqrt", "rsqrt", "lgamma", "reciprocal") else -2
            many = [s.sample(dtype, shape, low=low, high=3, layouts=("packed", "permuted")) for shape in ([2, 3], [4])]
            out.add("_foreach_" + name, many, tolerance=2e-5)
    for dtype in (torch.float32, torch.complex128, torch.int32):
        lists = [[s.sample(dtype, shape, low=1, high=4, layouts=("packed", "permuted")) for shape in ([2, 3], [4], [])]
                 for _ in range(3)]
        a, b, c = lists
        numbers = [2, 3, 1] if dtype == torch.int32 else [2.5, -1.0, 3.0]
        for name in ("add", "sub"):
            out.add(f"_foreach_{name}.List", a, b, 2, **t)
        for name in ("mul", "div", "pow"):
            out.add(f"_foreach_{name}.List", a, b, **t)
        for name in ("add", "sub", "mul", "div", "pow"):
            out.add(f"_foreach_{name}.Scalar", a, 2, **t)
            out.add(f"_foreach_{name}.ScalarList", a, numbers, **t)
        out.add("_foreach_pow.ScalarAndTensor", 2, a, **t)
        for name in ("addcmul", "addcdiv"):
            if name == "addcmul" or dtype != torch.int32:
                out.add(f"_foreach_{name}.Scalar", a, b, c, 2, **t)
                out.add(f"_foreach_{name}.ScalarList", a, b, c, numbers, **t)
        if dtype != torch.int32:
            out.add("_foreach_lerp.List", a, b, c, **t)
    one = [torch.ones(2)]
    out.add("_foreach_mul.List", one, one * 2, message="Tensor lists must have the same number of tensors, got 1 and 2")
    out.add("_foreach_exp", [], message="Tensor list must have at least one tensor")


def main():
    torch.set_num_threads(1)
    out = Atens("movement.cases")
    movement(out, Samples(13))
    out.out.close()
    out = Atens("functions.cases")
    functions(out, Samples(12))
    out.out.close()
    out = Atens("lists.cases")
    lists(out, Samples(14))
    out.out.close()


main()
