"""The models of these checks, their sets of weights, and what PyTorch answers with each."""
import numpy as np
import safetensors.torch
import torch

ROWS, FEATURES, OUTPUTS = 4, 64, 32
X = np.random.default_rng(0).standard_normal((ROWS, FEATURES), dtype=np.float32)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(FEATURES, 256)
        self.b = torch.nn.Linear(256, OUTPUTS)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


class Head(torch.nn.Module):
    """Takes what Net gives."""

    def __init__(self):
        super().__init__()
        self.c = torch.nn.Linear(OUTPUTS, 16)

    def forward(self, x):
        return torch.tanh(self.c(x))


class Subject:
    """A module on its device, and its package."""

    def __init__(self, module, device, path):
        self.module, self.device = module.to(device).eval(), device
        width = next(module.parameters()).shape[1]
        program = torch.export.export(self.module, (torch.zeros(3, width, device=device),),
                                      dynamic_shapes=({0: torch.export.Dim("rows", min=1, max=16)},))
        self.package = torch._inductor.aoti_compile_and_package(program, package_path=str(path),
                                                                inductor_configs={"always_keep_tensor_constants": True})

    def values(self, scale):
        """Every parameter times `scale`, so that an answer of two sets mixed is that of neither."""
        return {name: (value * scale).cpu().contiguous() for name, value in self.module.state_dict().items()}

    def file(self, scale):
        return safetensors.torch.save(self.values(scale))

    def part(self, scale, name="b.weight"):
        """A file with one parameter only."""
        return safetensors.torch.save({name: self.values(scale)[name]})

    def with_values(self, values):
        """The module with these values, as a function of numpy arrays."""
        module = type(self.module)().to(self.device).eval()
        module.load_state_dict(values)

        def call(x=X):
            with torch.no_grad():
                return module(torch.as_tensor(x, device=self.device)).cpu().numpy()
        return call

    def expected(self, scale, x=X):
        return self.with_values(self.values(scale))(x)

    def expected_part(self, scale, name="b.weight", x=X):
        return self.with_values({**self.values(1), name: self.values(scale)[name]})(x)


def same(got, expected):
    return got.shape == expected.shape and bool(np.allclose(got, expected, rtol=1e-4, atol=1e-4))
