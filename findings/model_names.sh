#!/usr/bin/env bash
# Two models of one package whose names differ in case only are one model to PyTorch's loader; a name with a slash hides the
# model named by its first part.
#
# A good guess is that any string names a model, since package_aoti takes a dictionary and writes one folder for each key.
# Folder names in the archive are exact, and `net` beside `net_large` works. But the loader finds a member by a search that
# ignores case, as miniz's does by default. Two models with the same wrapper code (here one architecture with two numbers)
# have libraries of one file name, so `net` and `Net` both get the library of one of the two; the other cannot be reached,
# and nothing is raised. With `net` and `net/large`, the folder of the first contains that of the second: two libraries are
# found for `net`, which is an error, and `net/large` loads with a warning that the file is outdated. A reader of such
# archives must compare names byte for byte; a writer must choose names that differ in more than case.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" -q install torch==2.15.0 numpy==2.4.6 setuptools
cd "$scratch"
TORCHINDUCTOR_CACHE_DIR=$scratch/cache "$scratch/venv/bin/python" - <<'PY'
import sys
import zipfile

import torch
import torch._inductor
from torch._inductor.package import load_package, package_aoti

print("torch", torch.__version__)
x = torch.ones(8)


class Times(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def compiled(factor):
    program = torch.export.export(Times(factor), (x,))
    return torch._inductor.aot_compile(program.module(), (x,), options={"aot_inductor.package": True})


def factor(path, name):
    """The number that the model of this name multiplies by, or the first words of the error."""
    try:
        return float(load_package(path, name)(x)[0])
    except RuntimeError as error:
        return str(error).split(":")[0]


two, three = compiled(2.0), compiled(3.0)
seen = []
for number, names in enumerate((("net", "net_large"), ("net", "Net"), ("Net", "net"), ("net", "net/large"))):
    path = package_aoti(f"package_{number}.pt2", dict(zip(names, (two, three))))
    with zipfile.ZipFile(path) as archive:
        libraries = [name.split("/", 3)[3] for name in archive.namelist() if name.endswith(".so")]
    seen.append({name: factor(path, name) for name in names})
    print(f"packed {dict(zip(names, (2.0, 3.0)))}: answers {seen[-1]}; libraries {[name[:14] + '...' for name in libraries]}")
sys.exit(
    not (
        seen[0] == {"net": 2.0, "net_large": 3.0}
        and all(len(set(answers.values())) == 1 and set(answers.values()) < {2.0, 3.0} for answers in seen[1:3])
        and seen[3] == {"net": "Multiple wrapper shared libraries found in AOTI package for model 'net'", "net/large": 3.0}
    )
)
PY
