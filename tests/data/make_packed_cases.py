"""Makes cases of weights that oneDNN packed when torch 2.6 compiled them, as tests/data/packed.tar.xz.

    python3.11 -m venv .venv26 && .venv26/bin/pip install torch==2.6.0 numpy
    .venv26/bin/python tests/data/make_packed_cases.py [NAME...]

Packages of torch 2.6 use their constants where they lie, so that how long a packed one is stands in its description
alone. Layouts are those for AVX2, with channels padded to 8. With names, only those cases are made and left unpacked in
build/cases.
"""
import os

os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"
os.environ["ATEN_CPU_CAPABILITY"] = "avx2"
from case_suite import case, make_suite, record  # before torch

import torch
from torch import nn

import torch._inductor.config as inductor

inductor.freezing = True


class Each(nn.Module):
    """Each layer on an input of its own."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, *inputs):
        return tuple(layer(x) for layer, x in zip(self.layers, inputs))


def answered(name, model, *inputs):
    recorder = record(name, model, *inputs)
    recorder.run(*inputs)
    return recorder


@case
def convolution_8x3x3x3():
    return answered("convolution_8x3x3x3", nn.Conv2d(3, 8, 3), torch.randn(1, 3, 12, 12))


@case
def packed_layers():
    layers = Each(nn.Conv2d(5, 7, 3, padding=1), nn.Conv2d(12, 12, 3, groups=12), nn.Conv2d(12, 24, 3, groups=3),
                  nn.Conv3d(3, 8, 2), nn.ConvTranspose2d(3, 8, 3, stride=2), nn.ConvTranspose2d(8, 16, 3, groups=4),
                  nn.Linear(33, 17))
    shapes = ((2, 5, 9, 8), (2, 12, 8, 8), (2, 12, 6, 7), (1, 3, 4, 5, 6), (2, 3, 5, 5), (1, 8, 4, 4), (3, 33))
    return answered("packed_layers", layers, *(torch.randn(shape) for shape in shapes))


if __name__ == "__main__":
    make_suite("packed")
