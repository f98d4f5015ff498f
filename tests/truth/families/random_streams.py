"""Operators that draw random numbers: src/cpu/random/random.cpp, random_engine.cpp, random_fill.cpp, random_normal.cpp, sampling.cpp,
dropout.cpp, keyed_random.cpp.

After the same manual_seed the same numbers: to the bit if ATen's generator defines the stream; within a few units in the last place
after a logarithm or another function of libm. The position in the stream counts, so each draw makes two calls; the first takes an odd
count, or normal numbers, of which one stays cached. Limits: blocks of 16 normal numbers (normals_16), 512 at a time (kChunk), 624 words
of the generator, ranges of 2^28, layouts with gaps.
"""
import math

import torch

import abi
import case
import elements

DEVICES = ("cpu",)
ATEN = torch.ops.aten
FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
LAYOUTS = ("packed", "packed", "permuted", "sliced", "padded", "channels_last", "offset")


def seeded(d, drawn):
    """Both start at the same position of the same stream."""
    number, before = d.getrandbits(40), d.choice((None, None, "rand", "randn", "randn3"))

    def with_seed(function):
        def call(*values):
            abi.seed(number)
            if before:
                # Ours and theirs, which have separate generators.
                n = [3] if before == "randn3" else [1]
                name = before.rstrip("3")
                torch.rand(n) if name == "rand" else torch.randn(n)
                abi.call(name, n, torch.float32, None, None, None)
            return function(*values)
        return call

    if drawn.error is not None:  # other dtypes draw other numbers
        types, plain = [getattr(a, "dtype", None) for a in drawn.arguments], drawn.torch
        drawn.exact = with_seed(lambda *values: plain(*[v.to(t) if isinstance(v, torch.Tensor) else v for v, t in zip(values, types)]))
    drawn.ours, drawn.torch = with_seed(drawn.ours), with_seed(drawn.torch)
    drawn.label += f" after {before}"
    return drawn


def sizes(d):
    n = d.choice((1, 2, 7, 8, 9, 15, 16, 17, 18, 31, 32, 33, 47, 48, 100, 511, 512, 513, 623, 624, 625, 1000, 1024, 1300))
    way = d.random()
    if way < 0.6:
        return [n]
    if way < 0.63:
        return d.choice(([], [0], [3, 0]))
    return d.shape(d.choice((2, 3, 4, 5)), most=1500, limits=(2, 4, 8, 16))


def like(d, dtype):
    """A tensor that provides sizes, layout and dtype."""
    shape = sizes(d)
    return d.laid_out(torch.zeros(shape, dtype=dtype), LAYOUTS)


def near(error):
    """After functions of libm, or of vectors, on the same draws."""
    return dict(error=error, each=True, same_nan=True)


def draw(d):
    return seeded(d, d.choice((factories, factories, likes, integers, permutation, bernoullis, filled, filled, normals, sampled, dropouts,
                               keyed))(d))


def factories(d):
    name = d.choice(("rand", "randn"))
    dtype = d.choice(FLOATS + ((torch.complex64, torch.complex128) if d.chance(0.2) else ()))
    shape = sizes(d)
    operator = getattr(ATEN, name).default
    label = f"{dtype} {shape}"
    if d.chance(0.5):
        return case.named(label, name, "", shape, dtype=dtype, proxied=d.chance(0.5))
    if d.chance(0.3):
        return case.shim(label, f"{name}_generator", shape, None, dtype, None, None, None, torch=lambda s, *_: operator(s, dtype=dtype))
    return case.shim(label, name, shape, dtype, None, None, None, torch=lambda s, *_: operator(s, dtype=dtype))


def likes(d):
    name = d.choice(("rand_like", "randn_like", "randint_like", "randint_like.low_dtype"))
    dtype = d.choice(FLOATS)
    x = like(d, dtype)
    short, _, overload = name.partition(".")
    numbers = [d.choice((2, 10, 128))] if name == "randint_like" else [d.choice((-5, 0)), d.choice((3, 100))] if overload else []
    other = d.choice((None, None, torch.float64, torch.float32))
    return case.named(f"{dtype} {list(x.shape)} {tuple(x.stride())} {other}", short, overload, x, *numbers, dtype=other, proxied=True)


