"""Normalization: statistics of each row, or constants."""
from sconce._rows import sizes
from sconce._rows.registry import rule
from sconce._rows.values import CONSTANT, Constant, Refused, Rows


def constants(call, *names):
    call.constant(*[name for name in names if call.is_tensor(call.arguments.get(name))])


@rule("native_layer_norm layer_norm _fused_rms_norm rms_norm")
def layer_norm(call):
    constants(call, "weight", "bias")
    value = call.value("input")
    if isinstance(value, Rows) and value.dim >= call.rank("input") - len(call.numbers_in("normalized_shape")):
        raise Refused("joins all rows of the batch")
    return call.each(value)


@rule("native_group_norm group_norm", sized=True)
def group_norm(call):
    constants(call, "weight", "bias")
    value = call.value("input")
    if not isinstance(value, Rows) or value.dim != 0:
        raise Refused("joins neighbours among the rows")
    if "N" in call and not sizes.equal(sizes.expression(call.number("N")), call.shape("input")[0]):
        raise Refused("takes other rows than its input has")
    call.without_batch(*[name for name in ("C", "HxW", "group", "num_groups") if name in call])
    return call.each(value.data())


@rule("_native_batch_norm_legit_no_training _native_batch_norm_legit _native_batch_norm_legit_functional native_batch_norm "
      "batch_norm cudnn_batch_norm miopen_batch_norm _batch_norm_no_update _batch_norm_with_update_functional")
def batch_norm(call):
    value = call.value("input")
    name = str(call.node.target)
    training = "with_update" in name or ("no_training" not in name and "no_update" not in name and
                                         call.arguments.get("training", call.arguments.get("train")))
    statistics = [one for one in call.tensors() if one is not call.arguments["input"]]
    if isinstance(value, Constant):
        raise Refused("its statistics depend on the batch")
    if not training:
        if any(not isinstance(call.value_of(one), Constant) for one in statistics) or value.dim == 1:
            raise Refused("its statistics depend on the batch")
        results = call.result()
        return value.data() if not isinstance(results, (list, tuple)) else \
            [value.data(), *[CONSTANT for _ in results[1:]]]
    # Each channel by itself: the batch may be among the channels, as instance_norm() puts it there.
    if value.dim != 1:
        raise Refused("normalizes by statistics of all rows of the batch")
    for one in statistics:
        own = call.value_of(one)
        if isinstance(own, Constant) or own.place() != (0, value.outer, value.inner):
            raise Refused("its weights are not the rows'")
    results = call.result()
    if not isinstance(results, (list, tuple)):
        return value.data()
    return [value.data(), *[value.data().at(0) if any(call.sizes.has_batch(size) for size in sizes.shape_of(one)) else CONSTANT
                            for one in results[1:]]]
