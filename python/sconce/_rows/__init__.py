"""Proves on an exported graph that the rows of a batch do not influence each other, so that a server may put rows of several
requests into one run. A propagation of the batch's dimension, as for sharding: each operator has a rule that says which dimension
of which result carries the batch alone; without one the answer is no."""
from sconce._rows import rules, sizes, traces
from sconce._rows.analysis import ASSERTIONS, Analysis
from sconce._rows.proof import KEY, RowProof
from sconce._rows.values import CONSTANT, Constant, Kind, Rows, Unknown

ROWS = Rows(0)

__all__ = ["ASSERTIONS", "CONSTANT", "KEY", "ROWS", "RowProof", "analysed", "batch_of", "has_batch", "judged", "of_core",
           "prove", "rules", "traces"]


def batch_of(torch, tensors):
    """The symbol of the first dimension that all these inputs share; or why there is none."""
    found = None
    for name, tensor in tensors:
        if not isinstance(tensor, torch.Tensor):
            return None, f"input {name} is no tensor"
        first = sizes.shape_of(tensor)[0] if tensor.dim() else None
        if first is None or first.is_Integer:
            return None, f"input {name} has no batch as its first dimension"
        if not first.is_Symbol:
            return None, f"the first dimension of input {name} is computed: {first}"
        if found not in (None, first):
            return None, f"the first dimension of input {name} is not the other inputs'"
        found = first
    if found is None:
        return None, "it has no inputs"
    for name, tensor in tensors:
        if any(found in sizes.symbols(size) for size in sizes.shape_of(tensor)[1:]):
            return None, f"input {name} has the batch in several dimensions"
    return found, ""


def has_batch(torch, program):
    """Whether a first dimension of an input is dynamic, so that requests could share runs at all."""
    return any(isinstance(value, torch.Tensor) and value.dim() and not isinstance(value.shape[0], int)
               for _, value in inputs_of(program))


def inputs_of(program):
    """(name, fake tensor or symbolic number) of the user's inputs. None and numbers are part of the graph, and no inputs."""
    names = set(program.graph_signature.user_inputs)
    return [(node.name, node.meta.get("val")) for node in program.graph.nodes
            if node.op == "placeholder" and node.name in names
            and not isinstance(node.meta.get("val"), (bool, int, float, str, type(None)))]


def prove(torch, program):
    """A RowProof of an ExportedProgram. The program stays as it is; its graph is decomposed into ATen's core in a copy."""
    batch, why = batch_of(torch, inputs_of(program))
    if batch is None:
        return RowProof(False, why)
    try:
        decomposed = program.run_decompositions(decompositions(torch))
    except Exception as error:  # noqa: BLE001  torch has no common class for its refusals
        return RowProof(False, f"torch cannot decompose the graph: {type(error).__name__}")
    try:
        return of_core(torch, decomposed)
    except Exception as error:  # noqa: BLE001  a graph of a form that this version of torch makes and no rule expects
        return RowProof(False, f"the graph cannot be followed: {type(error).__name__}: {error}")


def decompositions(torch):
    """torch's table for its core operators, without attention: its decomposition has other strides than the graph was exported with,
    so that a view of the result may fail, and a rule knows it."""
    table = torch.export.exported_program.default_decompositions()
    kept = torch.ops.aten.scaled_dot_product_attention.default
    if kept in table:
        table.pop(kept)
    return table


def of_core(torch, program):
    """Of a program that is decomposed already."""
    batch, why = batch_of(torch, inputs_of(program))
    if batch is None:
        return RowProof(False, why)
    signature = program.graph_signature
    for kind in ("buffers_to_mutate", "user_inputs_to_mutate", "parameters_to_mutate"):
        for target in (getattr(signature, kind, None) or {}).values():
            return RowProof(False, f"a run writes {target}")
    users = {name for name, _ in inputs_of(program)}
    inputs = [ROWS if node.name in users else CONSTANT for node in program.graph.nodes if node.op == "placeholder"]
    outputs = analysed(torch, program.graph_module, batch, inputs)
    own = [value for spec, value in zip(signature.output_specs, outputs) if spec.kind.name == "USER_OUTPUT"]
    for i, value in enumerate(own):
        verdict = judged(torch, i, value)
        if not verdict:
            return verdict
    return RowProof(True)


def analysed(torch, graph_module, batch, inputs):
    """The values of a graph's outputs, in order. inputs: ROWS or CONSTANT for each of its placeholders."""
    found = Analysis(torch, sizes.Sizes(batch)).run(graph_module, inputs)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def judged(torch, i, value):
    """Of one output."""
    if isinstance(value, Unknown):
        return RowProof(False, value.why, value.operator, traces.place_of(torch, value.node))
    if value is None:
        return RowProof(True)
    if not isinstance(value, Rows):
        return RowProof(False, f"output {i} has no batch" if isinstance(value, Constant) else f"output {i} is a number")
    if value.dim != 0 or not value.whole():
        return RowProof(False, f"output {i} has the batch elsewhere than as its first dimension")
    if value.kind is Kind.NUMBER:
        return RowProof(False, f"output {i} holds the numbers of rows")
    return RowProof(True)
