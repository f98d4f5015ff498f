"""Makes cases of what graphs hold beside operators and packs them as tests/data/graphs.tar.xz: control flow, inputs and
buffers that are written, results that alias, sizes that the data decide, flex attention, quantised models.

    .venv/bin/pip install torchao        # for the quantised models
    .venv/bin/python tests/data/make_graph_cases.py [NAME...]
"""
from case_suite import case, make_suite  # before torch

import copy

import torch
import torch.nn.functional as F
from torch import cond, nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import torch._inductor.config as inductor
from case_writer import Recorder

T = torch.tensor


class Many(nn.Module):
    """Several functions as one model."""

    def __init__(self, parts):
        super().__init__()
        self.parts = [(function, len(args)) for function, args in parts]
        self.modules_of_parts = nn.ModuleList(f for f, _ in parts if isinstance(f, nn.Module))

    def forward(self, *args):
        results, at = [], 0
        for function, count in self.parts:
            results.append(function(*args[at:at + count]))
            at += count
        return tuple(results)


def many(name, functions, *runs, fails=(), **options):
    """runs: for each function its arguments."""
    def flat(run):
        return tuple(copy.deepcopy(x) for args in run for x in args)

    r = Recorder(name, Many(list(zip(functions, runs[0]))), flat(runs[0]), by_name=True, **options)
    for run in runs:
        r.run(*flat(run))
    for run in fails:
        r.fails("", *flat(run))
    return r


@case
def conditions():
    def nested(p, x):
        return cond(p, lambda x: cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos() + 1, (x,)), lambda x: x.tan(),
                    (x,))

    def strides(p, x):
        return cond(p, lambda x: x.t() + 0, lambda x: (x @ x).t(), (x,))

    def trees(p, x, y):
        return cond(p, lambda x, y: (x + y, {"a": x.sum(), "b": (y * 2).int()}),
                    lambda x, y: (x - y, {"a": y.sum(), "b": (x * 3).int()}), (x, y))

    def empty(p, x):
        return cond(p, lambda x: x.sum(0), lambda x: x.new_ones(3), (x,))

    def number(n, x):
        return cond(n.item() > 3, lambda x: x * 2, lambda x: x + 7, (x,))

    def args(p, s, q, r, e, n):
        return [(T(p), torch.full((3, 3), s)), (T(q), torch.randn(3, 3)), (T(r), torch.randn(4), torch.randn(4)),
                (T(e), torch.randn(0, 3)), (T(n), torch.randn(2))]

    return many("conditions", [nested, strides, trees, empty, number], args(True, 1.0, True, True, False, 5),
                args(True, -1.0, False, False, True, 2), args(False, 1.0, True, False, True, 4))


@case
def loop_with_weights():
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.l, self.w = nn.Linear(4, 4), nn.Parameter(torch.randn(4, 4) / 4)

        def forward(self, n, x):
            i, y = while_loop(lambda i, x: (i < n) & (x.abs().max() < 100),
                              lambda i, x: (i + 1, self.l(x) + x @ self.w), (T(0), x))
            return y, i

    return many("loop_with_weights", [Loop()], *([(T(n), torch.randn(2, 4))] for n in (3, 0, 8)))


@case
def associative_scans():
    def sums(x):
        return associative_scan(lambda x, y: x + y, x, dim=0, combine_mode="generic")

    def recurrences(a, b):
        return associative_scan(lambda x, y: (y[0] * x[0], y[0] * x[1] + y[1]), (a, b), dim=1, combine_mode="generic",
                                reverse=True)

    def products(x):
        return associative_scan(lambda x, y: x @ y, x, dim=0, combine_mode="generic")

    def greatest(x):
        return associative_scan(lambda x, y: torch.maximum(x, y), x, dim=0, combine_mode="generic")

    def args():
        return [(torch.randn(7, 3),), (torch.rand(2, 5), torch.randn(2, 5)), (torch.randn(4, 2, 2),),
                (torch.randint(100, (9,)),)]

    return many("associative_scans", [sums, recurrences, products, greatest], args(), args())


