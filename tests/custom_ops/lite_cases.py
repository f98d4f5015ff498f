"""Cases of make_by_name_cases.py for the operators that only Inductor's lite mode calls by name."""
import torch

from aten_cases import COMPLEX, F, FLOATS, GAPLESS, HALVES, INTS, SMALL, TIGHT

# The dtype's number -> a dtype to view its elements as, of the same or another size.
NUMBERED_AS = {torch.float32: 3, torch.bfloat16: 2, torch.complex64: 7, torch.int16: 5, torch.bool: 0}


def elementwise(out, s):
    anything = FLOATS + HALVES + INTS + [torch.bool]
    for dtype in anything:
        t = {"tolerance": {torch.float32: 1e-5, torch.float64: 1e-12}.get(dtype, SMALL.get(dtype, 1e-5))}
        real = dtype.is_floating_point
        a, b = s.sample(dtype, [3, 5], special=0.1 if real else 0), s.sample(dtype, [5])
        for name in ("lt", "le", "gt", "ge"):
            out.add(name + ".Tensor", a, b)
            out.add(name + ".Tensor", a, s.sample(s.pick(anything), [3, 1]))
            for number in (2, 1.5, True):
                out.add(name + ".Scalar", a, number)
        for name in ("isposinf", "isneginf", "signbit", "sign", "nan_to_num", "deg2rad", "rad2deg", "logit", "sinc", "erf",
                     "erfc", "lgamma", "ceil", "floor", "frac", "round", "trunc", "bitwise_not"):
            if name in ("ceil", "floor", "frac", "round", "trunc") and (dtype == torch.bool or name == "frac" and not real):
                continue
            if name == "bitwise_not" and real:
                continue
            x = a
            if name == "lgamma":
                x = s.sample(dtype, [3, 5], low=1)
            if name == "logit":
                x = s.sample(dtype, [3, 5], low=0, high=1)
                out.add(name, x, 0.125, **t)
            more = {"nan_to_num": (None,) * 3, "logit": (None,)}.get(name, ())
            out.add(name, x, *more, **({} if name in ("ceil", "floor", "round", "trunc") else t))
        if real:
            out.add("nan_to_num", a, 1.5, 2.5, -3.0)
            for decimals in (1, -1, 2, 0):
                out.add("round.decimals", s.sample(dtype, [3, 5]), decimals, **t)
            out.add("frexp.Tensor", s.sample(dtype, [3, 5]))
        for name in ("maximum", "minimum", "fmax", "fmin"):
            out.add(name, a, b)
            out.add(name, a, s.sample(s.pick(anything), [3, 1]))
        out.add("heaviside", a, b)
        for elements in (a, s.sample(dtype, [])) if dtype != torch.bool else ():
            out.add("isin.Tensor_Tensor", elements, b, False, False)
            out.add("isin.Tensor_Tensor", elements, b, False, True)
            out.add("isin.Tensor_Scalar", elements, 2, False, False)
            out.add("isin.Scalar_Tensor", 2, b, False, False)
        for name in ("atan2", "copysign.Tensor", "xlogy.Tensor"):
            out.add(name, s.sample(dtype, [3, 5]), s.sample(s.pick(anything), [5], low=1), **t)
        out.add("copysign.Scalar", a, -2.5, **t)
        out.add("xlogy.Scalar_Other", s.sample(dtype, [3]), 2, **t)
        out.add("xlogy.Scalar_Self", 2, s.sample(dtype, [3], low=1), **t)
        if dtype == torch.bool:
            out.add("bitwise_xor.Tensor", a, b)
            continue
        for low, high in ((1, 2), (3, 1), (None, 1), (0.5, None), (1.5, 2)):
            out.add("clamp", a, low, high)
        out.add("clamp_min", a, 2)
        out.add("clamp_max", a, 2)
        for low, high in ((s.sample(dtype, [5]), s.sample(dtype, [3, 1])), (None, s.sample(dtype, [5])),
                          (s.sample(dtype, [5]), None)):
            out.add("clamp.Tensor", a, low, high)
        out.add("clamp_min.Tensor", a, b)
        out.add("clamp_max.Tensor", a, b)
        c = s.sample(dtype, [5], low=0) + 1
        for d in (c, -c) if dtype.is_signed else (c,):
            for name in ("remainder", "fmod"):
                x = s.sample(dtype, [3, 5])
                out.add(name + ".Tensor", x, d, **t)
                out.add(name + ".Scalar", x, 3, **t)
            out.add("remainder.Scalar_Tensor", 7, d, **t)
        out.add("rsub.Tensor", a, b, 2, **t)
        out.add("rsub.Scalar", a, 3, 2, **t)
        for name, more in (("relu", ()), ("hardtanh", (-1, 2)), ("threshold", (1, 3))):
            if name == "hardtanh" and dtype == torch.uint8:
                continue
            out.add(name, s.sample(dtype, [3, 5]) if dtype in HALVES else a, *more)
        out.add("threshold_backward", b.expand(3, 5), a, 1)
        if not real:
            out.add("bitwise_xor.Tensor", a, b)
            out.add("lcm", a, b)
            continue
        for name in ("hypot", "logaddexp", "logaddexp2"):
            out.add(name, s.sample(dtype, [3, 5]), s.sample(dtype, [5]), **t)
        x, g = s.sample(dtype, [3, 4], low=-4, high=4), s.sample(dtype, [3, 4])
        t = {"tolerance": 4 * t["tolerance"]}
        for name, more in (("elu", (1.0, 1.0, 1.0)), ("elu", (0.5, 2, 1.5)), ("celu", (1.5,)), ("gelu", ("none",)),
                           ("gelu", ("tanh",)), ("glu", (-1,)), ("hardsigmoid", ()), ("hardswish", ()),
                           ("hardshrink", (0.5,)), ("softshrink", (0.5,)), ("leaky_relu", (0.1,)), ("mish", ()),
                           ("softplus", (1, 20)), ("softplus", (2, 3)), ("log_sigmoid_forward", ())):
            out.add(name, x, *more, **t)
        for name, more in (("gelu_backward", ("none",)), ("gelu_backward", ("tanh",)), ("hardsigmoid_backward", ()),
                           ("hardswish_backward", ()), ("hardtanh_backward", (-1, 2)),
                           ("leaky_relu_backward", (0.1, False)), ("mish_backward", ()), ("silu_backward", ()),
                           ("softplus_backward", (2, 3)), ("log_sigmoid_backward", (torch.exp(-x.abs()),))):
            out.add(name, g, x, *more, **t)
        out.add("glu_backward", s.sample(dtype, [3, 2]), x, -1, **t)
        for is_result in (False, True):
            out.add("elu_backward", g, 1.0, 2.0, 1.0, is_result, x / 4, **t)
        out.add("_prelu_kernel", x, s.values(dtype, [4]), **t)
        out.add("_prelu_kernel_backward", g, x, s.values(dtype, [4]), **t)
        y = torch.rand(3, 4, generator=s.g).to(dtype)
        out.add("sigmoid_backward", g, y, **t)
        out.add("tanh_backward", g, y, **t)
        out.add("logit_backward", g, y * 0.5 + 0.25, None, **t)
        out.add("logit_backward", g, y, 0.25, **t)
        out.add("native_dropout_backward", g, y > 0.5, 1.25, **t)
    for dtype in COMPLEX:
        t = {"tolerance": TIGHT[dtype]}
        out.add("logaddexp", s.sample(dtype, [3, 5], low=-2, high=2), s.sample(dtype, [5], low=-2, high=2), **t)
        x, g = s.sample(dtype, [3, 4], low=-2, high=2), s.sample(dtype, [3, 4])
        for name in ("sigmoid_backward", "tanh_backward", "silu_backward"):
            out.add(name, g, x, **t)
        out.add("sinc", x, **t)
    ends = torch.tensor([0.0, 0.25, 1.0, 2.5, 9.0, 40.0, float("nan")])
    for dtype in FLOATS:
        t = {"tolerance": 1e-10 if dtype == torch.float64 else 3e-5}
        for name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "entr", "modified_bessel_i0", "modified_bessel_i1"):
            if "bessel_j" in name or "bessel_y" in name:  # as exact as PyTorch's
                t = {"tolerance": 1e-6 if dtype == torch.float64 else 3e-5}
            out.add("special_" + name, ends.to(dtype), **t)
            out.add("special_" + name, -ends.to(dtype), **t)
    ints = torch.tensor([1, 2])
    out.add("remainder.Tensor", ints, ints - 1, message="ZeroDivisionError")
    out.add("fmod.Tensor", ints, ints - 1, message="ZeroDivisionError")
    out.add("clamp", ints, None, None, message="At least one of 'min' or 'max' must not be None")
    out.add("lt.Tensor", ints, ints.to(torch.complex64), message="")
    out.add("relu", ints > 1, message="Boolean inputs not supported")
    out.add("heaviside", ints, ints.float(), message="not yet implemented for tensors with different dtypes")
    out.add("glu", torch.ones(3, 3), 0, message="Halving dimension must be even, but dimension 0 is size 3")
    out.add("gelu", torch.ones(2), "sin", message="approximate argument must be either none or tanh")


