"""Sorting, selection, searching and counting on a device, to the bit.

Limits: rows of up to 4, 8, 16, 32 in lanes, 64 and 128 in warps, 512, 1024, 2048, 4096 (of two bytes 16384) in blocks,
longer ones all at once (sort_rows.cuh, sort_kernels.cu: positions in 32 or 64 bits); rows above 2048 are reduced by
selection before they are sorted (sort.cpp), by one block each or in parts of 16384 and more (sorted_rows_kernels.cu); 8192
bins in shared memory, 2048 of them four times (histogram_kernels.cu); tiles of 256 for modes; nonzero elements are counted in chunks of 16 KB, whose sums are taken 512 at a time
(nonzero_kernels.cu)."""
import torch

import abi
import case

DEVICES = ("cuda",)
LENGTHS = (4, 8, 16, 32, 64, 128, 512, 1024, 2048, 4096)
DTYPES = (torch.float32, torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8,
          torch.uint8, torch.bool)


def rows(d, dtype, longest=40000):
    """A tensor and one of its dimensions, with a length around the limits."""
    length = d.size(*LENGTHS, high=9000)
    if d.chance(0.06):
        length = d.choice((16383, 16384, 16385, 33000, 40000, 70000, 150000))
    length = min(length, longest)
    others = []
    while length * 2 <= 120000 and len(others) < 3 and d.chance(0.7):
        others.append(d.size(2, 3, 5, 33, low=0, high=max(1, min(300, 120000 // max(length, 1)))))
        length_left = 120000 // max(length, 1)
        while others and torch.Size(others).numel() > length_left:
            others.pop()
    if length < 64 and d.chance(0.3):
        others = [d.size(255, 256, 257, 1000, 4000, low=1, high=4001)]
    shape = list(others)
    dim = d.randrange(len(shape) + 1)
    shape.insert(dim, length)
    kind = d.choice(("normal", "few", "few", "special", "wide", "zero"))
    x = d.tensor(dtype, shape, kind)
    if d.chance(0.3):
        dim -= len(shape)
    return x, dim, f"{dtype} {shape} along {dim} {kind} {x.stride()}"


def ordered(x, dim, descending):
    """A stable sort on the host, where zeros are equal whatever their signs."""
    return [t.to(x.device) for t in torch.sort(x.cpu(), dim=dim, descending=descending, stable=True)]


def sort(d):
    x, dim, label = rows(d, d.choice(DTYPES))
    descending = d.chance(0.5)
    name = d.choice(("sort_stable", "sort"))
    if name == "sort":  # ours is always stable
        return case.shim(f"{label} {descending}", name, x, dim, descending, torch=lambda x, *_: ordered(x, dim, descending))
    return case.shim(f"{label} {descending}", name, x, d.choice((True, True, None)), dim, descending,
                     torch=lambda x, *_: ordered(x, dim, descending))


def topk(d):
    x, dim, label = rows(d, d.choice(DTYPES[:-1]), 200000)
    length = x.shape[dim]
    k = min(length, d.choice((0, 1, 1, 2, 5, 32, 100, 1000, length // 2, length, d.randrange(length + 1))))
    largest, in_order = d.chance(0.5), d.chance(0.6)

    def expected(x, *_):
        values, places = ordered(x, dim, largest)
        values, places = values.narrow(dim, 0, k), places.narrow(dim, 0, k)
        return [values, places] if in_order else by_place(values, places)

    def by_place(values, places):
        places, order = places.sort(dim)
        return [values.gather(dim, order), places]

    def ours(x):
        found = abi.call("topk", x, k, dim, largest, in_order)
        return found if in_order else by_place(*found)
    return case.Case(f"topk {label} k {k} largest {largest} sorted {in_order}", ours, expected, [x], strides=False)


def kthvalue(d):
    x, dim, label = rows(d, d.choice(DTYPES[:-1]), 200000)
    if x.shape[dim] == 0:
        return None
    k, keep = d.randrange(x.shape[dim]) + 1, d.chance(0.5)
    if d.chance(0.3):
        k = d.choice((1, x.shape[dim]))

    def expected(x):
        return [t.narrow(dim, k - 1, 1) if keep else t.select(dim, k - 1) for t in ordered(x, dim, False)]
    return case.Case(f"kthvalue {label} {k} {keep}", lambda x: abi.call("kthvalue", x, k, dim, keep), expected, [x], strides=False)


def median(d):
    x, _, label = rows(d, d.choice(DTYPES[:-1]), 200000)
    name = d.choice(("median", "nanmedian"))
    # PyTorch's sort on the device puts NaNs with a set sign first.
    return case.shim(label, name, x, torch=lambda x: getattr(torch, name)(x.cpu()).to(x.device))


def mode(d):
    x, dim, label = rows(d, d.choice(DTYPES))
    if x.shape[dim] == 0:
        return None
    keep = d.chance(0.5)

    # Takes the least of the most frequent, at any of its positions. NaNs differ from each other, so any may be chosen.
    def expected(x):
        values = torch.mode(x.cpu(), dim, True)[0].to(x.device)
        times = (x == values).sum(dim, keepdim=True)
        return [times if keep else times.squeeze(dim)]

    def ours(x):
        value, place = abi.call("mode", x, dim, keep)
        if not keep:
            value, place = value.unsqueeze(dim), place.unsqueeze(dim)
        there = x.gather(dim, place)
        times = (x == value).sum(dim, keepdim=True)
        times[(there != value) & (there == there)] = -1
        return [times if keep else times.squeeze(dim)]
    if x.dtype.is_floating_point and bool(x.isnan().any()):
        return None
    return case.Case(f"mode {label} {keep}", ours, expected, [x], strides=False)


def search(d):
    dtype = d.choice(DTYPES[:-1])
    n, count = d.size(1, 2, 31, 32, 33, 1000, low=0, high=5000), d.size(1, 255, 256, 257, low=0, high=3000)
    batch = d.choice(((), (), (3,), (2, 4)))
    kind = d.choice(("normal", "few", "wide"))
    shuffled = d.values(dtype, (*batch, n), kind)
    values = d.tensor(d.choice((dtype, dtype, torch.float32, torch.int64)), (*batch, count) if batch or d.chance(0.7) else (3, count), kind)
    if values.dtype.is_floating_point and values.numel() and d.chance(0.3):
        values = d.laid_out(torch.where(torch.rand(values.shape, generator=d.torch) < 0.1, torch.nan, values.cpu()), ("packed", "permuted"))
    narrow, right = d.chance(0.5), d.chance(0.5)
    side = "right" if right and d.chance(0.5) else None
    form = d.choice(("tensor", "tensor", "sorter", "bucketize", "scalar"))
    label = f"{dtype} {list(batch)} {n} {values.dtype} {list(values.shape)} {narrow} {right} {side} {kind}"
    if form == "sorter":
        order = shuffled.argsort(-1)
        return case.shim(f"{label} sorter", "searchsorted_Tensor", d.laid_out(shuffled, ("packed", "padded", "permuted")), values,
                         narrow, right, side, d.laid_out(order, ("packed", "permuted")),
                         torch=lambda s, v, *rest: torch.searchsorted(s, v, out_int32=narrow, right=right, side=side, sorter=rest[-1]))
    ordered = d.laid_out(shuffled.sort(-1)[0], ("packed", "padded", "permuted", "offset"))
    if form == "bucketize" and not batch:
        return case.shim(label, "bucketize_Tensor", values, ordered, narrow, right,
                         torch=lambda v, s, *_: torch.bucketize(v, s, out_int32=narrow, right=right))
    if form == "scalar" and not batch:
        number = d.choice((0.0, 1.0, -2.0, 3.0))
        return case.shim(f"{label} {number}", "searchsorted_Scalar", ordered, number, narrow, right, side, None,
                         torch=lambda s, *_: torch.searchsorted(s, number, out_int32=narrow, right=right, side=side))
    return case.shim(label, "searchsorted_Tensor", ordered, values, narrow, right, side, None,
                     torch=lambda s, v, *_: torch.searchsorted(s, v, out_int32=narrow, right=right, side=side))


def nonzero(d):
    dtype = d.choice(DTYPES + (torch.complex64, torch.complex128))
    shape = d.shape(d.choice((0, 1, 1, 2, 3, 4)), 60000, (32, 255, 256, 257, 1024, 4096, 16384))
    if d.chance(0.02):
        dtype, shape = torch.complex128, [d.choice((512, 513)) * 1024 + d.choice((-1, 0, 1))]
    x = d.tensor(dtype, shape, d.choice(("few", "zero", "special") if dtype.is_floating_point else ("few", "zero")))
    if d.chance(0.5):
        size = d.choice((0, 1, 5, x.numel() // 2, x.numel() + 3))
        fill = d.choice((-1, 0, 7))
        return case.shim(f"{dtype} {shape} {size} {fill} {x.stride()}", "nonzero_static", x, size, fill,
                         torch=lambda x, *_: torch.nonzero_static(x, size=size, fill_value=fill))
    return case.shim(f"{dtype} {shape} {x.stride()}", "nonzero", x, torch=torch.nonzero)


def masked(d):
    dtype = d.choice(DTYPES + (torch.complex64, torch.complex128))
    shape = d.shape(d.choice((1, 1, 2, 3)), 60000, (32, 255, 256, 257, 1024))
    x = d.tensor(dtype, shape, "normal")
    small = [n if d.chance(0.8) else 1 for n in shape][d.choice((0, 0, 0, 1)):]
    share = d.choice((0.0, 0.05, 0.5, 1.0))
    mask = d.laid_out(torch.rand(small, generator=d.torch) < share)
    count = int(mask.expand(torch.broadcast_shapes(mask.shape, x.shape)).sum())
    label = f"{dtype} {shape} {list(mask.shape)} {share} {x.stride()} {mask.stride()}"
    way = d.choice(("select", "scatter", "backward"))
    if way == "select":
        return case.shim(label, "masked_select", x, mask, torch=torch.masked_select)
    if way == "scatter":
        source = d.tensor(dtype, (count + d.choice((0, 1, 7)),), "normal")
        return case.shim(label, "masked_scatter", x, mask, source, torch=torch.masked_scatter)
    sizes = [count + d.choice((0, 1, 7))]
    return case.shim(label, "masked_scatter_backward", x, mask, sizes,
                     torch=lambda g, m, s: torch.ops.aten.masked_scatter_backward(g, m, s))


def unique(d):
    x, _, label = rows(d, d.choice(DTYPES))
    inverse, counts = d.chance(0.6), d.chance(0.6)

    # PyTorch sorts bits, so NaNs with a set sign come first there; ours come last, as on the CPU. Results that were not
    # asked for may be undefined or empty there.
    def expected(x, *_):
        if x.is_floating_point():
            x = torch.where(x.isnan(), torch.full((), float("nan"), dtype=x.dtype, device=x.device), x)
        found = list(torch.ops.aten._unique2(x, True, inverse, counts))
        if not inverse:
            found[1] = torch.empty(0, dtype=torch.int64, device=x.device)
        return found
    return case.Case(f"_unique2 {label} {inverse} {counts}", lambda x: abi.call_named("_unique2", "", x, True, inverse, counts), expected, [x])


def count(d):
    if d.chance(0.5):
        dtype = d.choice((torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8))
        n, most = d.size(1, 255, 256, 257, 4096, low=0, high=30000), d.choice((1, 2, 10, 100, 127))
        x = d.laid_out(torch.randint(0, most, (n,), generator=d.torch).to(dtype))
        weights = d.choice((None, None, d.tensor(torch.float32, (n,)), d.tensor(torch.float64, (n,)), d.tensor(torch.int64, (n,))))
        least = d.choice((0, 0, 5, 300))
        options = dict(error=8.0 + n, magnitude=lambda x, w, *_: torch.bincount(x, w.abs(), least)) if weights is not None else {}
        return case.named(f"{dtype} {n} of {most} {weights is not None and weights.dtype} {least}", "bincount", "", x, weights, least, **options)
    dtype = d.choice((torch.float32, torch.float32, torch.float64, torch.int64, torch.int32))
    n, bins = d.size(1, 511, 512, 513, 8192, low=0, high=60000), d.choice((1, 2, 7, 100, 2047, 2048, 2049, 8191, 8192, 8193))
    x = d.tensor(dtype, (n,), d.choice(("normal", "few", "wide") if dtype.is_floating_point else ("few",)))
    low, high = d.choice(((0, 0), (0, 0), (-1, 2), (-3, 3), (0.5, 0.5) if dtype.is_floating_point else (1, 1), (-100, 100)))
    return case.shim(f"{dtype} {n} bins {bins} {low} {high} {x.stride()}", "histc", x, bins, low, high, torch=lambda x, *_: torch.histc(x, bins, low, high))


def repeat(d):
    dtype, n = d.choice((torch.int64, torch.int32)), d.size(1, 255, 256, 257, 4096, low=0, high=5000)
    x = d.laid_out(torch.randint(0, d.choice((1, 2, 4, 20)), (n,), generator=d.torch).to(dtype))
    size = d.choice((None, int(x.sum())))
    return case.shim(f"{dtype} {n} {size}", "repeat_interleave_Tensor", x, size,
                     torch=lambda r, s: torch.ops.aten.repeat_interleave.Tensor(r, output_size=s))


def draw(d):
    return d.choice((sort, sort, topk, topk, kthvalue, median, mode, search, search, nonzero, masked, masked, unique, count, repeat))(d)
