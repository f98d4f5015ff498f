"""Device time of operators, ours and PyTorch's on the same tensors: against_torch.py LIBRARY_FOLDER --times [PART...]

Microseconds in which a kernel or a copy of the call runs, as the profiler sees them; time on the host is left out.
"""
import time

import torch
from torch.profiler import ProfilerActivity, profile

from against_torch import call, call_named, chosen
from operator_cases import aten

ops = torch.ops.aten


slower = []


def device_us(run):
    for _ in range(2):
        run()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    run()
    torch.cuda.synchronize()
    count = max(3, min(20, int(0.02 / (time.perf_counter() - begun))))
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        for _ in range(count):
            run()
        torch.cuda.synchronize()
    # Kernels that start early overlap those before them, for which they wait.
    total, last = 0.0, 0.0
    for begin, end in sorted((e.time_range.start, e.time_range.end) for e in recorded.events()
                             if e.device_type == torch.autograd.DeviceType.CUDA):
        total += max(0.0, end - max(begin, last))
        last = max(last, end)
    return total / count


def row(label, name, arguments, expect, flops=0, options=None):
    """name: of the C ABI, or (name, overload) for an operator called by name."""
    def own():
        if isinstance(name, str):
            return call(name, *arguments, fetch=False)
        return call_named(*name, *arguments, fetch=False, **(options or {}))
    try:
        ours, theirs = device_us(own), device_us(expect)
        if ours > theirs * 1.05:
            slower.append((ours / theirs, label))
        speed = f"{flops / ours / 1e6:7.1f} TFLOP/s, PyTorch {flops / theirs / 1e6:7.1f}" if flops else ""
        print(f"{label:60s} {ours:10.1f} {theirs:10.1f} {ours / theirs:6.2f}x  {speed}", flush=True)
    except Exception as error:  # noqa: BLE001  (the next one must run)
        print(f"{label:60s} {type(error).__name__}: {str(error).splitlines()[0][:120]}", flush=True)


def same(label, name, *arguments, like=None):
    row(f"{name} {label}", name, arguments, lambda: aten(like or name, *arguments))


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype)


