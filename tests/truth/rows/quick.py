"""A graph for the proof without an export, whose symbolic sizes cost a hundred times more than the operators: the function runs at three
sizes of the batch, and what differs between the recorded calls becomes an expression of the batch's size B. Numbers that no line goes
through (B // 2, B % 2) become an opaque function of B. Runs that call different operators have no graph."""
import operator

import sympy
import torch
from torch._decomp import core_aten_decompositions
from torch.utils._python_dispatch import TorchDispatchMode

import pure  # noqa: F401  makes sconce importable

from sconce import _rows

B = sympy.Symbol("s0", integer=True, positive=True)
BATCHES = (7, 10, 13)
OPAQUE = sympy.Function("opaque", integer=True)
TABLE = core_aten_decompositions()


class Different(Exception):
    """The operators depend on the batch's size."""


class Described:
    """What the proof looks at of a tensor."""

    layout = torch.strided

    def __init__(self, tensors):
        self.dtype = tensors[0].dtype
        if len({t.dim() for t in tensors}) > 1:
            raise Different
        self.shape = tuple(number(sizes) for sizes in zip(*(t.shape for t in tensors)))

    def dim(self):
        return len(self.shape)


def number(values):
    """One for the numbers of all traces."""
    if all(type(v) is type(values[0]) and v == values[0] for v in values):
        return values[0] if not isinstance(values[0], int) or isinstance(values[0], bool) else sympy.Integer(values[0])
    if any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in values):
        raise Different
    if all(isinstance(v, int) for v in values):
        slope = sympy.Rational(values[1] - values[0], BATCHES[1] - BATCHES[0])
        start = values[0] - slope * BATCHES[0]
        if slope * BATCHES[2] + start == values[2]:
            return slope * B + start
    return OPAQUE(B, sympy.Integer(abs(hash(values)) % 10 ** 9))


class Recorder(TorchDispatchMode):
    """calls: (operator, arguments, keyword arguments, result). Operators without a rule are decomposed."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in TABLE and function._schema.name.replace("::", ".") not in _rows.rules.RULES:
            with self:
                result = TABLE[function](*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = function(*args, **kwargs)
        self.calls.append((function, args, kwargs, result))
        return result


def traced(function, inputs_of):
    """The graph of the function. inputs_of(rows): the inputs."""
    runs = []
    for rows in BATCHES:
        inputs, recorder = inputs_of(rows), Recorder()
        with torch.no_grad(), recorder:
            result = function(*inputs)
        runs.append((inputs, recorder.calls, result))
    if len({len(calls) for _, calls, _ in runs}) > 1:
        raise Different
    return Joint(runs).graphed()


class Joint:
    """Joins the records of all runs."""

    def __init__(self, runs):
        self.runs, self.graph = runs, torch.fx.Graph()
        self.known = [{} for _ in runs]  # of each run: id of a tensor -> its node
        self.kept = []                   # keeps the ids unique

    def graphed(self):
        for inputs in zip(*(inputs for inputs, _, _ in self.runs)):
            self.bind(self.graph.placeholder("input"), inputs)
        for calls in zip(*(calls for _, calls, _ in self.runs)):
            function = calls[0][0]
            if any(call[0] is not function for call in calls):
                raise Different
            node = self.graph.call_function(function, tuple(self.joint([list(call[1]) for call in calls])),
                                            self.joint([call[2] for call in calls]))
            self.bind(node, [call[3] for call in calls])
        self.graph.output(self.joint([result for _, _, result in self.runs]))
        return self

    def bind(self, node, results):
        node.meta["val"] = described(results)
        if isinstance(results[0], (list, tuple)):
            for i, items in enumerate(zip(*results)):
                if isinstance(items[0], torch.Tensor):
                    self.bind(self.graph.call_function(operator.getitem, (node, i)), items)
            return
        for known, one in zip(self.known, results):
            if isinstance(one, torch.Tensor):
                known[id(one)] = node
                self.kept.append(one)

    def joint(self, arguments):
        first = arguments[0]
        if isinstance(first, torch.Tensor):
            return self.tensor(arguments)
        if isinstance(first, (list, tuple)):
            if len({len(one) for one in arguments}) > 1:
                raise Different
            return [self.joint(items) for items in zip(*arguments)]
        if isinstance(first, dict):
            return {name: self.joint([one[name] for one in arguments]) for name in first}
        if isinstance(first, (int, float)) and not isinstance(first, bool):
            value = number(arguments)
            return int(value) if isinstance(value, sympy.Integer) else value
        if any(one != first for one in arguments):
            raise Different
        return first

    def tensor(self, tensors):
        nodes = {known.get(id(one)) for known, one in zip(self.known, tensors)}
        if len(nodes) > 1:
            raise Different
        found, = nodes
        if found is None:  # a constant of the model
            if any(one.shape != tensors[0].shape or not torch.equal(one, tensors[0]) for one in tensors):
                raise Different
            found = self.graph.get_attr("constant")
            self.bind(found, tensors)
        return found


def described(values):
    first = values[0]
    if isinstance(first, torch.Tensor):
        return Described(values)
    if isinstance(first, (list, tuple)):
        if len({len(one) for one in values}) > 1:
            raise Different
        return [described(items) for items in zip(*values)]
    return None if first is None else number(values)
