"""More cases of against_torch.py: operators with the arguments of torch.ops.aten."""
import torch

from against_torch import Failed, call, case

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
ops = torch.ops.aten


def name_of(dtype):
    return str(dtype).split(".")[1]


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype)


def randint(high, *shape, dtype=torch.int64):
    return torch.randint(0, high, shape, device="cuda").to(dtype)


def aten(name, *arguments):
    """Calls torch.ops.aten.NAME with arguments in the order of its schema; returns a list of results."""
    function = ops
    for part in name.split("."):
        function = getattr(function, part)
    if "." not in name:
        function = function.default
    places = list(zip(function._schema.arguments, arguments))
    result = function(*[value for place, value in places if not place.kwarg_only],
                      **{place.name: value for place, value in places if place.kwarg_only})
    return list(result) if isinstance(result, (tuple, list)) else [result]


def same(name, tag, *arguments, like=None, rtol=0.0, atol=0.0, first=None):
    """Compares `name` of the C ABI with torch.ops.aten.`like`; with `first`, only that many results."""
    def on_cpu(value):
        return [on_cpu(v) for v in value] if isinstance(value, list) else value.cpu() if torch.is_tensor(value) else value
    case(f"{name} {tag}", lambda: call(name, *arguments)[:first], lambda: aten(like or name, *arguments)[:first], rtol,
         atol, judge=lambda: aten(like or name, *on_cpu(list(arguments))))


def refused(name, tag, *arguments):
    """A call that must fail with this text."""
    def fails():
        try:
            call(name, *arguments)
        except Failed:
            return [True]
        return [False]
    case(f"{name} {tag} refused", fails, lambda: [True])


def loose(dtype, scale=1.0):
    return {torch.float64: 1e-10, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}.get(dtype, 0) * scale


def scan_cases():
    for dtype in FLOATS + [torch.int64, torch.int32, torch.uint8, torch.bool]:
        shapes = [((7, 33), 1), ((7, 33), 0), ((4, 1000), 1), ((1000, 4), 0), ((5000, 3), 0), ((1, 70000), 1),
                  ((3, 40000), -1), ((70001,), 0), ((3, 0, 4), 1), ((), 0), ((6, 5, 2000), 2), ((6, 2000, 5), 1),
                  ((20, 300, 40), 1)]
        for shape, dim in shapes:
            long = max(shape, default=1) > 5000
            x = (torch.rand(shape, device="cuda") - 0.5).to(dtype) if dtype.is_floating_point else randint(
                2 if dtype == torch.bool else 5, *shape, dtype=dtype)
            tag = f"{name_of(dtype)} {list(shape)} {dim}"
            r = loose(dtype) * (20 if long else 4)
            if not (long and dtype in (torch.float16, torch.bfloat16)):  # PyTorch sums those in half precision
                same("cumsum", tag, x, dim, None, rtol=r, atol=r * 5)
            if dtype != torch.bool and shape and max(shape) < 5000 and dtype not in (torch.float16, torch.bfloat16):
                y = (1 + x * 0.01).to(dtype) if dtype.is_floating_point else x
                same("cumprod", tag, y, dim, None, rtol=r, atol=r)
            for name in ("cummax", "cummin"):
                same(name, tag, x, dim)
            if dtype in (torch.float32, torch.float64):
                same("logcumsumexp", tag, x, dim, rtol=r, atol=r)
    x = randn(5, 300)
    x[1, 100], x[2, 0], x[3, 299] = torch.nan, torch.inf, -torch.inf
    for name in ("cumsum", "cummax", "cummin", "logcumsumexp"):
        arguments = (x, 1, None) if name == "cumsum" else (x, 1)
        same(name, "NaN and infinities", *arguments, rtol=1e-4, atol=1e-4)
    same("cumsum", "to float64", randn(3, 40), 1, torch.float64, rtol=1e-10, atol=1e-6)
    same("cumsum", "complex", torch.randn(3, 40, dtype=torch.complex64, device="cuda"), 1, None, rtol=1e-4, atol=1e-4)
    same("cumsum", "turned", randn(40, 30).t(), 1, None, rtol=1e-4, atol=1e-4)


