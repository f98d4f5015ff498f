"""Writes tests/data/found_elements.cases: failures that tests/truth found in elementwise functions, activations,
conversions, resizing, quantisation and random operators.

    .venv/bin/python tests/custom_ops/make_found_cases.py      # torch 2.15
"""
import argparse
import importlib.util
import math
import sys

argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
if not importlib.util.find_spec("torch"):
    sys.exit("make_found_cases.py: this Python has no torch: pip install torch==2.15.0")
import torch  # noqa: E402

from aten_cases import F, Atens, Samples  # noqa: E402

HALF, BFLOAT, FLOAT, DOUBLE = torch.float16, torch.bfloat16, torch.float32, torch.float64
INF, NAN = math.inf, math.nan


def gaps(t):
    """The same elements with gaps, so that ATen computes them one by one, with libm."""
    wide = torch.empty(list(t.shape) + [2], dtype=t.dtype)
    wide[..., 1] = 7
    wide[..., 0] = t
    return wide[..., 0]


def large_arguments(out):
    """Arguments beyond SLEEF's vector functions; 40 elements are several vectors and a remainder."""
    for dtype in (FLOAT, DOUBLE, BFLOAT):
        most = torch.finfo(dtype).max
        powers = torch.linspace(87, 89.3, 20, dtype=DOUBLE) if dtype != DOUBLE else torch.linspace(708, 710.4, 20, dtype=DOUBLE)
        roots = torch.logspace(15, 38, 20, dtype=DOUBLE) if dtype != DOUBLE else torch.logspace(150, 308, 20, dtype=DOUBLE)
        tolerance = {FLOAT: 1e-6, DOUBLE: 1e-13, BFLOAT: 1e-2}[dtype]
        for name, x in (("cosh", powers), ("sinh", powers), ("asinh", roots), ("acosh", roots), ("log1p", roots)):
            x = torch.cat([x, -x if name in ("cosh", "sinh", "asinh") else x])
            x[-1] = most if name not in ("cosh", "sinh") else 0.5
            out.define(name, lambda v, f=getattr(torch, name): (f(gaps(v)).contiguous(),), x.to(dtype), tolerance=tolerance)
            out.define(name, lambda v, f=getattr(torch, name): (f(gaps(v)).contiguous(),), x.to(dtype).view(4, 10).t().contiguous(),
                       tolerance=tolerance)
        y = torch.logspace(30, 38, 20, dtype=DOUBLE) if dtype != DOUBLE else torch.logspace(300, 308, 20, dtype=DOUBLE)
        x = torch.full([20], 0.5, dtype=DOUBLE)
        x[3] = 0
        out.define("special_xlog1py", lambda a, b: (torch.special.xlog1py(gaps(a), gaps(b)).contiguous(),), x.to(dtype), y.to(dtype),
                   tolerance=tolerance)
    # e^x overflows the argument of log1p.
    x = torch.linspace(70, 120, 40)
    out.define("softplus", lambda v, b, t: (torch.nn.functional.softplus(v.double(), b, t).float(),), x, 1.0, 200.0, tolerance=1e-6)


