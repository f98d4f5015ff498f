"""Copies, concatenations and rearrangements: src/tensor/copy.cpp, strided_move.cpp, block_copy.h, cat.cpp, movement.cpp, rearrangements.cpp, view.cpp.

To the bit, with signs of zeros and strides of results. Sums of overlapping patches (col2im, unfold_backward) are bounded; conversions that
the C++ standard leaves open are left out. Limits: blocks of 1, 2, 4 to 64 bytes and more (copy_block), 32 bytes at once (fill_run), tiles of
16 bytes by 32 that are transposed and strides of a multiple of 1024 bytes (transpose), 1024 elements converted at a time, 64 by 16 when
transposed (kChunk of copy.cpp), 128 KB per thread (kBytesPerThread), rows of under 512 bytes that cat interleaves and single elements (cat.cpp),
32768 elements per thread of flip.
"""
import torch

import abi
import case
from indexing import MOVED, most

DEVICES = ("cpu",)
RARE = (torch.float8_e4m3fn, torch.float8_e5m2, torch.complex32)
LAYOUTS = ("packed", "permuted", "permuted", "sliced", "offset", "padded", "expanded", "overlapping", "channels_last")
WRITABLE = ("packed", "permuted", "permuted", "sliced", "offset", "padded", "channels_last")
SIZES = (2, 3, 4, 8, 15, 16, 31, 32, 64, 128, 256, 512, 1024, 4096)
EXACT = dict(zeros=True, both=True)


def any_dtype(d):
    return d.choice(MOVED) if d.chance(0.93) else d.choice(RARE)


def some(d, shape, dtype=None, layouts=LAYOUTS):
    return d.tensor(dtype or any_dtype(d), shape, d.choice(("normal", "few", "special", "wide")), layouts)


def any_shape(d, ranks=(0, 1, 2, 2, 3, 3, 4, 4, 5), low=None):
    return d.shape(d.choice(ranks), most(d), SIZES, low=(0 if d.chance(0.04) else 1) if low is None else low)


def any_dim(d, rank):
    return d.randint(-rank, rank - 1) if rank else d.choice((0, -1))


def describe(x):
    return f"{x.dtype} {list(x.shape)} {x.stride()}"


CONVERTED = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
             torch.bool, torch.complex64, torch.complex128)


def convertible(d, shape, to, layouts=LAYOUTS):
    """A tensor of its own dtype; its values fit `to` if floats become integers."""
    dtype = d.choice(CONVERTED)
    floating = dtype.is_floating_point or dtype.is_complex
    whole = not (to.is_floating_point or to.is_complex) and to != torch.bool
    kind = d.choice(("normal", "few", "positive")) if floating and whole else d.choice(("normal", "few", "special", "wide"))
    t = d.values(dtype, shape, kind)
    if floating and to == torch.uint8:
        t = t.abs()
    return d.laid_out(t, layouts)