def pooling_cases():
    for dtype in FLOATS:
        r = loose(dtype, 0.4)  # PyTorch sums gradients of maxima in half precision
        for last in (False, True):
            form = "channels last" if last else ""
            x = randn(2, 5, 17, 19, dtype=dtype)
            if last:
                x = x.to(memory_format=torch.channels_last)
            tag = f"{name_of(dtype)} {form}"
            for kernel, stride, padding, dilation, ceil in [([3, 3], [2, 2], [1, 1], [1, 1], False),
                                                            ([2, 3], [], [0, 1], [2, 1], True), ([5], [1], [2], [1], False)]:
                t = f"{tag} {kernel} {stride} {padding} {dilation} {ceil}"
                same("max_pool2d_with_indices", t, x, kernel, stride, padding, dilation, ceil)
                out, indices = ops.max_pool2d_with_indices(x, kernel, stride, padding, dilation, ceil)
                same("max_pool2d_with_indices_backward", t, torch.randn_like(out), x, kernel, stride, padding, dilation,
                     ceil, indices, rtol=r, atol=r)
                for include in (False, True):
                    for divisor in (None, 3):
                        same("avg_pool2d", f"{t} {include} {divisor}", x, kernel, stride, padding, ceil, include, divisor,
                             rtol=r, atol=r)
                grad = torch.randn_like(ops.avg_pool2d(x, kernel, stride, padding, ceil, False, None))
                # PyTorch's kernel for channels-last disagrees with its other kernels.
                case(f"avg_pool2d_backward {t}",
                     lambda: call("avg_pool2d_backward", grad, x, kernel, stride, padding, ceil, False, None),
                     lambda: [torch.empty_like(x).copy_(aten("avg_pool2d_backward", grad.contiguous(), x.contiguous(),
                                                             kernel, stride, padding, ceil, False, None)[0])], r, r)
            for size in ([5, 7], [1, 1], [17, 19], [30, 3]):
                same("_adaptive_avg_pool2d", f"{tag} {size}", x, size, rtol=r, atol=r)
                same("_adaptive_avg_pool2d_backward", f"{tag} {size}", randn(2, 5, *size, dtype=dtype), x, rtol=r, atol=r)
                same("adaptive_max_pool2d", f"{tag} {size}", x, size)
                out, indices = ops.adaptive_max_pool2d(x, size)
                same("adaptive_max_pool2d_backward", f"{tag} {size}", torch.randn_like(out), x, indices, rtol=4 * r, atol=4 * r)
        x = randn(2, 3, 7, 8, 9, dtype=dtype)
        tag = name_of(dtype)
        same("max_pool3d_with_indices", tag, x, [2, 3, 2], [2, 1, 2], [1, 1, 0], [1, 2, 1], True)
        out, indices = ops.max_pool3d_with_indices(x, [2, 3, 2], [2, 1, 2], [1, 1, 0], [1, 2, 1], True)
        same("max_pool3d_with_indices_backward", tag, torch.randn_like(out), x, [2, 3, 2], [2, 1, 2], [1, 1, 0],
             [1, 2, 1], True, indices, rtol=4 * r, atol=4 * r)
        same("avg_pool3d", tag, x, [2, 3, 2], [2, 1, 2], [1, 1, 0], False, True, None, rtol=r, atol=r)
        grad = torch.randn_like(ops.avg_pool3d(x, [2, 3, 2], [2, 1, 2], [1, 1, 0], False, True, None))
        same("avg_pool3d_backward", tag, grad, x, [2, 3, 2], [2, 1, 2], [1, 1, 0], False, True, None, rtol=r, atol=r)
        same("_adaptive_avg_pool3d", tag, x, [3, 4, 5], rtol=r, atol=r)
        same("_adaptive_avg_pool3d_backward", tag, randn(2, 3, 3, 4, 5, dtype=dtype), x, rtol=r, atol=r)
        same("adaptive_max_pool3d", tag, x, [3, 4, 5])
        out, indices = ops.adaptive_max_pool3d(x, [3, 4, 5])
        same("adaptive_max_pool3d_backward", tag, torch.randn_like(out), x, indices, rtol=4 * r, atol=4 * r)
        image = randn(4, 12, 12, dtype=dtype)
        out, indices = ops.max_pool2d_with_indices(image, [2, 2], [2, 2], [0, 0], [1, 1], False)
        same("max_pool2d_with_indices", tag + " one image", image, [2, 2], [2, 2], [0, 0], [1, 1], False)
        same("max_unpool2d", tag, out, indices, [12, 12])


