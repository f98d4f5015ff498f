"""Writes packages/batching.tar.xz: small models whose rows may share a run, and models whose rows may not.

Run with a Python that has torch 2.15 and a C++ compiler; names as arguments make only those, and print where they are.
batching/may_share.txt in the archive has the models whose rows are independent; of all others, requests must run one by
one.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

# What is compiled names no path of this machine. Before torch.
os.environ["CXX"] = str(pathlib.Path(__file__).resolve().parents[2] / "tests/data/portable_cxx.sh")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
os.environ["SCONCE_TORCH_DIR"] = str(pathlib.Path(importlib.util.find_spec("torch").origin).parent)

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from make_packages import HERE, OPTIONS, strip

sys.path.insert(0, str(HERE.parent / "data"))
from portable_package import make_portable

SHARE, ALONE = {}, {}


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def add(models, name, model, *args, dims=None):
    batch = Dim("batch", min=1, max=64)
    shapes = tuple({0: batch, **(dims or {})} for _ in args)
    if not isinstance(model, nn.Module):
        model, shapes = Function(model), (shapes,)  # *args is one argument
    assert name not in SHARE and name not in ALONE
    models[name] = (model.eval(), args, shapes)


def quantised(x, scale):
    return (x / scale).round().clamp(-127, 127)


def whole_numbers(columns):
    """Weights in few bytes once packed."""
    numbers = torch.arange(columns)
    return ((numbers[:, None] * 37 + numbers * 11) % 251 - 125).float()


def dynamic_int8(columns, dtype=torch.float32):
    """Quantises its activations by the largest of all rows."""
    w = whole_numbers(columns).to(dtype)

    def forward(x):
        scale = x.abs().amax() / 127
        return (quantised(x, scale) @ w) * scale
    return forward


def per_row_int8(columns):
    w = whole_numbers(columns)

    def forward(x):
        scale = x.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
        return (quantised(x, scale) @ w) * scale
    return forward


class StaticInt8(nn.Module):
    """Scales from calibration: float, quantised, float again, quantised again."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 48), nn.Linear(48, 10)
        self.norm = nn.LayerNorm(48)

    def forward(self, x):
        y = self.norm(self.first(quantised(x, 0.03) * 0.03))
        return self.second(quantised(y, 0.025) * 0.025)


class BatchNormTraining(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.rand(8) + 0.5), nn.Parameter(torch.randn(8))

    def forward(self, x):
        return F.batch_norm(x, None, None, self.scale, self.shift, training=True)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.norm = nn.Linear(32, 96), nn.Linear(32, 32), nn.LayerNorm(32)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).view(x.shape[0], 6, 3, 4, 8).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape[0], 6, 32)
        return x + self.out(y)


class Encoder(nn.Module):
    """Of tokens: its input cannot be changed by a little."""

    def __init__(self):
        super().__init__()
        self.embed, self.attention, self.head = nn.Embedding(11, 32), Attention(), nn.Linear(32, 5)

    def forward(self, tokens):
        return self.head(self.attention(self.embed(tokens)).mean(1))


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def convnet():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(8, 16, 3), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 12, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0][:, -1]


