"""Writes tests/data/vision.cases: torchvision's results of its operators for detectors.

    pip install torch==2.15.0 torchvision==0.29.2
    python tests/custom_ops/make_vision_cases.py
"""
import math

import torch
import torchvision  # noqa: F401  its operators

from aten_cases import Atens, Samples

FLOAT, DOUBLE, HALF, BFLOAT = torch.float32, torch.float64, torch.float16, torch.bfloat16
NAN, INF = math.nan, math.inf


def tensor(rows, dtype=FLOAT):
    return torch.tensor(rows, dtype=dtype)


def nms(out, s):
    boxes = tensor([[0, 0, 4, 4], [0, 0, 4, 4], [0, 0, 4, 2], [2, 2, 6, 6], [9, 9, 9, 9], [4, 4, 0, 0], [0, 0, 4, 4]])
    scores = tensor([0.5, 0.9, 0.9, 0.5, 0.5, 0.7, 0.9])
    for dtype in (FLOAT, DOUBLE):
        # 0.5 is the overlap of boxes 0 and 2: not above the threshold.
        for threshold in (0.5, 0.49999, 0.0, 1.0, -1.0, 1 / 7, NAN):
            out.add("torchvision::nms", boxes.to(dtype), scores.to(dtype), threshold)
        out.add("torchvision::nms", boxes.to(dtype), torch.zeros(7, dtype=dtype), 0.3)
        out.add("torchvision::nms", boxes.to(dtype), tensor([NAN, 1, INF, -INF, NAN, 0, -0.0], dtype), 0.3)
        odd = boxes.clone()
        odd[0, 0], odd[1, 3], odd[2, 2], odd[3, 1] = NAN, INF, -INF, NAN
        out.add("torchvision::nms", odd.to(dtype), scores.to(dtype), 0.3)
        out.add("torchvision::nms", torch.zeros(0, 4, dtype=dtype), torch.zeros(0, dtype=dtype), 0.5)
        for n in (1, 7, 8, 9, 33):
            corners = torch.randint(0, 12, (n, 2), generator=s.g).to(dtype)
            drawn = torch.cat([corners, corners + torch.randint(1, 8, (n, 2), generator=s.g)], 1)
            out.add("torchvision::nms", s.strided(drawn), s.sample(dtype, [n]), 0.25)
    # 0.7 lies between two float32; the overlap 7/10 rounds to the lower one, which is not above it.
    out.add("torchvision::nms", tensor([[0, 0, 10, 1], [0, 0, 7, 1]]), tensor([1, 0]), 0.7)
    out.add("torchvision::nms", tensor([[0, 0, 10, 1], [0, 0, 7, 1]]), tensor([1, 0]), 0.6999999)
    for call, message in (((boxes, scores.double(), 0.5), "dets should have the same type as scores"),
                          ((boxes[0], scores, 0.5), "boxes should be a 2d tensor, got 1D"),
                          ((boxes[:, :3], scores, 0.5), "boxes should have 4 elements in dimension 1, got 3"),
                          ((boxes, scores[None], 0.5), "scores should be a 1d tensor, got 2D"),
                          ((boxes, scores[:3], 0.5),
                           "boxes and scores should have same number of elements in dimension 0, got 7 and 3")):
        out.add("torchvision::nms", *call, message=message)
    for dtype in (HALF, BFLOAT, torch.int32):
        out.add("torchvision::nms", boxes.to(dtype), scores.to(dtype), 0.5, message="not implemented for")


def regions(s, dtype, batch, height, width, turned=False):
    """Inside, of one point, across each edge, outside, far larger than the image; in pixels of twice the image's size."""
    rows = [[0, 1, 1, width, height], [batch - 1, 3, 2, 3, 2], [0, -5, -3, width, height], [0, width, 0, 3 * width, 2 * height],
            [batch - 1, 9 * width, 9 * height, 10 * width, 10 * height], [0, -40 * width, -30 * height, 50 * width, 60 * height],
            [batch - 0.5, 0.3, 0.7, 1.9 * width, 1.7 * height]]
    if turned:
        rows.append([0, width, height, 1, 1])
    return s.strided(tensor(rows, dtype), ("packed", "permuted", "sliced", "offset"))


