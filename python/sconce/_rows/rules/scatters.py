"""Writing by indices: the result is a copy of the first tensor with other elements."""
from sconce._rows import sizes
from sconce._rows.call import joined
from sconce._rows.registry import rule
from sconce._rows.rules.indexing import index_rank, no_masks, picked
from sconce._rows.values import Constant, Refused, Rows


@rule("scatter scatter_add scatter_reduce")
def scatter(call):
    rank = call.rank("self")
    value, index = call.value("self"), call.value("index")
    source = call.value("src") if "src" in call and call.is_tensor(call.arguments["src"]) else index
    places = {one.place() if isinstance(one, Rows) else None for one in (value, index, source)}
    if None in places or len(places) > 1:
        raise Refused("writes into other rows")
    if value.dim == call.dimension("dim", rank):
        raise Refused("writes into rows by an index")
    return value.data()


@rule("index_add index_copy index_fill index_reduce")
def index_write(call):
    value, rank = call.value("self"), call.rank("self")
    name = next((name for name in ("source", "value") if name in call), None)
    source = call.arguments[name]
    call.constant("index")
    if not isinstance(value, Rows):
        raise Refused("writes rows into a constant")
    if value.dim == call.dimension("dim", rank):
        raise Refused("writes into rows by an index")
    if call.is_tensor(source) and call.rank(name):
        joined([(value, rank), (call.value(name), call.rank(name))], rank)
    if call.is_tensor(source) and not call.rank(name):
        call.constant(name)
    return value.data()


@rule("index_put _unsafe_index_put", numbered=True)
def index_put(call):
    value, entries = call.value("self"), list(call.arguments["indices"])
    if not isinstance(value, Rows):
        raise Refused("writes rows into a constant")
    written, own = call.value("values"), call.rank("values")
    masks = [(dim, one) for dim, one in enumerate(entries) if one is not None]
    if len(masks) == 1 and str(masks[0][1].meta["val"].dtype) in ("torch.bool", "torch.uint8"):
        return masked(call, value, *masks[0])
    no_masks(call, entries)
    width = index_rank(call, entries)
    found = [(dim, call.value_of(one), len(call.shape_of(one))) for dim, one in enumerate(entries) if one is not None]
    rank = call.rank("self") - len(found) + width
    place = picked(call, value.data(), found, width)
    if not isinstance(place, Rows) or joined([(place, rank), (written, own)], rank).place() != place.place():
        raise Refused("writes into other rows")
    return value.data()


def masked(call, value, at, mask):
    """value[mask] = one constant."""
    if not isinstance(call.value("values"), Constant) or sizes.product(call.shape("values")) != 1:
        raise Refused("counts the elements that it writes")
    own = call.value_of(mask)
    covers = at <= value.dim < at + len(call.shape_of(mask))
    if covers and (not isinstance(own, Rows) or own.place() != (value.dim - at, value.outer, value.inner)) or \
            not covers and not isinstance(own, Constant):
        raise Refused("writes into other rows")
    return value.data()


@rule("slice_scatter", sized=True)
def slice_scatter(call):
    value, source, rank = call.value("self"), call.value("src"), call.rank("self")
    dim = call.dimension("dim", rank)
    rows = next((one for one in (value, source) if isinstance(one, Rows)), None)
    if rows is not None and rows.dim == dim:
        if call.number("step") == 1 and not call.number("start") and sizes.equal(call.shape("src")[dim], call.shape("self")[dim]):
            return source
        raise Refused("writes into some rows of the batch")
    call.without_batch("start", "end", "step")
    return joined([(value, rank), (source, rank)], rank)


@rule("select_scatter")
def select_scatter(call):
    value, source, rank = call.value("self"), call.value("src"), call.rank("self")
    dim = call.dimension("dim", rank)
    if isinstance(value, Rows) and value.dim == dim:
        raise Refused("writes into one row of the batch")
    if isinstance(source, Rows):
        source = source.at(source.dim + (dim <= source.dim))
    return joined([(value, rank), (source, rank)], rank)
