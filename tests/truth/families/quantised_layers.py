"""Quantised layers: src/cpu/layers/qlinear.cpp, qconv.cpp, quantised.cpp, wrapped_linear.cpp, and oneDNN's int8
(onednn_matmul.h); convolution_bytes.h.

Sums of integers are exact. A result differs from the formula in float64 by the float32 arithmetic after the sum and, if
it is quantised, by half a step, because ties depend on the last bits. PyTorch's operators must meet the same formula;
they ignore the weights' zero points, and scale and zero point of a tensor that is added but not written ("add").
Limits: zero points of padded inputs that no uint8 holds, blocks of 16 and 64 channels, packed and plain weights, weights with
and without zero points, pieces of a row (quantised.cpp, kPiece), 16384 elements per thread; convolution's own.
"""

import torch

import abi
import case
from convolution import Geometry, activated, activation

DEVICES = ("cpu",)
OUTPUTS = (torch.uint8, torch.uint8, torch.int8, torch.float32, torch.bfloat16)
EPS = torch.finfo(torch.float32).eps


def draw(d):
    return d.choice((linear, linear, convolution, convolution, wrapped))(d)


def quantised(d, dtype, shape, narrow=False):
    low, high = (0, 255) if dtype == torch.uint8 else (-128, 127)
    if narrow:
        low, high = low // 8, high // 8
    return torch.randint(low, high + 1, shape, generator=d.torch).to(dtype)


class Finish:
    """What happens to the sums: the formula, and how far a result may be from it."""

    def __init__(self, d, out_dtype, kind, post, other=None, other_scale=1.0, other_zero=0):
        self.out_dtype, self.kind, self.post = out_dtype, kind, post
        self.other, self.other_scale, self.other_zero = other, other_scale, other_zero
        self.bytes = out_dtype in (torch.uint8, torch.int8)
        self.scale = d.choice((0.05, 0.3, 1.0, 2.7)) if self.bytes else 1.0
        self.zero = d.choice((0, 3, 128) if out_dtype == torch.uint8 else (0, -5, 17)) if self.bytes else 0

    def exact(self, sums, scales, bias, other):
        y = sums.double() * scales
        size = y.abs()
        if bias is not None:
            y, size = y + bias, size + bias.abs()
        if other is not None:
            more = (other.double() - self.other_zero) * self.other_scale if self.kind == "sum" else other.double()
            y, size = y + more, size + more.abs()
        y = activated(y, *self.post)
        if not self.bytes:
            return y, size
        info = torch.iinfo(self.out_dtype)
        return (y / self.scale + self.zero).clamp(info.min, info.max), size / self.scale + abs(self.zero)

    def judge(self, label, ours, torch_, arguments, formula, **options):
        """Compares as numbers, whatever the dtype: within half a step and float32's rounding before it."""
        step = 0.5 if self.bytes else 0.0
        eps = 2.0 ** -8 if self.out_dtype == torch.bfloat16 else 2.0 ** -11 if self.out_dtype == torch.float16 else 0.0

        def size(*v):
            y, terms = formula(*v)
            return step * 1.0001 + eps * y.abs() * 1.01 + 16 * EPS * (terms + 1)
        as_numbers = lambda f: lambda *v: [t.double() for t in f(*v)]

        def checked(*v):
            """PyTorch's result, which must be near the formula too; the formula's if PyTorch refuses."""
            exact = formula(*v)[0]
            try:
                theirs = torch_(*v).double()
            except RuntimeError:
                y = exact.round() if self.bytes else exact
                return [y.to(self.out_dtype).double()]
            off = (theirs - exact).abs() - (size(*v) + 1e-3)
            assert off.numel() == 0 or off.max() <= 0, f"PyTorch's result is off the formula by {off.max()} too much"
            return [theirs]
        return case.Case(label, as_numbers(ours), checked, arguments, exact=lambda *v: formula(*v)[0], slack=0,
                         error=1 / torch.finfo(torch.float64).eps, magnitude=size, **options)


def scale_and_zero(d, dtype):
    scale = torch.tensor(d.choice((0.01, 0.05, 0.2)), dtype=torch.float32)
    zero = torch.tensor(d.choice((0, 0, 3, 128) if dtype == torch.uint8 else (0, 0, 2, -7)), dtype=d.choice((torch.int32, torch.int64)))
    return (scale, zero) if d.chance(0.5) else (scale.reshape(1), zero.reshape(1))