class Classes(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(16, 64, 20)

    def forward(self, x):
        y = self.net(x)
        return {"class": y.argmax(1), "best": y.topk(3)}


class Table(nn.Module):
    """Fails for all but numbers from 1000 on."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(8, 4))

    def forward(self, x):
        return self.table[x.long() - 1000]


class Branch(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))


def models():
    x16, x64 = torch.randn(4, 16), torch.randn(4, 64)
    for columns in (16, 64, 512):
        add(ALONE, f"dynamic_int8_{columns}", dynamic_int8(columns), torch.randn(4, columns))
    add(ALONE, "dynamic_int8_bfloat16", dynamic_int8(64, torch.bfloat16), x64.bfloat16())
    add(ALONE, "batch_norm_training", BatchNormTraining(), torch.randn(4, 8, 5))
    add(ALONE, "cond_sum", Branch(), x16)
    add(ALONE, "where_sum", lambda x: torch.where(x.sum() > 0, x, -x), x16)
    add(ALONE, "where_far_sum", lambda x: torch.where(x.sum() > 1e6, x, -x), x16)
    add(ALONE, "where_any_nan", lambda x: torch.where(x.isnan().any(), 0.0, x), x16)
    add(ALONE, "nothing_of_the_sum", lambda x: x + 0 * x.sum(), x16)
    add(ALONE, "minus_mean", lambda x: x - x.mean(0, keepdim=True), x16)
    add(ALONE, "topk_batch", lambda x: x - x.topk(1, dim=0).values, x16)
    add(ALONE, "sort_batch", lambda x: x.sort(dim=0).values, x16)
    add(ALONE, "argsort_batch", lambda x: x.argsort(dim=0), x16)
    add(ALONE, "softmax_batch", lambda x: x.softmax(0), x16)
    add(ALONE, "cumsum_batch", lambda x: x.cumsum(0), x16)
    add(ALONE, "flip_batch", lambda x: x.flip(0) * 2, x16)
    add(ALONE, "position", lambda x: x + torch.arange(x.shape[0])[:, None], x16)
    add(ALONE, "position_integer", lambda x: (x > 0).long() + torch.arange(x.shape[0])[:, None], x16)
    add(ALONE, "count", lambda x: x / x.shape[0], x16)
    add(ALONE, "first_row", lambda x: x - x[:1], x16)
    add(ALONE, "tokens_mean", lambda t: t - t.float().mean(0), torch.randint(0, 9, (4, 7)))
    add(ALONE, "noise", lambda x: x + torch.rand_like(x), x16)

    add(SHARE, "always_the_same", lambda x: (x == 12345).float(), x16)
    add(SHARE, "float_indices", Table(), torch.full((4,), 1003.0))
    add(SHARE, "mlp", mlp(64, 256, 128, 10), x64)
    add(SHARE, "mlp_bfloat16", mlp(64, 256, 10).bfloat16(), x64.bfloat16())
    add(SHARE, "mlp_double", mlp(64, 32, 10).double(), x64.double())
    add(SHARE, "convnet", convnet(), torch.randn(4, 3, 16, 16))
    add(SHARE, "convnet_any_size", convnet(), torch.randn(4, 3, 32, 48),
        dims={2: Dim("height", min=8, max=512), 3: Dim("width", min=8, max=512)})
    add(SHARE, "image_bytes", nn.Sequential(Function(lambda x: x.float() / 255), convnet()),
        torch.randint(0, 255, (4, 3, 16, 16), dtype=torch.uint8))
    add(SHARE, "attention", Attention(), torch.randn(4, 6, 32))
    add(SHARE, "attention_bfloat16", Attention().bfloat16(), torch.randn(4, 6, 32).bfloat16())
    add(SHARE, "encoder", Encoder(), torch.randint(0, 11, (4, 6)))
    add(SHARE, "layer_norm", nn.LayerNorm(64), x64)
    add(SHARE, "lstm", Lstm(), torch.randn(4, 5, 8))
    add(SHARE, "static_int8", StaticInt8(), torch.randn(4, 32))
    add(SHARE, "per_row_int8", per_row_int8(64), x64)
    add(SHARE, "classes", Classes(), x16)
    add(SHARE, "sort_columns", lambda x: (x.sort(dim=1).values, x.cumsum(1), x.softmax(1)), x16)
    add(SHARE, "sine", lambda x: (x * 3).sin() + x.exp(), x16)


def main():
    torch.manual_seed(0)
    models()
    wanted = sys.argv[1:] or [*ALONE, *SHARE]
    folder = pathlib.Path(tempfile.mkdtemp()) / "batching"
    folder.mkdir()
    for name in wanted:
        model, args, shapes = (ALONE | SHARE)[name]
        torch._dynamo.reset()
        with torch.no_grad():
            program = torch.export.export(model, args, dynamic_shapes=shapes)
            path = str(folder / f"{name}.pt2")
            torch._inductor.aoti_compile_and_package(program, package_path=path, inductor_configs=OPTIONS)
        strip(path, deflate=False)
        make_portable(path, "x86-64-v3")
        print(name, pathlib.Path(path).stat().st_size, flush=True)
    (folder / "may_share.txt").write_text("".join(f"{name}\n" for name in sorted(set(wanted) & set(SHARE))))
    if sys.argv[1:]:
        return print(folder)
    packed = HERE / "packages/batching.tar.xz"
    subprocess.run(["tar", "--sort=name", "--owner=0", "--group=0", "--mtime=1980-01-01", "-C", str(folder.parent),
                    "-I", "xz -9e", "-cf", str(packed), "batching"], check=True)
    print(packed, packed.stat().st_size)


if __name__ == "__main__":
    main()
