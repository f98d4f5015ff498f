"""Sizes as sympy expressions of the symbols that torch.export gave them."""
import sympy

# Functions of torch.utils._sympy whose value is an integer if their arguments are.
INTEGER_FUNCTIONS = {"FloorDiv", "CleanDiv", "Mod", "PythonMod", "ModularIndexing", "Max", "Min"}


def expression(size):
    """A sympy expression of a number, a SymInt, SymFloat, SymBool or an expression; None of anything else."""
    if isinstance(size, sympy.Basic):
        return size
    node = getattr(size, "node", None)
    if node is not None and hasattr(node, "expr"):
        return sympy.sympify(node.expr)
    if isinstance(size, bool):
        return sympy.true if size else sympy.false
    if isinstance(size, (int, float)):
        return sympy.sympify(size)
    return None


def shape_of(tensor):
    return tuple(expression(size) for size in tensor.shape)


def symbols(expr):
    return getattr(expr, "free_symbols", frozenset())


def equal(a, b):
    return a == b or sympy.expand(a - b) == 0


def product(sizes):
    return sympy.Mul(*sizes) if sizes else sympy.Integer(1)


def is_integer(expr):
    """Whether the expression is an integer for all integers that its symbols stand for."""
    if expr.is_Integer or expr.is_Symbol:
        return True
    if expr.is_Pow:
        return expr.exp.is_Integer and expr.exp > 0 and is_integer(expr.base)
    if expr.is_Add or expr.is_Mul or type(expr).__name__ in INTEGER_FUNCTIONS:
        return all(is_integer(one) for one in expr.args)
    return False


class Sizes:
    """Arithmetic with the batch's symbol."""

    def __init__(self, batch):
        self.batch = batch

    def has_batch(self, expr):
        return self.batch in symbols(expr)

    def quotient(self, a, b):
        """a / b if that is an integer without the batch, whatever the symbols are; else None."""
        if b == 0:
            return None
        found = a / b
        if not self._fits(found):
            found = sympy.cancel(sympy.expand(a) / sympy.expand(b)) if symbols(a) | symbols(b) else found
        return found if self._fits(found) else None

    def _fits(self, expr):
        return is_integer(expr) and not self.has_batch(expr)

    def of_batch(self, size):
        """size / B, an integer; else None."""
        return self.quotient(size, self.batch)
