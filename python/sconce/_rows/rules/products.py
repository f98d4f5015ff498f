"""Matrix products: the batch may be any dimension that is not summed over."""
from sconce._rows.call import joined
from sconce._rows.registry import rule
from sconce._rows.values import CONSTANT, Constant, Kind, Refused, Rows


def product(call, letters, *names):
    """letters: "ik,kj->ij" names the dimensions of two tensors and of their product; "..." stands for any before."""
    given, result = letters.split("->")
    found, ranks = None, []
    for side, name in zip(given.split(","), names):
        value, rank = call.value(name), call.rank(name)
        side = expanded(side, rank)
        ranks.append((side, value))
        if isinstance(value, Rows):
            place = side[value.dim], value.outer, value.inner
            if place[0] not in expanded(result, call.result_rank() if "..." in result else len(result)):
                raise Refused("sums over all rows of the batch")
            if found not in (None, place):
                raise Refused("multiplies each row with other rows")
            found = place
    if found is None:
        return CONSTANT
    for side, value in ranks:
        if isinstance(value, Constant) and found[0] in side:
            raise Refused("multiplies each row with a constant of its own")
    same = all(isinstance(value, Constant) or value.kind is Kind.SAME for _, value in ranks)
    return Rows(expanded(result, len(result) if "..." not in result else call.result_rank()).index(found[0]), found[1], found[2],
                Kind.SAME if same else Kind.DATA)


def expanded(side, rank):
    """The letters with a letter for each dimension of "...", counted from the right."""
    if "..." not in side:
        return side
    after = side.split("...")[1]
    return "".join(chr(ord("A") + i) for i in reversed(range(rank - len(after)))) + after


def plus(call, value, *names):
    """With what is added to the product, which is broadcast to it."""
    rank = call.result_rank()
    more = [(call.value(name), call.rank(name)) for name in names if call.is_tensor(call.arguments.get(name))]
    return joined([(value, rank), *more], rank)


@rule("mm _int_mm hspmm")
def mm(call):
    return product(call, "ik,kj->ij", "self", "mat2")


@rule("bmm")
def bmm(call):
    return product(call, "nik,nkj->nij", "self", "mat2")


@rule("addmm _addmm_activation")
def addmm(call):
    return plus(call, product(call, "ik,kj->ij", "mat1", "mat2"), "self")


@rule("baddbmm")
def baddbmm(call):
    return plus(call, product(call, "nik,nkj->nij", "batch1", "batch2"), "self")


@rule("addbmm")
def addbmm(call):
    return plus(call, product(call, "nik,nkj->ij", "batch1", "batch2"), "self")


@rule("mv")
def mv(call):
    return product(call, "ik,k->i", "self", "vec")


@rule("addmv")
def addmv(call):
    return plus(call, product(call, "ik,k->i", "mat", "vec"), "self")


@rule("outer ger")
def outer(call):
    return product(call, "i,j->ij", "self", "vec2")


@rule("addr")
def addr(call):
    return plus(call, product(call, "i,j->ij", "vec1", "vec2"), "self")


@rule("dot vdot")
def dot(call):
    return product(call, "i,i->", "self", "tensor" if "tensor" in call else "other")


@rule("linear")
def linear(call):
    if call.rank("weight") != 2:
        raise Refused("has a weight of one dimension")
    return plus(call, product(call, "...k,jk->...j", "input", "weight"), "bias")


@rule("matmul linalg_matmul")
def matmul(call):
    ranks = call.rank("self"), call.rank("other")
    if min(ranks) < 2:
        letters = {(1, 1): "k,k->", (1, 2): "k,kj->j", (2, 1): "ik,k->i"}.get(ranks)
        if ranks[1] == 1 and not letters:
            letters = "...k,k->..."
        if not letters:
            raise Refused("multiplies a vector with many matrices")
        return product(call, letters, "self", "other")
    return product(call, "...ik,...kj->...ij", "self", "other")


@rule("_weight_int8pack_mm")
def weight_int8pack_mm(call):
    call.constant("mat2", "scales")
    return product(call, "ik,jk->ij", "self", "mat2")


@rule("_weight_int4pack_mm _weight_int4pack_mm_for_cpu _weight_int4pack_mm_with_scales_and_zeros")
def packed(call):
    """Each row of the first tensor times packed constants."""
    first, *rest = call.tensors()
    value = call.value_of(first)
    if any(not isinstance(call.value_of(one), Constant) for one in rest):
        raise Refused("its weights depend on the batch")
    if isinstance(value, Rows) and value.dim != 0:
        raise Refused("sums over all rows of the batch")
    return value


@rule("_scaled_mm")
def scaled_mm(call):
    # A scale for each row, or one for the whole tensor.
    for name in ("scale_b", "scale_result"):
        if call.is_tensor(call.arguments.get(name)):
            call.constant(name)
    return plus(call, product(call, "ik,kj->ij", "self", "mat2"), "scale_a", "bias")


@rule("_trilinear")
def trilinear(call):
    operands, rank = [], call.rank("i1") + len(call.numbers_in("expand1"))
    for name, expanded_dims in (("i1", "expand1"), ("i2", "expand2"), ("i3", "expand3")):
        value = call.value(name)
        if isinstance(value, Rows):
            left = [dim for dim in range(rank) if dim not in call.dimensions(expanded_dims, rank)]
            value = value.at(left[value.dim])
        operands.append((value, rank))
    value = joined(operands, rank)
    dims = call.dimensions("sumdim", rank)
    if isinstance(value, Rows):
        if value.dim in dims:
            raise Refused("sums over all rows of the batch")
        value = value.at(value.dim - sum(dim < value.dim for dim in dims))
    return value


@rule("_cdist_forward cdist")
def cdist(call):
    return product(call, "...ik,...jk->...ij", "x1", "x2")