def integers(d):
    dtype = d.choice(elements.INTEGERS + FLOATS[1:] + (torch.bool, torch.uint16, torch.uint32, torch.uint64))
    low = d.choice((0, 0, 0, -3, -100, 1, 5))
    high = low + d.choice((1, 2, 3, 7, 100, 2**28 - 1, 2**28, 2**28 + 1, 2**31, 2**32, 2**40 + 7, 2**53, 2**62))
    if dtype == torch.bool:
        low, high = 0, d.choice((1, 2))
    elif not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        low = max(low, info.min)
        high = min(high, info.max + (1 if dtype not in (torch.int64, torch.uint64) else 0), 2**63 - 1)
    elif dtype in elements.HALVES:
        high = min(high, 1000)
    if low >= high:
        return factories(d)
    shape = sizes(d)
    label = f"{dtype} {shape} {low} {high}"
    way = d.choice(("low", "high", "out", "random", "random_to", "random_from", "generator"))
    if way == "low":
        return case.shim(label, "randint_low", low, high, shape, dtype, None, None, None,
                         torch=lambda a, b, s, *_: ATEN.randint.low(a, b, s, dtype=dtype))
    if way == "high" and high > 0:
        return case.shim(label, "randint", high, shape, dtype, None, None, None, torch=lambda b, s, *_: ATEN.randint.default(b, s, dtype=dtype))
    if way == "out":
        out = torch.zeros(shape, dtype=dtype)
        return case.shim(label, "randint_low_out", out, low, high, shape, written=[0],
                         torch=lambda o, a, b, s: ATEN.randint.low_out(a, b, s, out=o))
    x = d.laid_out(torch.zeros(shape, dtype=dtype), LAYOUTS)
    label += f" {tuple(x.stride())}"
    if way == "random_to" and high > 0:
        return case.named(label, "random", "to", x, high, proxied=True)
    if way == "random_from":
        return case.named(label, "random", "from", x, low, d.choice((high, None)), proxied=True)
    if way == "generator":
        return case.named(label, "randint", "low_generator", low, high, shape, generator=None, dtype=dtype, proxied=d.chance(0.5))
    return case.named(label, "random", "", x, proxied=True)


def permutation(d):
    dtype = d.choice(elements.INTEGERS + FLOATS)
    n = d.choice((0, 1, 2, 3, 16, 17, 100, 127, 128, 624, 1300))
    if dtype in (torch.int8, torch.uint8):
        n = min(n, 127)
    if d.chance(0.5):
        return case.named(f"{dtype} {n}", "randperm", "generator", n, generator=None, dtype=dtype, proxied=True)
    return case.shim(f"{dtype} {n}", "randperm", n, dtype, None, None, None, torch=lambda n, *_: ATEN.randperm.default(n, dtype=dtype))


def bernoullis(d):
    dtype = d.choice(FLOATS + elements.INTEGERS + (torch.bool,))
    x = like(d, dtype)
    p = d.choice((0.0, 0.5, 0.1, 0.999, 1.0))
    kind = d.choice(FLOATS)
    way = d.choice(("float_", "tensor_", "", "p", "Tensor"))
    label = f"{way} {dtype} {list(x.shape)} {tuple(x.stride())} {p} {kind}"
    weights = d.laid_out(torch.rand(x.shape, generator=d.torch, dtype=torch.float64).to(kind), LAYOUTS + ("expanded",))
    if way == "float_":
        return case.shim(label, "bernoulli__float", x, p, None, written=[0], torch=lambda t, q, _: t.bernoulli_(q))
    if way == "tensor_":
        return case.shim(label, "bernoulli__Tensor", x, weights, None, written=[0], torch=lambda t, q, _: t.bernoulli_(q))
    if way == "p":
        return case.named(label, "bernoulli", "p", x, p, proxied=True)
    if way == "Tensor":
        return case.named(label, "bernoulli", "Tensor", x, weights, proxied=True)
    return case.named(label, "bernoulli", "", weights, proxied=True)


def filled(d):
    name = d.choice(("uniform", "normal_functional", "exponential", "cauchy", "log_normal", "geometric", "normal.float_float"))
    dtype = d.choice(FLOATS)
    if name == "geometric" and d.chance(0.3):
        dtype = d.choice(elements.INTEGERS)
    x = like(d, dtype)
    label = f"{dtype} {list(x.shape)} {tuple(x.stride())}"
    if name == "uniform":
        low, high = d.choice(((0.0, 1.0), (-1.0, 1.0), (2.0, 2.5), (-100.0, 3.0), (1.0, 1.0)))
        return case.shim(f"{label} {low} {high}", "uniform", x, low, high, None, torch=lambda t, a, b, _: ATEN.uniform(t, a, b))
    if name == "normal_functional":
        mean, std = d.choice(((0.0, 1.0), (2.0, 0.5), (-3.0, 10.0), (0.0, 0.0)))
        return case.shim(f"{label} {mean} {std}", "normal_functional", x, mean, std, None, torch=lambda t, a, b, _: ATEN.normal_functional(t, a, b),
                         **near(4))
    if name == "normal.float_float":
        return case.named(f"{label}", "normal", "float_float", d.choice((0.0, 2.0)), d.choice((1.0, 0.3)), list(x.shape), dtype=dtype,
                          proxied=True, **near(4))
    if name == "exponential":
        return case.shim(label, "exponential", x, d.choice((1.0, 0.5, 7.0)), None, torch=lambda t, a, _: ATEN.exponential(t, a), **near(8))
    if name == "geometric":
        return case.named(label, "geometric", "", x, d.choice((0.5, 0.1, 0.9)), proxied=True)
    if name == "cauchy":
        return case.named(label, "cauchy", "", x, d.choice((0.0, 1.5)), d.choice((1.0, 0.2)), proxied=True, **near(64),
                          magnitude=lambda *_: torch.full(x.shape, 2.0, dtype=torch.float64))
    return case.named(label, "log_normal", "", x, d.choice((0.0, 1.0)), d.choice((0.5, 1.0)), proxied=True, **near(32))


