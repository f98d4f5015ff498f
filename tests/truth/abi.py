"""The C ABI of libsconce and libsconce_cuda, called on torch tensors by ctypes. Needs torch and its headers.

    abi.open_libraries(FOLDER, "cpu" or "cuda")
    abi.call("mm_out", out, a, b)               # aoti_torch_DEVICE_mm_out, arguments as the installed torch declares them
    abi.call_named("topk", "", x, 3, -1, True)  # an operator by its name, as operator libraries call it
    abi.call_proxied("clamp", "", x, 1, None)   # by name as packages call it: numbers stay integer, bool or complex

Operators get views of torch's memory, so that they write in place; results are copied out.
"""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import subprocess
import tempfile

import torch

DTYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64,
          torch.complex32, torch.complex64, torch.complex128, torch.bool]
NUMBER = {t: i for i, t in enumerate(DTYPES)} | {torch.bfloat16: 15, torch.float8_e5m2: 23, torch.float8_e4m3fn: 24,
                                                 torch.float8_e5m2fnuz: 25, torch.float8_e4m3fnuz: 26, torch.float8_e8m0fnu: 44,
                                                 torch.uint16: 27, torch.uint32: 28, torch.uint64: 29}
TYPE = {n: t for t, n in NUMBER.items()}
FORMATS = [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d]
HEADERS = {"cpu": ["generated/c_shim_cpu.h", "c/shim_cpu.h", "generated/c_shim_aten.h", "c/shim.h"],
           "cuda": ["generated/c_shim_cuda.h", "generated/c_shim_aten.h"]}
library = {}       # "host", "cuda"
signatures = {}    # function name after aoti_torch_DEVICE_ -> parameters
device = "cpu"
taken = ctypes.create_string_buffer(256)
new = ctypes.CDLL("libstdc++.so.6")._Znwm
new.restype = ctypes.c_void_p


class Failed(Exception):
    """The operator returned an error, or something unexpected."""


class Missing(Exception):
    """The installed torch has no such function, or not on this CPU."""


@contextlib.contextmanager
def packing():
    """Draws nothing where PyTorch's oneDNN packs no weights of this dtype on this CPU, as half types without AVX-512."""
    try:
        yield
    except RuntimeError as error:
        if "primitive descriptor" not in str(error) and "needs the cpu support" not in str(error):
            raise
        raise Missing(str(error)) from None


def open_libraries(folder, kind):
    global device
    device = kind
    mode = os.RTLD_LOCAL | os.RTLD_NOW
    library["host"] = ctypes.CDLL(os.path.join(folder, "libsconce.so.0"), mode=mode)
    if kind == "cuda":
        library["cuda"] = ctypes.CDLL(os.path.join(folder, "libsconcecu.so.0"), mode=mode)
    library["host"]._ZN6sconce8aoti_abi10error_textEv.restype = ctypes.c_char_p
    include = os.path.join(os.path.dirname(torch.__file__), "include/torch/csrc/inductor/aoti_torch")
    for header in HEADERS[kind]:
        path = os.path.join(include, header)
        if os.path.exists(path):
            with open(path) as file:
                text = file.read()
            for found in re.finditer(r"AOTITorchError\s+aoti_torch_" + kind + r"_(\w+)\(([^)]*)\);", text):
                signatures[found[1]] = [" ".join(p.split()) for p in found[2].split(",") if p.strip()]


def check(status, name):
    if status:
        host = library["host"]
        text = (host._ZN6sconce8aoti_abi10error_textEv() or b"").decode(errors="replace")
        host._ZN6sconce8aoti_abi10take_errorEv(taken)  # writes a std::optional, whose text is not freed here
        raise Failed(f"{name}: {text}")


def seed(number):
    """manual_seed for both libraries."""
    torch.manual_seed(number)
    library["host"]._ZN6sconce11manual_seedEm(ctypes.c_uint64(number))


class Constant:
    """A tensor as packages hold weights: its bytes never change, so kernels may keep what they derive from them."""

    def __init__(self, t):
        self.tensor = t


class Each(tuple):
    """The numbers of a list Scalar?[], which takes a pointer to each; None for an absent one."""


