"""The sizes of an exported program's inputs, for the package's metadata: what AOTInductor's source does not say.

The source has 2 where 0 or 1 was declared, and two symbols where a guard of the export makes one out of the other
(Dim.AUTO). package_format/sizes/recorded_sizes.h reads the text.
"""
import json

KEY = "sconce_sizes"


def recorded(program):
    """The text, or None if no size varies."""
    values = inputs(program)
    if not any(not isinstance(size, int) for value in values for size in value.shape):
        return None
    equal = equations(values)
    ranges = {str(expression): bounds for expression, bounds in program.range_constraints.items()}
    entries = [[entry(size, equal, ranges) for size in value.shape] for value in values]
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


def entry(size, equal, ranges):
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
            said["min"] = int(bounds.lower)
        if bounds.upper.is_Integer:
            said["max"] = int(bounds.upper)
    return said
