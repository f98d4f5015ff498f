"""Draws arguments from one number: sizes around limits, layouts, dtypes and values."""
import math
import random

import torch

PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 127]
LAYOUTS = ("packed", "permuted", "sliced", "offset", "padded", "expanded")
WRITABLE = ("packed", "permuted", "sliced", "offset", "padded")
FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
POISON = -1.5e4  # fills memory around views, which must not be read or written


class Draw(random.Random):
    """All choices of one draw, derived from its name alone."""

    def __init__(self, name, device="cpu"):
        super().__init__(name)
        self.device = device
        self.torch = torch.Generator().manual_seed(self.getrandbits(62))

    def chance(self, p):
        return self.random() < p

    def size(self, *limits, low=0, high=None):
        """A size near a limit (one less, the same, one more, a multiple and its neighbours), a prime, 0, 1 or any."""
        high = high if high is not None else max(limits, default=64) * 2 + 3
        way = self.random()
        if way < 0.05:
            n = self.choice((0, 1, 1))
        elif way < 0.6 and limits:
            n = self.choice(limits) * self.choice((1, 1, 1, 2, 3)) + self.choice((-1, 0, 0, 1))
        elif way < 0.8:
            n = self.choice([p for p in PRIMES if p <= max(high, 2)])
        else:
            n = int(math.exp(self.uniform(0, math.log(max(high, 2)))))
        return max(low, min(n, high))

    def shape(self, rank, most=4096, limits=(), low=0):
        """Sizes whose product is at most `most`."""
        sizes, left = [], most
        for _ in range(rank):
            sizes.append(self.size(*[n for n in limits if n <= left], low=low, high=max(left, 1)))
            left //= max(sizes[-1], 1)
        self.shuffle(sizes)
        return sizes

    def values(self, dtype, shape, kind="normal"):
        """kind: normal; wide (many orders of magnitude); few (small integers: ties, and sums without rounding); special
        (infinities, NaN and signed zeros among normal numbers); zero; positive (0.1 to 1)."""
        g = self.torch
        if dtype.is_complex:
            part = torch.float64 if dtype == torch.complex128 else torch.float32
            return torch.complex(self.values(part, shape, kind), self.values(part, shape, kind)).to(dtype)
        if dtype == torch.bool:
            return torch.randint(2, shape, generator=g).bool()
        if not dtype.is_floating_point:
            info = torch.iinfo(dtype)
            if dtype == torch.uint64 and kind == "wide":
                return torch.randint(-1 << 63, (1 << 63) - 1, shape, generator=g).view(dtype)
            if kind == "wide":
                return torch.randint(info.min, info.max, shape, generator=g).to(dtype)
            low = 0 if info.min == 0 else -9
            return torch.zeros(shape, dtype=dtype) if kind == "zero" else torch.randint(low, 10, shape, generator=g).to(dtype)
        x = torch.randn(shape, generator=g, dtype=torch.float64)
        if kind == "few":
            x = torch.randint(-3, 4, shape, generator=g).double()
        elif kind == "wide":
            spread = 4 if dtype == torch.float16 else 12
            x = x * torch.exp(torch.rand(shape, generator=g, dtype=torch.float64) * spread - spread / 2)
        elif kind == "zero":
            x = torch.zeros(shape, dtype=torch.float64)
        elif kind == "positive":
            x = torch.rand(shape, generator=g, dtype=torch.float64) * 0.9 + 0.1
        elif kind == "special":
            odd = torch.tensor([float("nan"), float("inf"), float("-inf"), 0.0, -0.0], dtype=torch.float64)
            chosen = odd[torch.randint(5, shape, generator=g)]
            x = torch.where(torch.rand(shape, generator=g) < self.choice((0.02, 0.2)), chosen, x)
        return x.to(dtype)

    def laid_out(self, t, layouts=LAYOUTS):
        """The same values in another layout, on the device. Only for reading: "expanded" repeats the first slice of a
        dimension, "overlapping" has elements in common (values from t, in another order)."""
        way, n = self.choice(layouts), t.dim()
        if way == "overlapping" and n and t.numel():
            strides = [self.choice((0, 1, 1, 2, 3, self.randrange(1, 9))) for _ in range(n)]
            count = 1 + sum((size - 1) * stride for size, stride in zip(t.shape, strides))
            lead, values = self.choice((0, 1, 5)), t.reshape(-1)
            flat = values[torch.arange(count + lead) % values.numel()].contiguous().to(self.device)
            return flat.as_strided(t.shape, strides, lead)
        if way == "expanded" and n and t.numel():
            d = self.randrange(n)
            t = t.narrow(d, 0, 1).contiguous().to(self.device).expand(t.shape)
            return t
        if way == "channels_last" and n in (4, 5):
            return t.to(self.device).contiguous(
                memory_format=torch.channels_last if n == 4 else torch.channels_last_3d)
        order = list(range(n))
        if way == "permuted" and n > 1:
            self.shuffle(order)
        steps, before, after = [1] * n, [0] * n, [0] * n
        if way in ("sliced", "padded") and n:
            for d in ([n - 1] if way == "padded" else [self.randrange(n) for _ in range(2)]):
                steps[d] = 1 if way == "padded" else self.choice((1, 2, 3))
                before[d], after[d] = self.choice((0, 0, 1, 3)), self.choice((0, 1, 5, 8))
        outer = [before[d] + max(t.shape[d], 1) * steps[d] + after[d] for d in range(n)]
        lead = self.choice((1, 2, 3, 4, 7, 16)) if way == "offset" else 0
        sizes = [outer[d] for d in order]
        count = math.prod(sizes) + lead
        base = torch.empty(count + 8, dtype=t.dtype)
        base.copy_(poison(t.dtype).expand(count + 8))
        base = base.to(self.device)
        view = base[lead:lead + math.prod(sizes)].view(sizes)
        back = [order.index(d) for d in range(n)]
        view = view.permute(back) if n else view.view(())
        for d in range(n):
            view = view.narrow(d, before[d], max(t.shape[d], 1) * steps[d])
            if steps[d] != 1:
                view = view[(slice(None),) * d + (slice(None, None, steps[d]),)]
            view = view.narrow(d, 0, t.shape[d])
        view.copy_(t.to(self.device))
        return view

    def tensor(self, dtype, shape, kind="normal", layouts=LAYOUTS):
        return self.laid_out(self.values(dtype, shape, kind), layouts)

    def indices(self, count, shape, dtype=torch.int64, negative=False, layouts=("packed", "permuted", "sliced", "offset")):
        """Numbers below count; from -count if negative ones are allowed."""
        low = -count if negative else 0
        return self.laid_out(torch.randint(low, max(count, low + 1), shape, generator=self.torch).to(dtype), layouts)


def poison(dtype):
    if dtype == torch.bool:
        return torch.tensor(True)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.tensor(POISON).to(dtype)
    return torch.tensor(99).to(dtype)


def copy_of(t):
    """A tensor of the same sizes, strides and offset over a copy of the whole storage."""
    if not isinstance(t, torch.Tensor):
        return t
    storage = t.untyped_storage().clone()
    return torch.empty(0, dtype=t.dtype, device=t.device).set_(storage, t.storage_offset(), t.shape, t.stride())
