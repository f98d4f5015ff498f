"""Writes tests/data/indexing.cases: python tests/cpu/make_indexing_cases.py [seed [scale [file]]]"""
import pathlib
import sys

import torch
from case_writer import CaseWriter, Samples

aten = torch.ops.aten
COMMON = [torch.float32, torch.int64, torch.float16, torch.bool, torch.uint8, torch.complex64, torch.float64,
          torch.bfloat16, torch.int32]


def index_list(s, shape):
    """Index tensors for some of the dimensions, broadcast together; perhaps a mask."""
    rank = len(shape)
    common = s.pick([[s.below(4)], [1 + s.below(3), 1 + s.below(3)], []])
    while True:
        indices = []
        d = 0
        while d < rank:
            kind = s.below(5)
            if kind == 0 and rank - d >= 1:  # a mask over one or two dimensions
                width = min(1 + s.below(2), rank - d)
                mask = s.values(torch.bool, shape[d:d + width])
                if s.below(4) == 0:
                    mask = mask.to(torch.uint8)
                if not [i for i in indices if i is not None]:
                    indices.append(s.strided(mask))
                    d += width
                    common = None
                    continue
            if kind < 3 and common is not None and shape[d] > 0:
                t = torch.randint(-shape[d], shape[d], common, generator=s.g)
                t = t.to(s.pick([torch.int64, torch.int64, torch.int32]))
                if t.dim() == 2 and s.below(3) == 0:
                    t = t[:, :1]
                elif t.dim() == 2 and s.below(3) == 0:
                    t = t[0]
                indices.append(s.strided(t))
            else:
                indices.append(None)
            d += 1
        while indices and indices[-1] is None and s.below(2):
            indices.pop()
        if any(i is not None for i in indices):
            return indices
        common = [2]


