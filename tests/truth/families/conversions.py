"""Copies between all dtypes and layouts: src/tensor/elements/convert.cpp, copy.cpp, strided_move.cpp, fill.cpp, scalar_bytes.

Every bit counts. Sources are all bit patterns, numbers around the range of the other dtype, and midpoints of its steps.
Limits: kChunk 1024 elements, vectors of 8 and 16, kBytesPerThread 128 KiB, blocks of 16 bytes that are transposed in
tiles of 64 and 256 bytes. copy_ writes views; the memory around them must not change.
"""
import ctypes
import math

import torch

import abi
import case
import draw as draws
import elements

DEVICES = ("cpu",)
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = elements.INTEGERS + elements.WIDE_UNSIGNED
ALL = FLOATING + WHOLE + (torch.bool,) + elements.COMPLEX + FLOAT8
CARRIER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def range_of(dtype):
    info = torch.iinfo(dtype)
    return info.min, info.max


def numbers(d, source, target, shape):
    """Values of the source's dtype, chosen for conversion to the target's."""
    g = d.torch
    if source == torch.bool:
        return torch.randint(2, shape, generator=g).bool()
    if source.is_complex:
        part = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}[source]
        real = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}.get(target, target)
        halves = torch.stack([numbers(d, part, real, shape), numbers(d, part, real, shape)], -1)
        return halves.contiguous().view(source).reshape(shape)
    floating = source in FLOATING or source in FLOAT8
    way = d.random()
    if way < 0.35 or source in FLOAT8:  # any bits
        carrier = CARRIER[source.itemsize]
        low, high = range_of(carrier)
        x = torch.randint(low, high, shape, generator=g).to(carrier).view(source)
        if floating and target in WHOLE and source not in FLOAT8:
            x = inside(x, target)
        elif source in FLOAT8 and target in WHOLE:
            x = inside(x.double(), target).to(source)
        return x
    if not floating:
        return d.values(source, shape, d.choice(("few", "wide")))
    x = torch.randn(shape, generator=g, dtype=torch.float64)
    if target in WHOLE:
        low, high = range_of(target)
        u = torch.rand(shape, generator=g, dtype=torch.float64)
        x = d.choice((x * 100, u * (min(high, 2**53) - max(low, -2**53)) + max(low, -2**53), x.mul(4).round() / 2))
        return inside(x.to(source), target)
    if target in FLOATING + FLOAT8 and target.itemsize < source.itemsize:
        # Two neighbours in the target's dtype, their midpoint, and numbers beside it.
        carrier = CARRIER[target.itemsize]
        low, high = range_of(carrier)
        bits = torch.randint(low, high, shape, generator=g).to(carrier)
        a, b = bits.view(target).double(), (bits + 1).view(target).double()
        middle = (a + b) / 2
        x = d.choice((middle, a, middle * (1 + torch.finfo(source).eps), middle * (1 - torch.finfo(source).eps)))
    else:
        x = x * torch.exp(torch.randn(shape, generator=g, dtype=torch.float64) * 20)
    return x.to(source)


def inside(x, target):
    """ATen converts numbers that overflow an integer differently in vectors than in the last elements."""
    low, high = range_of(target)
    wide = x.double()
    fits = (wide > float(low) - 1) & (wide < float(high) + (target.itemsize < 8))
    if target in elements.WIDE_UNSIGNED + (torch.uint8,):
        fits &= wide >= 0
    return torch.where(fits, wide, torch.zeros((), dtype=torch.float64)).to(x.dtype)


def shape_of(d):
    if d.chance(0.35):  # transposes
        return [d.size(8, 16, 32, 64, 128, low=1, high=260), d.size(8, 16, 32, 64, 128, low=1, high=260)][:2]
    return elements.sizes(d)


def copy_into(destination, source):
    a, b = abi.handle(destination), abi.handle(source)
    try:
        abi.check(abi.library["host"].aoti_torch_copy_(a, b, ctypes.c_int32(0)), "copy_")
    finally:
        for h in (a, b):
            abi.library["host"].aoti_torch_delete_tensor_object(h)
    return []


