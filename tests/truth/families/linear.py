"""Linear layers: src/cpu/layers/mkldnn_linear.cpp, weight_only.cpp, dynamic_quant.cpp, wrapped_linear.cpp, scaled_mm.cpp,
grouped_mm.cpp, and their use of oneDNN (onednn_matmul.h).

Floats near the formula in float64, with an error that grows with the root of the terms. Limits: 16 rows and 2^23
multiplications (bfloat16 2^20) for oneDNN with constant weights, plain or packed; 8 rows of int8 weights as single dot
products, in steps of 8 and 32; blocks of 32 or 64 columns of int4 weights by 4 rows, and narrower remainders of 16, 32,
48 columns; groups of 32 to 256; 500000 multiplications per thread.
"""
import torch

import abi
import case
from convolution import activated, activation, steepness

DEVICES = ("cpu",)
ROWS, COLUMNS, STEPS = (1, 4, 8, 14, 16, 32), (8, 16, 32, 48, 64), (2, 8, 16, 32, 64, 256)
LAYOUTS = ("packed", "packed", "permuted", "sliced", "offset", "padded", "expanded")


def draw(d):
    return d.choice((pointwise, pointwise, pointwise, binary, binary, mkl, half, int8, int4, int4, dynamic4, scaled, grouped))(d)


