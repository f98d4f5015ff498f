#!/usr/bin/env bash
# load_constants takes the bytes of a tensor as they lie in memory: a transposed weight with the right values gives right
# answers in one operation of a model and those of its transpose in another.
#
# A good guess is that the values count: equal tensors give equal answers, whatever their strides, or a stride other than
# the compiled one is refused. The update copies the storage's bytes from the tensor's first element on, and gives the
# constant the new tensor's strides. Kernels that the compiler generated have the old strides in their code and read the
# bytes in that order; an operation of ATen that gets the constant as a tensor reads it by the new strides. So `x @ w` is
# right and `x + w` adds the transpose. An expanded tensor has fewer bytes than the constant: just these are copied, and the
# rest of the constant keeps its old values. Nothing is raised in either case. state_dict() of a model whose weights were
# transposed in place, or moved to channels_last, has such tensors. A sender must make each tensor contiguous as it was when
# the model was compiled; a runtime that wants right answers must reorder.
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
x = torch.eye(16)


class Both(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(16, 16))

    def forward(self, x):
        return x @ self.w, x + self.w


path = torch._inductor.aoti_compile_and_package(torch.export.export(Both(), (x,)), package_path="both.pt2")
values = torch.arange(256.0).reshape(16, 16)
transposed = values.t().contiguous().t()
print("equal tensors:", torch.equal(values, transposed), "strides:", values.stride(), transposed.stride())


def answers(user_managed, *weights):
    """The model's answers after the weights were loaded one after another."""
    model = torch._inductor.aoti_load_package(path)
    for weight in weights:
        model.load_constants({"w": weight}, check_full_update=True, user_managed=user_managed)
    return [result.clone() for result in model(x)]


def kind(result, right, of_transpose):
    return "right" if torch.equal(result, right) else "of the transpose" if torch.equal(result, of_transpose) else "other"


seen = {}
for user_managed in (False, True):
    right = [values, x + values]
    of_transpose = [values.t(), x + values.t()]
    for name, weight in (("contiguous", values), ("transposed", transposed)):
        results = answers(user_managed, weight)
        seen[user_managed, name] = [kind(*three) for three in zip(results, right, of_transpose)]
        product, total = seen[user_managed, name]
        print(f"user_managed={user_managed}, {name}: x @ w is {product}, x + w is {total}")
expanded = (answers(False, torch.ones(16, 16), torch.full((1, 1), 5.0).expand(16, 16))[1] - x).flatten()
fives = int((expanded == 5).sum())
print("all ones, then 5 expanded to 16x16: x + w adds", expanded[:4].tolist(), f"and so on; {fives} of 256 elements is 5")
sys.exit(
    any(
        seen[user_managed, name] != expected
        for user_managed in (False, True)
        for name, expected in (("contiguous", ["right", "right"]), ("transposed", ["right", "of the transpose"]))
    )
    or expanded.tolist() != [5.0] + [1.0] * 255
)
PY
