"""Writes float8_cases.inc: the upper half of the float32 that PyTorch reads from each float8 code, and how it rounds float32.

Run with a Python that has torch (2.15); the result is checked in.
"""
import pathlib
import struct

import torch

NAMES = ["E5M2", "E4M3FN", "E5M2FNUZ", "E4M3FNUZ", "E8M0FNU"]


def bits(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


lines = [f"// Made by make_float8_cases.py with torch {torch.__version__.split('+')[0]}."]
for name in NAMES:
    dtype = getattr(torch, "float8_" + name.lower())
    codes = torch.arange(256, dtype=torch.uint8)
    values = codes.view(dtype).float()
    lines.append(f"FLOAT8_DECODE({name},")
    assert all(bits(v) % 2**16 == 0 for v in values.tolist() if v == v)
    row = [f"0x{bits(v) >> 16:04x}" for v in values.tolist()]
    for i in range(0, 256, 14):
        lines.append("  " + ", ".join(row[i : i + 14]) + ("," if i + 14 < 256 else ")"))
    # Ties between neighbours, and values just beside them, within the range of the type.
    finite = values[torch.isfinite(values) & (values > 0)].unique().double()
    if name != "E8M0FNU":
        finite = torch.cat([torch.zeros(1, dtype=torch.float64), finite])
    middle = ((finite[1:] + finite[:-1]) / 2).float()
    samples = torch.cat([middle, middle * (1 + 2**-20), middle * (1 - 2**-20)])
    if name != "E8M0FNU":
        samples = torch.cat([samples, -samples])
    samples = samples[torch.randperm(len(samples), generator=torch.manual_seed(3))[:120]]
    lines.append(f"FLOAT8_ENCODE({name},")
    row = [f"{{0x{bits(v):08x}, 0x{c:02x}}}" for v, c in
           zip(samples.tolist(), samples.to(dtype).view(torch.uint8).tolist())]
    for i in range(0, len(row), 6):
        lines.append("  " + ", ".join(row[i : i + 6]) + ("," if i + 6 < len(row) else ")"))
pathlib.Path(__file__).with_name("float8_cases.inc").write_text("\n".join(lines) + "\n")
