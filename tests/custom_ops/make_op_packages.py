"""Writes packages/*.pt2 (models that call custom operators) and packages/stable_sample.so.

    .venv/bin/python tests/custom_ops/make_op_packages.py      # torch 2.15 and a C++ compiler

rotate.pt2 calls operators of examples/custom_op/geometry.c by name, through the proxy executor; scaled.pt2 links to the
C function of shim_library.c. stable_sample.so is stable_sample.cpp, built with PyTorch's headers. They are checked in
without symbols, compiled for any x86-64 with AVX2.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
sys.path += [str(DATA), str(HERE.parent / "server")]
os.environ["CXX"] = str(DATA / "portable_cxx.sh")
os.environ["SCONCE_TORCH_DIR"] = str(pathlib.Path(importlib.util.find_spec("torch").origin).parent)

import torch  # noqa: E402
from make_packages import strip  # noqa: E402  # of tests/server
from portable_package import make_portable  # noqa: E402
from torch._inductor.package import package_aoti  # noqa: E402

OPTIONS = {"aot_inductor.package": True, "cpp.march": "x86-64-v3", "cpp.simdlen": 256, "cpp.threads": 1}


@torch.library.custom_op("geometry::rotate", mutates_args=(),
                         schema="(Tensor points, float angle=3.141592653589793) -> Tensor")
def rotate(points, angle=3.141592653589793):
    c, s = torch.cos(torch.tensor(angle)), torch.sin(torch.tensor(angle))
    return torch.stack([points[:, 0] * c - points[:, 1] * s, points[:, 0] * s + points[:, 1] * c], 1)


@rotate.register_fake
def _(points, angle=3.141592653589793):
    return torch.empty_like(points)


@torch.library.custom_op("geometry::scaled", mutates_args=(), schema="(Tensor points, float by) -> Tensor")
def scaled(points, by):
    return points * by


@scaled.register_fake
def _(points, by):
    return torch.empty_like(points)


class Scale(torch.nn.Module):
    def forward(self, points):
        return torch.ops.geometry.scaled(points + 1, 2.5) - 1


class Turn(torch.nn.Module):
    def forward(self, points):
        turned = torch.ops.geometry.rotate(points * 2, 0.5)
        return torch.ops.geometry.rotate(turned, angle=-0.25) + 1, torch.ops.geometry.rotate(points)


def write(name, model, options):
    points = torch.export.Dim("n", max=64)
    program = torch.export.export(model, (torch.randn(5, 2),), dynamic_shapes=({0: points},))
    with torch.no_grad():
        files = torch._inductor.aot_compile(program.module(), *program.example_inputs, options=OPTIONS | options)
    path = HERE / "packages" / f"{name}.pt2"
    path.parent.mkdir(exist_ok=True)
    package_aoti(str(path), files)
    strip(path)
    make_portable(path, "x86-64-v3")


def write_library(name):
    source, library = HERE / f"{name}.cpp", HERE / "packages" / f"{name}.so"
    include = pathlib.Path(os.environ["SCONCE_TORCH_DIR"]) / "include"
    subprocess.run(["g++", "-std=c++20", "-O2", "-march=x86-64-v3", "-shared", "-fPIC", "-s", "-isystem", str(include),
                    f"-ffile-prefix-map={include}=torch", f"-ffile-prefix-map={HERE}=.", str(source), "-o",
                    str(library)], check=True)


write("rotate", Turn(), {})
write("scaled", Scale(), {"aot_inductor.custom_ops_to_c_shims": {torch.ops.geometry.scaled.default: [
    "AOTITorchError aoti_torch_cpu_scaled(AtenTensorHandle points, double by, AtenTensorHandle* ret0)"]}})
write_library("stable_sample")
