"""Makes row_sources.txt: sources that PyTorch generates for small models, and whether their rows are computed apart.

    python make_row_sources.py row_sources.txt [--simdlen 256] [--only NAME]
    tar cJf ../row_sources.tar.xz row_sources.txt

Needs torch and a C++ compiler. Each model is tried in eager mode, too: its rows alone and beside others, at other places
and in other numbers. A model of APART whose answers differ, and one of MEET whose answers never do, is an error, so that
the expected values come from PyTorch.
"""

import argparse
import glob
import os
import re
import tempfile
import zipfile

import torch
import torch.nn.functional as F
from torch import nn

APART, MEET = {}, {}  # name: (module, inputs of a number of rows)


def rows(*shape, dtype=torch.float32, high=None):
    """Makes an input of n rows."""

    def make(n):
        if high is not None:
            return torch.randint(0, high, (n, *shape))
        return torch.randn(n, *shape).to(dtype)

    return make


def case(where, *inputs):
    def add(function):
        made = function()
        if not isinstance(made, nn.Module):
            run = made

            class Wrapped(nn.Module):
                def forward(self, *args):
                    return run(*args)

            made = Wrapped()
        where[function.__name__] = (made.eval() if where is APART else made, inputs)
        return function

    return add


# Rows meet.


@case(MEET, rows(4), rows())
def fast_nms():
    def run(boxes, scores):
        boxes = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:].abs() + 1], 1)
        area = (boxes[:, 2] - boxes[:, 0]).clamp(min=0) * (boxes[:, 3] - boxes[:, 1]).clamp(min=0)
        low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
        high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
        both = (high - low).clamp(min=0).prod(-1)
        iou = both / (area[:, None] + area[None, :] - both + 1e-6)
        return scores * ~((iou > 0.1) & (scores[None, :] > scores[:, None])).any(1)

    return run


@case(MEET, rows(8))
def switch_router():
    class Router(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(8, 4)

        def forward(self, x):
            expert = self.gate(x).argmax(-1)
            place = (F.one_hot(expert, 4).cumsum(0) * F.one_hot(expert, 4)).sum(-1)
            return x * (place <= 2)[:, None]

    return Router()


@case(MEET, rows(6))
def cumulative_sum():
    return lambda x: x.cumsum(0)


@case(MEET, rows(6))
def cumulative_maximum():
    return lambda x: torch.cummax(x, 0).values


@case(MEET, rows(6))
def softmax_over_rows():
    return lambda x: torch.softmax(x, 0)


@case(MEET, rows(6))
def sorted_rows():
    return lambda x: torch.sort(x, 0).values


@case(MEET, rows(6))
def ranks():
    return lambda x: torch.argsort(torch.argsort(x, 0), 0).float() * x


@case(MEET, rows(6))
def threshold_of_topk():
    return lambda x: x * (x >= x.topk(2, 0).values[-1])


@case(MEET, rows(6))
def divided_by_rows():
    return lambda x: x / x.shape[0]


@case(MEET, rows(6))
def plus_place():
    return lambda x: x + torch.arange(x.shape[0])[:, None]


@case(MEET, rows(6))
def place_table():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.randn(64, 6))

        def forward(self, x):
            return x + self.table[: x.shape[0]]

    return Table()


@case(MEET, rows(6))
def first_three():
    return lambda x: x * (torch.arange(x.shape[0]) < 3)[:, None]


@case(MEET, rows(6))
def flipped():
    return lambda x: x.flip(0)


@case(MEET, rows(6))
def rolled():
    return lambda x: x + x.roll(1, 0)


@case(MEET, rows(6))
def minus_first():
    return lambda x: x - x[:1]


@case(MEET, rows(6))
def minus_last():
    return lambda x: x - x[-1]


@case(MEET, rows(6))
def pairs_inlined():
    return lambda x: (x[:, None] - x[None]).abs().amax((1, 2))


@case(MEET, rows(6))
def gram():
    return lambda x: torch.softmax(x @ x.T, 1) @ x


@case(MEET, rows(6))
def covariance():
    return lambda x: x @ (x.T @ x)


@case(MEET, rows(4, 6, 6))
def batch_norm_training():
    return nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4, track_running_stats=False))


@case(MEET, rows(6))
def minus_mean():
    return lambda x: x - x.mean(0)


@case(MEET, rows(6))
def scaled_by_largest():
    return lambda x: x / x.abs().max()


@case(MEET, rows(6))
def quantised_by_largest():
    return lambda x: (x / (x.abs().amax() / 127)).round() * (x.abs().amax() / 127)


@case(MEET, rows(6))
def where_any():
    return lambda x: torch.where((x > 1.5).any(), x, -x)


@case(MEET, rows(6))
def norm_of_all():
    return lambda x: x / x.norm()


@case(MEET, rows(6), rows(high=2))
def chosen_rows():
    return lambda x, i: x[i]


@case(MEET, rows(6), rows(high=2))
def added_to_rows():
    return lambda x, i: torch.zeros_like(x).index_add(0, i, x)


