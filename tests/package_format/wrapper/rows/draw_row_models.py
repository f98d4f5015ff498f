"""Compares the proof from generated source with PyTorch on random models.

    python draw_row_models.py SCONCE COUNT [--seed 0] [--simdlen 256]

Each model is a chain of 1 to 5 operators, some over the rows, most within them. What eager PyTorch says (rows alone, beside
others, at other places, in other numbers) is compared with `sconce inspect --json` of the package. A model that is called
independent although its rows meet ends the run with status 1; models that are independent and not proved are counted, with
the reasons. Needs torch and a C++ compiler; packages hold source only, and are not compiled.
"""

import argparse
import collections
import importlib.util
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import zipfile


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sconce")
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--simdlen", type=int)
    return parser.parse_args()


if importlib.util.find_spec("torch") is None:
    if not {"-h", "--help"}.intersection(sys.argv):
        sys.exit("draw_row_models.py: this Python has no torch: pip install torch==2.15.0 numpy")
    parsed()

import torch  # noqa: E402
from make_row_sources import answers, rows_meet, source_of  # noqa: E402
from torch import nn  # noqa: E402

ROWS, WIDTH = 6, 12

# Of a tensor [rows, WIDTH] to one of that shape.
WITHIN = {
    "relu": lambda x: x.relu(),
    "softmax": lambda x: x.softmax(1),
    "cumsum": lambda x: x.cumsum(1),
    "sort": lambda x: x.sort(1).values,
    "flip": lambda x: x.flip(1),
    "roll": lambda x: x.roll(5, 1),
    "layer_norm": lambda x: nn.functional.layer_norm(x, (WIDTH,)),
    "mean": lambda x: x - x.mean(1, keepdim=True),
    "max": lambda x: x / (1 + x.abs().amax(1, keepdim=True)),
    "transpose": lambda x: x.view(-1, 3, 4).transpose(1, 2).reshape(-1, WIDTH),
    "pad": lambda x: nn.functional.pad(x, (2, 1))[:, 1:-2] + x,
    "cat": lambda x: torch.cat([x[:, 6:], x[:, :6] * 2], 1),
    "pool": lambda x: nn.functional.max_pool1d(x[:, None], 3, 1, 1)[:, 0],
    "outer": lambda x: (x[:, :, None] * x[:, None, :]).sum(1),
    "argmax": lambda x: x * (x.argmax(1, keepdim=True) > 3),
    "gather": lambda x: x.gather(1, (x.abs() * 3).long().clamp(max=WIDTH - 1)),
    "place": lambda x: x + torch.arange(WIDTH),
    "attention": lambda x: nn.functional.scaled_dot_product_attention(
        x.view(-1, 1, 3, 4), x.view(-1, 1, 3, 4), x.view(-1, 1, 3, 4)
    ).reshape(-1, WIDTH),
    "blocks": lambda x: x.view(-1, 4).softmax(1).view(-1, WIDTH),
    "where": lambda x: torch.where((x > 1).any(1, keepdim=True), x, -x),
    "places_first": lambda x: x.view(-1, 3, 4).transpose(0, 1).contiguous().relu().transpose(0, 1).reshape(-1, WIDTH),
}
OVER = {
    "softmax0": lambda x: x.softmax(0),
    "cumsum0": lambda x: x.cumsum(0),
    "sort0": lambda x: x.sort(0).values,
    "flip0": lambda x: x.flip(0),
    "roll0": lambda x: x + x.roll(1, 0),
    "mean0": lambda x: x - x.mean(0),
    "max0": lambda x: x / (1 + x.abs().amax()),
    "count": lambda x: x * x.shape[0],
    "place0": lambda x: x + torch.arange(x.shape[0])[:, None],
    "first": lambda x: x - x[:1],
    "last": lambda x: x - x[-1:],
    "gram": lambda x: (x @ x.T).softmax(1) @ x,
    "pairs": lambda x: (x[:, None] - x[None]).abs().amax(1),
    "rank": lambda x: x * (x[:, None, :] < x[None, :, :]).sum(1),
    "any0": lambda x: torch.where((x > 3).any(), -x, x),
    "prefix": lambda x: x * (torch.arange(x.shape[0]) < 2)[:, None],
    "pad0": lambda x: nn.functional.pad(x, (0, 0, 1, 0))[:-1] + x,
    "pool0": lambda x: nn.functional.max_pool1d(x.T[None], 3, 1, 1)[0].T,
    "choose": lambda x: x[(x[:, 0] > 0).long()],
    "triangle": lambda x: torch.tril(torch.ones(x.shape[0], x.shape[0])) @ x,
    "var0": lambda x: x * x.var(0, unbiased=False),
    "table": lambda x: x + torch.linspace(0, 9, 64)[: x.shape[0], None],
    "mix": lambda x: x.reshape(2, -1).softmax(1).reshape(-1, WIDTH) if x.shape[0] % 2 == 0 else x,
}


