#!/usr/bin/env bash
# torch.export with one tensor as the example of two inputs makes a program that reads the second input in place of the
# first.
#
# A good guess is that examples give shapes and dtypes, so that `export(module, (t, t))` is as good as two tensors of one
# shape, or that the program checks that its inputs are one tensor. The program has both inputs, and both are checked for
# their shape. But every operation takes the last of the two: `a * 2 - b` becomes `b * 2 - b`. The exported program and the
# package compiled from it agree with each other, and answer wrongly without an error as soon as the two inputs differ.
# Dimensions that were declared under two names for the two inputs also become one symbol, and no error says so. strict=True
# changes nothing; a clone as the second example gives a right program. A warm-up or a comparison with one tensor for both
# inputs cannot find it.
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
from torch.export import Dim

print("torch", torch.__version__)


class Difference(torch.nn.Module):
    def forward(self, a, b):
        return a * 2 - b


example = torch.randn(3, 4)
a, b = torch.full((3, 4), 1.0), torch.full((3, 4), 5.0)
dims = ({0: Dim("rows_of_a", min=2, max=64)}, {0: Dim("rows_of_b", min=2, max=64)})


def exported(*examples, **options):
    program = torch.export.export(Difference(), examples, **options)
    return program, float(program.module()(a, b)[0, 0])


once, twice_answer = exported(example, example)
strict_answer = exported(example, example, strict=True)[1]
cloned_answer = exported(example, example.clone())[1]
package = torch._inductor.aoti_compile_and_package(once, package_path="once.pt2")
package_answer = float(torch._inductor.aoti_load_package(package)(a, b)[0, 0])
users = {node.name: len(node.users) for node in once.graph.nodes if node.op == "placeholder"}
dynamic = exported(example, example, dynamic_shapes=dims)[0]
symbols = [str(node.meta["val"].shape[0]) for node in dynamic.graph.nodes if node.op == "placeholder"]
try:
    exported(example, example.clone(), dynamic_shapes=dims)
    apart = "accepted"
except Exception as error:
    apart = type(error).__name__

print("a * 2 - b for a = 1, b = 5 is", 1 * 2 - 5)
print("exported with one tensor twice:", twice_answer, "its package:", package_answer, "users of the inputs:", users)
print("with strict=True:", strict_answer, "with a clone:", cloned_answer)
print("rows_of_a and rows_of_b, one tensor twice: symbols", symbols, "; with a clone:", apart)
sys.exit(
    not (
        twice_answer == strict_answer == package_answer == 5.0
        and cloned_answer == -3.0
        and users == {"a": 0, "b": 2}
        and symbols[0] == symbols[1]
        and apart != "accepted"
    )
)
PY
