#!/usr/bin/env bash
# AOTInductor writes parameters without dimensions, or with one dimension of at most 8 elements, into the code as numbers:
# no update reaches them, and load_constants refuses the model's own state_dict().
#
# A good guess is that each parameter and buffer of the module is a constant of the package, so that new weights replace all
# of them. A learned scale, a logit's temperature and the bias of a Linear with 8 outputs or fewer are none: they are in the
# generated source as literals. get_constant_fqns does not list them, the full state_dict() raises an error for them, and
# the state_dict() less those names is accepted as a full update. The model then answers with new weights and an old bias: a
# mixture, without a warning. A shape of (1, 1) or of 9 elements stays a constant, so a head for 8 classes behaves
# differently from one for 9. With always_keep_tensor_constants at compile time, all of them are constants. Whoever updates
# a package has to compare its names with the state_dict().
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" -q install torch==2.15.0 numpy==2.4.6 setuptools
cd "$scratch"
TORCHINDUCTOR_CACHE_DIR=$scratch/cache "$scratch/venv/bin/python" - <<'PY'
import sys

import torch
import torch._inductor

print("torch", torch.__version__)
x = torch.ones(2, 16)


class Heads(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.eight = torch.nn.Linear(16, 8)
        self.nine = torch.nn.Linear(16, 9)
        self.scale = torch.nn.Parameter(torch.tensor(1.0))
        self.row = torch.nn.Parameter(torch.ones(1, 1))
        self.register_buffer("shift", torch.ones(1))

    def forward(self, x):
        return self.eight(x), self.nine(x), x * self.scale, x * self.row, x + self.shift


module = Heads()
names = sorted(module.state_dict())
program = torch.export.export(module, (x,))


def updated(path):
    """The package's constants, the outcome of loading all new weights, and each output's rightness after the known ones."""
    model = torch._inductor.aoti_load_package(path)
    known = model.get_constant_fqns()
    weights = {name: weight + 1 for name, weight in module.state_dict().items()}
    try:
        model.load_constants(weights, check_full_update=True)
        outcome = "accepted"
    except RuntimeError as error:
        outcome = str(error).split(":")[0]
    model.load_constants({name: weights[name] for name in known}, check_full_update=True)
    expected = torch.func.functional_call(module, weights, (x,))
    right = [torch.allclose(result, value) for result, value in zip(model(x), expected)]
    return sorted(known), outcome, right


plain = updated(torch._inductor.aoti_compile_and_package(program, package_path="plain.pt2"))
options = {"always_keep_tensor_constants": True}
kept = updated(torch._inductor.aoti_compile_and_package(program, package_path="kept.pt2", inductor_configs=options))
for title, (known, outcome, right) in (("default", plain), ("always_keep_tensor_constants", kept)):
    print(f"{title}: constants {known}; missing {sorted(set(names) - set(known))}; the whole state_dict(): {outcome}")
    print("  as updated:", dict(zip(("eight", "nine", "scale", "row", "shift"), right)))
sys.exit(
    plain != (["eight.weight", "nine.bias", "nine.weight", "row"], "Constant not found", [False, True, False, True, False])
    or kept != (names, "accepted", [True] * 5)
)
PY