def convolution_gradient_cases():
    for dtype in FLOATS:
        r = {torch.float64: 1e-9, torch.float32: 5e-3}.get(dtype, 5e-2)
        for shape, weight, stride, padding, dilation, transposed, groups in [
                ((2, 8, 17, 19), (12, 8, 3, 3), 1, 1, 1, False, 1), ((2, 8, 17, 19), (16, 4, 3, 3), 2, 1, 1, False, 2),
                ((2, 8, 16, 16), (8, 1, 5, 5), 1, 2, 1, False, 8), ((2, 6, 9, 9), (6, 4, 3, 3), 2, 1, 1, True, 1),
                ((1, 3, 32), (5, 3, 4), 1, 1, 2, False, 1), ((1, 4, 6, 7, 8), (6, 4, 3, 3, 3), 1, 1, 1, False, 1)]:
            x, w = randn(*shape, dtype=dtype), randn(*weight, dtype=dtype)
            n = len(shape) - 2
            for last in (False, True):
                if last and n != 2:
                    continue
                xx = x.to(memory_format=torch.channels_last) if last else x
                out = torch.convolution(xx, w, None, [stride] * n, [padding] * n, [dilation] * n, transposed, [0] * n,
                                        groups)
                grad = torch.randn_like(out)
                channels = out.shape[1]
                arguments = (grad, xx, w, [channels], [stride] * n, [padding] * n, [dilation] * n, transposed, [0] * n,
                             groups, [True, True, True])
                size = float(max(g.abs().max() for g in ops.convolution_backward(*arguments)))
                same("convolution_backward", f"{name_of(dtype)} {shape} {weight} {transposed} {last}", *arguments,
                     rtol=r, atol=r * size)


