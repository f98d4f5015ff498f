#!/usr/bin/env python3
"""Writes trainer_pickles.json: pickles of CPU tensors as PyTorch makes them. Needs PyTorch; tests do not.

    python tests/server/make_trainer_pickles.py

Checks as well that trainer_pickles.py's stand-ins have the names and the order of arguments of this PyTorch.
"""
import base64
import inspect
import json
import pathlib
import pickle
import pickletools
import sys

import torch
from sglang_classes import FlattenedTensorMetadata
from torch.multiprocessing import reductions


def flat(tensors, as_bytes):
    parts = [t.flatten().view(torch.uint8) if as_bytes else t.flatten() for t in tensors.values()]
    metadata, at = [], 0
    for (name, t), part in zip(tensors.items(), parts):
        metadata.append(FlattenedTensorMetadata(name, t.shape, t.dtype, at, at + part.numel(), t.numel()))
        at += part.numel()
    return {"flattened_tensor": torch.cat(parts), "metadata": metadata}


def main():
    w, b = torch.full((4,), 6.0), torch.full((4,), 0.5)
    both = {"scale.w": w, "scale.b": b}
    wide = torch.tensor([[6.0, 1.0]] * 4)
    made = {f"protocol_{p}": pickle.dumps(list(both.items()), protocol=p) for p in (2, 3, 4, 5)}
    made |= {
        "parameters": pickle.dumps([(n, torch.nn.Parameter(t)) for n, t in both.items()]),
        "strided": pickle.dumps([("scale.w", wide[:, 0]), ("scale.b", b)]),
        "shared": pickle.dumps([("scale.w", torch.cat([w, b])[:4]), ("scale.b", torch.cat([w, b])[4:])]),
        "flat": pickle.dumps(flat(both, False)),
        "flat_bytes": pickle.dumps(flat(both, True)),
        "wrong_dtype": pickle.dumps([("scale.w", w.to(torch.bfloat16)), ("scale.b", b)]),
        "float8": pickle.dumps([("scale.w", w.to(torch.float8_e4m3fn)), ("scale.b", b)]),
        "unknown_name": pickle.dumps([("scale.x", w)]),
        "not_a_tensor": pickle.dumps([("scale.w", [1.0, 2.0])]),
        "sparse": pickle.dumps([("scale.w", w.to_sparse())]),
    }
    names = [p.name for p in inspect.signature(reductions.rebuild_cuda_tensor).parameters.values()]
    assert names == ["tensor_cls", "tensor_size", "tensor_stride", "tensor_offset", "storage_cls", "dtype",
                     "storage_device", "storage_handle", "storage_size_bytes", "storage_offset_bytes", "requires_grad",
                     "ref_counter_handle", "ref_counter_offset", "event_handle", "event_sync_required"], names
    for name in ("rebuild_tensor", "rebuild_typed_storage", "rebuild_storage_filename", "rebuild_storage_fd"):
        assert getattr(reductions, name).__module__ == "torch.multiprocessing.reductions"
    texts = [a for op, a, _ in pickletools.genops(pickle.dumps((torch.float32, torch.Size([2])))) if isinstance(a, str)]
    assert set(texts) == {"torch", "float32", "Size"}, texts
    path = pathlib.Path(__file__).with_name("trainer_pickles.json")
    path.write_text(json.dumps({k: base64.b64encode(v).decode() for k, v in made.items()}, indent=1) + "\n")
    print(f"{path.name}: {len(made)} pickles of torch {torch.__version__}")


if __name__ == "__main__":
    sys.exit(main())
