"""Indexing, scattering and embedding rows on a device.

Limits: 32-bit offsets and at most four dimensions in SmallScatterSteps, else 64-bit (index_kernels.cu); 16 bytes at once
if the elements that a position selects are packed and aligned; positions first, not a position's elements, where those are
neighbours in the result; half sums by pairs; index_put with accumulate adds in the
order of the values. Other sums come in any order: those are drawn with small integers, or judged as sums."""
import torch

import abi
import case

DEVICES = ("cuda",)
REAL = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
DTYPES = REAL + (torch.bool, torch.complex64, torch.complex128)


def shaped(d, dtype, ranks=(1, 2, 2, 3, 4), most=40000, low=1, kind="normal"):
    shape = d.shape(d.choice(ranks), most, (4, 8, 16, 31, 32, 33, 64, 256), low=low)
    return d.tensor(dtype, shape, kind, ("packed", "packed", "permuted", "sliced", "offset", "padded")), shape


def lists(d, shape, distinct, most=3000):
    """Indices as for index_put, and the shape that they select."""
    rank = len(shape)
    if d.chance(0.15):
        n = d.choice((1, 1, rank))
        mask = torch.rand(shape[:n], generator=d.torch) < d.choice((0.0, 0.3, 1.0))
        kind = d.choice((torch.bool, torch.bool, torch.uint8))
        return [d.laid_out(mask.to(kind), ("packed", "permuted"))], f"mask of {n}"
    count = d.randrange(1, rank + 1)
    places = sorted(d.sample(range(rank), count))
    if distinct:
        cells = torch.Size([shape[p] for p in places]).numel()
        n = min(cells, d.size(1, 31, 32, 33, 256, low=0, high=most))
        flat = torch.randperm(cells, generator=d.torch)[:n]
        parts = []
        for p in reversed(places):
            parts.insert(0, flat % shape[p])
            flat = flat // shape[p]
        sizes = (n,)
    else:
        sizes = d.choice(((d.size(1, 31, 32, 33, 256, 1000, low=0, high=most),), (d.size(3, low=0, high=9), d.size(17, low=0, high=40))))
        parts = [torch.randint(0, shape[p], sizes, generator=d.torch) for p in places]
    result = [None] * (places[-1] + 1)
    for p, part in zip(places, parts):
        part = torch.where(torch.rand(part.shape, generator=d.torch) < 0.3, part - shape[p], part)
        if not distinct and part.dim() == 2 and d.chance(0.2):
            part = part[:1]
        dtype = d.choice((torch.int64, torch.int64, torch.int32))
        result[p] = d.laid_out(part.to(dtype), ("packed", "permuted", "padded", "offset"))
    return result, f"{places} of {list(sizes)}"


def index(d):
    x, shape = shaped(d, d.choice(DTYPES), low=d.choice((0, 1, 1, 1)))
    if 0 in shape:
        at, label = [d.laid_out(torch.zeros(0, dtype=torch.int64))], "nothing"
    else:
        at, label = lists(d, shape, False)
    return case.shim(f"{x.dtype} {shape} {x.stride()} {label}", "index_Tensor", x, at, torch=lambda x, at: torch.ops.aten.index(x, at))


def put_on_host(x, at, values, accumulate):
    """On CUDA, torch 2.11 adds integers with odd strides wrongly, and touches other memory if a dimension of one element has
    a large stride ([151, 1, 63] by (63, 9513, 1)). On the host it does neither."""
    return torch.ops.aten.index_put(x.cpu(), [None if t is None else t.cpu() for t in at], values.cpu(), accumulate).to(x.device)


def index_put(d):
    accumulate = d.chance(0.6)
    dtype = d.choice(DTYPES)
    if accumulate and dtype == torch.bool:
        dtype = torch.float32
    kind = d.choice(("normal", "few"))
    x, shape = shaped(d, dtype, kind=kind)
    at, label = lists(d, shape, not accumulate)
    try:
        sizes = torch.empty(shape, device="meta")[tuple(slice(None) if t is None else t.to("meta") for t in at)].shape if \
            not label.startswith("mask") else x[tuple(at)].shape
    except (RuntimeError, IndexError):
        return None
    terms = max(torch.Size(sizes).numel(), 1)
    if len(sizes) and d.chance(0.3):
        cut = d.randrange(len(sizes) + 1)
        sizes = [n if d.chance(0.7) else 1 for n in sizes[cut:]]
    values = d.tensor(dtype, sizes, kind)
    options = dict(error=None)
    if accumulate and (dtype.is_floating_point or dtype.is_complex):
        # In half types ATen rounds each sum; ours is rounded once.
        options = dict(error=4 + terms, magnitude=lambda x, at, v, *_: put_on_host(x.abs(), at, v.abs(), True))
    return case.shim(f"{dtype} {shape} {x.stride()} {label} values {list(sizes)} {values.stride()} {kind} accumulate {accumulate}",
                     "index_put", x, at, values, accumulate, torch=put_on_host if accumulate else
                     lambda x, at, v, a: torch.ops.aten.index_put(x, at, v, a), **options)