def dtypes_and_layouts(out, s):
    a, b = torch.randn(3, 5, 4, generator=s.g), torch.randn(3, 5, 4, generator=s.g)
    turned = b.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    for x, y in ((a, turned), (turned, a)):
        for name in ("gt.Tensor", "ge.Tensor", "lt.Tensor", "le.Tensor"):
            out.add(name, x, y)
        out.add("leaky_relu_backward", x, y, 0.1, False)
    for dtype in (torch.int8, torch.int16, torch.int32, torch.uint8):
        info = torch.iinfo(dtype)
        x = torch.tensor([info.max, info.max - 1, 100, 12, info.min, 77, info.min + 1], dtype=dtype)
        out.add("lcm", x, x.flip(0).contiguous())
        out.add("lcm", x, torch.tensor(99, dtype=dtype))
    for dtype, low, high in ((torch.uint8, -2, 300), (torch.int8, -200, 200), (torch.int16, -2**20, 2**20)):
        x = torch.tensor([0, 1, 100, torch.iinfo(dtype).max, torch.iinfo(dtype).min], dtype=dtype)
        out.add("clamp", x, low, None)
        out.add("clamp", x, None, high)
        out.add("clamp", x, low, high)
        out.add("clamp", x, low, 50)
        out.add("clamp", x, 50, high)
        out.add("clamp_min", x, low)
        out.add("clamp_max", x, high)
        out.add("clamp_min", x, high, message="is outside the representable range of")
        out.add("clamp", x, None, low, message="is outside the representable range of")
        out.add("_foreach_maximum.Scalar", [x], low)
    for dtype in (HALF, FLOAT, torch.int8):
        for many in (1, 5):  # isin() has another algorithm for 10 elements and more
            x = torch.tensor([0.1, 3, 0.25, 44]).to(dtype).repeat(many)
            for number in (0.1, 3, 0.25, 300):
                out.add("isin.Scalar_Tensor", number, x, False, False)
            out.add("isin.Tensor_Tensor", torch.tensor(0.1), x, False, False)
    for dtype in (HALF, BFLOAT, FLOAT, DOUBLE):
        x = torch.tensor([[1.5], [-3.0], [INF]], dtype=dtype)
        for other in (torch.tensor([0, 3, -4, 200], dtype=torch.int32), torch.tensor([0, 3, 1], dtype=torch.uint8), torch.tensor(2),
                      torch.tensor([0.3, -1.5], dtype=HALF), torch.tensor(0.3, dtype=HALF)):
            out.add("ldexp.Tensor", x, other, tolerance=1e-6 if other.is_floating_point() else 0.0)
        out.add("ldexp.Tensor", x.expand(3, 4), torch.arange(4))
    out.add("ldexp.Tensor", torch.tensor([1, 2]), torch.tensor([3, -1]))
    for dtype in (FLOAT, DOUBLE):
        x = torch.tensor([NAN, INF, -INF, -1.0, 2.0, 3.0, 0.0, 1.0] * 8, dtype=dtype)
        out.add("_add_relu.Tensor", x, torch.zeros(64, dtype=dtype), 1)
        out.add("_add_relu.Scalar", x, 1.0, 2)
    out.add("_add_relu.Scalar", torch.tensor([5, -7], dtype=torch.int16), INF, 1)
    out.add("_add_relu.Tensor", torch.tensor([5, -7]), torch.tensor([2, 3]), 1.5)
    # An integer is rounded to the half type before it is multiplied.
    big = torch.tensor([2049, 4099, 70001, -2051])
    for dtype in (HALF, BFLOAT):
        small = torch.tensor([0.5, 1.0, 0.25, 2.0], dtype=dtype)
        tolerance = {HALF: 1e-3, BFLOAT: 1e-2}[dtype] / 4
        out.add("addcmul", big, small, small, 1, tolerance=tolerance)
        out.add("addcdiv", big, small, small, 1, tolerance=tolerance)
        out.add("floor_divide", big[:2] * 4, small[1:3] * 0 + 1)
    for dtype in (HALF, BFLOAT):
        # A number beside half tensors is rounded to half, except in products and quotients.
        x = torch.cat([torch.tensor([0.1, -0.1, 13.7, 2.5, -13.7]), torch.randn(27, generator=s.g) * 3]).to(dtype)
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            for number in (0.1, 13.7):
                out.add(name + ".Scalar", x, number)
                out.add(name + ".Tensor", x, torch.tensor(number, dtype=DOUBLE))
                out.add(name + ".Tensor", torch.tensor(number), x)
        for name in ("remainder.Tensor", "fmod.Tensor"):
            out.add(name, x, torch.tensor(0.1), tolerance=1e-6)
        for mode in ("floor", "trunc"):
            out.add("div.Scalar_mode", x, 0.1, mode)
            out.add("div.Tensor_mode", x, torch.tensor(0.1), mode)
        out.add("div.Scalar", x, 0.1)
    for dtype in (torch.int8, torch.int64):
        least = torch.iinfo(dtype).min
        out.add("div.Scalar_mode", torch.tensor([least, least + 1, 7, -7], dtype=dtype), 3, "trunc")
        out.add("div.Tensor_mode", torch.tensor([least, 5, -7], dtype=dtype), torch.tensor([7, least, least], dtype=dtype), "trunc")
    # An exponent that float32 cannot hold.
    x = torch.logspace(-3, 3, 40)
    out.define("pow.Tensor_Scalar", lambda v, e: (torch.pow(v.double(), e).float(),), x, 13.7, tolerance=2e-7)
    out.add("pow.Tensor_Scalar", torch.tensor([True, False]), False)
    out.add("pow.Tensor_Scalar", torch.tensor([True, False]), True)
    out.add("pow.Scalar", complex(1, 0), torch.tensor([complex(NAN, 1), complex(1, INF), complex(2, 3)]))
    for weight in (torch.tensor(0.25, dtype=DOUBLE), torch.tensor(0.25, dtype=BFLOAT)):
        out.add("lerp.Tensor", torch.tensor(1.0, dtype=HALF), torch.tensor(3.0, dtype=HALF), weight)
        out.add("lerp.Tensor", torch.ones(3, dtype=HALF), torch.full([3], 3.0, dtype=HALF), weight)
    out.add("lerp.Scalar", torch.tensor(1.0), torch.tensor(3.0), 0.25)
    for dtype in (torch.complex64, torch.complex128):
        x = torch.tensor([complex(NAN, 1), complex(1, NAN), complex(-INF, 2), complex(-INF, 1), complex(1, 2)], dtype=dtype)
        y = torch.tensor([complex(1, 1), complex(1, 2), complex(-INF, 3), complex(2, 1), complex(1, NAN)], dtype=dtype)
        out.add("logaddexp", x, y, tolerance=1e-6)


