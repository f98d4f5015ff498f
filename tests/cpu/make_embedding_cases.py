"""Writes tests/data/embedding.cases: python tests/cpu/make_embedding_cases.py [seed [cases [file]]]"""
import pathlib
import sys

import torch
from case_writer import CaseWriter, Samples

aten = torch.ops.aten
TOLERANCE = {torch.float32: 4e-6, torch.float64: 1e-14, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
OPS = {"_embedding_bag": aten._embedding_bag, "_embedding_bag_forward_only": aten._embedding_bag_forward_only}


def main(seed=1, count=60, path=pathlib.Path(__file__).parents[1] / "data" / "embedding.cases"):
    s = Samples(seed)
    out = CaseWriter(path)

    def call(op):
        def run(weight, indices, offsets, mode, scales, last, padding):
            results = list(OPS[op](weight, indices, offsets, False, mode, False, scales, last, padding))
            if mode == 0:  # PyTorch leaves these results uninitialised
                results[2:] = [torch.zeros_like(t) for t in results[2:]]
            return results

        return run

    # Indices and offsets are contiguous, because PyTorch misreads strided ones.
    for i in range(count):
        for op in OPS:
            mode = i % 3
            dtype = s.pick([torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16])
            rows = 1 + s.below(9)
            weight = s.strided(s.values(dtype, [rows, s.pick([1, 3, 8, 17, 70])], special=0.02 if mode == 2 else 0.0),
                               ("packed", "packed", "permuted", "sliced", "offset"))
            n, last = s.below(s.pick([3, 12, 30])), bool(s.below(3) == 0)
            indices = torch.randint(rows, (n,), generator=s.g)
            bags = s.below(5) + 1
            cuts = torch.randint(n + 1, (bags - 1,), generator=s.g).sort()[0]
            offsets = torch.cat([torch.zeros(1, dtype=torch.int64), cuts])
            if last:
                offsets = torch.cat([offsets, torch.tensor([n if s.below(2) else int(offsets[-1])])])
            indices = indices.to(s.pick([torch.int64, torch.int32]))
            offsets = offsets.to(s.pick([torch.int64, torch.int32]))
            scales = s.strided(s.values(dtype, [n], -3, 3), ("packed", "sliced")) if mode == 0 and s.below(2) else None
            out.add(op, call(op), weight, indices, offsets, mode, scales, last, s.pick([-1, -1, s.below(rows)]),
                    tolerance=TOLERANCE[dtype])
    w, empty = torch.ones(4, 3), torch.zeros(0, dtype=torch.int64)
    for mode in (0, 1, 2):
        for op in OPS:
            out.add(op, call(op), w, empty, torch.tensor([0, 0]), mode, None, False, -1)
            out.add(op, call(op), w, empty, empty, mode, None, False, -1)
    out.add("_embedding_bag", call("_embedding_bag"), w, torch.tensor([0, 1], dtype=torch.int16), torch.tensor([0]), 1, None,
            False, -1)
    op, some, start = "_embedding_bag", torch.tensor([0, 1]), torch.tensor([0])
    for args, message in (((w[0], some, start, 0, None, False, -1), "weight has to be a 2D Tensor"),
                          ((w.int(), some, start, 0, None, False, -1), ""),
                          ((w, some.short(), start.short(), 0, None, False, -1), ""),
                          ((w, some.float(), start, 0, None, False, -1), ""),
                          ((w, some, start, 3, None, False, -1), "`mode` must be sum, mean, or max"),
                          ((w, some, start, 1, torch.ones(2), False, -1), "per_sample_weights only supported with mode='sum'"),
                          ((w, some, start, 0, torch.ones(2, dtype=torch.float64), False, -1), ""),
                          ((w, some, start, 0, torch.ones(3), False, -1), ""),
                          ((w, torch.tensor([0, 4]), start, 2, None, False, -1), "found idx to be 4"),
                          ((w, torch.tensor([0, -1]), start, 0, None, False, -1), ""),
                          ((w, some, torch.tensor([1]), 0, None, False, -1), "offsets[0] has to be 0"),
                          ((w, some, torch.tensor([0, 3]), 1, None, False, -1), "offsets[-1] can not be greater"),
                          ((w, some, torch.tensor([0, 2, 1]), 0, None, False, -1), "")):
        out.add(op, call(op), *args, message=message)
    out.close()


if __name__ == "__main__":
    main(*[int(a) if a.isdigit() else a for a in sys.argv[1:]])
