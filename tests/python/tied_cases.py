"""Prints what sconce.export records of tied names of each model here, a JSON line each, with the names that the compiled package
has constants for if COMPILE is given; run by a Python with torch: `python tied_cases.py [COMPILE]`."""
import json
import pathlib
import sys
import tempfile
import zipfile

import torch

import pure  # noqa: F401 (finds the package's modules)
from sconce import _tied_names
from sconce._export import export


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 16), torch.nn.Linear(8, 16)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.a(x) + self.b(x)


class Many(Tied):
    """Modules, parameters and buffers under several names; views that share a storage but are not the same tensor."""

    def __init__(self):
        super().__init__()
        self.c = self.a
        self.register_buffer("table", torch.arange(32.0).reshape(2, 16))
        self.register_buffer("again", self.table)
        self.register_buffer("turned", self.table.view(16, 2))
        self.register_buffer("part", self.table[:1])
        self.register_buffer("copy", self.table.clone())
        self.register_buffer("empty", torch.empty(0))
        self.register_buffer("also_empty", self.empty)

    def forward(self, x):
        return self.c(x) + self.b(x) + self.table.sum(0) + self.again.amax(0) + self.turned.sum() + self.part + self.copy.sum(0)


class Unused(Tied):
    def forward(self, x):
        return x * 2


class Apart(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 16), torch.nn.Linear(8, 16)

    def forward(self, x):
        return self.a(x) + self.b(x)


def used(model):
    """As Subject.export()."""
    program = torch.export.export(model, (torch.ones(3, 8),))
    signature = program.graph_signature
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    return {names[node.name] for node in program.graph.nodes if node.op == "placeholder" and node.name in names and node.users}


def compiled(model):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tied.pt2"
        export(model, torch.ones(3, 8), path, check=False, progress=False, threads=1)
        with zipfile.ZipFile(path) as package:
            member = next(name for name in package.namelist() if name.endswith("_metadata.json"))
            return {"recorded": json.loads(package.read(member)).get(_tied_names.KEY),
                    "source": next(package.read(name).decode() for name in package.namelist() if name.endswith("wrapper.cpp"))}


for kind in (Tied, Many, Unused, Apart):
    model = kind().eval()
    line = {"case": kind.__name__, "text": _tied_names.metadata(torch, model, used(model))}
    if sys.argv[1:] == ["COMPILE"] and kind is Tied:
        line |= compiled(model)
    print(json.dumps(line))