def draw_shared(d):
    """Source and destination in one storage: apart, equal, or overlapping, which PyTorch refuses."""
    dtype = d.choice(CONVERTED)
    shape = d.shape(d.choice((1, 2, 3)), d.choice((30, 500, 4000)), SIZES, low=1)
    base = d.tensor(dtype, shape, "few", ("packed", "permuted", "padded"))
    dim, way = d.randrange(len(shape)), d.choice(("halves", "shifted", "between", "turned", "same", "expanded"))
    n = shape[dim]
    if way == "halves" and n > 1:
        to, source = base.narrow(dim, 0, n // 2), base.narrow(dim, n - n // 2, n // 2)
    elif way == "shifted" and n > 1:
        to, source = base.narrow(dim, 1, n - 1), base.narrow(dim, 0, n - 1)
    elif way == "between" and n > 1:
        to, source = base.unflatten(dim, (n, 1)).movedim(dim, 0)[0:n // 2 * 2:2], base.unflatten(dim, (n, 1)).movedim(dim, 0)[1:n // 2 * 2:2]
    elif way == "turned":
        side = min(shape)
        to = d.tensor(dtype, [side, side], "few", ("packed",))
        source = to.t()
    elif way == "expanded" and n > 1:
        to, source = base.narrow(dim, 1, n - 1), base.narrow(dim, 0, 1)
    else:
        to = source = base
    if way == "shifted" and not (to.is_contiguous() and source.is_contiguous()):
        return None  # an overlap that is not detected: the result depends on the order
    return case.named(f"{way} {describe(source)} into {describe(to)}", "copy_", "", to, source, False, written=[0], fails=None, zeros=True,
                      both=to.is_contiguous() and source.is_contiguous())


def draw_copy(d):
    if d.chance(0.1):
        return draw_shared(d)
    shape = any_shape(d)
    op = d.choice(("copy_", "copy_", "copy_", "copy", "clone", "clone", "to", "to", "contiguous", "preserve", "zero_", "alias", "convert", "packed_rows"))
    if op == "copy_":
        own = [n if d.chance(0.85) else 1 for n in shape]
        while own and d.chance(0.1):
            own = own[1:]
        same = d.chance(0.5)
        to = some(d, shape, any_dtype(d) if same else d.choice(CONVERTED), WRITABLE)
        source = some(d, own, to.dtype) if same else convertible(d, own, to.dtype)
        label = f"{describe(source)} into {describe(to)}"
        if d.chance(0.5):
            return case.named(label, "copy_", "", to, source, False, written=[0], **EXACT)

        def ours(t, s):
            handles = abi.handle(t), abi.handle(s)
            try:
                abi.check(abi.library["host"].aoti_torch_copy_(*handles, 0), "copy_")
            finally:
                for h in handles:
                    abi.library["host"].aoti_torch_delete_tensor_object(h)
        return case.Case("aoti copy_ " + label, ours, lambda t, s: t.copy_(s), [to, source], written=[0], **EXACT)
    if op == "copy":
        x = some(d, shape, d.choice(CONVERTED), WRITABLE)
        return case.named(describe(x), "copy", "", x, convertible(d, shape, x.dtype), False, **EXACT)
    x = some(d, shape)
    formats = [torch.preserve_format, torch.contiguous_format] + ([torch.channels_last] if len(shape) == 4 else []) + (
        [torch.channels_last_3d] if len(shape) == 5 else [])
    if op == "clone":
        return case.named(describe(x), "clone", "", x, memory_format=d.choice(formats + [None]), **EXACT)
    if op == "contiguous":
        f = d.choice(formats[1:])
        return case.named(f"{describe(x)} {f}", "contiguous", "", x, memory_format=f, **EXACT)
    if op == "to":
        to = d.choice(CONVERTED)
        x = convertible(d, shape, to)
        if d.chance(0.5):
            return case.named(f"{describe(x)} {to}", "_to_copy", "", x, dtype=to, memory_format=d.choice(formats + [None]), **EXACT)
        return case.named(f"{describe(x)} {to}", "to", "dtype", x, to, False, d.chance(0.3), d.choice(formats + [None]), **EXACT)
    if op == "convert":
        to = d.choice(CONVERTED)
        x = convertible(d, shape, to)
        return case.named(f"{describe(x)} {to}", "prims::convert_element_type", "", x, to, **EXACT)
    if op == "preserve":
        def ours(t):
            h, out = abi.handle(t), abi.ctypes.c_void_p()
            try:
                abi.check(abi.library["host"].aoti_torch_clone_preserve_strides(h, abi.ctypes.byref(out)), "clone_preserve_strides")
            finally:
                abi.library["host"].aoti_torch_delete_tensor_object(h)
            return [abi.tensor(out)]
        return case.Case("clone_preserve_strides " + describe(x), ours, lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t) if
                         0 not in t.stride() and not has_overlap(t) else preserved(t), [x], zeros=True)
    if op == "packed_rows":
        # Packs sequences of decreasing length by time step.
        batch, time = d.size(2, 4, low=1, high=12), d.size(4, 8, low=1, high=40)
        lengths = sorted((d.randint(1, time) for _ in range(batch)), reverse=True)
        first = d.chance(0.5)
        x = some(d, ([batch, time] if first else [time, batch]) + d.shape(d.choice((0, 1, 1, 2)), 30, (2, 8), low=1),
                 d.choice((torch.float32, torch.float64, torch.int64, torch.bfloat16)))
        return case.named(f"{describe(x)} {lengths}", "_pack_padded_sequence", "", x, torch.tensor(lengths), first, **EXACT)
    if op == "zero_":
        x = some(d, shape, layouts=WRITABLE)

        def zero(t):
            h = abi.handle(t)
            try:
                abi.check(abi.library["host"].aoti_torch_zero_(h), "zero_")
            finally:
                abi.library["host"].aoti_torch_delete_tensor_object(h)
        return case.Case("zero_ " + describe(x), zero, lambda t: t.zero_(), [x], written=[0], **EXACT)
    return case.named(describe(x), d.choice(("alias_copy", "detach_copy", "lift_fresh_copy")), "", x, **EXACT)


def has_overlap(t):
    return t.numel() > 0 and 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride())) < t.numel()