# Done by a package's loader, not by the ABI: marking constants, and giving the length of packed ones.
LOADER = r"""
#include "src/aoti_abi/abi_types.h"
using namespace sconce;
extern "C" void set_constant(AtenTensorHandle t) { aoti_abi::tensor_of(t)->storage()->set_immutable(true); }
extern "C" AtenTensorHandle packed(void* data, size_t bytes, int dtype, int64_t rank, const int64_t* sizes,
                                   const int64_t* strides, const std::byte* description, size_t length) {
  auto storage = StoragePtr::adopt(new Storage(data, bytes, Device{}, nullptr, nullptr));
  storage->set_opaque_metadata({description, description + length});
  storage->set_immutable(true);
  const auto n = static_cast<size_t>(rank);
  return aoti_abi::new_handle(
      Tensor(std::move(storage), static_cast<DType>(dtype), {sizes, n}, {strides, n}, 0, Layout::kMkldnn));
}
"""


def loader():
    if "loader" not in library:
        root = pathlib.Path(__file__).resolve().parents[2]
        with tempfile.TemporaryDirectory() as folder:
            made = os.path.join(folder, "loader.so")
            compiler = [os.environ.get("CXX", "c++"), "-std=c++20", "-shared", "-fPIC", "-O1", "-I", root, "-I",
                        root / "include"]
            subprocess.run([*compiler, "-x", "c++", "-", "-x", "none", library["host"]._name, "-o", made],
                           input=LOADER.encode(), check=True)
            # Links to the libsconce that is already open.
            library["loader"] = ctypes.CDLL(made)
        library["loader"].packed.restype = ctypes.c_void_p
    return library["loader"]


def ints(values):
    return (ctypes.c_int64 * max(len(values), 1))(*values)


wholes = {}  # storages that several arguments of the current call share -> a tensor over all of it


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [] if value.is_mkldnn else [value]  # packed weights share no storage
    return [t for v in value for t in tensors_in(v)] if isinstance(value, (list, tuple)) else []


def share_storages(arguments):
    """Arguments that share a storage become views of one tensor, as in a package."""
    release_storages()
    seen = {}
    for t in tensors_in(arguments):
        seen.setdefault((t.untyped_storage().data_ptr(), t.dtype), []).append(t)
    for key, found in seen.items():
        if key[0] and len(found) > 1 and not all(t is found[0] for t in found):
            whole = torch.empty(0, dtype=key[1], device=found[0].device).set_(found[0].untyped_storage())
            wholes[key] = handle(whole)


def release_storages():
    for h in wholes.values():
        library["host"].aoti_torch_delete_tensor_object(h)
    wholes.clear()


def packed_handle(t):
    """A constant weight that PyTorch's oneDNN packed."""
    description = bytes(torch.ops.mkldnn._get_mkldnn_serialized_md(t).tolist())
    strides = [1] + [0] * (t.dim() - 1)  # as Inductor records them
    return ctypes.c_void_p(loader().packed(
        ctypes.c_void_p(torch.ops.mkldnn.data_ptr(t)), ctypes.c_size_t(torch.ops.mkldnn._nbytes(t)),
        ctypes.c_int(NUMBER[t.dtype]), ctypes.c_int64(t.dim()), ints(t.shape), ints(strides), description,
        ctypes.c_size_t(len(description))))


def handle(t):
    """A tensor over the memory of t, which must outlive it."""
    if isinstance(t, Constant):
        made = handle(t.tensor)
        loader().set_constant(made)
        return made
    if t.is_mkldnn:
        return packed_handle(t)
    out = ctypes.c_void_p()
    whole = wholes.get((t.untyped_storage().data_ptr(), t.dtype))
    if whole is not None:
        check(library["host"].aoti_torch__reinterpret_tensor(
            whole, ctypes.c_int64(t.dim()), ints(t.shape), ints(t.stride()), ctypes.c_int64(t.storage_offset()), ctypes.byref(out)), "view")
        return out
    where = (1, t.device.index) if t.is_cuda else (0, -1)
    storage = t.untyped_storage()
    check(library["host"].aoti_torch_create_tensor_from_blob_v2(
        ctypes.c_void_p(storage.data_ptr()), ctypes.c_int64(t.dim()), ints(t.shape), ints(t.stride()),
        ctypes.c_int64(t.storage_offset()), ctypes.c_int32(NUMBER[t.dtype]), ctypes.c_int32(where[0]),
        ctypes.c_int32(where[1]), ctypes.byref(out), ctypes.c_int32(0), None, ctypes.c_int64(0)), "from_blob")
    return out


