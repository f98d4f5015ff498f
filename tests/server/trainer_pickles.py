"""Pickles as trainers send them, with made-up CUDA handles, made without PyTorch: by stand-ins with its names.

make_trainer_pickles.py makes those of CPU tensors with PyTorch itself, and compares these stand-ins with its functions.
"""
import base64
import contextlib
import io
import math
import os
import pathlib
import pickle
import struct
import sys
import types
import uuid

from sglang_classes import FlattenedTensorMetadata, LocalSerializedTensor  # noqa: F401, for those who import this

UUIDS = ["00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001"]  # of fake_cuda.cpp's devices
COUNTERS = 10000  # counters per object
HEADER = 64  # bytes, of PyTorch's shared-memory objects


class Named:
    """Pickled as a name: a dtype, a class."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __reduce__(self):
        return self.name

    @property
    def __module__(self):
        return self.module


def function(module, name):
    def stand_in(*_):
        raise AssertionError("nothing is called")
    stand_in.__module__, stand_in.__qualname__, stand_in.__name__ = module, name, name
    return stand_in


REDUCTIONS = "torch.multiprocessing.reductions"
REBUILD = function(REDUCTIONS, "rebuild_cuda_tensor")
REBUILD_SGLANG = function("sglang.srt.utils.patch_torch", "_rebuild_cuda_tensor_modified")
REBUILD_FD = function(REDUCTIONS, "rebuild_storage_fd")
REBUILD_FILE = function(REDUCTIONS, "rebuild_storage_filename")
REBUILD_TENSOR = function(REDUCTIONS, "rebuild_tensor")
REBUILD_TYPED = function(REDUCTIONS, "rebuild_typed_storage")
PARAMETER = function("torch._utils", "_rebuild_parameter")
DTYPES = {name: Named("torch", name) for name in
          ("float32", "bfloat16", "uint8", "int64", "float16", "bool", "float64", "float8_e4m3fn")}
TENSOR, TYPED, UNTYPED = Named("torch", "Tensor"), Named("torch.storage", "TypedStorage"), Named("torch.storage",
                                                                                                "UntypedStorage")


class Size(tuple):
    def __reduce__(self):
        return Size, (tuple(self),)


Size.__module__ = "torch"


@contextlib.contextmanager
def names():
    """While it lasts, pickle finds the stand-ins under PyTorch's and SGLang's names."""
    stand_ins = [REBUILD, REBUILD_SGLANG, REBUILD_FD, REBUILD_FILE, REBUILD_TENSOR, REBUILD_TYPED, PARAMETER, Size]
    modules = {}
    for thing in [*stand_ins, *DTYPES.values(), TENSOR, TYPED, UNTYPED]:
        module = modules.setdefault(thing.__module__, types.ModuleType(thing.__module__))
        setattr(module, thing.name if isinstance(thing, Named) else thing.__qualname__, thing)
    for name in list(modules):
        while name := name.rpartition(".")[0]:
            modules.setdefault(name, types.ModuleType(name))
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def dumps(value, protocol=4):
    file = io.BytesIO()
    with names():
        pickle.Pickler(file, protocol).dump(value)
    return base64.b64encode(file.getvalue()).decode()


def row_major(shape):
    return tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))


class Counters:
    """A shared-memory object with the reference counters of what a trainer shares."""

    def __init__(self):
        self.name = f"/torch_{os.getpid()}_{uuid.uuid4().hex[:8]}_0"
        self.path = pathlib.Path("/dev/shm" + self.name)
        self.path.write_bytes(bytes(HEADER + 8 * COUNTERS))
        self.used = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.path.unlink()

    def new(self):
        place, self.used = self.used, self.used + 1
        with open(self.path, "r+b") as file:
            file.seek(HEADER + 8 * place)
            file.write(struct.pack("<q", 1))
        return place

    def values(self):
        return list(struct.unpack(f"<{self.used}q", self.path.read_bytes()[HEADER:HEADER + 8 * self.used]))


class CudaTensor:
    """A tensor in memory of a device, which is pickled as PyTorch pickles it."""

    def __init__(self, memory, shape, dtype="float32", offset=0, strides=None, size=None, start=0, device=0,
                 counters=None, event=None, rebuild=REBUILD, prefix=b"\x02c", requires_grad=False):
        place = counters.new() if counters else 0
        handle = prefix + base64.b64decode(memory.handle)
        self.rebuild = rebuild
        self.arguments = (TENSOR, Size(shape), row_major(shape) if strides is None else tuple(strides), offset, TYPED,
                          DTYPES[dtype], device, handle, len(memory.map) - start if size is None else size, start,
                          requires_grad, counters.name.encode() if counters else b"", place,
                          event or bytes(64), event is not None)

    def __reduce__(self):
        return self.rebuild, self.arguments

    def reduced(self):
        """What torch.multiprocessing.reductions.reduce_tensor() returns."""
        return self.rebuild, self.arguments


def bucket(flat, parts, dtype="float32", start=0):
    """SGLang's flat bucket: parts are (name, shape, elements)."""
    metadata = []
    for name, shape, dtype_name, count in parts:
        metadata.append(FlattenedTensorMetadata(name, Size(shape), DTYPES[dtype_name], start, start + count,
                                                math.prod(shape)))
        start += count
    return {"flattened_tensor": flat, "metadata": metadata}


class FileTensor:
    """A tensor of the CPU in a shared-memory object, as PyTorch's strategy file_system pickles it."""

    def __init__(self, name, shape, dtype, bytes_of_storage, offset=0):
        self.shape, self.offset = shape, offset
        self.storage = Reduced(REBUILD_TYPED, (Reduced(REBUILD_FILE, (UNTYPED, b"/tmp/manager.sock", name.encode(),
                                                                      bytes_of_storage)), DTYPES[dtype]))

    def beside(self, shape, offset):
        """Another tensor of the same storage."""
        other = FileTensor("", shape, "float32", 0, offset)
        other.storage = self.storage
        return other

    def __reduce__(self):
        return REBUILD_TENSOR, (TENSOR, self.storage, (self.offset, Size(self.shape), row_major(self.shape), False))


class DescriptorTensor:
    """The same with the default strategy, file_descriptor."""

    def __reduce__(self):
        storage = Reduced(REBUILD_TYPED, (Reduced(REBUILD_FD, (UNTYPED, None, 16)), DTYPES["float32"]))
        return REBUILD_TENSOR, (TENSOR, storage, (0, Size((4,)), (1,), False))


class Reduced:
    def __init__(self, call, arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments
