"""Exports small models, for test_export.py: `python export_cases.py FOLDER CASE...` prints a line of JSON for each case.

It runs in any Python with torch (SCONCE_TORCH_PYTHON), which need not have pytest.
"""
import collections
import dataclasses
import json
import os
import pathlib
import sys
import traceback
import unittest.mock

import pure  # noqa: F401

import torch

from sconce._export import export

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Net(torch.nn.Module):
    """Parameters and buffers of every size, one of each unused or not persistent."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(6, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.scale = torch.nn.Parameter(torch.tensor(2.0))
        self.register_buffer("unused", torch.ones(3))
        self.register_buffer("offset", torch.arange(4.), persistent=False)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x, *, y=None):
        z = self.drop(self.norm(self.linear(x))) * self.scale + self.offset
        return {"y": torch.tanh(z), "pair": (z.argmax(1), y)}


def rows(n=3):
    torch.manual_seed(1)
    return torch.randn(n, 6)


def told(report):
    return {"path": report.path, "bytes": report.bytes, "checked": report.checked, "text": str(report),
            "calls": [c.call for m in report.models.values() for c in m.comparisons],
            "outputs": [r.output for m in report.models.values() for c in m.comparisons for r in c.rows],
            "constants": {m.name: m.constants for m in report.models.values()},
            "unused": {m.name: m.unused for m in report.models.values()},
            "inlined": {m.name: m.inlined for m in report.models.values()},
            "rows": {m.name: None if m.rows is None else json.loads(m.rows.metadata()) for m in report.models.values()}}


# What is exported

@case
def batch(folder):
    model = Net()
    result = told(export(model, rows(1), folder / "batch.pt2", batch=(1, 64), kwargs={"y": rows(1)}))
    return {**result, "state": list(model.state_dict()), "training": model.training}


class Joined(torch.nn.Module):
    def forward(self, x):
        return centred(x)


def centred(x):
    return x - x.mean(0)


@case
def joined(folder):
    """A model whose rows meet and one whose rows do not, with metadata of the user's."""
    return told(export({"meets": (Joined(), (rows(),)), "alone": (Net(), (rows(),))}, folder / "joined.pt2", batch=8,
                       metadata={"who": "me"}))


@case
def again(folder):
    export(Net(), rows(1), folder / "again/batch.pt2", batch=(1, 64), kwargs={"y": rows(1)}, check=False)
    return {"same": (folder / "again/batch.pt2").read_bytes() == (folder / "batch.pt2").read_bytes()}


@case
def avx512(folder):
    return told(export(Net(), rows(), folder / "avx512.pt2", cpu="x86-64-v4"))


@case
def native(folder):
    return told(export(Net(), rows(), folder / "native.pt2", cpu="native", updatable=False, metadata={"who": "me"}))


@case
def haswell(folder):
    return told(export(Net(), rows(), folder / "haswell.pt2", cpu="haswell", threads=1))


@case
def beside(folder):
    return told(export(Net(), rows(), folder / "beside.pt2", weights="beside"))


@case
def none(folder):
    return told(export(Net(), rows(), folder / "none.pt2", weights="none"))


@case
def bfloat16(folder):
    model = Net()
    result = told(export(model, rows(), folder / "bfloat16.pt2", dtype=torch.bfloat16, batch=8))
    return {**result, "dtype": str(model.scale.dtype)}


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Scores:
    best: torch.Tensor
    all: torch.Tensor


class Plain:
    """Registered by hand."""

    def __init__(self, a, b):
        self.a, self.b = a, b


@case
def several(folder):
    torch.export.register_dataclass(Scores, serialized_type_name="export_cases.Scores")

    class Structured(torch.nn.Module):
        def forward(self, point, named):
            total = point.x + named["b"][0]
            return Scores(total.max(1).values, total)

    return told(export({"first": (Net(), rows()),
                        "second.one": (Structured(), (Point(rows(), rows()), {"b": [rows()]})),
                        "function": (lambda a, b: a @ b.T, (rows(), rows()))}, folder / "several.pt2"))


