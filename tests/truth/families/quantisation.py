"""Fake quantisation, its observers, and quantized_decomposed of PyTorch's exporter: src/cpu/layers/fake_quantize.cpp, quantisation_grid.h,
src/custom_ops/aten/quantised_rows.cpp.

Results and masks are compared with ATen to the bit, since both round in the same float32 arithmetic. Values lie at
midpoints of steps, at both ends of the range and far outside; half of them lie exactly on a step.
"""
import math

import torch
import torch.ao.quantization.fx._decomposed  # its operators

import case
import elements

DEVICES = ("cpu",)
LAYOUTS = ("packed", "packed", "channels_last", "permuted", "sliced", "offset", "padded", "expanded")
RANGES = {torch.uint8: (0, 255), torch.int8: (-128, 127), torch.int16: (-32768, 32767), torch.int32: (-2**31, 2**31 - 1),
          torch.uint16: (0, 65535)}
QD = "quantized_decomposed::"


def ends(d):
    return d.choice(((0, 255), (-128, 127), (0, 127), (-8, 7), (0, 15), (-127, 127), (0, 65535), (-32768, 32767), (0, 0), (-1, 0)))


def values(d, shape, scale=0.05, zero=0, low=-128, high=127, dtype=torch.float32, far=False):
    """On steps, between them, and beyond both ends."""
    g = d.torch
    steps = torch.randint(low - 20, high + 20, shape, generator=g).double() - zero
    part = d.choice((0.0, 0.5, None))
    x = (steps + (part if part is not None else torch.rand(shape, generator=g, dtype=torch.float64))) * scale
    if d.chance(0.15):
        odd = [0.0, -0.0, 1e-30] + ([math.inf, -math.inf, 3e38, -3e38, math.nan] if far else [1e4, -1e4])
        odd = torch.tensor(odd, dtype=torch.float64)
        x = torch.where(torch.rand(shape, generator=g) < 0.1, odd[torch.randint(len(odd), shape, generator=g)], x)
    if d.chance(0.2):
        x = torch.randn(shape, generator=g, dtype=torch.float64) * d.choice((0.01, 1, 100))
    return x.to(dtype)


def named(*arguments, **options):
    return as_declared(case.named(*arguments, **options))


def scale_of(d):
    return d.choice((0.1, 0.05, 1.0, 0.0078125, 3.7e-3, 12.5, 1e-4))


def as_declared(drawn):
    """Dtypes and strides of the operators' meta functions, which the compiler sees and which differ from the real ones."""
    operator = drawn.torch

    def declared(*values):
        made = case.flat(operator(*values))
        meta = case.flat(operator(*[v.to("meta") if isinstance(v, torch.Tensor) and v.dim() else v for v in values]))
        return tuple(torch.empty_strided(m.shape, m.stride(), dtype=m.dtype).copy_(r.reshape(m.shape)) for r, m in zip(made, meta))

    drawn.torch = declared
    return drawn


def draw(d):
    return d.choice((per_tensor, per_channel, by_tensors, observer, observer, decomposed, decomposed, decomposed_channels, per_token,
                     per_group, parameters))(d)


def per_tensor(d):
    low, high = ends(d)
    scale, zero = scale_of(d), d.randrange(low, high + 1) if d.chance(0.95) else high + 1
    dtype = d.choice(elements.FLOATS)
    x = d.laid_out(values(d, elements.sizes(d), scale, zero, low, high, dtype, True), LAYOUTS)
    return case.named(f"{dtype} {list(x.shape)} {tuple(x.stride())} {scale} {zero} {low} {high}",
                      "fake_quantize_per_tensor_affine_cachemask", "", x, scale, zero, low, high, proxied=d.chance(0.5))


def by_tensors(d):
    low, high = ends(d)
    scale, zero = scale_of(d), d.randrange(low, high + 1)
    dtype = d.choice(elements.FLOATS)
    x = d.laid_out(values(d, elements.sizes(d), scale, zero, low, high, dtype, True), LAYOUTS)
    zero_point = torch.tensor([zero], dtype=torch.int32)
    if d.chance(0.2):
        zero_point = torch.tensor([zero + 0.25])
    return case.named(f"{dtype} {list(x.shape)} {tuple(x.stride())} {scale} {zero_point} {low} {high}",
                      "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "", x, torch.tensor([scale]),
                      zero_point, torch.tensor([1 if d.chance(0.9) else 0]), low, high, proxied=d.chance(0.5))


