"""Reductions, and operators along dimensions: nothing but these dimensions is joined."""
from sconce._rows.registry import rule
from sconce._rows.rules.elementwise import elementwise
from sconce._rows.values import Refused, Rows


def untouched(call, value, dims, why):
    """Refuses if the dimensions, None: all, hold the batch."""
    if isinstance(value, Rows) and (not dims or value.dim in dims):
        raise Refused(why)


@rule("sum mean prod amax amin any all var std var_mean std_mean argmax argmin logsumexp max min median nanmedian mode kthvalue "
      "linalg_vector_norm norm nansum nanmean count_nonzero aminmax nanquantile quantile special_logsumexp")
def reduction(call):
    tensors = call.tensors()
    if "other" in call:
        return elementwise(call)
    value, rank = call.value_of(tensors[0]), len(call.shape_of(tensors[0]))
    if len(tensors) > 1:
        raise Refused("takes quantiles from a tensor")
    dims = call.dimensions("dim", rank)
    untouched(call, value, dims, "joins all rows of the batch")
    if isinstance(value, Rows) and not call.arguments.get("keepdim"):
        value = value.at(value.dim - sum(dim < value.dim for dim in set(dims)))
    return call.each(value)


@rule("_softmax _log_softmax softmax log_softmax _safe_softmax special_softmax special_log_softmax cumsum cumprod cummax cummin "
      "logcumsumexp sort topk msort argsort flip roll ")
def along(call):
    tensors = call.tensors()
    value, rank = call.value_of(tensors[0]), len(call.shape_of(tensors[0]))
    name = next((name for name in ("dim", "dims") if name in call), None)
    dims = call.dimensions(name, rank) if name else [0]
    untouched(call, value, dims, "goes along the batch")
    return call.each(value)


@rule("_softmax_backward_data _log_softmax_backward_data")
def along_backward(call):
    rank = call.result_rank()
    value = call.joined(call.tensors(), rank)
    untouched(call, value, call.dimensions("dim", rank), "goes along the batch")
    return value


@rule("renorm")
def renorm(call):
    """Slices of `dim` are scaled by the norm of each."""
    value = call.value("self")
    if isinstance(value, Rows) and value.dim != call.dimension("dim", call.rank("self")):
        raise Refused("takes a norm of all rows")
    return value


@rule("linalg_cross cross")
def cross(call):
    rank = call.result_rank()
    value = call.joined(call.tensors(), rank)
    if "dim" not in call or call.arguments["dim"] is None:
        raise Refused("chooses its dimension by size")
    untouched(call, value, call.dimensions("dim", rank), "goes along the batch")
    return value


@rule("_fft_c2c _fft_r2c _fft_c2r")
def fourier(call):
    value = call.value("self")
    untouched(call, value, call.dimensions("dim", call.rank("self")), "transforms along the batch")
    return value


@rule("quantized_decomposed.choose_qparams_per_token quantized_decomposed.choose_qparams_per_token_asymmetric "
      "quantized_decomposed._choose_qparams_per_token_asymmetric_impl")
def parameters_per_token(call):
    value, rank = call.value("input"), call.rank("input")
    untouched(call, value, [rank - 1], "joins all rows of the batch")
    return call.each(value)


@rule("quantized_decomposed.quantize_per_token quantized_decomposed.dequantize_per_token")
def per_token(call):
    return call.joined(call.tensors(), call.result_rank())
