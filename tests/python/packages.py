"""The packages of these tests: the digits example, fake models, cases, and packages with another call spec."""
import json
import pathlib
import re
import tarfile
import zipfile

import numpy as np
from where import BUILD, ROOT

DIGITS = ROOT / "examples/digits/digits.pt2"
FAKES = BUILD / "tests/fake_model"
FAKE = FAKES / "fake_batched.pt2"  # y = x * w + b, x [B, 4]; w = 1, 2, 3, 4; b = 0, 10, 20, 30
SUITES = [ROOT / f"tests/data/{name}.tar.xz" for name in ("basics", "graphs", "packed")]
SUITES += sorted((ROOT.parent / "shared/conformance").glob("*-cpu.tar.xz"))


def fake_expected(x):
    return x * np.arange(1, 5, dtype=np.float32) + np.arange(0, 40, 10, dtype=np.float32)


LEAF = {"type": None, "context": None, "children_spec": []}


def node(kind, children, context=None):
    """A node of a call spec as torch.utils._pytree.treespec_dumps writes it."""
    text = context if isinstance(context, str) else json.dumps(context)
    return {"type": kind, "context": text, "children_spec": list(children)}


def tuple_of(*children):
    return node("builtins.tuple", children)


def dict_of(**children):
    return node("builtins.dict", children.values(), list(children))


def call_of(*args, **kwargs):
    return tuple_of(tuple_of(*args), dict_of(**kwargs))


def with_call_spec(source, target, in_spec=None, out_spec=None):
    """A copy of the package whose generated source records another call."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("wrapper.cpp"):
                text = content.decode()
                for member, spec in (("in_spec_", in_spec), ("out_spec_", out_spec)):
                    if spec is None:
                        continue
                    line = f'{member} = R"({json.dumps([1, spec])})";'
                    text, count = re.subn(member + r' = R"\(.*?\)";', lambda _, line=line: line, text, flags=re.DOTALL)
                    assert count == 1, f"{member} is there {count} times"
                content = text.encode()
            new.writestr(name, content)
    return target


def that_writes_its_input(source, target):
    """A copy of the package whose generated source casts the input to memory that a kernel may write."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("wrapper.cpp"):
                assert content.count(b"(const float*)(arg0_1.data_ptr())") == 1
                content = content.replace(b"(const float*)(arg0_1.data_ptr())", b"(float*)(arg0_1.data_ptr())")
            new.writestr(name, content)
    return target


class Case:
    """A conformance case (format: tests/data/case_writer.py writes it)."""

    def __init__(self, folder):
        self.folder = folder
        self.info = json.loads((folder / "case.json").read_text())
        self.data = (folder / "data.bin").read_bytes()
        self.package = folder / self.info["package"]

    def array(self, tensor, own=True):
        """The tensor as a NumPy array with its strides; bfloat16 and float8 need ml_dtypes."""
        dtype = numpy_dtype(tensor["dtype"])
        storage = np.frombuffer(self.data, np.uint8, tensor["bytes"], tensor["at"])
        storage = storage.copy() if own else storage
        return np.ndarray(tensor["shape"], dtype, storage, tensor["offset"] * dtype.itemsize,
                          [stride * dtype.itemsize for stride in tensor["stride"]])


def numpy_dtype(name):
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes
        return np.dtype(getattr(ml_dtypes, name))


def unpack(suite, folder):
    with tarfile.open(suite) as archive:
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # 3.11.4 on
    return sorted(path.parent for path in pathlib.Path(folder).rglob("case.json"))
