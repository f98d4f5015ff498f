"""Writes weights as PyTorch packs them and packages hold them: python pack_weights.py FILE. packed.cpp reads the file.

A record: u8 length and name, u8 dtype (c10::ScalarType), u8 packed by oneDNN, u8 rank, i64 sizes, i64 strides, u32 length
and description, u64 length and bytes. Numbers are random, but both programs read the same file.
"""
import ctypes
import struct
import sys

import torch

DTYPES = {torch.uint8: 0, torch.int8: 1, torch.float32: 6, torch.bfloat16: 15}


def record(name, t):
    opaque = t.layout is not torch.strided
    if opaque:
        description = bytes(torch.ops.mkldnn._get_mkldnn_serialized_md(t).tolist())
        data = ctypes.string_at(torch.ops.mkldnn.data_ptr(t), torch.ops.mkldnn._nbytes(t))
        strides = [1] + [0] * (t.dim() - 1)
    else:
        description, strides = b"", t.stride()
        data = ctypes.string_at(t.data_ptr(), t.numel() * t.element_size())
    return (struct.pack("<B", len(name)) + name.encode() + struct.pack("<BBB", DTYPES[t.dtype], opaque, t.dim())
            + struct.pack(f"<{2 * t.dim()}q", *t.shape, *strides) + struct.pack("<I", len(description)) + description
            + struct.pack("<Q", len(data)) + data)


def main(path):
    torch.manual_seed(1)
    with open(path, "wb") as file:
        for m, n, k, dtype in ((128, 3072, 768, torch.float32), (1, 3072, 768, torch.float32),
                               (128, 3072, 768, torch.bfloat16)):
            w = torch.randn(n, k, dtype=dtype)
            file.write(record(f"linear {m} {n} {k} {str(dtype)[6:]}", torch.ops.mkldnn._reorder_linear_weight(w, m)))
        for o, c, image, groups, dtype in ((64, 64, 56, 1, torch.float32), (96, 1, 56, 96, torch.float32),
                                           (64, 64, 56, 1, torch.bfloat16)):
            w = torch.randn(o, c, 3, 3, dtype=dtype)
            file.write(record(f"convolution {o} {c} {str(dtype)[6:]}", torch.ops.mkldnn._reorder_convolution_weight(
                w, [1, 1], [1, 1], [1, 1], groups, [1, c * groups, image, image])))
        w = torch.randint(-128, 128, (768, 768), dtype=torch.int8)
        for m in (1, 128):
            file.write(record(f"qlinear {m}", torch.ops.onednn.qlinear_prepack(w, [m, 768])))
        w = torch.randint(-128, 128, (64, 64, 3, 3), dtype=torch.int8)
        file.write(record("qconv", torch.ops.onednn.qconv_prepack(w, torch.full((64,), 0.01), 0.02, 10, [1, 1], [1, 1],
                                                                  [1, 1], 1, [1, 64, 28, 28])))
        w = torch.randint(0, 16, (1024, 1024), dtype=torch.int32)
        file.write(record("int4", torch.ops.aten._convert_weight_to_int4pack_for_cpu(w, 2)))


if __name__ == "__main__":
    main(sys.argv[1])
