"""Convolution: src/cpu/convolution/*.cpp, mkldnn_convolution.cpp, and oneDNN's (onednn_convolution.h).

aten::convolution of every dtype, also transposed, and oneDNN's pointwise forms with fused activations, a second tensor,
or in place; weights plain, constant, packed by PyTorch's oneDNN; images in any strides. Compared with ATen's
convolution and the activation in float64; integers to the bit.
Limits: choice of algorithm (convolution.cpp: depthwise, channels side by side, planes), tiles of 8 to 64 channels and 1
to 14 pixels, bands of 1024 pixels and 128 KiB, 96 KiB of weights per pass (convolution_channels_plan.cpp), chunks of 512
pixels of a plane (convolution_planes.cpp), 64 kernel rows (convolution_depthwise.cpp), 10^5 multiplications per thread;
oneDNN from 2^22 (in groups 2^19, bfloat16 2^19) with a constant weight.
Layouts of 1x1 convolutions depend on the thread count that a package was compiled for, so they are not compared.
"""
import math
import os

import torch
from torch.nn import functional

import abi
import case

DEVICES = ("cpu",)
CHANNELS = (1, 3, 4, 8, 12, 16, 24, 32, 48, 64)
INPUTS = ("packed", "channels_last", "channels_last", "permuted", "sliced", "offset", "padded")
WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
ACTIVATIONS = ("none", "none", "relu", "relu", "sigmoid", "tanh", "hardswish", "swish", "hardsigmoid", "leaky_relu", "hardtanh",
               "gelu", "gelu tanh")


def activation(d, choices=ACTIVATIONS):
    """(attribute, scalars, algorithm)."""
    name = d.choice(choices)
    if name.startswith("gelu"):
        return "gelu", [], "tanh" if "tanh" in name else "none"
    scalars = {"leaky_relu": [d.choice((0.01, 0.2, -0.5, 1.5))], "hardtanh": [-0.5, d.choice((0.5, 6.0))]}.get(name, [])
    return name, scalars, ""


def activated(x, name, scalars, algorithm):
    plain = {"none": lambda t: t, "relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
             "hardswish": functional.hardswish, "swish": functional.silu, "hardsigmoid": functional.hardsigmoid}
    if name in plain:
        return plain[name](x)
    if name == "gelu":
        return functional.gelu(x, approximate=algorithm)
    return functional.leaky_relu(x, scalars[0]) if name == "leaky_relu" else functional.hardtanh(x, *scalars)


