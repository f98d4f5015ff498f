"""Tensors that are made of sizes and constants."""
from sconce._rows import sizes
from sconce._rows.registry import rule
from sconce._rows.values import CONSTANT, Kind, Refused, Rows


@rule("full zeros ones new_full new_zeros new_ones full_like zeros_like ones_like _efficientzerotensor", sized=True, numbered=True,
      shape_only=True)
def filled(call):
    for name in ("fill_value",):
        if name in call:
            if call.is_tensor(call.arguments[name]):
                call.constant(name)
            else:
                call.without_batch(name)
    return call.created()


@rule("fill", shape_only=True, numbered=True)
def fill(call):
    if call.is_tensor(call.arguments["value"]):
        call.constant("value")
    return call.created()


@rule("arange prims.iota", sized=True)
def arange(call):
    """The numbers of rows, times a step without the batch: arange(B), arange(0, 3 * B, 3)."""
    if not any(call.sizes.has_batch(size) for size in call.result_shape()):
        call.without_batch(*[name for name in ("start", "end", "step") if name in call])
        return CONSTANT
    start = call.number("start") if "start" in call else 0
    step = call.number("step") if "step" in call else 1
    size = call.result_shape()[0]
    whole = sizes.equal(size, call.sizes.batch)
    if start != 0 or not whole or call.sizes.has_batch(sizes.expression(step)) or "int" not in str(call.result().dtype):
        raise Refused("counts the rows of the batch")
    return Rows(0, 1, 1, Kind.NUMBER, step)


@rule("eye linspace logspace tril_indices triu_indices hann_window hamming_window blackman_window bartlett_window kaiser_window "
      "scalar_tensor")
def counted(call):
    return call.created()


@rule("empty empty_strided empty_permuted new_empty new_empty_strided empty_like", sized=True, numbered=True, shape_only=True)
def empty(call):
    raise Refused("its memory holds anything")
