"""Calls and results as the Open Inference Protocol's tensors: names, bytes and structure."""
import collections
import dataclasses
import json
import keyword
import math
import re
import sys

import numpy as np

from sconce._client_errors import BadAnswer
from sconce._errors import InvalidArgument

_PLAIN = {"BOOL": np.bool_, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64,
          "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "FP16": np.float16,
          "FP32": np.float32, "FP64": np.float64}
_DATATYPES = {np.dtype(kind): name for name, kind in _PLAIN.items()}
_COMPLEX = {np.dtype(np.complex64): ("FP32", np.float32), np.dtype(np.complex128): ("FP64", np.float64)}
# Of ml_dtypes, where it is installed; the protocol has no float8, which travels as bytes.
_NARROW = {"bfloat16": ("BF16", np.uint16), "float8_e4m3fn": ("UINT8", np.uint8), "float8_e5m2": ("UINT8", np.uint8),
           "float8_e4m3fnuz": ("UINT8", np.uint8), "float8_e5m2fnuz": ("UINT8", np.uint8),
           "float8_e8m0fnu": ("UINT8", np.uint8)}
_MOST_DEPTH = 64


def _ml_dtype(name):
    try:
        import ml_dtypes
    except ImportError:
        return None
    return getattr(ml_dtypes, name, None)


class TensorInfo:
    """An input or output of a model: name, datatype, shape (-1: any size) and dtype, which differs from the datatype for
    complex and float8 tensors."""

    def __init__(self, json_of):
        self.name, self.datatype, self.shape = json_of["name"], json_of["datatype"], json_of["shape"]
        self.dtype = json_of.get("parameters", {}).get("dtype", "")

    def __repr__(self):
        return f"{self.name}: {self.dtype or self.datatype}{self.shape}"


class ModelInfo:
    """name, versions, inputs and outputs of a served model, and the structure of its call, if the server says it."""

    def __init__(self, document):
        try:
            self.name, self.versions = document["name"], list(document.get("versions", []))
            self.platform = document.get("platform", "")
            self.inputs = [TensorInfo(one) for one in document["inputs"]]
            self.outputs = [TensorInfo(one) for one in document["outputs"]]
            self.call_spec = document.get("call_spec")
        except (KeyError, TypeError, AttributeError) as error:
            raise BadAnswer(f"the model's metadata is none of the Open Inference Protocol ({error!r})") from None
        self.input_of = {one.name: one for one in self.inputs}
        self.output_of = {one.name: one for one in self.outputs}

    def __repr__(self):
        inputs, outputs = (", ".join(map(repr, side)) for side in (self.inputs, self.outputs))
        return f"<{self.name} {', '.join(self.versions)}: ({inputs}) -> ({outputs})>"


# From the call to tensors

def leaves_of(value, path, found, depth=0):
    """Puts (name, leaf) into found, in the order and with the names of the server."""
    if depth > _MOST_DEPTH:
        raise InvalidArgument(f"{path[:60]}: containers within containers, {depth} deep")
    if isinstance(value, dict):
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, (list, tuple, collections.deque)):
        items = [(str(i), item) for i, item in enumerate(value)]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    else:
        found.append((path, value))
        return
    for key, item in items:
        leaves_of(item, f"{path}[{key}]", found, depth + 1)


def _is_numbers(value):
    """Whether nested lists are a tensor written down: numbers all the way."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, (bool, int, float, complex))


def named_inputs(info, args, kwargs):
    """The call's tensors by the server's names, in the server's order."""
    given = {}

    def collect(value, path, depth):
        # A list of numbers stands for a tensor where the model has a tensor.
        if path in info.input_of and isinstance(value, (list, tuple)):
            given[path] = value
            return
        if depth <= _MOST_DEPTH and type(value) in (list, tuple, dict):
            for key, item in (value.items() if isinstance(value, dict) else enumerate(value)):
                collect(item, f"{path}[{key}]", depth + 1)
            return
        found = []
        leaves_of(value, path, found, depth)
        given.update(found)

    for i, value in enumerate(args):
        collect(value, f"ARGS[{i}]", 1)
    for key, value in kwargs.items():
        collect(value, f"KWARGS[{key}]", 1)
    if not all(name.startswith(("ARGS[", "KWARGS[")) for name in info.input_of):
        # The package does not say which leaf each input is: tensors in their order.
        tensors = [value for value in given.values() if hasattr(value, "shape") or _is_numbers(value)]
        if len(tensors) == len(info.inputs):
            return dict(zip(info.input_of, tensors))
    wanted = {name: given.pop(name) for name in info.input_of if name in given}
    missing = [name for name in info.input_of if name not in wanted or wanted[name] is None]
    # Numbers, strings and None that the compiler took into the code are given as in Python, and not sent.
    extra = [name for name, value in given.items() if hasattr(value, "shape")]
    if missing or extra:
        raise InvalidArgument(
            f"model {info.name!r}: " + "; ".join(filter(None, (
                missing and "no tensor for " + ", ".join(missing), extra and "it has no input " + ", ".join(extra)))) +
            f" (its inputs are {', '.join(map(repr, info.inputs))})")
    return wanted


