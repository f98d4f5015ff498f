"""Reading by indices."""
from sconce._rows.call import joined
from sconce._rows.registry import rule
from sconce._rows.values import CONSTANT, Constant, Kind, Refused, Rows, Unknown


@rule("embedding")
def embedding(call):
    call.constant("weight")
    return call.value("indices")


@rule("_embedding_bag _embedding_bag_forward_only", numbered=True)
def embedding_bag(call):
    """offsets: arange(0, rows * length, length), as nn.EmbeddingBag makes them of a matrix of indices."""
    call.constant("weight")
    offsets, value = call.value("offsets"), call.value("indices")
    if not isinstance(value, Rows) or not isinstance(offsets, Rows) or offsets.kind is not Kind.NUMBER or not offsets.whole() or \
            value.kind is Kind.NUMBER or value.place() != (0, 1, value.inner) or value.inner != offsets.scale or \
            call.number("include_last_offset"):
        raise Refused("its bags are not the rows")
    if call.is_tensor(call.arguments.get("per_sample_weights")):
        weights = call.value("per_sample_weights")
        if not isinstance(weights, Rows) or weights.place() != value.place() or weights.kind is Kind.NUMBER:
            raise Refused("weighs elements of other rows")
    return [Rows(0), *[Unknown("is for a backward pass only", "aten._embedding_bag", call.node) for _ in call.result()[1:]]]


@rule("index_select", numbered=True)
def index_select(call):
    value, index = call.value("self"), call.value("index")
    dim = call.dimension("dim", call.rank("self"))
    if call.rank("index") != 1:
        raise Refused("takes one row")
    return picked(call, value, [(dim, index, call.rank("index"))], 1)


@rule("gather", numbered=True)
def gather(call):
    value, index, rank = call.value("self"), call.value("index"), call.rank("index")
    if isinstance(index, Rows) and index.kind is Kind.NUMBER or isinstance(value, Rows) and value.kind is Kind.NUMBER:
        raise Refused("computes with the numbers of rows")
    dim = call.dimension("dim", rank)
    if isinstance(value, Constant):
        if isinstance(index, Rows) and index.dim != dim:
            raise Refused("takes by the number of the row")
        return index
    if isinstance(index, Constant) or index.place() != value.place() or value.dim == dim:
        raise Refused("takes elements of other rows")
    return index.data()


@rule("take")
def take(call):
    call.constant("self")
    return call.value("index")


def index_rank(call, entries):
    """How many dimensions the indices have together."""
    return max(len(call.shape_of(one)) for one in entries if one is not None)


@rule("index _unsafe_index", numbered=True)
def index(call):
    value, entries = call.value("self"), list(call.arguments["indices"])
    no_masks(call, entries)
    width = index_rank(call, entries)
    found = [(dim, call.value_of(one), len(call.shape_of(one))) for dim, one in enumerate(entries) if one is not None]
    return picked(call, value, found, width)


def no_masks(call, entries):
    if any(one is not None and str(one.meta["val"].dtype) in ("torch.bool", "torch.uint8") for one in entries):
        raise Refused("the number of its results depends on values of all rows")


def neighbours(dims):
    """Whether the indexed dimensions follow each other: then the indices' dimensions take their place, else they come first."""
    return dims == list(range(dims[0], dims[0] + len(dims)))


def picked(call, value, found, width):
    """The value of value[indices]. found: (dimension, value, rank) of each index, which are broadcast to `width` dimensions."""
    dims = [dim for dim, _, _ in found]
    if isinstance(value, Rows) and value.kind is Kind.NUMBER:
        raise Refused("computes with the numbers of rows")
    if isinstance(value, Constant) or value.dim in dims:
        return _of_indices(value, found, dims[0] if neighbours(dims) else 0, width)
    if any(not isinstance(one, Constant) for _, one, _ in found):
        raise Refused("takes each row by the others' indices")
    left = value.dim - sum(dim < value.dim for dim in dims)
    return value.data().at(left if neighbours(dims) and value.dim < dims[0] else left + width)


def _of_indices(value, found, first, width):
    """The batch is in the indices: they take from a constant, or each row takes from itself by its number."""
    operands = []
    numbered = False
    for dim, one, rank in found:
        if isinstance(one, Rows) and one.kind is Kind.NUMBER:
            if not isinstance(value, Rows) or dim != value.dim or one.scale != 1 or not value.whole():
                raise Refused("takes by the number of the row")
            numbered = True
            one = Rows(one.dim, one.outer, one.inner)
        elif isinstance(value, Rows) and dim == value.dim:
            raise Refused("takes rows by an index")
        operands.append((one, rank))
    if isinstance(value, Rows) and not numbered:
        raise Refused("takes rows by an index")
    place = joined(operands, width)
    return place.at(place.dim + first) if isinstance(place, Rows) else CONSTANT