def normals(d):
    dtype = d.choice(FLOATS)
    overload = d.choice(("Tensor_Tensor", "Tensor_float", "float_Tensor"))
    shapes = elements.broadcast(d, 2, 600)
    mean = d.tensor(dtype, shapes[0], "normal", LAYOUTS)
    std = d.tensor(dtype if d.chance(0.9) else torch.float32, shapes[1], "positive", LAYOUTS)
    arguments = {"Tensor_Tensor": [mean, std], "Tensor_float": [mean, 1.5], "float_Tensor": [0.5, std]}[overload]
    if math.prod(shapes[0]) * math.prod(shapes[1]) > 1 << 20:
        return factories(d)
    return case.named(f"{dtype} {shapes}", "normal", overload, *arguments, proxied=True, **near(8))


def sampled(d):
    name = d.choice(("multinomial", "multinomial", "poisson", "binomial", "_standard_gamma", "_sample_dirichlet", "rrelu_with_noise_functional"))
    dtype = d.choice(FLOATS)
    if name == "multinomial":
        rows, n = d.choice((None, 1, 2, 5)), d.choice((1, 2, 3, 8, 17, 100))
        weights = d.tensor(dtype, [n] if rows is None else [rows, n], "positive", ("packed", "permuted", "sliced"))
        replacement = d.chance(0.5)
        samples = d.choice((1, 1, 2, n)) if not replacement else d.choice((1, 2, 5, 200))
        samples = min(samples, n) if not replacement else samples
        return case.named(f"{dtype} {list(weights.shape)} {samples} {replacement}", name, "", weights, samples, replacement, proxied=True)
    shape = sizes(d)
    if name == "poisson":
        x = torch.rand(shape, generator=d.torch, dtype=torch.float64) * d.choice((1, 9, 11, 100))
        return case.named(f"{dtype} {shape}", name, "", d.laid_out(x.to(dtype), LAYOUTS), proxied=True)
    if name == "binomial":
        count = torch.randint(0, d.choice((2, 15, 40, 200)), shape, generator=d.torch).to(dtype)
        p = torch.rand(shape, generator=d.torch, dtype=torch.float64).to(dtype)
        return case.named(f"{dtype} {shape}", name, "", d.laid_out(count, LAYOUTS), d.laid_out(p, LAYOUTS), proxied=True)
    if name == "rrelu_with_noise_functional":
        x = d.tensor(dtype, shape, d.choice(("normal", "few")), LAYOUTS)
        return case.named(f"{dtype} {shape} {tuple(x.stride())}", name, "", x, torch.zeros(shape, dtype=dtype), 0.125, d.choice((1 / 3, 0.125, 0.9)),
                          d.chance(0.7), proxied=True, **near(2))
    if name == "_sample_dirichlet":
        shape = shape or [4]
        shape[-1] = max(shape[-1], 1)
    x = torch.rand(shape, generator=d.torch, dtype=torch.float64) * d.choice((0.5, 2, 20)) + 0.05
    return case.named(f"{dtype} {shape}", name, "", d.laid_out(x.to(dtype), ("packed", "permuted", "sliced")), proxied=True, **near(64))


def dropouts(d):
    dtype = d.choice(FLOATS)
    x = d.tensor(dtype, sizes(d), d.choice(("normal", "special")), LAYOUTS)
    p, train = d.choice((0.0, 0.1, 0.5, 1.0)), d.choice((True, True, False, None))
    return case.shim(f"{dtype} {list(x.shape)} {tuple(x.stride())} {p} {train}", "native_dropout", x, p,
                     train, torch=ATEN.native_dropout.default)


def keyed(d):
    """From a key of two numbers, independent of the generator."""
    if not hasattr(ATEN, "_philox_uniform"):
        return factories(d)
    key = torch.randint(0, 2**62, [2], generator=d.torch).to(torch.uint64)
    way = d.choice(("split", "fold", "uniform", "normal", "randint"))
    shape = sizes(d)
    if way == "split":
        return case.named("", "_philox_key_split", "", key, d.choice((1, 2, 5, 17)), proxied=True)
    if way == "fold":
        return case.named("", "_philox_key_fold_in", "", key, d.choice((0, 1, 12345)), proxied=True)
    dtype = d.choice((torch.float32, torch.float64, torch.float16, torch.bfloat16)) if way != "randint" else d.choice((torch.int64, torch.int32))
    x = torch.zeros(shape, dtype=dtype)
    if way == "uniform":
        return case.named(f"{dtype} {shape}", "_philox_uniform", "", x, key, d.choice((0.0, -1.0)), d.choice((1.0, 3.0)), proxied=True, **near(2))
    if way == "normal":  # cosines near zero are as exact as their angles
        return case.named(f"{dtype} {shape}", "_philox_normal", "", x, key, d.choice((0.0, -1.0)), d.choice((1.0, 3.0)), proxied=True,
                          magnitude=torch.full(shape, 3.0, dtype=torch.float64), **near(4))
    return case.named(f"{dtype} {shape}", "_philox_randint", "", x, key, d.choice((0, -5)), d.choice((11, 16, 1024)), proxied=True)