def leading(d, rows):
    """Leading dimensions whose product is near `rows`."""
    way = d.random()
    if way < 0.4:
        return [rows]
    if way < 0.5 and rows == 1:
        return []
    first = d.choice((1, 2, 3, 5))
    return [first, max(1, rows // first)] if way < 0.9 else [1, first, max(1, rows // first)]


def sizes(d, big=True):
    m, n, k = d.size(*ROWS, low=0 if d.chance(0.03) else 1, high=70), d.size(*COLUMNS, low=1, high=200), d.size(*STEPS, low=1, high=600)
    if big and d.chance(0.06):
        m, n, k = d.choice((15, 16, 17, 33, 64, 100)), d.choice((48, 64, 96, 128, 512, 513)), d.choice((64, 128, 250, 256, 512))
    while m * n * k > (1 << 24 if big else 1 << 21):
        m, n, k = (m + 1) // 2, (n + 1) // 2, (k + 1) // 2
    return m, n, k


def held(d, w):
    way = d.random()
    if way < 0.3:
        return "plain", lambda w: w, lambda w: w
    if way < 0.6:
        return "constant", abi.Constant, lambda w: w
    with abi.packing():
        packed = torch.ops.mkldnn._reorder_linear_weight(w.contiguous(), d.choice((None, 1, 4, 64)))
    return "packed", lambda w: packed, lambda w: packed


def operands(d, dtype, kind, big=True):
    m, n, k = sizes(d, big)
    x = d.tensor(dtype, (*leading(d, m), k), kind, LAYOUTS)
    w = d.tensor(dtype, (n, k), kind, ("packed", "packed", "permuted", "sliced", "offset", "padded"))
    bias_dtype = torch.float32 if dtype == torch.bfloat16 and d.chance(0.2) else dtype
    b = d.tensor(bias_dtype, (n,), kind, ("packed", "packed", "sliced", "offset")) if d.chance(0.6) else None
    return x, w, b


def products(x, w, b):
    sums = x @ w.mT
    return sums if b is None else sums + b


def absolute(t):
    return None if t is None else t.abs()


def bound(k):
    return 8 + 0.5 * k ** 0.5 + k / 16


def pointwise(d):
    dtype, kind = d.choice((torch.float32, torch.float32, torch.bfloat16, torch.bfloat16, torch.float16)), d.choice(("normal", "few", "wide"))
    x, w, b = operands(d, dtype, kind)
    name, scalars, algorithm = activation(d)
    how, ours, theirs = held(d, w) if dtype != torch.float16 else ("plain", lambda w: w, lambda w: w)

    def same(x, w, b):
        if dtype == torch.float16 or (b is not None and b.dtype != dtype):
            wide = activated(products(x.float(), w.float(), None if b is None else b.float()), name, scalars, algorithm)
            return wide.to(dtype)
        return torch.ops.mkldnn._linear_pointwise(x, theirs(w), b, name, scalars, algorithm)
    return case.Case(f"_linear_pointwise {dtype} {list(x.shape)} {list(x.stride())} * {list(w.shape)} {list(w.stride())} {kind} {how} "
                     f"bias {None if b is None else b.dtype} {name} {scalars} {algorithm}",
                     lambda x, w, b: abi.call("_linear_pointwise", x, ours(w), b, name, abi.Each(scalars), algorithm), same,
                     [x, w, b], exact=lambda x, w, b: activated(products(x, w, b), name, scalars, algorithm), error=bound(w.size(1)),
                     magnitude=lambda x, w, b: 1 + steepness(name, scalars) * products(x.abs(), w.abs(), absolute(b)), strides=False)


def binary(d):
    dtype, kind = d.choice((torch.float32, torch.float32, torch.bfloat16, torch.float16)), d.choice(("normal", "few"))
    x, w, b = operands(d, dtype, kind)
    if b is not None and b.dtype != dtype:
        b = b.to(dtype)
    full = [*x.shape[:-1], w.size(0)]
    shape = full if d.chance(0.7) else d.choice(([w.size(0)], [1] * (len(full) - 1) + full[-1:], full[:-1] + [1], [1] * len(full)))
    combine = d.choice(("add", "add", "sub", "mul"))
    other = d.tensor(dtype, shape, kind, LAYOUTS)
    how, ours, theirs = held(d, w) if dtype != torch.float16 else ("plain", lambda w: w, lambda w: w)
    function = {"add": torch.add, "sub": torch.sub, "mul": torch.mul}[combine]

    def same(x, other, w, b):
        if dtype == torch.float16 or list(other.shape) != full:
            return function(products(x.float(), w.float(), None if b is None else b.float()), other.float()).to(dtype)
        return torch.ops.mkldnn._linear_pointwise.binary(x, other, theirs(w), b, combine)
    return case.Case(f"_linear_pointwise_binary {dtype} {list(x.shape)} * {list(w.shape)} {kind} {how} bias {b is not None} {combine} "
                     f"{list(other.shape)} {list(other.stride())}",
                     lambda x, o, w, b: abi.call("_linear_pointwise_binary", x, o, ours(w), b, combine), same, [x, other, w, b],
                     exact=lambda x, o, w, b: function(products(x, w, b), o), error=bound(w.size(1)), strides=False,
                     magnitude=lambda x, o, w, b: (torch.mul if combine == "mul" else torch.add)(
                         products(x.abs(), w.abs(), absolute(b)), o.abs()))


def mkl(d):
    x, w, b = operands(d, torch.float32, d.choice(("normal", "few", "wide")))
    constant = d.chance(0.5)
    hold = abi.Constant if constant else (lambda t: t)
    prepacked = torch.empty(1)  # MKL's own format, which nobody else can read
    return case.Case(f"_mkl_linear {list(x.shape)} * {list(w.shape)} constant {constant}",
                     lambda x, w, b: abi.call("_mkl_linear", x, prepacked, hold(w), b, x.numel() // max(1, x.size(-1))), products,
                     [x, w, b], error=bound(w.size(1)), magnitude=lambda x, w, b: products(x.abs(), w.abs(), absolute(b)), strides=False)


def half(d):
    """float16 weights: fbgemm's, packed by us, and oneDNN's."""
    x, w, b = operands(d, torch.float32, d.choice(("normal", "few", "wide")), big=False)
    hold = abi.Constant if d.chance(0.5) else (lambda t: t)
    rounded = lambda w: w.half().to(w.dtype)
    common = dict(error=bound(w.size(1)), strides=False)
    if d.chance(0.6):
        def ours(x, w, b):
            packed, = abi.call("wrapped_fbgemm_pack_gemm_matrix_fp16", w)
            return abi.call("wrapped_fbgemm_linear_fp16_weight", x, hold(packed), b, w.size(0))
        return case.Case(f"wrapped_fbgemm_linear_fp16_weight {list(x.shape)} * {list(w.shape)}", ours,
                         lambda x, w, b: products(x, rounded(w), b), [x, w, b],
                         magnitude=lambda x, w, b: products(x.abs(), w.abs(), absolute(b)), **common)
    relu = d.chance(0.5)
    name = f"linear{'_relu' if relu else ''}_dynamic_fp16"
    packed = torch.ops.onednn.linear_prepack_fp16(w.contiguous(), [max(1, x.numel() // x.size(-1)), x.size(-1)])

    def formula(x, w, b):
        sums = products(x, rounded(w), b)
        return torch.relu(sums) if relu else sums
    return case.Case(f"{name} {list(x.shape)} * {list(w.shape)}",
                     lambda x, w, b: abi.call_named(f"onednn::{name}", "", x, packed, b), formula, [x, w, b],
                     magnitude=lambda x, w, b: products(x.abs(), w.abs(), absolute(b)), **common)


def int8(d):
    dtype = d.choice((torch.float32, torch.bfloat16, torch.float16))
    m, n, k = sizes(d, False)
    x = d.tensor(dtype, (m, k), "normal", ("packed", "padded", "offset"))
    w = torch.randint(-128, 128, (n, k), generator=d.torch).to(torch.int8)
    scales = d.tensor(dtype, (n,), "positive", ("packed", "sliced", "offset"))
    # Not ATen's operator, which reads out of bounds for strided operands.
    formula = lambda x, w, s: (x @ w.to(x.dtype).mT) * s
    return case.Case(f"_weight_int8pack_mm {dtype} {m} {n} {k}", lambda x, w, s: abi.call("_weight_int8pack_mm", x, w, s),
                     lambda x, w, s: formula(x.float(), w, s.float()).to(dtype), [x, w, scales], exact=formula, error=bound(k),
                     magnitude=lambda x, w, s: formula(x.abs(), w.double().abs(), s.abs()))


def int4(d):
    dtype = d.choice((torch.float32, torch.bfloat16, torch.float16))
    group = d.choice((32, 64, 128, 256))
    k, n, m = group * d.choice((1, 2, 3, 5) if group < 128 else (1, 2)), 16 * d.choice((1, 2, 3, 4, 5, 6, 7, 8, 9)), d.size(1, 4, 8, low=1, high=20)
    x = d.values(dtype, (m, k))
    w = torch.randint(0, 16, (n, k), generator=d.torch).int()
    table = torch.stack((d.values(dtype, (k // group, n), "positive"), d.values(dtype, (k // group, n))), -1).contiguous()

    def formula(x, w, table):
        scale, zero = (table[..., i].mT.repeat_interleave(group, 1) for i in (0, 1))  # [n, k]
        return x @ ((w.to(x.dtype) - 8) * scale + zero).mT

    def size(x, w, table):
        scale, zero = (table[..., i].mT.repeat_interleave(group, 1).abs() for i in (0, 1))
        return x.abs() @ ((w.double() - 8).abs() * scale + zero).mT
    by_name = d.chance(0.3)

    def ours(x, w, table):
        packed, = abi.call_named("_convert_weight_to_int4pack_for_cpu", "", w, 2)
        if by_name:
            return abi.call_named("_weight_int4pack_mm_for_cpu", "", x, packed, group, table)
        return abi.call("_weight_int4pack_mm_cpu_tensor", x, packed, torch.tensor(group), table)

    def theirs(x, w, table):
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(w, 2)
        return torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, group, table)
    return case.Case(f"_weight_int4pack_mm {dtype} {m} {n} {k} group {group}", ours, theirs, [x, w, table], exact=formula,
                     error=bound(k), magnitude=size)


def dynamic4(d):
    whole = d.chance(0.4)
    block = d.choice((32, 64, 96))
    k = d.choice((2, 4, 32, 34, 64, 66, 128)) if whole else block * d.choice((2, 3, 4))
    m, n, dtype = d.size(1, 4, low=1, high=12), d.size(1, 8, 16, low=1, high=40), torch.bfloat16 if whole and d.chance(0.4) else torch.float32
    block = k if whole else block
    x = d.values(dtype, (m, k), d.choice(("normal", "positive", "wide", "zero")))
    w = torch.randint(0, 256, (n, k // 2), generator=d.torch).to(torch.uint8)
    scales = d.values(dtype if whole and d.chance(0.5) else torch.float32, (n, k // block), "positive")
    bias = d.values(torch.float32, (n,)) if d.chance(0.5) else None

    def run(pack, product):
        def f(x, w, scales, bias):
            packed = pack(w, scales, bias, block, k, n)
            return product(x, packed[0] if isinstance(packed, list) else packed, block, k, n)
        return f
    ours = run(lambda *a: abi.call("_dyn_quant_pack_4bit_weight", *a), lambda *a: abi.call("_dyn_quant_matmul_4bit", *a))
    theirs = run(torch.ops.aten._dyn_quant_pack_4bit_weight, torch.ops.aten._dyn_quant_matmul_4bit)
    # Activations are rounded; ties depend on the arithmetic of ATen's own reference.
    return case.Case(f"_dyn_quant_matmul_4bit {dtype} {m} {n} {k} block {block} scales {scales.dtype} bias {bias is not None}", ours,
                     theirs, [x, w, scales, bias], exact=lambda *a: theirs(x, w, scales, bias), error=4 + k / 16,
                     magnitude=lambda x, w, scales, bias: (x.abs().sum(1, keepdim=True) * 8 * scales.double().abs().amax(1)) + 1)


def scaled(d):
    fp8 = (torch.float8_e4m3fn, torch.float8_e5m2)
    m, n, k = 16 * d.choice((1, 1, 2, 3)), 16 * d.choice((1, 2, 3, 4)), 16 * d.choice((1, 2, 3, 4, 16))
    if d.chance(0.5):
        m, n, k = d.size(1, 8, 16, low=1, high=40), d.size(1, 8, 16, low=1, high=70), d.size(1, 8, 16, low=1, high=200)
    a = d.values(torch.float32, (m, k)).to(d.choice(fp8))
    b = d.values(torch.float32, (n, k)).to(d.choice(fp8)).t()
    if d.chance(0.3):
        b = b.contiguous()
    if d.chance(0.6):
        sa, sb = d.values(torch.float32, (1,) if d.chance(0.7) else (), "positive"), d.values(torch.float32, (1,), "positive")
    else:
        sa, sb = d.values(torch.float32, (m, 1), "positive"), d.values(torch.float32, (1, n), "positive")
    out_dtype = d.choice((torch.float32, torch.bfloat16, torch.float16, a.dtype, None))
    bias = d.values(d.choice((torch.float32, torch.bfloat16, torch.float16)), (n,)) if d.chance(0.5) else None
    # Not for fp8 results, where the last bits of a sum decide between two neighbours.
    small = out_dtype is None or out_dtype in fp8

    def formula(a, b, sa, sb, bias, *_):
        wide = (a.double() @ b.double()) * sa * sb
        return wide if bias is None else wide + bias.double()

    def same(a, b, sa, sb, bias):
        try:
            return torch.ops.aten._scaled_mm(a, b, sa, sb, bias, None, out_dtype)
        except RuntimeError:
            return formula(a, b, sa, sb, bias).float().to(out_dtype or a.dtype)

    def size(a, b, sa, sb, bias):
        wide = (a.double().abs() @ b.double().abs()) * sa * sb
        return wide if bias is None else wide + bias.double().abs()
    common = dict(error=bound(k), strides=False)
    arguments = [a, b, sa, sb, bias]
    if small:
        # Compared as numbers: within half a step.
        steps = {torch.float8_e4m3fn: (2.0 ** -4, 2.0 ** -10), torch.float8_e5m2: (2.0 ** -3, 2.0 ** -17)}[out_dtype or a.dtype]
        top = torch.finfo(out_dtype or a.dtype).max
        clip = lambda t: t.clamp(-top, top)
        return case.Case(f"_scaled_mm {a.dtype} {b.dtype} {m} {n} {k} to {out_dtype} {list(sa.shape)}",
                         lambda *v: [t.double().nan_to_num(top, top, -top) for t in abi.call("_scaled_mm", *v, None, out_dtype, False)],
                         lambda *v: clip(formula(*v)), arguments, exact=lambda *v: clip(formula(*v)), slack=0,
                         error=1 / torch.finfo(torch.float64).eps, strides=False,
                         magnitude=lambda *v: clip(formula(*v)).abs() * steps[0] * 1.001 + steps[1] * 1.001 + size(*v) * bound(k) * 1.2e-7)
    if d.chance(0.4):
        out = d.tensor(out_dtype, (m, n), "normal", ("packed", "permuted", "sliced", "padded"))
        return case.Case(f"_scaled_mm_out {a.dtype} {b.dtype} {m} {n} {k} to {out_dtype} {list(sa.shape)}",
                         lambda out, *v: abi.call("_scaled_mm_out", out, *v, None, out_dtype, False),
                         lambda out, *v: out.copy_(same(*v)), [out, *arguments], written=[0],
                         exact=lambda out, *v: formula(*v), magnitude=lambda out, *v: size(*v), **common)
    return case.Case(f"_scaled_mm {a.dtype} {b.dtype} {m} {n} {k} to {out_dtype} {list(sa.shape)}",
                     lambda *v: abi.call("_scaled_mm", *v, None, out_dtype, False), same, arguments, exact=formula, magnitude=size,
                     **common)


def grouped(d):
    dtype = d.choice((torch.float32, torch.bfloat16, torch.float16))
    align = 16 // dtype.itemsize
    groups = d.choice((1, 2, 3, 5))
    m, n, k = (align * d.choice((1, 2, 3, 4)) for _ in range(3))
    form = d.choice(("2d3d", "2d2d", "3d2d", "3d3d"))

    def offsets(total):
        cuts = sorted(d.randrange(total + 1) for _ in range(groups - 1)) + [total]
        return torch.tensor(cuts, dtype=torch.int32)
    turn = d.chance(0.5)
    b3 = lambda: (d.values(dtype, (groups, n, k)).mT if turn else d.values(dtype, (groups, k, n)))
    if form == "2d3d":
        rows = d.size(8, 16, low=0, high=40)
        a, b, offs = d.values(dtype, (rows, k)), b3(), offsets(rows)
    elif form == "2d2d":
        a, b, offs = d.values(dtype, (m, k)), d.values(dtype, (n, k)).t() if turn else d.values(dtype, (k, n)), offsets(k)
    elif form == "3d2d":
        a, b, offs = d.values(dtype, (groups, m, k)), d.values(dtype, (n, k)).t() if turn else d.values(dtype, (k, n)), offsets(n)
    else:
        a, b, offs = d.values(dtype, (groups, m, k)), b3(), None

    def formula(a, b, offs):
        if offs is None:
            return a @ b
        cuts = [0, *offs.tolist()]
        spans = [slice(cuts[i], cuts[i + 1]) for i in range(groups)]
        if form == "2d3d":
            return torch.cat([a[s] @ b[i] for i, s in enumerate(spans)])
        if form == "3d2d":
            return torch.cat([a[i] @ b[:, s] for i, s in enumerate(spans)], 1)
        return torch.stack([a[:, s] @ b[s] for s in spans])
    return case.Case(f"_grouped_mm {dtype} {form} {list(a.shape)} {list(b.shape)} {list(b.stride())} offs {None if offs is None else offs.tolist()}",
                     lambda a, b, offs: abi.call("_grouped_mm", a, b, offs, None, None), lambda a, b, offs: torch._grouped_mm(a, b, offs=offs),
                     [a, b, offs], exact=formula, error=bound(k), magnitude=lambda a, b, offs: formula(a.abs(), b.abs(), offs))