def per_channel(d):
    low, high = ends(d)
    dtype = d.choice(elements.FLOATS)
    shape = elements.sizes(d) or [5]
    if 0 in shape:
        return None
    axis = d.randrange(len(shape))
    x = d.laid_out(values(d, shape, 0.05, (low + high) // 2, low, high, dtype), LAYOUTS)
    n = shape[axis]
    scale = (torch.rand(n, generator=d.torch) * 0.1 + 1e-3).to(torch.float32)
    zero = torch.randint(low, high + 1, [n], generator=d.torch).to(torch.int32)
    zero = zero if d.chance(0.6) else zero.to(torch.float32) + d.choice((0.0, 0.3))
    return case.named(f"{dtype} {shape} {tuple(x.stride())} axis {axis} {zero.dtype} {low} {high}", "fake_quantize_per_channel_affine_cachemask",
                      "", x, d.laid_out(scale, ("packed", "sliced")), zero, axis, low, high, proxied=d.chance(0.5))


def observer(d):
    low, high = d.choice(((0, 255), (-128, 127), (0, 127), (-8, 7), (-127, 127)))
    shape = elements.sizes(d, 2048) or [3]
    if 0 in shape:
        return None
    rows = d.chance(0.5)
    if rows and len(shape) < 2:
        shape = shape + [d.choice((1, 3, 9))]
    axis = 0 if rows else d.choice((-1, 0))  # ATen only has this axis per channel
    channels = shape[axis] if rows else 1
    x = d.laid_out((torch.randn(shape, generator=d.torch) * d.choice((1e-6, 0.1, 1, 50)) + d.choice((0, 0, 3, -3))).float(),
                   ("packed", "packed", "permuted", "sliced", "offset"))
    first = d.chance(0.3)
    if rows and first and x.numel() > 2 * shape[0] and d.chance(0.5):
        # Zero points halfway between two integers depend on the end of the range from which they are computed.
        at = torch.randint(0, high - low, [shape[0]], generator=d.torch) + 0.5
        width = torch.rand(shape[0], generator=d.torch) * d.choice((1e-5, 0.1, 3))
        row = x.reshape(shape[0], -1).clone()
        row[:, 0], row[:, -1] = -at / (high - low) * width, (1 - at / (high - low)) * width
        x = row.clamp(row[:, :1], row[:, -1:]).view(shape)
    low_seen = torch.full([channels], math.inf) if first else -torch.rand(channels, generator=d.torch)
    high_seen = torch.full([channels], -math.inf) if first else torch.rand(channels, generator=d.torch) * 3
    arguments = [x, torch.tensor([int(d.chance(0.85))]), torch.tensor([int(d.chance(0.85))]), low_seen, high_seen,
                 torch.rand(channels, generator=d.torch) + 0.01, torch.zeros(channels, dtype=torch.int32),
                 d.choice((0.01, 0.5, 1.0)), low, high, axis, rows, d.chance(0.4)]
    label = f"{shape} {tuple(x.stride())} {arguments[1:3]} {arguments[7:]}"
    if int(arguments[1]) == 0 and first:
        return None  # a range that was never observed
    operator = torch.ops.aten._fused_moving_avg_obs_fq_helper
    # One unit in the last place of the moving averages, and of what follows from them.
    if d.chance(0.5):
        return case.shim(label, "_fused_moving_avg_obs_fq_helper_functional", *arguments,
                         torch=torch.ops.aten._fused_moving_avg_obs_fq_helper_functional.default)
    return case.shim(label, "_fused_moving_avg_obs_fq_helper", *arguments, torch=operator.default, written=[3, 4, 5, 6])


def typed(d):
    dtype = d.choice((torch.int8, torch.uint8, torch.int8, torch.uint8, torch.int16, torch.int32, torch.uint16))
    low, high = RANGES[dtype]
    if d.chance(0.3) and dtype in (torch.int8, torch.uint8):
        low, high = (-127, 127) if dtype == torch.int8 else (0, 127)
    return dtype, low, high


def whole(d, dtype, shape):
    low, high = RANGES[dtype]
    return d.laid_out(torch.randint(low, high + 1, shape, generator=d.torch).to(dtype), LAYOUTS)


def decomposed(d):
    dtype, low, high = typed(d)
    scale, zero = scale_of(d), d.choice((0, 3, low, high, (low + high) // 2))
    if dtype == torch.int32:
        zero = d.choice((0, 3, -100))
    shape = elements.sizes(d)
    way = d.choice(("", "tensor", "tensor2"))
    parameters = [scale, zero, low, high] if not way else [torch.tensor(scale, dtype=torch.float64 if d.chance(0.5) else torch.float32),
                                                           torch.tensor(zero, dtype=torch.int64 if d.chance(0.5) else torch.int32), low, high]
    if way == "tensor2":
        parameters[2:] = [torch.tensor(low), torch.tensor(high)]
    overload = way
    if d.chance(0.5):
        kind = d.choice((torch.float32, torch.float32, torch.bfloat16, torch.float16))
        x = d.laid_out(values(d, shape, scale, zero, max(low, -1000), min(high, 1000), kind), LAYOUTS)
        x = torch.nan_to_num(x, 0, 1e4, -1e4) if dtype in (torch.int32,) else x
        return named(f"{kind} to {dtype} {shape} {scale} {zero}", QD + "quantize_per_tensor", overload, x, *parameters, dtype,
                          proxied=True)
    x = whole(d, dtype, shape)
    out = d.choice((None, torch.float32, torch.float16, torch.bfloat16))
    return named(f"{dtype} to {out} {shape} {scale} {zero}", QD + "dequantize_per_tensor", overload, x, *parameters, dtype,
                      out_dtype=out, proxied=True, error=2, each=True, magnitude=lambda v, *_: (v.double().abs() + abs(zero)) * scale,
                      exact=lambda v, *_: (v.double() - zero) * scale)


def decomposed_channels(d):
    dtype, low, high = typed(d)
    shape = elements.sizes(d) or [4]
    axis = d.randrange(len(shape))
    n = shape[axis]
    scales = torch.rand(n, generator=d.torch) * 0.1 + 1e-3
    zeros = torch.randint(max(low, -100), min(high, 100) + 1, [n], generator=d.torch)
    zeros = zeros.to(torch.int32) if d.chance(0.5) else zeros
    if d.chance(0.5):
        kind = d.choice((torch.float32, torch.float32, torch.bfloat16))
        x = d.laid_out(values(d, shape, 0.05, 0, max(low, -1000), min(high, 1000), kind), LAYOUTS)
        x = torch.nan_to_num(x, 0, 1e3, -1e3).clamp(-1e3, 1e3) if dtype == torch.int32 else x
        return named(f"{kind} to {dtype} {shape} axis {axis}", QD + "quantize_per_channel", "", x, scales, zeros, axis, low, high, dtype,
                          proxied=True)
    x = whole(d, dtype, shape)
    if dtype == torch.uint16:
        return None
    points = zeros.to(d.choice((torch.int32, torch.int64))) if d.chance(0.8) else None
    return named(f"{dtype} {shape} axis {axis} {points is not None}", QD + "dequantize_per_channel", "", x, scales, points, axis, low,
                      high, dtype, out_dtype=d.choice((None, torch.float32, torch.bfloat16)), proxied=True)


def per_token(d):
    shape = elements.sizes(d, 2048) or [4]
    rows = shape[:-1] + [1]
    scales = torch.rand(rows, generator=d.torch) * 0.1 + 1e-3
    zeros = torch.randint(-100, 101, rows, generator=d.torch)
    zeros = zeros if d.chance(0.5) else zeros.float()
    if d.chance(0.5):
        x = d.laid_out(values(d, shape), LAYOUTS)
        x = torch.nan_to_num(x, 0, 1e4, -1e4)
        return named(f"{shape}", QD + "quantize_per_token", "", x, scales, zeros, -128, 127, torch.int8, proxied=True)
    x = whole(d, torch.int8, shape)
    return named(f"{shape}", QD + "dequantize_per_token", "", x, scales, zeros, -128, 127, torch.int8, torch.float32, proxied=True)


def per_group(d):
    group = d.choice((2, 4, 8, 16, 32, 64))
    rows, groups = d.size(1, 4, 8, low=1, high=33), d.choice((1, 2, 3, 5))
    shape = [rows, group * groups]
    scales = torch.rand([rows, groups], generator=d.torch) * 0.1 + 1e-3
    zeros = torch.randint(-8, 8, [rows, groups], generator=d.torch).to(torch.int32 if d.chance(0.5) else torch.float32)
    if d.chance(0.5):
        x = torch.nan_to_num(values(d, shape, 0.05, 0, -8, 7), 0, 1e3, -1e3)
        return named(f"{shape} groups of {group}", QD + "quantize_per_channel_group", "", x, scales, zeros, -8, 7, torch.int8, group,
                          proxied=True)
    x = torch.randint(-8, 8, shape, generator=d.torch).to(torch.int8)
    return named(f"{shape} groups of {group}", QD + "dequantize_per_channel_group", "", x, scales,
                      zeros if d.chance(0.8) else None, -8, 7, torch.int8, group, torch.float32, proxied=True)


def parameters(d):
    shape = elements.sizes(d, 2048) or [4]
    if 0 in shape:
        return None
    x = d.laid_out((torch.randn(shape, generator=d.torch) * d.choice((1e-7, 0.1, 1, 50)) + d.choice((0, 0, 3, -3))).float(), LAYOUTS)
    way = d.choice(("choose_qparams", "choose_qparams_symmetric", "choose_qparams_per_token", "choose_qparams_per_token_asymmetric"))
    label = f"{shape} {tuple(x.stride())}"
    if "token" in way:
        if d.chance(0.2):
            x = x.to(torch.bfloat16 if d.chance(0.5) else torch.float16)
        return named(f"{x.dtype} {label}", QD + way, "", x, torch.int8, proxied=True)
    dtype, low, high = d.choice(((torch.int8, -128, 127), (torch.uint8, 0, 255), (torch.int8, -127, 127)))
    return named(label, QD + way, "tensor", x, low, high, d.choice((1e-8, 2**-12, 1.1920928955078125e-07)), dtype, proxied=True)
