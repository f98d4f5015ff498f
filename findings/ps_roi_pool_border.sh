#!/usr/bin/env bash
# torchvision's ps_roi_pool never reads the last row and the last column of a feature map.
#
# A good guess is that a region that covers the whole map is averaged over the whole map, as roi_pool takes its maximum
# over all of it and ps_roi_align samples all of it. ps_roi_pool bounds the end of each bin, which is exclusive, by
# height - 1 and width - 1 instead of height and width. So the average of a region [0, 0, 8, 8] over an 8x8 map has 49
# cells, and whatever stands in row 7 or column 7 changes no result. Who computes R-FCN's pooling anew has to do the same to
# give torchvision's answers.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" -q install torch==2.15.0 torchvision==0.29.2 numpy==2.4.6
"$scratch/venv/bin/python" - <<'PY'
import sys

import torch
import torchvision
from torchvision.ops import ps_roi_align, ps_roi_pool, roi_pool

print("torch", torch.__version__, "torchvision", torchvision.__version__)
whole = torch.tensor([[0.0, 0.0, 0.0, 8.0, 8.0]])


def read_by(pool):
    """Of the 64 cells, those that change the result of the whole map's region."""
    cells = set()
    for row in range(8):
        for column in range(8):
            x = torch.zeros(1, 1, 8, 8)
            x[0, 0, row, column] = 1
            if float(pool(x)):
                cells.add((row, column))
    return cells


every = {(row, column) for row in range(8) for column in range(8)}
inner = {(row, column) for row, column in every if row < 7 and column < 7}
average = read_by(lambda x: ps_roi_pool(x, whole, 1))
maximum = read_by(lambda x: roi_pool(x, whole, 1))
aligned = read_by(lambda x: ps_roi_align(x, whole, 1, sampling_ratio=8))
for name, cells in (("ps_roi_pool", average), ("roi_pool", maximum), ("ps_roi_align", aligned)):
    print(f"{name}: {len(cells)} of 64 cells count; without: {sorted(every - cells)}")
sys.exit(not (average == inner and maximum == every and aligned == every))
PY
