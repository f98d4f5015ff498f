"""Makes the conformance cases of this repository and packs them as tests/data/basics.tar.xz.

    python -m venv .venv && .venv/bin/pip install torch==2.15.0 numpy
    .venv/bin/python tests/data/make_cases.py [NAME...]

Small models of our own; case_suite.py says how they are compiled. With names, only those cases are made and left
unpacked in build/cases.
"""
from case_suite import Function, case, make_suite, record  # before torch

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

import torch._inductor.config as inductor
from case_writer import Recorder


def mlp():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 5))


@case
def mlp_dynamic_batch():
    r = Recorder("mlp_dynamic_batch", mlp(), (torch.randn(4, 16),), dynamic_shapes={"input": {0: Dim("batch", max=64)}})
    for batch in (1, 2, 7, 64):
        r.run(torch.randn(batch, 16))
    r.fails(r"input_handles\[0\]: dim value is too large at 0", torch.randn(65, 16), checks=True)
    r.fails(r"input_handles\[0\]: unmatched dim value at 1", torch.randn(4, 17), checks=True)
    r.fails(r"input_handles\[0\]: unmatched dtype", torch.randn(4, 16).double(), checks=True)
    r.run(torch.randn(3, 16))
    return r


@case
def mlp_bfloat16():
    r = record("mlp_bfloat16", mlp().bfloat16(), torch.randn(4, 16).bfloat16())
    r.run(torch.randn(4, 16).bfloat16())
    return r


@case
def conv_net():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Conv2d(8, 8, 3, stride=2, groups=4), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    net[1].running_mean.uniform_(-1, 1)
    r = record("conv_net", net, torch.randn(2, 3, 16, 16))
    r.run(torch.randn(2, 3, 16, 16))
    return r


@case
def conv_shapes():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Conv1d(4, 6, 5, dilation=2, padding=2)
            self.three = nn.Conv3d(2, 3, 2)
            self.back = nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1)

        def forward(self, a, b, c):
            return self.one(a), self.three(b), self.back(c)

    r = record("conv_shapes", Net(), torch.randn(2, 4, 20), torch.randn(1, 2, 4, 5, 6), torch.randn(2, 3, 5, 5))
    r.run(torch.randn(2, 4, 20), torch.randn(1, 2, 4, 5, 6), torch.randn(2, 3, 5, 5))
    return r


@case
def channels_last():
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    r = record("channels_last", nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last), x)
    r.run(torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last))
    return r


@case
def frozen_net():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10))
    r = record("frozen_net", net, torch.randn(2, 3, 8, 8), config={"freezing": True})
    r.run(torch.randn(2, 3, 8, 8))
    return r


@case
def lstm():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(6, 8, batch_first=True)

        def forward(self, x):
            out, (h, c) = self.lstm(x)
            return {"out": out, "state": [h, c]}

    r = record("lstm", Net(), torch.randn(2, 5, 6))
    r.run(torch.randn(2, 5, 6))
    return r


@case
def transformer_layer():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
    r = record("transformer_layer", Function(lambda x: layer(x)), torch.randn(2, 6, 16))
    r.model.layer = layer.eval()
    r.run(torch.randn(2, 6, 16))
    return r


@case
def attention():
    def attend(q, k, v, mask):
        return (F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
                F.scaled_dot_product_attention(q, k, v, is_causal=True))

    def inputs(length):
        return *(torch.randn(2, 3, length, 8) for _ in range(3)), torch.randn(length, length)

    length = Dim("length", max=128)
    r = record("attention", attend, *inputs(5), dynamic_shapes=({2: length},) * 3 + ({0: length, 1: length},))
    for n in (3, 40):
        r.run(*inputs(n))
    return r


@case
def embeddings():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(20, 6, padding_idx=0)
            self.bag = nn.EmbeddingBag(20, 6, mode="sum")

        def forward(self, ids, offsets):
            return self.table(ids), self.bag(ids.flatten(), offsets)

    r = record("embeddings", Net(), torch.randint(20, (3, 4)), torch.tensor([0, 3, 3, 9]))
    r.run(torch.randint(20, (3, 4)), torch.tensor([0, 3, 3, 9]))
    return r


@case
def matrix_products():
    def products(a, b, c):
        return a @ b, torch.baddbmm(c, a, b, beta=0.5, alpha=2), torch.einsum("bij,bjk->ik", a, b), (a[0] @ b[0].double().float()).T

    r = record("matrix_products", products, torch.randn(3, 4, 5), torch.randn(3, 5, 6), torch.randn(3, 4, 6))
    r.run(torch.randn(3, 4, 5), torch.randn(3, 5, 6), torch.randn(3, 4, 6))
    return r