def pooled(out, s):
    for dtype in (FLOAT, DOUBLE, HALF):
        for (batch, height, width), (ph, pw) in (((1, 8, 9), (2, 3)), ((2, 5, 4), (3, 1)), ((2, 1, 1), (2, 2))):
            image = lambda c, special=0.0: s.sample(dtype, [batch, c, height, width], special=special)
            r = regions(s, dtype, batch, height, width)
            back = regions(s, dtype, batch, height, width, turned=True)
            for aligned in (False, True):
                for ratio in (-1, 0, 1, 2, 3):
                    out.add("torchvision::roi_align", image(2), r if aligned and ratio < 1 else back, 0.5, ph, pw, ratio, aligned)
            out.add("torchvision::roi_align", image(2, 0.2), r, 0.5, ph, pw, 2, True)
            out.add("torchvision::roi_pool", image(2), back, 0.5, ph, pw)
            out.add("torchvision::roi_pool", image(2, 0.3), back, 0.3, ph, pw)
            out.add("torchvision::roi_pool", torch.full([batch, 1, height, width], NAN, dtype=dtype), back, 0.5, ph, pw)
            for ratio in (-1, 2):
                out.add("torchvision::ps_roi_align", image(2 * ph * pw), back, 0.5, ph, pw, ratio)
            out.add("torchvision::ps_roi_pool", image(2 * ph * pw), back, 0.5, ph, pw)
        # An infinite first element: torchvision's roi_align multiplies it by 0 for points outside.
        first = torch.ones(1, 1, 4, 4, dtype=dtype)
        first[0, 0, 0, 0] = INF
        out.add("torchvision::roi_align", first, tensor([[0, 2, 2, 9, 9], [0, 1, 1, 3, 3]], dtype), 1.0, 2, 2, 2, True)
        empty = torch.zeros(0, 5, dtype=dtype)
        x = s.sample(dtype, [1, 4, 3, 3])
        out.add("torchvision::roi_align", x, empty, 1.0, 2, 2, 2, True)
        out.add("torchvision::roi_pool", x, empty, 1.0, 2, 2)
        out.add("torchvision::ps_roi_align", x, empty, 1.0, 2, 2, 2)
        out.add("torchvision::ps_roi_pool", x, empty, 1.0, 2, 2)
        r = tensor([[0, 0, 0, 2, 2]], dtype)
        out.add("torchvision::roi_align", x[:, :0], r, 1.0, 2, 2, 2, True)
        out.add("torchvision::roi_align", x, r, 1.0, 0, 2, 2, True)
        out.add("torchvision::roi_pool", x, r, 1.0, 2, 0)
    x, r = s.sample(FLOAT, [1, 4, 3, 3]), tensor([[0, 0, 0, 2, 2]])
    out.add("torchvision::roi_align", x, r.double(), 1.0, 2, 2, 2, True, message="input should have the same type as rois")
    for name, tail in (("ps_roi_align", (1.0, 3, 2, 2)), ("ps_roi_pool", (1.0, 3, 2))):
        out.add("torchvision::" + name, x, r, *tail, message="input channels must be a multiple of pooling height * pooling width")
        out.add("torchvision::" + name, x, r[:, :4], *tail, message="Tensor rois should have shape as Tensor[K, 5]")
    for dtype in (BFLOAT, torch.int32):
        for name, tail in (("roi_align", (1.0, 2, 2, 2, True)), ("roi_pool", (1.0, 2, 2)), ("ps_roi_align", (1.0, 2, 2, 2)),
                           ("ps_roi_pool", (1.0, 2, 2))):
            out.add("torchvision::" + name, x.to(dtype), r.to(dtype), *tail, message="not implemented for")


