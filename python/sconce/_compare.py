"""Runs a package through Sconce and compares what it answers with what the model answers in PyTorch."""
import dataclasses
import json
import math
import os
import shutil
import struct
import subprocess
import tempfile

import numpy as np

from sconce import _safetensors, _tensors

# Of the largest value of the output: what rounding in another order explains.
TOLERANCES = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-4, "complex64": 2e-4, "float16": 1e-2, "bfloat16": 4e-2}


@dataclasses.dataclass
class Row:
    """How one output differs: `largest` is the largest difference, `relative` the same as a share of the output's largest
    value, `at` its index."""

    output: str
    dtype: str
    shape: list
    ok: bool
    largest: float = 0.0
    relative: float = 0.0
    at: tuple = ()
    expected: object = None
    got: object = None
    why: str = ""


@dataclasses.dataclass
class Comparison:
    """All outputs of one call. true if all agree."""

    call: str
    rows: list

    def __bool__(self):
        return all(row.ok for row in self.rows)

    def __str__(self):
        return f"{self.call}\n{table(self.rows)}"


def table(rows):
    lines = [("output", "dtype", "shape", "largest difference", "of the largest", "")]
    for row in rows:
        verdict = "ok" if row.ok else row.why or f"DIFFERS at {list(row.at)}: expected {row.expected}, got {row.got}"
        lines.append((row.output, row.dtype, str(row.shape), f"{row.largest:.3g}", f"{row.relative:.2g}", verdict))
    widths = [max(len(line[i]) for line in lines) for i in range(5)]
    return "\n".join("  " + "  ".join(text.ljust(width) for text, width in zip(line, widths)) + "  " + line[5]
                     for line in lines).replace(" \n", "\n")


class NoSconce(RuntimeError):
    """Neither the native module nor the program is there to run a package."""


def program():
    named = os.environ.get("SCONCE_PROGRAM")
    if named and os.access(named, os.X_OK):
        return named
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "sconce")
    return beside if os.access(beside, os.X_OK) else shutil.which("sconce")


def native():
    try:
        from sconce import _native  # noqa: F401
        import sconce
    except ImportError:
        return None
    return sconce if hasattr(sconce, "load") else None


def run(package, model, args, kwargs, weights=None):
    """name -> (dtype, array) of each output, by the names RESULT[key][0], in the model's order."""
    sconce = native() if os.environ.get("SCONCE_COMPARE") != "program" else None
    if sconce:
        return _in_process(sconce, package, model, args, kwargs, weights)
    found = program()
    if not found:
        raise NoSconce("the package was not run: there is neither Sconce's native module nor a program `sconce` on PATH "
                       "(or SCONCE_PROGRAM)")
    return _by_program(found, package, model, args, kwargs, weights)


def _in_process(sconce, package, model, args, kwargs, weights):
    loaded = sconce.load(os.fspath(package), model_name=model, outputs="torch")
    if weights is not None:
        loaded.update(weights)
    found = []
    _tensors.leaves_of(loaded(*args, **kwargs), "RESULT", found)
    return {name: _array(value) for name, value in found if value is not None}


def names_of(found, package):
    return [one["name"] for one in described(found, package)]


def inspect(found, package, model):
    return next(one for one in described(found, package) if one["name"] == model)


