"""Gradients of convolution: src/cpu/convolution/convolution_backward.cpp, convolution_weight_gradient.cpp, and what they call.

All masks of results, plain and transposed, every layout; compared with ATen's in float64, relative to the sums of
absolute terms. Limits: as convolution's; 256 KiB of inputs side by side, rows at a time, a plane of zeros between rows
(one channel per group), 32768 elements per thread (convolution_weight_gradient.cpp).
"""
import math

import torch

import abi
import case
from convolution import INPUTS, Geometry

DEVICES = ("cpu",)


def draw(d):
    g = Geometry(d, d.chance(0.3), most=1 << (21 if d.chance(0.1) else 19))
    dtype = d.choice((torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16))
    kind = d.choice(("normal", "normal", "few"))
    x = d.tensor(dtype, g.input_sizes(), kind, INPUTS)
    w = d.tensor(dtype, g.weight_sizes(), kind, ("packed", "packed", "channels_last", "permuted", "sliced"))
    channels = g.groups * g.outputs
    grad = d.tensor(dtype, [g.batch, channels, *g.output()], kind, (*INPUTS, "expanded"))
    mask = d.choice(([True] * 3, [True] * 3, [True, True, False], [False, True, True], [True, False, False], [False, True, False],
                     [False, False, True]))
    if g.rank == 3 and mask[1] and dtype != torch.float64 and any(
            p > 0 and (k - 1) * l >= n for p, k, l, n in zip(g.padding, g.kernel, g.dilation, g.image)):
        return None  # oneDNN in PyTorch 2.15 writes out of bounds for weights longer than the image
    lists = (g.stride, g.padding, g.dilation, g.transposed, g.output_padding, g.groups)
    bias = [channels] if mask[2] else d.choice((None, [channels], [0]))

    def aten(grad, x, w):
        results = torch.ops.aten.convolution_backward(grad, x, w, [channels], *lists, mask)
        return [r for r, wanted in zip(results, mask) if wanted]

    def ours(grad, x, w):
        results = abi.call("convolution_backward", grad, x, w, bias, *lists, mask)
        return [r for r, wanted in zip(results, mask) if wanted]
    def packed(of):  # some of ATen's float64 kernels take no other layout
        return lambda *tensors: aten(*[of(t).contiguous() for t in tensors])
    if d.chance(0.08) and g.rank == 2 and dtype in (torch.float32, torch.float64) and not g.transposed:
        # Called by name; one group, no dilation.
        g.groups, g.dilation = 1, [1, 1]
        g.inputs, g.outputs = min(g.inputs, 20), min(g.outputs, 20)
        x, w = d.tensor(dtype, g.input_sizes(), kind), d.tensor(dtype, g.weight_sizes(), kind)
        grad = d.tensor(dtype, [g.batch, g.outputs, *g.output()], kind)
        arguments = (g.kernel, g.stride, g.padding)
        by_name = lambda grad, x, w: [r for r, wanted in zip(abi.call_named(
            "_slow_conv2d_backward", "output_mask", grad, x, w, *arguments, mask), mask) if wanted]
        # Row-major, because ATen computes wrong weight gradients for other layouts.
        rows = lambda t: t.clone(memory_format=torch.contiguous_format)
        slow = lambda grad, x, w: [r for r, wanted in zip(torch.ops.aten._slow_conv2d_backward.output_mask(
            rows(grad), rows(x), rows(w), *arguments, mask), mask) if wanted]
        return case.Case(f"_slow_conv2d_backward {dtype} {g} {mask}", by_name, slow, [grad, x, w], strides=False,
                         error=10 + terms(g) ** 0.5 + terms(g) / 16, magnitude=lambda g, x, w: slow(g.abs(), x.abs(), w.abs()))
    return case.Case(f"convolution_backward {dtype} {g} {kind} {mask} strides {list(grad.stride())} {list(x.stride())} "
                     f"{list(w.stride())}", ours, aten, [grad, x, w], strides=g.laid_out_as_aten(dtype),
                     error=10 + terms(g) ** 0.5 + terms(g) / 16, exact=packed(lambda t: t), magnitude=packed(torch.abs))


def terms(g):
    """The length of the longest sum."""
    return max(g.batch * math.prod(g.image if g.transposed else g.output()), g.outputs * math.prod(g.kernel),
               g.batch * math.prod(g.output()))
