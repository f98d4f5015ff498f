"""Writes packages/inlined.pt2: one module, compiled twice. Model "inlined" has its small parameters in the code, as Inductor
does by default; model "kept" has all of them, by always_keep_tensor_constants. Beside it, the state_dict() of another
training, and in inlined.json what PyTorch makes of an input: with all of that, and with what "inlined" can take of it.

Run with a Python that has torch 2.15 and a C++ compiler; the results are checked in.
"""
import copy
import json

import torch
from make_packages import HERE, OPTIONS, strip
from torch._inductor.package import load_package, package_aoti
from weights_files import safetensors

INLINED = ("linear.bias", "scale", "shift")  # 8 elements, no dimension, a buffer of 4


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 8)
        self.wide = torch.nn.Parameter(torch.randn(9))  # one more than what is inlined
        self.scale = torch.nn.Parameter(torch.tensor(1.5))
        self.register_buffer("shift", torch.arange(4.0))

    def forward(self, x):
        return self.linear(x) * self.scale, x[:4] + self.shift[0], self.wide * x[0] + self.shift.sum()


def main():
    torch.manual_seed(0)
    model, other = Small().eval(), Small().eval()
    with torch.no_grad():
        other.scale.fill_(-2.5)
        other.shift.mul_(3)
    x = torch.randn(6)
    program = torch.export.export(model, (x,))
    models = {}
    for name, options in ("inlined", {}), ("kept", {"always_keep_tensor_constants": True}):
        models[name] = torch._inductor.aot_compile(program.module(), *program.example_inputs, options={**OPTIONS, **options})
    target = HERE / "packages/inlined.pt2"
    package_aoti(str(target), models)
    state = {n: ("F32", list(v.shape), v.numpy().tobytes()) for n, v in other.state_dict().items()}
    target.with_suffix(".safetensors").write_bytes(safetensors(state))
    partly = copy.deepcopy(model)
    partly.load_state_dict({n: v for n, v in other.state_dict().items() if n not in INLINED}, strict=False)
    expected = {"input": x.tolist()}
    with torch.no_grad():
        for name, made in ("stored", model), ("all", other), ("partly", partly):
            expected[name] = [y.tolist() for y in made(x)]
    target.with_suffix(".json").write_text(json.dumps(expected, indent=1) + "\n")
    for name in models:
        with_names = load_package(str(target), name).loader.get_constant_fqns()
        missing = set(other.state_dict()) - set(with_names)
        assert missing == (set(INLINED) if name == "inlined" else set()), (name, with_names)
    strip(target)
    print(target, target.stat().st_size)


if __name__ == "__main__":
    main()
