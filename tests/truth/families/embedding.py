"""embedding, embedding_bag and their gradients, byte tables: src/cpu/indexing/embedding.cpp, embedding_backward.cpp, byte_embedding.cpp.

Rows are compared to the bit, sums of bags near ATen's in float64. Limits: 8 vectors of 8 (4 of double) columns, single
vectors, single columns (kBlock and kLanes of sum_bags), 8 rows prefetched (kRowsAhead), 32768 elements per thread; sums without offset2bag.
"""
import torch

import case
from indexing import LAYOUTS, most, numbers, values

DEVICES = ("cpu",)
FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
WIDTHS = (1, 4, 8, 16, 32, 64, 65, 128)
TABLES = ("packed", "packed", "permuted", "sliced", "offset", "padded", "expanded")


def bags(d, count, largest):
    """Where `count` bags begin; some are empty."""
    lengths = [d.choice((0, 1, 2, d.size(8, 9, 16, high=max(largest, 2)))) for _ in range(count)]
    offsets, at = [], 0
    for n in lengths:
        offsets.append(at)
        at += n
    return offsets, at


def error(dtype, terms):
    return 4 + float(min(terms, 200)) ** 0.5 * 2


def draw(d):
    """ATen's bags need contiguous indices and offsets (its public functions make them so), so it gets copies."""
    made = draw_any(d)
    if made and "bag" in made.label:
        other = made.torch
        made.torch = lambda *v: other(v[0], *[
            a.contiguous() if isinstance(a, torch.Tensor) and not a.dtype.is_floating_point else a for a in v[1:]])
    return made


