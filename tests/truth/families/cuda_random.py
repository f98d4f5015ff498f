"""Random numbers on a device: equal to PyTorch's to the bit after the same seed, and so are the next ones.

Limits (random.cpp, dropout.cpp): 256 threads, as many blocks as fit the device, four numbers of 32 bits or two of 64 per turn
(1,081,344 and 540,672 elements per turn of an H100); integers of 32 bits below a range of 2^28; dropout by vectors of 4,
2 and 1, by alignment; permutations by keys of 32 and 64 bits."""
import torch

import abi
import case

DEVICES = ("cuda",)
aten = torch.ops.aten
FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)


def count(d):
    if d.chance(0.08):
        return d.choice((540671, 540672, 540673, 1081343, 1081344, 1081345, 1100000))
    return d.size(1, 2, 3, 4, 5, 255, 256, 257, 1024, 4096, low=0, high=40000)


def shape_of(d):
    n = count(d)
    return d.choice(((n,), (n,), (max(n // 7, 0), 7), (3, max(n // 12, 0), 4)))


def seeded(number, run, times):
    """Draws something before and after."""
    def wrapped(*values):
        abi.seed(number)
        for _ in range(times):
            run(*values)
        found = run(*values)
        return list(found) if isinstance(found, (list, tuple)) else [found]
    return wrapped


def both(d, label, ours, theirs, arguments, **options):
    number, times = d.getrandbits(48), d.choice((0, 0, 1, 2))
    return case.Case(label, seeded(number, ours, times), seeded(number, theirs, times), arguments, **options)


def draw(d):
    way = d.choice(("rand", "randn", "like", "randint", "randint_low", "uniform", "normal", "exponential", "dropout", "bernoulli", "bernoulli of",
                    "randperm", "multinomial", "named", "complex"))
    shape, dtype = shape_of(d), d.choice(FLOATS)
    label = f"{way} {dtype} {list(shape)}"
    options = dict(dtype=dtype, device=d.device)
    # The device's logarithm and cosine may round differently in PyTorch's build.
    if way == "rand":
        return both(d, label, lambda: abi.call("rand", shape, dtype, None, True, None), lambda: torch.rand(shape, **options), [])
    if way == "randn":
        return both(d, label, lambda: abi.call("randn", shape, dtype, None, True, None), lambda: torch.randn(shape, **options), [])
    if way == "complex":
        kind = d.choice((torch.complex64, torch.complex128))
        name = d.choice(("rand", "randn"))
        return both(d, f"{label} {kind} {name}", lambda: abi.call(name, shape, kind, None, True, None), lambda: getattr(torch, name)(shape, dtype=kind, device=d.device), [])
    if way == "randint":
        kind = d.choice((torch.int64, torch.int32, torch.int16, torch.uint8, torch.float32, torch.float16))
        high = d.choice((1, 2, 100, 255) + (((1 << 28) - 1, 1 << 28, (1 << 28) + 1, 1 << 31, 1 << 40) if kind == torch.int64 else ()))
        return both(d, f"{label} {kind} {high}", lambda: abi.call("randint", high, shape, kind, None, True, None),
                    lambda: torch.randint(high, shape, dtype=kind, device=d.device), [])
    if way == "randint_low":
        low, high = d.choice(((-5, 5), (-(1 << 27), 1 << 27), (0, 1 << 28), (-5, 1 << 40), (-2**63, 2**63 - 1)))
        return both(d, f"{label} {low} {high}", lambda: abi.call("randint_low", low, high, shape, torch.int64, None, True, None),
                    lambda: torch.randint(low, high, shape, device=d.device), [])
    x = d.tensor(dtype, shape, "normal", ("packed", "packed", "permuted", "padded", "sliced"))
    label += f" {x.stride()}"
    if way == "like":
        name = d.choice(("rand_like", "randn_like"))
        return both(d, f"{label} {name}", lambda x: abi.call(name, x, None, None, None, None, None), lambda x: getattr(torch, name)(x), [x])
    if way == "uniform":
        low, high = d.choice(((0.0, 1.0), (-2.5, 7.0), (3.0, 3.0)))
        return both(d, f"{label} {low} {high}", lambda x: abi.call("uniform", x, low, high, None), lambda x: aten.uniform(x, low, high), [x])
    if way == "normal":
        mean, std = d.choice(((0.0, 1.0), (1.5, 0.25), (-3.0, 0.0)))
        return both(d, f"{label} {mean} {std}", lambda x: abi.call("normal_functional", x, mean, std, None), lambda x: aten.normal_functional(x, mean, std), [x])
    if way == "exponential":
        rate = d.choice((1.0, 1.7, 0.2))
        return both(d, f"{label} {rate}", lambda x: abi.call("exponential", x, rate, None), lambda x: aten.exponential(x, rate), [x])
    if way == "dropout":
        p, train = d.choice((0.0, 0.3, 0.5, 1.0)), d.choice((True, True, None, False))
        return both(d, f"{label} {p} {train}", lambda x: abi.call("native_dropout", x, p, train), lambda x: aten.native_dropout(x, p, train), [x])
    if way == "bernoulli":
        kind, p = d.choice(FLOATS + (torch.bool, torch.int64, torch.uint8)), d.choice((0.0, 0.3, 1.0))
        y = d.laid_out(torch.zeros(shape, dtype=kind), ("packed", "permuted", "padded"))
        return both(d, f"{label} {kind} {p}", lambda y: [y, abi.call("bernoulli__float", y, p, None)][:1], lambda y: y.bernoulli_(p), [y], written=[0])
    if way == "bernoulli of":
        kind = d.choice(FLOATS + (torch.bool, torch.int64))
        y = d.laid_out(torch.zeros(shape, dtype=kind), ("packed", "permuted", "padded"))
        p = d.laid_out(torch.rand(shape, generator=d.torch).to(d.choice((torch.float32, torch.float64))), ("packed", "permuted", "padded"))
        return both(d, f"{label} {kind} {p.dtype}", lambda y, p: [y, abi.call("bernoulli__Tensor", y, p, None)][:1], lambda y, p: y.bernoulli_(p), [y, p], written=[0])
    if way == "randperm":
        n = d.choice((0, 1, 2, 5, count(d) % 50000, 40000, 100000))
        kind = d.choice((None, torch.int64, torch.int32))
        return both(d, f"{label} {n} {kind}", lambda: abi.call("randperm", n, kind, None, None, None), lambda: torch.randperm(n, dtype=kind or torch.int64, device=d.device), [])
    if way == "multinomial":
        rows, n = d.choice(((), (3,))), d.choice((2, 10, 100, 1000, 3000))
        weights = d.laid_out((torch.rand(*rows, n, generator=d.torch) + 0.01), ("packed", "permuted", "padded"))
        return both(d, f"{label} {list(rows)} {n}", lambda w: abi.call_named("multinomial", "", w, 1, False), lambda w: torch.multinomial(w, 1), [weights], strides=False)
    name, overload, *rest = d.choice((("bernoulli", "p", 0.3), ("randint_like", "", 90), ("randint_like", "low_dtype", -5, 90), ("rand_like", ""), ("randn_like", "")))
    return both(d, f"{label} {name}.{overload}", lambda x: abi.call_named(name, overload, x, *rest), lambda x: getattr(getattr(aten, name), overload or "default")(x, *rest), [x])