def reductions(out, s):
    for dtype in FLOATS + HALVES + INTS + [torch.bool]:
        real = dtype.is_floating_point
        t = {"tolerance": TIGHT.get(dtype, 1e-5)}
        a = s.sample(dtype, [3, 2, 4], special=0.1 if real else 0)
        for dims, keep in (([], False), ([1], True), ([0, -1], False)):
            out.add("amin", a, dims, keep)
        for d, keep in ((0, False), (-1, True)):
            out.add("aminmax", a, d, keep)
            out.add("max.dim", a, d, keep)
            out.add("min.dim", a, d, keep)
            if dtype != torch.bool:
                out.add("argmax", a, d, keep)
                out.add("argmin", a, d, keep)
            out.add("all.dim", a, d, keep)
            out.add("count_nonzero", a, d)
        if dtype != torch.bool:
            out.add("argmax", a, None, False)
            out.add("argmin", a, None, True)
        for name in ("max", "min", "all"):
            out.add(name, a)
        out.add("aminmax", a, None, False)
        out.add("all.dims", a, [0, 2], True)
        out.add("all.dims", a, None, False)
        out.add("count_nonzero", a, None)
        out.add("count_nonzero.dim_IntList", a, [0, 2])
        out.add("nansum", a, [1], False, None, **t)
        out.add("nansum", a, None, True, None, **t)
        if dtype != torch.bool:
            out.add("trace", s.sample(dtype, [3, 4]), **t)
        if dtype != torch.bool:
            out.add("logsumexp", s.sample(dtype, [3, 4], low=-3, high=3), [1], False, **t)
            out.add("logsumexp", s.sample(dtype, [3, 4], low=-3, high=3), [0, 1], True, **t)
            out.add("linalg_cross", s.sample(dtype, [2, 3], low=-3, high=3), s.sample(dtype, [2, 3], low=-3, high=3), -1,
                    tolerance=4 * t["tolerance"])
            v = s.sample(dtype, [4], low=-3, high=3)
            w = s.sample(dtype, [4], low=-3, high=3)
            out.add("dot", v, w, **t)
            if dtype not in HALVES:
                out.add("vdot", v, w, **t)
            out.add("mv", s.sample(dtype, [3, 4], low=-3, high=3), v, tolerance=4 * t["tolerance"])
        out.add("addr", s.sample(dtype, [3, 4]), s.sample(dtype, [3]), s.sample(dtype, [4]),
                *((True, True) if dtype == torch.bool else (2, 3)), tolerance=4 * t["tolerance"])
    for dtype in FLOATS + HALVES + COMPLEX:
        t = {"tolerance": 4 * TIGHT[dtype]}
        a = s.sample(dtype, [3, 2, 4], low=-2, high=2)
        for order in (2, 1, 0, 3, float("inf"), -float("inf"), 0.5):
            out.add("linalg_vector_norm", a, order, None, False, None, **t)
            out.add("linalg_vector_norm", a, order, [1, -1], True, None, **t)
            out.add("norm.ScalarOpt_dim", a, order, [1], False, **t)
            out.add("norm.Scalar", a, order, **t)
            if dtype not in HALVES:
                out.add("dist", a, s.sample(dtype, [2, 4], low=-2, high=2), order, **t)
        out.add("norm.ScalarOpt_dim", a, None, [0], True, **t)
        if not dtype.is_complex:
            out.add("norm.ScalarOpt_dim_dtype", a, 2, [0], True, 7, tolerance=1e-6)
        for correction in (None, 0, 2):
            out.add("std.correction", a, [1, 2], correction, False, **t)
            out.add("std_mean.correction", a, None, correction, True, **t)
        for p in (1, 2, 3.5):
            out.add("renorm", a, p, 1, 2.5, **t)
        if dtype.is_complex:
            v, w = s.sample(dtype, [4]), s.sample(dtype, [4])
            for name in ("dot", "vdot"):
                out.add(name, v, w, **t)
            out.add("mv", s.sample(dtype, [3, 4]), v, **t)
            out.add("addr", s.sample(dtype, [3, 4]), s.sample(dtype, [3]), v, 1j, 2, **t)
            out.add("linalg_cross", s.sample(dtype, [3, 2]), s.sample(dtype, [3, 2]), 0, **t)
            out.add("count_nonzero", v, None)
    for dtype in FLOATS:
        out.add("_euclidean_dist", s.sample(dtype, [3, 4]), s.sample(dtype, [5, 4]),
                tolerance=1e-3 if dtype == torch.float32 else 1e-9)
    f8 = torch.float8_e4m3fn
    x, y = s.values(torch.float32, [16, 32], -2, 2).to(f8), s.values(torch.float32, [16, 32], -2, 2).to(f8).t()
    for out_dtype in (6, 15):
        out.add("_scaled_mm_v2", x, y, [torch.tensor([2.0])], [0], [0], [torch.tensor([3.0])], [0], [0], None, out_dtype,
                [], False, tolerance=1e-2)
        out.add("_scaled_mm_v2", x, y, [s.values(torch.float32, [16, 1], 1, 3)], [1], [0],
                [s.values(torch.float32, [1, 16], 1, 3)], [1], [0], None, out_dtype, [], False, tolerance=1e-2)
    out.add("max", torch.empty(0), message="Expected reduction dim to be specified for input.numel() == 0")
    out.add("argmax", torch.ones(2, 0), 1, False, message="Expected reduction dim 1 to have non-zero size")
    out.add("linalg_vector_norm", torch.ones(2, dtype=torch.int32), 2, None, False, None, message="Expected a floating point or complex tensor")
    out.add("dot", torch.ones(2), torch.ones(3), message="inconsistent tensor size")