def attention():
    for dtype in (torch.bfloat16, torch.float16):
        for b, h, hk, tq, tk, d, causal in [(4, 16, 16, 2048, 2048, 64, False), (4, 16, 16, 2048, 2048, 64, True),
                                            (4, 16, 16, 2048, 2048, 128, False), (4, 16, 16, 2048, 2048, 128, True),
                                            (1, 32, 8, 4096, 4096, 128, True), (2, 8, 8, 2048, 2048, 256, False),
                                            (8, 12, 12, 197, 197, 64, False), (1, 12, 12, 64, 64, 64, False),
                                            (1, 12, 12, 128, 128, 64, False), (1, 12, 12, 256, 256, 64, False),
                                            (1, 12, 12, 384, 384, 64, False), (1, 16, 16, 128, 128, 128, False),
                                            (4, 12, 12, 128, 128, 64, False), (8, 32, 8, 1, 4096, 128, False),
                                            (8, 32, 8, 1, 4096, 64, False), (1, 32, 32, 1, 8192, 128, False),
                                            (4, 32, 8, 1, 1000, 128, False)]:
            q, k, v = (randn(b, n, m, d, dtype=dtype).transpose(1, 2) for n, m in ((tq, h), (tk, hk), (tk, hk)))
            flops = 4 * b * h * tq * tk * d * (0.5 if causal else 1)
            tag = f"{str(dtype)[6:]} {b}x{h}/{hk}x{tq}x{tk}x{d} {'causal' if causal else ''}"
            name = "_scaled_dot_product_flash_attention"
            row(f"flash {tag}", name, (q, k, v, 0.0, causal, 0, None),
                lambda: getattr(ops, name)(q, k, v, 0.0, causal, False), flops)
            if dtype == torch.float16 and h == hk and tq > 1:
                cudnn = "_scaled_dot_product_cudnn_attention"
                row(f"cuDNN {tag}", cudnn, (q, k, v, None, 0, 0.0, causal, 0, None),
                    lambda: getattr(ops, cudnn)(q, k, v, None, False, 0.0, causal, False), flops)
    for dtype, b, h, t, d, causal in [(torch.float32, 2, 8, 1024, 64, False), (torch.float32, 2, 8, 1024, 128, False),
                                      (torch.float32, 2, 3, 333, 80, True), (torch.float16, 4, 16, 1024, 64, False),
                                      (torch.float16, 2, 16, 1001, 128, False), (torch.float16, 2, 16, 1001, 128, True),
                                      (torch.float16, 1, 12, 128, 64, False)]:
        q, k, v = (randn(b, t, h, d, dtype=dtype).transpose(1, 2) for _ in range(3))
        name = "_scaled_dot_product_efficient_attention"
        for shape in (None, (1, h, t), (b, 1, 1)):
            bias = randn(*shape, (t + 15) // 16 * 16, dtype=dtype)[..., :t].expand(b, h, t, t) if shape else None
            for sums in (False, True) if shape and dtype != torch.float32 else (False,):  # cuDNN gives no logsumexp
                tag = f"{str(dtype)[6:]} {b}x{h}x{t}x{d} {'causal' if causal else ''}"
                row(f"efficient {tag} {f'bias {[*shape, t]}' if shape else ''} {'sums' if sums else ''}", name,
                    (q, k, v, bias, int(sums), 0.0, int(causal), None),
                    lambda: getattr(ops, name)(q, k, v, bias, sums, 0.0, causal),
                    4 * b * h * t * t * d * (0.5 if causal else 1))


def others():
    for shape, dim in [((4096, 4096), 1), ((4096, 4096), 0), ((1, 1 << 24), 1), ((64, 65536), 1), ((100000, 40), 1)]:
        x = randn(*shape)
        same(f"{shape} {dim}", "cumsum", x, dim, None)
        same(f"{shape} {dim}", "cummax", x, dim)
    x = randn(32, 64, 112, 112, dtype=torch.float16)
    for form in ("", "channels last"):
        if form:
            x = x.to(memory_format=torch.channels_last)
        same(f"{list(x.shape)} {form}", "max_pool2d_with_indices", x, [3, 3], [2, 2], [1, 1], [1, 1], False)
        same(f"{list(x.shape)} {form}", "avg_pool2d", x, [3, 3], [2, 2], [1, 1], False, True, None)
        same(f"{list(x.shape)} {form}", "_adaptive_avg_pool2d", x, [7, 7])
        out, indices = ops.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1], [1, 1], False)
        same(f"{list(x.shape)} {form}", "max_pool2d_with_indices_backward", out, x, [3, 3], [2, 2], [1, 1], [1, 1], False,
             indices)
    y, w = randn(16, 64, 56, 56, dtype=torch.float16), randn(64, 64, 3, 3, dtype=torch.float16)
    grad = torch.convolution(y, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    same("16x64x56x56", "convolution_backward", grad, y, w, [64], [1, 1], [1, 1], [1, 1], False, [0, 0], 1,
         [True, True, True])
    z = randn(64, 50000)
    row("nonzero 64x50000", "nonzero", (z > 1,), lambda: torch.nonzero(z > 1))


def few_rows():
    """Weights that no cache holds: 400 MB of them take turns. GB/s of the weights alone."""
    for dtype in (torch.bfloat16, torch.float32):
        for m in (1, 4, 8):
            for k, n in ((2048, 2048), (2048, 256), (2048, 5632), (5632, 2048), (2048, 32000), (768, 2304), (4096, 4096)):
                size = k * n * dtype.itemsize
                weights = [randn(n, k, dtype=dtype).t() for _ in range(max(1, int(4e8) // size))]
                a, out = randn(m, k, dtype=dtype), torch.empty(m, n, dtype=dtype, device="cuda")
                turns = [iter(weights * 100), iter(weights * 100)]
                ours = device_us(lambda: call("mm_out", out, a, next(turns[0]), fetch=False))
                theirs = device_us(lambda: torch.mm(a, next(turns[1]), out=out))
                print(f"{f'mm_out {m}x{k}x{n} {str(dtype)[6:]}':60s} {ours:10.1f} {theirs:10.1f} {ours / theirs:6.2f}x  "
                      f"{size / ours / 1e3:7.0f} GB/s, PyTorch {size / theirs / 1e3:7.0f}", flush=True)


def order():
    for shape in [(64, 50000), (1, 1 << 24), (4096, 1000), (1000000, 32), (16, 1 << 20), (256, 4096), (2000, 10000)]:
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            x = randn(*shape).mul(1000).to(dtype)
            tag = f"{'x'.join(map(str, shape))} {str(dtype)[6:]}"
            row(f"sort_stable {tag}", "sort_stable", (x, True, -1, False), lambda: torch.sort(x, stable=True, dim=-1))
            for k in (1, 8, 100, 1024):
                if k <= shape[1]:
                    row(f"topk {tag} {k}", "topk", (x, k, -1, True, True), lambda: torch.topk(x, k))
            if shape[1] > 100 and shape[0] <= 4096:
                same(tag, "kthvalue", x, shape[1] // 2, -1, False)
            if shape[0] == 1 and dtype != torch.bfloat16:
                same(tag, "median", x)
    for shape, dim in [((1, 1 << 24), 1), ((4, 1 << 22), 1), ((500, 100000), 1), ((100000, 40), 0), ((1 << 24,), 0)]:
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            x = randn(*shape).mul(3).to(dtype)
            for name in ("cumsum", "cummax")[:1 if max(shape) > 1 << 22 else 2]:  # PyTorch's cummax takes 47 ms there
                same(f"{shape} {dim} {str(dtype)[6:]}", name, *((x, dim, None) if name == "cumsum" else (x, dim)))


def run():
    print(f"{'microseconds of the device':60s} {'Sconce':>10s} {'PyTorch':>10s}")
    torch.manual_seed(0)
    import fallback_times
    for part in (few_rows, order, others, attention, fallback_times.run):
        if not chosen or part.__name__ in chosen:
            part()
    print(f"{len(slower)} take more than PyTorch's")
    for ratio, label in sorted(slower, reverse=True):
        print(f"{ratio:8.2f}x  {label}")
