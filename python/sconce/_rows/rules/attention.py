"""Attention and recurrent layers that ATen computes in one call."""
from sconce._rows import sizes
from sconce._rows.call import joined
from sconce._rows.registry import rule
from sconce._rows.values import CONSTANT, Constant, Refused, Rows, Unknown


@rule("_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
      "_scaled_dot_product_cudnn_attention _scaled_dot_product_fused_attention_overrideable scaled_dot_product_attention "
      "_scaled_dot_product_attention_math _scaled_dot_product_attention_math_for_mps")
def attention(call):
    """Query, key and value have the dimensions [..., length, features]; all before them are independent."""
    if call.number("dropout_p"):
        raise Refused("draws random numbers")
    rank = call.rank("query")
    masks = [name for name in ("attn_mask", "attn_bias", "dropout_mask") if call.is_tensor(call.arguments.get(name))]
    names = ["query", "key", "value", *masks]
    value = joined([(call.value(name), call.rank(name)) for name in names], rank)
    if isinstance(value, Rows):
        if value.dim >= rank - 2:
            raise Refused("attends to all rows of the batch")
        if any(isinstance(call.value(name), Constant) and call.rank(name) == rank and call.shape(name)[value.dim] != 1
               for name in ("key", "value")):
            raise Refused("attends to constants of each row")
    results = call.result()
    if not isinstance(results, (list, tuple)):
        return value
    # The result, the logarithms of sums, and what a backward pass needs.
    return [value if i < 2 and fits(call, value, one) else rest(call, one) for i, one in enumerate(results)]


def fits(call, value, tensor):
    if not isinstance(value, Rows):
        return True
    shape = sizes.shape_of(tensor)
    return value.dim < len(shape) and sizes.equal(shape[value.dim], value.outer * call.sizes.batch * value.inner)


def rest(call, result):
    return Unknown("is for a backward pass only", str(call.node.target), call.node) if hasattr(result, "shape") else CONSTANT


@rule("_native_multi_head_attention")
def multi_head_attention(call):
    return _encoder(call, ["query", "key", "value"], "mask")


@rule("_transformer_encoder_layer_fwd")
def encoder_layer(call):
    return _encoder(call, ["src"], "mask")


def _encoder(call, inputs, mask):
    """Of batches [rows, length, features] with constant weights."""
    others = [one for name, one in call.arguments.items() if name not in (*inputs, mask) and call.is_tensor(one)]
    if any(not isinstance(call.value_of(one), Constant) for one in others):
        raise Refused("its weights depend on the batch")
    values = [call.value(name) for name in inputs]
    if any(not isinstance(one, Rows) or one.dim for one in values) or len({one.place() for one in values}) > 1:
        raise Refused("attends to other rows")
    found = call.value(mask)
    # 0: [length, length]; 1: [rows, length]; 2: [rows, heads, length, length].
    if isinstance(found, Rows) and (found.place() != values[0].place() or call.number("mask_type") not in (1, 2)):
        raise Refused("attends by a mask of other rows")
    results = call.result()
    if not isinstance(results, (list, tuple)):
        return values[0].data()
    return [values[0].data() if fits(call, values[0], one) else rest(call, one) for one in results]


@rule("mkldnn_rnn_layer")
def rnn_layer(call):
    batch = 0 if call.number("batch_first") else 1
    _constant_weights(call, ("input", "hx_", "cx_"))
    if call.numbers_in("batch_sizes"):
        raise Refused("takes sequences of other lengths beside each other")
    return _recurrent(call, batch, ("hx_", "cx_"))


def _constant_weights(call, states):
    for name, one in call.arguments.items():
        for node in one if isinstance(one, (list, tuple)) else [one]:
            if name not in states and call.is_tensor(node) and not isinstance(call.value_of(node), Constant):
                raise Refused("its weights depend on the batch")


def _recurrent(call, batch, states):
    value = call.value("input")
    rank = call.rank("input")
    if rank != 3 or not isinstance(value, Rows) or value.dim != batch:
        raise Refused("steps through the batch")
    for name in states:
        given = call.arguments[name]
        for node in given if isinstance(given, (list, tuple)) else [given]:
            own = call.value_of(node)
            if not isinstance(own, Rows) or own.place() != (len(call.shape_of(node)) - 2, value.outer, value.inner):
                raise Refused("starts from states of other rows")
    results = call.result()
    found = []
    for i, one in enumerate(results):
        place = value.data().at(batch if i == 0 else len(one.shape) - 2)
        found.append(place if i < 3 and len(one.shape) >= 2 and fits(call, place, one) else rest(call, one))
    return found


@rule("lstm gru rnn_tanh rnn_relu")
def recurrent(call):
    if "data" in call:
        raise Refused("takes sequences of other lengths beside each other")
    if call.number("dropout") and call.number("train"):
        raise Refused("draws random numbers")
    _constant_weights(call, ("input", "hx"))
    return _recurrent(call, 0 if call.number("batch_first") else 1, ("hx",))