@case
def registered(folder):
    torch.utils._pytree.register_pytree_node(
        Plain, lambda p: ([p.a, p.b], None), lambda children, _: Plain(*children),
        serialized_type_name="export_cases.Plain", to_dumpable_context=lambda c: "none", from_dumpable_context=lambda c: None)

    class Holder(torch.nn.Module):
        def forward(self, x):
            return Plain(x + 1, x * 2)
    return told(export(Holder(), rows(), folder / "registered.pt2"))


@case
def written_arguments(folder):
    class Writes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            x.add_(1)
            self.count.add_(1)
            return x * self.count
    x = rows()
    result = told(export(Writes(), x, folder / "written.pt2"))
    return {**result, "untouched": bool(torch.equal(x, rows()))}


@case
def written_inputs(folder):
    """Of each function of two tensors: which it writes, by running it."""
    def view(x, y):
        x[:, 2:4].mul_(2)
        return x + y
    functions = {
        "reads": lambda x, y: (torch.softmax(x @ y.t(), -1), torch.sort(x)[0], torch.cat([x, y]).cumsum(0)),
        "fallbacks": lambda x, y: (x @ y.t(), torch.topk(y, 2)[1], torch.conv1d(x[:, None], y[:, None])),
        "returns": lambda x, y: (x, x.t(), y.view(-1)[6:12]),
        "adds": lambda x, y: x.add_(y),
        "copies": lambda x, y: (y.copy_(x * 2), x + y)[1],
        "view": view,
        "scatters": lambda x, y: x.scatter_add_(0, (y > 0).long(), y) * 2,
        "puts": lambda x, y: x.index_put_([torch.tensor([0, 0])], y[:2], accumulate=True) * 1,
        "products": lambda x, y: y.addmm_(x, torch.ones(6, 6)) * 1,
    }
    written = {}
    for name, function in functions.items():
        given = rows(), rows() + 1
        used = [x.clone() for x in given]
        function(*used)
        written[name] = [not torch.equal(a, b) for a, b in zip(given, used)]
    models = {name: (function, (rows(), rows() + 1)) for name, function in functions.items()}
    return {**told(export(models, folder / "written_inputs.pt2")), "written": written}


@case
def wrong_answer(folder):
    """A model that is not the same twice: what differs is shown, and nothing is written."""
    class Random(torch.nn.Module):
        def forward(self, x):
            return x + torch.rand_like(x)
    old = folder / "random.pt2"
    old.write_bytes(b"what was there")
    try:
        export(Random(), rows(), old)
    except Exception as error:  # noqa: BLE001
        return {**failure(error), "kept": old.read_bytes() == b"what was there", "left": sorted(os.listdir(folder))}
    return {}


# What is refused

def failure(error):
    return {"error": type(error).__name__, "text": str(error), "cure": getattr(error, "cure", "")}


def refusal(function):
    def attempt(folder):
        try:
            function(folder / "refused.pt2")
        except Exception as error:  # noqa: BLE001
            if os.environ.get("SHOW"):
                traceback.print_exc()
            return failure(error)
        return {"error": None, "text": "", "cure": ""}
    CASES[function.__name__] = attempt
    return function


def module(forward):
    return type("Model", (torch.nn.Module,), {"forward": lambda self, *args, **kwargs: forward(*args, **kwargs)})()


