"""A module that is made of a function and its parts, for models that scripts compile."""
import torch


class Of(torch.nn.Module):
    """A function of its parts and its inputs."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, torch.Tensor):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, *args):
        return self.function(self, *args)
