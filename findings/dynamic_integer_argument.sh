#!/usr/bin/env bash
# A package compiled from a program with a dynamic integer argument has lost the integer: it computes as if None had been
# passed.
#
# A good guess is that an int that was exported with Dim.DYNAMIC is an input of the package, or that the compiler refuses
# it. The exported program has it as an input and answers rightly for each value. aoti_compile_and_package replaces it with
# None: the library then has one input instead of two, while its call spec still lists two arguments. `x[:, :n]` becomes
# `x[:, :None]` and returns all columns for each n, without a warning, since the Python loader drops what is no tensor
# before it calls the library. A tensor in the place of the integer is counted as an input too many. Only where None is no
# valid argument, as in `x * n`, compiling fails, and with words about a tensor. A runtime that counts arguments by the call
# spec counts one more than the library takes.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" -q install torch==2.15.0 numpy==2.4.6 setuptools
cd "$scratch"
TORCHINDUCTOR_CACHE_DIR=$scratch/cache "$scratch/venv/bin/python" - <<'PY'
import json
import re
import sys
import zipfile

import torch
import torch._inductor
from torch.export import Dim

print("torch", torch.__version__)
x = torch.ones(3, 16)


class Columns(torch.nn.Module):
    def forward(self, x, n):
        return x[:, :n] + 1


class Times(torch.nn.Module):
    def forward(self, x, n):
        return x * n


def exported(module):
    return torch.export.export(module, (x, 5), dynamic_shapes=(None, Dim.DYNAMIC))


def outcome(call):
    try:
        return call()
    except Exception as error:
        return str(error).splitlines()[0]


program = exported(Columns())
path = torch._inductor.aoti_compile_and_package(program, package_path="columns.pt2")
model = torch._inductor.aoti_load_package(path)
with zipfile.ZipFile(path) as archive:
    source = next(archive.read(name).decode() for name in archive.namelist() if name.endswith("wrapper.cpp"))
inputs = len(set(re.findall(r"inputs_info_\[(\d+)\]\.name", source)))
arguments = json.loads(model.loader.get_call_spec()[0])[1]["children_spec"][0]["children_spec"]
shapes = {n: (tuple(program.module()(x, n).shape), tuple(model(x, n).shape)) for n in (5, 7)}
tensor = outcome(lambda: model(x, torch.tensor(5)))
times = exported(Times())
product = float(times.module()(x, 7)[0, 0])
refusal = outcome(lambda: torch._inductor.aoti_compile_and_package(times, package_path="times.pt2"))

print(f"x[:, :n]: arguments in the call spec: {len(arguments)}, inputs of the library: {inputs}")
for n, (program_shape, package_shape) in shapes.items():
    print(f"  n = {n}: the exported program returns {program_shape}, the package {package_shape}")
print("  a tensor for n:", tensor)
print(f"x * n: the exported program multiplies by {product}; compiling: {refusal}")
sys.exit(
    not (
        (len(arguments), inputs) == (2, 1)
        and shapes == {5: ((3, 5), (3, 16)), 7: ((3, 7), (3, 16))}
        and tensor == "expected inputs vector size to be 1, but got 2"
        and product == 7.0
        and refusal.startswith("Expected a proper Tensor but got None")
    )
)
PY
