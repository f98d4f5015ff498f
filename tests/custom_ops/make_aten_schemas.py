"""Writes aten_schemas.txt: PyTorch's own schema of every operator that src/custom_ops/aten/*.cpp has a row for.

    .venv/bin/python tests/custom_ops/make_aten_schemas.py      # torch 2.15, torchvision 0.29
"""
import pathlib
import re

import torch
import torch._inductor.inductor_prims  # registers them
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
import torchvision  # noqa: F401  registers torchvision's

HERE = pathlib.Path(__file__).resolve().parent
rows = set()
for source in sorted((HERE.parents[1] / "src/custom_ops/aten").glob("*.cpp")):
    rows.update(re.findall(r'\{"(\w+::[\w.]+)\(', source.read_text()))
schemas = {"aten::cholesky": "aten::cholesky(Tensor self, bool upper=False) -> Tensor"}  # no longer in PyTorch
for schema in torch._C._jit_get_all_schemas():
    name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
    schemas[name] = str(schema)
with open(HERE / "aten_schemas.txt", "w") as out:
    for name in sorted(rows):
        print(schemas[name], file=out)