def deformed(out, s):
    near = {FLOAT: 2e-4, DOUBLE: 1e-10, HALF: 2e-2}
    for dtype in (FLOAT, DOUBLE, HALF):
        for batch, channels, size, made, kernel, stride, pad, dilation, groups, offset_groups, masked in (
                (1, 2, (5, 6), 3, (3, 3), (1, 1), (1, 1), (1, 1), 1, 1, True),
                (2, 4, (7, 5), 4, (3, 2), (2, 1), (0, 1), (1, 2), 2, 4, True),
                (2, 4, (9, 9), 2, (1, 1), (1, 1), (0, 0), (1, 1), 1, 2, False),
                (3, 6, (4, 17), 6, (2, 3), (1, 2), (2, 0), (2, 1), 3, 2, False)):
            at = [(n + 2 * p - d * (k - 1) - 1) // st + 1 for n, k, st, p, d in zip(size, kernel, stride, pad, dilation)]
            taps = offset_groups * kernel[0] * kernel[1]
            for spread in (0, 1, 4):
                x, w = s.sample(dtype, [batch, channels, *size]), s.sample(dtype, [made, channels // groups, *kernel])
                offset = s.sample(dtype, [batch, 2 * taps, *at], low=-spread, high=spread)
                mask = s.sample(dtype, [batch, taps, *at], low=0, high=1) if masked else torch.zeros(batch, 1, dtype=dtype)
                out.add("torchvision::deform_conv2d", x, w, offset, mask, s.sample(dtype, [made]), *stride, *pad, *dilation, groups,
                        offset_groups, masked, tolerance=near[dtype])
        x, w, b = s.sample(dtype, [1, 2, 4, 4]), s.sample(dtype, [1, 2, 1, 1]), torch.zeros(1, dtype=dtype)
        offset = torch.zeros(1, 2, 4, 4, dtype=dtype)
        offset[0, 0, 0, 0], offset[0, 1, 0, 1], offset[0, 0, 0, 2], offset[0, 1, 1, 0] = INF, -INF, 3e4, -1
        out.add("torchvision::deform_conv2d", x, w, offset, torch.ones(1, 1, 4, 4, dtype=dtype), b, 1, 1, 0, 0, 1, 1, 1, 1, True,
                tolerance=near[dtype])
        out.add("torchvision::deform_conv2d", x[:0], w, offset[:0], torch.zeros(0, 1, dtype=dtype), b, 1, 1, 0, 0, 1, 1, 1, 1, False)
    x, w, b = torch.ones(1, 2, 4, 4), torch.ones(3, 2, 3, 3), torch.zeros(3)
    offset, mask = torch.zeros(1, 18, 2, 2), torch.ones(1, 9, 2, 2)
    for changed, message in (
            ({"offset": offset[:, :4]}, "offset.shape[1] is not valid: got: 4 expected: 18"),
            ({"mask": mask[:, :4]}, "mask.shape[1] is not valid: got: 4 expected: 9"),
            ({"offset": torch.zeros(2, 18, 2, 2)}, "invalid batch size of offset"),
            ({"offset": torch.zeros(1, 18, 3, 2)}, "offset output dims: (3, 2) - computed output dims: (2, 2)"),
            ({"mask": torch.ones(2, 9, 2, 2)}, "invalid batch size of mask"),
            ({"mask": torch.ones(1, 9, 3, 2)}, "mask output dims: (3, 2) - computed output dims: (2, 2)"),
            ({"x": x.bfloat16(), "w": w.bfloat16(), "offset": offset.bfloat16(), "mask": mask.bfloat16(), "b": b.bfloat16()},
             "not implemented for")):
        given = {"x": x, "w": w, "offset": offset, "mask": mask, "b": b} | changed
        out.add("torchvision::deform_conv2d", *given.values(), 1, 1, 0, 0, 1, 1, 1, 1, True, message=message)


if __name__ == "__main__":
    out, s = Atens("vision.cases"), Samples(15)
    nms(out, s)
    pooled(out, s)
    deformed(out, s)
    out.out.close()