def preserved(t):
    out = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype)
    flat = out.untyped_storage().nbytes() // t.itemsize
    if flat:
        out.as_strided([flat], [1]).copy_(t.as_strided([flat], [1], t.storage_offset()))
    return out


def draw_cat(d):
    op = d.choice(("cat", "cat", "cat", "_stack", "stack", "block_diag", "_chunk_cat", "split_copy", "split_with_sizes_copy", "unbind_copy", "split"))
    shape = any_shape(d, (1, 2, 2, 3, 4))
    rank, dtype = len(shape), any_dtype(d)
    dim = any_dim(d, rank)
    at = dim % rank
    if op == "cat":
        count = d.choice((1, 2, 2, 3, 5, 9, 20))
        mixed = d.chance(0.15)
        tensors = []
        layouts = ("packed",) if d.chance(0.5) else LAYOUTS
        widths = d.choice(("same", "ones", "any"))
        for _ in range(count):
            own = list(shape)
            own[at] = shape[at] if widths == "same" else 1 if widths == "ones" else d.size(2, 8, high=40)
            if d.chance(0.05):
                own = [0]
            tensors.append(some(d, own, d.choice(CONVERTED[:11]) if mixed else dtype, layouts))
        if sum(t.numel() for t in tensors) > 400000:
            return None
        return case.shim(f"{dtype} {[list(t.shape) for t in tensors]} along {dim} mixed {mixed}", "cat", tensors, dim,
                         torch=lambda ts, k: torch.cat(ts, k), **EXACT)
    x = some(d, shape, dtype)
    if op in ("_stack", "stack"):
        layouts = (d.choice(LAYOUTS),) if d.chance(0.6) else LAYOUTS
        tensors = [some(d, shape, dtype, layouts) for _ in range(d.choice((1, 2, 3, 7)))]
        k = d.randint(-rank - 1, rank)
        made = case.named(f"{len(tensors)} of {describe(x)} {k}", op, "", tensors, k, **EXACT)
        if op == "_stack":  # reads a single tensor as if it were contiguous
            made.torch, made.strides = torch.stack, False
        return made
    if op == "block_diag":
        tensors = [some(d, d.shape(d.choice((0, 1, 2, 2)), 300, (2, 8), low=0 if d.chance(0.05) else 1), dtype) for _ in range(d.choice((1, 2, 4)))]
        return case.named(f"{[list(t.shape) for t in tensors]}", "block_diag", "", tensors, **EXACT)
    if op == "_chunk_cat":
        tensors = [some(d, shape[:1] + d.shape(d.choice((0, 1, 2)), 40, (2, 8), low=1), dtype) for _ in range(d.choice((1, 2, 3)))]
        if min(shape) < 1:
            return None
        return case.named(f"{[list(t.shape) for t in tensors]}", "_chunk_cat", "", tensors, 0, d.choice((1, 2, 3)), **EXACT)
    if op == "split_copy":
        return case.named(describe(x), "split_copy", "Tensor", x, d.size(2, 8, low=1, high=60), dim, **EXACT)
    if op == "split":
        return case.named(describe(x), d.choice(("split", "unsafe_split")), "Tensor", x, d.size(2, 8, low=1, high=60), dim, **EXACT)
    if op == "split_with_sizes_copy":
        sizes, left = [], shape[at]
        while left > 0 or not sizes:
            sizes.append(d.randint(0, left))
            left -= sizes[-1]
            if len(sizes) > 12:
                sizes.append(left)
                break
        return case.named(f"{describe(x)} {sizes}", d.choice(("split_with_sizes_copy", "unsafe_split_with_sizes")), "", x, sizes, dim, **EXACT)
    return case.named(describe(x), "unbind_copy", "int", x, dim, **EXACT) if shape[at] < 100 else None