class Bytes:
    def __init__(self, address, count):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (address, False), "version": 3}


def tensor(h):
    """A copy of the handle's tensor, with its strides; deletes the handle."""
    if not h.value:
        return None
    host = library["host"]
    defined = ctypes.c_bool()
    check(host.aoti_torch_is_defined(h, ctypes.byref(defined)), "defined")
    if not defined.value:
        host.aoti_torch_delete_tensor_object(h)
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
        result = torch.empty_strided(shape, stride, dtype=t, device=device)
    elif kind.value == 0:
        result = torch.frombuffer(bytearray(ctypes.string_at(data.value, count)), dtype=torch.uint8).view(t).as_strided(
            shape, stride)
    else:
        torch.cuda.synchronize()
        result = torch.as_tensor(Bytes(data.value, count), device="cuda").clone().view(t).as_strided(shape, stride)
    host.aoti_torch_delete_tensor_object(h)
    return result


def finish(results, fetch):
    if not fetch:
        for made in results:
            if isinstance(made, ctypes.c_void_p) and made.value:
                library["host"].aoti_torch_delete_tensor_object(made)
        return []
    if device == "cuda":
        torch.cuda.synchronize()
    return [tensor(made) if isinstance(made, ctypes.c_void_p) else made.value for made in results]


def call(name, *arguments, fetch=True):
    """Takes the schema's arguments, None for absent ones. Returns a list; with fetch=False neither waits nor returns."""
    if name not in signatures:
        raise Missing(name)
    parameters = signatures[name]
    share_storages(arguments)
    given, keep, converted, results, owned = list(arguments), [], [], [], []
    at = 0

    def hold(c_value):
        keep.append(c_value)
        return ctypes.byref(c_value)

    while at < len(parameters):
        kind, label = parameters[at].rsplit(" ", 1)
        kind, label = kind + "*" * label.count("*"), label.lstrip("*")
        at += 1
        if re.fullmatch(r"ret\d*", label) or (label == "out" and "*" in kind):
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
            if isinstance(value, Each):
                numbers = [None if v is None else element(v) for v in value]
                pointers = (ctypes.c_void_p * max(len(numbers), 1))(
                    *[None if n is None else ctypes.addressof(n) for n in numbers])
                keep.append(numbers)
                converted += [pointers, ctypes.c_int64(len(numbers))]
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
            converted += ([None, ctypes.c_int32(0)] if value is None else
                          [hold(ctypes.c_int32(1 if device == "cuda" else 0)), ctypes.c_int32(0)])
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
    try:
        check(getattr(library["cuda" if device == "cuda" else "host"], f"aoti_torch_{device}_{name}")(*converted), name)
        return finish(results, fetch)
    finally:
        for h in owned:
            library["host"].aoti_torch_delete_tensor_object(h)
        release_storages()


def bits(value, kind):
    """One value of the stack for aoti_torch_call_dispatcher; kind: the schema's type."""
    host = library["host"]
    if value is None:
        return 0
    if isinstance(value, (torch.Tensor, Constant)):
        word = handle(value).value  # the call takes it over
    elif isinstance(value, str):
        text = ctypes.c_void_p()
        data = value.encode()
        check(host.torch_new_string_handle(data, ctypes.c_size_t(len(data)), ctypes.byref(text)), "string")
        word = text.value
    elif isinstance(value, (list, tuple)):
        element = kind.split("List[", 1)[1].rstrip("]") if "List[" in kind else kind
        made = ctypes.c_void_p()
        check(host.torch_new_list_reserve_size(ctypes.c_size_t(len(value)), ctypes.byref(made)), "list")
        for item in value:
            check(host.torch_list_push_back(made, ctypes.c_uint64(bits(item, element))), "push")
        word = made.value
    elif isinstance(value, torch.dtype):
        word = NUMBER[value]
    elif isinstance(value, torch.memory_format):
        word = FORMATS.index(value)
    elif "float" in kind.lower() or "number" in kind.lower():
        word = ctypes.c_uint64.from_buffer_copy(ctypes.c_double(value)).value
    else:
        word = int(value) & (1 << 64) - 1
    if "Optional" in kind and not kind.startswith("List["):
        place = new(8)  # the call deletes it
        ctypes.c_uint64.from_address(place).value = word
        return place
    return word


