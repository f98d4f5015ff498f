"""Products: src/ops/gemm.cpp (blocks, packing, orientation, few rows), oneDNN's, and on CUDA cuBLASLt and few_rows.cu."""
import torch

import case

DEVICES = ("cpu",)  # on CUDA: cuda_products.py, cuda_attention.py
# Tiles are 4 to 16 rows by 16 to 64 columns, blocks 168 rows and 256 steps of k (gemm.cpp).
ROWS, COLUMNS, STEPS = (4, 6, 8, 12, 14, 16, 32, 64, 168), (8, 16, 24, 32, 48, 64, 128), (2, 4, 8, 16, 32, 64, 256, 512)


def draw(d):
    dtype = d.choice((torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64))
    m, n, k = d.size(*ROWS), d.size(*COLUMNS), d.size(*STEPS)
    while m * n * k > 1 << 24:
        m, n, k = (m + 1) // 2, (n + 1) // 2, (k + 1) // 2
    kind = d.choice(("normal", "normal", "few", "wide"))
    op = d.choice(("mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "dot"))
    layouts = ("packed", "permuted", "permuted", "sliced", "offset", "padded", "expanded")
    batch = d.size(2, 4, 8, high=9)
    while batch * m * n * k > 1 << 24:
        batch = batch // 2
    t = lambda *shape: d.tensor(dtype, shape, kind, layouts)  # noqa: E731
    alpha, beta = d.choice((1, 1, 0, -2, 0.5)), d.choice((1, 1, 0, 3, -0.25))
    label = f"{dtype} m {m} n {n} k {k} batch {batch} {kind}"

    def product(function):
        return dict(error=4 + 0.5 * max(k, 1) ** 0.5, magnitude=lambda *v: function(*[x.abs() if isinstance(x, torch.Tensor) else abs(x) for x in v]))

    if op == "mm":
        return case.named(label, "mm", "", t(m, k), t(k, n), **product(torch.mm))
    if op == "bmm":
        return case.named(label, "bmm", "", t(batch, m, k), t(batch, k, n), **product(torch.bmm))
    if op == "addmm":
        bias = t(*d.choice(((n,), (m, n), (1, n), (m, 1), (1,), ())))
        return case.named(f"{label} alpha {alpha} beta {beta}", "addmm", "", bias, t(m, k), t(k, n), beta=beta, alpha=alpha,
                          **product(lambda b, x, y: torch.addmm(b, x, y, beta=abs(beta), alpha=abs(alpha))))
    if op == "baddbmm":
        bias = t(*d.choice(((n,), (batch, m, n), (1, 1, n), (batch, 1, n))))
        return case.named(f"{label} alpha {alpha} beta {beta}", "baddbmm", "", bias, t(batch, m, k), t(batch, k, n), beta=beta,
                          alpha=alpha, **product(lambda b, x, y: torch.baddbmm(b, x, y, beta=abs(beta), alpha=abs(alpha))))
    if op == "mv":
        return case.named(label, "mv", "", t(m, k), t(k), **product(torch.mv))
    if op == "addmv":
        return case.named(label, "addmv", "", t(m), t(m, k), t(k), beta=beta, alpha=alpha,
                          **product(lambda b, x, y: torch.addmv(b, x, y, beta=abs(beta), alpha=abs(alpha))))
    return case.named(label, "dot", "", t(k), t(k), **product(torch.dot))
