"""Convolutions and their gradients on a device: cuDNN's plans, by shape, layout, alignment and dtype (convolution.cpp).

Planning a shape takes tens of milliseconds, so draws share a list of shapes, with other batches, layouts, offsets and
numbers. Both sides use TF32, PyTorch's default."""
import torch

import abi
import case

DEVICES = ("cuda",)
aten = torch.ops.aten
# input channels, output channels, sizes, kernel, stride, padding, dilation, transposed, output padding, groups
FORMS = (
    (8, 12, (17, 19), (3, 3), 1, 1, 1, False, 0, 1), (8, 16, (17, 19), (3, 3), 2, 1, 1, False, 0, 2), (3, 16, (32, 32), (3, 3), 2, 1, 1, False, 0, 1),
    (16, 16, (14, 14), (5, 5), 1, 2, 1, False, 0, 16), (16, 32, (14, 14), (3, 3), 1, 1, 1, False, 0, 16), (12, 7, (9, 11), (1, 1), 1, 0, 1, False, 0, 1),
    (5, 3, (11, 13), (2, 3), 1, 0, 2, False, 0, 1), (6, 4, (9, 9), (3, 3), 2, 1, 1, True, 1, 1), (8, 8, (7, 7), (4, 4), 2, 1, 1, True, 0, 1),
    (8, 8, (6, 8), (3, 3), 1, 1, 1, True, 0, 4), (3, 5, (32,), (4,), 1, 1, 2, False, 0, 1), (4, 8, (50,), (5,), 3, 2, 1, False, 0, 2), (6, 6, (33,), (3,), 1, 1, 1, False, 0, 6),
    (4, 6, (20,), (4,), 2, 1, 1, True, 0, 1), (4, 6, (6, 7, 8), (3, 3, 3), 1, 1, 1, False, 0, 1), (4, 4, (6, 6, 6), (2, 2, 2), 2, 0, 1, False, 0, 4), (4, 4, (4, 5, 5), (3, 3, 3), 2, 1, 1, True, 1, 2),
    (32, 64, (16, 16), (3, 3), 1, 1, 1, False, 0, 1), (64, 64, (8, 8), (1, 1), 1, 0, 1, False, 0, 1), (24, 24, (15, 15), (7, 7), 1, 3, 1, False, 0, 24))


def place(d, t):
    if t.dim() in (4, 5) and d.chance(0.4):
        return t.to(d.device).contiguous(memory_format=torch.channels_last if t.dim() == 4 else torch.channels_last_3d)
    return d.laid_out(t, ("packed", "packed", "offset", "permuted", "padded"))


def draw(d):
    form = d.randrange(len(FORMS))
    cin, cout, sizes, kernel, stride, padding, dilation, transposed, output_padding, groups = FORMS[form]
    dims = len(sizes)
    dtype = d.choice((torch.float32, torch.float32, torch.float16, torch.bfloat16, torch.float64))
    batch = d.choice((1, 2, 2, 5)) if dtype != torch.float64 else 2
    x = place(d, d.values(dtype, (batch, cin, *sizes)))
    w = place(d, d.values(dtype, (cin, cout // groups, *kernel) if transposed else (cout, cin // groups, *kernel)))
    bias = d.tensor(dtype, (cout,), "normal", ("packed", "sliced")) if d.chance(0.5) else None
    rest = [[stride] * dims, [padding] * dims, [dilation] * dims, transposed, [output_padding] * dims, groups]
    label = f"{dtype} {list(x.shape)} {x.stride()} {list(w.shape)} {w.stride()} {rest} bias {bias is not None}"
    terms = torch.Size(kernel).numel() * (cout if transposed else cin) // groups
    # TF32 keeps 10 bits of each factor; Winograd's sums lose some more in half types.
    loss = 2.0 ** 12 * 2 if dtype == torch.float32 else 2.0 ** 6 if dtype == torch.float16 else 2.0 ** 8 if dtype == torch.bfloat16 else 8
    if d.chance(0.55):
        return case.shim(label, "convolution", x, w, bias, *rest, torch=lambda *v: aten.convolution(*v), error=loss + terms ** 0.5,
                         magnitude=lambda x, w, b, *r: aten.convolution(x.abs(), w.abs(), None if b is None else b.abs(), *r))
    grad = place(d, d.values(dtype, aten.convolution(x, w, None, *rest).shape))
    mask = d.choice(([True, True, True], [True, False, False], [False, True, False], [False, False, True], [True, True, False]))
    sums = max(terms, batch * torch.Size(grad.shape[2:]).numel())

    def function(g, x, w, *_):
        return [t for t, wanted in zip(aten.convolution_backward(g, x, w, [cout], *rest, mask), mask) if wanted]

    return case.Case(f"convolution_backward {label} {grad.stride()} {mask}",
                     lambda g, x, w: [t for t, wanted in zip(abi.call("convolution_backward", g, x, w, [cout], *rest, mask), mask) if wanted],
                     function, [grad, x, w],
                     error=loss * 2 + sums ** 0.5, strides=False, magnitude=lambda g, x, w: function(g.abs(), x.abs(), w.abs()))
