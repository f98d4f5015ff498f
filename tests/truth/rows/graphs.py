"""Random graphs of 1 to 12 operators on a batch: most operators leave the rows alone, some look at other rows, at the batch's size or
at a row's number. A graph is made by running it once on a batch of `ROWS` rows, a prime that no other size is a multiple of."""
import math
import random
import re

import torch

F = torch.nn.functional
ROWS = 7
SIZES = (2, 3, 4, 5, 6)
MOST = 4096  # elements of a tensor
HOSTILE = 0.3  # how often an operator is drawn without regard to the rows


class Graph:
    """steps: (text, function of the tensors so far). Called with the inputs, it runs them."""

    def __init__(self, seed):
        self.seed = seed
        self.rng = random.Random(seed)
        torch.manual_seed(seed)
        self.steps = []
        self.constants = [torch.randint(-2, 3, (n, n)).double() / 2 for n in SIZES]
        self.shapes = [(self.rng.choice(SIZES), self.rng.choice(SIZES)), (self.rng.choice(SIZES),)]
        self.draw()

    def inputs(self, rows, generator, kind="normal"):
        """x [rows, a, b], y [rows, c] and integers k [rows] below 4."""
        tensors = [values_of(kind, (rows, *shape), generator) for shape in self.shapes]
        return [*tensors, torch.randint(0, 4, (rows,), generator=generator)]

    def __call__(self, *inputs):
        values = list(inputs)
        for live, (_, step) in zip(self.live, self.steps):
            values.append(step(values) if live else None)
        return values[-1]

    def text(self):
        first = [f"v{i} = input {['B', *shape]}" for i, shape in enumerate(self.shapes)] + ["v2 = integers below 4 [B]"]
        return "\n".join(first + [f"v{i + 3} = {text}" for i, (text, _) in enumerate(self.steps) if self.live[i]])

    def draw(self):
        values = self.inputs(ROWS, torch.Generator().manual_seed(self.seed))
        wanted = self.rng.randint(1, 12)
        for _ in range(200):
            if len(self.steps) == wanted:
                break
            self.try_step(values, self.rng.choices(KINDS, WEIGHTS)[0])
        self.to_rows(values)
        self.live = self.needed()

    def needed(self):
        """Which steps the result needs: an export has no others."""
        wanted = {len(self.steps) + 2}
        for i in reversed(range(len(self.steps))):
            if i + 3 in wanted:
                wanted.update(int(n) for n in re.findall(r"\bv(\d+)", self.steps[i][0]))
        return [i + 3 in wanted for i in range(len(self.steps))]

    def try_step(self, values, kind):
        hostile = self.rng.random() < HOSTILE
        found = kind(Draw(self, values, hostile))
        if found is None:
            return False
        text, step = found
        try:
            result = step(values)
        except (RuntimeError, IndexError, ValueError, TypeError):
            return False
        if not isinstance(result, torch.Tensor) or not 0 < result.numel() <= MOST or result.dim() > 6:
            return False
        self.steps.append((text, step))
        values.append(result)
        return True

    def to_rows(self, values):
        """Brings the batch of the last tensor to the front, if it has one; else joins the tensor to a row's sum."""
        last = len(values) - 1
        carriers = [d for d, size in enumerate(values[last].shape) if size % ROWS == 0]
        if not carriers:
            self.add(values, f"v0.flatten(1).sum(1) + v{last}.double().sum()",
                     lambda v: v[0].flatten(1).sum(1) + v[last].double().sum())
            return
        dim = front = self.rng.choice(carriers)
        if values[last].shape[dim] != ROWS:
            inner = self.rng.random() < 0.7
            factor = values[last].shape[dim] // ROWS
            if inner:
                self.add(values, f"v{last}.unflatten({dim}, (B, {factor}))",
                         lambda v: v[last].unflatten(dim, (v[0].shape[0], factor)))
            else:
                self.add(values, f"v{last}.unflatten({dim}, ({factor}, B))",
                         lambda v: v[last].unflatten(dim, (factor, v[0].shape[0])))
            front = dim + (not inner)
        if front:
            at = len(values) - 1
            self.add(values, f"v{at}.movedim({front}, 0)", lambda v: v[at].movedim(front, 0))

    def add(self, values, text, step):
        self.steps.append((text, step))
        values.append(step(values))


def values_of(kind, shape, generator):
    size = math.prod(shape)
    if kind == "normal":
        return torch.randn(size, generator=generator, dtype=torch.float64).view(shape)
    if kind == "integers":  # ties
        return torch.randint(-2, 3, (size,), generator=generator).double().view(shape)
    if kind == "same":  # duplicates
        return torch.full(shape, 1.5, dtype=torch.float64)
    if kind == "zeros":
        return torch.zeros(shape, dtype=torch.float64)
    if kind == "large":
        return (torch.randn(size, generator=generator, dtype=torch.float64) * 1e30).view(shape)
    odd = torch.tensor([math.nan, math.inf, -math.inf, 1e300, -1e300, 0.0, -0.0, 1e-300])
    if kind == "odd":
        return odd.double()[torch.randint(0, len(odd), (size,), generator=generator)].view(shape)
    return torch.full(shape, {"nan": math.nan, "inf": math.inf}[kind], dtype=torch.float64)


class Draw:
    """What one step is drawn from."""

    def __init__(self, graph, values, hostile):
        self.graph, self.values, self.rng, self.hostile = graph, values, graph.rng, hostile

    def pick(self, where=lambda t: True, floats=True):
        """The number of a tensor, a late one rather than an early one."""
        fit = [i for i, t in enumerate(self.values) if where(t) and (not floats or t.is_floating_point())]
        if not fit:
            return None
        return max(self.rng.choice(fit), self.rng.choice(fit)) if self.rng.random() < 0.3 else fit[-1]

    def dim(self, t):
        """A dimension, the batch's only where rows are disregarded; None: there is no other."""
        fit = [d for d, size in enumerate(t.shape) if self.hostile or size % ROWS]
        return self.rng.choice(fit) if fit else None

    def constant(self, n):
        return next((c for c in self.graph.constants if c.shape[0] == n), None)


KINDS, WEIGHTS = [], []


def kind(weight=1.0):
    def kept(function):
        KINDS.append(function)
        WEIGHTS.append(weight)
        return function
    return kept
