#!/usr/bin/env python3
"""Runs a package once through the C API, with Python's ctypes alone.

usage: embed_ctypes.py LIBSCONCE PACKAGE
"""
import ctypes as c
import sys

P = c.c_void_p


class DType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class Tensor(c.Structure):
    _fields_ = [("data", P), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32), ("dtype", DType),
                ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


class ManagedTensor(c.Structure):
    _fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("manager_ctx", P), ("deleter", P), ("flags", c.c_uint64),
                ("tensor", Tensor)]


class Dim(c.Structure):
    _fields_ = [("min", c.c_int64), ("max", c.c_int64), ("symbol", c.c_char_p)]


class Sized(c.Structure):
    """A struct that begins with its size."""
    def __init__(self):
        super().__init__()
        self.size = c.sizeof(self)


class TensorInfo(Sized):
    _fields_ = [("size", c.c_size_t), ("name", c.c_char_p), ("dtype_known", c.c_int32), ("dtype", DType),
                ("dtype_name", c.c_char_p), ("device", c.c_char_p), ("ndim", c.c_int32), ("dims", c.POINTER(Dim)),
                ("strides", c.POINTER(c.c_int64)), ("is_none", c.c_int32), ("may_be_written", c.c_int32)]


class ModelInfo(Sized):
    _fields_ = [("size", c.c_size_t), ("name", c.c_char_p), ("inputs", c.c_size_t), ("outputs", c.c_size_t),
                ("constants", c.c_size_t), ("replicas", c.c_int32), ("runs_on_caller", c.c_int32),
                ("load_ns", c.c_int64), ("constant_bytes", c.c_uint64)]


def library(path):
    """Functions that return an error raise it."""
    sconce = c.CDLL(path)
    sconce.sconce_error_text.restype = c.c_char_p
    sconce.sconce_error_text.argtypes = sconce.sconce_error_free.argtypes = sconce.sconce_tensor_free.argtypes = [P]

    def check(error, function, arguments):
        if error:
            text = sconce.sconce_error_text(error).decode(errors="replace")
            sconce.sconce_error_free(error)
            raise RuntimeError(text)

    for name, *arguments in (
            ("package_open", c.c_char_p, P), ("model_load", P, P, P), ("model_free", P), ("model_get_info", P, P),
            ("model_input", P, c.c_size_t, P), ("model_output", P, c.c_size_t, P),
            ("model_run", P, P, c.c_size_t, P, c.c_size_t, P, P)):
        function = getattr(sconce, "sconce_" + name)
        function.restype, function.argtypes, function.errcheck = P, arguments, check
    sconce.sconce_package_free.argtypes = [P]
    return sconce


def ones(info):
    """A tensor of the smallest shape that the model takes; its bytes live as long as it."""
    sizes = [max(info.dims[d].min, 1) for d in range(info.ndim)]
    elements = 1
    for size in sizes:
        elements *= size
    is_float = (info.dtype.code, info.dtype.bits) == (2, 32)
    kept = (c.c_float * elements)(*[1.0] * elements) if is_float else (c.c_uint8 * (elements * info.dtype.bits // 8))()
    tensor = Tensor(c.cast(kept, P), 1, 0, info.ndim, info.dtype, (c.c_int64 * max(info.ndim, 1))(*sizes), None, 0)
    tensor.kept = kept
    return tensor


def main(path, package_path):
    sconce = library(path)
    package, model, about = P(), P(), ModelInfo()
    sconce.sconce_package_open(package_path.encode(), c.byref(package))
    sconce.sconce_model_load(package, None, c.byref(model))
    sconce.sconce_model_get_info(model, c.byref(about))
    inputs = []
    for i in range(about.inputs):
        info = TensorInfo()
        sconce.sconce_model_input(model, i, c.byref(info))
        inputs.append(ones(info))
    given = (c.POINTER(Tensor) * max(about.inputs, 1))(*map(c.pointer, inputs))
    outputs = (c.POINTER(ManagedTensor) * max(about.outputs, 1))()
    sconce.sconce_model_run(model, given, about.inputs, outputs, about.outputs, None, None)
    for i in range(about.outputs):
        info = TensorInfo()
        sconce.sconce_model_output(model, i, c.byref(info))
        tensor = outputs[i].contents.tensor
        print(info.dtype_name.decode(), [tensor.shape[d] for d in range(tensor.ndim)])
        sconce.sconce_tensor_free(outputs[i])
    sconce.sconce_model_free(model)
    sconce.sconce_package_free(package)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip().splitlines()[-1])
    main(*sys.argv[1:])
