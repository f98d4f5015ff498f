"""What trainers send to the admin port, built as SGLang, vLLM and Sconce's own route have it.

Each function takes post(path, body), named tensors and the version's label, and pushes. Tensors of a GPU travel as CUDA IPC
handles; SGLang's forms take tensors of the CPU too.
"""
import base64
import io
import pathlib
import pickle
import sys
import time
from multiprocessing.reduction import ForkingPickler

import torch
from torch.multiprocessing.reductions import reduce_tensor

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "server"))
from sglang_classes import FlattenedTensorMetadata


class WithUuid:
    """A tensor as SGLang's patched reductions send it: the device is its UUID."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        function, arguments = reduce_tensor(self.tensor)
        return function, (*arguments[:6], uuid_of(self.tensor), *arguments[7:])


def uuid_of(tensor):
    return str(torch.cuda.get_device_properties(tensor.device).uuid)


def dumps(value):
    buffer = io.BytesIO()
    ForkingPickler(buffer).dump(value)
    return base64.b64encode(buffer.getvalue()).decode()


def push_sglang(post, named, version):
    listed = [(name, WithUuid(t) if t.is_cuda else t) for name, t in named]
    post("/update_weights_from_tensor", {"serialized_named_tensors": [dumps(listed)], "load_format": None,
                                         "flush_cache": False, "weight_version": version})


def push_sglang_bucket(post, named, version):
    """Returns the seconds of the request: making the bucket is the trainer's."""
    metadata, at = [], 0
    flat = torch.cat([t.flatten() for _, t in named])
    for name, t in named:
        metadata.append(FlattenedTensorMetadata(name, t.shape, t.dtype, at, at + t.numel(), t.numel()))
        at += t.numel()
    begin = time.perf_counter()
    post("/update_weights_from_tensor", {"serialized_named_tensors": [dumps({"flattened_tensor": flat, "metadata": metadata})],
                                         "load_format": "flattened_bucket", "weight_version": version})
    return time.perf_counter() - begin


def update_info(named):
    return {"update_info": {"names": [n for n, _ in named], "dtype_names": [str(t.dtype).split(".")[-1] for _, t in named],
                            "shapes": [list(t.shape) for _, t in named],
                            "ipc_handles_pickled": base64.b64encode(pickle.dumps(
                                [{uuid_of(t): reduce_tensor(t)} for _, t in named])).decode()}}


def push_vllm(post, named, version, parts=4):
    post("/init_weight_transfer_engine", {"init_info": {}})
    post("/pause?mode=keep", b"")
    post("/start_weight_update", {})
    step = -(-len(named) // parts)
    for i in range(0, len(named), step):
        post("/update_weights", update_info(named[i:i + step]))
    post("/finish_weight_update", {"weight_version": version})
    post("/resume", b"")


def handles(named):
    """The body of POST .../weights: each tensor's memory as a CUDA IPC handle."""
    torch.cuda.synchronize()
    tensors = []
    for name, t in named:
        _, _, _, _, _, dtype, _, handle, _, start, *_ = reduce_tensor(t)[1]
        tensors.append({"name": name, "dtype": str(dtype).split(".")[-1], "shape": list(t.shape), "device": uuid_of(t),
                        "offset": start + t.storage_offset() * t.element_size(),
                        "handle": base64.b64encode(handle[-64:]).decode()})
    return {"tensors": tensors}


def push_own(post, named, version, model="m"):
    post(f"/v2/admin/models/{model}/weights?label={version}&commit=true", handles(named))
