"""Which dimensions of the example's tensors are the batch."""
from sconce._export_errors import ExportError

NAME = "batch"


class Batch:
    """The rows that all tensors of the call share: those whose first dimension is as the first tensor's."""

    def __init__(self, torch, args, kwargs, limits):
        self.torch, self.pytree = torch, torch.utils._pytree
        low, high = (1, int(limits)) if isinstance(limits, int) else map(int, limits)
        if not 0 < low <= high:
            raise ValueError(f"batch: expected (MIN, MAX) with 1 <= MIN <= MAX, got {limits!r}")
        self.low, self.high = low, high
        tensors = [x for x in self.pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        rows = next((x.shape[0] for x in tensors if x.dim() > 0), None)
        if rows is None:
            raise ValueError("batch: no argument is a tensor with dimensions")
        self.rows = int(rows)
        if not low <= self.rows <= high:
            raise ValueError(f"batch: the example has {self.rows} rows, which are not within {(low, high)}")

    def of(self, x):
        return isinstance(x, self.torch.Tensor) and x.dim() > 0 and x.shape[0] == self.rows

    def resized(self, value, rows):
        """The arguments with so many rows: the example's, over and over."""
        def one(x):
            if not self.of(x):
                return x
            index = self.torch.arange(rows, device=x.device) % self.rows
            return x.detach().index_select(0, index)
        return self.pytree.tree_map(one, value)

    def example_rows(self):
        """torch takes a size of 0 or 1 for a constant, so the example that it sees has at least 2."""
        return max(self.rows, 2) if self.high > 1 else self.rows

    def other_rows(self):
        """Another size, at which the package is compared too."""
        if self.low == self.high:
            return None
        return self.low if self.low != self.rows else min(self.rows + 1, self.high)

    def dynamic_shapes(self, model, args, kwargs):
        if self.low == self.high:
            return None
        shapes = self.torch.export.ShapesCollection()
        dim = self.torch.export.Dim(NAME, min=self.low, max=self.high)
        found = 0
        for leaf in self.pytree.tree_leaves((args, kwargs)):
            if self.of(leaf):
                shapes[leaf] = {0: dim}
                found += 1
        if not found:
            raise ExportError("batch: no tensor has the batch as its first dimension")
        return shapes.dynamic_shapes(model, args, kwargs)