@case(MEET, rows(6), rows(high=4))
def groups():
    return lambda x, i: x / torch.zeros(4).index_add(0, i, torch.ones(x.shape[0]))[i][:, None]


@case(MEET, rows(6))
def convolution_along_rows():
    class Along(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.Conv1d(6, 6, 3, padding=1)

        def forward(self, x):
            return self.c(x.T[None])[0].T

    return Along()


@case(MEET, rows(6))
def attention_along_rows():
    class Along(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(6, 24)

        def forward(self, x):
            q, k, v = self.l(x)[None].reshape(1, -1, 2, 12).transpose(1, 2).split(4, -1)
            return F.scaled_dot_product_attention(q, k, v)[0].transpose(0, 1).reshape(x.shape[0], 8)

    return Along()


@case(MEET, rows(6))
def pooled_along_rows():
    return lambda x: F.avg_pool1d(x.T[None], 3, 1, 1)[0].T


@case(MEET, rows(6))
def padded_rows():
    return lambda x: F.pad(x, (0, 0, 1, 0))[:-1] + x


@case(MEET, rows(6))
def median_of_rows():
    return lambda x: x - x.median(0).values


@case(MEET, rows(6))
def number_of_larger():
    return lambda x: (x[:, None, 0] < x[None, :, 0]).sum(1)


@case(MEET, rows(6))
def lower_triangle():
    return lambda x: torch.tril(torch.ones(x.shape[0], x.shape[0])) @ x


@case(MEET, rows(6))
def logsumexp_of_all():
    return lambda x: x - torch.logsumexp(x, 0)


@case(MEET, rows(6))
def variance_of_rows():
    return lambda x: x * x.var(0)


# Rows are computed apart.


@case(APART, rows(16))
def mlp():
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 7), nn.Softmax(-1))


@case(APART, rows(3, 20, 20))
def convnet():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(8, 8, 3, groups=8, padding=1), nn.GroupNorm(2, 8), nn.SiLU(), nn.AvgPool2d(2), nn.Flatten(),
        nn.LazyLinear(5),
    )  # fmt: skip


@case(APART, rows(7, 16))
def encoder():
    return nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)


@case(APART, rows(7, high=30))
def causal_tokens():
    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.p = nn.Embedding(30, 16), nn.Embedding(7, 16)
            self.qkv, self.o = nn.Linear(16, 48), nn.Linear(16, 30)

        def forward(self, ids):
            x = self.e(ids) + self.p(torch.arange(7))
            q, k, v = self.qkv(x).view(-1, 7, 3, 2, 8).permute(2, 0, 3, 1, 4)
            x = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.o(x.transpose(1, 2).reshape(-1, 7, 16))

    return Tokens()


@case(APART, rows(7, high=30), rows(7, high=2))
def masked_tokens():
    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.l = nn.Embedding(30, 16), nn.Linear(16, 16)

        def forward(self, ids, mask):
            x = self.e(ids)
            weights = (x @ x.transpose(1, 2)).masked_fill(mask[:, None] == 0, -1e9).softmax(-1)
            return self.l(weights @ x).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)

    return Tokens()