def weight_parameters(d, n):
    scales = d.values(torch.float32, (n,), "positive") * 0.1 if d.chance(0.7) else torch.tensor([0.03])
    if d.chance(0.15):
        zeros = torch.randint(-6, 7, (scales.numel(),), generator=d.torch).to(torch.int64)
    else:
        zeros = torch.zeros(scales.numel(), dtype=d.choice((torch.int64, torch.int32)))
    return scales, zeros


def linear(d):
    m, n, k = d.size(1, 4, 16, low=1, high=70), d.size(8, 16, 32, 64, low=1, high=200), d.size(4, 16, 64, 256, low=1, high=400)
    if d.chance(0.1):
        m, n, k = d.choice((16, 33, 64)), d.choice((48, 49, 63, 64, 65, 256)), d.choice((64, 66, 67, 128, 256))
    x_dtype = d.choice((torch.uint8, torch.uint8, torch.int8))
    lead = d.choice(([m], [m], [1, m], [2, max(1, m // 2)], [1, 2, max(1, m // 2)]))
    x = d.laid_out(quantised(d, x_dtype, (*lead, k), d.chance(0.3)), ("packed", "packed", "permuted", "sliced", "padded", "expanded"))
    w = d.laid_out(quantised(d, torch.int8, (k, n)), ("packed", "permuted", "permuted", "sliced"))  # [K, N]
    x_scale, x_zero = scale_and_zero(d, x_dtype)
    scales, zeros = weight_parameters(d, n)
    bias = d.values(torch.float32, (n,)) if d.chance(0.5) else None
    out_dtype = d.choice(OUTPUTS + (torch.float16,) if d.chance(0.3) else OUTPUTS)
    post = activation(d, ("none", "none", "relu", "tanh", "hardswish", "swish", "leaky_relu", "hardtanh", "gelu", "gelu tanh"))
    way = d.choice(("plain", "constant", "packed"))
    packed = torch.ops.onednn.qlinear_prepack(w.t().contiguous(), d.choice((None, list(x.reshape(-1, k).shape)))) if w.numel() else w
    if way == "packed":
        ours = lambda w: packed
    else:
        ours = abi.Constant if way == "constant" else (lambda w: w)
    how = d.choice(("none", "none", "add", "sum"))
    other, other_scale, other_zero = None, 1.0, 0
    full = [*lead, n]
    if how != "none":
        other_dtype = out_dtype if how == "sum" else d.choice((out_dtype, torch.float32, torch.uint8))
        if other_dtype in (torch.uint8, torch.int8):
            other, other_scale, other_zero = quantised(d, other_dtype, full), d.choice((0.1, 0.5, 1.0)), d.choice((0, 4))
        else:
            other = d.values(other_dtype, full)
        if out_dtype not in (torch.uint8, torch.int8):
            other_scale, other_zero = 1.0, 0
        if how == "add" and out_dtype in (torch.uint8, torch.int8):
            other = other if other.dtype in (torch.uint8, torch.int8) else other
            if other.dtype not in (torch.uint8, torch.int8):
                other_scale, other_zero = 1.0, 0
        if how == "add":
            other = d.laid_out(other, ("packed", "permuted", "sliced"))
    finish = Finish(d, out_dtype, how, post, other, other_scale, other_zero)
    name, attributes, algorithm = post
    label = (f"{x_dtype} {list(x.shape)} {list(x.stride())} * {n} {way} zeros {bool(zeros.any())} x_zero {int(x_zero)} bias {bias is not None} to {out_dtype} "
             f"{finish.scale} {finish.zero} {post} {how} {None if other is None else (other.dtype, other_scale, other_zero)}")

    def formula(x, w, bias, other):
        sums = (x.double() - int(x_zero)) @ w.double()
        return finish.exact(sums, scales.double() * x_scale.double(), bias, other)

    def call(x, w, bias, other):
        if how == "none":
            return abi.call("_qlinear_pointwise_tensor", x, x_scale, x_zero, ours(w), scales, zeros, bias, finish.scale, finish.zero,
                            out_dtype, name, abi.Each(attributes), algorithm)
        other = other.clone() if how == "sum" else other  # it is written and is the result
        return abi.call("_qlinear_pointwise_binary_tensor", x, x_scale, x_zero, ours(w), scales, zeros, other, bias, finish.scale,
                        finish.zero, out_dtype, other_scale, other_zero, how, 1.0, name, abi.Each(attributes), algorithm)

    def theirs(x, w, bias, other):
        x = x.contiguous()
        if how == "none":
            return torch.ops.onednn.qlinear_pointwise.tensor(x, x_scale, x_zero, packed, scales, zeros, bias, finish.scale, finish.zero,
                                                             out_dtype, name, attributes, algorithm)
        return torch.ops.onednn.qlinear_pointwise.binary_tensor(
            x, x_scale, x_zero, packed, scales, zeros, other.contiguous().clone(), bias, finish.scale, finish.zero, out_dtype, other_scale,
            other_zero, how, 1.0, name, attributes, algorithm)
    return finish.judge(f"qlinear {label}", call, theirs, [x, w, bias, other], formula, strides=False)


def convolution(d):
    g = Geometry(d, most=1 << (20 if d.chance(0.1) else 18))
    if g.rank == 1 and d.chance(0.5):
        g.rank = 2
        g.kernel, g.stride, g.padding, g.dilation, g.image = ([*v, *v] for v in (g.kernel, g.stride, g.padding, g.dilation, g.image))
        g.output_padding = [0, 0]
        g.shrink(1 << 18)
    x = d.laid_out(quantised(d, torch.uint8, g.input_sizes(), d.chance(0.3)), ("packed", "channels_last", "channels_last", "permuted", "sliced"))
    w = d.laid_out(quantised(d, torch.int8, g.weight_sizes()), ("packed", "packed", "channels_last", "sliced"))
    n = g.groups * g.outputs
    x_scale, x_zero = scale_and_zero(d, torch.uint8)
    scales, zeros = weight_parameters(d, n)
    bias = d.values(torch.float32, (n,)) if d.chance(0.5) else None
    way = d.choice(("plain", "constant", "packed", "packed"))
    ours = abi.Constant if way == "constant" else (lambda w: w)
    if way == "packed":
        try:
            packed = torch.ops.onednn.qconv_prepack(w.contiguous(), scales, float(x_scale), int(x_zero), g.stride, g.padding, g.dilation,
                                                    g.groups, g.input_sizes())
            ours = lambda w: packed
        except RuntimeError:
            way = "plain"
    in_place = g.rank == 2 and d.chance(0.35)
    out_dtype = d.choice(OUTPUTS)
    if in_place:
        post = activation(d, ("none", "relu"))
        full = [g.batch, n, *g.output()]
        byte = out_dtype in (torch.uint8, torch.int8)
        other = (quantised(d, out_dtype, full) if byte else d.values(out_dtype, full)).contiguous(memory_format=torch.channels_last)
        scale, zero = (d.choice((0.1, 0.5)), d.choice((0, 4))) if byte else (1.0, 0)
        finish = Finish(d, out_dtype, "sum", post, other, scale, zero)
    else:
        other = None
        post = activation(d, ("none", "none", "relu", "hardtanh", "hardswish", "swish"))
        finish = Finish(d, out_dtype, "none", post)
    name, attributes, algorithm = post

    def formula(x, w, bias, other):
        shape = (1, n, *[1] * g.rank)
        sums = g.aten(x.double() - int(x_zero), w.double(), None)
        factor = (scales.double() * x_scale.double())
        return finish.exact(sums, factor.reshape(shape) if factor.numel() == n else factor, None if bias is None else bias.reshape(shape), other)

    lists = (g.stride, g.padding, g.dilation, g.groups, finish.scale, finish.zero, out_dtype)

    def call(x, w, bias, other):
        if in_place:
            other = other.clone()  # it is written and is the result
            return abi.call("_qconv2d_pointwise_binary_tensor", x, x_scale, x_zero, ours(w), scales, zeros, other, bias, *lists,
                            finish.other_scale, finish.other_zero, "sum", d_alpha, name, abi.Each(attributes), algorithm)
        return abi.call("_qconv_pointwise_tensor", x, x_scale, x_zero, ours(w), scales, zeros, bias, *lists, name, abi.Each(attributes),
                        algorithm)
    d_alpha = d.choice((None, 1.0))

    def theirs(x, w, bias, other):
        # PyTorch's oneDNN is wrong for outputs that only see padding, and for small images with few channels.
        if (any(p > (k - 1) * l for p, k, l in zip(g.padding, g.kernel, g.dilation)) or min(g.image) < 8 or g.inputs < 4 or
                g.groups > 1):
            raise RuntimeError("no oracle")
        weight = torch.ops.onednn.qconv_prepack(w.contiguous(), scales, float(x_scale), int(x_zero), g.stride, g.padding, g.dilation,
                                                g.groups, g.input_sizes())
        if in_place:
            return torch.ops.onednn.qconv2d_pointwise.binary_tensor(
                x, x_scale, x_zero, weight, scales, zeros, other.clone(), bias, *lists, finish.other_scale, finish.other_zero, "sum", d_alpha,
                name, attributes, algorithm)
        return torch.ops.onednn.qconv_pointwise.tensor(x, x_scale, x_zero, weight, scales, zeros, bias, *lists, name, attributes, algorithm)
    return finish.judge(f"qconv {g} {way} zeros {bool(zeros.any())} x_zero {int(x_zero)} bias {bias is not None} to {out_dtype} {finish.scale} "
                        f"{finish.zero} {post} {'sum' if in_place else ''} strides {list(x.stride())} {list(w.stride())}", call, theirs,
                        [x, w, bias, other], formula, strides=False)


def wrapped(d):
    """quantized linear layers of older packages, whose weights are packed during the run."""
    m, n, k = d.size(1, 8, low=1, high=40), d.size(8, 16, 32, low=1, high=100), d.size(8, 16, 64, low=1, high=200)
    x, w, bias = d.tensor(torch.float32, (m, k), "normal", ("packed", "sliced", "permuted")), d.values(torch.float32, (n, k)), d.values(torch.float32, (n,))
    w_scale, w_zero = torch.tensor(0.03), torch.tensor(d.choice((0, 0, 3)))
    x_scale, x_zero = torch.tensor(0.02), torch.tensor(d.choice((0, 100, 128)))
    out_scale, out_zero = torch.tensor(d.choice((0.05, 0.4))), torch.tensor(d.choice((0, 17, 128)))
    hold = abi.Constant if d.chance(0.5) else (lambda t: t)

    def call(x, w, bias):
        packed, = abi.call("_wrapped_linear_prepack", w, w_scale, w_zero, bias)
        return abi.call("_wrapped_quantized_linear_prepacked", x, x_scale, x_zero, hold(packed), out_scale, out_zero, n)

    def integers(t, scale, zero, low, high):
        # In float32 by the inverse, as fbgemm does, which decides ties.
        return ((t.float() * (1 / scale)).round() + zero).clamp(low, high).double() - zero

    def aten(x, w, bias):
        packed = torch.ops._quantized._wrapped_linear_prepack(w, w_scale, w_zero, bias)
        y = torch.ops._quantized._wrapped_quantized_linear_prepacked(x.contiguous(), x_scale, x_zero, packed, out_scale, out_zero, n).double()
        off = (y - exact(x, w, bias)).abs() - size(x, w, bias)
        assert off.max() <= 0, f"PyTorch's result is off the formula by {off.max()} too much"
        return [y]

    def formula(x, w, bias):
        sums = integers(x, x_scale, x_zero, 0, 255) @ integers(w, w_scale, w_zero, -128, 127).mT
        y = sums * x_scale.double() * w_scale.double() + bias.double()
        return y, (y / out_scale.double() + out_zero).clamp(0, 255)
    step = out_scale.double()

    def size(x, w, bias):
        return step * 0.5001 + 32 * EPS * (formula(x, w, bias)[0].abs() + k * 0.1 + 256 * step)

    def exact(x, w, bias):
        return (formula(x, w, bias)[1] - out_zero) * step
    return case.Case(f"_wrapped_quantized_linear_prepacked {m} {n} {k} zeros {int(w_zero)} {int(x_zero)} {int(out_zero)} scale {float(out_scale)}",
                     lambda *v: [t.double() for t in call(*v)], aten, [x, w, bias],
                     exact=exact, slack=0, error=1 / torch.finfo(torch.float64).eps, magnitude=size)