def fills(out):
    half_complex = torch.zeros(3, dtype=torch.complex32)
    for number in (70000, 65519.0, complex(1, -1e6)):
        out.add("fill.Scalar", half_complex, number)
    for dtype in (5, 15):
        for number in (70000, 65519.0, 1e39, -1e39):
            out.add("scalar_tensor", number, dtype, *F[1:])
            out.add("full", [], number, dtype, *F[1:])
    out.add("full", [2], 70000, 5, *F[1:], message="value cannot be converted to type")
    out.add("full", [1, 1], 70000, 5, *F[1:])
    for dtype in (HALF, BFLOAT, torch.float8_e4m3fn, torch.float8_e5m2):
        for number in (1e39, -70000, 2**62, complex(1e39, 0)):
            out.add("fill.Scalar", torch.zeros(1, 1, dtype=dtype), number)
        out.add("fill.Scalar", torch.zeros(1, dtype=dtype), complex(1, 2), message="value cannot be converted to type")
    for number in (70000, complex(1, -1e6)):
        out.add("fill.Scalar", torch.zeros(1, dtype=torch.complex32), number, message="value cannot be converted to type")


def slopes(out, s):
    x = torch.tensor([NAN, -4.0, -3.0, 0.25, 3.0, 5.0, INF, -INF] * 4)
    grad = torch.randn(32, generator=s.g)
    out.add("hardswish_backward", grad, x, tolerance=1e-6)
    out.add("hardtanh_backward", grad, x, -1.0, 1.0)
    out.add("hardshrink_backward", grad, x, 0.5)
    out.add("softshrink_backward", grad, x, 0.5)
    for dtype in (HALF, BFLOAT):
        bound = torch.tensor([0.3, -0.3, 0.5, 0.29, 0.31]).to(dtype)
        for name in ("hardshrink_backward", "softshrink_backward"):
            out.add(name, torch.ones(5, dtype=dtype), bound, 0.3)
        out.add("hardshrink", bound, 0.3)
    out.add("mish_backward", grad.double(), x.nan_to_num(1.0, 9.0, -9.0), tolerance=1e-6)
    out.add("mish_backward", grad, x.nan_to_num(1.0, 9.0, -9.0).half(), tolerance=2e-3)