def main(seed=1, scale=1.0, path=pathlib.Path(__file__).parents[1] / "data" / "indexing.cases"):
    s = Samples(seed)
    out = CaseWriter(path)
    n = lambda count: int(count * scale * 0.7)
    tensor = torch.tensor

    for _ in range(n(50)):
        x = s.sample(s.pick(COMMON), s.shape(max_size=4), special=0.3)
        x = torch.where(s.strided(s.values(torch.bool, x.shape)), x, torch.zeros((), dtype=x.dtype))
        x = s.strided(x)
        out.add("nonzero", aten.nonzero, x)
        out.add("nonzero_static", lambda a, k, f: aten.nonzero_static(a, size=k, fill_value=f), x, s.below(12),
                s.below(9) - 5)
    for shape in ([130], [3, 70], [200, 1], [5, 0, 2], [65, 2, 2]):
        for dtype in (torch.bool, torch.float16, torch.float32, torch.int64):
            x = s.values(dtype, shape) * s.values(torch.bool, shape)
            out.add("nonzero", aten.nonzero, x.to(dtype))
    out.add("nonzero_static", lambda a, k, f: aten.nonzero_static(a, size=k, fill_value=f), torch.ones(3), -1, 0,
            message="'size' must be an non-negative integer")

    for _ in range(n(50)):
        shape = s.shape(max_rank=3, max_size=5)
        x = s.sample(s.pick(COMMON), shape)
        mask = s.strided(s.values(torch.bool, shape))
        if shape and s.below(3) == 0:
            mask = mask.narrow(0, 0, min(1, shape[0]))
        elif shape and shape[0] and s.below(3) == 0:
            x = x[0]
        out.add("masked_select", aten.masked_select, x, mask)
        ones = int(mask.expand(torch.broadcast_shapes(x.shape, mask.shape)).sum())
        out.add("masked_scatter", aten.masked_scatter, x, mask, s.sample(x.dtype, [ones + s.below(3)]))
    long = s.values(torch.float32, [400])
    mask = torch.cat([torch.ones(150).bool(), s.values(torch.bool, [250])])
    out.add("masked_select", aten.masked_select, long, mask)
    out.add("masked_scatter", aten.masked_scatter, long, mask, long.flip(0))
    x = s.values(torch.float32, [3, 4])
    out.add("masked_select", aten.masked_select, x, torch.ones(4, dtype=torch.uint8), message="expected BoolTensor for mask")
    out.add("masked_select", aten.masked_select, x, torch.ones(5).bool(), message="The size of tensor a")
    out.add("masked_scatter", aten.masked_scatter, x, torch.ones(4).bool(), tensor([1.0]),
            message="Number of elements of source < number of ones in mask")
    out.add("masked_scatter", aten.masked_scatter, x, torch.ones(4).bool(), tensor([1]),
            message="masked_scatter: expected self and source to have same dtypes")
    out.add("masked_scatter", aten.masked_scatter, x, torch.ones(4, dtype=torch.uint8), x,
            message="masked_scatter_ only supports boolean masks")

    for _ in range(n(120)):
        shape = s.shape(max_size=4)
        if not shape:
            continue
        x = s.sample(s.pick(COMMON), shape)
        indices = index_list(s, shape)
        result = out.add("index_Tensor", aten.index, x, indices)
        value_shape = list(result.shape)
        if value_shape and s.below(3) == 0:
            d = s.below(len(value_shape))
            value_shape[d] = 1 if value_shape[d] else 0
        if value_shape and s.below(4) == 0:
            value_shape = value_shape[1:]
        if s.below(6) == 0:
            value_shape = []
        values = s.sample(x.dtype, value_shape, low=-3, high=3)
        if values.numel() == 1 and any(i is not None and i.dtype == torch.uint8 for i in indices):
            continue
        accumulate = bool(s.below(2))
        out.add("index_put", aten.index_put, x, indices, values, accumulate)
        target = s.strided(s.values(x.dtype, shape), ("packed", "permuted", "sliced", "offset"))
        out.add("index_put_out", lambda o, a, i, v, acc: aten.index_put_(o.copy_(a), i, v, acc), target, x, indices,
                values, accumulate, written=[0])
    x = s.values(torch.float32, [3, 4])
    many = torch.randint(0, 40, (1300,), generator=s.g)
    out.add("index_Tensor", aten.index, s.values(torch.int16, [40]), [many])
    out.add("index_put", aten.index_put, torch.zeros(40), [many], torch.arange(1300.0), False)
    out.add("index_put", aten.index_put, torch.zeros(40), [many], torch.ones(()), True)
    pair = [torch.randint(0, 6, (30, 2), generator=s.g).t(), torch.randint(0, 5, (30,), generator=s.g)]
    out.add("index_put", aten.index_put, torch.zeros(6, 5), pair, s.values(torch.float32, [30, 2]).t(), False)
    out.add("index_put", aten.index_put, torch.zeros(6, 5), pair, s.values(torch.float32, [2, 30]), False)
    byte = torch.ones(4, dtype=torch.uint8)
    for op, rest in (("index_Tensor", ()), ("index_put", (tensor(1.0), False))):
        f = aten.index if op == "index_Tensor" else aten.index_put
        for indices, message in (
                ([tensor([0])] * 3, "too many indices for tensor of dimension 2 (got 3)"),
                ([], "" if rest else "at least one index must be provided"),
                ([byte], "The shape of the mask [4] at index 0 does not match the shape of the indexed tensor [3, 4] at index 0"),
                ([None, torch.ones(3).bool()],
                 "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [3, 4] at index 1"),
                ([tensor([0, 1]), tensor([0, 1, 2])],
                 "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]"),
                ([None, tensor([1, 7])], "index 7 is out of bounds for dimension 0 with size 4"),
                ([tensor([0]), tensor([-5])], "index -5 is out of bounds for dimension 1 with size 4"),
                ([tensor([0.0])], "tensors used as indices must be long, int, byte or bool tensors"),
                ([tensor([0], dtype=torch.int16)], "tensors used as indices must be long, int, byte or bool tensors")):
            out.add(op, f, x, indices, *rest, message=message)
    out.add("index_Tensor", aten.index, torch.empty(0, 3), [tensor([0])],
            message="index is out of bounds for dimension with size 0")
    out.add("index_Tensor", aten.index, torch.empty(0, 3), [torch.empty(0, dtype=torch.int64)])
    out.add("index_put", aten.index_put, x, [tensor([0])], tensor(1), False,
            message="Index put requires the source and destination dtypes match")
    out.add("index_put", aten.index_put, x, [tensor([0, 1])], torch.ones(3), False,
            message="shape mismatch: value tensor of shape [3] cannot be broadcast to indexing result of shape [2, 4]")

    for dtype in (torch.int64, torch.int32, torch.uint8, torch.int16):
        for count in (0, 1, 5, 30):
            r = s.sample(dtype, [count], low=0, high=4)
            out.add("repeat_interleave_Tensor", lambda a, k: aten.repeat_interleave(a, output_size=k), r,
                    s.pick([None, int(r.sum())]))
    for r, k, message in ((tensor([[1]]), None, "repeat_interleave only accept 1D vector as repeat"),
                          (tensor([1, -1]), None, "repeats can not be negative"),
                          (tensor([1, 2]), 5, "allocated size does not match required size"),
                          (tensor([1.0]), None, "not implemented for")):
        out.add("repeat_interleave_Tensor", lambda a, b: aten.repeat_interleave(a, output_size=b), r, k, message=message)

    for _ in range(n(60)):
        shape = s.shape(max_rank=5, max_size=3)
        if not shape:
            continue
        d = s.below(len(shape))
        dtype = s.pick(COMMON)
        tensors = []
        for _ in range(1 + s.below(4)):
            part = list(shape)
            part[d] = s.below(4)
            t = s.values(dtype if s.below(3) else s.pick(COMMON), part)
            if len(part) in (4, 5) and s.below(2):
                t = t.to(memory_format=torch.channels_last if len(part) == 4 else torch.channels_last_3d)
            else:
                t = s.strided(t)
            tensors.append(t)
            if s.below(6) == 0:
                tensors.append(torch.empty(0, dtype=dtype))
        out.add("cat", aten.cat, tensors, d - s.pick([0, len(shape)]))
    for shape in ([2, 3, 4, 5], [2, 1, 4, 5], [1, 3, 1, 1], [2, 3, 1, 1]):
        t = s.values(torch.float32, shape).to(memory_format=torch.channels_last)
        for d in (0, 1, -1):
            out.add("cat", aten.cat, [t, t], d)
    out.add("cat", aten.cat, [s.values(torch.int16, [50, 3]), s.values(torch.int16, [50, 1])], 1)
    for tensors, d, message in (([x, torch.zeros(2, 3)], 0,
                                 "Sizes of tensors must match except in dimension 0. Expected size 4 but got size 3 for tensor number 1 in the list."),
                                ([x, torch.zeros(2, 4, 1)], 0, "Tensors must have same number of dimensions: got 2 and 3"),
                                ([tensor(1.0)], 0, "zero-dimensional tensor (at position 0) cannot be concatenated"),
                                ([x, x], 2, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
                                ([], 0, "expected a non-empty list of Tensors"),
                                ([x, x.to(torch.float8_e5m2)], 0, "not supported")):
        out.add("cat", aten.cat, tensors, d, message=message)
    out.close()


if __name__ == "__main__":
    a = sys.argv[1:]
    main(*([int(a[0])] if a else []), *([float(a[1])] if len(a) > 1 else []), *a[2:3])
