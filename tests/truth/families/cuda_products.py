"""Products on a device by the C functions: cuBLASLt's, whose plans depend on layouts, leading dimensions and alignments
(cublaslt_matmul.cpp), results in temporaries, empty products and factors of 0, added rows with an activation; and
weight_only_few_rows.cu: 4-bit weights up to 16 rows, 8-bit ones up to 8, and more; matmul_few_rows.cpp: other
weights up to 8. Float8 with one scale, one per row, and one per block of 128 (scaled_mm.cpp); groups whose ends the host reads."""
import torch

import abi
import case

DEVICES = ("cuda",)
HALVES = (torch.float16, torch.bfloat16)
EPS = 2.0 ** -23


def sizes(d, most=1 << 22):
    if d.chance(0.4):
        return few(d)
    m = d.size(1, 8, 16, 32, 64, 128, high=700)
    n = d.size(8, 16, 32, 64, 128, 256, high=700)
    k = d.size(8, 16, 32, 64, 256, 1024, high=3000)
    while m * n * k > most * 8 or max(m * k, n * k, m * n) > 200000:
        m, n, k = (m + 1) // 2, (n + 1) // 2, (k + 1) // 2
    return m, n, k


def few(d):
    """Few rows, or few columns, of either side of matmul_few_rows.cpp: 8 rows, warps that share k by n and k, whole loads."""
    m, n = d.choice((1, 1, 2, 4, 5, 8, 9)), d.size(1, 2, 8, 16, 64, 256, 1024, 2112, 4224, high=5000)
    k = d.size(8, 64, 256, 512, 1024, 2048, 4096, high=4200)
    if d.chance(0.6):
        n, k = (n + 7) // 8 * 8, (k + 7) // 8 * 8
    while n * k > 200000:
        if d.chance(0.5):
            n = (n + 1) // 2
        else:
            k = (k + 1) // 2
    return (n, m, k) if d.chance(0.2) else (m, n, k)


def matrix(d, dtype, shape, kind="normal"):
    """Row-major, column-major, or a part of either, with rows aligned or not."""
    way = d.choice(("rows", "rows", "columns", "columns", "any", "wide rows", "wide columns"))
    *batch, r, c = shape
    if way == "any":
        return d.tensor(dtype, shape, kind)
    gap, first = (d.choice((1, 3, 8, 16)), d.choice((0, 0, 1, 2, 8))) if way.startswith("wide") else (0, 0)
    if way.endswith("rows"):
        return d.values(dtype, (*batch, r, first + c + gap), kind).to(d.device)[..., first:first + c]
    return d.values(dtype, (*batch, c, first + r + gap), kind).to(d.device)[..., first:first + r].mT


def result(d, dtype, shape):
    """An output: mostly row-major, or a part of a tensor."""
    if d.chance(0.5):
        return d.laid_out(torch.full(shape, 7.0).to(dtype), ("packed",))
    return d.laid_out(torch.full(shape, 7.0).to(dtype), ("packed", "permuted", "offset", "padded", "sliced"))


def near(dtype, k, function):
    """Sums of k terms in float32 or wider; cuBLAS may round partial sums to a half type."""
    split = 0.5 * torch.finfo(dtype).eps / EPS if dtype in HALVES and k >= 128 else 0
    return dict(error=(2 if dtype.is_complex else 1) * (4 + 0.5 * max(k, 1) ** 0.5 + split), magnitude=lambda *v: function(
        *[x.abs() if isinstance(x, torch.Tensor) else abs(x) if isinstance(x, (int, float)) and not isinstance(x, bool) else x for x in v]))


