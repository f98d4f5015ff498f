"""Which integer inputs of an exported program are indices, and their bounds: for the package's metadata.

    {"version": 1, "bounds": [{"input": 0, "low": -100, "high": 99}]}

`input` counts the tensors among the user's inputs, as the package does. A bound holds for every element of an input that the
graph looks up in a dimension of fixed size, without choosing among the elements before: so a value out of bounds makes the
model fail, in PyTorch as in a package. Sconce then refuses it before the run (src/runner/replicas/index_check.h); on a GPU the
assertion in the generated code would end the process's use of the device.
"""
import json

KEY = "sconce_index_bounds"
VERSION = 1
INT64 = range(-(1 << 63), 1 << 63)

# Operators whose result has every element of their first argument, unchanged.
KEEPING = {"view", "_unsafe_view", "reshape", "_reshape_copy", "view_copy", "permute", "permute_copy", "transpose", "transpose_copy",
           "t", "t_copy", "unsqueeze", "unsqueeze_copy", "squeeze", "squeeze_copy", "flatten", "unflatten", "clone", "contiguous",
           "detach", "detach_copy", "alias", "alias_copy", "lift_fresh_copy", "flip", "roll"}
# These too, unless a size that they are given is 0.
REPEATING = {"expand", "expand_copy", "repeat"}
# Casts, which may change an element.
CASTING = {"to", "_to_copy", "long", "int"}


def found(torch, program):
    """{position among the tensors of the user's inputs: (low, high)}."""
    shifted, bounds = {}, {}  # node -> (position, what was added to each element); position -> (low, high)
    position = 0
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    for spec in program.graph_signature.input_specs:
        if spec.kind != torch.export.graph_signature.InputKind.USER_INPUT or not hasattr(spec.arg, "name"):
            continue
        node = nodes.get(spec.arg.name)
        value = node.meta.get("val") if node is not None else None
        if not isinstance(value, torch.Tensor):
            continue
        if not value.is_floating_point() and not value.is_complex() and value.dtype != torch.bool:
            shifted[node] = (position, 0)
        position += 1
    for node in program.graph.nodes:
        if node.op != "call_function" or not node.users:
            continue
        moved = _moved(torch, node, shifted)
        if moved is not None:
            shifted[node] = moved
            continue
        for index, low, high in _looked_up(torch, node):
            if index not in shifted:
                continue
            at, offset = shifted[index]
            before = bounds.get(at, (INT64.start, INT64.stop - 1))
            bounds[at] = (max(before[0], low - offset), min(before[1], high - offset))
    return {at: pair for at, pair in bounds.items() if pair[0] <= pair[1]}


def metadata(torch, program):
    """The text for the package, or None."""
    bounds = found(torch, program)
    if not bounds:
        return None
    return json.dumps({"version": VERSION, "bounds": [{"input": at, "low": low, "high": high} for at, (low, high) in sorted(bounds.items())]})


def _name(torch, node):
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return None
    return target._schema.name.split("::")[1]


def _value(node):
    return getattr(node, "meta", {}).get("val")


def _moved(torch, node, shifted):
    """(position, offset) if the node's elements are those of an input, plus a number."""
    name = _name(torch, node)
    if name is None or not node.args:
        return None
    first = node.args[0]
    source = shifted.get(first) if isinstance(first, torch.fx.Node) else None
    result = _value(node)
    if not isinstance(result, torch.Tensor):
        return None
    if source is not None and name in KEEPING:
        return source
    if source is not None and name in REPEATING:
        return source if all(type(size) is int and size > 0 for size in result.shape) else None
    if source is not None and name in CASTING:
        wider = result.dtype in (torch.int64, _value(first).dtype)
        return source if wider and not result.is_floating_point() else None
    if name in ("add", "sub") and len(node.args) == 2 and not node.kwargs and result.dtype == torch.int64:
        other = node.args[1]
        if source is not None and type(other) is int:
            return source[0], source[1] + (other if name == "add" else -other)
        if name == "add" and type(first) is int and isinstance(other, torch.fx.Node) and other in shifted:
            return shifted[other][0], shifted[other][1] + first
    return None


def _looked_up(torch, node):
    """(index node, lowest, highest) for each index that the operator looks up in a dimension of fixed size."""
    name, args = _name(torch, node), node.args
    if name == "embedding":
        pairs = [(args[1], args[0], 0, True)]
    elif name == "index_select":
        pairs = [(args[2], args[0], args[1], True)]
    elif name == "gather":
        pairs = [(args[2], args[0], args[1], False)]
    elif name in ("index", "index_put", "index_put_") and str(node.target._overloadname) in ("Tensor", "default", ""):
        pairs = _of_lists(torch, args[0], args[1])
    else:
        return
    for index, table, dim, negative in pairs:
        sizes = _value(table).shape if isinstance(_value(table), torch.Tensor) else ()
        if not isinstance(index, torch.fx.Node) or not sizes or not isinstance(sizes[dim], int) or sizes[dim] < 1:
            continue
        # Generated code counts negative numbers from the end, also where eager refuses them; gather does in neither.
        yield index, -sizes[dim] if negative else 0, sizes[dim] - 1


def _of_lists(torch, table, indices):
    """Index tensors by the dimension that they index. A mask takes several, so nothing is said of what follows one."""
    for dim, index in enumerate(indices):
        if index is None:
            continue
        value = _value(index)
        if not isinstance(value, torch.Tensor) or value.dtype in (torch.bool, torch.uint8):
            return
        yield index, table, dim, True
