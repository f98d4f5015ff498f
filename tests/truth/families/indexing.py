"""Reads and writes by index: index, index_put, index_select/add/copy/fill/reduce, gather, take, put, masks, where, nonzero.

Compared to the bit (signs of zeros too), except sums (index_put and index_add with accumulate, index_reduce), which are near
ATen in float64. Limits: 512 positions at a time and 64 KB per thread (kChunk and kBytesPerThread of index.cpp and index_put.cpp), 64
positions or unindexed elements, which decide how threads divide the work (index.cpp, put_parallel), blocks of 1, 2, 4 to 64 bytes and
more (copy_block of block_copy.h), 16384 elements per thread of gather (movement.cpp), words of 64 elements and blocks of 512 words
(NonzeroBits of nonzero.h), 32768 elements per thread of masks (masked.cpp). For duplicate indices, ATen's order of writes counts.
"""
import torch

import case

DEVICES = ("cpu",)
EVERY = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
         torch.uint8, torch.bool, torch.complex64, torch.complex128)
MOVED = EVERY + (torch.uint16, torch.uint32, torch.uint64)
LAYOUTS = ("packed", "packed", "permuted", "sliced", "offset", "padded", "expanded", "overlapping")
INDICES = ("packed", "packed", "permuted", "sliced", "offset", "expanded", "overlapping")
SIZES = (2, 4, 8, 16, 32, 64, 128, 512, 4096, 32768)


def most(d):
    """Sizes: mostly few elements, sometimes enough for several threads."""
    return d.choice((60, 600, 600, 4000, 4000, 20000, 70000 if d.chance(0.3) else 300, 300000 if d.chance(0.1) else 300))


def values(d, dtype, shape, layouts=LAYOUTS):
    return d.tensor(dtype, shape, d.choice(("normal", "few", "special", "wide")), layouts)


def numbers(d, size, shape, negative=True, bad=0.02, dtypes=(torch.int64, torch.int64, torch.int32), layouts=INDICES):
    """Indices below size, some negative, sometimes one out of bounds; sometimes without duplicates."""
    count = 1
    for n in shape:
        count *= n
    low = -size if negative and d.chance(0.5) else 0
    if size >= count and d.chance(0.3):
        t = torch.randperm(max(size, 1), generator=d.torch)[:count].reshape(shape) if size else torch.zeros(shape, dtype=torch.int64)
        if low:
            t = torch.where(torch.rand(shape, generator=d.torch) < 0.5, t, t - size)
    else:
        spread = d.choice((size, size, size, min(size, 2), 1)) if size else 1
        t = torch.randint(max(low, -spread), max(spread, 1), shape, generator=d.torch)
    if d.chance(0.2):
        t = t.sort(-1).values if t.dim() else t
    if count and d.chance(bad):
        flat = t.reshape(-1)
        flat[d.randrange(count)] = d.choice((size, -size - 1, size + 7, -size - 99, 1 << 30))
    dtype = d.choice(dtypes)
    if len(dtypes) == 3 and d.chance(0.01):
        dtype = d.choice((torch.int16, torch.float32, torch.int8, torch.uint8, torch.bool))  # most refuse
    return d.laid_out(t.to(dtype), layouts)


def sum_error(dtype, terms):
    """Half sums are rounded at each step."""
    each = torch.finfo(dtype).eps / torch.finfo(torch.float32).eps if dtype in (torch.float16, torch.bfloat16) else 1
    return (2 + min(terms, 64)) * 1.0 if each == 1 else 2 * each * max(min(terms, 4000), 1) ** 0.5