@case(APART, rows(5, 6))
def lstm_cells():
    class Cells(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.LSTMCell(6, 8)

        def forward(self, x):
            h = c = x.new_zeros(x.shape[0], 8)
            for t in range(5):
                h, c = self.c(x[:, t], (h, c))
            return h

    return Cells()


@case(APART, rows(5, 6))
def gru():
    class Gru(nn.Module):
        def __init__(self):
            super().__init__()
            self.g = nn.GRU(6, 8, batch_first=True)

        def forward(self, x):
            return self.g(x)[0]

    return Gru()


@case(APART, rows(12))
def within_rows():
    return lambda x: (
        x.softmax(1), x.cumsum(1), x.sort(1).values, x.topk(3, 1).values, x.flip(1), x.roll(2, 1), x.argmax(1),
        x - x.mean(1, keepdim=True), x.norm(dim=1), x.var(1), x[:, ::2], torch.cat([x, x * 2], 1),
    )  # fmt: skip


@case(APART, rows(6), rows(6, high=6))
def gathered_within_rows():
    return lambda x, i: x.gather(1, i)


@case(APART, rows(6, 5), rows(5, 4))
def products_of_rows():
    return lambda x, y: torch.einsum("bij,bjk->bik", x, y).relu()


@case(APART, rows(4, 8, 8))
def pictures():
    return lambda x: (
        F.pixel_shuffle(x, 2), F.interpolate(x, scale_factor=2, mode="bilinear"), F.pad(x, (1, 2, 0, 1)),
        F.max_pool2d(x, 2), F.instance_norm(x), F.adaptive_avg_pool2d(x, 3), x.permute(0, 2, 3, 1),
    )  # fmt: skip


@case(APART, rows(10), rows(2, high=5))
def tabular():
    class Tabular(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Embedding(5, 4), nn.Embedding(5, 3)
            self.l = nn.Sequential(nn.Linear(17, 16), nn.ReLU(), nn.Linear(16, 1))

        def forward(self, x, c):
            return self.l(torch.cat([x, self.a(c[:, 0]), self.b(c[:, 1])], 1)).sigmoid()

    return Tabular()


@case(APART, rows(9, 4))
def signals():
    return nn.Sequential(nn.Conv1d(9, 6, 2), nn.BatchNorm1d(6), nn.ELU(), nn.Flatten(), nn.Linear(18, 3))


@case(APART, rows(16))
def quantised_by_row():
    return lambda x: (x / (x.abs().amax(1, keepdim=True) / 127)).round().clamp(-128, 127).to(torch.int8)


@case(APART, rows(16, dtype=torch.bfloat16))
def bfloat16_mlp():
    return nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.LayerNorm(32), nn.Linear(32, 4)).to(torch.bfloat16)


@case(APART, rows(6, 16))
def mixer():
    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.n = nn.Linear(6, 6), nn.Linear(16, 16), nn.LayerNorm(16)

        def forward(self, x):
            x = x + self.a(self.n(x).transpose(1, 2)).transpose(1, 2)
            return x + self.b(F.gelu(x))

    return Mixer()


def answers(model, inputs):
    with torch.no_grad():
        result = model(*inputs)
    return list(result) if isinstance(result, (tuple, list)) else [result]


def rows_meet(model, makers):
    """Whether a row's answer was ever another beside other rows, at another place or in another number."""
    for seed in range(8):
        torch.manual_seed(seed)
        mine, others = [make(1) for make in makers], [make(5) for make in makers]
        try:
            alone = answers(model, mine)
        except (IndexError, RuntimeError, ValueError):  # one row is too few
            return True
        for place in (0, 2, 5):
            for scale in (1, 10):
                beside = [
                    torch.cat([o[:place], m, o[place:]]) if not o.is_floating_point()
                    else torch.cat([o[:place] * scale, m, o[place:] * scale]) for m, o in zip(mine, others)
                ]  # fmt: skip
                for a, b in zip(alone, answers(model, beside)):
                    if a.shape[0] != 1 or b.shape[0] != 6:
                        return True
                    if not torch.allclose(a[0].double(), b[place].double(), rtol=1e-2, atol=1e-2, equal_nan=True):
                        return True
    return False


def source_of(model, makers, config):
    batch = torch.export.Dim("batch", min=1, max=64)
    torch.manual_seed(0)
    inputs = tuple(make(6) for make in makers)
    program = torch.export.export(model, inputs, dynamic_shapes=(tuple({0: batch} for _ in inputs),)
                                  if type(model).__name__ == "Wrapped" else tuple({0: batch} for _ in inputs))  # fmt: skip
    return generated(program, config)


def generated(program, config):
    """The sources that PyTorch generates for an exported program, without compiling them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt2")
        torch._inductor.aoti_compile_and_package(
            program, package_path=path, inductor_configs={"aot_inductor.package_cpp_only": True, **config}
        )
        archive = zipfile.ZipFile(path)
        return [archive.read(name).decode() for name in archive.namelist() if name.endswith(".cpp")]


def compact(texts):
    """Leaves out what the reader does not look at."""
    text = "\n".join(sorted(texts, key=lambda text: "run_impl(" in text))
    text = re.sub(r"AOTIRuntimeError AOTInductorModelContainer.*?\n}\)\n", "", text, flags=re.DOTALL)
    kernels = re.findall(r'^extern "C" +void +\w+\([^)]*\)\n\{\n.*?^\}$', text, flags=re.DOTALL | re.MULTILINE)
    graph = text[text.find("AOTInductorModel::AOTInductorModel(") :]
    end = "} // AOTInductorModel::run_impl\n"
    text = "\n".join(kernels) + "\n" + graph[: graph.find(end) + len(end)]
    return re.sub(r"        std::stringstream ss;\n.*?\n        throw", "        throw", text, flags=re.DOTALL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--simdlen", type=int)
    parser.add_argument("--only")
    options = parser.parse_args()
    config = {"cpp.simdlen": options.simdlen} if options.simdlen else {}
    written = (
        set(re.findall(r"^==== \w+ (\w+)$", open(options.out).read(), flags=re.MULTILINE))
        if glob.glob(options.out)
        else set()
    )
    failed = []
    with open(options.out, "a") as out:
        for word, cases in (("meet", MEET), ("apart", APART)):
            for name, (model, makers) in cases.items():
                if name in written or (options.only and options.only != name):
                    continue
                torch.manual_seed(0)
                answers(model, [make(6) for make in makers])  # sizes of lazy layers
                if rows_meet(model, makers) != (word == "meet"):
                    failed.append(name)
                    print(f"{name}: eager mode says otherwise", flush=True)
                    continue
                try:
                    source = compact(source_of(model, makers, config))
                except Exception as error:
                    failed.append(name)
                    print(f"{name}: {str(error)[:300]}", flush=True)
                    continue
                print(name, flush=True)
                out.write(f"==== {word} {name}\n{source}\n")
                out.flush()
    if failed:
        raise SystemExit(f"no source of {', '.join(failed)}")


if __name__ == "__main__":
    main()