def attention_gradient_cases():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    for dtype, r in [(torch.float16, 1e-2), (torch.bfloat16, 6e-2), (torch.float32, 1e-3)]:
        for b, h, tq, tk, d, causal in [(1, 1, 16, 16, 32, False), (2, 4, 33, 33, 64, True), (2, 4, 40, 72, 64, False),
                                        (3, 8, 128, 128, 128, True)]:
            for by_token in (False, True):
                q, k, v = (randn(b, n, h, d, dtype=dtype).transpose(1, 2) if by_token else randn(b, h, n, d, dtype=dtype)
                           for n in (tq, tk, tk))
                grad = torch.randn_like(q)
                tag = f"{name_of(dtype)} {b}x{h}x{tq}x{tk}x{d} {causal} {by_token}"

                def expected(backend, mask=None):
                    leaves = [t.detach().requires_grad_() for t in (q, k, v)]
                    with sdpa_kernel(backend), torch.enable_grad():
                        out = torch.nn.functional.scaled_dot_product_attention(*leaves, attn_mask=mask,
                                                                               is_causal=causal and mask is None)
                    return torch.autograd.grad(out, leaves, grad)
                if dtype != torch.float32:
                    name = "_scaled_dot_product_flash_attention"
                    out, sums = getattr(ops, name)(q, k, v, 0.0, causal, False)[:2]
                    case(f"{name}_backward {tag}",
                         lambda: call(f"{name}_backward", grad, q, k, v, out, sums, None, None, tq, tk, 0.0, causal,
                                      torch.empty(0, device="cuda"), torch.empty(0, device="cuda"), None),
                         lambda: expected(SDPBackend.FLASH_ATTENTION), r, r, strides=False)
                name = "_scaled_dot_product_efficient_attention"
                mask = None if causal else randn(b, h, tq, (tk + 15) // 16 * 16, dtype=dtype)[..., :tk]
                out, sums = getattr(ops, name)(q, k, v, mask, True, 0.0, causal)[:2]
                empty = torch.empty(0, device="cuda")
                case(f"{name}_backward {tag}",
                     lambda: call(f"{name}_backward", grad, q, k, v, mask, out, sums, empty, empty, 0.0,
                                  [True, True, True, mask is not None], causal, None)[:3],
                     lambda: expected(SDPBackend.EFFICIENT_ATTENTION, mask), r, r, strides=False)


def search_cases():
    for dtype in FLOATS + [torch.int64, torch.int32]:
        x = randn(6, 40, dtype=dtype) if dtype.is_floating_point else randint(20, 6, 40, dtype=dtype)
        tag = name_of(dtype)
        rows, values = x.sort(-1)[0], x.flip(1)[:, :9].contiguous()
        for right in (False, True):
            same("searchsorted_Tensor", f"{tag} {right}", rows, values, not right, right, None, None,
                 like="searchsorted.Tensor")
            same("searchsorted_Tensor", f"{tag} one row {right}", rows[0], values, right, right, None, None,
                 like="searchsorted.Tensor")
            same("bucketize_Tensor", f"{tag} {right}", values, rows[1].contiguous(), right, right, like="bucketize.Tensor")
        same("searchsorted_Tensor", f"{tag} sorter", x, values, False, False, "right", x.argsort(-1),
             like="searchsorted.Tensor")
        same("searchsorted_Scalar", tag, rows[2].contiguous(), 1.0, False, False, None, None, like="searchsorted.Scalar")
        for dim in (0, 1):
            same("kthvalue", f"{tag} {dim}", x, 3, dim, False, first=1)
            same("kthvalue", f"{tag} {dim} kept", x, 1, dim, True, first=1)
            # If several are equally frequent, PyTorch returns any of them.
            y = x.round() + 0 if dtype.is_floating_point else x

            def counts(values):
                return [(y == values.unsqueeze(dim)).sum(dim)]
            case(f"mode {tag} {dim}", lambda: counts(call("mode", y, dim, False)[0]),
                 lambda: counts(ops.mode(y, dim, False)[0]))
        same("median", tag, x)
        same("nanmedian", tag, x)
        index, source = randint(6, 9), (randn(9, 40, dtype=dtype) if dtype.is_floating_point
                                        else randint(4, 9, 40, dtype=dtype))
        for reduce in ("amax", "amin", "prod", "mean"):
            if reduce == "mean" and not dtype.is_floating_point:
                continue
            for include in (False, True):
                same("index_reduce", f"{tag} {reduce} {include}", x, 0, index, source, reduce, include,
                     rtol=loose(dtype), atol=loose(dtype))
        mask = torch.rand(6, 40, device="cuda") > 0.4
        same("masked_scatter", tag, x, mask, x.flip(0).contiguous())
        same("masked_scatter", f"{tag} one row", x, mask[0], x)
        same("masked_scatter_backward", tag, x, mask, [6, 41])
        same("nonzero_static", f"{tag} few", x, 5, -1)
        same("nonzero_static", f"{tag} many", x, 500, 7)
        if dtype in (torch.float32, torch.float64, torch.int64):
            same("histc", tag, x, 10, 0, 0)
            same("histc", f"{tag} range", x, 7, -1, 2)
    x = randn(301)
    x[17] = torch.nan
    same("median", "with a NaN", x)
    same("nanmedian", "with a NaN", x)
    for dtype in (torch.int64, torch.int32):
        repeats = randint(5, 100, dtype=dtype)
        same("repeat_interleave_Tensor", name_of(dtype), repeats, None, like="repeat_interleave.Tensor")
        same("repeat_interleave_Tensor", f"{name_of(dtype)} known", repeats, int(repeats.sum()),
             like="repeat_interleave.Tensor")


def embedding_cases():
    for dtype in FLOATS:
        table, r = randn(50, 24, dtype=dtype), loose(dtype)
        indices = randint(50, 60)
        offsets = torch.tensor([0, 4, 4, 9, 30, 30], device="cuda")
        scales = randn(60, dtype=dtype)
        for mode in (0, 1, 2):
            for padding in (-1, 3):
                for last in (False, True):
                    for weights in (None, scales):
                        if weights is not None and mode != 0:
                            continue
                        tag = f"{name_of(dtype)} mode {mode} padding {padding} last {last} {weights is not None}"
                        arguments = (table, indices, offsets, False, mode, False, weights, last, padding)
                        same("_embedding_bag", tag, *arguments, rtol=r, atol=r, first=2)
                        same("_embedding_bag_forward_only", tag, *arguments, rtol=r, atol=r, first=1)
                        if last:
                            continue
                        out, bags, sizes, most = ops._embedding_bag(*arguments)
                        grad = torch.randn_like(out)
                        for by_frequency in (False, True):
                            if mode == 2 and (by_frequency or dtype == torch.bfloat16):
                                continue  # PyTorch has no such operator
                            same("_embedding_bag_dense_backward", f"{tag} {by_frequency}", grad, indices, bags, sizes,
                                 most, 50, by_frequency, mode, weights, padding, rtol=r, atol=r)
        if dtype == torch.bfloat16:
            continue
        out, bags = ops._embedding_bag(table, indices, offsets, False, 0, False, scales, False, 3)[:2]
        same("_embedding_bag_per_sample_weights_backward", name_of(dtype), torch.randn_like(out), table, indices, offsets,
             bags, 0, 3, rtol=r, atol=r * 10)


def elementwise_cases():
    dtypes = FLOATS + [torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64, torch.complex128]

    def some(dtype, *shape):
        if dtype.is_complex:
            return torch.randn(*shape, dtype=dtype, device="cuda")
        return randn(*shape, dtype=dtype) if dtype.is_floating_point else randint(2 if dtype == torch.bool else 9, *shape,
                                                                                  dtype=dtype)
    for dtype in dtypes:
        r = 1e-5 if dtype.is_complex else loose(dtype)
        x, y = some(dtype, 5, 7), some(dtype, 5, 7)
        tag = name_of(dtype)
        for label, a, b in [("", x, y), ("turned", x.t(), y.t()), ("mixed", x, some(dtype, 7, 5).t()),
                            ("broadcast", x, y[0]), ("a number", x, y[0, 0])]:
            # The C ABI's alpha is floating, which integer tensors refuse.
            if dtype.is_floating_point or dtype.is_complex:
                same("add_Tensor", f"{tag} {label}", a, b, 1, like="add.Tensor", rtol=r, atol=r)
            else:
                refused("add_Tensor", f"{tag} {label}", a, b, 1)
            same("mul_Tensor", f"{tag} {label}", a, b, like="mul.Tensor", rtol=r, atol=r)
        if dtype != torch.bool:
            same("abs", tag, -x if dtype != torch.uint8 else x, rtol=r, atol=r)
        same("angle", tag, x, rtol=r, atol=r)
        same("cat", tag, [x, y, x[:, :2]], 1)
        if dtype.is_floating_point or dtype.is_complex:
            same("mul_Scalar", tag, x, 1.5, like="mul.Scalar", rtol=r, atol=r)
            same("add_Scalar", tag, x, 1.5, 2.0, like="add.Scalar", rtol=r, atol=r)
            same("pow_Tensor_Scalar", tag, x, 3.0, like="pow.Tensor_Scalar", rtol=r * 10, atol=r * 10)
            same("pow_Tensor_Tensor", tag, x.abs() + 0.1, y if dtype.is_floating_point else y.abs(),
                 like="pow.Tensor_Tensor", rtol=r * 10, atol=r * 10)
        elif dtype in (torch.int64, torch.int32):
            same("pow_Tensor_Tensor", tag, x, y, like="pow.Tensor_Tensor")
    same("add_Tensor", "two dtypes", randn(3, 4), randint(9, 3, 4), 2, like="add.Tensor")
    same("mul_Tensor", "real by complex", randn(3, 4), torch.randn(4, dtype=torch.complex64, device="cuda"),
         like="mul.Tensor", rtol=1e-5, atol=1e-5)
    for dtype in (torch.float32, torch.float64):
        same("polar", name_of(dtype), randn(4, 5, dtype=dtype), randn(4, 5, dtype=dtype), rtol=1e-5, atol=1e-5)
        for p in (0.0, 1.0, 2.0, 3.5, float("inf")):
            same("_cdist_forward", f"{name_of(dtype)} {p}", randn(2, 9, 6, dtype=dtype), randn(11, 6, dtype=dtype)[None], p,
                 2, rtol=1e-4, atol=1e-4)
    last = randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    same("cat", "channels last", [last, last], 1)
    same("cat", "two dtypes", [randn(3), randint(5, 4), torch.empty(0, device="cuda")], 0)


def run():
    for cases in (scan_cases, pooling_cases, convolution_gradient_cases, attention_gradient_cases,
                  search_cases, embedding_cases, elementwise_cases):
        torch.manual_seed(0)
        cases()
