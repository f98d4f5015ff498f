"""Exports torchvision's detectors with random weights, and compares what `sconce run` answers with eager: detectors.py SCONCE [NAME...]

torchvision's batched_nms chooses a way by how many boxes there are, which torch.export cannot record; docs/export.md has the function
that takes its place here. maskrcnn and keypointrcnn cannot be exported: they paste each mask in a Python loop over detections."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torchvision.ops.boxes as boxes
from torchvision.models import detection

SIZE = {"min_size": 96, "max_size": 128}
# Scores of random weights lie close together: these thresholds keep some hundred boxes.
DETECTORS = {
    "fasterrcnn": (detection.fasterrcnn_resnet50_fpn, SIZE | {"box_score_thresh": 0.0}, True),
    "fcos": (detection.fcos_resnet50_fpn, SIZE | {"score_thresh": 0.01}, False),
    "retinanet": (detection.retinanet_resnet50_fpn, SIZE | {"score_thresh": 0.0005}, False),
    "ssd": (detection.ssd300_vgg16, {}, False),
    "ssdlite": (detection.ssdlite320_mobilenet_v3_large, {}, False),
}


def batched_nms(rows, scores, classes, threshold):
    """torchvision's, without a branch over how many boxes there are: classes are moved apart."""
    apart = torch.cat([rows, rows.new_zeros(1, 4)]).max() + 1
    return boxes.nms(rows + (classes.to(rows) * apart)[:, None], scores, threshold)


class OneImage(torch.nn.Module):
    def __init__(self, detector):
        super().__init__()
        self.detector = detector

    def forward(self, image):
        return self.detector([image])[0]


def difference(expected, got):
    """What is wrong with the answer, or None. Boxes that score alike but for rounding may change places."""
    if expected.keys() != got.keys():
        return f"outputs {sorted(got)}"
    for name, want in expected.items():
        have = got[name]
        if have.shape != want.shape:
            return f"{name}: {have.shape} for {want.shape}"
    order = lambda answer: np.lexsort((answer["boxes"][:, 1].round(1), answer["boxes"][:, 0].round(1), answer["labels"]))
    a, b = order(expected), order(got)
    for name, want in expected.items():
        if not np.allclose(got[name][b], want[a], rtol=1e-3, atol=1e-3):
            return f"{name}: off by {np.abs(got[name][b] - want[a]).max()}"
    return None


def run(program, name, folder):
    make, settings, strict = DETECTORS[name]
    model, image = OneImage(make(weights=None, weights_backbone=None, num_classes=5, **settings).eval()), torch.rand(3, 96, 128)
    package = folder / f"{name}.pt2"
    with torch.no_grad():
        expected = {key: value.numpy() for key, value in model(image).items()}
        torch._inductor.aoti_compile_and_package(torch.export.export(model, (image,), strict=strict), package_path=str(package))
    np.save(folder / "image.npy", image.numpy())
    for command in ([program, "check", package], [program, "run", package, "--input", folder / "image.npy", "--output", folder / name]):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            return f"{command[1]}: {done.stderr or done.stdout}"
    got = {key: np.load(folder / name / f"RESULT[{key}].npy") for key in expected}
    return difference(expected, got) or f"ok, {len(expected['boxes'])} boxes"


def main():
    program, names = sys.argv[1], sys.argv[2:] or list(DETECTORS)
    boxes.batched_nms = batched_nms
    passed = 0
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", scratch + "/inductor")
        for name in names:
            torch.manual_seed(0)
            torch._dynamo.reset()
            begun = time.time()
            said = run(program, name, pathlib.Path(scratch))
            passed += said.startswith("ok")
            print(f"{name:12} {time.time() - begun:6.0f} s  {said}", flush=True)
    print(f"{passed} passed, {len(names) - passed} failed")
    return passed != len(names)


if __name__ == "__main__":
    sys.exit(main())
