#!/usr/bin/env python3
"""CUDA operators through the C ABI against PyTorch's own on the same tensors: against_torch.py LIBRARY_FOLDER [--times] [NAME...]

Needs a GPU and torch with CUDA. --times: what they take instead (operator_times.py). Every case runs, whatever fails; one line each, a summary, and 1 where one failed.
Functions are called as the header of the installed torch declares them.
"""
import ctypes
import os
import re
import sys
import time
import traceback

import torch

folder = os.path.abspath(sys.argv[1])
times = "--times" in sys.argv
chosen = [a for a in sys.argv[2:] if a != "--times"]
host = ctypes.CDLL(os.path.join(folder, "libsconce.so.0"), mode=os.RTLD_LOCAL | os.RTLD_NOW)
cuda = ctypes.CDLL(os.path.join(folder, "libsconcecu.so.0"), mode=os.RTLD_LOCAL | os.RTLD_NOW)
include = os.path.join(os.path.dirname(torch.__file__), "include/torch/csrc/inductor/aoti_torch")
header = open(os.path.join(include, "generated/c_shim_cuda.h")).read()
signatures = {m[1]: [p.strip() for p in m[2].split(",")]
              for m in re.finditer(r"AOTITorchError aoti_torch_cuda_(\w+)\(([^)]*)\);", header)}
DTYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64,
          torch.complex32, torch.complex64, torch.complex128, torch.bool]
NUMBER = {t: i for i, t in enumerate(DTYPES)} | {torch.bfloat16: 15, torch.float8_e5m2: 23, torch.float8_e4m3fn: 24,
                                                 torch.uint16: 27, torch.uint32: 28, torch.uint64: 29}
TYPE = {n: t for t, n in NUMBER.items()}
error_text = host._ZN6sconce4shim10error_textEv
error_text.restype = ctypes.c_char_p
take_error = host._ZN6sconce4shim10take_errorEv  # writes a std::optional of it, whose text is lost here
taken = ctypes.create_string_buffer(256)
new = ctypes.CDLL("libstdc++.so.6")._Znwm
new.restype = ctypes.c_void_p


class Failed(Exception):
    pass


class Missing(Exception):
    """The installed torch declares no such function."""


def check(rc, name):
    if rc:
        text = error_text().decode(errors="replace")
        take_error(taken)
        raise Failed(f"{name}: {text}")


def ints(values):
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def handle(t):
    out = ctypes.c_void_p()
    device = (1, t.device.index) if t.is_cuda else (0, -1)
    storage = t.untyped_storage()
    check(host.aoti_torch_create_tensor_from_blob_v2(
        ctypes.c_void_p(storage.data_ptr()), ctypes.c_int64(t.dim()), ints(t.shape), ints(t.stride()),
        ctypes.c_int64(t.storage_offset()), ctypes.c_int32(NUMBER[t.dtype]), ctypes.c_int32(device[0]),
        ctypes.c_int32(device[1]), ctypes.byref(out), ctypes.c_int32(0), None, ctypes.c_int64(0)), "from_blob")
    return out


class Bytes:
    def __init__(self, address, count):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (address, False), "version": 3}


def tensor(h):
    if not h.value:
        return None
    dims, dtype, kind = ctypes.c_int64(), ctypes.c_int32(), ctypes.c_int32()
    check(host.aoti_torch_get_dim(h, ctypes.byref(dims)), "dim")
    check(host.aoti_torch_get_dtype(h, ctypes.byref(dtype)), "dtype")
    check(host.aoti_torch_get_device_type(h, ctypes.byref(kind)), "device")
    sizes, strides = ctypes.POINTER(ctypes.c_int64)(), ctypes.POINTER(ctypes.c_int64)()
    check(host.aoti_torch_get_sizes(h, ctypes.byref(sizes)), "sizes")
    check(host.aoti_torch_get_strides(h, ctypes.byref(strides)), "strides")
    data = ctypes.c_void_p()
    check(host.aoti_torch_get_data_ptr(h, ctypes.byref(data)), "data")
    shape, stride = list(sizes[:dims.value]), list(strides[:dims.value])
    t = TYPE[dtype.value]
    count = 0 if 0 in shape else (1 + sum((n - 1) * s for n, s in zip(shape, stride))) * t.itemsize
    if count == 0:
        result = torch.empty_strided(shape, stride, dtype=t, device="cuda")
    elif kind.value == 0:
        result = torch.frombuffer(bytearray(ctypes.string_at(data.value, count)), dtype=torch.uint8).view(t).as_strided(
            shape, stride)
    else:
        torch.cuda.synchronize()
        result = torch.as_tensor(Bytes(data.value, count), device="cuda").clone().view(t).as_strided(shape, stride)
    host.aoti_torch_delete_tensor_object(h)
    return result


