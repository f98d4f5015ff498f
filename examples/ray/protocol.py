"""Open Inference Protocol v2 of one model: JSON and the binary tensor extension, with Sconce's names. Without Ray.

Names are those of `sconce serve`: ARGS[0], ARGS[1][mask], KWARGS[k], RESULT[class].
"""
import json
import math
import re

import numpy as np

DATATYPES = {"bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "int8": "INT8",
             "int16": "INT16", "int32": "INT32", "int64": "INT64", "float16": "FP16", "float32": "FP32", "float64": "FP64"}
DTYPES = {datatype: np.dtype(dtype) for dtype, datatype in DATATYPES.items()}


class BadRequest(ValueError):
    pass


def name_of(path):
    """ "args[0]['image']" is ARGS[0][image]."""
    root = re.match(r"\w*", path)[0]
    return root.upper() + re.sub(r"\['([^']*)'\]", r"[\1]", path[len(root):])


class Protocol:
    def __init__(self, name, signature):
        self.name, self._signature = name, signature
        self._inputs = {name_of(tensor.path): tensor for tensor in signature.inputs}
        self._outputs = [tensor for tensor in signature.outputs if not tensor.none]
        for tensor in (*signature.inputs, *self._outputs):
            if tensor.dtype not in DATATYPES:
                raise ValueError(f"{name_of(tensor.path)}: {tensor.dtype} is not for HTTP; call the model through a handle")

    def metadata(self):
        return {"name": self.name, "versions": ["1"], "platform": "sconce",
                "inputs": [self._described(tensor) for tensor in self._signature.inputs],
                "outputs": [self._described(tensor) for tensor in self._outputs]}

    def arguments(self, body, json_length=None):
        """(args, kwargs, the request's JSON). Arrays are views of the body where they came in binary form."""
        try:
            document = json.loads(body[:json_length])
            listed = document["inputs"]
            given = {}
            at = len(body) if json_length is None else json_length
            for one in listed:
                size = (one.get("parameters") or {}).get("binary_data_size")
                if size is None:
                    given[one["name"]] = self._from_list(one)
                else:
                    given[one["name"]] = self._from_bytes(one, body[at:at + size], size)
                    at += size
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise BadRequest(error if isinstance(error, BadRequest) else f"no request of the protocol: {error!r}") from None
        if missing := self._inputs.keys() - given.keys():
            raise BadRequest(f"missing inputs: {', '.join(sorted(missing))}")
        return self._call(given), document

    def answer(self, result, document, parameters):
        """(body, length of its JSON, None if there is nothing else)."""
        wanted = {one["name"]: one.get("parameters") or {} for one in document.get("outputs") or []}
        all_binary = bool((document.get("parameters") or {}).get("binary_data_output"))
        outputs, buffers = [], []
        for path, array in leaves(result, "result"):
            name = name_of(path)
            if wanted and name not in wanted:
                continue
            array = np.ascontiguousarray(array)
            output = {"name": name, "datatype": DATATYPES[array.dtype.name], "shape": list(array.shape)}
            if wanted.get(name, {}).get("binary_data", all_binary):
                output["parameters"] = {"binary_data_size": array.nbytes}
                buffers.append(array.tobytes())
            else:
                output["data"] = array.reshape(-1).tolist()
            outputs.append(output)
        if unknown := wanted.keys() - {output["name"] for output in outputs}:
            raise BadRequest(f"no outputs {', '.join(sorted(unknown))}")
        answer = {"model_name": self.name, "model_version": "1", "parameters": parameters, "outputs": outputs}
        if "id" in document:
            answer["id"] = document["id"]
        text = json.dumps(answer, separators=(",", ":")).encode()
        return b"".join([text, *buffers]), len(text) if buffers else None

    def _described(self, tensor):
        return {"name": name_of(tensor.path), "datatype": DATATYPES[tensor.dtype],
                "shape": [dim.min if dim.is_static else -1 for dim in tensor.dims or ()]}

    def _dtype(self, one):
        if one["name"] not in self._inputs:
            raise BadRequest(f"no input {one['name']}; there are {', '.join(self._inputs)}")
        wanted = DATATYPES[self._inputs[one["name"]].dtype]
        if one["datatype"] != wanted:
            raise BadRequest(f"{one['name']}: datatype {one['datatype']}, expected {wanted}")
        if not all(type(size) is int and size >= 0 for size in one["shape"]):
            raise BadRequest(f"{one['name']}: shape {one['shape']}")
        return DTYPES[wanted]

    def _from_list(self, one):
        return np.asarray(one["data"], self._dtype(one)).reshape(one["shape"])

    def _from_bytes(self, one, data, size):
        dtype = self._dtype(one)
        if size != math.prod(one["shape"]) * dtype.itemsize or len(data) != size:
            raise BadRequest(f"{one['name']}: {one['datatype']}{one['shape']} is not {size} bytes, or they did not come")
        return np.frombuffer(data, dtype).reshape(one["shape"])

    def _call(self, given):
        signature = self._signature
        if signature.args is None:  # the package does not say: inputs in flat order
            return [given[name] for name in self._inputs], {}
        args = [self._built(node, f"args[{i}]", given) for i, node in enumerate(signature.args.children)]
        return args, {key: self._built(node, f"kwargs[{key!r}]", given)
                      for key, node in zip(signature.kwargs.keys, signature.kwargs.children, strict=True)}

    def _built(self, node, path, given):
        if node.kind == "leaf":
            return given.get(name_of(path), 0)  # the compiler dropped one that is not given
        if node.kind == "none":
            return None
        if node.kind not in ("dict", "list", "tuple"):
            raise BadRequest(f"{name_of(path)}: a {node.kind} is not for HTTP; call the model through a handle")
        keys = node.keys if node.kind == "dict" else range(len(node.children))
        values = [self._built(child, f"{path}[{key!r}]", given) for key, child in zip(keys, node.children, strict=True)]
        return dict(zip(keys, values, strict=True)) if node.kind == "dict" else tuple(values) if node.kind == "tuple" else values


def leaves(value, path):
    """(path, array) of each tensor of a result."""
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    elif value is None:
        return
    else:
        yield path, value
        return
    for key, item in items:
        yield from leaves(item, f"{path}[{key!r}]")