def scatter(d):
    op = d.choice(("src", "value", "sum", "prod", "mean", "amax", "amin", "amax", "index_reduce"))
    dtype = d.choice(DTYPES if op in ("src", "value") else REAL)
    if op == "mean" and not dtype.is_floating_point and d.chance(0.7):
        dtype = torch.float32
    kind = "normal" if op in ("src", "value") else d.choice(("few", "few", "normal", "special") if dtype.is_floating_point and op in ("amax", "amin")
                                                             else ("few", "few", "normal"))
    rank = d.choice((1, 2, 2, 3, 4, 5, 0))
    shape = d.shape(rank, 20000, (4, 8, 16, 32, 33, 64), low=1)
    dim = d.randrange(rank) if rank else 0
    self = d.tensor(dtype, shape, kind)
    label = f"{op} {dtype} {shape} along {dim} {kind}"
    if op == "index_reduce":
        reduce = d.choice(("prod", "mean", "amax", "amin"))
        if rank == 0 or (reduce == "mean" and not dtype.is_floating_point):
            return None
        n = d.size(1, 32, 33, low=0, high=200)
        while n * self.numel() // max(shape[dim], 1) > 60000:
            n //= 2
        source = d.tensor(dtype, [n if i == dim else s for i, s in enumerate(shape)], "few" if reduce != "prod" else "positive" if dtype.is_floating_point else "few")
        at = d.indices(shape[dim], (n,), dtype=d.choice((torch.int64, torch.int32)))
        include = d.chance(0.5)
        return case.shim(f"{label} {reduce} {n} {include}", "index_reduce", self, dim, at, source, reduce, include,
                         torch=lambda s, _, i, v, *rest: torch.index_reduce(s, dim, i, v, reduce, include_self=include),
                         **({} if not dtype.is_floating_point or reduce in ("amax", "amin") else dict(
                             error=(8 + 2.0 * n) * (torch.finfo(dtype).eps / 2.0 ** -23 if dtype.itemsize == 2 else 1),
                             magnitude=lambda s, _, i, v, *rest: torch.index_reduce(s.abs(), dim, i, v.abs(), reduce, include_self=include))))
    sizes = [min(s, d.size(s, low=0, high=s)) if i != dim else s for i, s in enumerate(shape)]
    if rank:
        sizes[dim] = d.size(1, 32, 33, shape[dim], low=0, high=max(1, min(300, 40000 // max(1, torch.Size(sizes).numel() // max(sizes[dim], 1)))))
    if op in ("src", "value") and rank:  # each place once, because the last of several writes is arbitrary
        sizes[dim] = min(sizes[dim], shape[dim])
        order = torch.rand([shape[dim] if i == dim else s for i, s in enumerate(sizes)], generator=d.torch).argsort(dim).narrow(dim, 0, sizes[dim])
        at = d.laid_out(order, ("packed", "permuted", "sliced", "padded"))
    elif rank and d.chance(0.2) and 0 not in sizes:  # one index for all of a slice, as in message passing
        line = torch.randint(0, shape[dim], [sizes[dim] if i == dim else 1 for i in range(rank)], generator=d.torch).to(d.device)
        at = line.expand(sizes)
    else:
        at = d.indices(shape[dim] if rank else 1, sizes, layouts=("packed", "permuted", "sliced", "padded"))
    out = d.laid_out(torch.full(shape, 5).to(dtype), ("packed", "packed", "permuted", "padded", "sliced")) if d.chance(0.7) else None
    label += f" index {list(at.shape)} {at.stride()} self {self.stride()} out {None if out is None else out.stride()}"
    if op == "value":
        number = d.choice((0.0, 1.0, -3.0 if dtype != torch.uint8 else 3.0, 2.5 if dtype.is_floating_point else 2.0))
        if out is None:
            out = d.laid_out(torch.full(shape, 5).to(dtype), ("packed",))
        return written(label, "scatter_value_out", out, [self, at], lambda o, s, i: abi.call("scatter_value_out", o, s, dim, i, number),
                       lambda s, i: torch.scatter(s, dim, i, number))
    source = d.tensor(dtype, [s + d.choice((0, 0, 1, 5)) for s in at.shape], "positive" if op == "prod" and dtype.is_floating_point else kind)
    if out is None:
        out = d.laid_out(torch.full(shape, 5).to(dtype), ("packed",))
    if op == "src":
        return written(label, "scatter_src_out", out, [self, at, source], lambda o, s, i, v: abi.call("scatter_src_out", o, s, dim, i, v),
                       lambda s, i, v: torch.scatter(s, dim, i, v))
    include = d.chance(0.5)

    def expected(s, i, v):
        return torch.scatter_reduce(s, dim, i, v, op, include_self=include)
    options = {}
    if dtype.is_floating_point and op in ("sum", "mean", "prod") and not (op == "sum" and kind == "few"):
        half = torch.finfo(dtype).eps / 2.0 ** -23 if dtype.itemsize == 2 else 1  # each of them is rounded
        terms = at.shape[dim] + 1 if rank else 2
        options = dict(error=(4 + 2.0 * terms) * half, magnitude=lambda o, s, i, v: torch.scatter_reduce(s.abs(), dim, i, v.abs(), op, include_self=include))
    return written(f"{label} src {source.stride()} {include}", "scatter_reduce_two_out", out, [self, at, source],
                   lambda o, s, i, v: abi.call("scatter_reduce_two_out", o, s, dim, i, v, op, include), expected, **options)


def written(label, name, out, arguments, ours, function, **options):
    def theirs(o, *v):
        o.copy_(function(*v))
    return case.Case(f"{name} {label}", ours, theirs, [out, *arguments], written=[0], exact=lambda o, *v: [function(*v)], **options)


def bags(d):
    dtype = d.choice((torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16))
    count, columns = d.size(1, 10, 100, low=1, high=500), d.size(1, 4, 8, 31, 32, 33, 64, low=1, high=200)
    n, number = d.size(0, 1, 32, 33, 100, low=0, high=400), d.size(1, 2, 8, low=1, high=40)
    table = d.tensor(dtype, (count, columns), "normal", ("packed", "packed", "permuted", "padded"))
    kind = d.choice((torch.int64, torch.int64, torch.int32))
    indices = d.indices(count, (n,), dtype=kind, layouts=("packed", "offset"))
    cuts = sorted([0] + [d.randrange(n + 1) for _ in range(number - 1)])
    last = d.chance(0.3)
    offsets = torch.tensor(cuts + ([n] if last else []), dtype=kind).to(d.device)
    mode, padding = d.choice((0, 1, 2)), d.choice((-1, -1, d.randrange(count)))
    scales = d.tensor(dtype, (n,)) if mode == 0 and d.chance(0.4) else None
    arguments = (table, indices, offsets, False, mode, False, scales, last, padding)
    label = f"{dtype} {count}x{columns} {n} in {number} mode {mode} padding {padding} last {last} scales {scales is not None} {kind}"
    near = dict(error=8 + n, magnitude=lambda *v: torch.ops.aten._embedding_bag(
        v[0].abs(), *v[1:6], v[6].abs() if v[6] is not None else None, *v[7:])[0])
    way = d.choice(("", "_forward_only", "backward", "backward", "weights"))
    if way in ("", "_forward_only"):
        # The forward-only form leaves the other results undefined.
        taken = slice(0, 1) if way else slice(0, 2)
        return case.Case(f"_embedding_bag{way} {label}", lambda *v: abi.call(f"_embedding_bag{way}", *v)[taken],
                         lambda *v: list(getattr(torch.ops.aten, f"_embedding_bag{way}")(*v))[taken], list(arguments), **(near if mode != 2 else {}))
    out, bag_of, sizes, most = torch.ops.aten._embedding_bag(*arguments)
    grad = d.tensor(dtype, out.shape)
    if way == "weights":
        if mode != 0:
            return None
        return case.shim(label, "_embedding_bag_per_sample_weights_backward", grad, table, indices, offsets, bag_of, 0, padding,
                         torch=lambda *v: torch.ops.aten._embedding_bag_per_sample_weights_backward(*v), error=8 + columns ** 0.5,
                         magnitude=lambda g, t, *rest: torch.ops.aten._embedding_bag_per_sample_weights_backward(g.abs(), t.abs(), *rest))
    often = mode != 2 and d.chance(0.4)
    given = [grad, indices, bag_of, sizes, most, count, often, mode, scales, padding]
    half = torch.finfo(dtype).eps / 2.0 ** -23 if dtype.itemsize == 2 else 1
    return case.shim(f"{label} by frequency {often}", "_embedding_bag_dense_backward", *given,
                     torch=lambda *v: torch.ops.aten._embedding_bag_dense_backward(*v), error=(8 + n) * half, strides=False,
                     magnitude=lambda g, *rest: torch.ops.aten._embedding_bag_dense_backward(
                         g.abs(), *rest[:7], rest[7].abs() if rest[7] is not None else None, rest[8]))


def draw(d):
    return d.choice((index, index, index_put, index_put, scatter, scatter, scatter, bags))(d)