class Geometry:
    def __init__(self, d, transposed=False, most=None):
        self.rank = rank = d.choice((1, 2, 2, 2, 3))
        self.transposed = transposed
        self.batch = d.choice((1, 1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 16))
        way = d.random()
        if way < 0.55:
            self.groups = 1
            self.inputs, self.outputs = d.size(*CHANNELS, low=1, high=130), d.size(*CHANNELS, low=1, high=130)
        elif way < 0.8:  # one channel per group
            self.groups = d.size(*CHANNELS, low=1, high=130)
            self.inputs, self.outputs = 1, d.choice((1, 1, 1, 1, 2))
        else:
            self.groups = d.choice((2, 3, 4, 8))
            self.inputs, self.outputs = d.size(1, 4, 8, 16, low=1, high=40), d.size(1, 4, 8, 16, low=1, high=40)
        point = d.chance(0.2)
        self.kernel = [1 if point else d.choice((1, 2, 3, 3, 3, 4, 5, 7)) for _ in range(rank)]
        if rank == 1 and d.chance(0.1):
            self.kernel = [d.choice((9, 15, 31, 64, 65))]
        self.stride = [d.choice((1, 1, 1, 2, 2, 3, 4)) for _ in range(rank)]
        self.dilation = [d.choice((1, 1, 1, 1, 2, 3)) for _ in range(rank)]
        if d.chance(0.5):  # all equal, as in most layers
            for values in (self.kernel, self.stride, self.dilation):
                values[:] = values[:1] * rank
        if d.chance(0.5):
            self.padding = [k * l // 2 for k, l in zip(self.kernel, self.dilation)]
        else:
            self.padding = [d.choice((0, 0, 1, 1, 2, 3)) for _ in range(rank)]
        self.output_padding = [d.choice((0, 0, d.randrange(max(s, l)))) if transposed else 0
                               for s, l in zip(self.stride, self.dilation)]
        self.image = []
        for i in range(rank):
            reach = (self.kernel[i] - 1) * self.dilation[i] + 1
            if transposed:
                least = max(1, -(-(2 * self.padding[i] - reach - self.output_padding[i] + 1) // self.stride[i]) + 1)
            else:
                least = max(1, reach - 2 * self.padding[i])
            more = d.choice((0, 1, 2, 5, d.randrange(30), d.randrange(30)))
            if i + 1 == rank and d.chance(0.05):
                more = d.choice((500, 512, 513, 1024, 1100)) if rank < 3 else 60
            self.image.append(least + more)
        self.shrink(most or (1 << 23 if d.chance(0.08) else 1 << 20))

    def output(self):
        if self.transposed:
            return [(n - 1) * s - 2 * p + l * (k - 1) + o + 1 for n, s, p, l, k, o in zip(
                self.image, self.stride, self.padding, self.dilation, self.kernel, self.output_padding)]
        return [(n + 2 * p - l * (k - 1) - 1) // s + 1 for n, s, p, l, k in zip(
            self.image, self.stride, self.padding, self.dilation, self.kernel)]

    def work(self):
        pixels = math.prod(self.image if self.transposed else self.output())
        return self.batch * self.groups * self.inputs * self.outputs * math.prod(self.kernel) * pixels

    def shrink(self, most):
        while self.work() > most:
            if self.batch > 1:
                self.batch //= 2
            elif self.groups * self.inputs * self.outputs == 1:
                self.kernel, self.padding = [1] * self.rank, [0] * self.rank
                break
            elif self.groups > 16 and self.inputs == 1:
                self.groups = (self.groups + 1) // 2
            elif self.inputs >= self.outputs:
                self.inputs = (self.inputs + 1) // 2 if self.inputs > 1 else 1
                if self.inputs == 1 and self.outputs == 1:
                    self.groups = max(1, self.groups // 2)
            else:
                self.outputs = (self.outputs + 1) // 2

    def input_sizes(self):
        return [self.batch, self.groups * self.inputs, *self.image]

    def weight_sizes(self):
        if self.transposed:
            return [self.groups * self.inputs, self.outputs, *self.kernel]
        return [self.groups * self.outputs, self.inputs, *self.kernel]

    def terms(self):
        return self.inputs * math.prod(self.kernel)

    def __str__(self):
        return (f"{self.input_sizes()} * {self.weight_sizes()} groups {self.groups} stride {self.stride} padding "
                f"{self.padding} dilation {self.dilation}" + (f" transposed, output padding {self.output_padding}"
                                                             if self.transposed else ""))

    def aten(self, x, w, b):
        return torch.ops.aten.convolution(x, w, b, self.stride, self.padding, self.dilation, self.transposed,
                                          self.output_padding, self.groups)

    def laid_out_as_aten(self, dtype):
        point = self.kernel[-1] == 1 and (self.rank < 2 or self.kernel[-2] == 1)
        # With instruction sets disabled we match ATen on such a CPU, not on this one.
        elsewhere = "SCONCE_CPU_ISA" in os.environ and dtype in (torch.bfloat16, torch.float16)
        return not point and not elsewhere


def operands(d, g, dtype, kind):
    x = d.tensor(dtype, g.input_sizes(), kind, INPUTS if not d.chance(0.03) else ("expanded",))
    w = d.tensor(dtype, g.weight_sizes(), kind, ("packed", "packed", "packed", "channels_last", "permuted", "sliced", "offset"))
    b = d.tensor(dtype, (g.groups * g.outputs,), kind, ("packed", "packed", "sliced", "offset")) if d.chance(0.6) else None
    return x, w, b


def absolute(t):
    return None if t is None else t.abs()


def draw(d):
    return d.choice((plain, plain, pointwise, pointwise, binary, by_name))(d)


def plain(d):
    transposed = d.chance(0.3)
    g = Geometry(d, transposed)
    dtype = d.choice((torch.float32, torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16))
    if d.chance(0.08):
        dtype = d.choice(WHOLE)
    kind = d.choice(("normal", "normal", "few", "wide"))
    x, w, b = operands(d, g, dtype, kind)
    if d.chance(0.02) and dtype.is_floating_point:
        x = d.laid_out(d.values(dtype, [0, *x.shape[1:]]), ("packed",))
    constant = d.chance(0.4)
    hold = abi.Constant if constant else (lambda t: t)
    spatial = d.choice((None, None, None, 1))

    def lists(values):
        return values[:1] if spatial and len(set(values)) == 1 else values
    floats = dict(error=6 + 0.5 * g.terms() ** 0.5 + g.terms() / 16,
                  magnitude=lambda x, w, b: g.aten(x.abs(), w.abs(), absolute(b))) if dtype.is_floating_point else {}
    return case.Case(f"convolution {dtype} {g} {kind} {'constant' if constant else ''} strides {list(x.stride())} {list(w.stride())}",
                     lambda x, w, b: abi.call("convolution", x, hold(w), b, lists(g.stride), lists(g.padding),
                                              lists(g.dilation), transposed, lists(g.output_padding), g.groups),
                     g.aten, [x, w, b], strides=g.laid_out_as_aten(dtype), **floats)


def held(d, g, w, transposed=False):
    """(label, weight for ours, weight for PyTorch's oneDNN)."""
    way = d.random()
    if way < 0.35:
        return "plain", lambda w: w, lambda w: w
    if way < 0.5 or g.rank == 1:  # PyTorch packs no 1d weights
        return "constant", abi.Constant, lambda w: w
    sizes = g.input_sizes()
    if d.chance(0.2):
        sizes[0] = d.choice((1, 4, 8))  # another batch size than it was packed for

    try:
        if transposed:
            packed = torch.ops.mkldnn._reorder_convolution_transpose_weight(w.contiguous(), g.padding, g.output_padding, g.stride,
                                                                            g.dilation, g.groups, sizes)
        else:
            packed = torch.ops.mkldnn._reorder_convolution_weight(w.contiguous(), g.padding, g.stride, g.dilation, g.groups, sizes)
    except RuntimeError:  # oneDNN lacks this transposed convolution
        return "plain", lambda w: w, lambda w: w
    return "packed", lambda w: packed, lambda w: packed


def steepness(name, scalars):
    return max([1.2] + [abs(s) for s in scalars]) if name != "hardtanh" else 1


def pointwise(d):
    transposed = d.chance(0.25)
    g = Geometry(d, transposed)
    dtype = d.choice((torch.float32, torch.float32, torch.float32, torch.bfloat16, torch.float16))
    kind = d.choice(("normal", "normal", "few", "wide"))
    x, w, b = operands(d, g, dtype, kind)
    name, scalars, algorithm = activation(d)
    how, ours, theirs = held(d, g, w, transposed) if dtype != torch.float16 else ("plain", lambda w: w, lambda w: w)
    if transposed:
        lists = (g.padding, g.output_padding, g.stride, g.dilation)
        operator, function = torch.ops.mkldnn._convolution_transpose_pointwise, "mkldnn__convolution_transpose_pointwise"
    else:
        lists = (g.padding, g.stride, g.dilation)
        operator, function = torch.ops.mkldnn._convolution_pointwise, "mkldnn__convolution_pointwise"

    def same(x, w, b):
        if dtype == torch.float16:
            r = activated(g.aten(x.float(), w.float(), None if b is None else b.float()), name, scalars, algorithm)
            return r.to(dtype)
        return operator(x, theirs(w), b, *lists, g.groups, name, scalars, algorithm)

    return case.Case(f"{function} {dtype} {g} {kind} {how} bias {b is not None} {name} {scalars} {algorithm} strides "
                     f"{list(x.stride())} {list(w.stride())}",
                     lambda x, w, b: abi.call(function, x, ours(w), b, *lists, g.groups, name, abi.Each(scalars), algorithm),
                     same, [x, w, b], exact=lambda x, w, b: activated(g.aten(x, w, b), name, scalars, algorithm),
                     error=8 + 0.5 * g.terms() ** 0.5 + g.terms() / 16, strides=dtype != torch.float16,
                     magnitude=lambda x, w, b: 1 + steepness(name, scalars) * g.aten(x.abs(), w.abs(), absolute(b)))


COMBINE = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}


def binary(d):
    g = Geometry(d)
    dtype = d.choice((torch.float32, torch.float32, torch.float32, torch.bfloat16, torch.float16))
    kind = d.choice(("normal", "normal", "few"))
    x, w, b = operands(d, g, dtype, kind)
    name, scalars, algorithm = activation(d)
    how, ours, theirs = held(d, g, w) if dtype != torch.float16 else ("plain", lambda w: w, lambda w: w)
    in_place = d.chance(0.35)
    combine = "add" if in_place else d.choice(("add", "add", "sub", "mul", "div"))
    full = [g.batch, g.groups * g.outputs, *g.output()]
    if in_place:
        other = d.tensor(dtype, full, "normal", ("packed", "channels_last", "channels_last", "permuted", "sliced", "padded"))
    else:
        shape = list(full)
        if d.chance(0.3):
            shape = d.choice(([1] * len(full), [1, full[1]] + [1] * g.rank, full[:2] + [1] * g.rank, [1] + full[1:]))
        other = d.tensor(dtype, shape, "positive" if combine == "div" else "normal",
                         ("packed", "channels_last", "channels_last", "permuted", "sliced", "offset"))
    # The image itself, which is written while it is read.
    if in_place and full == g.input_sizes() and d.chance(0.3) and x.stride(0) and x.stride(1):
        other = x
    unary = name if name != "none" or d.chance(0.5) else None
    lists = (g.padding, g.stride, g.dilation, g.groups)
    inner = (None if d.chance(0.5) else 1.0, unary)
    if algorithm == "":
        algorithm = d.choice((None, "", "none"))

    def formula(x, other, w, b):
        return activated(COMBINE[combine](g.aten(x, w, b), other), name, scalars, algorithm)

    def size(x, other, w, b):
        sums = g.aten(x.abs(), w.abs(), absolute(b))
        sums = sums + other.abs() if combine in ("add", "sub") else COMBINE[combine](sums, other.abs())
        return 1 + steepness(name, scalars) * sums

    def same(x, other, w, b):
        if dtype != torch.float16 and other.data_ptr() != x.data_ptr():
            try:
                if in_place:
                    return other.copy_(torch.ops.mkldnn._convolution_pointwise_.binary(
                        other, x, theirs(w), b, *lists, combine, *inner, scalars, algorithm))
                return torch.ops.mkldnn._convolution_pointwise.binary(x, other, theirs(w), b, *lists, combine, *inner, scalars,
                                                                      algorithm)
            except RuntimeError:  # only some fusions exist, in two and three dimensions
                pass
        wide = formula(x.float(), other.float(), w.float(), None if b is None else b.float()).to(dtype)
        return other.copy_(wide) if in_place else wide
    label = (f"{dtype} {g} {kind} {how} bias {b is not None} {combine} {list(other.shape)} {list(other.stride())} {'itself' if other is x else ''} {inner} "
             f"{scalars} {algorithm} strides {list(x.stride())} {list(w.stride())}")
    common = dict(error=8 + 0.5 * g.terms() ** 0.5 + g.terms() / 16)
    if in_place:
        return case.Case(f"mkldnn__convolution_pointwise_binary_ {label}",
                         lambda o, x, w, b: abi.call("mkldnn__convolution_pointwise_binary_", o, x, ours(w), b, *lists, combine,
                                                     *inner, abi.Each(scalars), algorithm),
                         lambda o, x, w, b: same(x, o, w, b), [other, x, w, b], written=[0],
                         exact=lambda o, x, w, b: formula(x, o, w, b), magnitude=lambda o, x, w, b: size(x, o, w, b), **common)
    return case.Case(f"mkldnn__convolution_pointwise_binary {label}",
                     lambda x, o, w, b: abi.call("mkldnn__convolution_pointwise_binary", x, o, ours(w), b, *lists, combine,
                                                 *inner, abi.Each(scalars), algorithm),
                     same, [x, other, w, b], exact=formula, magnitude=size, strides=False, **common)


def by_name(d):
    """The names by which lite mode and older packages call the same code."""
    g = Geometry(d)
    dtype = d.choice((torch.float32, torch.float64))
    g.groups = 1
    g.inputs, g.outputs = d.size(1, 3, 8, 16, low=1, high=20), d.size(1, 3, 8, 16, low=1, high=20)
    kind = d.choice(("normal", "few"))
    bias = d.tensor(dtype, (g.outputs,), kind) if d.chance(0.6) else None
    common = dict(error=6 + 0.5 * g.terms() ** 0.5 + g.terms() / 16, strides=False)
    if g.rank == 1:  # [time, batch, channels]
        time, pad = d.size(4, 16, 64, low=g.kernel[0], high=100), d.choice((0, 1, 2))
        x = d.tensor(dtype, (time, g.batch, g.inputs), kind)
        w = d.tensor(dtype, (g.kernel[0], g.inputs, g.outputs), kind)
        b = d.tensor(dtype, (g.outputs,), kind)
        return case.named(f"{dtype} {list(x.shape)} {list(w.shape)} pad {pad}", "conv_tbc", "", x, w, b, pad, **common,
                          magnitude=lambda x, w, b, p: torch.conv_tbc(x.abs(), w.abs(), b.abs(), p))
    g.shrink(1 << 20)
    x, w = d.tensor(dtype, g.input_sizes(), kind, INPUTS), d.tensor(dtype, g.weight_sizes(), kind, ("packed", "sliced"))
    ones = [1] * g.rank
    if d.chance(0.5):
        name = f"slow_conv_dilated{g.rank}d"
        arguments = [x, w, g.kernel, bias, g.stride, g.padding, g.dilation]
    else:
        name = "_slow_conv2d_forward" if g.rank == 2 else "slow_conv3d_forward"
        g.dilation = ones
        arguments = [x, w, g.kernel, bias, g.stride, g.padding]
    if dtype == torch.float32 and d.chance(0.2) and g.rank == 2:
        name, arguments = "mkldnn_convolution", [x, w, bias, g.padding, g.stride, g.dilation, 1]
    return case.Case(f"{name} {dtype} {g}", lambda *v: abi.call_named(name, "", *v), lambda *v: getattr(torch.ops.aten, name)(*v),
                     arguments, **common, exact=lambda x, w, *v: g.aten(x, w, next((t for t in v if isinstance(t, torch.Tensor)), None)),
                     magnitude=lambda x, w, *v: g.aten(x.abs(), w.abs(), absolute(next((t for t in v if isinstance(t, torch.Tensor)), None))))
