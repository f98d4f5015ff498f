"""Operands of elementwise functions, around the limits of src/tensor/elementwise.h."""
import torch

# Vectors of 4 to 64 elements; kMapBlock 512; blocks of 256 bfloat16 (lanes.h) and of 64 (powers, polynomials); 1024,
# 2048, 8192, 16384 and 32768 elements per thread; kChunk 1024 and 128 KiB per thread for copies.
LIMITS = (4, 8, 16, 32, 64, 256, 512, 1024, 2048)
GRAINS = (8192, 16384, 32768, 65536)
LAYOUTS = ("packed", "packed", "permuted", "permuted", "sliced", "offset", "padded", "expanded", "channels_last")
HALVES = (torch.float16, torch.bfloat16)
FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
COMPLEX = (torch.complex64, torch.complex128, torch.complex32)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
WIDE_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def sizes(d, most=4096):
    """For one tensor: mostly few elements, sometimes more than a thread takes."""
    way = d.random()
    if way < 0.04:
        return [d.choice(GRAINS) + d.choice((-1, 0, 1, 17))]
    if way < 0.07:
        rows = d.size(2, 3, 8, low=1, high=17)
        return [rows, d.choice(GRAINS) // rows + d.choice((-1, 0, 1, 5))]
    if way < 0.45:
        return [d.size(*LIMITS, high=most)]
    return d.shape(d.choice((0, 2, 2, 2, 3, 3, 4, 4, 5, 6)), most=most, limits=LIMITS)


def broadcast(d, count, most=4096):
    """Sizes of `count` operands that broadcast to one shape."""
    whole = sizes(d, most)
    every = []
    for _ in range(count):
        own = list(whole)
        way = d.random()
        if way < 0.2:
            own = [1 if d.chance(0.4) else n for n in own]
        elif way < 0.3 and own:
            own = own[d.randrange(len(own)):]
        elif way < 0.4:
            own = d.choice(([], [1], [1] * len(own)))
        every.append(own)
    return every


def relative(function):
    """The size of a complex result is its absolute value."""
    def magnitude(*values):
        result = function(*values)
        return tuple(r.abs() for r in result) if isinstance(result, tuple) else result.abs()
    return magnitude