def draw(d):
    way = d.choice(("_to_copy", "copy_", "copy_", "copy_", "to", "convert", "clone", "copy", "fill", "overlap", "same"))
    if way == "fill":
        return fill(d)
    if way == "overlap":
        return overlap(d)
    source = d.choice(ALL)
    target = source if way in ("clone", "same") or d.chance(0.1) else d.choice(ALL)
    shape = shape_of(d)
    x = d.laid_out(numbers(d, source, target, shape), elements.LAYOUTS)
    label = f"{source} to {target} {shape} {tuple(x.stride())}"
    bits = dict(bits=True)
    # Payloads of NaN depend on the processor.
    if source != target and (source in FLOATING or source.is_complex) and target not in FLOAT8:
        bits = dict(zeros=True)
    if way == "clone":
        formats = [None, torch.preserve_format, torch.contiguous_format]
        formats += [torch.channels_last] if x.dim() == 4 else [torch.channels_last_3d] if x.dim() == 5 else []
        kind = d.choice(formats)
        return case.named(f"{label} {kind}", "clone", "", x, memory_format=kind, proxied=True, bits=True)
    if way == "_to_copy":
        formats = [None, torch.preserve_format, torch.contiguous_format]
        formats += [torch.channels_last] if x.dim() == 4 else []
        kind = d.choice(formats)
        return case.named(f"{label} {kind}", "_to_copy", "", x, dtype=target, memory_format=kind, proxied=True, **bits)
    if way == "to":
        return case.named(label, "to", "dtype", x, target, False, d.chance(0.5), proxied=True, **bits)
    if way == "convert":
        return case.named(label, "prims::convert_element_type", "", x, target, proxied=True, **bits)
    layouts = draws.WRITABLE + ("channels_last", "permuted", "permuted")
    if way == "copy":
        y = d.tensor(target, shape, "zero" if target != torch.bool and target not in FLOAT8 else "normal", layouts)
        return case.named(label, "copy", "", y, x, proxied=True, **bits)
    whole = list(shape)
    if d.chance(0.2):  # the source is broadcast
        whole = [d.choice((1, 2, 3, 5)) if n == 1 else n for n in shape]
        if d.chance(0.3) and math.prod(whole) < 1 << 14:
            whole = [d.choice((1, 2, 3))] + whole
    y = d.laid_out(torch.zeros(whole, dtype=target), layouts)
    label += f" into {whole} {tuple(y.stride())}"
    if d.chance(0.5):
        return case.named(label, "copy_", "", y, x, written=[0], proxied=True, **bits)
    return case.Case("aoti_torch_copy_ " + label, copy_into, lambda a, b: a.copy_(b), [y, x], written=[0], **bits)


def overlap(d):
    """Views of one storage: copies that are allowed, and copies that are refused."""
    dtype = d.choice(FLOATING + WHOLE)
    n, m = d.size(8, 16, 32, low=1, high=70), d.size(8, 16, 32, low=1, high=70)
    base = d.values(dtype, [n * m + 200], "few" if dtype not in elements.WIDE_UNSIGNED else "normal")
    way = d.choice(("same", "apart", "partly", "turned", "strided"))
    if way == "same":
        a = b = base[:n * m].view(n, m)
    elif way == "apart":
        half = (n * m + 200) // 2
        a, b = base[:half], base[half:2 * half]
    elif way == "partly":
        a, b = base[:n * m], base[d.choice((1, 2, 8, 100)):][:n * m]
    elif way == "turned":
        a = base[:n * n].view(n, n) if n * n <= base.numel() else base[:4].view(2, 2)
        b = a.t()
    else:
        a, b = base[0:2 * n:2][:n], base[1:2 * n + 1:2][:n]
        if len(a) != len(b):
            return None
    return case.Case(f"aoti_torch_copy_ {way} {dtype} {n} {m}", copy_into, lambda x, y: x.copy_(y), [a, b], written=[0], bits=True)


def fill(d):
    dtype = d.choice([t for t in ALL if t not in FLOAT8 or d.chance(0.3)])
    shape = elements.sizes(d)
    number = d.choice((0, 1, -1, 3, 7, 100, 127, 128, 255, 300, -129, 2**31, 2**53 + 1, 0.5, -0.0, 1e-3, 65504.0, 65520.0, 3.4e38, 1e39,
                       math.inf, -math.inf, math.nan, True, False, complex(1, -2), complex(0, 0)))
    x = d.laid_out(torch.zeros(shape, dtype=dtype), draws.WRITABLE + ("channels_last",))
    label = f"{dtype} {shape} {tuple(x.stride())} {number!r}"
    way = d.choice(("fill_", "fill", "full", "full_like", "zero_", "scalar_tensor"))
    if isinstance(number, complex) and not dtype.is_complex:
        number = 1
    if way == "zero_":
        x.fill_(1) if dtype not in FLOAT8 else None
        return case.named(label, "zero_", "", x, written=[0], bits=True, proxied=True)
    if way == "fill_":
        return case.named(label, "fill_", "Scalar", x, number, written=[0], zeros=True, proxied=True)
    if way == "fill":
        return case.named(label, "fill", "Scalar", x, number, zeros=True, proxied=True)
    if way == "full":
        return case.named(label, "full", "", shape, number, dtype=dtype, zeros=True, proxied=True)
    if way == "full_like":
        return case.named(label, "full_like", "", x, number, zeros=True, proxied=True)
    return case.named(label, "scalar_tensor", "", number, dtype=dtype, zeros=True, proxied=True)