def index_list(d, x, limit):
    """Indices for leading dimensions of x: None, integers that broadcast together, masks of one or more dimensions."""
    n = x.dim()
    shape = [d.size(2, 8, 64, 512, low=0, high=max(2, min(limit, 2000))) if d.chance(0.7) else d.size(2, 3, high=5)
             for _ in range(d.choice((0, 1, 1, 1, 2, 2, 3)))]
    while torch.Size(shape).numel() > limit:
        shape = [s // 2 for s in shape]
    masked = d.chance(0.2)
    if masked:
        shape = shape[:0]
    result, at, used, count = [], 0, 0, None
    while at < n:
        way = d.random()
        if way < 0.25 and not (at == n - 1 and not used):
            result.append(None)
            at += 1
        elif masked and (count is None or way > 0.8):
            k = d.choice((1, 1, 2, n))
            k = min(k, n - at)
            m = torch.rand(x.shape[at:at + k], generator=d.torch) < d.choice((0.03, 0.5, 0.5, 0.97, 0.0, 1.0))
            if count is not None:  # as many as the first mask, or one
                m = torch.zeros(m.numel(), dtype=torch.bool)
                if m.numel() < count:
                    result.append(None)
                    at += 1
                    continue
                m[torch.randperm(m.numel(), generator=d.torch)[:count]] = True
                m = m.reshape(x.shape[at:at + k])
            else:
                count = int(m.sum())
                shape = [count]
            result.append(d.laid_out(m.to(d.choice((torch.bool, torch.bool, torch.uint8))), INDICES[:-2]))
            used += 1
            at += k
        else:
            own = [s if d.chance(0.85) else 1 for s in shape]
            while own and own[0] == 1 and d.chance(0.5):
                own = own[1:]
            if masked and count is None:
                own = [1] * d.choice((0, 1))
            result.append(numbers(d, x.shape[at], own))
            used += 1
            at += 1
        if d.chance(0.25) and used:
            break
    if not used:
        return None
    if d.chance(0.05):
        result += [None] * (n - at)
    return result


def draw_index(d):
    limit = most(d)
    rank = d.choice((1, 1, 2, 2, 3, 4, 5))
    x = values(d, d.choice(MOVED), d.shape(rank, limit, SIZES, low=0 if d.chance(0.05) else 1))
    indices = index_list(d, x, limit)
    if indices is None:
        return None
    try:
        expected = torch.ops.aten.index.Tensor(x, indices)
        size = expected.numel()
    except (IndexError, RuntimeError):
        expected, size = None, 0
    if size > 400000:
        return None
    label = f"{x.dtype} {list(x.shape)} by {[None if i is None else (str(i.dtype)[6:], list(i.shape)) for i in indices]}"
    if d.chance(0.55):
        if d.chance(0.5):
            return case.shim(label, "index_Tensor", x, indices, torch=lambda a, i: torch.ops.aten.index.Tensor(a, i), both=True, zeros=True)
        # PyTorch does not check the indices of _unsafe_index.
        return case.named(label, "_unsafe_index", "Tensor", x, indices, zeros=True) if expected is not None else None
    accumulate = d.chance(0.5)
    if x.dtype in (torch.uint16, torch.uint32, torch.uint64) and accumulate:
        accumulate = False
    shape = list(expected.shape) if expected is not None else [1]
    given = [s if d.chance(0.85) else 1 for s in shape]
    while given and d.chance(0.2):
        given = given[1:]
    if d.chance(0.15):
        given = d.choice(([], [1], [1] * len(shape)))
    v = values(d, x.dtype, given)
    if not accumulate and None in indices[:-1] and max(i.dim() for i in indices if i is not None) > 1 and expected is not None:
        # PyTorch promises no order for duplicate places; here its order depends on the dimensions between, too.
        v = v.expand(shape).contiguous() if all(a in (1, b) for a, b in zip(reversed(given), reversed(shape))) else v
        given = list(v.shape)
    how = {}
    if accumulate and (x.is_floating_point() or x.is_complex()):
        terms = max(size, 1)
        how = dict(error=sum_error(x.dtype, terms), same_nan=not x.is_complex(),
                   magnitude=lambda a, i, w, _: torch.ops.aten.index_put(a.abs(), i, w.abs(), True))
    else:
        how = dict(zeros=True)
    label = f"{label} values {given} {'accumulate' if accumulate else ''}"
    way = d.random()
    if way < 0.4:
        return case.shim(label, "index_put", x, indices, v, accumulate, torch=lambda a, i, w, s: torch.ops.aten.index_put(a, i, w, s),
                         strides=True, **how, both=True)
    x = values(d, x.dtype, x.shape, ("packed", "permuted", "sliced", "offset", "padded"))
    if way < 0.8:
        if x.dim() and x.shape[0] > 1 and d.chance(0.1) and expected is not None:
            # Values that alias the target (PyTorch refuses those that it detects; ours are read first).
            v = x[:1] if not given or len(given) < x.dim() else v
            fits = len(v.shape) <= len(shape) and all(a in (1, b) for a, b in zip(reversed(v.shape), reversed(shape)))
            made = case.named(label + " own", "index_put_", "", x, indices, v if fits else x.reshape(-1)[:1], accumulate, written=[0], **how)
            other = made.torch
            made.torch = lambda a, i, w, *r: other(a, i, w.clone(), *r)
            if callable(made.magnitude):
                sized = made.magnitude
                made.magnitude = lambda a, i, w, r: sized(a, i, w.clone(), r)
                made.exact = lambda a, i, w, *r: torch.ops.aten.index_put(a, i, w.clone(), *r)
            return made
        return case.named(label, "index_put_", "", x, indices, v, accumulate, written=[0], **how, both=True)
    return case.named(label, "_unsafe_index_put" if d.chance(0.5) and expected is not None else "_index_put_impl", "",
                      x, indices, v, accumulate, **how) if expected is not None else None


def draw_masked_index(d):
    x = values(d, d.choice(EVERY), d.shape(d.choice((1, 2, 3)), most(d), SIZES, low=1))
    count = d.randint(1, x.dim())
    shape = [d.size(8, 64, 512, high=700) for _ in range(d.choice((1, 1, 2)))]
    shape[-1] = min(shape[-1], 40) if len(shape) > 1 else shape[-1]
    indices = [d.laid_out(torch.randint(-3, x.shape[i] + 4, shape, generator=d.torch), INDICES) if d.chance(0.9) or i == 0 else
               numbers(d, x.shape[i], shape, bad=0) for i in range(count)]
    mask = d.laid_out(torch.ones(shape, dtype=torch.bool), ("packed",))
    for i, index in enumerate(indices):
        mask &= (index >= 0) & (index < x.shape[i])
    indices = [i.long() for i in indices]
    size = mask.numel() * x.numel() // max(1, torch.Size(x.shape[:count]).numel())
    if size > 300000:
        return None
    mask = d.laid_out(mask, INDICES[:-2])
    label = f"{x.dtype} {list(x.shape)} by {count} {shape}"
    if d.chance(0.5):
        return case.named(label, "_unsafe_masked_index", "", x, mask, indices, d.choice((0, 1, 3)), zeros=True)
    v = values(d, x.dtype, shape + list(x.shape[count:]))
    while mask.dim() < v.dim():
        mask = mask.unsqueeze(-1)
    if x.dtype in (torch.bool,):
        return None
    how = {}
    if x.is_floating_point() or x.is_complex():
        how = dict(error=sum_error(x.dtype, v.numel()), same_nan=not x.is_complex(), magnitude=lambda a, m, i, w: torch.ops.aten._unsafe_masked_index_put_accumulate(
            a.abs(), m, i, w.abs()))
    return case.named(label, "_unsafe_masked_index_put_accumulate", "", x, mask, indices, v, **how)


def draw_along(d):
    """index_select, index_add, index_copy, index_fill, index_reduce."""
    op = d.choice(("index_select", "index_add", "index_copy", "index_fill", "index_reduce"))
    dtype = d.choice(MOVED if op in ("index_select", "index_copy", "index_fill") else EVERY)
    rank = d.choice((0, 1, 2, 2, 3, 4))
    x = values(d, dtype, d.shape(rank, most(d), SIZES, low=0 if d.chance(0.03) else 1))
    dim = d.randrange(rank) if rank else 0
    size = x.shape[dim] if rank else 1
    count = d.size(2, 8, 64, 128, 512, high=2000) if rank else 1
    if size and x.numel() // size * count > 400000:
        count = 3
    index = numbers(d, size, [count] if rank or d.chance(0.5) else [], negative=op == "index_fill" or d.chance(0.03),
                    dtypes=(torch.int64, torch.int64, torch.int32) if op in ("index_select", "index_add", "index_reduce") else (torch.int64,))
    if d.chance(0.5) and rank:
        dim -= rank
    label = f"{dtype} {list(x.shape)} dim {dim} indices {index.dtype} {list(index.shape)}"
    floats = dtype.is_floating_point or dtype.is_complex
    terms = sum_error(dtype, count + 2)
    if op == "index_select":
        return case.named(label, op, "", x, dim, index, zeros=True, both=True)
    if op == "index_fill":
        some = x.numel() > 0  # for empty targets ATen refuses some shapes by their storage
        if d.chance(0.5):
            return case.named(label, op, "int_Tensor", x, dim, index, values(d, dtype, []), zeros=True, both=some)
        return case.named(label, op, "int_Scalar", x, dim, index, d.choice((0, 1, 3, -2, 0.5) if floats else (0, 1, 3)), zeros=True,
                          both=some)
    shape = list(x.shape)
    if rank:
        shape[dim] = count
    source = values(d, dtype, shape)
    if op == "index_copy":
        return case.named(label, op, "", x, dim, index, source, zeros=True, both=True)
    if op == "index_add":
        options = {} if d.chance(0.4) else dict(alpha=d.choice((1, 2, -3, 0.5, 0)))
        if dtype == torch.bool:
            options = {}
        if floats:
            options |= dict(error=terms, same_nan=not dtype.is_complex, magnitude=lambda a, k, i, s, alpha=1: torch.index_add(a.abs(), k, i, s.abs(), alpha=abs(
                options.get("alpha", 1))))
        return case.named(label, op, "", x, dim, index, source, **options)
    reduce = d.choice(("prod", "mean", "amax", "amin"))
    include = d.chance(0.6)
    how = {}
    if floats and reduce in ("prod", "mean"):
        how = dict(error=2 * terms, same_nan=reduce != "prod" and not dtype.is_complex, magnitude=lambda a, k, i, s, r, _: torch.index_reduce(
            a.abs(), k, i, s.abs(), r, include_self=include).abs())
    elif dtype == torch.bool and reduce == "mean" or dtype.is_complex and reduce != "prod" and reduce != "mean":
        return None
    return case.shim(f"{label} {reduce} {include}", "index_reduce", x, dim, index, source, reduce, include,
                     torch=lambda a, k, i, s, r, n: torch.index_reduce(a, k, i, s, r, include_self=n), both=True, **how)


def draw_gather(d):
    dtype = d.choice(MOVED)
    rank = d.choice((0, 1, 2, 2, 3, 4))
    x = values(d, dtype, d.shape(rank, most(d), SIZES, low=1))
    dim = d.randrange(rank) if rank else 0
    shape = [d.choice((n, n, d.randint(0 if d.chance(0.1) else 1, max(n, 1)))) for n in x.shape]
    if rank:
        shape[dim] = d.size(2, 8, 64, 512, high=max(3, min(4000, 200000 // max(1, x.numel() // max(1, x.shape[dim])))))
    elif d.chance(0.5):
        shape = [d.size(2, high=9)]
    index = numbers(d, x.shape[dim] if rank else 1, shape, negative=d.chance(0.03))
    if d.chance(0.5) and rank:
        dim -= rank
    made = case.named(f"{dtype} {list(x.shape)} dim {dim} by {index.dtype} {shape}", "gather", "", x, dim, index, zeros=True, both=True)
    if index.dtype == torch.int32:  # ATen's fast path for one index per row reads it as int64
        other = made.torch
        made.torch = lambda a, k, i: other(a, k, i.contiguous())
    return made


def draw_flat(d):
    """take and put: indices count elements in row-major order."""
    dtype = d.choice(MOVED)
    x = values(d, dtype, d.shape(d.choice((0, 1, 2, 3)), most(d), SIZES, low=0 if d.chance(0.03) else 1))
    shape = d.shape(d.choice((0, 1, 2)), most(d), SIZES, low=0)
    index = numbers(d, x.numel(), shape, dtypes=(torch.int64,))
    label = f"{dtype} {list(x.shape)} by {shape}"
    if d.chance(0.5):
        return case.named(label, "take", "", x, index, zeros=True, both=True)
    accumulate = d.chance(0.5)
    how = dict(zeros=True)
    if accumulate and (dtype.is_floating_point or dtype.is_complex):
        how = dict(error=sum_error(dtype, index.numel() + 2), same_nan=not dtype.is_complex, magnitude=lambda a, i, s, c: torch.put(a.abs(), i, s.abs(), c))
    source = values(d, dtype, shape if d.chance(0.7) else [index.numel()])
    if not accumulate:  # the last write wins, in ATen's unspecified order of strides
        index, source = index.contiguous(), source.contiguous()
    return case.named(f"{label} {accumulate}", "put", "", x, index, source, accumulate, both=True, **how)


def broadcast(d, shape):
    own = [n if d.chance(0.8) else 1 for n in shape]
    while own and d.chance(0.15):
        own = own[1:]
    return own


def draw_mask(d):
    op = d.choice(("masked_fill", "masked_fill_tensor", "masked_select", "masked_scatter", "masked_scatter_backward", "where", "nonzero",
                   "nonzero_static"))
    dtype = d.choice(EVERY if op in ("nonzero", "nonzero_static") else MOVED)
    shape = d.shape(d.choice((0, 1, 2, 3, 4)), most(d), SIZES, low=0 if d.chance(0.05) else 1)
    share = d.choice((0.0, 0.01, 0.5, 0.5, 0.99, 1.0))
    own = shape if d.chance(0.6) else broadcast(d, shape)
    mask = d.laid_out(torch.rand(own, generator=d.torch) < share, INDICES)
    x = values(d, dtype, shape if d.chance(0.7) else broadcast(d, shape))
    label = f"{dtype} {list(x.shape)} mask {own} {share}"
    if op == "masked_fill":
        numbers_ = (0, 1, 5, -1, 0.25, float("inf"), float("nan")) if dtype.is_floating_point or dtype.is_complex else (0, 1, 5)
        return case.named(label, "masked_fill", "Scalar", x, mask, d.choice(numbers_), zeros=True, both=True)
    if op == "masked_fill_tensor":
        return case.named(label, "masked_fill", "Tensor", x, mask, values(d, dtype, []), zeros=True, both=True)
    if op == "masked_select":
        return case.shim(label, "masked_select", x, mask, torch=torch.masked_select, zeros=True, both=True)
    if op == "masked_scatter":
        try:
            count = int(mask.expand(torch.broadcast_shapes(mask.shape, x.shape)).sum())
        except RuntimeError:
            return None
        source = values(d, dtype, [count + d.choice((0, 0, 1, 9, -1 if count and d.chance(0.1) else 0))])
        if source.numel() % 2 == 0 and d.chance(0.5):
            source = source.reshape(2, -1).t()
        return case.shim(label, "masked_scatter", x, mask, source, torch=torch.ops.aten.masked_scatter, zeros=True, both=True)
    if op == "masked_scatter_backward":
        mask = d.laid_out(torch.rand(x.shape, generator=d.torch) < share, INDICES)
        count = int(mask.sum())
        sizes = d.choice(([count], [count + 3], [1, count + 1]))
        return case.shim(label, "masked_scatter_backward", x, mask, sizes, torch=torch.ops.aten.masked_scatter_backward, zeros=True)
    if op == "where":
        other = values(d, dtype if d.chance(0.7) else d.choice(EVERY), broadcast(d, shape))
        if torch.bfloat16 in (dtype, other.dtype) and (dtype.is_complex or other.dtype.is_complex):
            return None  # bcomplex32, a new dtype of PyTorch that packages do not have
        return case.named(f"{label} {other.dtype} {list(other.shape)}", "where", "self", mask, x, other, zeros=True, both=True)
    x = d.tensor(dtype, shape, d.choice(("few", "special", "zero", "normal")), LAYOUTS)
    if share == 0.01 and x.numel():
        x = d.laid_out(torch.where(torch.rand(shape, generator=d.torch) < share, x.cpu(), torch.zeros((), dtype=dtype)))
    label = f"{dtype} {list(x.shape)}"
    if op == "nonzero":
        return case.shim(label, "nonzero", x, torch=torch.nonzero)
    size = d.choice((0, 1, 7, x.numel(), x.numel() + 5, x.numel() // 2))
    return case.shim(f"{label} size {size}", "nonzero_static", x, size, d.choice((-1, 0, 99)),
                     torch=lambda a, n, f: torch.ops.aten.nonzero_static(a, size=n, fill_value=f))


def draw(d):
    way = d.random()
    if way < 0.35:
        return draw_index(d)
    if way < 0.4:
        return draw_masked_index(d)
    if way < 0.6:
        return draw_along(d)
    if way < 0.7:
        return draw_gather(d)
    if way < 0.8:
        return draw_flat(d)
    return draw_mask(d)
