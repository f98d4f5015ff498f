"""Writes tests/data/quantised.cases: python tests/cpu/make_quantised_cases.py [seed [cases [file]]]

Our operators get weights in the form they have before PyTorch packs them, except int4 weights. Those are packed here for
every instruction set, whose number of columns is the case's first argument.
"""
import pathlib
import sys

import torch
from case_writer import DTYPES, CaseWriter, Samples

aten, onednn, wrapped = torch.ops.aten, torch.ops.onednn, torch.ops._quantized
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-13, torch.float16: 2e-3, torch.bfloat16: 1.6e-2,
             torch.complex64: 1e-5, torch.complex128: 1e-13, torch.float8_e4m3fn: 0.14, torch.float8_e5m2: 0.26}
FLOATS = [torch.float32, torch.float16, torch.bfloat16]
UNARY = [("none", [], ""), ("relu", [], ""), ("gelu", [], "none"), ("gelu", [], "tanh"), ("hardtanh", [-1.5, 4.0], ""),
         ("hardswish", [], ""), ("swish", [], ""), ("tanh", [], "")]


def tolerance(dtype):
    # A sum half way between two integers may be rounded to either.
    return TOLERANCE.get(dtype, 0.02)


def floats(s, shape, dtype=torch.float32, scale=1.0):
    return (torch.randn(shape, generator=s.g) * scale).to(dtype)


def scales(s, n):
    return torch.rand(n, generator=s.g) * 0.01 + 0.001


def quantised_input(s, shape, dtype):
    if dtype == torch.float8_e4m3fn:
        return floats(s, shape).to(dtype)
    low, high = (0, 256) if dtype == torch.uint8 else (-128, 128)
    return torch.randint(low, high, shape, generator=s.g).to(dtype)


def outputs(s, dtype):
    out = s.pick([torch.float32, torch.bfloat16, torch.float8_e4m3fn] if dtype == torch.float8_e4m3fn
                 else [torch.float32, torch.bfloat16, torch.float16, torch.uint8, torch.int8])
    integer = out in (torch.uint8, torch.int8)
    return out, (0.4 if integer else 1.0), (s.below(100) if integer else 0)


def qlinear(out, s, count):
    def plain(x, xs, xz, w, *rest):
        return onednn.qlinear_pointwise.tensor(x, xs, xz, onednn.qlinear_prepack(w.t(), None), *rest)

    def binary(x, xs, xz, w, *rest):
        return onednn.qlinear_pointwise.binary_tensor(x, xs, xz, onednn.qlinear_prepack(w.t(), None), *rest)

    for i in range(count):
        dtype = s.pick([torch.uint8, torch.uint8, torch.int8, torch.float8_e4m3fn])
        k, n = s.pick([1, 7, 32, 65]), s.pick([1, 5, 16, 300])
        shape = s.pick([[k], [3, k], [2, 4, k], [0, k]])
        x = quantised_input(s, shape, dtype)
        w = (floats(s, [n, k]).to(dtype) if dtype == torch.float8_e4m3fn
             else torch.randint(-127, 128, (n, k), generator=s.g).to(torch.int8)).t()
        xs, xz = torch.tensor(0.02), torch.tensor(0 if dtype == torch.float8_e4m3fn else s.below(100))
        ws, wz = scales(s, n), torch.zeros(n, dtype=torch.int64)
        bias = s.pick([None, floats(s, [n]), floats(s, [n])])
        dt, scale, zero = outputs(s, dtype)
        name, args, algorithm = s.pick(UNARY)
        common = (x, xs, xz, w, ws, wz)
        if i % 3 == 0:
            out.add("_qlinear_pointwise_tensor",
                    lambda *a: plain(*a[:9], dt, *a[10:]), *common, bias, scale, zero, DTYPES[dt], name, args, algorithm,
                    tolerance=tolerance(dt))
            continue
        if len(shape) != 2:
            continue
        how = s.pick(["none", "sum", "add"])
        if how != "none":
            name, args, algorithm = s.pick(UNARY[:2])
        integer = dt in (torch.uint8, torch.int8)
        other_dtype = dt if how == "sum" else s.pick([torch.float32, torch.bfloat16] + [dt] * integer)
        other = None
        if how != "none":
            other = (torch.randint(0, 100, (shape[0], n), generator=s.g) - 20 * (other_dtype != torch.uint8)).to(other_dtype)
        os, oz = (0.25, 5) if integer and how != "none" else (1.0, 0)
        out.add("_qlinear_pointwise_binary_tensor",
                lambda *a: binary(*a[:6], a[6].clone() if a[6] is not None else None, *a[7:10], dt, *a[11:]), *common,
                other, bias, scale, zero, DTYPES[dt], os, oz, how, 1.0, name, args, algorithm, tolerance=tolerance(dt))


