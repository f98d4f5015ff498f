"""One call of an operator, as a rule sees it."""
import sympy

from sconce._rows import sizes
from sconce._rows.values import CONSTANT, Constant, Kind, Number, Refused, Rows, Unknown


class Call:
    """arguments: by the names of the operator's schema, defaults among them. Tensors are nodes of the graph."""

    def __init__(self, analysis, node):
        self.analysis, self.node, self.sizes = analysis, node, analysis.sizes
        self.schema = node.target._schema
        self.arguments = {}
        for i, argument in enumerate(self.schema.arguments):
            if i < len(node.args):
                self.arguments[argument.name] = node.args[i]
            elif argument.name in node.kwargs:
                self.arguments[argument.name] = node.kwargs[argument.name]
            else:
                self.arguments[argument.name] = argument.default_value if argument.has_default_value() else None

    def __contains__(self, name):
        return name in self.arguments

    def is_tensor(self, argument):
        return self.analysis.is_node(argument) and not isinstance(self.analysis.values[argument], Number)

    def tensors(self):
        """Nodes of all tensors, those in lists among them, in order."""
        found = []

        def visit(argument):
            if isinstance(argument, (list, tuple)):
                for one in argument:
                    visit(one)
            elif self.is_tensor(argument):
                found.append(argument)
        for argument in self.arguments.values():
            visit(argument)
        return found

    def numbers(self):
        """Expressions of all numbers among the arguments."""
        found = []

        def visit(argument):
            if isinstance(argument, (list, tuple)):
                for one in argument:
                    visit(one)
            elif self.analysis.is_node(argument):
                value = self.analysis.values[argument]
                if isinstance(value, Number):
                    found.append(value.expression)
            else:
                expr = sizes.expression(argument)
                if expr is not None:
                    found.append(expr)
        for argument in self.arguments.values():
            visit(argument)
        return found

    def value_of(self, node):
        """Of a tensor; Constant of what is none."""
        return self.analysis.values[node] if self.is_tensor(node) else CONSTANT

    def value(self, name):
        return self.value_of(self.arguments.get(name))

    def shape_of(self, node):
        return sizes.shape_of(node.meta["val"])

    def shape(self, name):
        return self.shape_of(self.arguments[name])

    def rank(self, name):
        return len(self.shape(name))

    def number(self, name):
        """A bool, a string, None and a static number as they are; of others the expression."""
        return self.number_of(self.arguments[name])

    def number_of(self, argument):
        if self.analysis.is_node(argument):
            value = self.analysis.values[argument]
            if not isinstance(value, Number):
                raise Refused("takes a number from a tensor")
            expr = value.expression
        elif isinstance(argument, (bool, str, int, float)) or argument is None:
            return argument
        else:
            expr = sizes.expression(argument)
            if expr is None:
                return argument
        return int(expr) if expr.is_Integer else expr

    def numbers_in(self, name):
        given = self.arguments[name]
        return [self.number_of(one) for one in (given if isinstance(given, (list, tuple)) else [given])]

    def dimension(self, name, rank):
        return self.wrapped(self.number(name), rank)

    def wrapped(self, dim, rank):
        return dim + rank if dim < 0 else dim

    def dimensions(self, name, rank):
        """Of a list, one number or None."""
        given = self.arguments.get(name)
        return None if given is None else [self.wrapped(dim, rank) for dim in self.numbers_in(name)]

    def result(self):
        return self.node.meta["val"]

    def result_shape(self):
        return sizes.shape_of(self.result())

    def result_rank(self):
        return len(self.result().shape)

    def results(self):
        value = self.result()
        return len(value) if isinstance(value, (list, tuple)) else 1

    def each(self, value):
        """The same value for each result."""
        return [value] * self.results() if isinstance(self.result(), (list, tuple)) else value

    # What rules share

    def constant(self, *names):
        """Refuses unless these tensors are constants."""
        for name in names:
            if not isinstance(self.value(name), Constant):
                raise Refused(f"{name} depends on the batch")

    def without_batch(self, *names):
        """Refuses numbers that depend on the batch's size."""
        for name in names:
            for expr in self.numbers_in(name):
                if self.sizes.has_batch(expr):
                    raise Refused(f"{name} depends on the batch's size")

    def joined(self, nodes, rank):
        """The value of an elementwise operation on tensors that are broadcast to so many dimensions."""
        return joined([(self.value_of(node), len(self.shape_of(node))) for node in nodes if self.is_tensor(node)], rank)

    def created(self, shape=None):
        """The value of a tensor whose elements do not depend on the batch, by its shape."""
        shape = self.result_shape() if shape is None else shape
        carriers = [i for i, size in enumerate(shape) if self.sizes.has_batch(size)]
        if not carriers:
            return CONSTANT
        if len(carriers) > 1:
            raise Refused("has the batch in several dimensions")
        inner = self.sizes.of_batch(shape[carriers[0]])
        if inner is None:
            raise Refused("has a size that is no multiple of the batch's")
        return Rows(carriers[0], 1, inner, Kind.SAME)


def joined(operands, rank):
    """operands: (value, rank) each."""
    found = None
    for value, own in operands:
        if isinstance(value, Constant):
            continue
        if value.kind is Kind.NUMBER:
            raise Refused("computes with the numbers of rows")
        moved = value.at(value.dim + rank - own)
        if found is None:
            found = moved
        elif found.place() != moved.place():
            raise Refused("joins each row with other rows")
        elif found.kind is Kind.SAME:
            found = moved
    return found or CONSTANT


def reshaped(call, value, old, new):
    """The value after a view from the shape `old` to `new`."""
    if not isinstance(value, Rows):
        return value
    new = known(call.sizes, old, list(new))
    # In row-major order elements of one row lie `step` apart from the next row's.
    step = value.inner * sizes.product(old[value.dim + 1:])
    for dim, size in enumerate(new):
        if not call.sizes.has_batch(size):
            continue
        after = sizes.product(new[dim + 1:])
        inner = call.sizes.quotient(step, after)
        outer = None if inner is None else call.sizes.quotient(size * after, call.sizes.batch * step)
        if outer is not None:
            return value.at(dim).split(outer, inner)
    raise Refused("the view mixes rows")


def known(sized, old, new):
    """The shape, with a size that torch did not simplify computed from the number of elements."""
    odd = [i for i, size in enumerate(new) if sized.has_batch(size) and sized.of_batch(size) is None]
    if len(odd) == 1:
        others = sizes.product(new[:odd[0]] + new[odd[0] + 1:])
        size = sympy.cancel(sizes.product(old) / others)
        if sizes.is_integer(size):
            new[odd[0]] = size
    return new


__all__ = ["CONSTANT", "Call", "Constant", "Kind", "Number", "Refused", "Rows", "Unknown", "joined", "reshaped"]