@case
def sorting():
    def f(x):
        return *torch.sort(x, dim=0, stable=True, descending=True), *torch.topk(x, 3), x.cumsum(1), x.argsort()

    r = record("sorting", f, torch.randn(5, 7))
    r.run(torch.randn(5, 7))
    r.run(torch.arange(35).reshape(5, 7) % 3 * 1.0)
    return r


@case
def data_dependent_sizes():
    def f(x):
        chosen = x[x > 0]
        return x.nonzero(), chosen * 2, chosen.sum()

    r = record("data_dependent_sizes", f, torch.randn(4, 5))
    r.run(torch.randn(4, 5))
    r.run(-torch.ones(4, 5))
    return r


@case
def indexing():
    def f(x, rows, values):
        put = x.clone().index_put((rows,), values, accumulate=True)
        return put, x[rows, :2], x.index_select(1, rows), x.gather(0, rows[None].expand(2, -1))

    r = record("indexing", f, torch.randn(5, 6), torch.tensor([0, 2, 2, -1]), torch.randn(4, 6))
    r.run(torch.randn(5, 6), torch.tensor([4, 1, 1, 0]), torch.randn(4, 6))
    return r


@case
def scattering():
    def f(x, index, source):
        return (x.scatter(0, index, source), x.scatter_add(0, index, source),
                x.scatter_reduce(0, index, source, "amax", include_self=False), source.repeat_interleave(2, dim=1))

    index = torch.randint(5, (3, 6))
    index = torch.stack([torch.randperm(5)[:3] for _ in range(6)], 1)
    r = record("scattering", f, torch.randn(5, 6), index, torch.randn(3, 6))
    r.run(torch.randn(5, 6), index, torch.randn(3, 6))
    return r


@case
def searching():
    def f(edges, x):
        return torch.searchsorted(edges, x, right=True), torch.bucketize(x, edges), x.argmax(1), *x.max(0)

    edges = torch.linspace(-1, 1, 9)
    r = record("searching", f, edges, torch.randn(3, 4))
    r.run(edges, torch.randn(3, 4))
    return r


@case
def pooling():
    def f(x):
        return (*F.max_pool2d(x, 3, 2, padding=1, return_indices=True), F.avg_pool2d(x, 2, count_include_pad=False),
                F.adaptive_avg_pool2d(x, (3, 5)), F.interpolate(x, scale_factor=2, mode="bilinear"))

    r = record("pooling", f, torch.randn(2, 3, 9, 9))
    r.run(torch.randn(2, 3, 9, 9))
    return r


@case
def integers():
    def f(a, b):
        return a // b, a % b, a << 2, a & b, torch.bitwise_not(a), a.to(torch.uint8), (a > b).sum(), a.float() / b

    r = record("integers", f, torch.arange(-6, 6), torch.tensor([2, -3] * 6))
    r.run(torch.arange(-6, 6), torch.tensor([2, -3] * 6))
    return r


@case
def complex_numbers():
    def f(x):
        return x * x + 1j, torch.view_as_real(x), x.reshape(3, 4)

    r = record("complex_numbers", f, torch.randn(4, 3, dtype=torch.complex64))
    r.run(torch.randn(4, 3, dtype=torch.complex64))
    return r


@case
def nested_arguments():
    class Net(nn.Module):
        def forward(self, pair, *, scale, extra=None):
            a, b = pair
            return {"sum": a + b["x"] * scale["by"], "none": None, "list": [a, (b["y"].relu(),)]}

    def arguments(n):
        return ((torch.randn(n), {"x": torch.randn(n), "y": torch.randn(n)}),), {"scale": {"by": torch.randn(n)}}

    args, kwargs = arguments(4)
    r = Recorder("nested_arguments", Net(), args, kwargs)
    args, kwargs = arguments(4)
    r.run(*args, **kwargs)
    return r


@case
def views_returned():
    def f(x, y):
        doubled = y * 2
        return x, x[1:], x.t(), doubled, doubled.view(-1), y

    r = record("views_returned", f, torch.randn(3, 4), torch.randn(4, 3))
    r.run(torch.randn(3, 4), torch.randn(4, 3))
    return r


@case
def shared_inputs():
    r = record("shared_inputs", lambda a, b: a + b.sum(), torch.randn(3), torch.randn(3))
    base = torch.randn(6)
    r.run(base[:3], base[3:])
    r.run(base[1:4], base[1:4])
    return r


@case
def inputs_written():
    def f(x, y):
        x.add_(y)
        y[1:] = 7
        return x * 2

    r = record("inputs_written", f, torch.randn(4), torch.randn(4))
    r.run(torch.randn(4), torch.randn(4))
    return r


