"""Writes tests/data/packed_weights.bin: weights packed by PyTorch's oneDNN, beside their plain values.

python tests/cpu/make_packed_weights.py [file]. Little-endian records: u8 name length, name, u8 rank, i64 sizes of the
plain weight, i64 groups, u8 transposed, u32 bytes and description, u64 bytes and packed elements (c10::ScalarType in
one byte before them), float32 plain elements.
"""
import ctypes
import pathlib
import struct
import sys

import torch

ops = torch.ops.mkldnn


def record(name, plain, packed, groups=1, transposed=False):
    description = bytes(ops._get_mkldnn_serialized_md(packed).tolist())
    size = ops._nbytes(packed)
    data = ctypes.string_at(ops.data_ptr(packed), size)
    dtype = {torch.float32: 6, torch.bfloat16: 15}[plain.dtype]
    return (struct.pack("<B", len(name)) + name.encode() + struct.pack("<B", plain.dim())
            + struct.pack(f"<{plain.dim()}q", *plain.shape) + struct.pack("<qB", groups, transposed)
            + struct.pack("<I", len(description)) + description + struct.pack("<QB", size, dtype) + data
            + struct.pack(f"<{plain.numel()}f", *plain.float().flatten().tolist()))


def main(path=pathlib.Path(__file__).parents[1] / "data" / "packed_weights.bin"):
    g = torch.Generator().manual_seed(1)

    def values(*shape, dtype=torch.float32):
        return (torch.randint(-16, 17, shape, generator=g) / 8).to(dtype)

    out = b""
    for dtype, suffix in ((torch.float32, ""), (torch.bfloat16, " bfloat16")):
        w = values(10, 24, dtype=dtype)
        out += record("linear" + suffix, w, ops._reorder_linear_weight(w, 4))
        for name, groups, shape, image in (("conv", 1, (8, 3, 3, 3), (1, 3, 8, 8)),
                                           ("grouped conv", 2, (6, 2, 3, 3), (2, 4, 10, 10)),
                                           ("depthwise conv", 4, (4, 1, 3, 3), (2, 4, 9, 8)),
                                           ("conv3d", 1, (4, 3, 2, 2, 2), (2, 3, 5, 6, 7))):
            w = values(*shape, dtype=dtype)
            n = len(shape) - 2
            out += record(name + suffix, w,
                          ops._reorder_convolution_weight(w, [0] * n, [1] * n, [1] * n, groups, list(image)), groups)
        for name, groups, shape in (("deconv", 1, (4, 6, 2, 2)), ("grouped deconv", 2, (4, 3, 2, 2))):
            w = values(*shape, dtype=dtype)
            out += record(name + suffix, w,
                          ops._reorder_convolution_transpose_weight(w, [0, 0], [0, 0], [1, 1], [1, 1], groups,
                                                                    [1, 4, 3, 3]), groups, True)
    pathlib.Path(path).write_bytes(out)
    print(len(out), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
