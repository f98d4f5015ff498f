"""Makes packages that call torchvision's operators by name and packs them as tests/data/vision.tar.xz.

    python -m venv .venv && .venv/bin/pip install torch==2.15.0 torchvision==0.29.2 numpy
    .venv/bin/python tests/data/make_vision_packages.py [NAME...]

case_suite.py says how they are compiled. With names, only those cases are made and left unpacked in build/cases.
"""
from case_suite import case, make_suite, record  # before torch

import torch
import torchvision.ops as ops
from torch.export import Dim


def boxes(count, side=20.0):
    corners = torch.rand(count, 2) * side
    return torch.cat([corners, corners + torch.rand(count, 2) * side / 2], 1)


def regions(count, images, side=12.0):
    return torch.cat([torch.randint(images, (count, 1)).float(), boxes(count, side)], 1)


@case
def vision_best_boxes():
    """As many results as boxes are kept; as many boxes as the request brings."""
    def best(rows, scores):
        kept = ops.nms(rows, scores, 0.4)
        return rows[kept] * 2, scores[kept], kept

    n = Dim("n", min=2, max=400)
    r = record("vision_best_boxes", best, boxes(30), torch.rand(30), dynamic_shapes=({0: n}, {0: n}), by_name=True)
    for count in (2, 30, 400):
        r.run(boxes(count), torch.rand(count))
    # Equal scores: the first box of each place stays. Code that torch 2.15 generates refuses a single result.
    r.run(torch.tensor([[0.0, 0, 4, 4], [9, 9, 12, 12]]).repeat(5, 1), torch.ones(10))
    return r


@case
def vision_pooled_regions():
    """roi_align, roi_pool and their position-sensitive forms between compiled loops."""
    def pooled(image, rows):
        x = image.sin()
        return (ops.roi_align(x, rows, (3, 2), 0.5, 2, True).cos(), ops.roi_align(x, rows, (2, 2), 0.5, -1, False),
                ops.roi_pool(x, rows, (2, 2), 0.5), ops.ps_roi_align(x, rows, (2, 2), 0.5), ops.ps_roi_pool(x, rows, (2, 2), 0.5) + 1)

    k = Dim("k", min=2, max=64)
    r = record("vision_pooled_regions", pooled, torch.randn(2, 8, 9, 7), regions(5, 2), dynamic_shapes=(None, {0: k}), by_name=True)
    for count in (2, 5, 64):
        r.run(torch.randn(2, 8, 9, 7), regions(count, 2))
    return r


@case
def vision_deformed_convolution():
    layer = ops.DeformConv2d(4, 6, 3, padding=1, groups=2)

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x, offset, mask):
            return self.layer(x, offset, mask.sigmoid()).relu(), self.layer(x, offset)

    inputs = lambda: (torch.randn(2, 4, 8, 7), torch.randn(2, 18, 8, 7), torch.randn(2, 9, 8, 7))
    r = record("vision_deformed_convolution", Layer(), *inputs(), by_name=True)
    r.run(*inputs())
    r.run(*inputs())
    return r


if __name__ == "__main__":
    make_suite("vision")
