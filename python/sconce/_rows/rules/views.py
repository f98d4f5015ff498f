"""Permutations, broadcasts, pieces and joins of tensors."""
from sconce._rows import sizes
from sconce._rows.registry import rule
from sconce._rows.values import CONSTANT, Constant, Kind, Refused, Rows


@rule("permute permute_copy", numbered=True)
def permute(call):
    value = call.value("self")
    return value.at(call.dimensions("dims", call.rank("self")).index(value.dim)) if isinstance(value, Rows) else value


@rule("transpose transpose_copy swapaxes swapdims", numbered=True)
def transpose(call):
    value = call.value("self")
    if isinstance(value, Constant):
        return value
    given = list(call.arguments)[1:3]
    a, b = (call.dimension(name, call.rank("self")) for name in given)
    return value.at({a: b, b: a}.get(value.dim, value.dim))


@rule("t t_copy", numbered=True)
def transpose_matrix(call):
    value, rank = call.value("self"), call.rank("self")
    return value.at(rank - 1 - value.dim) if isinstance(value, Rows) else value


@rule("movedim moveaxis", numbered=True)
def movedim(call):
    value, rank = call.value("self"), call.rank("self")
    if isinstance(value, Constant):
        return value
    source, target = call.dimensions("source", rank), call.dimensions("destination", rank)
    rest = [dim for dim in range(rank) if dim not in source]
    order = [None] * rank
    for a, b in zip(source, target):
        order[b] = a
    order = [rest.pop(0) if one is None else one for one in order]
    return value.at(order.index(value.dim))


@rule("unsqueeze unsqueeze_copy", numbered=True)
def unsqueeze(call):
    value = call.value("self")
    if isinstance(value, Constant):
        return value
    at = call.dimension("dim", call.rank("self") + 1)
    return value.at(value.dim + (at <= value.dim))


@rule("squeeze squeeze_copy", numbered=True)
def squeeze(call):
    value, shape = call.value("self"), call.shape("self")
    if isinstance(value, Constant):
        return value
    among = call.dimensions("dim", len(shape)) if "dim" in call else range(len(shape))
    dropped = [dim for dim in among if shape[dim] == 1]
    if len(shape) - len(set(dropped)) != call.result_rank():
        raise Refused("drops a dimension only for some sizes")
    return value.at(value.dim - sum(dim < value.dim for dim in set(dropped)))


@rule("expand expand_copy expand_as broadcast_to", sized=True, numbered=True, shape_only=True)
def expand(call):
    own = call.arguments["self"]
    value, rank = call.analysis.values[own], call.result_rank()
    if isinstance(value, Constant):
        return call.created()
    return value.at(value.dim + rank - call.rank("self")) if isinstance(value, Rows) else value


@rule("repeat tile", sized=True, numbered=True)
def repeat(call):
    value, own, rank = call.value("self"), call.rank("self"), call.result_rank()
    if isinstance(value, Constant):
        return call.created()
    counts = call.numbers_in(list(call.arguments)[1])
    counts = [1] * (rank - len(counts)) + counts
    dim = value.dim + rank - own
    if call.sizes.has_batch(counts[dim]):
        raise Refused("repeats rows as often as the batch is large")
    # Copies of the whole dimension follow each other.
    return value.at(dim).split(value.outer * counts[dim], value.inner)


@rule("repeat_interleave")
def repeat_interleave(call):
    value = call.value_of(call.tensors()[0])
    if isinstance(value, Constant):
        return value
    if "repeats" not in call or call.is_tensor(call.arguments["repeats"]) or call.arguments.get("dim") is None:
        raise Refused("the number of its results depends on values of all rows")
    if call.dimension("dim", call.rank("self")) != value.dim:
        return value
    return value.split(value.outer, value.inner * call.number("repeats"))


def piece(call, value, dim, start, length, whole):
    """A range of a dimension: start, length and the dimension's size are expressions."""
    if not isinstance(value, Rows) or value.dim != dim:
        return value
    if sizes.equal(length, whole) and start == 0:
        return value
    if value.kind is Kind.SAME and value.whole() and start == 0 and length == 1:
        return CONSTANT  # a row that every batch has
    # Whole repetitions of the batch, as those that cat() put beside each other.
    unit = call.sizes.batch * value.inner
    first, count = call.sizes.quotient(sizes.expression(start), unit), call.sizes.quotient(length, unit)
    if start == 0:
        first = 0
    if first is None or count is None or not all(sizes.expression(one).is_Integer for one in (first, count, value.outer)) or \
            not 0 <= first <= first + count <= value.outer:
        raise Refused("takes some rows of the batch")
    return value.split(count, value.inner)


@rule("slice slice_copy narrow narrow_copy", sized=True, numbered=True)
def slice_(call):
    value, rank = call.value("self"), call.rank("self")
    dim = call.dimension("dim", rank)
    start = call.number("start") or 0
    if isinstance(value, Constant) or value.dim != dim:
        call.without_batch(*[name for name in ("start", "end", "length", "step") if name in call])
        return value
    if "step" in call and call.number("step") != 1:
        raise Refused("takes some rows of the batch")
    whole = call.shape("self")[dim]
    start = sizes.expression(start)
    if start.is_Integer and start < 0:
        start = start + whole
    return piece(call, value, dim, start, call.result_shape()[dim], whole)