def draw_any(d):
    op = d.choice(("embedding", "renorm", "dense_backward", "bag", "bag", "bag", "bag_backward", "bag_backward", "weights_backward", "byte"))
    rows, width = d.size(2, 8, 64, high=300), d.size(*WIDTHS, low=0 if d.chance(0.02) else 1, high=300)
    rows = max(rows, 1)
    if op == "embedding":
        dtype = d.choice(FLOATS + (torch.int64, torch.int8, torch.uint8))
        weight = values(d, dtype, [rows, width], LAYOUTS)
        index = numbers(d, rows, d.shape(d.choice((0, 1, 2, 3)), min(most(d), max(1, 200000 // max(width, 1))), (8, 64, 512), low=0), d.chance(0.02))
        return case.named(f"{dtype} {rows} x {width} by {index.dtype} {list(index.shape)}", "embedding", "", weight, index,
                          d.choice((-1, 0)), False, False, zeros=True, both=True)
    dtype = d.choice(FLOATS)
    kind = d.choice(("normal", "few", "wide"))
    if op == "renorm":
        weight = d.tensor(dtype, [rows, width], kind, ("packed", "permuted", "sliced", "offset", "padded"))
        index = numbers(d, rows, [d.size(2, 8, high=40, low=0)], False, bad=0.02)
        norm = d.choice((2.0, 1.0, 3.0, float("inf"), 0.5, 2.5))
        return case.named(f"{dtype} {rows} x {width} norm {norm}", "embedding_renorm", "", weight, index, d.choice((0.1, 1.0, 4.0)), norm, both=width > 0,
                          error=8 + width ** 0.5 * (2 ** 13 if dtype == torch.float16 else 2 ** 16 if dtype == torch.bfloat16 else 1))
    if op == "dense_backward":
        shape = d.shape(d.choice((0, 1, 2)), max(1, min(most(d), 100000 // max(width, 1))), (8, 64), low=1)
        index = numbers(d, rows, shape, False, bad=0)
        gradient = d.tensor(dtype, shape + [width], kind, LAYOUTS)
        half = dtype in (torch.float16, torch.bfloat16)
        terms = index.numel()
        return case.named(f"{dtype} {rows} x {width} by {shape}", "embedding_dense_backward", "", gradient, index, rows, d.choice((-1, 0, 1)),
                          d.chance(0.3), error=4 + (terms if 0 in gradient.stride() else min(terms, 64)), slack=3.0 if not half else 1.0,
                          magnitude=lambda g, i, *r: torch.ops.aten.embedding_dense_backward(g.abs(), i, *r))
    if op == "byte":
        return draw_byte(d, rows, width)
    count = d.size(2, 8, 64, high=200, low=0)
    offsets, total = bags(d, count, max(2, min(60, 60000 // max(width * max(count, 1), 1))))
    last = d.chance(0.3)
    if last:
        offsets.append(total)
        if d.chance(0.2) and total > offsets[-2 if len(offsets) > 1 else -1] + 1:
            pass
    ints = d.choice((torch.int64, torch.int64, torch.int32))
    index = numbers(d, rows, [total], False, bad=0.01 if op == "bag" else 0, dtypes=(ints,))
    starts = d.laid_out(torch.tensor(offsets, dtype=torch.int64).to(ints if d.chance(0.8) else torch.int64), ("packed", "sliced", "offset"))
    mode = d.choice((0, 0, 1, 2))
    padding = d.choice((-1, -1, 0, rows - 1))
    weight = d.tensor(dtype, [rows, width], kind if mode != 2 else d.choice((kind, "special")), TABLES)
    scales = d.tensor(dtype, [total], "normal", ("packed", "sliced", "expanded")) if mode == 0 and d.chance(0.4) else None
    label = f"{dtype} {rows} x {width}, {total} in {count} bags, mode {mode} padding {padding} last {last} scales {scales is not None}"
    if op == "bag":
        name = d.choice(("_embedding_bag", "_embedding_bag_forward_only"))
        # ATen leaves results that it does not need unset.
        skip = {0: (3,), 1: (3,), 2: ()}[mode]
        how = dict(error=error(dtype, 60), skip=(1, 2, *skip) if False else skip) if mode != 2 else dict(zeros=True)
        if mode != 2:
            def size(w, i, o, s, m, sp, p, la, pad):
                return torch.ops.aten._embedding_bag(w.abs(), i.contiguous(), o.contiguous(), s, m, sp, None if p is None else p.abs().contiguous(), la, pad)
            how["magnitude"] = size
        if dtype in (torch.float16, torch.bfloat16) and mode == 1:
            how["error"] = how["error"] * 2 ** (13 if dtype == torch.float16 else 16)
        return case.shim(label, name, weight, index, starts, False, mode, False, scales, last, padding, torch=getattr(torch.ops.aten, name),
                         both=True, **how)
    if total == 0 or count == 0:
        return None
    if op == "bag_backward":
        try:
            _, bag_of, sizes, chosen = torch.ops.aten._embedding_bag(weight, index.contiguous(), starts.contiguous(), False, mode, False, scales.contiguous() if scales is not None else None, last, padding)
        except RuntimeError:
            return None
        gradient = d.tensor(dtype, [count, width], kind, LAYOUTS)
        by_frequency = mode != 2 and d.chance(0.3)
        # double, because long float32 sums depend on their order.
        return case.named(f"{label} by frequency {by_frequency}", "_embedding_bag_backward", "", gradient, index, starts, bag_of, sizes, chosen, rows,
                          by_frequency, mode, False, scales, padding, error=8 + min(total, 64) * 1.0,
                          magnitude=lambda g, i, o, b, s, c, n, f, m, sp, p, pad: torch.ops.aten._embedding_bag_backward(
                              g.abs(), i.contiguous(), o.contiguous(), b, s, c, n, f, m, sp, None if p is None else p.abs().contiguous(), pad))
    if mode != 0:
        return None
    _, bag_of, _, _ = torch.ops.aten._embedding_bag(weight, index.clamp(0, rows - 1).contiguous(), starts.contiguous(), False, 0, False,
                                                    torch.ones(total, dtype=dtype), last, padding)
    gradient = d.tensor(dtype, [count, width], kind, LAYOUTS)
    name = "_embedding_bag_per_sample_weights_backward"
    if name not in __import__("abi").signatures:
        return None
    return case.shim(label, name, gradient, weight, index, starts, bag_of, 0, padding, torch=getattr(torch.ops.aten, name),
                     error=8 + width ** 0.5 * 2, magnitude=lambda g, w, i, o, b, *r: getattr(torch.ops.aten, name)(
                         g.abs(), w.abs(), i.contiguous(), o.contiguous(), b, *r))


def draw_byte(d, rows, width):
    op = d.choice(("prepack", "unpack", "offsets", "offsets"))
    floats = d.choice((torch.float32, torch.float32, torch.float16))
    weight = d.tensor(floats if op == "prepack" else torch.float32, [rows, max(width, 1)], d.choice(("normal", "few", "positive", "zero")), LAYOUTS)
    label = f"{weight.dtype} {rows} x {width}"
    if op == "prepack":
        return case.named(label, "quantized::embedding_bag_byte_prepack", "", weight)
    packed = torch.ops.quantized.embedding_bag_byte_prepack(weight)
    if op == "unpack":
        return case.named(label, "quantized::embedding_bag_byte_unpack", "", packed, error=2.0, exact=None,
                          magnitude=lambda p: torch.ops.quantized.embedding_bag_byte_unpack(p).abs() + 1)
    ints = d.choice((torch.int64, torch.int32))
    count = d.size(2, 8, high=60, low=1)
    scales = None
    if d.chance(0.3):
        index = numbers(d, rows, [count, d.size(1, 8, high=20, low=1)], False, bad=0, dtypes=(ints,)).contiguous()
        starts, last = None, False
    else:
        offsets, total = bags(d, count, 20)
        last = d.chance(0.4)
        if last:
            offsets.append(total)
        index = numbers(d, rows, [total], False, bad=0, dtypes=(ints,)).contiguous()
        starts = torch.tensor(offsets, dtype=ints)
    if d.chance(0.4):
        scales = d.tensor(torch.float32, [index.numel()], "normal", ("packed",))
    # For each index: byte * scale + offset, times a factor.
    def table(p, i, o, a, b, c, w, m, la):
        return torch.ops.quantized.embedding_bag_byte_rowwise_offsets(p, i, o, a, b, c, None if w is None else w.float(), m, la)

    largest = float(weight.abs().max()) * (float(scales.abs().max()) if scales is not None and scales.numel() else 1) * 20
    mapping = None
    if d.chance(0.3):  # a pruned table: -1 for removed rows
        full = rows + d.randint(0, 20)
        mapping = torch.full([full], -1, dtype=torch.int32)
        mapping[torch.randperm(full, generator=d.torch)[:rows]] = torch.arange(rows, dtype=torch.int32)
        index = numbers(d, full, list(index.shape), False, bad=0, dtypes=(ints,)).contiguous()
    return case.named(f"{label} by {list(index.shape)} last {last} pruned {mapping is not None}", "quantized::embedding_bag_byte_rowwise_offsets", "",
                      packed, index, starts, False, 0, mapping is not None, scales, mapping, last, error=40.0, exact=table, magnitude=torch.tensor(largest))