def plain(d):
    dtype = d.choice((torch.float32, torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.complex128))
    m, n, k = sizes(d)
    kind = d.choice(("normal", "normal", "few", "wide"))
    op = d.choice(("mm", "mm", "addmm", "addmm", "bmm", "baddbmm", "addmv", "addbmm", "_addmm_activation", "mm_dtype"))
    batch = d.size(2, 3, 8, high=9)
    while batch > 1 and batch * max(m * n, m * k, n * k) > 300000:
        batch //= 2
    alpha, beta = d.choice((1, 1, 1, 0, -2, 0.5)), d.choice((1, 1, 0, 3, -0.25))
    label = f"{dtype} m {m} n {n} k {k} batch {batch} {kind} alpha {alpha} beta {beta}"
    a, b = matrix(d, dtype, (m, k), kind), matrix(d, dtype, (k, n), kind)
    if op == "mm":
        return into(label, "mm_out", result(d, dtype, (m, n)), [a, b], torch.mm, dtype, k)
    if op == "mm_dtype":
        if dtype not in HALVES:
            return None
        return case.Case(f"mm_dtype_out {label}", lambda o, x, y: abi.call("mm_dtype_out", o, x, y, torch.float32),
                         lambda o, x, y: put(o, x.double() @ y.double()),
                         [result(d, torch.float32, (m, n)), a, b], written=[0], exact=lambda o, x, y: [x @ y],
                         **near(torch.float32, k, lambda o, x, y: x @ y))
    if op == "addmm":
        bias = matrix(d, dtype, d.choice(((m, n), (1, n), (m, 1))), kind) if d.chance(0.5) else d.tensor(
            dtype, d.choice(((n,), (n,), (1,), ())), kind)
        return into(label, "addmm_out", result(d, dtype, (m, n)), [bias, a, b],
                    lambda s, x, y: torch.addmm(s, x, y, beta=beta, alpha=alpha), dtype, k, beta, alpha,
                    size=lambda s, x, y: torch.addmm(s, x, y, beta=abs(beta), alpha=abs(alpha)))
    if op in ("bmm", "baddbmm"):
        a, b = matrix(d, dtype, (batch, m, k), kind), matrix(d, dtype, (batch, k, n), kind)
        if d.chance(0.15):
            a = a[:1].expand(batch, m, k)
        out = result(d, dtype, (batch, m, n))
        if op == "bmm":
            return into(label, "bmm_out", out, [a, b], torch.bmm, dtype, k)
        bias = d.tensor(dtype, d.choice(((n,), (batch, m, n), (1, 1, n), (batch, 1, n))), kind)
        return into(label, "baddbmm_out", out, [bias, a, b],
                    lambda s, x, y: torch.baddbmm(s, x, y, beta=beta, alpha=alpha), dtype, k, beta, alpha,
                    size=lambda s, x, y: torch.baddbmm(s, x, y, beta=abs(beta), alpha=abs(alpha)))
    if op == "addmv":
        s, x, y = d.tensor(dtype, (m,), kind), a, d.tensor(dtype, (k,), kind)
        return case.shim(label, "addmv", s, x, y, beta, alpha,
                         torch=lambda s, x, y, *_: torch.addmv(s, x, y, beta=beta, alpha=alpha),
                         **near(dtype, k, lambda s, x, y, *_: torch.addmv(s, x, y, beta=abs(beta), alpha=abs(alpha))))
    if op == "addbmm":
        a, b = matrix(d, dtype, (batch, m, k), kind), matrix(d, dtype, (batch, k, n), kind)
        s = d.tensor(dtype, d.choice(((n,), (m, n))), kind)
        # In half types ATen rounds the sum after each matrix of the batch.
        return case.shim(label, "addbmm", s, a, b, beta, alpha,
                         torch=lambda s, x, y, *_: torch.addbmm(s, x, y, beta=beta, alpha=alpha),
                         **near(dtype, k * max(batch, 1), lambda s, x, y, *_: torch.addbmm(s, x, y, beta=abs(beta), alpha=abs(alpha))))
    if dtype.is_complex:
        return None
    gelu = d.chance(0.5)

    def activated(s, x, y, *_):
        sums = torch.addmm(s, x, y, beta=beta, alpha=alpha)
        return torch.nn.functional.gelu(sums, approximate="tanh") if gelu else sums.relu()
    s = d.tensor(dtype, (n,), kind)
    # cuBLASLt's gelu uses float32 constants for float64.
    loose = 2e-4 / torch.finfo(dtype).eps if dtype == torch.float64 and gelu else 0
    options = near(dtype, k, lambda s, x, y, *_: torch.addmm(s, x, y, beta=abs(beta), alpha=abs(alpha)) + 1e-2)
    options["error"] += 16 + loose
    return case.shim(f"{label} gelu {gelu}", "_addmm_activation", s, a, b, beta, alpha, gelu, torch=activated, **options)