def rearrangements(out, s):
    for dtype in (torch.float32, torch.bfloat16, torch.complex64, torch.int16, torch.bool):
        a = s.sample(dtype, [2, 3, 4])
        out.add("alias_copy", a)
        out.add("expand_copy", s.sample(dtype, [1, 3]), [4, 2, 3], False)
        out.add("diagonal_copy", a, 1, 0, -1)
        out.add("permute_copy", a, [2, 0, 1])
        one = s.sample(dtype, [1, 3, 1])
        out.add("squeeze_copy", one)
        out.add("squeeze_copy.dim", one, 0)
        out.add("squeeze_copy.dims", one, [0, 2])
        out.add("view_copy.dtype", s.sample(dtype, [2, 3], layouts=("packed",)), NUMBERED_AS[dtype])
        out.add("t_copy", s.sample(dtype, [2, 3]))
        out.add("transpose_copy.int", a, 0, -1)
        out.add("unbind_copy.int", a, 1)
        out.add("unfold_copy", a, 2, 2, 1)
        out.add("unsqueeze_copy", a, -1)
        out.add("narrow_copy", a, 1, 1, 2)
        out.add("_unsafe_view", a.contiguous(), [6, -1])
        out.add("unsafe_split.Tensor", a, 2, 2)
        out.add("unsafe_split_with_sizes", a, [1, 3], -1)
        for shifts, dims in (([1], [0]), ([-2, 1], [2, 1]), ([5], []), ([0], [1])):
            out.add("roll", a, shifts, dims)
        for k in (0, 1, 2, 3, -1):
            out.add("rot90", a, k, [0, 2])
        for offset, d1, d2 in ((0, -2, -1), (1, 0, 2), (-2, -1, 1)):
            out.add("diag_embed", a, offset, d1, d2)
        for k in (0, 1, -1, 5, -5):
            out.add("tril", a, k)
            out.add("triu", a, k)
        out.add("block_diag", [s.sample(dtype, [2, 3]), s.sample(dtype, [2]), s.sample(dtype, []), s.sample(dtype, [1, 2])])
        image = s.sample(dtype, [2, 4, 2, 6])
        out.add("channel_shuffle", image, 2)
        out.add("pixel_shuffle", image, 2)
        out.add("pixel_unshuffle", image, 2)
        out.add("_chunk_cat", [s.sample(dtype, [3, 2]), s.sample(dtype, [4, 3])], 0, 2)
        index = torch.tensor([[0, 23, -1], [5, 5, 7]])
        out.add("take", a, index)
        out.add("put", s.sample(dtype, [2, 3, 4], **GAPLESS), torch.tensor([0, 23, -3]), s.sample(dtype, [3]), False)
        out.add("put", s.sample(dtype, [2, 3, 4], **GAPLESS), torch.tensor([0, 0, -3]), s.sample(dtype, [3]), True,
                tolerance=2e-2 if dtype == torch.bfloat16 else 1e-6)
        base = s.sample(dtype, [2, 3, 4], **GAPLESS)
        out.add("index_copy", base, 1, torch.tensor([2, 0]), s.sample(dtype, [2, 2, 4]))
        out.add("index_fill.int_Scalar", base, -1, torch.tensor([2, 0]), 1)
        out.add("index_fill.int_Tensor", base, 0, torch.tensor([-1]), torch.ones((), dtype=dtype))
        out.add("select_backward", s.sample(dtype, [2, 4]), [2, 3, 4], 1, -1)
        out.add("slice_backward", s.sample(dtype, [2, 2, 4]), [2, 3, 4], 1, 0, 3, 2)
        if dtype != torch.bool:
            t = {"tolerance": 4e-2 if dtype == torch.bfloat16 else 1e-5}
            out.add("unfold_backward", s.sample(dtype, [2, 2, 4, 2]), [2, 3, 4], 1, 2, 1, **t)
            out.add("unfold_backward", s.sample(dtype, [2, 3, 2, 3]), [2, 3, 6], 2, 3, 2, **t)
        if dtype.is_floating_point or dtype.is_complex:
            t = {"tolerance": 4e-2 if dtype == torch.bfloat16 else 1e-5}
            out.add("im2col", image, [2, 3], [1, 2], [1, 0], [1, 1])
            out.add("im2col", image[0], [2, 2], [1, 1], [0, 1], [2, 1])
            out.add("col2im", s.sample(dtype, [2, 24, 6]), [2, 6], [2, 3], [1, 2], [1, 0], [1, 1], **t)
            out.add("col2im", s.sample(dtype, [8, 7]), [2, 6], [2, 2], [1, 1], [0, 1], [1, 1], **t)
        for n, shape in ((1, [2, 3, 4]), (2, [2, 3, 4, 5]), (3, [1, 2, 3, 4, 5])):
            if dtype in (torch.bool, torch.int16):
                continue
            x = s.sample(dtype, shape, layouts=("packed",))
            padding = [1, 2, 0, 1, 2, 0][:2 * n]
            for kind in ("reflection", "replication"):
                grown = out.add(f"{kind}_pad{n}d", x, padding)
                if kind == "reflection" and dtype == torch.float32 or n < 3 and dtype == torch.float32:
                    out.add(f"{kind}_pad{n}d_backward", s.sample(dtype, list(grown.shape), layouts=("packed",)), x,
                            padding, tolerance=1e-5)
    for dtype in (None, 7, 5, 3):
        for name, args in (("arange", (5,)), ("arange.start", (2, 7)), ("arange.start_step", (7, -2, -3))):
            out.add(name, *args, dtype, *F[1:])
        for name, args in (("eye", (3,)), ("eye.m", (2, 4)), ("new_ones", (torch.ones(2, dtype=torch.int16), [2, 3]))):
            out.add(name, *args, dtype, *F[1:])
        for steps in (0, 1, 4, 7):
            t = {"tolerance": {5: 2e-3, 7: 1e-12}.get(dtype, 2e-6)}
            out.add("linspace", -3, 5.5, steps, dtype, *F[1:], **t)
            out.add("logspace", 0, 2, steps, 3.0, dtype, *F[1:], **t)
        start, end = torch.tensor(1), torch.tensor(3.5)
        out.add("linspace.Tensor_Tensor", start, end, 4, dtype, *F[1:], **t)
        out.add("linspace.Tensor_Scalar", start, 3.5, 4, dtype, *F[1:], **t)
        out.add("linspace.Scalar_Tensor", 1, end, 4, dtype, *F[1:], **t)
        out.add("logspace.Tensor_Tensor", start, end, 4, 2.0, dtype, *F[1:], **t)
        out.add("logspace.Tensor_Scalar", start, 3.5, 4, 2.0, dtype, *F[1:], **t)
        out.add("logspace.Scalar_Tensor", 1, end, 4, 2.0, dtype, *F[1:], **t)
    for name, args in (("arange", (4.5,)), ("arange.start", (0.5, 4)), ("arange.start_step", (1, 2, 0.25))):
        out.add(name, *args, *F, tolerance=1e-6)
    for name in ("tril_indices", "triu_indices"):
        for row, column, offset in ((3, 4, 0), (4, 3, -1), (3, 3, 2), (0, 3, 0)):
            out.add(name, row, column, offset, 4, *F[1:])
    out.add("zero", s.sample(torch.float32, [2, 3], **GAPLESS))
    out.add("arange.start_step", 5, 0, 1, *F, message="upper bound and lower bound inconsistent with step sign")
    out.add("linspace", 0, 1, -1, *F, message="number of steps must be non-negative")
    out.add("take", torch.ones(3), torch.tensor([3]), message="out of range: tried to access index 3 on a tensor of 3 elements")
    out.add("pixel_shuffle", torch.ones(1, 3, 2, 2), 2, message="is not divisible by")
    out.add("index_copy", torch.ones(3), 0, torch.tensor([0, 1]), torch.ones(3), message="Number of indices (2) should be equal")
    out.add("tril", torch.ones(3), 0, message="must have at least 2 dimensions")