def call(name, *arguments, fetch=True):
    """arguments as the schema has them; None for what is optional. Results in a list; without fetch none, nor a wait."""
    if name not in signatures:
        raise Missing(name)
    parameters = signatures[name]
    given, keep, converted, results, owned = list(arguments), [], [], [], []
    at = 0

    def hold(c_value):
        keep.append(c_value)
        return ctypes.byref(c_value)

    while at < len(parameters):
        kind, label = parameters[at].rsplit(" ", 1)
        at += 1
        if re.fullmatch(r"\*?ret\d+", label) or re.fullmatch(r"ret\d+", label):
            out = ctypes.c_void_p() if "Handle" in kind else ctypes.c_int64()
            results.append(out)
            converted.append(ctypes.byref(out))
            continue
        value = given.pop(0)
        has_length = at < len(parameters) and parameters[at].endswith("_len_")
        if "AtenTensorHandle" in kind:
            if has_length:
                at += 1
                handles = [None if t is None else handle(t) for t in value]
                owned += [h for h in handles if h]
                if kind.count("*") == 2:
                    pointers = (ctypes.c_void_p * max(len(handles), 1))()
                    for i, h in enumerate(handles):
                        pointers[i] = None if h is None else ctypes.addressof(h)
                    keep.append((handles, pointers))
                else:
                    pointers = (ctypes.c_void_p * max(len(handles), 1))(*[h.value for h in handles])
                    keep.append(pointers)
                converted += [pointers, ctypes.c_int64(len(handles))]
                continue
            if value is None:
                converted.append(None)
                continue
            h = handle(value)
            owned.append(h)
            converted.append(ctypes.byref(h) if "*" in kind else h)
        elif "AtenGeneratorHandle" in kind:
            converted.append(None)
        elif has_length:
            at += 1
            element = ctypes.c_int32 if "int32" in kind else ctypes.c_double if "double" in kind else ctypes.c_int64
            if value is None:
                converted += [None, ctypes.c_int64(0)]
                continue
            array = (element * max(len(value), 1))(*value)
            keep.append(array)
            if kind.count("*") == 2:
                pointer = ctypes.cast(array, ctypes.c_void_p)
                keep.append(pointer)
                converted += [ctypes.byref(pointer), ctypes.c_int64(len(value))]
            else:
                converted += [array, ctypes.c_int64(len(value))]
        elif "char" in kind:
            text = None if value is None else ctypes.c_char_p(value.encode())
            if kind.count("*") == 2 and text is not None:
                text = hold(text)
            converted.append(text)
        elif label == "device":
            at += 1
            converted += [None, ctypes.c_int32(0)] if value is None else [hold(ctypes.c_int32(1)), ctypes.c_int32(0)]
        else:
            if isinstance(value, torch.dtype):
                value = NUMBER[value]
            element = ctypes.c_double if "double" in kind else ctypes.c_int32 if "int32" in kind else ctypes.c_int64
            if "*" in kind:
                converted.append(None if value is None else hold(element(value)))
            else:
                converted.append(element(value))
    if given:
        raise Failed(f"{name}: {len(given)} arguments too many")
    check(getattr(cuda, "aoti_torch_cuda_" + name)(*converted), name)
    if fetch:
        torch.cuda.synchronize()
        tensors = [tensor(r) if isinstance(r, ctypes.c_void_p) else r.value for r in results]
    else:
        tensors = []
        for r in results:
            if isinstance(r, ctypes.c_void_p) and r.value:
                host.aoti_torch_delete_tensor_object(r)
    for h in owned:
        host.aoti_torch_delete_tensor_object(h)
    return tensors


def name_of(dtype):
    return str(dtype).split(".")[1]


def call_named(name, overload, *arguments, fetch=True, **options):
    """An operator called by name; the rest of its arguments are the schema's defaults. Results as call() has them."""
    packet = getattr(torch.ops.aten, name)
    schema = getattr(packet, overload or "default")._schema
    values = []
    for i, argument in enumerate(schema.arguments):
        kind = str(argument.type)
        value = (arguments[i] if i < len(arguments) else options.pop(argument.name) if argument.name in options
                 else argument.default_value)
        if value is None:
            values.append(0)
        elif isinstance(value, torch.Tensor):
            values.append(handle(value).value)  # the call takes it
        elif isinstance(value, str):
            text = ctypes.c_void_p()
            data = value.encode()
            check(host.torch_new_string_handle(data, ctypes.c_size_t(len(data)), ctypes.byref(text)), "string")
            values.append(text.value)
        elif isinstance(value, (list, tuple)):
            made = ctypes.c_void_p()
            check(host.torch_new_list_reserve_size(ctypes.c_size_t(len(value)), ctypes.byref(made)), "list")
            for item in value:
                check(host.torch_list_push_back(made, ctypes.c_uint64(item & (1 << 64) - 1)), "push")
            values.append(made.value)
        elif "float" in kind.lower() or "number" in kind.lower():
            values.append(ctypes.c_uint64.from_buffer_copy(ctypes.c_double(value)).value)
        else:
            values.append(int(value) & (1 << 64) - 1)
        if value is not None and "Optional" in kind:
            place = new(8)  # the call deletes it
            ctypes.c_uint64.from_address(place).value = values[-1]
            values[-1] = place
    if options:
        raise Failed(f"{name}: no arguments {list(options)}")
    count = max(len(values), len(schema.returns), 1)
    stack = (ctypes.c_uint64 * count)(*values)
    check(host.aoti_torch_call_dispatcher(f"aten::{name}".encode(), overload.encode(), stack), name)
    results = [ctypes.c_void_p(stack[i]) for i in range(len(schema.returns))]
    if not fetch:
        for made in results:
            if made.value:
                host.aoti_torch_delete_tensor_object(made)
        return []
    torch.cuda.synchronize()
    return [tensor(made) for made in results]


