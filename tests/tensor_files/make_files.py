"""Writes data/ with NumPy and the safetensors library: the files that files_test.cpp reads.

    python make_files.py        (numpy, torch, safetensors)
"""
import pathlib
import zipfile

import numpy as np
import torch
from safetensors.torch import save_file

DATA = pathlib.Path(__file__).parent / "data"
NUMPY_TYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
               "float16", "float32", "float64", "complex64", "complex128"]
TORCH_TYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16",
               "float32", "float64", "float8_e5m2", "float8_e4m3fn", "complex64"]


def ramp(dtype):
    """0, 1, 2, 3, 4, 5 as [2, 3]; bool: parity; complex: i - i*1j."""
    values = np.arange(6).reshape(2, 3)
    if dtype == "bool":
        return values % 2 == 1
    if dtype.startswith("complex"):
        return (values - 1j * values).astype(dtype)
    return values.astype(dtype)


DATA.mkdir(exist_ok=True)
arrays = {name: ramp(name) for name in NUMPY_TYPES}
np.savez(DATA / "stored.npz", **arrays)
np.savez_compressed(DATA / "deflated.npz", **arrays)
np.save(DATA / "fortran.npy", np.asfortranarray(ramp("float32")))
np.save(DATA / "big_endian.npy", ramp("complex64").astype(">c8"))
np.save(DATA / "scalar.npy", np.float64(2.5))
np.save(DATA / "empty.npy", np.zeros((0, 3), dtype=np.int64))
np.save(DATA / "structured.npy", np.zeros(2, dtype=[("a", "<f4")]))
np.save(DATA / "object.npy", np.array([None, 1], dtype=object), allow_pickle=True)
with open(DATA / "version3.npy", "wb") as file:
    np.lib.format.write_array(file, ramp("int32"), version=(3, 0))
with zipfile.ZipFile(DATA / "other_member.npz", "w") as archive:
    archive.writestr("readme.txt", "text")

tensors = {name: torch.arange(6).reshape(2, 3).to(getattr(torch, name)) for name in TORCH_TYPES if name != "bool"}
tensors["complex64"] = tensors["complex64"] * (1 - 1j)
tensors["bool"] = torch.arange(6).reshape(2, 3) % 2 == 1
tensors["scalar"] = torch.tensor(2.5)
tensors["empty"] = torch.zeros(0, 3)
tensors["name with \"quotes\", \u00e4 and \\"] = torch.ones(1)
save_file(tensors, DATA / "all.safetensors", metadata={"format": "pt", "note": "\u00e4"})