def more_random(out, s):
    def add(name, *args, **options):
        torch.manual_seed(1234)
        out.add(name, *args, **options)

    for dtype in FLOATS + HALVES:
        a = torch.zeros(3, 7, dtype=dtype)
        t = {"tolerance": {torch.float32: 1e-6, torch.float64: 1e-12}.get(dtype, SMALL.get(dtype))}
        add("cauchy", a, 0.5, 2.0, None, **t)
        add("log_normal", a, 0.5, 1.5, None, **t)
        add("geometric", a, 0.3, None)
    add("geometric", torch.zeros(5, dtype=torch.int32), 0.1, None)
    add("normal.float_float", 0.5, 2.0, [3, 50], None, None, None, None, None, tolerance=1e-6)
    add("geometric", torch.zeros(2), 1.5, None, message="geometric_ expects p to be in (0, 1)")


def more_norms(out, s):
    x = s.values(torch.float32, [4, 3])
    w, b, rm, rv = s.values(torch.float32, [3]), s.values(torch.float32, [3]), torch.zeros(3), torch.ones(3)
    t = {"tolerance": 1e-5}
    out.add("_native_batch_norm_legit.no_stats", x, w, b, True, 0.1, 1e-5, **t)
    out.add("_native_batch_norm_legit_no_training", x, w, b, rm, rv, 0.1, 1e-5, **t)
    for training in (True, False):
        out.add("_native_batch_norm_legit_functional", x, w, None, rm, rv, training, 0.1, 1e-5, **t)
    out.add("_batch_norm_with_update_functional", x, w, b, rm, rv, 0.1, 1e-5, **t)
    out.add("_batch_norm_no_update", x, w, b, rm, rv, 0.1, 1e-5, **t)


PARTS = [elementwise, reductions, rearrangements, more_random, more_norms]