def seed(n):
    torch.manual_seed(n)
    host._ZN6sconce11manual_seedEm(ctypes.c_uint64(n))


def differ(got, expected, rtol, atol, strides=True):
    if expected is None or got is None:
        return None
    if not isinstance(expected, torch.Tensor):
        return None if got == expected else f"{got} for {expected}"
    if got.dtype != expected.dtype or list(got.shape) != list(expected.shape):
        return f"{got.dtype} {list(got.shape)} for {expected.dtype} {list(expected.shape)}"
    wanted = [s for s, n in zip(expected.stride(), expected.shape) if n > 1]
    if strides and expected.numel() and [s for s, n in zip(got.stride(), got.shape) if n > 1] != wanted:
        return f"strides {got.stride()} for {expected.stride()}"
    if expected.numel() == 0:
        return None
    a, b = got.to(expected.device), expected
    if a.is_complex():
        a, b = (torch.view_as_real(x.to(torch.complex128).resolve_conj()) for x in (a, b))
    if not a.is_floating_point():
        wrong = (a != b)
        return f"{int(wrong.sum())} of {wrong.numel()} differ" if bool(wrong.any()) else None
    a, b = a.double(), b.double()
    both = (a == b) | (a.isnan() & b.isnan())
    wrong = ~(both | ((a - b).abs() <= atol + rtol * b.abs()))
    if not bool(wrong.any()):
        return None
    first = tuple(wrong.nonzero()[0].tolist())
    return (f"{int(wrong.sum())} of {wrong.numel()} differ, at {first}: {float(a[first])} for {float(b[first])}, "
            f"at most {float((a - b).abs().nan_to_num(posinf=0).max())}")


passed, failed = [], []


def case(label, run, expect, rtol=0.0, atol=0.0, strides=True, judge=None):
    """run() against expect(); where they differ, judge() says what PyTorch makes of it on the CPU, which may be ours."""
    if chosen and not any(c in label for c in chosen):
        return
    try:
        expected = expect()
        expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
        got = list(run())
        if len(got) < len(expected):
            raise Failed(f"{len(got)} results for {len(expected)}")
        for i, (g, e) in enumerate(zip(got, expected)):
            if text := differ(g, e, rtol, atol, strides):
                if judge is None or differ(g, judge()[i].cuda(), rtol, atol, False):
                    raise Failed(f"result {i}: {text}")
                print("cpu ", label, "- as PyTorch on the CPU; on the device:", text, flush=True)
        passed.append(label)
        print("ok  ", label, flush=True)
    except (Missing, NotImplementedError):  # not ours, not PyTorch's
        print("none", label, flush=True)
    except Exception as error:  # noqa: BLE001  (the next case must run)
        failed.append(label)
        print("FAIL", label, "-", type(error).__name__ + ":", str(error).replace("\n", " ")[:400], flush=True)


FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)
sys.modules["against_torch"] = sys.modules[__name__]

started = time.time()
print("torch", torch.__version__, torch.cuda.get_device_name(), flush=True)
if times:
    import operator_times
    operator_times.run()
    sys.exit(0)
import attention_cases  # noqa: E402
import elementwise_cases  # noqa: E402
import gradient_cases  # noqa: E402
import library_cases  # noqa: E402
import named_cases  # noqa: E402
import order_cases  # noqa: E402
import torch_cases  # noqa: E402
for family in (torch_cases, elementwise_cases, gradient_cases, attention_cases, library_cases, named_cases, order_cases):
    begun = time.time()
    try:
        family.run()
    except Exception:  # noqa: BLE001  (a case that cannot even be made)
        failed.append(family.__name__)
        print("FAIL", family.__name__, traceback.format_exc().replace("\n", " ")[-600:], flush=True)
    print(f"time of {family.__name__}: {time.time() - begun:.0f} s", flush=True)
print(f"{len(passed)} passed, {len(failed)} failed, {time.time() - started:.0f} s")
for label in failed:
    print("  failed:", label)
sys.exit(1 if failed else 0)
