"""Writes tests/data/aten.cases: PyTorch's results for operators that are called by name.

    .venv/bin/python tests/custom_ops/make_aten_cases.py      # torch 2.15

Each case has all arguments, in the order of the schema.
"""
import torch

from aten_cases import COMPLEX, FLOATS, HALVES, INTS, TOLERANCE, Atens, Samples, check_covered


def tensors(out, s):
    x = lambda dtype=torch.float32, shape=(2, 3, 4), **k: s.sample(dtype, list(shape), **k)
    for dtype in FLOATS + HALVES + INTS + COMPLEX + [torch.bool]:
        a = x(dtype)
        out.add("clone", a, None)
        out.add("clone", a, 0)
        out.add("contiguous", a, 0)
        out.add("_conj", a) if dtype.is_complex else None
        out.add("_to_copy", a, 7, None, None, None, False, None) if not dtype.is_complex else None
        out.add("zeros_like", a, None, None, None, None, None)
        out.add("ones_like", a, None, None, None, None, None)
        out.add("full_like", a, 1, None, None, None, None, None)
    four = x(shape=(2, 3, 4, 5))
    for f in (0, 1, 2):
        out.add("clone", four, f)
        out.add("zeros_like", four, None, None, None, None, f)
        out.add("to.dtype", four, 7, False, False, f)
        out.add("_to_copy", four, None, None, None, None, False, f)
    out.add("contiguous", four, 2)
    out.add("contiguous", x(shape=(2, 3)), 2, message="rank 4")
    for name in ("alias", "detach", "lift_fresh", "resolve_conj"):
        out.add(name, x())
    a = torch.arange(24.0)
    out.add("as_strided", a, [2, 3], [4, 1], 2)
    out.add("as_strided", a, [2, 3], [4, 1], None)
    for d in (0, 1, -1):
        out.add("cat", [x(), x()], d)
        out.add("stack", [x(), x()], d)
    out.add("stack", [x(), x(shape=(2, 3))], 0, message="expects each tensor to be equal size")
    out.add("copy_", torch.zeros(2, 3, 4), x(torch.int32), False, written=[0])
    out.add("zero_", x(layouts=("packed", "permuted", "sliced")), written=[0])
    out.add("fill_.Scalar", torch.ones(2, 3), 2.5, written=[0])
    out.add("fill_.Scalar", torch.ones(2, dtype=torch.uint8), 300, message="without overflow")
    out.add("fill.Scalar", x(torch.int64), 3)
    for size in ([2, 3], [], [0]):
        out.add("zeros", size, None, None, None, None)
        out.add("ones", size, 3, None, None, None)
        out.add("full", size, 2.5, None, None, None, None)
        out.add("full", size, 2, None, None, None, None)
        out.add("full", size, True, None, None, None, None)
        out.add("new_zeros", x(torch.int16), size, None, None, None, None)
        out.add("new_full", x(torch.int16), size, 5, None, None, None, None)
    for size, strides in (([0, 3], None), ([2, 0], None)):
        out.add("empty.memory_format", size, 7, None, None, None, None)
        out.add("empty_strided", size, [3, 1], None, None, None, None)
        out.add("new_empty", x(torch.int16), size, None, None, None, None)
        out.add("empty_like", torch.empty(size), 4, None, None, None, None)
    out.add("expand", x(shape=(1, 3)), [4, 2, 3], False)
    out.add("expand", x(shape=(1, 3)), [2, -1], False)
    out.add("expand", x(shape=(2, 3)), [4, 3], False, message="")
    for a, b in ((0, -1), (1, 2), (0, 1), (1, 1)):
        out.add("flatten.using_ints", x(), a, b)
        out.add("flatten.using_ints", x().permute(2, 0, 1), a, b)
    out.add("flatten.using_ints", torch.tensor(2.0), 0, -1)
    out.add("flatten.using_ints", x(), 2, 1, message="start_dim cannot come after end_dim")
    out.add("is_pinned", x(), None)
    out.add("narrow", x(), 1, 1, 2)
    out.add("pad", x(), [1, 2], "constant", 2.0)
    out.add("pad", x(), [1, 1], "reflect", None)
    out.add("permute", x(), [2, 0, 1])
    out.add("reshape", x(), [4, -1])
    out.add("view", x(layouts=("packed",)), [6, -1])
    out.add("view", torch.zeros(3, 4).t(), [12], message="size is not compatible with input tensor's size and stride")
    out.add("view_copy", x(layouts=("packed",)), [6, -1])
    out.add("resize_", torch.arange(12.0), [3, 2], None, written=[0])
    out.add("resize_as_", torch.arange(12.0), torch.zeros(2, 3), None, written=[0])
    out.add("set_.source_Tensor", torch.arange(3.0), torch.arange(12.0).view(3, 4).t(), written=[0])
    for d, i in ((0, 1), (-1, -2), (1, 2)):
        out.add("select.int", x(), d, i)
    out.add("select.int", x(), 1, 3, message="index 3 out of range")
    out.add("slice.Tensor", x(), 2, 1, None, 2)
    out.add("split.Tensor", x(), 2, 2)
    out.add("split.Tensor", x(), 3, 2)
    out.add("split_with_sizes", x(), [1, 3], 2)
    out.add("split_with_sizes", x(), [1, 2], 2, message="to sum exactly to 4")
    out.add("split_with_sizes_copy", x(), [1, 3], -1)
    out.add("unbind.int", x(), 1)
    out.add("squeeze", x(shape=(1, 3, 1)))
    out.add("squeeze.dim", x(shape=(1, 3, 1)), 0)
    for t in (x(shape=(2, 3)), x(shape=(3,)), torch.tensor(1.0)):
        out.add("t", t)
    out.add("t", x(), message="expects a tensor with <= 2 dimensions")
    out.add("to.dtype", x(), 3, False, False, None)
    out.add("to.dtype_layout", x(), 7, None, None, None, False, True, None)
    out.add("to.dtype_layout", x(), None, None, None, None, False, False, None)
    out.add("transpose.int", x(), 0, -1)
    for d in (0, 3, -1, -4):
        out.add("unsqueeze", x(), d)
    out.add("unsqueeze", x(), 4, message="Dimension out of range")
    out.add("view.dtype", x(layouts=("packed",)), 3)
    out.add("view_as_complex", x(shape=(3, 2), layouts=("packed",)))
    out.add("view_as_real", x(torch.complex64))