def resized(out, s):
    x = torch.randn(1, 4, 8, generator=s.g)
    out.add("upsample_nearest1d", x, [8], 1.2)
    out.add("upsample_nearest1d", x, [16], 2.1)
    image = torch.randn(1, 5, 8, 40, generator=s.g)
    for layout in (torch.contiguous_format, torch.channels_last):
        y = image.contiguous(memory_format=layout)
        out.add("upsample_nearest2d", y, [8, 40], 1.1, 1.02)
        out.add("upsample_nearest2d", y, [60, 80], 7.5, 2.04)
    small = image[:, :3, :, :9]
    out.add("upsample_nearest2d", small, [8, 18], 1.1, 2.1)
    volume = torch.randn(1, 2, 3, 4, 5, generator=s.g)
    out.add("upsample_nearest3d", volume, [3, 4, 5], 1.3, 1.2, 1.1)
    grad = torch.randn(1, 4, 4, 6, 8, generator=s.g).contiguous(memory_format=torch.channels_last_3d)
    for name in ("upsample_nearest3d_backward", "_upsample_nearest_exact3d_backward"):
        out.add(name, grad, [4, 6, 8], [1, 4, 2, 3, 4], None, None, None, tolerance=1e-6)
    grad = torch.randn(1, 4, 6, 8, generator=s.g).contiguous(memory_format=torch.channels_last)
    for name in ("_upsample_bilinear2d_aa_backward", "_upsample_bicubic2d_aa_backward", "_upsample_lanczos2d_aa_backward"):
        out.add(name, grad, [6, 8], [1, 4, 3, 5], False, None, None, tolerance=1e-5)


def sampled(out, s):
    # ATen's scalar float32 loop skips elements outside the grid even if their weight is NaN.
    grid = torch.rand([2, 3, 4, 2], generator=s.g) * 3 - 1.5
    grid.view(-1)[::5] = NAN
    grid.view(-1)[3::7] = INF
    for interpolation in (0, 1, 2):
        for padding in (0, 1, 2):
            if padding and interpolation:
                continue  # results for infinities there depend on the processor
            out.add("_grid_sampler_2d_cpu_fallback", torch.randn([2, 3, 5, 4], generator=s.g), grid, interpolation, padding, bool(padding), tolerance=1e-6)


def pooled(out, s):
    # Some windows contain no elements.
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, HALF):
        x = torch.randint(0, 100, [2, 3, 5, 1], generator=s.g).to(dtype)
        out.add("max_pool2d_with_indices", x, [1, 2], [1, 4], [0, 1], [1, 2], False)


def one_image(out, s):
    # [C, D, H, W] with channels-last gradients.
    x = torch.randn([3, 4, 5, 6], generator=s.g)
    form = ([2, 2, 2], [1, 2, 2], [0, 0, 0], [1, 1, 1], False)
    y, indices = torch.ops.aten.max_pool3d_with_indices(x, *form)
    grad = torch.randn([*y.shape[1:], 3], generator=s.g).permute(3, 0, 1, 2)
    for values in (x, x.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)):
        out.add("max_pool3d_with_indices_backward", grad, values, *form, indices)
        out.add("max_pool3d_with_indices_backward", grad.contiguous(), values, *form, indices)


def laid_out(out, s):
    # ATen's result has the first operand's strides; if that is broadcast, it considers both.
    column, turned = torch.randn([8, 1], generator=s.g).expand(8, 37), torch.randn([37, 8], generator=s.g).t()
    out.add("_prelu_kernel", column, turned)
    out.add("log_sigmoid_backward", column, turned, torch.ops.aten.log_sigmoid_forward(turned)[1])
    last = torch.randint(0, 9, [2, 4, 5, 3], generator=s.g, dtype=torch.uint8).to(memory_format=torch.channels_last)
    out.add("ldexp.Tensor", torch.full([1, 1, 1, 1], 1.5, dtype=BFLOAT), last)


def exact_places(out, s):
    # 48.5 / 1.94 is 25 in double and 24.999998 in float.
    x = torch.randn([2, 4, 32], generator=s.g, dtype=DOUBLE)
    for dtype in (FLOAT, DOUBLE):
        out.add("_upsample_nearest_exact1d", x.to(dtype), [64], 1.94)
        out.add("_upsample_nearest_exact3d", x.to(dtype).view(2, 4, 1, 1, 32), [1, 1, 64], None, None, 1.94)


def nothing_added(out, s):
    out.add("index_add", torch.zeros(3, 1, dtype=torch.uint8), 1, torch.zeros(0, dtype=torch.int64), torch.zeros(3, 0, dtype=torch.uint8), -3.0)