def called(name, overload, schema, arguments, options):
    """The stack after the call."""
    values = []
    for i, argument in enumerate(schema.arguments):
        value = (arguments[i] if i < len(arguments) else options.pop(argument.name) if argument.name in options
                 else argument.default_value)
        # real_type distinguishes int from ScalarType, memory_format and others.
        given = value is not None and not isinstance(value, (torch.Tensor, Constant))
        values.append(bits(value, str(argument.real_type if given and "Optional" in str(argument.type) else
                                      argument.type)))
    if options:
        raise Failed(f"{name}: no arguments {list(options)}")
    count = max(len(values), len(schema.returns), 1)
    stack = (ctypes.c_uint64 * count)(*values)
    check(library["host"].aoti_torch_call_dispatcher(name.encode(), overload.encode(), stack), name)
    return stack


def call_named(name, overload, *arguments, fetch=True, **options):
    """An operator called by name; missing arguments get the schema's defaults. Returns what call() returns."""
    namespace, _, short = name.rpartition("::")
    schema = getattr(getattr(getattr(torch.ops, namespace or "aten"), short), overload or "default")._schema
    share_storages([*arguments, *options.values()])
    try:
        stack = called(f"{namespace or 'aten'}::{short}", overload, schema, arguments, options)
    finally:
        release_storages()
    results = []
    for word, returned in zip(stack, schema.returns):
        results += items(word) if str(returned.type).startswith("List[") else [ctypes.c_void_p(word)]
    return finish(results, fetch)


def items(word):
    """The tensors of a list; deletes the list."""
    host, made, count = library["host"], ctypes.c_void_p(word), ctypes.c_size_t()
    check(host.torch_list_size(made, ctypes.byref(count)), "list")
    taken_out = []
    for i in range(count.value):
        item = ctypes.c_uint64()
        check(host.torch_list_get_item(made, ctypes.c_size_t(i), ctypes.byref(item)), "list")
        taken_out.append(ctypes.c_void_p(item.value))
    check(host.torch_delete_list(made), "list")
    return taken_out


# The proxy executor's constructor is not exported; we find it in the symbol table of an unstripped library.
INTERNAL = {"parse": "_ZN6sconce10custom_ops11ExternNodes5parseESt17basic_string_viewIcSt11char_traitsIcEE",
            "forget": "_ZN6sconce10custom_ops11ExternNodesD1Ev",
            "executor": "_ZN6sconce10custom_ops13ProxyExecutorC1ESt10shared_ptrIKNS0_11ExternNodesEE",
            "forget_calls": "_ZNSt6vectorIN6sconce10custom_ops13ProxyExecutor4CallESaIS3_EED1Ev"}
# Numbers of torch/_export/serde/schema.py.
SERIALISED = {t: i + 1 for i, t in enumerate(DTYPES)} | {torch.bfloat16: 13, torch.uint16: 28, torch.float8_e4m3fn: 29,
                                                         torch.float8_e5m2: 30, torch.float8_e4m3fnuz: 31,
                                                         torch.float8_e5m2fnuz: 32, torch.float8_e8m0fnu: 33,
                                                         torch.uint32: 34, torch.uint64: 35}
SERIALISED_FORMATS = [torch.contiguous_format, torch.channels_last, torch.channels_last_3d, torch.preserve_format]


def internal(name):
    if "parse" not in library:
        host = library["host"]
        table = {}
        for line in subprocess.run(["nm", host._name], capture_output=True, text=True, check=True).stdout.splitlines():
            address, _, symbol = line.rpartition(" ")
            if symbol in INTERNAL.values() or symbol == "aoti_torch_get_dim":
                table[symbol] = int(address.split()[0], 16)
        start = ctypes.cast(host.aoti_torch_get_dim, ctypes.c_void_p).value - table["aoti_torch_get_dim"]
        for short, symbol in INTERNAL.items():
            library[short] = ctypes.CFUNCTYPE(ctypes.c_void_p, *[ctypes.c_void_p] * (3 if short == "parse" else 2))(
                start + table[symbol])
    return library[name]


