"""Products: src/cpu/matmul/gemm/gemm.cpp (blocks, packing, orientation, few rows), gemm_integer.cpp, matmul.cpp, products.cpp, and
oneDNN's (onednn_matmul.h). On CUDA: cuda_products.py.

C functions and operators by name; new results and given outputs of any strides, in place, with constants on the right.
Floats near float64, with an error that grows with the root of the terms; integers to the bit.
Limits (gemm.cpp, gemm_tiles.h, onednn_matmul.h): tiles of 4 to 16 rows by 8 to 64 columns, blocks of 168 rows, 2 KiB of
a row of A, 8 panels; 8 rows that stream a B of 128 KiB per row; a B of 32 KiB read in place; constants of 1 MiB repacked;
16 rows and 2^23 multiplications (bfloat16 2^20, bytes 2^17) for oneDNN; 256 integer columns; 10^6 flops per thread.
"""
import ctypes

import torch

import abi
import case
from draw import WRITABLE

DEVICES = ("cpu",)  # on CUDA: cuda_products.py, cuda_attention.py
ROWS, COLUMNS, STEPS = (4, 6, 8, 12, 14, 16, 32, 64, 168), (8, 16, 24, 32, 48, 64, 128), (2, 4, 8, 16, 32, 64, 256, 512)
LAYOUTS = ("packed", "permuted", "permuted", "sliced", "offset", "padded", "expanded")
WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
BLAS = (torch.float32, torch.float64, torch.complex64)


def sizes(d, dtype):
    m, n, k = d.size(*ROWS), d.size(*COLUMNS), d.size(*STEPS)
    way = d.random()
    if way < 0.03 and not dtype.is_complex:  # around oneDNN's thresholds
        m, n, k = d.choice((15, 16, 17, 64, 100)), d.choice((48, 64, 96, 128, 512, 513)), d.choice((64, 128, 250, 256, 512))
    elif way < 0.08:  # few rows, much to stream
        m, n, k = d.choice((1, 2, 3, 7, 8, 9)), d.size(256, 512, high=1100), d.size(128, 256, 512, high=1100)
    most = 1 << (24 if way < 0.05 else 21)
    while m * n * k > most:
        m, n, k = (m + 1) // 2, (n + 1) // 2, (k + 1) // 2
    return m, n, k


def positive(v):
    return v.abs() if isinstance(v, torch.Tensor) else abs(v) if isinstance(v, (int, float)) else v


def draw(d):
    if d.device == "cpu" and d.chance(0.03):
        return draw_small(d)
    return draw_cpu_only(d) if d.device == "cpu" and d.chance(0.5) else draw_any(d)


def draw_small(d):
    """float8, with numbers whose sums are exact: rounded once, so equal to the bit. Also combinations of bools."""
    m, n, k = d.size(4, 16, high=40), d.size(8, 16, high=70), d.size(4, 16, high=100)
    if d.chance(0.2):
        x, c = torch.rand(k + 1, m, 3, generator=d.torch) < 0.2, torch.rand(n, k + 1, generator=d.torch) < 0.3
        return case.named(f"bool {list(x.shape)}", "_compute_linear_combination", "", d.laid_out(x), c, strides=False) if m and n else None
    dtype = d.choice((torch.float8_e4m3fn, torch.float8_e5m2))
    t = lambda *shape: d.laid_out(torch.randint(-3, 4, shape, generator=d.torch).float().to(dtype), ("packed", "permuted", "expanded"))
    label = f"{dtype} m {m} n {n} k {k}"
    if d.chance(0.4):
        return case.named(label, "mm", "", t(m, k), t(k, n))
    alpha, beta = d.choice((1, 1, 0, -2, 0.5)), d.choice((1, 1, 0, 2))
    if d.chance(0.3) and k:
        batch = d.choice((1, 2, 3))
        return case.Case(f"addbmm {label} batch {batch} alpha {alpha} beta {beta}", lambda s, a, b: abi.call("addbmm", s, a, b, beta, alpha),
                         lambda s, a, b: torch.addbmm(s, a, b, beta=beta, alpha=alpha), [t(m, n), t(batch, m, k), t(batch, k, n)])
    return case.named(f"{label} alpha {alpha} beta {beta}", "addmm", "", t(*d.choice(((n,), (m, n), (m, 1)))), t(m, k), t(k, n), beta=beta,
                      alpha=alpha)