def divided(out, s):
    # Division by complex zeros of any sign.
    for dtype in (torch.complex64, torch.complex128):
        zeros = torch.tensor([complex(-0.0, 0.0), complex(-0.0, -0.0), complex(0.0, -0.0), 0j], dtype=dtype)
        x = torch.tensor([1 - 2j, -0.5 - 0.25j, 0j, complex(0, 3)], dtype=dtype).view(4, 1)
        out.add("div.Tensor", x, zeros)
        out.add("addcdiv", torch.ones(4, 4, dtype=dtype), x.expand(4, 4).contiguous(), zeros.expand(4, 4).contiguous(), 1.0)
        out.add("reciprocal", zeros)


def quantised(out, s):
    for dtype in (FLOAT, DOUBLE, HALF, BFLOAT):
        x = torch.cat([torch.randn(20, generator=s.g, dtype=DOUBLE) * 8, torch.arange(12) * 0.05 + 0.025,
                       torch.tensor([NAN, INF, -INF, 3e38])]).to(dtype)
        out.add("fake_quantize_per_tensor_affine_cachemask", x, 0.05, 3, -128, 127)
        out.add("fake_quantize_per_tensor_affine_cachemask", x, 1.0, -6416, -32768, 32767)
        for zero in (torch.tensor([3], dtype=torch.int32), torch.tensor([3.75])):
            out.add("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", x, torch.tensor([0.05]), zero, torch.tensor([1]), -128, 127)
        rows = x[:32].view(4, 8)
        scale = torch.tensor([0.05, 0.031, 0.7, 0.0123])
        for zero in (torch.tensor([0, 3, -5, 100], dtype=torch.int32), torch.tensor([0.0, 3.3, -5.75, 100.5])):
            out.add("fake_quantize_per_channel_affine_cachemask", rows, scale, zero, 0, -128, 127)
    # Halfway between two points of a wide grid, where rounding a product before the addition selects the other point.
    zero = torch.tensor([[-4411.3], [0.3], [1234.7], [30000.3]])
    ties = torch.randint(-32768, 32768, [4, 64], generator=s.g) + 0.5
    scale = torch.tensor([0.05, 0.031, 0.07, 0.0123])
    out.add("fake_quantize_per_channel_affine_cachemask", (ties - zero) * scale.view(4, 1), scale, zero.view(4), 0, -32768, 32767)
    # Ranges whose zero points lie halfway.
    for low, high, ends in ((-127, 127, [(-0.17685538530349731, 0.5305661559104919), (-1.6815769672393799, 0.56052565574646)]),
                            (-128, 127, [(-1.4406204223632812, 0.6174087524414062), (-1.21700119972229, 0.03687882423400879)]),
                            (-8, 7, [(-1.8738770484924316, 0.20820856094360352)])):
        n = len(ends)
        out.define("_fused_moving_avg_obs_fq_helper_functional", torch.ops.aten._fused_moving_avg_obs_fq_helper_functional.default,
                   torch.tensor(ends), torch.tensor([1]), torch.tensor([1]), torch.full([n], INF), torch.full([n], -INF),
                   torch.ones(n), torch.zeros(n, dtype=torch.int32), 0.5, low, high, 0, True, False)


def drawn(out):
    x = torch.rand(40, generator=torch.Generator().manual_seed(3), dtype=DOUBLE) * 3 + 0.05

    def seeded(name):
        def call(*values):
            torch.manual_seed(1234)
            return (getattr(torch.ops.aten, name)(*values),)
        return call

    out.define("_standard_gamma", seeded("_standard_gamma"), x, None, tolerance=1e-13)
    out.define("_sample_dirichlet", seeded("_sample_dirichlet"), x.view(8, 5), None, tolerance=1e-13)
    turned = torch.zeros(5, 8).t()

    def bernoulli(a, p, _):
        torch.manual_seed(1234)
        return (torch.ops.aten.bernoulli.Tensor(a, p),)

    out.define("bernoulli.Tensor", bernoulli, turned, torch.rand(8, 5, generator=torch.Generator().manual_seed(4)), None)


out = Atens("found_elements.cases")
samples = Samples(13)
large_arguments(out)
dtypes_and_layouts(out, samples)
fills(out)
slopes(out, samples)
resized(out, samples)
quantised(out, samples)
sampled(out, samples)
pooled(out, samples)
laid_out(out, samples)
divided(out, samples)
one_image(out, samples)
exact_places(out, samples)
nothing_added(out, samples)
drawn(out)
out.out.close()
