"""A state_dict as a safetensors file that exists only while it is sent, piece by piece, without a copy of the whole."""
import base64
import hashlib
import json
import struct
import sys

import numpy as np

from sconce._errors import InvalidArgument

PIECE = 8 << 20
_NAMES = {"bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "int32": "I32", "uint32": "U32",
          "int64": "I64", "uint64": "U64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
          "complex64": "C64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
          "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0",
          "float4_e2m1fn_x2": "F4"}


class _Array:
    def __init__(self, name, array):
        self.array = array if array.dtype.byteorder != ">" else array.astype(array.dtype.newbyteorder("<"))
        self.dtype, self.shape, self.bytes = self.array.dtype.name, list(array.shape), self.array.nbytes

    def pieces(self):
        if self.bytes:
            flat = np.ascontiguousarray(self.array).reshape(-1).view(np.uint8)
            for at in range(0, self.bytes, PIECE):
                yield memoryview(flat[at:at + PIECE])


class _TorchTensor:
    def __init__(self, name, tensor):
        if tensor.layout is not sys.modules["torch"].strided:
            raise InvalidArgument(f"{name}: a tensor of layout {tensor.layout} cannot be sent")
        if tensor.device.type == "meta":
            raise InvalidArgument(f"{name}: a tensor of device 'meta' has no values")
        self.tensor = tensor.detach()
        self.dtype, self.shape = str(tensor.dtype).removeprefix("torch."), list(tensor.shape)
        self.bytes = tensor.numel() * tensor.element_size()
        self.host = tensor.device.type == "cpu"

    def pieces(self):
        if not self.bytes:
            return
        torch = sys.modules["torch"]
        tensor = self.tensor.resolve_conj().resolve_neg()  # bits that say how to read the memory
        flat = tensor.contiguous().reshape(-1).view(torch.uint8)
        if self.host:
            whole = flat.numpy()
            for at in range(0, self.bytes, PIECE):
                yield memoryview(whole[at:at + PIECE])
            return
        # Two pinned buffers: while one is sent, the device fills the other.
        pinned = flat.device.type == "cuda"
        size = min(PIECE, self.bytes)
        buffers = [torch.empty(size, dtype=torch.uint8, pin_memory=pinned) for _ in range(2)]
        stream = torch.cuda.Stream(flat.device) if pinned else None
        if stream:
            stream.wait_stream(torch.cuda.current_stream(flat.device))

        def copied(index, at):
            part = flat[at:at + PIECE]
            buffer = buffers[index][:len(part)]
            if not stream:
                buffer.copy_(part)
                return buffer, None
            with torch.cuda.stream(stream):
                buffer.copy_(part, non_blocking=True)
                return buffer, stream.record_event()

        ahead = copied(0, 0)
        for index, at in enumerate(range(0, self.bytes, PIECE), 1):
            buffer, event = ahead
            if event:
                event.synchronize()
            if at + PIECE < self.bytes:
                ahead = copied(index % 2, at + PIECE)
            yield memoryview(buffer.numpy())


def _tensor(name, value):
    if not isinstance(name, str):
        raise InvalidArgument(f"the weights: expected names, got {name!r}")
    if "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor):
        return _TorchTensor(name, value)
    if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        value = np.from_dlpack(value)
    array = np.asarray(value)
    if not hasattr(value, "__array__"):
        raise InvalidArgument(f"{name}: expected an array or a tensor, got {type(value).__name__}")
    return _Array(name, array)


def _written_shape(name, tensor):
    """safetensors counts the two numbers in a byte of float4 one by one, torch counts bytes."""
    if tensor.dtype != "float4_e2m1fn_x2":
        return tensor.shape
    if not tensor.shape:
        raise InvalidArgument(f"{name}: a tensor of dtype {tensor.dtype} without dimensions cannot be sent")
    return [*tensor.shape[:-1], 2 * tensor.shape[-1]]


class Weights:
    """The encoded file: bytes is its size, pieces() its content. The tensors must not change while it is sent."""

    def __init__(self, state_dict):
        if not hasattr(state_dict, "items"):
            raise InvalidArgument(f"weights: expected a mapping of names to tensors, got {type(state_dict).__name__}")
        self.tensors, header, at = [], {}, 0
        for name, value in state_dict.items():
            tensor = _tensor(name, value)
            if tensor.dtype not in _NAMES:
                raise InvalidArgument(f"{name}: a tensor of dtype {tensor.dtype} cannot be sent")
            header[name] = {"dtype": _NAMES[tensor.dtype], "shape": _written_shape(name, tensor),
                            "data_offsets": [at, at + tensor.bytes]}
            at += tensor.bytes
            self.tensors.append(tensor)
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        self.head = struct.pack("<Q", len(text)) + text
        self.bytes = len(self.head) + at

    def pieces(self):
        yield memoryview(self.head)
        for tensor in self.tensors:
            yield from tensor.pieces()

    def content_digest(self):
        """The value of a Content-Digest field."""
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return "sha-256=:" + base64.b64encode(digest.digest()).decode() + ":"
