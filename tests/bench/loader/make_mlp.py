"""Writes a case with the benchmark's small model, 64-128-10, batch 1: FOLDER."""
import json
import pathlib
import sys

import torch
import torch._inductor.config as config
from torch import nn

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
torch.manual_seed(0)
torch.set_num_threads(1)
config.cpp.threads = 1
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).eval()
x = torch.randn(1, 64)
with torch.no_grad():
    program = torch.export.export(model, (x,))
    torch._inductor.aoti_compile_and_package(program, package_path=str(folder / "model.pt2"))
(folder / "data.bin").write_bytes(x.numpy().tobytes())
tensor = {"dtype": "float32", "shape": [1, 64], "stride": [64, 1], "offset": 0, "at": 0, "bytes": 256, "device": "cpu"}
(folder / "case.json").write_text(json.dumps({"format": 1, "name": "mlp", "package": "model.pt2", "model": "model",
                                              "device": "cpu", "steps": [{"do": "run", "inputs": [tensor], "outputs": []}]}))