def windows(out):
    f = (None, None, None, None)
    for n in (0, 1, 2, 5, 8):
        t = {"tolerance": 2e-6}
        for name in ("bartlett_window", "blackman_window", "hamming_window", "kaiser_window"):
            out.add(name, n, *f, **t)
            for periodic in (False, True):
                out.add(name + ".periodic", n, periodic, *f, **t)
                out.add(name + ".periodic", n, periodic, 7, *f[1:], tolerance=1e-6)
        out.add("hamming_window.periodic_alpha", n, False, 0.6, *f, **t)
        out.add("hamming_window.periodic_alpha_beta", n, True, 0.6, 0.3, *f, **t)
        out.add("kaiser_window.beta", n, True, 6.5, *f, **t)
        if n > 0:
            for d in (1.0, 0.25):
                out.add("fft_fftfreq", n, d, *f, **t)
                out.add("fft_rfftfreq", n, d, 7, *f[1:], tolerance=1e-12)
    out.add("hamming_window", -1, *f, message="requires non-negative window_length, got window_length=-1")
    out.add("kaiser_window", 3, 3, *f[1:], message="expects floating point dtypes, got")


def resampling(out, s):
    for name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "_upsample_lanczos2d_aa"):
        for dtype in FLOATS + [torch.uint8]:
            for shape in ([2, 3, 6, 5], [1, 1, 4, 5]):
                a = s.sample(dtype, shape, low=0, high=255, layouts=("packed", "sliced"))
                if shape[1] > 1:
                    a = s.pick([a, a.contiguous(memory_format=torch.channels_last)])
                for size in ([4, 3], [8, 9], [2, 11]):
                    for corners in (False, True) if dtype != torch.uint8 else (False,):
                        t = {} if dtype == torch.uint8 else {"tolerance": 2e-4 if dtype == torch.float32 else 1e-10}
                        out.add(name, a, size, corners, None, None, **t)
                        if dtype.is_floating_point and "lanczos" not in name:
                            g = torch.ones(*shape[:2], *size, dtype=dtype) * s.values(dtype, [1, shape[1], 1, size[1]])
                            out.add(name + "_backward", g, size, list(shape), corners, None, None, **t)
                out.add(name, a, [5, 4], False, 0.5, 0.6, tolerance=2e-4 if dtype.is_floating_point else 0)
    out.add("_upsample_bilinear2d_aa", torch.ones(1, 1, 2, 2), [0, 2], False, None, None,
            message="sizes should be greater than 0")


