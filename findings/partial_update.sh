#!/usr/bin/env bash
# A partial update of AOTInductor's inactive constants brings back old parameters: those it leaves out keep the values of
# the update before the last, while buffers it leaves out keep the current ones.
#
# A good guess is that constants which an update does not name stay as they are. A container has two sets of constants, and
# a swap exchanges them. An update with use_inactive=True and validate_full_updates=False writes the named constants into
# the inactive set. Of the others it copies buffers and tensor constants from the active set, but leaves parameters as they
# are there: as they were one swap ago. So after a full update, a swap, a partial update of one parameter and a swap, the
# other parameters are the original ones, beside buffers of the full update: a mixture that was never sent. With
# validate_full_updates=True a left-out buffer is still no error, only a warning on standard error. user_managed changes
# none of this. A program that pushes deltas through this interface has to send every parameter, or to copy the rest from
# the active set first.
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
from torch._C._aoti import AOTIModelContainerRunnerCpu

print("torch", torch.__version__)
x = torch.ones(16)


class Three(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.named = torch.nn.Parameter(torch.ones(16))
        self.other = torch.nn.Parameter(torch.ones(16))
        self.register_buffer("buffer", torch.ones(16))

    def forward(self, x):
        return x * self.named, x * self.other, x * self.buffer


path = torch._inductor.aoti_compile_and_package(torch.export.export(Three(), (x,)), package_path="three.pt2")
with zipfile.ZipFile(path) as archive:
    library = archive.extract(next(name for name in archive.namelist() if name.endswith(".so")))


def history(user_managed):
    """The numbers that the model multiplies by, (named, other, buffer), after each step."""
    runner = AOTIModelContainerRunnerCpu(library, 1)
    names = {original: name for name, original in runner.get_constant_names_to_original_fqns().items()}
    sent = []
    steps = []

    def values():
        return tuple(float(result[0]) for result in runner.run([x]))

    def update(value, keys, full):
        sent.append({names[key]: torch.full((16,), float(value)) for key in keys})
        runner.update_constant_buffer(sent[-1], True, full, user_managed)
        runner.swap_constant_buffer()
        steps.append(values())

    steps.append(values())
    update(2, ("named", "other", "buffer"), True)
    update(3, ("named",), False)
    update(4, ("named", "other"), True)
    return steps


seen = {user_managed: history(user_managed) for user_managed in (False, True)}
titles = ("as compiled", "all three updated to 2", "named alone updated to 3", "both parameters updated to 4, checked as full")
for user_managed, steps in seen.items():
    print(f"user_managed={user_managed}: (named, other, buffer)")
    for title, values in zip(titles, steps):
        print(f"  {title}: {values}")
expected = [(1.0, 1.0, 1.0), (2.0, 2.0, 2.0), (3.0, 1.0, 2.0), (4.0, 4.0, 2.0)]
sys.exit(any(steps != expected for steps in seen.values()))
PY
