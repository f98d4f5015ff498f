"""Operators whose result at an index depends on their arguments at that index, after broadcasting."""
from sconce._rows.call import reshaped
from sconce._rows.registry import rule
from sconce._rows.values import CONSTANT, Constant, Kind, Refused, Rows


@rule("""
abs absolute acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh arctan2 bitwise_and bitwise_left_shift bitwise_not
bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp clamp_max clamp_min clip complex conj_physical copysign cos cosh deg2rad
digamma div divide elu eq erf erfc erfinv exp exp2 expm1 fake_quantize_per_tensor_affine
fake_quantize_per_tensor_affine_cachemask float_power floor floor_divide fmax fmin fmod frac frexp gcd ge gelu greater
greater_equal gt hardshrink hardsigmoid hardswish hardtanh heaviside hypot i0 igamma igammac isfinite isinf isnan isneginf
isposinf isreal lcm ldexp le leaky_relu lerp less less_equal lgamma log log10 log1p log2 log_sigmoid log_sigmoid_forward logaddexp
logaddexp2 logical_and logical_not logical_or logical_xor logit lt masked_fill maximum minimum mish mul multiply mvlgamma nan_to_num ne
neg negative nextafter not_equal polar polygamma positive pow prelu _prelu_kernel rad2deg real reciprocal relu relu6 remainder round
rsqrt rsub selu sgn sigmoid sign signbit silu sin sinc sinh softplus softshrink special_airy_ai
special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_entr special_erfcx special_i0e special_i1
special_i1e special_log_ndtr special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0
special_modified_bessel_k1 special_ndtr special_ndtri special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1
special_spherical_bessel_j0 special_xlog1py special_zeta special_chebyshev_polynomial_t special_chebyshev_polynomial_u
special_chebyshev_polynomial_v special_chebyshev_polynomial_w special_hermite_polynomial_h special_hermite_polynomial_he
special_laguerre_polynomial_l special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t
special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w sqrt square
sub subtract tan tanh threshold true_divide trunc xlogy fix conj _conj _neg_view imag
elu_backward gelu_backward hardsigmoid_backward hardswish_backward hardtanh_backward leaky_relu_backward log_sigmoid_backward
logit_backward sigmoid_backward silu_backward softplus_backward softshrink_backward tanh_backward threshold_backward
hardshrink_backward mish_backward
quantized_decomposed.quantize_per_tensor quantized_decomposed.dequantize_per_tensor
""")
def elementwise(call):
    # The parameters of a quantization are scalars or tensors of one element, which broadcast likewise.
    shapes = call.result()
    rank = len((shapes[0] if isinstance(shapes, (list, tuple)) else shapes).shape)
    return call.each(call.joined(call.tensors(), rank))


@rule("where")
def where(call):
    if "self" not in call:
        raise Refused("the number of its results depends on values of all rows")
    return call.joined(call.tensors(), call.result_rank())


@rule("clone contiguous detach alias lift lift_fresh lift_fresh_copy _to_copy to "
      "prims.convert_element_type prims.device_put prims.clone alias_copy detach_copy _autocast_to_full_precision "
      "_autocast_to_reduced_precision type_as",
      numbered=True)
def same_elements(call):
    value = call.value_of(call.tensors()[0])
    if isinstance(value, Rows) and value.kind is Kind.NUMBER and str(call.result().dtype) not in ("torch.int64", "torch.int32"):
        _refuse_numbers()
    return value


def _refuse_numbers():
    raise Refused("computes with the numbers of rows")


@rule("copy", shape_only=True)
def copy(call):
    """The elements of src in the shape of self."""
    value = call.value("src")
    cause = call.analysis.values.get(call.arguments["src"])
    if not isinstance(value, (Constant, Rows)):
        return cause
    if isinstance(value, Constant):
        return call.created()
    return value.at(value.dim + call.result_rank() - call.rank("src")).data() if value.kind is not Kind.NUMBER else _refuse_numbers()


@rule("dropout native_dropout")
def dropout(call):
    train = call.number("train")
    if train or (train is None and "input" in call):
        raise Refused("draws random numbers")
    return call.each(call.value("input"))


@rule("bucketize")
def bucketize(call):
    call.constant("boundaries")
    return call.value("self") if call.is_tensor(call.arguments["self"]) else CONSTANT


@rule("isin")
def isin(call):
    names = [name for name in call.arguments if "test_element" in name]
    call.constant(*names)
    return call.joined([call.arguments["elements"]], call.result_rank())


@rule("searchsorted")
def searchsorted(call):
    edges, value = call.value("sorted_sequence"), call.value("self")
    call.constant(*[name for name in ("sorter",) if call.arguments.get(name) is not None])
    rank = call.rank("sorted_sequence")
    if isinstance(edges, Constant) and rank == 1:
        return value
    if isinstance(edges, Rows) and isinstance(value, Rows) and edges.place() == value.place() and edges.dim < rank - 1:
        return edges.data()
    raise Refused("searches values of several rows")


@rule("quantized_decomposed.quantize_per_channel quantized_decomposed.dequantize_per_channel fake_quantize_per_channel_affine "
      "fake_quantize_per_channel_affine_cachemask")
def per_channel(call):
    nodes = call.tensors()
    value = call.value_of(nodes[0])
    if any(not isinstance(call.value_of(one), Constant) for one in nodes[1:]):
        raise Refused("its scales depend on the batch")
    axis = call.dimension("axis", len(call.shape_of(nodes[0])))
    if isinstance(value, Rows) and value.dim == axis:
        raise Refused("its axis is the batch")
    return call.each(value.data() if isinstance(value, Rows) else value)


@rule("view_as_real view_as_real_copy")
def view_as_real(call):
    return call.value("self")


@rule("view_as_complex view_as_complex_copy")
def view_as_complex(call):
    return _unless_last(call)


@rule("prims.view_element_type")
def view_element_type(call):
    return _unless_last(call)


def _unless_last(call):
    value = call.value_of(call.tensors()[0])
    rank = len(call.shape_of(call.tensors()[0]))
    if isinstance(value, Rows) and value.dim == rank - 1 and call.result_shape() != call.shape_of(call.tensors()[0]):
        raise Refused("views the batch's elements as another dtype")
    return value


@rule("view view_copy _unsafe_view reshape _reshape_copy flatten unflatten ravel", sized=True, numbered=True)
def view(call):
    value = call.value("self")
    if "dtype" in call:
        return _unless_last(call) if not (isinstance(value, Rows) and value.kind is Kind.NUMBER) else _refuse_numbers()
    if isinstance(value, Constant):
        return call.created()
    return reshaped(call, value, call.shape("self"), call.result_shape())