def array_of(value, info):
    """A C-contiguous little-endian array, its datatype, and its shape on the wire."""
    if type(value).__module__.partition(".")[0] == "torch" or hasattr(value, "untyped_storage"):
        array, narrow = _from_torch(value)
    else:
        array, narrow = _from_any(value, info), None
    shape = list(array.shape)
    name = narrow or array.dtype.name
    if name in _NARROW:
        datatype, carrier = _NARROW[name]
        array = array if array.dtype == carrier else array.view(carrier)
        if datatype == "UINT8" and info.dtype and info.dtype != name:
            raise InvalidArgument(f"{info.name}: expected {info.dtype}, got {name}")
    elif array.dtype in _COMPLEX:
        datatype, part = _COMPLEX[array.dtype]
        array, shape = np.ascontiguousarray(array).view(part), [*shape, 2]
    else:
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        datatype = _DATATYPES.get(array.dtype)
        if not datatype:
            raise InvalidArgument(f"{info.name}: a tensor of dtype {array.dtype} cannot be sent")
    if datatype != info.datatype and info.datatype != "UNKNOWN":
        raise InvalidArgument(f"{info.name}: expected {info.dtype or info.datatype}{info.shape}, "
                              f"got {name} {list(shape)}")
    return np.ascontiguousarray(array), datatype, shape


def _from_torch(tensor):
    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    tensor = tensor.resolve_conj().resolve_neg().contiguous() if tensor.is_complex() else tensor.contiguous()
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _NARROW:
        return tensor.numpy(), None
    # NumPy has no such dtype: the same bytes as integers.
    torch = sys.modules["torch"]
    shape, carrier = tuple(tensor.shape), _NARROW[name][1]
    flat = tensor.reshape(-1).view(torch.uint8).numpy()
    return flat.view(carrier).reshape(shape), name


def _from_any(value, info):
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    wanted = _PLAIN.get(info.datatype)
    if info.dtype in ("complex64", "complex128"):
        wanted = np.dtype(info.dtype)
    elif info.datatype == "BF16":
        wanted = _ml_dtype("bfloat16")
        if wanted is None and not hasattr(value, "__array__"):
            raise InvalidArgument(f"{info.name}: bfloat16 from Python numbers needs the package ml_dtypes")
    try:
        array = np.asarray(value)
        # Numbers of Python have no dtype of their own; arrays do, and are not cast behind the caller's back.
        if not hasattr(value, "__array__") and wanted is not None:
            if array.dtype.kind not in "biufc" or (array.dtype.kind in "fc" and np.dtype(wanted).kind in "iub"):
                raise ValueError(f"{array.dtype} values for {info.datatype}")
            array = np.asarray(value, wanted)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidArgument(f"{info.name}: expected {info.dtype or info.datatype}{info.shape}: {error}") from None
    return array


def infer_body(info, args, kwargs, parameters):
    """The request's buffers: JSON, then each tensor's bytes; and the JSON's length."""
    inputs, buffers = [], []
    for name, value in named_inputs(info, args, kwargs).items():
        array, datatype, shape = array_of(value, info.input_of[name])
        inputs.append({"name": name, "datatype": datatype, "shape": shape,
                       "parameters": {"binary_data_size": array.nbytes}})
        if array.nbytes:
            buffers.append(array.reshape(-1).view(np.uint8))
    text = json.dumps({"inputs": inputs, "parameters": {**parameters, "binary_data_output": True}},
                      separators=(",", ":")).encode()
    return [text, *map(memoryview, buffers)], len(text)


# From tensors to the result

def outputs_of(info, answer):
    """name -> array of an answer of /infer."""
    text = answer.fields.get("inference-header-content-length")
    length = len(answer.body)
    if text is not None:
        if not re.fullmatch(r"\d{1,15}", text) or int(text) > length:
            raise BadAnswer(f"Inference-Header-Content-Length {text!r} of an answer of {length} bytes")
        length = int(text)
    try:
        document = json.loads(bytes(answer.body[:length]))
        listed = document["outputs"]
        described = [(one["name"], one["datatype"], one["shape"], one.get("parameters", {}).get("binary_data_size"),
                      one.get("data")) for one in listed]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadAnswer(f"the answer is none of the Open Inference Protocol ({type(error).__name__}: {error})") from None
    found, at = {}, length
    for name, datatype, shape, size, data in described:
        if not (isinstance(name, str) and isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)):
            raise BadAnswer(f"output {name!r}: a malformed name or shape {str(shape)[:80]}")
        if name in found:
            raise BadAnswer(f"output {name!r} twice")
        carrier = np.dtype(np.uint16 if datatype == "BF16" else _PLAIN.get(datatype, np.void))
        if not carrier.itemsize:
            raise BadAnswer(f"output {name!r}: datatype {datatype!r}")
        wanted = math.prod(shape) * carrier.itemsize
        if data is not None:
            try:
                array = np.array(data, carrier).reshape(shape)
            except (ValueError, TypeError, OverflowError) as error:
                raise BadAnswer(f"output {name!r}: {error}") from None
        else:
            if type(size) is not int or size != wanted or at + size > len(answer.body):
                raise BadAnswer(f"output {name!r}: {datatype}{shape} takes {wanted} bytes, but the answer says {size} and has "
                                f"{max(len(answer.body) - at, 0)}")
            array = np.frombuffer(answer.body[at:at + size], carrier) if size else np.empty(0, carrier)
            array = (array if array.flags.aligned else array.copy()).reshape(shape)
            at += size
        found[name] = _true_dtype(array, datatype, info.output_of.get(name))
    if at != len(answer.body):
        raise BadAnswer(f"{len(answer.body) - at} bytes after the last tensor")
    return found