def serialised(value, numbers, tensors):
    """A value as in a package's list of calls; dynamic values are appended to numbers and tensors."""
    if value is None:
        return {"as_none": []}
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return {"as_tensor": {"name": "t"}}
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        numbers.append(value)
        return {"as_int": value}
    if isinstance(value, float):
        odd = "NaN" if value != value else "Infinity" if value == float("inf") else "-Infinity"
        return {"as_float": value if abs(value) < float("inf") else odd}
    if isinstance(value, complex):
        return {"as_complex": {"real": value.real, "imag": value.imag}}
    if isinstance(value, str):
        return {"as_string": value}
    if isinstance(value, torch.dtype):
        return {"as_scalar_type": SERIALISED[value]}
    if isinstance(value, torch.memory_format):
        return {"as_memory_format": SERIALISED_FORMATS.index(value) + 1}
    if isinstance(value, torch.layout):
        return {"as_layout": 7}
    if isinstance(value, torch.device):
        return {"as_device": {"type": value.type, "index": None}}
    if any(item is None for item in value):
        tensors += [t for t in value if t is not None]
        return {"as_optional_tensors": [{"as_none": []} if t is None else {"as_tensor": {"name": "t"}} for t in value]}
    kinds = {torch.Tensor: "as_tensors", bool: "as_bools", int: "as_ints", float: "as_floats"}
    kind = kinds[type(value[0])] if value else "as_ints"
    if kind == "as_tensors":
        tensors += value
        return {kind: [{"name": "t"} for _ in value]}
    if kind == "as_ints":
        numbers += value
    return {kind: list(value)}


def call_proxied(name, overload, *arguments, fetch=True, lists=0, **options):
    """An operator called as packages call it. lists: how many tensors a returned list has."""
    namespace, _, short = name.rpartition("::")
    namespace = namespace or "aten"
    schema = getattr(getattr(getattr(torch.ops, namespace), short), overload or "default")._schema
    inputs, numbers, tensors = [], [], []
    for i, argument in enumerate(schema.arguments):
        if i < len(arguments):
            value = arguments[i]
        elif argument.name in options:
            value = options.pop(argument.name)
        else:
            continue
        if isinstance(value, int) and not isinstance(value, bool) and str(argument.type) in ("float", "Optional[float]"):
            value = float(value)
        inputs.append({"name": argument.name, "arg": serialised(value, numbers, tensors)})
    if options:
        raise Failed(f"{name}: no arguments {list(options)}")
    host = library["host"]
    plural = [str(r.type).startswith("List") for r in schema.returns]
    outputs = [{"as_tensors": [{"name": "r"}] * lists} if many else {"as_tensor": {"name": "r"}} for many in plural]
    target = f"{namespace}::{short}" + (f".{overload}" if overload else "")
    text = json.dumps({"nodes": [{"name": "n", "node": {"target": target, "inputs": inputs, "outputs": outputs}}]}).encode()
    nodes, executor = ctypes.create_string_buffer(72), ctypes.create_string_buffer(48)
    shared = (ctypes.c_void_p * 2)(ctypes.addressof(nodes), None)
    internal("parse")(nodes, len(text), ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p))
    words = (ctypes.c_void_p * 9).from_buffer(nodes)
    handles, results = [], []
    try:
        if words[3] != words[4]:
            raise Failed(f"{name}: there is no such operator")
        if words[6] != words[7]:  # a std::string
            place = (ctypes.c_void_p * 2).from_address(words[6])
            raise Failed(f"{name}: {ctypes.string_at(place[0], place[1]).decode()}")
        internal("executor")(executor, ctypes.addressof(shared))
        share_storages(tensors)
        handles = [handle(t) for t in tensors]
        for many in plural:
            for _ in range(lists if many else 1):
                made = ctypes.c_void_p()
                check(host.aoti_torch_new_uninitialized_tensor(ctypes.byref(made)), "result")
                results.append(made)
        every = (ctypes.c_void_p * max(len(handles) + len(results), 1))(*[h.value for h in handles + results])
        try:
            check(host.aoti_torch_proxy_executor_call_function(executor, 0, len(numbers), ints(numbers),
                                                               len(handles) + len(results), every), name)
            return finish(results, fetch)
        except Failed:
            finish(results, False)
            raise
        finally:
            internal("forget_calls")(ctypes.addressof(executor) + 16, None)
            for h in handles:
                host.aoti_torch_delete_tensor_object(h)
    finally:
        release_storages()
        internal("forget")(nodes, None)