def draw_view(d):
    """Views, and copies of them."""
    op = d.choice(("reshape", "reshape", "_reshape_copy", "permute", "slice", "slice", "select", "squeeze", "unsqueeze", "transpose", "expand", "diagonal",
                   "unfold", "narrow", "as_strided", "view_dtype", "real", "complex", "view", "t", "flatten"))
    x = some(d, any_shape(d))
    rank, shape = x.dim(), list(x.shape)
    dim = any_dim(d, rank)
    size = shape[dim] if rank else 1
    label = f"{describe(x)} dim {dim}"
    if op in ("reshape", "_reshape_copy", "view"):
        count, sizes = x.numel(), []
        if count and d.chance(0.8):
            while count > 1 and len(sizes) < 5 and d.chance(0.8):
                n = d.choice([p for p in (2, 3, 4, 5, 7, 8, 13, 1, count) if count % p == 0])
                sizes.append(n)
                count //= n
            sizes.append(count)
            if d.chance(0.5):
                d.shuffle(sizes)
            if d.chance(0.3):
                sizes[d.randrange(len(sizes))] = -1
        else:
            sizes = list(shape)
            d.shuffle(sizes)
        if op == "reshape":
            return case.shim(f"{label} to {sizes}", op, x, sizes, torch=torch.reshape, **EXACT)
        if op == "view":
            return case.named(f"{label} to {sizes}", d.choice(("view", "_unsafe_view", "view_copy")), "", x, sizes, **EXACT)
        return case.named(f"{label} to {sizes}", op, "", x, sizes, **EXACT)
    if op == "permute":
        dims = list(range(rank))
        d.shuffle(dims)
        dims = [k - rank if d.chance(0.3) else k for k in dims]
        if d.chance(0.5):
            return case.shim(f"{label} {dims}", op, x, dims, torch=torch.permute, **EXACT)
        return case.named(f"{label} {dims}", "permute_copy", "", x, dims, **EXACT)
    if op == "slice" and rank:
        ends = [None, 0, 1, -1, size, size + 5, -size, -size - 3, d.randint(0, max(size, 1)), 1 << 62]
        start, end, step = d.choice(ends), d.choice(ends), d.choice((1, 1, 2, 3, 7, size + 1))
        if d.chance(0.5):
            return case.shim(f"{label} {start}:{end}:{step}", "slice_Tensor", x, dim, start, end, step, torch=torch.ops.aten.slice.Tensor, **EXACT)
        return case.named(f"{label} {start}:{end}:{step}", "slice_copy", "Tensor", x, dim, start, end, step, **EXACT)
    if op == "select" and rank and size:
        return case.named(label, d.choice(("select_copy", "select")), "int", x, dim, d.randint(-size, size - 1), **EXACT)
    if op == "squeeze":
        way = d.choice(("", "dim", "dims"))
        if way == "":
            return case.named(label, "squeeze_copy", "", x, **EXACT)
        if way == "dim":
            return case.shim(label, "squeeze_dim", x, dim, torch=lambda a, k: torch.squeeze(a, k), **EXACT)
        return case.named(label, "squeeze_copy", "dims", x, d.sample(range(rank), d.randint(0, rank)), **EXACT)
    if op == "unsqueeze":
        return case.named(label, d.choice(("unsqueeze", "unsqueeze_copy")), "", x, d.randint(-rank - 1, rank), **EXACT)
    if op == "transpose" and rank:
        return case.named(label, d.choice(("transpose", "transpose_copy")), "int", x, dim, any_dim(d, rank), **EXACT)
    if op == "t" and rank <= 2:
        return case.named(label, d.choice(("t", "t_copy")), "", x, **EXACT)
    if op == "flatten" and rank:
        a, b = sorted((d.randrange(rank), d.randrange(rank)))
        return case.named(label, op, "using_ints", x, a, b, **EXACT)
    if op == "expand":
        sizes = [d.choice((2, 3, 0)) for _ in range(d.choice((0, 1, 2)))] + [d.choice((n, -1, 3 if n == 1 else n)) for n in shape]
        if torch.Size([abs(n) * 1 for n in sizes]).numel() > 300000:
            return None
        return case.named(f"{label} to {sizes}", d.choice(("expand", "expand_copy")), "", x, sizes, **EXACT)
    if op == "diagonal" and rank > 1:
        a, b = d.sample(range(rank), 2)
        offset = d.choice((0, 0, 1, -1, 3, -5, shape[b], -shape[a]))
        return case.named(f"{label} {a} {b} {offset}", d.choice(("diagonal", "diagonal_copy")), "", x, offset, a, b - rank if d.chance(0.3) else b, **EXACT)
    if op == "unfold":
        width = d.randint(0, size) if d.chance(0.9) else size + 1
        step = d.choice((1, 2, 3, 8))
        if rank and size and x.numel() // size * max(width, 1) * max(1, (size - width) // step + 1) > 300000:
            return None
        return case.named(f"{label} size {width} step {step}", d.choice(("unfold", "unfold_copy")), "", x, dim, width, step, **EXACT)
    if op == "narrow" and rank:
        start = d.randint(0, size)
        length = d.randint(0, size - start)
        if d.chance(0.5):
            return case.shim(f"{label} {start} {length}", op, x, dim, start, length, torch=torch.narrow, **EXACT)
        return case.named(f"{label} {start} {length}", "narrow_copy", "", x, dim, start, length, **EXACT)
    if op == "as_strided":
        x = some(d, [d.size(8, 64, low=1, high=400)], layouts=("packed", "offset"))
        sizes, strides = [], []
        left = x.numel() - 1
        for _ in range(d.choice((0, 1, 2, 3))):
            stride = d.choice((0, 1, 1, 2, 3, 7))
            n = d.randint(1, min(left // max(stride, 1) + 1, 20))
            left -= (n - 1) * stride
            sizes.append(n)
            strides.append(stride)
        offset = d.choice((None, x.storage_offset(), x.storage_offset() + d.randint(0, left)))
        return case.named(f"{label} {sizes} {strides} {offset}", d.choice(("as_strided", "as_strided_copy")), "", x, sizes, strides, offset, **EXACT)
    if op == "view_dtype":
        to = d.choice((torch.int8, torch.int16, torch.float16, torch.int32, torch.float32, torch.int64, torch.complex64, torch.uint8, torch.bfloat16))
        if x.dtype == torch.bool:
            return None
        if d.chance(0.5):
            return case.shim(f"{label} as {to}", op, x, to, torch=lambda a, t: torch.ops.aten.view.dtype(a, t), both=True)
        return case.named(f"{label} as {to}", "view_copy", "dtype", x, to, both=True)
    if op == "real":
        x = some(d, shape, d.choice((torch.complex64, torch.complex128)))
        return case.shim(describe(x), "view_as_real", x, torch=torch.view_as_real, **EXACT) if d.chance(0.5) else case.named(
            describe(x), "view_as_real_copy", "", x, **EXACT)
    if op == "complex":
        x = some(d, shape + [2], d.choice((torch.float32, torch.float64)), ("packed", "sliced", "offset", "permuted"))
        return case.shim(describe(x), "view_as_complex", x, torch=torch.view_as_complex, **EXACT) if d.chance(0.5) else case.named(
            describe(x), "view_as_complex_copy", "", x, **EXACT)
    return None


def draw_parts(d):
    """Replaces a part of a tensor; gradients of views."""
    op = d.choice(("slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter", "slice_backward", "select_backward", "unfold_backward",
                   "diag_embed"))
    x = some(d, any_shape(d, (1, 2, 2, 3, 4)), layouts=WRITABLE + ("expanded",))
    rank, shape = x.dim(), list(x.shape)
    dim = any_dim(d, rank)
    size, label = shape[dim], f"{describe(x)} dim {dim}"
    if op in ("slice_scatter", "slice_backward"):
        ends = [0, 1, -1, size, size + 5, -size, d.randint(0, max(size, 1)), 1 << 62]
        start, end, step = d.choice(ends), d.choice(ends), d.choice((1, 1, 2, 3))
        part = torch.ops.aten.slice.Tensor(x, dim, start, end, step)
        source = some(d, list(part.shape), x.dtype)
        if op == "slice_scatter":
            return case.named(f"{label} {start}:{end}:{step}", op, "", x, source, dim, start, end, step, **EXACT)
        return case.named(f"{label} {start}:{end}:{step}", op, "", source, shape, dim, start, end, step, **EXACT)
    if op in ("select_scatter", "select_backward") and size:
        source = some(d, shape[:dim % rank] + shape[dim % rank + 1:], x.dtype)
        place = d.randint(-size, size - 1)
        if op == "select_scatter":
            return case.named(f"{label} {place}", op, "", x, source, dim, place, **EXACT)
        return case.named(f"{label} {place}", op, "", source, shape, dim, place, **EXACT)
    if op == "diagonal_scatter" and rank > 1:
        a, b = d.sample(range(rank), 2)
        offset = d.choice((0, 1, -1, 3))
        source = some(d, list(torch.diagonal(x, offset, a, b).shape), x.dtype)
        return case.named(f"{label} {offset} {a} {b}", op, "", x, source, offset, a, b, **EXACT)
    if op == "as_strided_scatter":
        x = some(d, shape, layouts=("packed",))
        if not x.numel():
            return None
        n = d.randint(1, min(x.numel(), 30))
        stride = d.randint(1, max(1, (x.numel() - 1) // max(n - 1, 1)))
        offset = d.randint(0, x.numel() - 1 - (n - 1) * stride) if n > 1 else d.randrange(x.numel())
        return case.named(f"{label} {n} {stride} {offset}", op, "", x, some(d, [n], x.dtype), [n], [stride], offset, **EXACT)
    if op == "diag_embed":
        x = some(d, any_shape(d, (1, 2, 3), low=1)[:3])
        if x.numel() * x.shape[-1] > 200000:
            return None
        offset = d.choice((0, 1, -1, 4))
        a, b = d.sample(range(x.dim() + 1), 2)
        return case.named(f"{describe(x)} {offset} {a} {b}", op, "", x, offset, a, b - x.dim() - 1 if d.chance(0.3) else b, **EXACT)
    if op == "unfold_backward":
        dtype = d.choice((torch.float32, torch.float64, torch.float16, torch.bfloat16))
        width, step = d.randint(1, size) if size else 0, d.choice((1, 2, 3, 8))
        if not width or x.numel() // size * width * ((size - width) // step + 1) > 200000:
            return None
        whole = torch.empty(shape).unfold(dim, width, step)
        gradient = d.tensor(dtype, list(whole.shape), "normal", LAYOUTS)
        terms = (width + step - 1) // step
        half = 2 ** 13 if dtype == torch.float16 else 2 ** 16 if dtype == torch.bfloat16 else 1
        return case.named(f"{label} {width} {step} {dtype}", op, "", gradient, shape, dim, width, step, error=(2 + 2 * terms ** 0.5) * half,
                          magnitude=lambda g, *r: torch.ops.aten.unfold_backward(g.abs(), *r))
    return None


def draw_order(d):
    op = d.choice(("roll", "flip", "flip", "rot90", "repeat", "repeat_interleave", "tril", "triu", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle",
                   "im2col", "col2im", "rev"))
    x = some(d, any_shape(d))
    rank, shape = x.dim(), list(x.shape)
    label = describe(x)
    if op == "roll":
        if d.chance(0.2) or not rank:
            return case.named(label, op, "", x, [d.randint(-50, 50)], [], **EXACT)
        dims = [any_dim(d, rank) for _ in range(d.choice((1, 1, 2, 3)))]
        return case.named(f"{label} {dims}", op, "", x, [d.choice((0, 1, -1, 7, -20, d.randint(-300, 300))) for _ in dims], dims, **EXACT)
    if op in ("flip", "rev"):
        dims = [k - rank if d.chance(0.3) else k for k in d.sample(range(rank), d.randint(0, rank))]
        return case.named(f"{label} {dims}", op if op == "flip" else "prims::rev", "", x, dims if op == "flip" else [k % rank for k in dims], **EXACT)
    if op == "rot90" and rank > 1:
        dims = [k - rank if d.chance(0.3) else k for k in d.sample(range(rank), 2)]
        return case.named(f"{label} {dims}", op, "", x, d.randint(-5, 5), dims, **EXACT)
    if op == "repeat":
        repeats = [d.choice((1, 1, 2, 3, 0 if d.chance(0.1) else 1)) for _ in range(rank + d.choice((0, 0, 1, 2)))]
        if x.numel() * torch.Size(repeats).numel() > 300000:
            return None
        return case.named(f"{label} {repeats}", op, "", x, repeats, **EXACT)
    if op == "repeat_interleave":
        counts = torch.randint(0, d.choice((1, 2, 5, 40)) + 1, [d.size(8, 64, high=500)], generator=d.torch).to(d.choice((torch.int64, torch.int32)))
        total = int(counts.sum())
        return case.shim(f"{total}", "repeat_interleave_Tensor", d.laid_out(counts, ("packed", "sliced", "overlapping", "expanded")) if d.chance(0.5) else counts,
                         d.choice((None, total)) if False else None, torch=lambda r, n: torch.ops.aten.repeat_interleave.Tensor(r, output_size=n), **EXACT)
    if op in ("tril", "triu") and rank > 1:
        return case.named(label, op, "", x, d.choice((0, 0, 1, -1, 5, -5, shape[-1], -shape[-2], 1 << 40, -(1 << 40))), **EXACT)
    if op in ("pixel_shuffle", "pixel_unshuffle"):
        r = d.choice((1, 2, 3, 4))
        own = d.shape(d.choice((0, 0, 1, 1, 2)), 9, (2, 3), low=1)
        c, h, w = d.size(2, 3, high=9, low=1), d.size(4, 8, high=40, low=1), d.size(4, 8, 16, high=40, low=1)
        x = some(d, own + ([c * r * r, h, w] if op == "pixel_shuffle" else [c, h * r, w * r]))
        # PyTorch refuses pixel_unshuffle of two planes in channels_last_3d.
        return case.named(f"{describe(x)} by {r}", op, "", x, r, zeros=True)
    if op == "channel_shuffle":
        groups = d.choice((1, 2, 3, 4))
        x = some(d, d.shape(1, 5, (2,), low=1) + [groups * d.size(2, 4, high=12, low=1)] + d.shape(d.choice((1, 2, 3)), 200, (4, 8), low=1))
        return case.named(f"{describe(x)} by {groups}", op, "", x, groups, **EXACT)
    if op in ("im2col", "col2im"):
        kernel, dilation, padding, stride = ([d.randint(low, 3) for _ in range(2)] for low in (1, 1, 0, 1))
        size = [d.size(4, 8, 16, low=1, high=40) for _ in range(2)]
        blocks = [(size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]
        if min(blocks) < 1:
            return None
        channels = d.size(2, 3, low=1, high=9)
        batch = [d.size(2, low=1, high=5)] if d.chance(0.7) else []
        floats = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64)
        layouts = ("packed", "permuted", "sliced", "offset", "padded", "expanded", "channels_last")
        if op == "im2col":
            x = some(d, batch + [channels] + size, d.choice(floats), layouts)
            return case.named(f"{describe(x)} {kernel} {dilation} {padding} {stride}", op, "", x, kernel, dilation, padding, stride, **EXACT)
        dtype = d.choice(floats)
        x = d.tensor(dtype, batch + [channels * kernel[0] * kernel[1], blocks[0] * blocks[1]], "normal", layouts)
        half = 2 ** 13 if dtype == torch.float16 else 2 ** 16 if dtype == torch.bfloat16 else 1
        return case.named(f"{describe(x)} {size} {kernel} {dilation} {padding} {stride}", op, "", x, size, kernel, dilation, padding, stride,
                          error=9.0 * half, magnitude=lambda a, *r: torch.ops.aten.col2im(a.abs(), *r))
    return None


def draw(d):
    return d.choice((draw_copy, draw_copy, draw_cat, draw_view, draw_parts, draw_order))(d)