def described(found, package):
    done = subprocess.run([found, "inspect", "--json", os.fspath(package)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"sconce inspect: {done.stderr.strip() or done.stdout.strip()}")
    return json.loads(done.stdout)["models"]


def _by_program(found, package, model, args, kwargs, weights):
    if weights is not None:
        raise NoSconce("a package without weights is compared in process only, and the native module is not built")
    names = [one["name"] for one in inspect(found, package, model)["inputs"]]
    given = []
    _tensors.leaves_of(tuple(args), "ARGS", given)
    _tensors.leaves_of(dict(kwargs), "KWARGS", given)
    by_name = {name: value for name, value in given if hasattr(value, "shape")}
    if not set(names) <= set(by_name):
        if len(names) != len(by_name):
            raise RuntimeError(f"the package has the inputs {names}, the call {list(by_name)}")
        by_name = dict(zip(names, by_name.values()))
    with tempfile.TemporaryDirectory(prefix="sconce-compare-") as folder:
        inputs = os.path.join(folder, "inputs.safetensors")
        with open(inputs, "wb") as file:
            for piece in _safetensors.Weights({name: by_name[name] for name in names}).pieces():
                file.write(piece)
        done = subprocess.run([found, "run", os.fspath(package), "--model", model, *(["--input", inputs] if names else []),
                               "--output", folder, "--format", "safetensors"], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}")
        file = next(os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f != "inputs.safetensors")
        return read_safetensors(file)


def read_safetensors(path):
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<Q", content[:8])[0]
    kinds = {short: name for name, short in _safetensors._NAMES.items()}
    found = {}
    for name, one in json.loads(content[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + at for at in one["data_offsets"])
        found[name] = (kinds[one["dtype"]], _widened(kinds[one["dtype"]], content[begin:end], one["shape"]))
    return found


def _widened(kind, content, shape):
    """Of the values, in a dtype that NumPy has."""
    if kind == "bfloat16":
        return (np.frombuffer(content, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
    if kind.startswith("float4"):  # two numbers in a byte
        return np.frombuffer(content, np.uint8).reshape([*shape[:-1], shape[-1] // 2])
    if kind.startswith("float8"):
        return np.frombuffer(content, np.uint8).reshape(shape)
    return np.frombuffer(content, kind).reshape(shape)


def _array(value):
    """(dtype, array) of a tensor of torch, an array, or a number."""
    if hasattr(value, "untyped_storage"):
        import torch
        value = value.detach().cpu()
        kind = str(value.dtype).removeprefix("torch.")
        if kind == "bfloat16":
            return kind, value.to(torch.float32).numpy()
        if kind.startswith(("float8", "float4")):
            return kind, value.contiguous().view(torch.uint8).numpy()
        return kind, value.resolve_conj().resolve_neg().numpy()
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        import torch
        return _array(torch.from_dlpack(value))
    array = np.asarray(value)
    if array.dtype.name == "bfloat16":
        return "bfloat16", array.astype(np.float32)
    return array.dtype.name, array


def expected_of(torch, result):
    """name -> (dtype, array) of what the model returned, as run() names them. Numbers are 0-dimensional tensors, as the
    compiler makes them."""
    found = []
    _tensors.leaves_of(result, "RESULT", found)
    if any(not isinstance(v, (torch.Tensor, bool, int, float, complex, type(None))) for _, v in found):
        # Containers of its own, which torch knows how to take apart.
        found = [(f"RESULT[{i}]", v) for i, v in enumerate(torch.utils._pytree.tree_leaves(result))]
    return {name: _array(value if isinstance(value, torch.Tensor) else torch.tensor(value))
            for name, value in found if value is not None}


def compare(expected, got, tolerance=None):
    """Rows. tolerance: a share of the output's largest value, for all floating-point outputs; None: by the dtype."""
    if set(expected) != set(got) and len(expected) == len(got):
        got = dict(zip(expected, got.values()))  # names of containers that only one side knows
    rows = []
    for name, (kind, wanted) in expected.items():
        row = Row(name, kind, list(wanted.shape), False)
        rows.append(row)
        if name not in got:
            row.why = f"MISSING: the package returns {', '.join(got) or 'nothing'}"
            continue
        found_kind, found = got[name]
        if list(found.shape) != row.shape:
            row.why = f"SHAPE {list(found.shape)}"
        elif found_kind != kind:
            row.why = f"DTYPE {found_kind}"
        else:
            measure(row, wanted, found, TOLERANCES.get(kind, 0) if tolerance is None or kind not in TOLERANCES else tolerance)
    rows += [Row(name, kind, list(array.shape), False, why="NOT IN THE MODEL'S RESULT")
             for name, (kind, array) in got.items() if name not in expected]
    return rows


def measure(row, wanted, found, tolerance):
    if wanted.size == 0:
        row.ok = True
        return
    if wanted.dtype.kind not in "fc":
        differs = wanted != found
        distance = np.abs(wanted.astype(np.float64) - found.astype(np.float64)) * differs
        scale = float(np.abs(wanted.astype(np.float64)).max())
        limit = 0.0
    else:
        wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
        a, b = wanted.astype(wide), found.astype(wide)
        special = ~(np.isfinite(a) & np.isfinite(b))
        same = (np.isnan(a) & np.isnan(b)) | (a == b)
        with np.errstate(invalid="ignore"):
            distance = np.where(special, np.where(same, 0.0, math.inf), np.abs(a - b))
        finite = np.abs(a[np.isfinite(a)])
        scale = float(finite.max()) if finite.size else 0.0
        limit = tolerance * max(scale, 1e-6)
        differs = distance > limit
    at = np.unravel_index(int(np.argmax(distance)), distance.shape) if distance.ndim else ()
    row.largest, row.at = float(distance[at]), tuple(int(i) for i in at)
    row.relative = row.largest / scale if scale else (math.inf if row.largest else 0.0)
    row.expected, row.got, row.ok = wanted[at].item(), found[at].item(), not bool(np.any(differs))