@case
def inputs_written():
    def added(x):
        x.add_(1)
        return x * 2

    def returned(x):
        x.mul_(3)
        return x

    def through_views(x):
        x[1:].copy_(x[:-1] + 1)
        x[:, 0] = 5
        return x.t()

    def both(x, y):
        y.index_add_(0, T([0, 2, 0]), x)
        x.t().zero_()
        return x + y.sum()

    def scattered(x, i):
        x.scatter_(0, i, -1.0)
        x.masked_fill_(x > 1, 9)
        return x.sum()

    def alone(x):
        x.copy_(x + 0)

    def args():
        return [(torch.randn(3),), (torch.randn(2, 2),), (torch.randn(4, 3),), (torch.randn(3, 2), torch.randn(3, 2)),
                (torch.randn(4), T([1, 3])), (torch.randn(2),)]

    return many("inputs_written", [added, returned, through_views, both, scattered, alone], args(), args())


@case
def buffers_and_branches():
    class Buffers(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("average", torch.zeros(3))
            self.register_buffer("history", torch.zeros(4, 3))
            self.register_buffer("at", torch.zeros((), dtype=torch.int64))

        def forward(self, x):
            self.history.index_copy_(0, (self.at % 4).reshape(1), x[None])
            self.at += 1
            self.average.copy_(cond(self.at > 2, lambda x, e: e * 0.9 + x * 0.1, lambda x, e: x + e * 0,
                                    (x, self.average)))
            return self.average.clone(), self.history.sum(0), self.at.clone()

    r = Recorder("buffers_and_branches", Buffers(), (torch.randn(3),))
    for _ in range(6):
        r.run(torch.randn(3))
    return r


@case
def aliases():
    class Views(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(3, 4))
            self.register_buffer("b", torch.arange(6).view(2, 3))

        def forward(self, x, y):
            z = x + 1
            return (x, x.t(), x[1:, ::2], z, z, z.view(-1), z.t()[1], self.w, self.w.t(), self.b[0], y.detach(),
                    y.expand(3, 2), None, x.new_zeros(0, 4), T(3), y.view(torch.int32),
                    z.unsqueeze(0).expand(2, -1, -1))

    return many("aliases", [Views()], *([(torch.randn(3, 4), torch.randn(2))] for _ in range(2)))


@case
def sizes_by_data():
    def nonzero(x):
        y = x.nonzero()
        return y, y * 2, y.sum(0), torch.cat([y, y])

    def selected(x, m):
        y = x.masked_select(m)
        return y.relu(), y.mean(), y.numel()

    def unique(x):
        values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        return values + 1, inverse, counts, counts.cumsum(0)

    def repeated(x, n):
        return x.repeat_interleave(n, dim=0) * 2

    def pairs(x):
        y = x[x > 0]
        torch._check(y.shape[0] % 2 == 0)
        return y.reshape(-1, 2).sum(1)

    def where(x):
        i, j = torch.where(x > 0)
        return x[i, j], i + j

    def args(s):
        return [(T([[1, 0], [s, 2]]),), (torch.randn(5), T([True, s > 0, False, True, False])), (T([3, 1, 3, s]),),
                (torch.randn(3, 2), T([1, s, 2])), (T([1.0, -1, 2, 0]),), (torch.randn(2, 2),)]

    none = [(torch.zeros(2, 2, dtype=torch.int64),), (torch.randn(5), torch.zeros(5, dtype=torch.bool)),
            (T([0, 0, 0, 0]),), (torch.randn(3, 2), T([0, 0, 0])), (T([-1.0, -1, -2, 0]),), (-torch.ones(2, 2),)]
    return many("sizes_by_data", [nonzero, selected, unique, repeated, pairs, where], args(3), args(0), none)


@case
def numbers_from_tensors():
    def cut(n, x):
        k = n.item()
        torch._check(k >= 0)
        torch._check(k <= x.shape[0])
        return x[:k] + 1, x[k:].sum(), torch.arange(k), torch.zeros(k, 2), k, k * 2 + 1

    def scaled(s, x):
        v = s.item()
        return x * v, v, x.clamp(max=v)

    def divided(n, x):
        a, b = n.tolist()
        torch._check(a >= 0)
        torch._check(b >= 0)
        torch._check(a + b == x.shape[0])
        p, q = x.split([a, b])
        return p.sum(), q * 2

    def largest(n, x):
        k = n.item()
        torch._check(k >= 1)
        torch._check(k <= 4)
        return x.topk(k).values, x.narrow(0, 0, k), F.pad(x, (0, k))

    def viewed(n, x):
        k = n.item()
        torch._check(k > 0)
        torch._check(k < 10)
        y = torch.ones(k, 3)
        return (y @ x).t(), y.view(3, k), y.repeat(2, k)

    def args(k, s):
        return [(T(k), torch.randn(5)), (T(s), torch.randn(3)), (T([k, 5 - k]), torch.randn(5)),
                (T(min(max(k, 1), 4)), torch.randn(6)), (T(k + 1), torch.randn(3, 2))]

    beyond, too_many = args(2, 1.0), args(2, 1.0)
    beyond[0] = (T(6), torch.randn(5))
    too_many[4] = (T(10), torch.randn(3, 2))
    return many("numbers_from_tensors", [cut, scaled, divided, largest, viewed], args(2, 0.5), args(5, -2.0),
                args(0, 0.0), args(1, 3.0), fails=[beyond, too_many])


class Flex(nn.Module):
    def __init__(self, mask=None, score=None, queries=1, keys=1, gqa=False):
        super().__init__()
        self.mask = create_block_mask(mask, None, None, queries, keys, device="cpu") if mask else None
        self.score, self.gqa = score, gqa

    def forward(self, q, k, v):
        return flex_attention(q, k, v, score_mod=self.score, block_mask=self.mask, enable_gqa=self.gqa)


def flex(name, model, heads, queries, keys, width, dtype=torch.float32, key_heads=None, tolerance=None):
    def args():
        return [torch.randn(1, h, n, width).to(dtype) for h, n in
                ((heads, queries), (key_heads or heads, keys), (key_heads or heads, keys))]

    r = Recorder(name, model, tuple(args()))
    for _ in range(2):
        r.run(*args(), tolerance=tolerance)
    return r


@case
def flex_causal_grouped():
    return flex("flex_causal_grouped", Flex(lambda b, h, q, k: q >= k, lambda s, b, h, q, k: s + (k - q) * torch.exp2(
        -(h + 1.0)), 128, 128, True), 4, 128, 128, 16, key_heads=2)


@case
def flex_decode_bfloat16():
    return flex("flex_decode_bfloat16", Flex(score=lambda s, b, h, q, k: torch.tanh(s / 20) * 20, gqa=True), 4, 1, 150,
                16, torch.bfloat16, 2, (2e-2, 2e-2))


class Picture(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.c, self.n, self.l = nn.Conv2d(16, 8, 1, stride=2), nn.BatchNorm2d(16), nn.Linear(8, 5)

    def forward(self, x):
        y = self.a(x).relu()
        z = self.n(self.b(y)) + y
        return self.l(F.adaptive_avg_pool2d(F.max_pool2d(self.c(z.relu()), 2), 1).flatten(1))


@case
def quantised_picture():
    """int8 weights and activations, bfloat16 between: static quantisation for x86 under autocast."""
    from torchao.quantization.pt2e import move_exported_model_to_eval
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    x = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        graph = torch.export.export(Picture().eval(), (x,)).module()
        quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
        graph = prepare_pt2e(graph, quantizer)
        graph(x)
        graph = convert_pt2e(graph)
    move_exported_model_to_eval(graph)

    class Autocast(nn.Module):
        def __init__(self):
            super().__init__()
            self.graph = graph

        def eval(self):
            return self

        def forward(self, x):
            with torch.autocast("cpu", torch.bfloat16):
                return self.graph(x)

    with inductor.patch(freezing=True):
        r = Recorder("quantised_picture", Autocast(), (x,), by_name=True)
    for _ in range(2):
        r.run(torch.randn(2, 3, 16, 16), tolerance=(2e-2, 2e-2))
    return r


if __name__ == "__main__":
    make_suite("graphs")