class Chain(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.names = names
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for name in names if name == "linear")
        self.convolutions = nn.ModuleList(nn.Conv1d(1, 1, 3, padding=1) for name in names if name == "convolution")

    def forward(self, x):
        layers, convolutions = iter(self.layers), iter(self.convolutions)
        for name in self.names:
            if name == "linear":
                x = next(layers)(x)
            elif name == "convolution":
                x = next(convolutions)(x[:, None])[:, 0]
            else:
                x = (WITHIN.get(name) or OVER[name])(x)
        return x


def draw(random):
    over = random.random() < 0.5
    names = random.choices([*WITHIN, "linear", "convolution"], k=random.randint(1, 5))
    if over:
        names[random.randrange(len(names))] = random.choice(list(OVER))
    return names


def proof_of(sconce, texts):
    """Whether these generated sources prove that rows are computed apart, and why not."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/m.pt2"
        with zipfile.ZipFile(path, "w") as archive:
            # A package needs a model's library; any will do, as nothing runs.
            library = pathlib.Path(sconce).resolve().parents[1] / "tests/fake_model/fake_model.so"
            archive.write(library, "m/data/aotinductor/model/m.wrapper.so")
            for i, text in enumerate(texts):
                name = "m.wrapper.cpp" if "run_impl(" in text else f"m{i}.kernel.cpp"
                archive.writestr(f"m/data/aotinductor/model/{name}", text)
        run = subprocess.run([sconce, "inspect", "--json", path], capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(run.stderr)
        return json.loads(run.stdout)["models"][0]["rows"]


def main():
    options = parsed()
    config = {"cpp.simdlen": options.simdlen} if options.simdlen else {}
    draws = random.Random(options.seed)
    tally, reasons, wrong = collections.Counter(), collections.Counter(), []
    makers = [lambda n: torch.randn(n, WIDTH)]
    while sum(tally.values()) < options.count:
        names = draw(draws)
        model = Chain(names).eval()
        try:
            torch.manual_seed(0)
            answers(model, [make(ROWS) for make in makers])
            meet = rows_meet(model, makers)
            proof = proof_of(options.sconce, source_of(model, makers, config))
        except (RuntimeError, torch._dynamo.exc.UserError, torch._inductor.exc.InductorError):
            continue  # no model for a dynamic batch
        word = "independent" if proof["independent"] else "not proved"
        tally[f"{'rows meet' if meet else 'rows apart'}, {word}"] += 1
        if meet and proof["independent"]:
            wrong.append(names)
            print("WRONG:", names, flush=True)
        if not meet and not proof["independent"]:
            reasons[re.sub(r"cpp_\w+|'\w+'|\d+", "*", proof["reason"])] += 1
    for what, count in sorted(tally.items()):
        print(f"{count:6} {what}")
    for reason, count in reasons.most_common(10):
        print(f"{count:6} {reason}")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
