"""Convolutions, pooling, resizing and sampling: they join elements within the last dimensions."""
from sconce._rows import sizes
from sconce._rows.registry import rule
from sconce._rows.values import CONSTANT, Constant, Refused, Rows


def spatial(names, last):
    """Operators that join no more than the last dimensions of their first tensor; all others are constants."""
    @rule(names)
    def apply(call):
        first, *rest = call.tensors()
        value = call.value_of(first)
        if any(not isinstance(call.value_of(one), Constant) for one in rest):
            raise Refused("takes a second tensor from the batch")
        if isinstance(value, Rows) and value.dim >= len(call.shape_of(first)) - last:
            raise Refused("joins neighbours among the rows")
        return call.each(value)


spatial("avg_pool1d max_pool1d max_pool1d_with_indices adaptive_avg_pool1d adaptive_max_pool1d upsample_nearest1d "
        "_upsample_nearest_exact1d upsample_linear1d lp_pool1d", 1)
spatial("avg_pool2d max_pool2d max_pool2d_with_indices adaptive_avg_pool2d _adaptive_avg_pool2d adaptive_max_pool2d "
        "upsample_nearest2d _upsample_nearest_exact2d upsample_bilinear2d upsample_bicubic2d _upsample_bilinear2d_aa "
        "_upsample_bicubic2d_aa _upsample_lanczos2d_aa mkldnn_max_pool2d", 2)
spatial("avg_pool3d max_pool3d max_pool3d_with_indices adaptive_avg_pool3d _adaptive_avg_pool3d adaptive_max_pool3d "
        "upsample_nearest3d _upsample_nearest_exact3d upsample_trilinear3d im2col", 3)
spatial("col2im", 2)

# Gradients by the shape of the input; each element goes into elements of its own row.
spatial("upsample_bicubic2d_backward upsample_bilinear2d_backward upsample_nearest2d_backward", 2)
spatial("upsample_linear1d_backward upsample_nearest1d_backward", 1)
spatial("upsample_trilinear3d_backward upsample_nearest3d_backward", 3)


def by_row(names, last):
    """Operators on several tensors of the same rows, of which they join no more than the last dimensions."""
    @rule(names)
    def apply(call):
        tensors = call.tensors()
        values = {call.value_of(one) for one in tensors}
        rows = [value for value in values if isinstance(value, Rows)]
        if len({one.place() for one in rows}) > 1 or len(rows) != len(values):
            raise Refused("joins each row with other rows")
        if rows and rows[0].dim >= min(len(call.shape_of(one)) for one in tensors) - last:
            raise Refused("joins neighbours among the rows")
        return call.each(rows[0].data() if rows else CONSTANT)


by_row("_adaptive_avg_pool2d_backward adaptive_max_pool2d_backward avg_pool2d_backward max_pool2d_with_indices_backward "
       "replication_pad2d_backward reflection_pad2d_backward max_unpool2d", 2)
by_row("_adaptive_avg_pool3d_backward adaptive_max_pool3d_backward avg_pool3d_backward max_pool3d_with_indices_backward "
       "replication_pad3d_backward reflection_pad3d_backward max_unpool3d grid_sampler_3d", 3)
by_row("replication_pad1d_backward reflection_pad1d_backward", 1)


@rule("grid_sampler grid_sampler_2d _grid_sampler_2d_cpu_fallback cudnn_grid_sampler")
def grid_sampler(call):
    """A picture and the places to look at, of each row."""
    values = [call.value_of(one) for one in call.tensors()]
    if not all(isinstance(one, Rows) and one.dim == 0 and one.place() == values[0].place() for one in values):
        raise Refused("joins each row with other rows")
    return values[0].data()


@rule("affine_grid_generator", sized=True)
def affine_grid(call):
    value = call.value("theta")
    if isinstance(value, Rows) and value.dim:
        raise Refused("joins neighbours among the rows")
    if not isinstance(value, Rows) or not sizes.equal(sizes.expression(call.numbers_in("size")[0]), call.shape("theta")[0]):
        raise Refused("makes more grids than it has rows")
    if any(call.sizes.has_batch(sizes.expression(one)) for one in call.numbers_in("size")[1:]):
        raise Refused("computes with the batch's size")
    return value.data()


@rule("convolution _convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d cudnn_convolution "
      "mkldnn_convolution", sized=True)
def convolution(call):
    call.without_batch(*[name for name in ("stride", "padding", "dilation", "output_padding") if name in call])
    source = "input" if "input" in call else "self"
    value, weight = call.value(source), call.value("weight")
    if call.rank(source) != call.rank("weight"):
        raise Refused("takes a picture without a batch")
    groups = sizes.expression(call.number("groups"))
    if isinstance(weight, Constant) and isinstance(value, Rows) and not call.sizes.has_batch(groups):
        if call.is_tensor(call.arguments.get("bias")):
            call.constant("bias")
        if value.dim != 0:
            raise Refused("joins neighbours among the rows")
        return value.data()
    # A group for each row, with weights of its own.
    each = call.sizes.of_batch(groups)
    if each is None or not isinstance(value, Rows) or not isinstance(weight, Rows) or value.dim != 1 or weight.dim != 0 or \
            (value.outer, weight.outer) != (1, 1) or call.sizes.quotient(sizes.expression(value.inner), each) is None or \
            call.sizes.quotient(sizes.expression(weight.inner), each) is None:
        raise Refused("its weights depend on the batch")
    channels = call.sizes.of_batch(call.result_shape()[1])
    bias = call.value("bias")
    if channels is None or (call.is_tensor(call.arguments.get("bias")) and bias != Rows(0, 1, channels, bias.kind)):
        raise Refused("its bias is not the groups'")
    return Rows(1, 1, channels)


@rule("torchvision.deform_conv2d")
def deformed(call):
    """A picture, offsets and a mask of each row."""
    call.constant("weight", "bias")
    values = [call.value(name) for name in ("input", "offset", "mask")]
    if not all(isinstance(one, Rows) and one.dim == 0 and one.place() == values[0].place() for one in values):
        raise Refused("joins each row with other rows")
    return values[0].data()