def quantisation(out, s):
    for dtype in FLOATS[:1] + HALVES:
        a = s.sample(dtype, [3, 4, 5], low=-3, high=3)
        t = {"tolerance": {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(dtype, 0)}
        for scale, zero in ((0.1, 3), (0.02, 127), (1.5, 0)):
            out.add("fake_quantize_per_tensor_affine_cachemask", a, scale, zero, 0, 255, **t)
            for on in (0, 1):
                out.add("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", a, torch.tensor([scale]),
                        torch.tensor([zero], dtype=torch.int32), torch.tensor([on]), -128, 127, **t)
        for axis in (0, 1, 2):
            n = a.shape[axis]
            scale = torch.rand(n, generator=s.g) + 0.01
            out.add("fake_quantize_per_channel_affine_cachemask", a, scale,
                    torch.randint(-5, 5, (n,), generator=s.g).int(), axis, -8, 7, **t)
            out.add("fake_quantize_per_channel_affine_cachemask", a, scale, torch.rand(n, generator=s.g), axis, -8, 7,
                    tolerance=max(t["tolerance"], 1e-6))
    a = torch.ones(2, 3)
    out.add("fake_quantize_per_tensor_affine_cachemask", a, 1.0, 0, 5, 4, message="`quant_min` should be")
    out.add("fake_quantize_per_channel_affine_cachemask", a, torch.ones(2), torch.zeros(2).int(), 1, 0, 5,
            message="dimensions of scale and zero-point are not consistent")
    for dtype in FLOATS + HALVES:
        g, x = s.sample(dtype, [3, 4]), s.sample(dtype, [3, 4], low=-1, high=1)
        for name in ("hardshrink_backward", "softshrink_backward"):
            out.add(name, g, x, 0.5)
            out.add(name, g, x, 0)


def math(out, s):
    anything = FLOATS + HALVES + INTS + COMPLEX + [torch.bool]
    for _ in range(120):
        shape = s.shape(max_rank=3, max_size=4)
        other_shape = [s.pick([1, k]) for k in shape]
        dtype, other = s.pick(anything), s.pick(anything)
        a, b = s.sample(dtype, shape), s.sample(other, other_shape)
        number = s.pick([3, -2, 2.5, True, 0])
        result = torch.result_type(a, b)
        tolerance = {torch.complex64: 1e-5, torch.complex128: 1e-12, torch.complex32: 1e-2, torch.float16: 2e-3,
                     torch.bfloat16: 2e-2}  # ATen rounds the product with alpha only in some layouts
        alpha = s.pick([1, 2, -3]) if result != torch.bool else 1
        out.add("add.Tensor", a, b, alpha, tolerance=tolerance.get(result, 0))
        out.add("mul.Tensor", a, b, tolerance=tolerance.get(result, 0))
        if torch.bool not in (dtype, other):
            out.add("sub.Tensor", a, b, alpha, tolerance=tolerance.get(result, 0))
            out.add("subtract.Tensor", a, b, alpha, tolerance=tolerance.get(result, 0))
            if number is not True:
                out.add("sub.Scalar", a, number, 1, tolerance=tolerance.get(dtype, 0))
                out.add("subtract.Scalar", a, number, 2, tolerance=tolerance.get(dtype, 0))
        out.add("add.Scalar", a, number, 1, tolerance=tolerance.get(dtype, 0))
        out.add("mul.Scalar", a, number, tolerance=tolerance.get(dtype, 0))
    out.add("addmm", torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2), 1, 1j, message="")
    for dtype in INTS:
        m = lambda *shape: s.values(dtype, list(shape), 0, 4)
        out.add("addmm", m(5), m(3, 4), m(4, 5), 2, 3)
        out.add("addmv", m(3), m(3, 4), m(4), 2, 3)
        out.add("addbmm", m(3, 5), m(2, 3, 4), m(2, 4, 5), 1, 2)
    data, lengths = s.values(torch.float32, [6, 2]), torch.tensor([2, 0, 4])
    for reduce in ("sum", "max", "mean"):
        for initial in (None, 0, True, 2.5):
            got = torch.segment_reduce(data, reduce, lengths=lengths, initial=initial)
            out.add("segment_reduce", data, reduce, lengths, None, None, 0, False, initial, tolerance=1e-6)
            out.add("_segment_reduce_backward", torch.ones_like(got), got, data, reduce, lengths, None, 0, initial,
                    tolerance=1e-6)
    for dtype in FLOATS:
        points, weight = s.sample(dtype, [20, 2], low=-2, high=2), s.sample(dtype, [20], low=0, high=3)
        edges = [torch.tensor([-2.0, -0.5, 0.25, 2.0]).to(dtype), torch.tensor([-1.0, 0.0, 1.0]).to(dtype)]
        for w, density in ((None, False), (weight, False), (None, True)):
            out.add("_histogramdd_bin_edges", points, [3, 4], None, w, density, tolerance=1e-6)
            out.add("_histogramdd_bin_edges", points, [3, 4], [-1.0, 1.0, -2.0, 2.0], w, density, tolerance=1e-6)
            out.add("_histogramdd_from_bin_tensors", points, edges, w, density, tolerance=1e-5)
            out.add("histogram.bins_tensor", points[:, 0], edges[0], w, density, tolerance=1e-5)
    out.add("histogram.bins_tensor", torch.ones(3), torch.ones(3).double(), None, False,
            message="input tensor and bins tensors should have the same dtype")
    out.add("histc", data, 5, 0, 0)
    out.add("histc", data, 5, -2, True)
    big = torch.tensor([2**62, -2**63, 2**53 + 1])
    out.add("add.Scalar", big, 2**53 + 1, 1)
    out.add("mul.Scalar", big, 3)
    ints = s.values(torch.int32, [4])
    out.add("add.Tensor", ints, ints, 2.5, message="alpha must not be a floating point number")
    out.add("sub.Tensor", ints > 0, ints > 0, 1, message="with two bool tensors is not supported")
    out.add("sub.Scalar", ints > 0, 1, 1, message="with a bool tensor is not supported")
    for dtype in FLOATS + COMPLEX:
        m = lambda *shape: s.sample(dtype, list(shape), low=-2, high=2)
        t = {"tolerance": 1e-4 if dtype in (torch.float32, torch.complex64) else 1e-11}
        out.add("mm", m(3, 4), m(4, 5), **t)
        out.add("bmm", m(2, 3, 4), m(2, 4, 5), **t)
        out.add("addmm", m(5), m(3, 4), m(4, 5), 2, 3, **t)
        out.add("baddbmm", m(2, 3, 5), m(2, 3, 4), m(2, 4, 5), 1, 2, **t)
        for a, b in (((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)),
                     ((2, 1, 3, 4), (5, 4, 2)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3)), ((0, 4), (4, 3)), ((2, 0), (0, 3))):
            out.add("matmul", m(*a), m(*b), **t)
        out.add("mm.out", m(3, 4), m(4, 5), torch.empty(3, 5, dtype=dtype).zero_(), written=[2], **t)
        for beta, alpha in ((1, 1), (2, 0.5), (0, 3)) + (((1j, 2 + 1j), (0, 1j)) if dtype.is_complex else ()):
            out.add("addmm", m(5), m(3, 4), m(4, 5), beta, alpha, **t)
            out.add("addmm.out", m(5), m(3, 4), m(4, 5), beta, alpha, torch.zeros(3, 5, dtype=dtype), written=[5], **t)
            out.add("baddbmm", m(3, 5), m(2, 3, 4), m(2, 4, 5), beta, alpha, **t)
            out.add("baddbmm.out", m(3, 5), m(2, 3, 4), m(2, 4, 5), beta, alpha, torch.zeros(2, 3, 5, dtype=dtype),
                    written=[5], **t)
            out.add("addmv", m(3), m(3, 4), m(4), beta, alpha, **t)
            out.add("addbmm", m(3, 5), m(2, 3, 4), m(2, 4, 5), beta, alpha, **t)
            if not dtype.is_complex:
                for gelu in (False, True):
                    out.add("_addmm_activation", m(5), m(3, 4), m(4, 5), beta, alpha, gelu, **t)
        out.add("bmm.out", m(2, 3, 4), m(2, 4, 5), torch.zeros(2, 3, 5, dtype=dtype), written=[2], **t)
    out.add("matmul", torch.ones(3), torch.ones(4), message="")
    out.add("matmul", torch.tensor(1.0), torch.ones(4), message="both arguments")
    for dtype in FLOATS + HALVES + INTS + [torch.bool]:
        for shape in ([7], [3, 4], [0], [2, 0], []):
            a = s.sample(dtype, shape, low=-2, high=2, special=0.2 if dtype in FLOATS else 0)
            for inverse, counts in ((False, False), (True, True)):
                out.add("_unique2", a, True, inverse, counts)
                out.add("unique_consecutive", a, inverse, counts, None)
            if len(shape) > 1 and 0 not in shape:
                out.add("unique_consecutive", a, True, True, 1)
        a = s.sample(dtype, [6, 2, 3], low=0, high=1)
        for d in (0, 1, -1):
            out.add("unique_dim", a, d, True, True, True)
            out.add("unique_dim_consecutive", a, d, True, True)
    out.add("unique_dim", torch.ones(0, 3), 0, True, True, True)
    out.add("unique_dim", torch.ones(0, 3), 1, True, True, True, message="There are 0 sized dimensions")
    for dtype in INTS:
        a = torch.randint(0, 9, (20,), generator=s.g).to(dtype)
        out.add("bincount", a, None, 0)
        out.add("bincount", a, None, 12)
        out.add("bincount", a, s.values(torch.float32, [20]), 0)
        out.add("bincount", a, s.values(torch.int32, [20]), 3)
    out.add("bincount", torch.empty(0, dtype=torch.int64), None, 4)
    out.add("bincount", torch.tensor([1, -1]), None, 0, message="only supports 1-d non-negative integral inputs")
    out.add("bincount", torch.tensor([1, 1]), None, -1, message="minlength should be >= 0")
    sequence = torch.tensor([1, 3, 5, 7])
    for value in (3, 4, 2.5):
        for dtype in (torch.int64, torch.float32, torch.uint8):
            out.add("searchsorted.Scalar", sequence.to(dtype), value, False, True, None, None)
    out.add("searchsorted.Tensor", sequence, torch.tensor([[0, 3], [9, 4]]), True, False, "right", None)
    for dtype in INTS + [torch.bool]:
        a, b = s.sample(dtype, [3, 4]), s.sample(dtype, [4])
        out.add("bitwise_and.Tensor", a, b)
        out.add("bitwise_or.Tensor", a, b)
        if dtype != torch.bool:
            out.add("bitwise_left_shift.Tensor", a, b)
            out.add("bitwise_right_shift.Tensor", a, b)
    for dtype in INTS + FLOATS + HALVES:
        a, b = s.sample(dtype, [3, 4]), s.sample(dtype, [4], low=1)
        out.add("floor_divide", a, b)
        if dtype.is_signed:
            out.add("floor_divide", a, -b)
    out.add("floor_divide", torch.tensor([1, 2]), torch.tensor([1, 0]), message="ZeroDivisionError")
    out.add("floor_divide", torch.tensor([1.0, -2, 0]), torch.tensor([0.0, 0, 0]))
    for dtype in FLOATS + HALVES + INTS + COMPLEX + [torch.bool]:
        t = {"tolerance": {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(dtype, 1e-6)}
        a = s.sample(dtype, [2, 3, 4])
        out.add("sum", a, None, **t)
        for d, keep in (([1], False), ([0, -1], True), ([], False), (None, True)):
            out.add("sum.dim_IntList", a, d, keep, None, **t)
        out.add("sum.dim_IntList", a, [2], False, 9 if dtype.is_complex else 7, **t)
        out.add("index_select", a, 1, torch.tensor([2, 0, 0]))
        out.add("index_select", a, -1, torch.tensor(1, dtype=torch.int32))
    out.add("sum.dim_IntList", torch.ones(0, 3), [0], False, None)
    out.add("sum.dim_IntList", torch.ones(2, 3), [0, 0], False, None, message="appears multiple times in the list of dims")
    out.add("sum.IntList_out", torch.ones(2, 3), [1], False, None, torch.zeros(2), written=[4])
    out.add("index_select", torch.ones(2, 3), 1, torch.tensor([3]), message="out of")
    a = s.values(torch.float32, [3, 4])
    out.add("abs", a)
    out.add("amax", a, [1], True)
    out.add("angle", a)
    out.add("cumsum", a, 1, None)
    out.add("cumprod", a, 0, 7)
    out.add("gcd", s.values(torch.int32, [5]), s.values(torch.int32, [5]))
    out.add("masked_select", a, a > 0)
    for dtype in FLOATS + HALVES + INTS:
        for shape in ([7], [3, 4], [2, 5, 33], []):
            rows = s.sample(dtype, shape, low=-3, high=3, special=0.1 if dtype.is_floating_point else 0,
                            layouts=("packed", "permuted", "sliced"))  # ATen misreads stride 0
            for keep in (False, True):
                out.add("median.dim", rows, -1, keep)
                out.add("nanmedian.dim", rows, 0, keep)
    out.add("median.dim", torch.ones(2, 0), 1, False, message="Expected reduction dim 1 to have non-zero size")
    out.add("nonzero", a > 0)
    out.add("polar", a.abs(), a, tolerance=1e-5)
    out.add("pow.Tensor_Tensor", a.abs(), a, tolerance=1e-5)
    out.add("sort", a, -1, True)
    out.add("sort.stable", a, True, 0, False)
    out.add("topk", a, 2, 1, True, True)


def linalg(out, s):
    for dtype in FLOATS + COMPLEX:
        t = {"tolerance": TOLERANCE[dtype]}

        def matrix(*shape, symmetric=False):
            a = torch.randn(shape, dtype=dtype, generator=s.g)
            if symmetric:
                a = a @ a.mH + 2 * torch.eye(shape[-1], dtype=dtype)
            return s.strided(a, ("packed", "permuted", "sliced", "offset"))

        for batch in ((), (2,), (2, 3), (0,)):
            a, sym = matrix(*batch, 4, 4), matrix(*batch, 4, 4, symmetric=True)
            packed = a.contiguous()
            for m in (a, packed, packed.mT):
                out.add("linalg_inv_ex", m, False, **t)
                out.add("_linalg_det", m, **t)
                out.add("_linalg_slogdet", m, **t)
                out.add("linalg_lu_factor_ex", m, True, False, **t)
                out.add("_linalg_solve_ex", m, matrix(*batch, 4, 2), True, False, **t)
                out.add("_linalg_solve_ex", m, matrix(*batch, 2, 4), False, False, **t)
            out.add("_linalg_solve_ex", a, matrix(*batch, 4), True, False, **t)
            out.add("_linalg_solve_ex", a, matrix(3, *batch, 4, 2) if len(batch) < 2 else matrix(4, 2), True, False, **t)
            lu, pivots, _ = torch.linalg.lu_factor_ex(a)
            for adjoint in (False, True):
                out.add("linalg_lu_solve", lu, pivots, matrix(*batch, 4, 3), True, adjoint, **t)
                out.add("linalg_lu_solve", lu, pivots, matrix(*batch, 3, 4), False, adjoint, **t)
            for upper in (False, True):
                out.add("linalg_cholesky_ex", sym, upper, False, **t)
                out.add("linalg_solve_triangular", sym, matrix(*batch, 4, 2), upper, True, False, **t)
                out.add("linalg_solve_triangular", sym, matrix(*batch, 2, 4), upper, False, upper, **t)
            out.add("_linalg_eigh", sym, "L", False, **t)
            out.add("_linalg_svd", a, False, False, None, **t)
            ld, pivots, _ = torch.linalg.ldl_factor_ex(sym)
            out.add("linalg_ldl_factor_ex", sym, False, False, **t)
            out.add("linalg_ldl_solve", ld, pivots, matrix(*batch, 4, 2), False, **t)
            if dtype.is_complex:
                out.add("linalg_ldl_factor_ex", sym, True, False, **t)
            out.add("linalg_matrix_exp", a.contiguous(), **t)
            out.add("linalg_matrix_exp", a.contiguous() * 3, tolerance=10 * TOLERANCE[dtype])
            for shape in ((4, 4), (5, 3), (3, 5)):
                m = matrix(*batch, *shape)
                out.add("linalg_lu_factor_ex", m, True, False, **t)
                out.add("linalg_lu", m, True, **t)
                for mode in ("reduced", "complete", "r"):
                    if mode != "complete" or shape[0] <= shape[1]:
                        out.add("linalg_qr", m, mode, **t)
                if shape[0] >= shape[1]:
                    h, tau = torch.geqrf(m)
                    out.add("linalg_householder_product", h, tau, **t)
        for name, args in (("linalg_inv_ex", (False,)), ("_linalg_det", ()), ("_linalg_slogdet", ()),
                           ("linalg_lu", (True,)), ("linalg_qr", ("reduced",)), ("linalg_matrix_exp", ()),
                           ("_linalg_eigh", ("L", True)), ("_linalg_svd", (True, True, None)),
                           ("linalg_cholesky_ex", (False, False))):
            out.add(name, torch.empty(2, 0, 0, dtype=dtype), *args)
    singular = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
    out.add("linalg_inv_ex", singular, True, message="is zero, the inversion could not be completed because the input")
    out.add("_linalg_det", singular)
    out.add("linalg_cholesky_ex", -torch.eye(3), False, True, message="(the leading minor of order 1 is not positive")
    out.add("_linalg_solve_ex", singular, torch.ones(2, 1), True, True, message="The solver failed because the input")
    for name, args in (("linalg_inv_ex", (False,)), ("_linalg_det", ()), ("_linalg_eigh", ("L", True))):
        out.add(name, torch.ones(3, 4), *args, message="A must be batches of square matrices, but they are 3 by 4")
        out.add(name, torch.ones(3), *args, message="must have at least 2 dimensions")
    out.add("linalg_inv_ex", torch.ones(3, 3).half(), False, message="Low precision dtypes not supported")
    out.add("linalg_inv_ex", torch.ones(3, 3, dtype=torch.int64), False,
            message="Expected a floating point or complex tensor")
    out.add("_linalg_eigh", torch.eye(3), "X", True, message="Expected UPLO argument to be 'L' or 'U', but got X")
    out.add("linalg_qr", torch.eye(3), "zz", message="qr received unrecognized mode 'zz'")
    out.add("linalg_lu_factor_ex", torch.eye(3), False, False, message="LU without pivoting is not implemented on the CPU")
    out.add("_linalg_solve_ex", torch.eye(3), torch.ones(4, 2), True, False,
            message="Incompatible shapes of A and B for the equation AX = B (3x3 and 4x2)")
    info = torch.zeros(3, dtype=torch.int32)
    out.add("_linalg_check_errors", info, "linalg.inv", False)
    info[1] = 2
    for api, text in (("linalg.inv", "The diagonal element 2 is zero"), ("linalg.solve", "The solver failed"),
                      ("linalg.cholesky", "the leading minor of order 2"), ("linalg.svd", "(error code: 2)"),
                      ("linalg.eigh", "too many repeated eigenvalues")):
        out.add("_linalg_check_errors", info, api, False, message=text)
    out.add("_linalg_check_errors", info[1], "linalg.inv", True, message="The diagonal element 2 is zero")
    x = s.values(torch.complex64, [3, 8], -2, 2)
    out.add("_fft_c2c", x, [1], 0, True, tolerance=1e-5)
    out.add("_fft_r2c", x.real.contiguous(), [1], 0, True, tolerance=1e-5)
    out.add("_fft_c2r", x[:, :5].contiguous(), [1], 2, 8, tolerance=1e-5)


def general_matrices(out, s):
    for dtype in FLOATS + COMPLEX:
        t = {"tolerance": TOLERANCE[dtype]}
        # For triangular matrices, LAPACK starts from the diagonal, so that the signs of eigenvectors are defined.
        for batch in ((), (2,), (0,)):
            a = torch.randn(*batch, 4, 4, dtype=dtype, generator=s.g)
            a = a.triu() + torch.diag(torch.arange(4).to(dtype))
            out.add("linalg_eig", a, **t)
            out.add("_linalg_eigvals", a, **t)
            for shape in ((4, 4), (5, 3), (3, 5), (0, 3)):
                m = torch.randn(*batch, *shape, dtype=dtype, generator=s.g)
                for atol, rtol in ((None, None), (0.0, 0.4), (0.8, None)):
                    atol, rtol = (None if v is None else torch.tensor(v).double() for v in (atol, rtol))
                    out.add("linalg_pinv.atol_rtol_tensor", m, atol, rtol, False, **t)
            h = torch.randn(*batch, 4, 4, dtype=dtype, generator=s.g)
            out.add("linalg_pinv.atol_rtol_tensor", h + h.mH, None, None, True, **t)
        spin = torch.tensor([[0.0, 2.0], [-2.0, 0.0]]).to(dtype)
        out.add("_linalg_eigvals", spin, **t)
    out.add("linalg_eig", torch.full((2, 2), float("inf")), message="input tensor should not contain infs or NaNs")
    out.add("linalg_eig", torch.ones(2, 3), message="A must be batches of square matrices")


def random(out, s):
    def add(name, *args, **options):
        torch.manual_seed(1234)  # as the test does before each call
        out.add(name, *args, **options)

    x = lambda dtype, shape: torch.rand(shape, generator=s.g).to(dtype)
    for dtype in FLOATS + HALVES:
        for shape in ((7,), (4, 6)):
            for samples, replacement in ((1, False), (3, False), (5, True), (1, True)):
                add("multinomial", x(dtype, shape), samples, replacement, None)
        for shape in ((5,), (4, 17)):
            p = x(dtype, shape)
            add("bernoulli", p, None)
            add("bernoulli.p", p, 0.3, None)
            add("bernoulli.Tensor", p, p, None)
            mean, std = s.sample(dtype, list(shape)), x(dtype, shape)
            add("normal.Tensor_float", mean, 2.0, None)
            add("normal.float_Tensor", 1.5, std, None)
            add("normal.Tensor_Tensor", mean, std, None)
            a = s.sample(dtype, list(shape), layouts=("packed", "permuted"))
            for training in ((True, False) if dtype != torch.float16 else ()):
                add("rrelu_with_noise_functional", a, torch.zeros_like(a, memory_format=torch.contiguous_format), 0.125,
                    0.25, training, None)
    for dtype in FLOATS + HALVES:
        for low, high in ((0, 3), (5, 40), (0, 0)):
            rates = (torch.rand(3, 7, generator=s.g) * (high - low) + low).to(dtype)
            add("poisson", rates, None)
            if dtype in FLOATS:
                add("_standard_gamma", rates, None, tolerance=1e-6)
                add("_sample_dirichlet", rates + 0.1, None, tolerance=1e-6)
    add("poisson", torch.tensor([-1.0]), None, message="invalid Poisson rate")
    add("rand", [3, 5], None, None, None, None)
    add("randn", [3, 50], None, None, None, None)
    for bad, text in ((torch.tensor([0.0, 0.0]), "(sum of probabilities <= 0)"),
                      (torch.tensor([1.0, -1.0]), "either `inf`, `nan` or element < 0"),
                      (torch.tensor([1, 2]), "only supports floating-point dtypes for input"),
                      (torch.ones(2, 2, 2), "prob_dist must be 1 or 2 dim")):
        add("multinomial", bad, 1, False, None, message=text)
    add("multinomial", torch.ones(2), 3, False, None, message="cannot sample n_sample > prob_dist.size(-1) samples")
    add("normal.Tensor_float", torch.ones(2), -1.0, None, message="expects std >= 0.0")


def main():
    torch.set_num_threads(1)
    out = Atens("aten.cases")
    s = Samples(11)
    tensors(out, s)
    math(out, s)
    linalg(out, s)
    random(out, s)
    windows(out)
    resampling(out, s)
    quantisation(out, s)
    general_matrices(out, s)
    out.out.close()
    check_covered("tensors", "math", "linalg", "random")


main()
