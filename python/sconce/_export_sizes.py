"""The sizes of an exported program's inputs, for the package's metadata: what AOTInductor's source does not say.

The source has 2 where 0 or 1 was declared, and two symbols where a guard of the export makes one out of the other
(Dim.AUTO). package_format/sizes/recorded_sizes.h reads the text.
"""
import json

KEY = "sconce_sizes"
INDEXING = {"aten.select.int", "aten.select_copy.int", "aten.slice.Tensor", "aten.slice_copy.Tensor", "aten.narrow.default"}


def recorded(program):
    """The text, or None if no size varies."""
    values = inputs(program)
    if not any(not isinstance(size, int) for value in values for size in value.shape):
        return None
    equal = equations(values)
    ranges = {str(expression): bounds for expression, bounds in program.range_constraints.items()}
    needed = needed_by_indices(program)
    entries = [[entry(size, equal, ranges, needed) for size in value.shape] for value in values]
    return json.dumps({"version": 1, "inputs": entries})


def inputs(program):
    """The fake tensors of the user's inputs, in the package's order."""
    names = set(program.graph_signature.user_inputs)
    values = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
    return [value for value in values if hasattr(value, "fake_mode")]


def equations(values):
    """Symbols that a guard says by others: {s17: s77//2}."""
    environment = next((value.fake_mode.shape_env for value in values if value.fake_mode.shape_env is not None), None)
    if environment is None:
        return {}
    own = set().union(*(size.node.expr.free_symbols for value in values for size in value.shape if not isinstance(size, int)))
    found = {}
    for guard in environment.guards:
        expression = getattr(guard, "expr", None)
        if type(expression).__name__ != "Equality":
            continue
        for symbol, other in ((expression.lhs, expression.rhs), (expression.rhs, expression.lhs)):
            other = other.xreplace(found)
            if (symbol.is_Symbol and symbol in own and symbol not in found and symbol not in other.free_symbols and
                    other.free_symbols and other.free_symbols <= own):
                found = {name: value.xreplace({symbol: other}) for name, value in found.items()}
                found[symbol] = other
                break
    return found


def needed_by_indices(program):
    """The smallest value of each symbol for which constant indices and slices stay within their dimensions: {s77: 2} for x[1].

    torch.export lets x[1] through for a dimension that was declared to begin at 1, since it assumes sizes of 2 and more.
    """
    needed = {}
    for node in program.graph.nodes:
        wanted = _wanted(node)
        if wanted is None:
            continue
        expression, least = wanted
        symbols = sorted(expression.free_symbols, key=str)
        for symbol in symbols:
            # The others at 2: what torch.export assumes.
            others = {other: 2 for other in symbols if other != symbol}
            value = 0
            while value < 2 and expression.xreplace({symbol: _integer(value), **{k: _integer(v) for k, v in others.items()}}) < least:
                value += 1
            needed[symbol] = max(needed.get(symbol, 0), value)
    return needed


def _integer(value):
    import sympy
    return sympy.Integer(value)


def _wanted(node):
    """(a dimension's size, what it must be at least) of a constant index or slice; None if the node is none."""
    if node.op != "call_function" or str(node.target) not in INDEXING:
        return None
    before, after = getattr(node.args[0], "meta", {}).get("val"), node.meta.get("val")
    dim = node.args[1] if len(node.args) > 1 else 0
    size = before.shape[dim]
    if isinstance(size, int) or not size.node.expr.free_symbols:
        return None
    start = node.args[2] if len(node.args) > 2 else 0
    if "select" in str(node.target):
        return (size.node.expr, start + 1 if start >= 0 else -start) if isinstance(start, int) else None
    taken = after.shape[dim]
    start = 0 if start is None else start
    if not isinstance(start, int) or not isinstance(taken, int) or taken == 0:
        return None
    step = node.args[4] if len(node.args) > 4 else 1  # narrow has none
    return size.node.expr, start + (taken - 1) * step + 1 if start >= 0 else -start


def entry(size, equal, ranges, needed):
    if isinstance(size, int):
        return size
    expression = size.node.expr
    if not expression.free_symbols:
        return int(expression)
    said = {"size": str(expression.xreplace(equal))}
    bounds = ranges.get(str(expression))
    if bounds is not None:
        # Infinity is no int.
        if bounds.lower.is_Integer and bounds.lower >= 0:
            least = needed.get(expression, 0) if expression.is_Symbol else 0
            said["min"] = max(int(bounds.lower), least)
        if bounds.upper.is_Integer:
            said["max"] = int(bounds.upper)
    return said
