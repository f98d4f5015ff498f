"""Follows the batch through a graph of ATen operators, from its inputs to its outputs."""
import operator

from sconce._rows import rules, sizes
from sconce._rows.call import Call
from sconce._rows.values import CONSTANT, Constant, Kind, Number, Refused, Rows, Unknown

# Nothing comes out of these. An assertion that a row fails makes its run fail, and the server repeats the others without it.
ASSERTIONS = {"aten._assert_async", "aten._assert_scalar", "aten._assert_tensor_metadata", "aten.sym_constrain_range",
              "aten.sym_constrain_range_for_size", "aten._linalg_check_errors", "aten._functional_assert_async",
              "aten._functional_assert_scalar"}
RANDOM = "draws random numbers"


def name_of(target):
    """namespace.operator, without the overload; of anything else its Python name."""
    if hasattr(target, "_schema"):
        return target._schema.name.replace("::", ".")
    return getattr(target, "__name__", str(target))


def label_of(node):
    """For people: "aten.cumsum.default"."""
    return str(node.target) if hasattr(node.target, "_schema") else name_of(node.target)


class Analysis:
    """values: node -> Constant, Rows, Unknown, Number, or a list of these. run() fills it."""

    def __init__(self, torch, sized):
        self.torch, self.sizes = torch, sized
        self.values = {}
        self.given = {sized.batch}  # symbols of the inputs' sizes
        self.tainted = {}  # symbols of sizes that depend on the rows' values -> the Unknown that made them

    def is_node(self, argument):
        return isinstance(argument, self.torch.fx.Node)

    def run(self, graph_module, inputs):
        """inputs: a value for each placeholder. Returns the values of the outputs, as the output node nests them."""
        rest = iter(inputs)
        for node in graph_module.graph.nodes:
            if node.op == "placeholder":
                self.values[node] = next(rest)
                for size in getattr(node.meta.get("val"), "shape", ()):
                    self.given |= sizes.symbols(sizes.expression(size))
            elif node.op == "get_attr":
                self.values[node] = CONSTANT
            elif node.op == "call_function":
                self.values[node] = self.checked(node, self.of_function(node, graph_module))
            elif node.op == "output":
                return self.torch.fx.node.map_arg(node.args[0], lambda one: self.values[one])
            else:
                self.values[node] = Unknown("is no operator of ATen", str(node.target), node)
        raise ValueError("a graph without outputs")

    def of_function(self, node, graph_module):
        value = node.meta.get("val")
        if node.target is operator.getitem:
            held = self.values[node.args[0]]
            return held[node.args[1]] if isinstance(held, (list, tuple)) else held
        expr = sizes.expression(value)
        if expr is not None:
            return self.of_number(node, expr)
        if isinstance(node.target, self.torch._ops.HigherOrderOperator):
            return self.of_region(node, graph_module)
        if not isinstance(node.target, self.torch._ops.OpOverload):
            return Unknown("is no operator of ATen", label_of(node), node)
        return self.of_operator(node)

    def of_number(self, node, expr):
        """Sizes and arithmetic with them; numbers that are read from tensors."""
        cause = self.unknown_of(node)
        name = name_of(node.target)
        if not name.startswith("aten.sym_") and (cause or any(isinstance(self.values[one], Rows) for one in node.all_input_nodes)):
            cause = cause or Unknown("makes one number of all rows", label_of(node), node)
            for symbol in sizes.symbols(expr) - {self.sizes.batch}:
                self.tainted.setdefault(symbol, cause)
            return cause
        return Number(expr)

    def unknown_of(self, node):
        """The first Unknown among the arguments."""
        for one in node.all_input_nodes:
            found = self.values[one]
            for value in found if isinstance(found, (list, tuple)) else [found]:
                if isinstance(value, Unknown):
                    return value
        return None

    def of_operator(self, node):
        name = name_of(node.target)
        known = rules.RULES.get(name)
        cause = self.unknown_of(node)
        if name in ASSERTIONS:
            return CONSTANT
        if cause and not (known and known.shape_only):
            return cause
        if self.torch.Tag.nondeterministic_seeded in node.target.tags and name not in rules.RULES:
            return Unknown(RANDOM, label_of(node), node)
        if node.target._schema.is_mutable:
            return Unknown("writes a tensor in place", label_of(node), node)
        call = Call(self, node)
        numbers = call.numbers()
        for expr in numbers:
            for symbol in sizes.symbols(expr) & set(self.tainted):
                return self.tainted[symbol]
        counts = any(self.sizes.has_batch(expr) for expr in numbers)
        held = [call.value_of(one) for one in call.tensors()]
        fixed = held and not counts and not cause and all(isinstance(one, Constant) for one in held) and \
            self.torch.Tag.nondeterministic_seeded not in node.target.tags
        if fixed and name.startswith("aten.") and not (known and known.shape_only):
            return call.each(CONSTANT)
        if name in rules.REFUSED:
            return Unknown(rules.REFUSED[name], label_of(node), node)
        if not known:
            return Unknown("there is no rule for this operator", label_of(node), node)
        if counts and not known.sized:
            return Unknown("computes with the batch's size", label_of(node), node)
        if not known.numbered and any(isinstance(one, Rows) and one.kind is Kind.NUMBER for one in held):
            return Unknown("computes with the numbers of rows", label_of(node), node)
        if fixed and not known.shape_only:
            return call.each(CONSTANT)
        try:
            return known.apply(call)
        except Refused as refused:
            return Unknown(str(refused), label_of(node), node)

    def of_region(self, node, graph_module):
        """Graphs within the graph that run once and whole, under other settings."""
        name = name_of(node.target)
        given = list(node.args)
        if name == "wrap_with_set_grad_enabled":
            region, arguments = given[1], given[2:]
        elif name == "wrap_with_autocast":
            region, arguments = given[4], given[5:]
        elif name == "cond":
            return self.of_cond(node, graph_module)
        elif name == "with_effects" and name_of(given[1]) in ASSERTIONS:
            return [CONSTANT for _ in node.meta["val"]]
        else:
            return Unknown("there is no rule for this control flow", label_of(node), node)
        return self.within(graph_module, region, arguments)

    def within(self, graph_module, region, arguments):
        inner = getattr(graph_module, region.target)
        return list(self.run(inner, [self.values[one] if self.is_node(one) else CONSTANT for one in arguments]))

    def of_cond(self, node, graph_module):
        """Both branches give the same, and which of them runs depends on no row and not on the batch's size."""
        chosen, yes, no, arguments = node.args[:4]
        value = self.values[chosen] if self.is_node(chosen) else CONSTANT
        if isinstance(value, Number):
            if self.sizes.has_batch(value.expression):
                return Unknown("branches on the batch's size", label_of(node), node)
        elif not isinstance(value, Constant):
            return Unknown("branches on values of all rows", label_of(node), node)
        results = [self.within(graph_module, branch, arguments) for branch in (yes, no)]
        joint = []
        for a, b in zip(*results):
            cause = next((one for one in (a, b) if isinstance(one, Unknown)), None)
            joint.append(cause or (a if a == b else Unknown("its branches place the batch otherwise", label_of(node), node)))
        return joint

    def checked(self, node, value):
        """The value, held against the sizes of the result."""
        tensors = node.meta.get("val")
        if isinstance(value, (list, tuple)):
            if not isinstance(tensors, (list, tuple)) or len(value) != len(tensors):
                return Unknown("has another number of results than its rule", label_of(node), node)
            return [self.checked_one(node, one, tensor) for one, tensor in zip(value, tensors)]
        if isinstance(tensors, (list, tuple)) and not isinstance(value, Unknown):
            return [self.checked_one(node, value, tensor) for tensor in tensors]
        if isinstance(value, Unknown):
            for tensor in tensors if isinstance(tensors, (list, tuple)) else [tensors]:
                self.checked_one(node, value, tensor)
            return value
        return self.checked_one(node, value, tensors)

    def checked_one(self, node, value, tensor):
        if not hasattr(tensor, "layout"):  # of numbers and of what an operator leaves out
            return value
        shape = sizes.shape_of(tensor)
        if isinstance(value, Unknown):
            # Sizes that this operator makes are of its rows' values.
            for size in shape:
                for symbol in sizes.symbols(size):
                    if symbol not in self.given and str(symbol).startswith("u"):  # unbacked, as torch calls them
                        self.tainted.setdefault(symbol, value)
            return value
        for size in shape:
            for symbol in sizes.symbols(size) & set(self.tainted):
                return self.tainted[symbol]
        if isinstance(value, Number):
            return value
        if tensor.layout != self.torch.strided or getattr(tensor, "is_nested", False):
            return Unknown("is no dense tensor", label_of(node), node)
        for dim, size in enumerate(shape):
            if isinstance(value, Rows) and dim == value.dim:
                if not sizes.equal(size, value.outer * self.sizes.batch * value.inner):
                    return Unknown("has another size than the batch at its dimension", label_of(node), node)
            elif self.sizes.has_batch(size):
                return Unknown("relates rows to each other", label_of(node), node)
        if isinstance(value, Rows) and not 0 <= value.dim < len(shape):
            return Unknown("loses the batch's dimension", label_of(node), node)
        return value