def near(k, function):
    # Repeated products all round the same way.
    return dict(error=4 + 0.5 * k ** 0.5 + k / 4, magnitude=lambda *v: function(*[positive(x) for x in v]))


def draw_any(d):
    dtype = d.choice((torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64))
    m, n, k = sizes(d, dtype)
    kind = d.choice(("normal", "normal", "few", "wide"))
    op = d.choice(("mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "dot"))
    batch = d.size(2, 4, 8, high=9)
    while batch * m * n * k > 1 << 24:
        batch = batch // 2
    t = lambda *shape: d.tensor(dtype, shape, kind, LAYOUTS)
    alpha, beta = d.choice((1, 1, 0, -2, 0.5)), d.choice((1, 1, 0, 3, -0.25))
    label = f"{dtype} m {m} n {n} k {k} batch {batch} {kind}"
    if op == "mm":
        return case.named(label, "mm", "", t(m, k), t(k, n), **near(k, torch.mm))
    if op == "bmm":
        return case.named(label, "bmm", "", t(batch, m, k), t(batch, k, n), **near(k, torch.bmm))
    if op == "addmm":
        bias = t(*d.choice(((n,), (m, n), (1, n), (m, 1), (1,), ())))
        return case.named(f"{label} alpha {alpha} beta {beta}", "addmm", "", bias, t(m, k), t(k, n), beta=beta, alpha=alpha,
                          **near(k, lambda b, x, y: torch.addmm(b, x, y, beta=abs(beta), alpha=abs(alpha))))
    if op == "baddbmm":
        bias = t(*d.choice(((n,), (batch, m, n), (1, 1, n), (batch, 1, n))))
        return case.named(f"{label} alpha {alpha} beta {beta}", "baddbmm", "", bias, t(batch, m, k), t(batch, k, n), beta=beta,
                          alpha=alpha, **near(k, lambda b, x, y: torch.baddbmm(b, x, y, beta=abs(beta), alpha=abs(alpha))))
    if op == "mv":
        return case.named(label, "mv", "", t(m, k), t(k), **near(k, torch.mv))
    if op == "addmv":
        return case.named(label, "addmv", "", t(m), t(m, k), t(k), beta=beta, alpha=alpha,
                          **near(k, lambda b, x, y: torch.addmv(b, x, y, beta=abs(beta), alpha=abs(alpha))))
    return case.named(label, "dot", "", t(k), t(k), **near(k, torch.dot))


def written_to(d, dtype, shape, kind):
    """An output of any layout without overlap, column-major ones too."""
    if d.chance(0.25) and len(shape) >= 2:
        return d.values(dtype, (*shape[:-2], shape[-1], shape[-2]), kind).mT
    return d.tensor(dtype, shape, kind, WRITABLE)


def draw_cpu_only(d):
    dtype = d.choice((torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.bfloat16, torch.float16,
                      torch.complex64, torch.complex128, *WHOLE))
    floats = dtype.is_floating_point or dtype.is_complex
    m, n, k = sizes(d, dtype)
    if not floats:
        m, n, k = min(m, 200), min(n, 600), min(k, 300)
        n = d.size(255, 256, 257, high=600) if d.chance(0.1) else n
    kind = d.choice(("normal", "normal", "few", "wide")) if d.chance(0.95) or dtype.is_complex else "special"
    batch = d.size(2, 4, 8, high=9)
    while batch * m * n * k > 1 << 22:
        batch = batch // 2
    t = lambda *shape: d.tensor(dtype, shape, kind, LAYOUTS)
    alpha = d.choice((1, 1, 0, -2, 0.5) if floats else (1, 1, 0, -2, 3))
    beta = d.choice((1, 1, 0, 3, -0.25) if floats else (1, 1, 0, 3, -1))
    if dtype == torch.uint8:
        alpha, beta = abs(alpha), abs(beta)
    constant = d.chance(0.25)
    hold = abi.Constant if constant else (lambda x: x)
    label = f"{dtype} m {m} n {n} k {k} batch {batch} {kind}{' constant' if constant else ''}"
    op = d.choice(("mm_out", "addmm_out", "addmm_out", "bmm_out", "baddbmm_out", "baddbmm_out", "addmv", "addbmm", "addr",
                   "vdot", "matmul", "_addmm_activation", "_int_mm", "_int_mm_out", "mm_plus_mm",
                   "linear_combination"))
    if kind == "special" and alpha == 0 and (dtype in (torch.float16, torch.bfloat16) or op == "addmv"):
        alpha = 1  # ATen's kernel, chosen by size, decides whether NaN times 0 counts
    scaled = f"{label} alpha {alpha} beta {beta}"
    def product(terms, function):
        return near(terms, function) if floats else {}

    if op in ("mm_out", "bmm_out"):
        lead = () if op == "mm_out" else (batch,)
        out, a, b = written_to(d, dtype, (*lead, m, n), kind), t(*lead, m, k), t(*lead, k, n)
        if d.chance(0.5):  # by name
            return case.Case(f"{op[:-4]}.out {label}", lambda a, b, out: abi.call_named(op[:-4], "out", a, hold(b), out=out),
                             lambda a, b, out: getattr(torch, op[:-4])(a, b, out=out), [a, b, out], written=[2],
                             exact=lambda a, b, out: getattr(torch, op[:-4])(a, b),
                             **product(k, lambda a, b, out: a @ b))
        return case.Case(f"{op} {label}", lambda out, a, b: abi.call(op, out, a, hold(b)),
                         lambda out, a, b: getattr(torch, op[:-4])(a, b, out=out), [out, a, b], written=[0],
                         exact=lambda out, a, b: a @ b, **product(k, lambda out, a, b: a @ b))
    if op in ("addmm_out", "baddbmm_out"):
        lead = () if op == "addmm_out" else (batch,)
        function = getattr(torch, op[:-4])
        out, a, b = written_to(d, dtype, (*lead, m, n), kind), t(*lead, m, k), t(*lead, k, n)
        if d.chance(0.35):
            self = out
        elif op == "addmm_out":
            self = t(*d.choice(((n,), (m, n), (1, n), (m, 1), (1,), ())))
        else:
            self = t(*d.choice(((n,), (m, n), (m, 1), (batch, m, n), (1, 1, n), (batch, 1, n), (batch, m, 1), ())))
        wide = lambda of: lambda out, self, a, b: function(of(self), a, b, beta=of(beta), alpha=of(alpha))
        return case.Case(f"{op} {scaled} self {list(self.shape)} {'in place' if self is out else ''}",
                         lambda out, self, a, b: abi.call(op, out, self, a, hold(b), beta, alpha),
                         lambda out, self, a, b: function(self, a, b, beta=beta, alpha=alpha, out=out), [out, self, a, b],
                         written=[0], exact=wide(lambda v: v), **product(k, wide(positive)))
    if op == "addmv":
        self = t(*d.choice(((m,), (m,), (1,), ()) if m * k else ((m,),)))  # ATen then returns self as it is
        f = lambda of: lambda s, a, v: torch.addmv(of(s), a, v, beta=of(beta), alpha=of(alpha))
        return case.Case(f"addmv {scaled} self {list(self.shape)}", lambda s, a, v: abi.call("addmv", s, a, v, beta, alpha),
                         f(lambda v: v), [self, t(m, k), t(k)], **product(k, f(positive)))
    if op == "addbmm":
        self = t(*d.choice(((m, n), (n,), (m, 1), ())))
        f = lambda of: lambda s, a, b: torch.addbmm(of(s), a, b, beta=of(beta), alpha=of(alpha))
        return case.Case(f"addbmm {scaled} self {list(self.shape)}",
                         lambda s, a, b: abi.call("addbmm", s, a, b, beta, alpha), f(lambda v: v),
                         [self, t(batch, m, k), t(batch, k, n)], **product(k * batch, f(positive)))
    if op == "addr":
        if kind == "special":
            return None
        self = t(*d.choice(((m, n), (n,), (m, 1), ())))
        return case.named(scaled, "addr", "", self, t(m), t(n), beta=beta, alpha=alpha,
                          **product(2, lambda s, a, b: torch.addr(s, a, b, beta=abs(beta), alpha=abs(alpha))))
    if op == "vdot":
        return case.named(label, "vdot", "", t(k), t(k), **product(k, torch.vdot))
    if op == "matmul":
        left, right = [(k,), (m, k), (batch, m, k), (2, 1, m, k)], [(k,), (k, n), (batch, k, n), (1, 3, k, n)]
        a, b = d.choice(left), d.choice(right)
        if len(a) == 4 and len(b) == 3 or len(a) == 3 and len(b) == 4:
            a = a[-2:]
        return case.named(f"{label} {a} @ {b}", "matmul", "", t(*a), t(*b), strides=False, **product(k, torch.matmul))
    if op == "_addmm_activation":
        gelu = d.chance(0.5)
        if dtype.is_complex or (gelu and not floats):
            return None
        self = t(*d.choice(((n,), (m, n), (1, n), (m, 1))))

        def exact(self, a, b, beta, alpha, gelu):
            sums = torch.addmm(self, a, b, beta=beta, alpha=alpha)
            return torch.nn.functional.gelu(sums) if gelu else torch.relu(sums)
        return case.Case(f"{op} {scaled} gelu {gelu}", lambda *v: abi.call(op, *v),
                         lambda s, a, b, be, al, g: torch._addmm_activation(s, a, b, beta=be, alpha=al, use_gelu=g),
                         [self, t(m, k), t(k, n), beta, alpha, gelu], exact=exact,
                         **product(k, lambda s, a, b, be, al, g: 1.2 * torch.addmm(s, a, b, beta=be, alpha=al)))
    if op in ("_int_mm", "_int_mm_out"):
        first = d.choice((torch.int8, torch.int8, torch.uint8))
        a = d.tensor(first, (m, k), "wide", LAYOUTS)
        b = d.tensor(torch.int8, (k, n), "wide", LAYOUTS)
        # ATen refuses uint8, but its sums are exact.
        sums = lambda a, b: (a.long() @ b.long()).int()
        if op == "_int_mm":
            return case.Case(f"_int_mm {first} {label}", lambda a, b: abi.call_named("_int_mm", "", a, hold(b)), sums, [a, b])
        out = written_to(d, torch.int32, (m, n), "normal")
        return case.Case(f"_int_mm_out {first} {label}", lambda out, a, b: abi.call("_int_mm_out", out, a, hold(b)),
                         lambda out, a, b: out.copy_(sums(a, b)), [out, a, b], written=[0])
    if op == "mm_plus_mm":
        out = written_to(d, dtype, (m, n), kind)

        def plus(*tensors):
            handles = [abi.handle(x) for x in tensors]
            try:
                abi.check(abi.library["host"].aoti_torch__mm_plus_mm_out(*handles), op)
            finally:
                for h in handles:
                    abi.library["host"].aoti_torch_delete_tensor_object(ctypes.c_void_p(h.value))
            return []
        return case.Case(f"{op} {label}", plus, lambda out, a, b, c, e: out.copy_((a @ b) + (c @ e)),
                         [out, t(m, k), t(k, n), t(m, k), t(k, n)], written=[0],
                         exact=lambda out, a, b, c, e: a @ b + c @ e, **product(2 * k, lambda o, a, b, c, e: a @ b + c @ e))
    if dtype in (torch.float16, torch.bfloat16) or not floats:
        return None
    # Real coefficients, because ATen reads complex ones as real numbers.
    x = t(max(1, min(k, 20)), max(m, 1), 3)
    c = d.tensor(dtype.to_real(), (max(1, min(n, 20)), max(1, min(k, 20))), kind)
    return case.named(label, "_compute_linear_combination", "", x, c, strides=False,
                      error=4 + 0.5 * k ** 0.5, exact=lambda x, c: torch.tensordot(c.to(x.dtype), x, 1),
                      magnitude=lambda x, c: torch.tensordot(c.abs(), x.abs(), 1))