def qconv(out, s, count):
    def prepack(x, xs, xz, w, ws, stride, padding, dilation, groups):
        return onednn.qconv_prepack(w, ws, float(xs), int(xz), stride, padding, dilation, groups, list(x.shape))

    for i in range(count):
        spatial = s.pick([1, 2, 2, 3])
        groups = s.pick([1, 1, 2, 4])
        c, o = groups * s.pick([1, 3, 4]), groups * s.pick([1, 2, 5])
        kernel = [s.pick([1, 2, 3]) for _ in range(spatial)]
        size = [5 + s.below(5) for _ in range(spatial)]
        stride, padding, dilation = ([s.pick(v)] * spatial for v in ([1, 2], [0, 1], [1, 1, 2]))
        dtype = s.pick([torch.uint8, torch.uint8, torch.uint8, torch.float8_e4m3fn if spatial == 2 else torch.uint8])
        x = quantised_input(s, [s.pick([1, 2]), c, *size], dtype)
        if spatial == 2 and s.below(2):
            x = x.contiguous(memory_format=torch.channels_last)
        w = (floats(s, [o, c // groups, *kernel]).to(dtype) if dtype == torch.float8_e4m3fn
             else torch.randint(-127, 128, (o, c // groups, *kernel), generator=s.g).to(torch.int8))
        if dtype == torch.float8_e4m3fn and o == 1:
            continue  # PyTorch may give a single channel any stride
        xs, xz = torch.tensor(0.02), torch.tensor(0 if dtype == torch.float8_e4m3fn else s.below(100))
        ws, wz = scales(s, o), torch.zeros(o, dtype=torch.int64)
        bias = s.pick([None, floats(s, [o])])
        dt, scale, zero = outputs(s, dtype)
        if dt == torch.float16:
            dt = torch.float32
        name, args, _ = s.pick([u for u in UNARY if u[0] not in ("gelu", "tanh") and (spatial == 2 or u[0] in ("none", "relu" if spatial == 1 else ""))])
        if i % 3:
            out.add("_qconv_pointwise_tensor",
                    lambda x, xs, xz, w, ws, wz, b, st, p, d, g, sc, z, number, *rest: onednn.qconv_pointwise.tensor(
                        x, xs, xz, prepack(x, xs, xz, w, ws, st, p, d, g), ws, wz, b, st, p, d, g, sc, z, dt, *rest),
                    x, xs, xz, w, ws, wz, bias, stride, padding, dilation, groups, scale, zero, DTYPES[dt], name, args, "",
                    tolerance=tolerance(dt))
            continue
        if spatial != 2 or dtype != torch.uint8:
            continue
        shape = torch.nn.functional.conv2d(x.float(), w.float(), None, stride, padding, dilation, groups).shape
        accum = (torch.randint(0, 100, tuple(shape), generator=s.g)).to(dt).contiguous(memory_format=torch.channels_last)
        integer = dt in (torch.uint8, torch.int8)
        out.add("_qconv2d_pointwise_binary_tensor",
                lambda x, xs, xz, w, ws, wz, a, b, st, p, d, g, sc, z, number, *rest:
                onednn.qconv2d_pointwise.binary_tensor(x, xs, xz, prepack(x, xs, xz, w, ws, st, p, d, g), ws, wz,
                                                       a.clone(memory_format=torch.preserve_format), b, st, p, d, g, sc,
                                                       z, dt, *rest),
                x, xs, xz, w, ws, wz, accum, bias, stride, padding, dilation, groups, scale, zero, DTYPES[dt],
                0.25 if integer else 1.0, 5 if integer else 0, "sum", 1.0, s.pick(["none", "relu"]), [], "",
                tolerance=tolerance(dt))


def linears(out, s, count):
    for _ in range(count):
        k, n = s.pick([1, 8, 33]), s.pick([1, 4, 20])
        x = floats(s, s.pick([[k], [3, k], [2, 3, k]]))
        w, b = floats(s, [n, k]), floats(s, [n])
        ws, wz = torch.tensor(0.02), torch.tensor(s.below(20) - 10)
        out.add("_wrapped_quantized_linear_prepacked",
                lambda x, xs, xz, w, ws, wz, b, os, oz: wrapped._wrapped_quantized_linear_prepacked(
                    x, xs, xz, wrapped._wrapped_linear_prepack(w, ws, wz, b), os, oz, w.shape[0]),
                x if x.dim() > 1 else x[None], torch.tensor(0.03), torch.tensor(100 + s.below(50)), w, ws, wz, b, torch.tensor(0.2),
                torch.tensor(120), tolerance=1e-6)
        out.add("wrapped_fbgemm_linear_fp16_weight",
                lambda x, w, b: wrapped.wrapped_fbgemm_linear_fp16_weight(
                    x, wrapped.wrapped_fbgemm_pack_gemm_matrix_fp16(w), b, w.shape[0]),
                x if x.dim() > 1 else x[None], w * s.pick([1.0, 1e4]), b, tolerance=1e-5)


def int4_packed(w, columns):
    """Packs w [N, K], values 0..15, as PyTorch does on a CPU whose vectors hold columns / 4 floats (0: without vectors)."""
    n, k = w.shape
    width, parts = columns or 32, []
    for first in range(0, n, width):
        block = w[first:first + width].t()
        count = block.shape[1]
        if count == width and columns:
            half = count // 2
            low, high = block[:, :half], block[:, half:]
        else:
            low, high = block[:, 0::2], block[:, 1::2]
        parts.append((high * 16 + low).to(torch.uint8).flatten())
    return torch.cat(parts).reshape(n, k // 2)


def weight_only(out, s, count):
    for i in range(count):
        dtype = s.pick(FLOATS)
        m, k, n = s.pick([0, 1, 3, 20]), s.pick([32, 64, 160]), s.pick([8, 16, 40])  # with other sizes PyTorch reads out of bounds
        x, w = floats(s, [m, k], dtype), torch.randint(-128, 128, (n, k), generator=s.g).to(torch.int8)
        out.add("_weight_int8pack_mm", aten._weight_int8pack_mm, x, w, floats(s, [n], dtype, 0.01),
                tolerance=tolerance(dtype))
        group = s.pick([32, 64, 128])
        k, n = group * s.pick([1, 2]), 16 * s.pick([1, 2, 3, 4, 5, 8])
        x, w = floats(s, [s.pick([0, 1, 5]), k], dtype), torch.randint(0, 16, (n, k), generator=s.g).to(torch.int32)
        table = floats(s, [k // group, n, 2], dtype)
        for columns in (0, 32, 64):
            out.add("_weight_int4pack_mm_cpu_tensor",
                    lambda _, x, p, group, table: aten._weight_int4pack_mm_for_cpu(
                        x, aten._convert_weight_to_int4pack_for_cpu(w, 2), int(group), table), columns, x,
                    int4_packed(w, columns), torch.tensor(group), table,
                    tolerance=TOLERANCE[dtype] * 8)
    x, w, t = torch.ones(3, 64), torch.zeros(32, 32, dtype=torch.uint8), torch.ones(2, 32, 2)
    for args, message in (((x, w, 48, t), "qGroupSize to be 32, 64, 128 or 256"), ((x.double(), w, 32, t), "16-bit float"),
                          ((x, w, 128, t), "K to be divisible by qGroupSize"), ((x, w, 32, t.bfloat16()), "expected scalar type"),
                          ((x, w, 32, torch.ones(3, 32, 2)), "qScaleAndZeros"), ((torch.ones(64, 3).t(), w, 32, t), "A to be contiguous")):
        if message == "qScaleAndZeros":
            continue  # PyTorch reads out of the table's bounds
        out.add("_weight_int4pack_mm_cpu_tensor",
                lambda _, x, w, g, t: aten._weight_int4pack_mm_for_cpu(x, w, int(g), t), 64, args[0], args[1],
                torch.tensor(args[2]), args[3], message=message)
    for args, message in (((x.double(), w.char()[:, :64], torch.ones(32)), "16-bit float"),
                          ((torch.ones(3, 32), w.char(), torch.ones(31)), "scales to be 1d tensor with size 32"),
                          ((torch.ones(3, 33), w.char(), torch.ones(32)), "expect B.size(1) == 33"),
                          ((torch.ones(3, 32).half(), w.char(), torch.ones(32)), "expected scalar type"),
                          ((torch.ones(32, 3).t(), w.char(), torch.ones(32)), "A must be contiguous")):
        out.add("_weight_int8pack_mm", aten._weight_int8pack_mm, *args, message=message)


def dynamic(out, s, count):
    for _ in range(count):
        k, n = s.pick([32, 64, 128]), s.pick([1, 4, 16])
        block = s.pick([k, 32])
        w = torch.randint(0, 256, (n, k // 2), generator=s.g).to(torch.uint8)
        table = (torch.rand(n, k // block, generator=s.g) * 0.1).to(s.pick([torch.float32, torch.bfloat16]))
        bias = s.pick([None, floats(s, [n])])
        packed = out.add("_dyn_quant_pack_4bit_weight", aten._dyn_quant_pack_4bit_weight, w, table, bias, block, k, n)
        dtype = s.pick([torch.float32, torch.bfloat16]) if block == k else torch.float32
        x = floats(s, [s.pick([0, 1, 6]), k], dtype, s.pick([1.0, 0.0, 100.0]))
        if s.below(3) == 0:
            x = x.abs()
        out.add("_dyn_quant_matmul_4bit", aten._dyn_quant_matmul_4bit, x, packed, block, k, n,
                tolerance=tolerance(dtype))
    w = torch.zeros(16, 32, dtype=torch.uint8)
    out.add("_dyn_quant_pack_4bit_weight", aten._dyn_quant_pack_4bit_weight, w.int(), torch.ones(16, 1), None, 64, 64, 16,
            message="expect weight to be kByte")
    out.add("_dyn_quant_pack_4bit_weight", aten._dyn_quant_pack_4bit_weight, w, torch.ones(16, 1), None, 48, 64, 16,
            message="Group size should be multiple of 32")
    out.add("_dyn_quant_matmul_4bit", aten._dyn_quant_matmul_4bit, torch.ones(2, 64, dtype=torch.float64),
            torch.ones(528), 64, 64, 16, message="expect input to be float32 or bfloat16")


def scaled(out, s, count):
    eights = [torch.float8_e4m3fn, torch.float8_e5m2]
    for i in range(count):
        m, k, n = s.pick([1, 4, 17]), s.pick([16, 32, 48]), s.pick([16, 32])
        a, b = floats(s, [m, k]).to(s.pick(eights)), floats(s, [n, k]).to(s.pick(eights)).t()
        dtype = s.pick([torch.float32, torch.bfloat16, torch.float16] + eights)
        by_row = i % 3 == 0
        sa = torch.rand(m, 1, generator=s.g) + 0.5 if by_row else torch.tensor(0.5)
        sb = torch.rand(1, n, generator=s.g) + 0.5 if by_row else torch.tensor(1.5)
        bias = s.pick([None, floats(s, [n]), floats(s, [n], torch.bfloat16)])
        result = torch.tensor(3.0) if not by_row and dtype in eights and s.below(2) else None
        args = (a, b, sa, sb, bias, result)
        if i % 2:
            out.add("_scaled_mm", lambda *x: aten._scaled_mm(*x[:6], dtype), *args, DTYPES[dtype], tolerance=tolerance(dtype))
        else:
            target = torch.empty(n, m, dtype=dtype).t() if s.below(2) else torch.empty(m, n, dtype=dtype)
            given = bool(s.below(2))
            out.add("_scaled_mm_out", lambda t, *x: aten._scaled_mm.out(*x[:6], dtype if given else None, out=t),
                    target.zero_(), *args, DTYPES[dtype] if given else None, written=(0,), tolerance=tolerance(dtype))
    big = torch.full((4, 32), 448.0).to(eights[0])
    out.add("_scaled_mm", lambda *x: aten._scaled_mm(*x[:6], eights[0]), big, big.repeat(4, 1).t(), torch.tensor(1.0), torch.tensor(-1.0),
            None, None, DTYPES[eights[0]])
    for args in ((big.float(), big.t().float()), (big, big.t(), torch.ones(3))):
        out.add("_scaled_mm", lambda *x: aten._scaled_mm(*x[:6], eights[0]), args[0], args[1],
                args[2] if len(args) > 2 else torch.tensor(1.0), torch.tensor(1.0), None, None, DTYPES[eights[0]],
                message="Invalid scaling configuration")


def grouped(out, s, count):
    def aligned(shape, dtype, turned):
        *rest, rows, columns = shape
        t = floats(s, [*rest, columns, rows] if turned else shape, dtype)
        return t.transpose(-1, -2) if turned else t

    def cuts(groups, length):
        points = torch.randint(length + 1, (groups - 1,), generator=s.g).sort()[0]
        return torch.cat([points, torch.tensor([length])]).int()

    for i in range(count):
        dtype = s.pick(FLOATS)
        g, m, k, n = 1 + s.below(3), 8 * (1 + s.below(2)), 8 * (1 + s.below(3)), 8 * (1 + s.below(2))
        turned = bool(s.below(2))
        case = i % 4
        if case == 0:
            args = (aligned([m, k], dtype, False), aligned([g, k, n], dtype, turned), cuts(g, m))
        elif case == 1:
            args = (aligned([m, k], dtype, turned), aligned([k, n], dtype, False), cuts(g, k))
        elif case == 2:
            args = (aligned([g, m, k], dtype, False), aligned([k, n], dtype, turned), cuts(g, n))
        else:
            args = (aligned([g, m - 3, k], dtype, False), aligned([g, k, n - 3], dtype, True), None)
        out.add("_grouped_mm", aten._grouped_mm, *args, None, tolerance=tolerance(dtype))
    a, b, o = torch.ones(8, 16), torch.ones(2, 16, 8), torch.tensor([3, 8], dtype=torch.int32)
    for args, message in (((a.double(), b.double(), o), "Expected mat_a to be Float32"), ((a, b, None), "Have to provide offsets"),
                          ((a, b.half(), o), "to have the same dtype"), ((a, b, o.long()), "Offsets have to be int32"),
                          ((a, torch.ones(2, 16, 5), o), "multiple of 16 bytes"), ((a, b, o[:1]), "batch sizes have to match"),
                          ((a[:, ::2], b[:, :8], o), "Invalid strides/sizes"), ((a, torch.ones(2, 12, 8), o), "contraction dimension")):
        out.add("_grouped_mm", aten._grouped_mm, *args, None, message=message)
    out.add("_grouped_mm", aten._grouped_mm, a, b, o, torch.ones(2, 8), message="Bias not supported yet")


def norm(out, s, count):
    for _ in range(count):
        dtype = s.pick([torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64])
        shape = s.pick([[3, 4, 8], [5, 33], [7], [2, 100], [0, 8]])
        reduced = min(len(shape), s.pick([1, 1, 2]))
        x = s.strided(s.values(dtype, shape, special=0.02 if not dtype.is_complex else 0.0), ("packed", "permuted", "sliced"))
        weight = s.pick([None, s.values(s.pick([dtype, dtype, torch.float32]), shape[-reduced:])])
        if dtype.is_complex and weight is not None:
            weight = weight.to(dtype)
        out.add("_fused_rms_norm", aten._fused_rms_norm, x, shape[-reduced:], weight, s.pick([None, 1e-3]),
                tolerance=tolerance(dtype))
    out.add("_fused_rms_norm", aten._fused_rms_norm, torch.ones(3, 0), [0], None, None)
    out.add("_fused_rms_norm", aten._fused_rms_norm, torch.ones(3, 8, dtype=torch.int32), [8], None, None,
            message="not implemented for '")


def main(seed=1, count=40, path=pathlib.Path(__file__).parents[1] / "data" / "quantised.cases"):
    s = Samples(seed)
    out = CaseWriter(path)
    qlinear(out, s, 2 * count)
    qconv(out, s, 2 * count)
    linears(out, s, count // 4)
    weight_only(out, s, count // 4)
    dynamic(out, s, count // 3)
    scaled(out, s, count)
    grouped(out, s, count)
    norm(out, s, count)
    out.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *map(pathlib.Path, sys.argv[3:4]))
