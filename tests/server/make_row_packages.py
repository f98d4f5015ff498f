"""Writes packages/rows.pt2: four models that write their buffers, each with a row for each of four loops, for tests of rows.

Model "cache" is the language model of make_loop_packages.py, with the same weights, and its cache in four rows of a buffer.
Model "counted" is the same, but counts positions itself, and fails beyond the last one.
Model "running" has a number that each token changes, so that a step that is missing, too many or of another loop shows in all
tokens after it; the request brings a number that is added in each step.
Model "controlled" has Triton's control inputs: each token says what they were.

Run with a Python that has torch 2.15 and a C++ compiler; the results are checked in.
"""
import torch
from make_loop_packages import HERE, LENGTH, OPTIONS, WIDTH, Cell, make_portable, strip
from torch import nn
from torch._inductor.package import package_aoti

ROWS, TOKENS, MODULUS = 4, 64, 1000003


class Cache(Cell):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(ROWS, LENGTH, WIDTH))

    def forward(self, token, position):
        x = self.enter(token, position)
        here = torch.arange(LENGTH) == position  # [B, L]
        self.cache.copy_(torch.where(here[:, :, None], x, self.cache))
        return self.leave(x, self.cache, (torch.arange(LENGTH) > position)[:, None])


class Counted(Cell):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(ROWS, LENGTH, WIDTH))
        self.register_buffer("used", torch.zeros(ROWS, 1, dtype=torch.int64))

    def forward(self, token):
        x = self.enter(token, self.used)
        self.cache.scatter_(1, self.used[:, :, None].expand(ROWS, 1, WIDTH), x)
        logits = self.leave(x, self.cache, (torch.arange(LENGTH) > self.used)[:, None])
        self.used.add_(1)
        return logits


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("number", torch.full((ROWS,), 5, dtype=torch.int64))
        self.weight = nn.Parameter(torch.tensor([20.0, 0.0]))

    def forward(self, token, add):
        self.number.copy_((self.number * 31 + token[:, 0] + add) % MODULUS)
        return torch.nn.functional.one_hot(self.number % TOKENS, TOKENS) * self.weight[0] + self.weight[1]


class Controlled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.tensor([[0.0, 1.0]]).repeat(ROWS, 1))

    def forward(self, token, start, end, ready, number):
        self.steps.add_(1)
        said = ready.sum() + 10 * start + 20 * (number > 0) + 40 * end + 0 * token
        return torch.nn.functional.one_hot(said.to(torch.int64), TOKENS + 40) * 20.0


def main():
    token = torch.zeros(ROWS, 1, dtype=torch.int64)
    flag, number = torch.zeros(ROWS, dtype=torch.int32), torch.zeros(ROWS, dtype=torch.int64)
    forms = {"cache": (Cache(), (token, token + 1)), "counted": (Counted(), (token,)),
             "running": (Running(), (token, number)), "controlled": (Controlled(), (number, flag, flag + 1, flag + 2, number + 1))}
    models = {}
    for name, (model, args) in forms.items():
        with torch.no_grad():
            program = torch.export.export(model.eval(), args)
            models[name] = torch._inductor.aot_compile(program.module(), *program.example_inputs,
                                                       options={**OPTIONS, "always_keep_tensor_constants": True})
    target = HERE / "packages/rows.pt2"
    package_aoti(str(target), models)
    make_portable(target, "x86-64-v3")
    strip(target)
    print(target, target.stat().st_size)


if __name__ == "__main__":
    main()
