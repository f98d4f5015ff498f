#!/usr/bin/env bash
# A package of a model with tied weights knows the last of their names, while named_parameters() and safetensors keep the
# first.
#
# A good guess is that load_constants takes the state_dict() of the very model that was compiled, since torch.export keeps
# both names in its own state_dict. The compiler joins parameters that share one storage and names the constant after the
# last of them. The package's loader refuses every name that it does not know, even with check_full_update=False, so:
# - the module's whole state_dict() is refused for the first name;
# - named_parameters(), which an optimizer steps through, has the first name alone: refused;
# - safetensors' save_model writes one of the two, and it is the one that the package does not have: refused.
# Only the package can say which name to send (get_constant_fqns). A runtime that takes weights by the names of a checkpoint
# must know that the two are one, and the package does not record it.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" -q install torch==2.15.0 numpy==2.4.6 safetensors==0.8.0 setuptools
cd "$scratch"
TORCHINDUCTOR_CACHE_DIR=$scratch/cache "$scratch/venv/bin/python" - <<'PY'
import sys

import safetensors
import safetensors.torch
import torch
import torch._inductor

print("torch", torch.__version__, "safetensors", safetensors.__version__)
x = torch.ones(2, 16)


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(16, 16, bias=False)
        self.second = torch.nn.Linear(16, 16, bias=False)
        self.second.weight = self.first.weight
        torch.nn.init.ones_(self.first.weight)

    def forward(self, x):
        return self.second(self.first(x))


module = Tied()
program = torch.export.export(module, (x,))
path = torch._inductor.aoti_compile_and_package(program, package_path="tied.pt2")
model = torch._inductor.aoti_load_package(path)
torch.nn.init.constant_(module.first.weight, 2.0)
safetensors.torch.save_model(module, "tied.safetensors")
sources = {
    "state_dict()": module.state_dict(),
    "named_parameters()": dict(module.named_parameters()),
    "safetensors' save_model": safetensors.torch.load_file("tied.safetensors"),
    "the package's own names": {name: module.state_dict()[name] for name in model.get_constant_fqns()},
}
print("the exported program has", list(program.state_dict), "and the package", model.get_constant_fqns())
seen = {}
for name, weights in sources.items():
    weights = {key: weight.detach() for key, weight in weights.items()}
    try:
        model.load_constants(weights, check_full_update=False)
        outcome = "accepted"
    except RuntimeError as error:
        outcome = str(error).splitlines()[0]
    seen[name] = (list(weights), outcome, float(model(x)[0, 0]))
    print(f"{name} has {seen[name][0]}: {outcome}; the answer is {seen[name][2]}")
first, second = "first.weight", "second.weight"
refused = f"Constant not found: {first}"
sys.exit(
    seen
    != {
        "state_dict()": ([first, second], refused, 256.0),
        "named_parameters()": ([first], refused, 256.0),
        "safetensors' save_model": ([first], refused, 256.0),
        "the package's own names": ([second], "accepted", 1024.0),
    }
    or list(program.state_dict) != [first, second]
)
PY