@case
def buffer_written():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            self.count.add_(1)
            self.mean.lerp_(x, 0.5)
            return self.mean * self.count

    r = record("buffer_written", Counter(), torch.randn(4))
    for _ in range(3):
        r.run(torch.randn(4))
    return r


@case
def random_numbers():
    def f(x):
        return torch.rand_like(x), torch.randn(3, 4), torch.randint(10, (5,)), torch.randperm(6), F.dropout(x, 0.5)

    with inductor.patch(fallback_random=True):
        r = record("random_numbers", f, torch.randn(40))
        r.run(torch.randn(40), seed=7)
        r.run(torch.randn(40), seed=12345)
    return r


@case
def item_slices():
    def f(x, n):
        k = n.item()
        torch._check(k >= 2)
        torch._check(k <= 8)
        return x[:k] * 2, torch.ones(k)

    r = record("item_slices", f, torch.randn(8), torch.tensor(4))
    r.run(torch.randn(8), torch.tensor(2))
    r.run(torch.randn(8), torch.tensor(8))
    r.fails(r"Expected u0 <= 8 but received 9", torch.randn(8), torch.tensor(9))
    r.run(torch.randn(8), torch.tensor(5))
    return r


@case
def branches():
    def f(flag, x):
        return torch.cond(flag, lambda x: x.sin() + 1, lambda x: x.cos() @ x.T, (x,))

    r = record("branches", f, torch.tensor(True), torch.randn(4, 4))
    r.run(torch.tensor(True), torch.randn(4, 4))
    r.run(torch.tensor(False), torch.randn(4, 4))
    return r


@case
def empty_tensors():
    r = record("empty_tensors", lambda x: (x * 2, x.sum(), torch.cat([x, x])), torch.randn(4, 3),
               dynamic_shapes=({0: Dim.DYNAMIC},))
    r.run(torch.randn(4, 3))
    r.run(torch.randn(0, 3))
    return r


@case
def ranks_and_layouts():
    def f(x, y):
        return x.permute(2, 0, 1) + 1, torch.empty_permuted((2, 3), (1, 0)).fill_(4), y.expand(3, 4), x.sum(), y.reshape(())

    r = record("ranks_and_layouts", f, torch.randn(2, 3, 4), torch.randn(1))
    r.run(torch.randn(2, 3, 4), torch.randn(1))
    return r


@case
def weights_swapped():
    model = mlp()
    r = record("weights_swapped", model, torch.randn(4, 16))
    x = torch.randn(4, 16)
    r.run(x)
    r.extract()
    state = model.state_dict()
    new = {fqn: torch.randn_like(state[fqn]) for fqn in sorted(r.fqns.values())}
    r.update(new, buffer="inactive", full=True)
    r.run(x)
    r.swap()
    r.model.load_state_dict(new, strict=False)
    r.run(x)
    r.extract()
    r.update({"0.bias": torch.ones(32)})
    r.model.load_state_dict({"0.bias": torch.ones(32)}, strict=False)
    r.run(x)
    r.free_inactive()
    r.run(x)
    return r


@case
def weights_folded():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(torch.randn(4, 6)), nn.Parameter(torch.randn(6, 4))

        def forward(self, x):
            return x @ (self.a @ self.b).relu()

    r = record("weights_folded", Net(), torch.randn(3, 4), config={"aot_inductor.use_runtime_constant_folding": True})
    x = torch.randn(3, 4)
    r.run(x)
    new = {"a": torch.randn(4, 6), "b": torch.randn(6, 4)}
    r.update(new, full=True, user_managed=True)
    r.model.load_state_dict(new)
    r.run(x)
    return r


@case
def many_threads():
    with inductor.patch({"cpp.threads": 2}):
        r = record("many_threads", lambda x: (x.softmax(1), x.sum(0)), torch.randn(64, 512))
        r.run(torch.randn(64, 512))
    return r


@case
def minimal_arrayref():
    """Buffers on the stack, outputs of each thread."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
            self.register_buffer("table", torch.randn(5, 3))

        def forward(self, x, i):
            y = self.net(x)
            return y + self.table[i], y.sort(1).values, y.sum(0)

    inputs = lambda: (torch.randn(4, 6), torch.randint(0, 5, (4,)))
    r = record("minimal_arrayref", Net(), *inputs(), config={
        "aot_inductor.allow_stack_allocation": True, "aot_inductor.use_minimal_arrayref_interface": True})
    for _ in range(3):
        r.run(*inputs())
    return r


if __name__ == "__main__":
    make_suite("basics")