def put(out, value):
    out.copy_(value)


def into(label, name, out, arguments, function, dtype, k, *numbers, size=None):
    """NAME_out, which writes its first argument, as a function of the others."""
    return case.Case(f"{name} {label}", lambda o, *v: abi.call(name, o, *v, *numbers), lambda o, *v: put(o, function(*v)),
                     [out, *arguments], written=[0], exact=lambda o, *v: [function(*v)],
                     **near(dtype, k, lambda o, *v: (size or function)(*v)))


def whole(d):
    """int8 into int32: exact."""
    m, n, k = sizes(d, 1 << 21)
    if d.chance(0.6):
        n, k = (n + 7) // 8 * 8, (k + 7) // 8 * 8
    a, b = matrix(d, torch.int8, (m, k), "wide"), matrix(d, torch.int8, (k, n), "wide")
    return case.Case(f"_int_mm_out {m} {n} {k} {a.stride()} {b.stride()}", lambda o, x, y: abi.call("_int_mm_out", o, x, y),
                     lambda o, x, y: put(o, x.double() @ y.double()), [result(d, torch.int32, (m, n)), a, b], written=[0])


def eight_bits(d):
    dtype = d.choice((torch.float32, torch.float16, torch.bfloat16, torch.float64))
    rows = d.choice((1, 2, 3, 7, 8, 9, 10, 16, 17, 33))
    n, k = d.size(8, 16, 64, 256, low=1, high=600), d.size(16, 32, 512, 513, 1024, low=1, high=2100)
    if d.chance(0.7):
        k = (k + 15) // 16 * 16
    x = matrix(d, dtype, (rows, k)) if d.chance(0.4) else d.values(dtype, (rows, k)).to(d.device)
    w = d.values(torch.int8, (n, k), "wide").to(d.device)
    if d.chance(0.2):
        w = d.laid_out(w.cpu(), ("padded", "offset", "permuted"))
    s = d.tensor(dtype, (n,), "positive")
    error = 4 + 0.5 * k ** 0.5
    return case.Case(f"_weight_int8pack_mm {dtype} {rows} {n} {k} {x.stride()} {w.stride()}",
                     lambda x, w, s: abi.call("_weight_int8pack_mm", x, w, s),
                     lambda x, w, s: ((x.double() @ w.double().mT) * s.double()).to(dtype), [x, w, s],
                     # float64 is summed in float32.
                     error=error * (2.0 ** 29 if dtype == torch.float64 else 1), exact=lambda x, w, s: [(x @ w.double().mT) * s],
                     magnitude=lambda x, w, s: (x.abs() @ w.double().abs().mT) * s.abs())


