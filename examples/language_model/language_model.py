"""The model of train.py, the text that it learns, and the package. Needs torch."""
import json
import random
import time

import torch
from torch import nn
from torch._inductor.package import package_aoti
from torch.nn import functional

WIDTH, HEADS, LAYERS, LENGTH = 48, 4, 2, 128
ROWS = 8  # of the model "batch"
END = 0  # the token that ends a text
OPTIONS = {"aot_inductor.package": True, "always_keep_tensor_constants": True}


def sentence(rng):
    """A sentence of a small grammar, in which the verb agrees with the subject."""
    many = rng.random() < 0.5
    noun = rng.choice(["fox", "lamp", "torch", "river", "child", "bird"])
    plural = {"fox": "foxes", "torch": "torches", "child": "children"}.get(noun, noun + "s")
    verb = rng.choice(["see", "hold", "follow", "need"])
    thing = rng.choice(["the light", "an old wall", "a long road", "the quiet sea", "nothing"])
    adjective = rng.choice(["", "small ", "bright ", "old "])
    return f"the {adjective}{plural if many else noun} {verb if many else verb + 's'} {thing}."


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mix = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)

    def split(self, x):
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)  # [B, H, T, W/H]

    def attend(self, x, keys, values, mask):
        """keys and values: [B, L, W]; mask: [B or 1, 1, T, L], true where a position is seen."""
        query = self.split(self.mix(self.before(x))[..., :WIDTH])
        scores = query @ self.split(keys).transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
        seen = torch.softmax(scores.masked_fill(~mask, float("-inf")), -1) @ self.split(values)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.narrow(functional.gelu(self.wide(self.between(x))))

    def keys_values(self, x):
        return self.mix(self.before(x))[..., WIDTH:].chunk(2, -1)


class Model(nn.Module):
    """For training: all positions of a text at once."""

    def __init__(self, vocabulary):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary)

    def enter(self, tokens, positions):
        return self.tokens(tokens) + self.places(positions)

    def leave(self, x):
        return self.head(self.last(x))

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.enter(tokens, torch.arange(length)[None])
        mask = torch.ones(length, length, dtype=torch.bool).tril()[None, None]
        for layer in self.layers:
            x = layer.attend(x, *layer.keys_values(x), mask)
        return self.leave(x)


class Explicit(nn.Module):
    """One token of each row: token [B, 1], position [B, 1], cache [B, LAYERS, 2, LENGTH, WIDTH]."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, token, position, cache):
        x = self.model.enter(token, position)
        places = torch.arange(LENGTH)
        here = (places == position)[:, :, None]
        mask = (places <= position)[:, None, None]
        caches = []
        for i, layer in enumerate(self.model.layers):
            keys, values = layer.keys_values(x)
            keys = torch.where(here, keys, cache[:, i, 0])
            values = torch.where(here, values, cache[:, i, 1])
            caches.append(torch.stack([keys, values], 1))
            x = layer.attend(x, keys, values, mask)
        return self.model.leave(x), torch.stack(caches, 1)


class Buffers(nn.Module):
    """The same with the cache in a buffer: token [1, 1], position [1]."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.register_buffer("cache", torch.zeros(LAYERS, 2, 1, LENGTH, WIDTH))

    def forward(self, token, position):
        x = self.model.enter(token, position[None])
        mask = (torch.arange(LENGTH) <= position)[None, None, None]
        for i, layer in enumerate(self.model.layers):
            keys, values = layer.keys_values(x)
            self.cache[i, 0].index_copy_(1, position, keys)
            self.cache[i, 1].index_copy_(1, position, values)
            x = layer.attend(x, self.cache[i, 0], self.cache[i, 1], mask)
        return self.model.leave(x)


class Batch(nn.Module):
    """The same for several loops, each with its row of the cache: token [ROWS, 1], position [ROWS]."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.register_buffer("cache", torch.zeros(ROWS, LAYERS, 2, LENGTH, WIDTH))

    def forward(self, token, position):
        x = self.model.enter(token, position[:, None])
        row = torch.arange(ROWS)
        mask = (torch.arange(LENGTH) <= position[:, None])[:, None, None]
        for i, layer in enumerate(self.model.layers):
            keys, values = layer.keys_values(x)
            self.cache[row, i, 0, position] = keys[:, 0]
            self.cache[row, i, 1, position] = values[:, 0]
            x = layer.attend(x, self.cache[:, i, 0], self.cache[:, i, 1], mask)
        return self.model.leave(x)


def train(seconds, seed=1):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    characters = ["\n", *sorted(set("".join(sentence(rng) for _ in range(2000))))]
    number = {character: i for i, character in enumerate(characters)}
    text = torch.tensor([number[c] for _ in range(6000) for c in "\n" + sentence(rng)])
    model = Model(len(characters))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    begun, step, loss = time.monotonic(), 0, None
    while time.monotonic() - begun < seconds:
        starts = torch.randint(0, len(text) - 65, (32,))
        rows = torch.stack([text[s:s + 65] for s in starts])
        loss = functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    print(f"{step} steps, loss {loss.item():.3f}")
    return model.eval(), characters


def compile_model(model, args, dynamic=None):
    with torch.no_grad():
        program = torch.export.export(model, args, dynamic_shapes=dynamic)
        return torch._inductor.aot_compile(program.module(), *program.example_inputs, options=OPTIONS)


def write(out, model, characters):
    torch.set_num_threads(1)  # a model this small gains nothing from more
    out.mkdir(parents=True, exist_ok=True)
    any_batch = torch.export.Dim("batch", min=1, max=64)
    two = torch.zeros(2, 1, dtype=torch.int64)
    explicit = compile_model(Explicit(model), (two, two + 1, torch.zeros(2, LAYERS, 2, LENGTH, WIDTH)),
                             ({0: any_batch}, {0: any_batch}, {0: any_batch}))
    buffers = compile_model(Buffers(model), (two[:1], torch.ones(1, dtype=torch.int64)))
    rows = torch.zeros(ROWS, 1, dtype=torch.int64)
    batch = compile_model(Batch(model), (rows, torch.arange(ROWS)))
    package_aoti(str(out / "lm.pt2"), {"explicit": explicit, "buffers": buffers, "batch": batch})
    common = {"token": {"input": "INPUT__0", "output": "OUTPUT__0"}, "count": {"input": "INPUT__1", "below": LENGTH},
              "stop": {"tokens": [END], "steps": LENGTH, "deadline": "30s"}, "pick": {"temperature": 0.8, "top_k": 20}}
    for name in ("buffers", "batch"):
        (out / f"{name}.json").write_text(json.dumps(common, indent=1))
    (out / "explicit.json").write_text(json.dumps({**common, "feed": {"OUTPUT__1": "INPUT__2"}}, indent=1))
    (out / "tokens.json").write_text(json.dumps(characters))