@refusal
def branch(path):
    class Branch(torch.nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                return x + 1
            return x - 1
    export(Branch(), rows(), path)


@refusal
def item(path):
    class Item(torch.nn.Module):
        def forward(self, x):
            return x[:, :int(x.sum().item())]
    export(Item(), rows(), path)


@refusal
def fixed_batch(path):
    class Fixed(torch.nn.Module):
        def forward(self, x):
            return x.reshape(3, 2, 3) + 1
    export(Fixed(), rows(), path, batch=(1, 64))


@refusal
def small_batch(path):
    class Small(torch.nn.Module):
        def forward(self, x):
            if x.shape[0] > 15:
                return x * 2
            return x
    export(Small(), rows(), path, batch=(1, 64))


@refusal
def multiple(path):
    class Pairs(torch.nn.Module):
        def forward(self, x):
            return x.reshape(-1, 2, 6).sum(1)
    export(Pairs(), rows(4), path, batch=(2, 64))


@refusal
def no_fake(path):
    @torch.library.custom_op("sconce_test::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    class Custom(torch.nn.Module):
        def forward(self, x):
            return torch.ops.sconce_test.double(x)
    export(Custom(), rows(), path)


@refusal
def unknown_operator(path):
    """torch can, but no library of Sconce has the operator."""
    @torch.library.custom_op("sconce_test::triple", mutates_args=())
    def triple(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    triple.register_fake(lambda x: torch.empty_like(x))

    class Custom(torch.nn.Module):
        def forward(self, x):
            return torch.ops.sconce_test.triple(x)
    export(Custom(), rows(), path)


@refusal
def text_output(path):
    class Text(torch.nn.Module):
        def forward(self, x):
            return {"x": x, "unit": "metres"}
    export(Text(), rows(), path)


@refusal
def unregistered(path):
    class Output:
        def __init__(self, x):
            self.x = x

    class Returns(torch.nn.Module):
        def forward(self, x):
            return Output(x + 1)
    export(Returns(), rows(), path)


@refusal
def unnamed_type(path):
    class Unnamed:
        def __init__(self, x):
            self.x = x
    torch.utils._pytree.register_pytree_node(Unnamed, lambda o: ([o.x], None), lambda children, _: Unnamed(*children))

    class Returns(torch.nn.Module):
        def forward(self, x):
            return Unnamed(x + 1)
    export(Returns(), rows(), path)


@refusal
def numpy(path):
    import numpy as np

    class Leaves(torch.nn.Module):
        def forward(self, x):
            return torch.from_numpy(np.tanh(x.numpy()))
    export(Leaves(), rows(), path)


def with_compiler(script):
    def attempt(path):
        compiler = path.parent / "cxx"
        compiler.write_text(f"#!/bin/sh\n{script}\n")
        compiler.chmod(0o755)
        from torch._inductor import config
        with unittest.mock.patch.object(config.cpp, "cxx", (None, str(compiler))):
            export(module(lambda x: x + 1), rows(), path)
    return attempt


@refusal
def no_compiler(path):
    from torch._inductor import config
    with unittest.mock.patch.object(config.cpp, "cxx", (None, "/nothing/g++")), \
            unittest.mock.patch.dict(os.environ, {"PATH": "/nothing"}):
        export(module(lambda x: x + 1), rows(), path)


# Knows g++'s macros and version, and fails for torch's sources as g++ does for a header that is not there.
FAILING = """case "$*" in *-dM*|*--version*|*"-E "*) exec g++ "$@";; esac
case "$*" in *sconce-export*cpp*) echo "%s" >&2; exit 1;; esac
exec g++ "$@"
"""


def failing_for(line):
    return FAILING % line


refusal_of_compiler = {
    "no_openmp": failing_for("x.cpp:2:10: fatal error: omp.h: No such file or directory"),
    "no_python_headers": failing_for("x.cpp:3:10: fatal error: Python.h: No such file or directory"),
}
for name, script in refusal_of_compiler.items():
    function = with_compiler(script)
    function.__name__ = name
    refusal(function)


@refusal
def no_cuda(path):
    with unittest.mock.patch("torch.cuda.is_available", return_value=False):
        export(Net(), rows(), path, device="cuda")


@refusal
def other_device(path):
    export(Net(), rows(), path, device="mps")


@refusal
def failing_model(path):
    export(Net(), rows()[:, :5], path)


@refusal
def old_cpu(path):
    export(Net(), rows(), path, cpu="x86-64-v2")


@refusal
def no_cpu(path):
    export(Net(), rows(), path, cpu="z80")


@refusal
def rows_outside(path):
    export(Net(), rows(3), path, batch=(4, 8))


@refusal
def reserved_metadata(path):
    export(Net(), rows(), path, metadata={"sconce_rows": '{"version":1,"independent":true}'})


@refusal
def wrong_name(path):
    export(Net(), rows(), path.with_suffix(".zip"))


@refusal
def wrong_weights(path):
    export(Net(), rows(), path, weights="outside")


def main():
    folder = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or CASES:
        try:
            result = CASES[name](folder)
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            result = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps({"case": name, **result}), flush=True)


if __name__ == "__main__":
    main()