def four_bits(d):
    inner, group = d.choice((2, 4, 8)), d.choice((32, 64, 128, 256))
    rows = d.choice((1, 2, 7, 8, 9, 15, 16, 17, 18, 40))
    step = max(16 * inner, group)
    n, k = 8 * d.choice((1, 2, 3, 8, 9, 16, 31, 64)), step * d.choice((1, 2, 3, 4, 7, 8, 9, 10))
    q = d.values(torch.uint8, (n, k // 2), "wide").to(d.device)
    packed = torch.ops.aten._convert_weight_to_int4pack(q, inner)
    x = matrix(d, torch.bfloat16, (rows, k)) if d.chance(0.4) else d.values(torch.bfloat16, (rows, k)).to(d.device)
    scales = d.values(torch.bfloat16, (k // group, n, 2)).to(d.device)

    def weights(s):
        """[n, k] as used in the product: rounded to bfloat16. Two per byte, the first in the upper half."""
        numbers = torch.stack((q >> 4, q & 15), -1).reshape(n, k).double() - 8
        by, zero = (s.double()[..., i].mT.repeat_interleave(group, 1) for i in (0, 1))
        return (numbers * by + zero).to(torch.bfloat16).double()
    return case.Case(f"_weight_int4pack_mm {rows} {n} {k} inner {inner} group {group} {x.stride()}",
                     lambda x, p, s: abi.call("_weight_int4pack_mm", x, p, group, s),
                     lambda x, p, s: (x.double() @ weights(s).mT).to(torch.bfloat16), [x, packed, scales],
                     error=4 + 0.5 * k ** 0.5 + (0.5 * 2.0 ** 16 if rows > 16 else 0), exact=lambda x, p, s: [x @ weights(s).mT],
                     magnitude=lambda x, p, s: x.abs() @ weights(s).abs().mT)


def float8(d):
    m, n, k = d.size(16, 32, 64, 128, low=1, high=300), d.size(16, 32, 128, low=1, high=300), d.size(16, 32, 128, 256, low=1, high=500)
    if d.chance(0.7):
        n, k = (n + 15) // 16 * 16, (k + 15) // 16 * 16
    types = d.choice(((torch.float8_e4m3fn, torch.float8_e4m3fn), (torch.float8_e4m3fn, torch.float8_e5m2), (torch.float8_e5m2, torch.float8_e4m3fn)))
    out = d.choice((torch.bfloat16, torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn))
    a, b = d.values(types[0], (m, k)).to(d.device), d.values(types[1], (n, k)).to(d.device).mT
    if d.chance(0.2):
        b = d.values(types[1], (k, n)).to(d.device)
    way = d.choice(("one", "one", "rows", "rows", "blocks"))
    if way == "one":
        sa, sb = (d.values(torch.float32, d.choice(((), (1,), (1, 1))), "positive").to(d.device) for _ in range(2))
    elif way == "rows":
        sa, sb = d.values(torch.float32, (m, 1), "positive").to(d.device), d.values(torch.float32, (1, n), "positive").to(d.device)
    else:
        sa = d.values(torch.float32, (m, (k + 127) // 128), "positive").to(d.device)
        sb = d.values(torch.float32, ((k + 127) // 128, (n + 127) // 128 if d.chance(0.5) else n), "positive").to(d.device)
    if way == "rows" and out != torch.bfloat16:
        out = torch.bfloat16
    bias = d.values(out if out in HALVES else torch.bfloat16, (n,)).to(d.device) if d.chance(0.4) and out != torch.float32 else None
    fast = d.chance(0.5)

    def spread(s, rows, columns):
        if s.numel() == 1:
            return s.reshape(1, 1).double()
        s = s.double()
        for dim, length in ((0, rows), (1, columns)):
            if s.shape[dim] not in (1, length):
                s = s.repeat_interleave(128, dim).narrow(dim, 0, length)
        return s

    def product(a, b, sa, sb, *bias, sized=lambda t: t):
        found = sized(a.double() * (spread(sa, m, k))) @ sized(b.double() * spread(sb, k, n))
        return found + sized(bias[0].double()) if bias else found
    # Hopper sums float8 with 14 bits, and without fast_accum adds each 128 of them in float32.
    error = 2.0 ** 11 * (1 + k / 512)
    return case.Case(f"_scaled_mm {types} {out} {m} {n} {k} {way} {list(sa.shape)} {list(sb.shape)} bias {bias is not None} fast {fast}",
                     lambda a, b, sa, sb, *bias: abi.call("_scaled_mm", a, b, sa, sb, bias[0] if bias else None, None, out, fast),
                     lambda *v: product(*v).clamp(-448, 448).to(out) if out == torch.float8_e4m3fn else product(*v).to(out),
                     [a, b, sa, sb] + ([bias] if bias is not None else []), error=error,
                     exact=lambda *v: [product(*v).clamp(-448, 448) if out == torch.float8_e4m3fn else product(*v)],
                     magnitude=lambda *v: product(*v, sized=torch.abs) * (1 if out != torch.float8_e4m3fn else 64))


def groups(d):
    """Rows, columns or the shared dimension in groups, whose ends are given; or a batch."""
    scaled = d.chance(0.4)
    dtype = torch.float8_e4m3fn if scaled else d.choice((torch.bfloat16, torch.bfloat16, torch.float16, torch.float32))
    g, m, n, k = d.choice((1, 2, 3, 5)), 16 * d.choice((1, 2, 3, 5)), 16 * d.choice((1, 2, 4, 7)), 16 * d.choice((1, 2, 4, 9))
    way = d.choice(("rows", "rows", "columns", "steps", "batch"))
    ends = sorted(16 * d.randrange(0, {"rows": m, "columns": n, "steps": k, "batch": 16}[way] // 16 + 1) for _ in range(g))
    if way != "columns" and d.chance(0.7):
        ends[-1] = {"rows": m, "steps": k, "batch": 16}[way]
    v = lambda *shape: d.values(dtype, shape).to(d.device)
    a = v(m, k) if way in ("rows", "steps") else v(g, m, k)
    b = v(n, k).mT if way in ("columns", "steps") else v(g, n, k).mT
    offs = None if way == "batch" else torch.tensor(ends, dtype=torch.int32, device=d.device)
    parts = g if way in ("steps",) else 1
    sa = d.values(torch.float32, (parts * m,) if a.dim() == 2 else (g, m), "positive").to(d.device)
    sb = d.values(torch.float32, (parts * n,) if b.dim() == 2 else (g, n), "positive").to(d.device)
    starts = [0] + ends[:-1]
    out = torch.bfloat16 if scaled else dtype

    def product(a, b, sa, sb, sized=lambda t: t):
        a, b, sa, sb = sized(a.double()), sized(b.double()), sa.double(), sb.double()
        if not scaled:
            sa, sb = torch.ones_like(sa), torch.ones_like(sb)
        if way == "batch":
            return (a @ b) * sa[:, :, None] * sb[:, None]
        if way == "steps":
            return torch.stack([(a[:, s:e] @ b[s:e]) * sa[i * m:(i + 1) * m, None] * sb[i * n:(i + 1) * n] for i, (s, e) in enumerate(zip(starts, ends))])
        found = torch.zeros(m, n, dtype=torch.float64, device=a.device)
        for i, (s, e) in enumerate(zip(starts, ends)):
            if way == "rows":
                found[s:e] = (a[s:e] @ b[i]) * sa[s:e, None] * sb[i]
            else:
                found[:, s:e] = (a[i] @ b[:, s:e]) * sa[i][:, None] * sb[s:e]
        return found

    def ours(a, b, sa, sb):
        if scaled:
            return abi.call("_scaled_grouped_mm", a, b, sa, sb, offs, None, None, out, False)
        return abi.call("_grouped_mm", a, b, offs, None, None)
    # PyTorch leaves undefined what no group covers.
    covered = way not in ("rows", "columns") or ends[-1] == {"rows": m, "columns": n}[way]
    if not covered:
        return None
    split = 0.5 * torch.finfo(out).eps / EPS if out in HALVES and k >= 128 else 0
    return case.Case(f"{'_scaled' if scaled else ''}_grouped_mm {dtype} {way} {m} {n} {k} {ends}", ours,
                     lambda *v: product(*v).to(out), [a, b, sa, sb], error=2.0 ** 9 * 2 if scaled else 4 + 0.5 * k ** 0.5 + split,
                     exact=lambda *v: [product(*v)], magnitude=lambda *v: product(*v, sized=torch.abs), strides=False)


def trilinear(d):
    dtype = d.choice((torch.float32, torch.float64, torch.float16))
    b, i, j, o = (d.size(4, 8, 16, low=1, high=20) for _ in range(4))
    arguments = [d.tensor(dtype, s) for s in ((b, i), (o, i, j), (b, j))]
    lists = [[1, 3], [0], [1, 2], d.choice(([2, 3], [0, 1, 2, 3], [2]))]
    return case.shim(f"{dtype} {b} {i} {j} {o} {lists[3]}", "_trilinear", *arguments, *lists, 1,
                     torch=lambda *v: torch.ops.aten._trilinear(*v), strides=False, error=8 + (b * i * j * o) ** 0.5,
                     magnitude=lambda x, y, z, *rest: torch.ops.aten._trilinear(x.abs(), y.abs(), z.abs(), *rest))


def draw(d):
    return d.choice((plain,) * 8 + (whole, eight_bits, eight_bits, four_bits, four_bits, float8, float8, groups, trilinear))(d)