def _true_dtype(array, datatype, info):
    if datatype == "BF16":
        dtype = _ml_dtype("bfloat16")
        # Without ml_dtypes as float32, which holds each bfloat16 exactly.
        return array.view(dtype) if dtype else (array.astype(np.uint32) << 16).view(np.float32)
    if datatype == "BOOL":
        return array.view(np.uint8).astype(bool) if (array.view(np.uint8) > 1).any() else array
    if info is not None and info.dtype in ("complex64", "complex128") and array.ndim and array.shape[-1] == 2:
        return np.ascontiguousarray(array).view(info.dtype)[..., 0]
    if info is not None and info.dtype.startswith("float8") and (dtype := _ml_dtype(info.dtype)):
        return array.view(dtype)
    return array


def result_of(info, found, types):
    """The arrays in the structure that the model returned them in. types: qualified name -> class, for dataclasses and
    namedtuples; without one they get a class of the same name and fields."""
    if info.call_spec is not None:
        try:
            used = []
            result = _built(info.call_spec["result"], "RESULT", found, used, types, 0)
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadAnswer(f"model {info.name!r}: a malformed call_spec ({error!r})") from None
        if set(found) == set(used):
            return result
    if not all(name.startswith("RESULT") for name in found):
        arrays = list(found.values())
        return arrays[0] if len(arrays) == 1 else tuple(arrays)
    return _by_names(found)


def _built(node, path, found, used, types, depth):
    if depth > _MOST_DEPTH:
        raise RecursionError("too deep")
    kind, keys, children = node["kind"], node.get("keys", []), node.get("children", [])
    if kind == "none":
        return None
    if kind == "leaf":
        used += [path] if path in found else []
        return found.get(path)  # an output that is None is not sent
    named = kind in ("dict", "ordered_dict", "default_dict", "dataclass")
    if named and len(keys) != len(children):
        raise KeyError("keys")
    values = [_built(child, f"{path}[{keys[i] if named else i}]", found, used, types, depth + 1)
              for i, child in enumerate(children)]
    if kind == "tuple":
        return tuple(values)
    if kind == "list":
        return values
    if kind == "deque":
        return collections.deque(values)
    if kind in ("namedtuple", "dataclass"):
        return _object(kind, node.get("type", ""), keys, values, types)
    items = zip(keys, values)
    return collections.OrderedDict(items) if kind == "ordered_dict" else dict(items)


def _object(kind, name, fields, values, types):
    """Nothing is imported because a server names it."""
    if kind == "namedtuple" and len(fields) != len(values):
        fields = [f"field_{i}" for i in range(len(values))]
    wanted = types.get(name)
    if wanted is not None:
        return wanted(**dict(zip(fields, values))) if kind == "dataclass" or hasattr(wanted, "_fields") else wanted(values)
    simple = re.sub(r"\W", "_", str(name).rpartition(".")[2])
    if not simple.isidentifier() or keyword.iskeyword(simple):
        simple = "Result"
    if kind == "namedtuple":
        return collections.namedtuple(simple, map(str, fields), rename=True)(*values)
    if all(isinstance(f, str) and f.isidentifier() and not keyword.iskeyword(f) for f in fields):
        return dataclasses.make_dataclass(simple, fields, eq=False)(*values)
    return dict(zip(fields, values))


def _by_names(found):
    """Without a call spec: keys 0, 1, ... are a tuple, others a dict."""
    if set(found) == {"RESULT"}:
        return found["RESULT"]
    tree = {}
    for name, array in found.items():
        at, keys = tree, re.findall(r"\[(.*?)\](?=\[|$)", name.removeprefix("RESULT"))
        for key in keys[:-1]:
            at = at.setdefault(key, {})
            if not isinstance(at, dict):
                raise BadAnswer(f"output names contradict each other: {name!r}")
        if not keys or keys[-1] in at:
            raise BadAnswer(f"output names contradict each other: {name!r}")
        at[keys[-1]] = array
    return _tupled(tree)


def _tupled(tree):
    if not isinstance(tree, dict):
        return tree
    if all(key.isdecimal() for key in tree) and max(map(int, tree)) < 4096:
        # What is None is not sent.
        return tuple(_tupled(tree.get(str(i))) for i in range(max(map(int, tree)) + 1))
    return {key: _tupled(value) for key, value in tree.items()}