@rule("select select_copy", numbered=True)
def select(call):
    value = call.value("self")
    if isinstance(value, Constant):
        return value
    dim = call.dimension("dim", call.rank("self"))
    if dim == value.dim:
        if value.kind is Kind.SAME and value.whole() and call.number("index") in (0, -1):
            return CONSTANT  # a row that every batch has
        raise Refused("takes one row of the batch")
    return value.at(value.dim - (dim < value.dim))


@rule("split split_copy split_with_sizes split_with_sizes_copy chunk tensor_split unsafe_split unsafe_split_with_sizes unsafe_chunk",
      sized=True, numbered=True)
def split(call):
    value, shape = call.value("self"), call.shape("self")
    dim = call.dimension("dim", len(shape))
    results = [sizes.shape_of(one) for one in call.result()]
    if isinstance(value, Constant) or value.dim != dim:
        call.without_batch(*[name for name in list(call.arguments)[1:2]])
        return call.each(value)
    values, start = [], sizes.expression(0)
    for one in results:
        values.append(piece(call, value, dim, start, one[dim], shape[dim]))
        start = start + one[dim]
    return values


@rule("unbind unbind_copy", numbered=True)
def unbind(call):
    value = call.value("self")
    if isinstance(value, Constant):
        return call.each(value)
    dim = call.dimension("dim", call.rank("self"))
    if dim == value.dim:
        raise Refused("takes the rows of the batch apart")
    return call.each(value.at(value.dim - (dim < value.dim)))


@rule("cat concat concatenate")
def cat(call):
    held = [(call.value_of(one), call.shape_of(one)) for one in call.arguments["tensors"]]
    rank = call.result_rank()
    # An empty tensor of one dimension is left out, whatever the others' dimensions.
    held = [(value, shape) for value, shape in held if len(shape) == rank and not (rank > 1 and shape == (0,))]
    return beside(call, [value for value, _ in held], call.dimension("dim", rank))


def beside(call, values, dim):
    rows = [value for value in values if isinstance(value, Rows)]
    if not rows:
        return CONSTANT
    if rows[0].dim != dim:
        return call.joined(call.tensors(), call.result_rank())
    if len(rows) != len(values) or len({(one.dim, one.inner) for one in rows}) > 1:
        raise Refused("puts other rows beside the batch's")
    kind = Kind.SAME if all(one.kind is Kind.SAME for one in rows) else Kind.DATA
    return Rows(dim, sum(one.outer for one in rows), rows[0].inner, kind)


@rule("stack")
def stack(call):
    rank = call.result_rank()
    value = call.joined(call.arguments["tensors"], rank - 1)
    at = call.dimension("dim", rank)
    return value.at(value.dim + (at <= value.dim)) if isinstance(value, Rows) else value


@rule("diagonal diagonal_copy linalg_diagonal", numbered=True)
def diagonal(call):
    value, rank = call.value("self"), call.rank("self")
    if isinstance(value, Constant):
        return value
    a, b = call.dimension("dim1", rank), call.dimension("dim2", rank)
    if value.dim in (a, b):
        raise Refused("takes one element of each row, by its number")
    return value.at(value.dim - (a < value.dim) - (b < value.dim))


@rule("diag_embed")
def diag_embed(call):
    value, rank = call.value("self"), call.result_rank()
    a, b = sorted((call.dimension("dim1", rank), call.dimension("dim2", rank)))
    if isinstance(value, Constant):
        return value
    if value.dim == call.rank("self") - 1:
        raise Refused("spreads the batch over two dimensions")
    free = [dim for dim in range(rank) if dim not in (a, b)]
    return value.at(free[value.dim])


@rule("unfold unfold_copy", numbered=True)
def unfold(call):
    value = call.value("self")
    if isinstance(value, Rows) and call.dimension("dimension", call.rank("self")) == value.dim:
        raise Refused("puts several rows into a window")
    return value


@rule("constant_pad_nd pad reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d "
      "_pad_circular _pad_enum")
def pad(call):
    value, rank = call.value("self"), call.rank("self")
    widths = call.numbers_in("pad" if "pad" in call else "padding")
    if isinstance(value, Rows) and any(width != 0 for width in widths[2 * (rank - 1 - value.dim):][:2]):
        raise Refused("pads the batch")
    return value


@rule("tril triu")
def triangle(call):
    value = call.value("self")
    if isinstance(value, Rows) and value.dim >= call.rank("self") - 2:
        raise Refused("depends on the number of the row")
    return value


@rule("rot90")
def rot90(call):
    value = call.value("self")
    if isinstance(value, Rows) and value.dim in call.dimensions("dims", call.rank("self")):
        raise Refused("turns the batch")
    return value


@rule("pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle")
def shuffle(call):
    value = call.value("self")
    if isinstance(value, Rows) and value.dim >= call.rank("self") - (3 if "pixel" in str(call.node.target) else call.rank("self") - 1):
        raise Refused("moves elements between rows")
    return value


@rule("as_strided", sized=True, numbered=True)
def as_strided(call):
    """The tensor itself under strides that differ only where the size is 1, as adaptive pooling to one element ends."""
    given = call.arguments["self"].meta["val"]
    shape, strides = call.shape("self"), [sizes.expression(one) for one in given.stride()]
    size, wanted = (list(map(sizes.expression, call.numbers_in(name))) for name in ("size", "stride"))
    if list(shape) != size or call.arguments["storage_offset"] is not None or \
            any(a != b for a, b, length in zip(strides, wanted, shape) if length != 1):
        raise Refused("addresses memory beyond its row")
    return call.value("self")
