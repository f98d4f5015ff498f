"""Writes operator cases that tests/cpu/case_file.cpp reads. Needs torch.

A file is a sequence of cases, little-endian:
  case     text op, f64 tolerance, u8 count, value * count, results
  results  u8 count, (i8 argument or -1, tensor) * count    or  u8 255, text: part of the error message
  value    'T' tensor | 'A' u8 earlier argument, view | 'I' i64 | 'D' f64 | 'C' f64 f64 | 'B' u8 | 'S' text | 'L' u16 count,
           value * count | 'N'
  tensor   i8 dtype (c10::ScalarType), u8 rank, i32 sizes, i32 strides, u32 offset, u32 bytes, bytes of the storage
  view     u8 rank, i32 sizes, i32 strides, u32 offset
  text     u16 bytes, bytes
"""
import struct

import torch

DTYPES = {
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5,
    torch.float32: 6, torch.float64: 7, torch.complex32: 8, torch.complex64: 9, torch.complex128: 10, torch.bool: 11,
    torch.bfloat16: 15, torch.float8_e5m2: 23, torch.float8_e4m3fn: 24, torch.float8_e5m2fnuz: 25,
    torch.float8_e4m3fnuz: 26, torch.uint16: 27, torch.uint32: 28, torch.uint64: 29, torch.float8_e8m0fnu: 44,
}


def text(value):
    data = value.encode()
    return struct.pack("<H", len(data)) + data


def view(t):
    return struct.pack(f"<B{2 * t.dim()}iI", t.dim(), *t.shape, *t.stride(), t.storage_offset())


def tensor(t):
    data = bytes(t.untyped_storage().tolist())
    return (struct.pack(f"<bB{2 * t.dim()}iII", DTYPES[t.dtype], t.dim(), *t.shape, *t.stride(), t.storage_offset(),
                        len(data)) + data)


def value(v, earlier=()):
    if v is None:
        return b"N"
    if isinstance(v, torch.Tensor):
        for i, other in enumerate(earlier):
            if (isinstance(other, torch.Tensor) and v.untyped_storage().nbytes() > 0 and v.dtype == other.dtype
                    and v.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()):
                return b"A" + struct.pack("<B", i) + view(v)
        return b"T" + tensor(v)
    if isinstance(v, bool):
        return b"B" + struct.pack("<B", v)
    if isinstance(v, int):
        return b"I" + struct.pack("<q", v)
    if isinstance(v, float):
        return b"D" + struct.pack("<d", v)
    if isinstance(v, complex):
        return b"C" + struct.pack("<dd", v.real, v.imag)
    if isinstance(v, str):
        return b"S" + text(v)
    return b"L" + struct.pack("<H", len(v)) + b"".join(value(x) for x in v)


class CaseWriter:
    """add() runs the operator on the arguments and writes what it did."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.counts = {}

    def add(self, op, function, *args, written=(), tolerance=0.0, message=None):
        """written: arguments that the operator changes. message: part of the error that must be raised."""
        head = text(op) + struct.pack("<dB", tolerance, len(args))
        for i, a in enumerate(args):
            head += value(a, args[:i])
        self.counts[op] = self.counts.get(op, 0) + 1
        if message is not None:
            try:
                function(*args)
            except (*RAISED, AssertionError) as e:
                assert message in str(e), f"{op}: PyTorch says: {e}"
            else:
                raise AssertionError(f"{op}: PyTorch did not raise {message!r}")
            self.file.write(head + struct.pack("<B", 255) + text(message))
            return None
        results = function(*args)
        tail = b""
        count = 0
        for i in written:
            tail += struct.pack("<b", i) + tensor(args[i])
            count += 1
        if not written:
            for r in (results,) if isinstance(results, torch.Tensor) else results:
                tail += struct.pack("<b", -1) + tensor(r)
                count += 1
        self.file.write(head + struct.pack("<B", count) + tail)
        return results

    def close(self):
        size = self.file.tell()
        self.file.close()
        print(f"{size} bytes, {self.counts}")


RAISED = (RuntimeError, IndexError, ValueError, NotImplementedError, TypeError)


def attempt(out, op, function, *args, message="", **more):
    """Adds the case whether or not PyTorch accepts it; message: part of the error where it does not."""
    try:
        function(*args)
    except RAISED:
        return out.add(op, function, *args, message=message)
    return out.add(op, function, *args, **more)


class Samples:
    """Draws tensors of every layout from one seed."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def below(self, n):
        return int(torch.randint(n, (), generator=self.g))

    def pick(self, items):
        return items[self.below(len(items))]

    def shape(self, max_rank=4, max_size=5, zero=True):
        low = 0 if zero and self.below(12) == 0 else 1
        return [low + self.below(max_size + 1 - low) for _ in range(self.below(max_rank + 1))]

    def values(self, dtype, shape, low=-9, high=9, special=0.0):
        """Small numbers with repeats; a share `special` of floats is infinite, NaN or a signed zero."""
        if dtype.is_complex:
            part = torch.float32 if dtype != torch.complex128 else torch.float64
            return torch.complex(self.values(part, shape, low, high, special),
                                 self.values(part, shape, low, high, special)).to(dtype)
        if dtype == torch.bool:
            return torch.randint(2, shape, generator=self.g).bool()
        if dtype.is_floating_point:
            x = torch.randint(8 * low, 8 * high + 1, shape, generator=self.g) / 8
            x = x + 0.001 * torch.randint(-3, 4, shape, generator=self.g)
            odd = torch.tensor([float("nan"), float("inf"), float("-inf"), 0.0, -0.0])
            chosen = odd[torch.randint(5, shape, generator=self.g)]
            return torch.where(torch.rand(shape, generator=self.g) < special, chosen, x).to(dtype)
        if not dtype.is_signed:
            low = 0
        return torch.randint(low, high + 1, shape, generator=self.g).to(dtype)

    def strided(self, t, layouts=("packed", "permuted", "sliced", "offset", "expanded")):
        """The same values in some other layout; "expanded" repeats the first row of a dimension."""
        layout = self.pick(layouts)
        n = t.dim()
        if layout == "permuted" and n > 1:
            order = torch.randperm(n, generator=self.g).tolist()
            back = [order.index(d) for d in range(n)]
            return t.permute(order).contiguous().permute(back)
        if layout == "sliced" and n > 0:
            d = self.below(n)
            shape = list(t.shape)
            shape[d] = shape[d] * 2 + 1
            big = torch.zeros(shape, dtype=t.dtype)
            index = [slice(None)] * n
            index[d] = slice(1, None, 2)
            small = big[tuple(index)]
            small.copy_(t)
            return small
        if layout == "offset":
            flat = torch.zeros(t.numel() + 3, dtype=t.dtype)
            out = flat[3:].view(t.shape)
            out.copy_(t)
            return out
        if layout == "expanded" and n > 0 and t.numel() > 0:
            d = self.below(n)
            return t.narrow(d, 0, 1).clone().expand(t.shape)
        return t.contiguous()

    def sample(self, dtype, shape, special=0.0, low=-9, high=9, **layouts):
        return self.strided(self.values(dtype, shape, low, high, special), **layouts)
