"""What is known of a tensor while the batch is followed through a graph.

The batch has B rows. A dimension that carries it may hold further factors, as views merge dimensions: index j of a dimension of
size outer * B * inner is (o * B + b) * inner + i, and b is the row.
"""
import dataclasses
import enum


class Kind(enum.Enum):
    DATA = "data"      # elements of row b depend on row b of the inputs and on constants
    SAME = "same"      # all rows are alike: nothing depends on b
    NUMBER = "number"  # every element of row b is b times Rows.scale


@dataclasses.dataclass(frozen=True)
class Constant:
    """The value is the same for every batch, whatever its size; no dimension has a size that depends on B."""


@dataclasses.dataclass(frozen=True)
class Rows:
    """Dimension `dim` carries the batch: elements of row b depend on row b of the inputs, on constants and on nothing else. No
    other dimension has a size that depends on B. outer, inner: sympy expressions without B, or integers."""

    dim: int
    outer: object = 1
    inner: object = 1
    kind: Kind = Kind.DATA
    scale: object = 1

    def place(self):
        return self.dim, self.outer, self.inner

    def at(self, dim):
        return dataclasses.replace(self, dim=dim)

    def split(self, outer, inner):
        return dataclasses.replace(self, outer=outer, inner=inner)

    def data(self):
        """The same rows after a computation: row numbers are numbers no more."""
        return dataclasses.replace(self, kind=Kind.SAME if self.kind is Kind.SAME else Kind.DATA, scale=1)

    def whole(self):
        """Whether the dimension is the batch and nothing else."""
        return self.outer == 1 and self.inner == 1


@dataclasses.dataclass(frozen=True, eq=False)
class Unknown:
    """A value that may depend on several rows, on a row's number or on B."""

    why: str
    operator: str = ""
    node: object = None


@dataclasses.dataclass(frozen=True)
class Number:
    """A number, or a condition, of Python: a sympy expression of sizes."""

    expression: object


class Refused(Exception):
    """Raised by a rule: the result is Unknown, for this reason."""


CONSTANT = Constant()
