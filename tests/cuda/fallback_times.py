"""Rows of operator_times.py: operators that packages call on CUDA, except attention, scans and max pooling.

One or two shapes each, of sizes that models have: 10 to 1,000 microseconds.
"""
import torch

from operator_times import ops, randn, row, same

half, brain, single = torch.float16, torch.bfloat16, torch.float32


def randint(high, *shape, dtype=torch.int64):
    return torch.randint(0, high, shape, device="cuda", dtype=dtype)


def uniform(*shape):
    return torch.rand(*shape, device="cuda")


def into(label, name, out, *arguments, expect):
    row(f"{name} {label}", name, (out, *arguments), expect)


def named(label, name, *arguments, overload="", **options):
    function = getattr(getattr(ops, name), overload or "default")
    row(f"aten::{name} {label}", (name, overload), arguments, lambda: function(*arguments, **options), options=options)


def indexing():
    table, rows = randn(50000, 1024, dtype=half), randint(50000, 8192)
    same("8192 rows of 1024 half", "index_Tensor", table, [rows], like="index.Tensor")
    x, at = randn(4096, 4096), randint(4096, 1 << 20)
    same("2^20 elements", "index_Tensor", x, [at, at.flip(0)], like="index.Tensor")
    same("columns 4096x512", "index_Tensor", x, [None, at[:512]], like="index.Tensor")
    same("mask 4096x4096", "index_Tensor", x, [x > 1], like="index.Tensor")
    values = randn(8192, 768)
    zero = torch.zeros(50000, 768, device="cuda")
    same("8192 rows of 768", "index_put", zero, [rows], values, False)
    same("8192 rows of 768, sums", "index_put", zero, [rows], values, True)
    same("2^20 elements, sums", "index_put", x, [at, at.flip(0)], randn(1 << 20), True)
    index, out = randint(4096, 4096, 4096), torch.empty_like(x)
    into("4096x4096", "scatter_src_out", out, x, 1, index, x, expect=lambda: torch.scatter(x, 1, index, x, out=out))
    into("4096x4096", "scatter_value_out", out, x, 1, index, 1.0,
         expect=lambda: torch.scatter(x, 1, index, 1.0, out=out))
    nodes, edges = randn(20000, 128), randn(200000, 128)
    to, sums = randint(20000, 200000, 1).expand(-1, 128), torch.empty_like(nodes)
    for reduce in ("sum", "amax", "mean", "prod"):
        into(f"200000x128 {reduce}", "scatter_reduce_two_out", sums, nodes, 0, to, edges, reduce, True,
             expect=lambda: torch.scatter_reduce(nodes, 0, to, edges, reduce, out=sums))
    halves = torch.empty_like(nodes, dtype=half)
    into("200000x128 sum half", "scatter_reduce_two_out", halves, nodes.half(), 0, to, edges.half(), "sum", True,
         expect=lambda: torch.scatter_reduce(nodes.half(), 0, to, edges.half(), "sum", out=halves))
    same("20000 rows of 128 prod", "index_reduce", nodes, 0, to[:20000, 0].contiguous(), edges[:20000], "prod", True)
    same("20000 rows of 128 amax", "index_reduce", nodes, 0, to[:20000, 0].contiguous(), edges[:20000], "amax", True)


def selection():
    x = randn(4096, 4096)
    mask = x > 1
    same("4096x4096", "masked_select", x, mask)
    same("4096x4096", "masked_scatter", x, mask, x)
    same("4096x4096", "masked_scatter_backward", x, mask, [4096 * 4096])
    same("4096x4096", "nonzero_static", mask, 1 << 20, -1)
    rows, values = randn(64, 10000).sort(-1)[0], randn(64, 20000)
    same("64 rows of 10000, 20000 each", "searchsorted_Tensor", rows, values, False, False, None, None,
         like="searchsorted.Tensor")
    same("4096x4096 in 100", "bucketize_Tensor", x, rows[0, :100].contiguous(), False, False, like="bucketize.Tensor")
    same("100000", "repeat_interleave_Tensor", randint(20, 100000), None, like="repeat_interleave.Tensor")
    same("2^24, 100 bins", "histc", x, 100, -3, 3)
    same("2^24, 100 bins of its range", "histc", x, 100, 0, 0)
    same("64x50000", "kthvalue", randn(64, 50000), 300, 1, False)
    same("2^20", "median", randn(1 << 20))
    same("2^20", "nanmedian", randn(1 << 20))
    same("64x5000", "mode", randint(100, 64, 5000), 1, False)
    same("512x64 half", "sort", randn(512, 64, dtype=half), 1, True)
    row("topk 256x1000", "topk", (randn(256, 1000), 8, -1, True, True), lambda: torch.topk(x[:256, :1000], 8))
    for name in ("cumprod", "logcumsumexp"):
        same("4096x4096", name, x, 1, *([None] if name == "cumprod" else []))


def embeddings():
    table, indices = randn(100000, 128), randint(100000, 65536)
    offsets = torch.arange(0, 65536, 32, device="cuda")
    for mode, name in ((0, "sum"), (1, "mean"), (2, "max")):
        arguments = (table, indices, offsets, False, mode, False, None, False, -1)
        same(f"2048 bags of 32 rows of 128 {name}", "_embedding_bag_forward_only", *arguments)
        out, bags, sizes, most = ops._embedding_bag(*arguments)
        same(f"2048 bags of 32 rows of 128 {name}", "_embedding_bag_dense_backward", out, indices, bags, sizes, most,
             100000, False, mode, None, -1)
    scales = randn(65536)
    out, bags = ops._embedding_bag(table, indices, offsets, False, 0, False, scales, False, -1)[:2]
    same("2048 bags of 32 rows of 128", "_embedding_bag_per_sample_weights_backward", out, table, indices, offsets,
         bags, 0, -1)


def resampling():
    x, grid = randn(8, 64, 64, 64), uniform(8, 64, 64, 2) * 2 - 1
    same("8x64x64x64", "grid_sampler_2d_backward", x, x, grid, 0, 0, False, [True, True])
    deep, places = randn(2, 16, 32, 32, 32), uniform(2, 32, 32, 32, 3) * 2 - 1
    same("2x16x32x32x32", "grid_sampler_3d", deep, places, 0, 0, False)
    same("2x16x32x32x32", "grid_sampler_3d_backward", deep, deep, places, 0, 0, False, [True, True])
    same("8x32 of 128x128 from 64x64", "upsample_bicubic2d_backward", randn(8, 32, 128, 128), [128, 128], [8, 32, 64, 64],
         False, None, None)
    same("32x64 of 8192 from 4096", "upsample_linear1d_backward", randn(32, 64, 8192), [8192], [32, 64, 4096], False, None)
    same("2x16 of 64^3 from 32^3", "upsample_trilinear3d_backward", randn(2, 16, 64, 64, 64), [64, 64, 64],
         [2, 16, 32, 32, 32], False, None, None, None)
    same("32x64x114x114 half", "replication_pad2d_backward", randn(32, 64, 114, 114, dtype=half),
         randn(32, 64, 112, 112, dtype=half), [1, 1, 1, 1])
    same("32x64x4100", "replication_pad1d_backward", randn(32, 64, 4100), randn(32, 64, 4096), [2, 2])


def more_pooling():
    x = randn(32, 64, 112, 112, dtype=half)
    pooled = randn(32, 64, 56, 56, dtype=half)
    for form in ("", "channels last"):
        if form:
            x, pooled = (t.to(memory_format=torch.channels_last) for t in (x, pooled))
        tag = f"{list(x.shape)} {form}"
        same(f"{tag} 2x2", "max_pool2d_with_indices", x, [2, 2], [2, 2], [0, 0], [1, 1], False)
        same(f"{tag} 5x5", "max_pool2d_with_indices", x, [5, 5], [1, 1], [2, 2], [1, 1], False)
        same(f"{tag}", "avg_pool2d_backward", pooled, x, [3, 3], [2, 2], [1, 1], False, True, None)
        same(f"{tag} 7x7", "_adaptive_avg_pool2d_backward", pooled[:, :, :7, :7].contiguous(), x)
        same(f"{tag} 7x7", "adaptive_max_pool2d", x, [7, 7])
        out, indices = ops.adaptive_max_pool2d(x, [7, 7])
        same(f"{tag} 7x7", "adaptive_max_pool2d_backward", out, x, indices)
    deep = randn(4, 32, 16, 56, 56, dtype=half)
    tag = str(list(deep.shape))
    same(tag, "max_pool3d_with_indices", deep, [3, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1], False)
    out, indices = ops.max_pool3d_with_indices(deep, [3, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1], False)
    same(tag, "max_pool3d_with_indices_backward", out, deep, [3, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1], False, indices)
    same(tag, "avg_pool3d", deep, [3, 3, 3], [2, 2, 2], [1, 1, 1], False, True, None)
    same(tag, "avg_pool3d_backward", out, deep, [3, 3, 3], [2, 2, 2], [1, 1, 1], False, True, None)
    out, indices = ops.max_pool2d_with_indices(x.contiguous(), [2, 2], [2, 2], [0, 0], [1, 1], False)
    same("[32, 64, 56, 56]", "max_unpool2d", out, indices, [112, 112])
    samples = uniform(32, 64, 2).half()
    same("[32, 64, 112, 112]", "fractional_max_pool2d", x.contiguous(), [2, 2], [70, 70], samples)


def random():
    shape = [4096, 4096]
    like = torch.empty(shape, device="cuda")
    for dtype in (single, half):
        tag = f"2^24 {str(dtype)[6:]}"
        row(f"rand {tag}", "rand", (shape, dtype, None, None, None), lambda: torch.rand(shape, dtype=dtype, device="cuda"))
        row(f"randn {tag}", "randn", (shape, dtype, None, None, None),
            lambda: torch.randn(shape, dtype=dtype, device="cuda"))
        x = randn(*shape, dtype=dtype)
        same(tag, "native_dropout", x, 0.1, True)
    row("randint 2^24", "randint", (100, shape, torch.int64, None, None, None),
        lambda: torch.randint(100, shape, device="cuda"))
    row("randperm 10^6", "randperm", (1000000, None, None, None, None), lambda: torch.randperm(1000000, device="cuda"))
    row("exponential 2^24", "exponential", (like, 1.0, None), lambda: like.clone().exponential_(1.0))
    into("2^24", "bernoulli__float", like, 0.3, None, expect=lambda: like.bernoulli_(0.3))
    p = uniform(4096, 4096)
    into("2^24", "bernoulli__Tensor", like, p, None, expect=lambda: like.bernoulli_(p))


def elementwise():
    for dtype in (single, brain):
        x, y = randn(4096, 4096, dtype=dtype), randn(4096, 4096, dtype=dtype)
        tag = f"4096x4096 {str(dtype)[6:]}"
        same(tag, "add_Tensor", x, y, 1, like="add.Tensor")
        same(f"{tag} turned", "add_Tensor", x, y.t(), 1, like="add.Tensor")
        same(f"{tag} by rows", "mul_Tensor", x, y[:1], like="mul.Tensor")
        same(f"{tag} by columns", "mul_Tensor", x, y[:, :1], like="mul.Tensor")
        same(tag, "mul_Scalar", x, 1.5, like="mul.Scalar")
        same(tag, "pow_Tensor_Scalar", x, 2.0, like="pow.Tensor_Scalar")
        same(tag, "abs", x)
    x = randn(4096, 4096)
    same("4096x4096", "pow_Tensor_Tensor", x.abs(), x, like="pow.Tensor_Tensor")
    same("4096x4096", "polar", x.abs(), x)
    same("4096x4096", "soft_margin_loss_backward", x, x, x.sign(), 0)
    z = torch.randn(2048, 4096, device="cuda", dtype=torch.complex64)
    same("2048x4096 complex", "mul_Tensor", z, z, like="mul.Tensor")
    same("2048x4096 complex", "angle", z)
    row("fill__Scalar 2^24", "fill__Scalar", (x, 1.0), lambda: x.fill_(1.0))


def parts():
    for dtype in (single, half):
        pieces = [randn(4096, 1024, dtype=dtype) for _ in range(4)]
        tag = str(dtype)[6:]
        for dim in (0, 1):
            same(f"4 of 4096x1024 {tag} {dim}", "cat", pieces, dim)
        same(f"turned {tag}", "cat", [p.t() for p in pieces], 0)
        image = randn(32, 64, 112, 112, dtype=dtype)
        same(f"32x64x112x112 {tag}", "pad", image, [1, 1, 1, 1], "constant", None)
        last = image.to(memory_format=torch.channels_last)
        same(f"32x64x112x112 {tag} channels last", "pad", last, [1, 1, 1, 1], "constant", None)
        same(f"32x128x112x112 {tag} channels last", "cat", [last, last], 1)
        # Transposing copies: to channels-last, heads and tokens, rows and columns.
        named(f"heads {tag}", "reshape", randn(8, 16, 1024, 128, dtype=dtype).transpose(1, 2), [8, 1024, 2048])
        named(f"channels last {tag}", "reshape", last, [-1])
        named(f"turned {tag}", "reshape", pieces[0].t(), [-1])
    same("32x64x112x112 reflect", "pad", randn(32, 64, 112, 112), [1, 1, 1, 1], "reflect", None)


def rows():
    a, b = randn(2048, 64), randn(2048, 64)
    for p, mode in ((2.0, None), (2.0, 2), (1.0, None)):
        same(f"2048x2048x64 {p} {mode}", "_cdist_forward", a, b, p, mode)
    found = ops._cdist_forward(a, b, 2.0, None)
    same("2048x2048x64 2", "_cdist_backward", found, a, b, 2.0, found)
    same("2048x64", "_pdist_forward", a, 2.0)
    pairs = ops._pdist_forward(a, 2.0)
    same("2048x64", "_pdist_backward", pairs, a, 2.0, pairs)
    for shape in ((8192, 4096), (65536, 128), (16, 4096)):
        x = randn(*shape, dtype=brain)
        same(f"{shape}", "_fused_rms_norm", x, [shape[1]], x[0].contiguous(), 1e-5)
    data, lengths = randn(100000, 64), torch.full((2000,), 50, device="cuda")
    for reduce in ("sum", "max"):
        arguments = (data, reduce, lengths, None, None, 0, True, None)
        same(f"2000 of 50x64 {reduce}", "segment_reduce", *arguments)
        out = ops.segment_reduce(data, reduce, lengths=lengths, axis=0, unsafe=True)
        same(f"2000 of 50x64 {reduce}", "_segment_reduce_backward", out, out, data, reduce, lengths, None, 0, None)


def products():
    for dtype in (single, brain):
        a, b = randn(2048, 2048, dtype=dtype), randn(2048, 2048, dtype=dtype)
        out, bias = torch.empty_like(a), randn(2048, dtype=dtype)
        tag = f"2048^3 {str(dtype)[6:]}"
        into(tag, "mm_out", out, a, b, expect=lambda: torch.mm(a, b, out=out))
        into(tag, "addmm_out", out, bias, a, b, 1.0, 1.0, expect=lambda: torch.addmm(bias, a, b, out=out))
        same(f"2048x2048 {str(dtype)[6:]}", "addmv", bias, a, bias, 1.0, 1.0)
        c, d = a.view(32, 256, 512), b.view(32, 512, 256)
        result = torch.empty(32, 256, 256, dtype=dtype, device="cuda")
        into(f"32x256x512x256 {str(dtype)[6:]}", "bmm_out", result, c, d, expect=lambda: torch.bmm(c, d, out=result))
    same("2048^3 gelu", "_addmm_activation", bias, a, b, 1.0, 1.0, True)
    i, j = randint(100, 2048, 2048).to(torch.int8), randint(100, 2048, 2048).to(torch.int8).t()
    sums = torch.empty(2048, 2048, device="cuda", dtype=torch.int32)
    into("2048^3", "_int_mm_out", sums, i, j, expect=lambda: torch._int_mm(i, j, out=sums))
    x, w = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t()
    one, per_row, per_column = (torch.ones(s, device="cuda") for s in ((), (2048, 1), (1, 2048)))
    for label, s, t in (("", one, one), ("rows", per_row, per_column)):
        row(f"_scaled_mm 2048^3 {label}", "_scaled_mm", (x, w, s, t, None, None, brain, True),
            lambda: torch._scaled_mm(x, w, scale_a=s, scale_b=t, out_dtype=brain, use_fast_accum=True))
    offsets = torch.tensor([512, 1024, 1536, 2048], dtype=torch.int32, device="cuda")
    weights = randn(4, 2048, 2048, dtype=brain).transpose(-2, -1)
    row("_grouped_mm 4 of 512x2048x2048", "_grouped_mm", (a, weights, offsets, None, None),
        lambda: torch._grouped_mm(a, weights, offs=offsets))
    eights = weights.transpose(-2, -1).to(torch.float8_e4m3fn).transpose(-2, -1)
    by_row, by_column = torch.ones(2048, device="cuda"), torch.ones(4, 2048, device="cuda")
    row("_scaled_grouped_mm 4 of 512x2048x2048", "_scaled_grouped_mm",
        (x, eights, by_row, by_column, offsets, None, None, brain, True),
        lambda: torch._scaled_grouped_mm(x, eights, by_row, by_column, offs=offsets, out_dtype=brain, use_fast_accum=True))
    packed = ops._convert_weight_to_int4pack(randint(256, 4096, 2048).to(torch.uint8), 8)
    scales = randn(4096 // 128, 4096, 2, dtype=brain)
    for m in (1, 16, 512):
        same(f"{m}x4096x4096", "_weight_int4pack_mm", randn(m, 4096, dtype=brain), packed, 128, scales)
    eight, factors = randint(100, 4096, 4096).to(torch.int8), uniform(4096).to(brain)
    for m in (1, 512):  # PyTorch may lack it on CUDA; then time what Inductor generates
        y = randn(m, 4096, dtype=brain)
        row(f"_weight_int8pack_mm {m}x4096x4096", "_weight_int8pack_mm", (y, eight, factors),
            lambda: torch.mm(y, eight.to(brain).t()) * factors)


def transforms():
    z = torch.randn(256, 4096, device="cuda", dtype=torch.complex64)
    same("256x4096", "_fft_c2c", z, [1], 0, True)
    same("256x4096 down", "_fft_c2c", z, [0], 0, True)
    same("256x4096 scaled", "_fft_c2c", z, [1], 1, True)
    x = randn(32, 3, 224, 224)
    same("32x3x224x224", "_fft_r2c", x, [2, 3], 0, True)
    same("32x3x224x224 both sides", "_fft_r2c", x, [2, 3], 0, False)
    same("256x8192 half", "_fft_r2c", randn(256, 8192, dtype=half), [1], 0, True)
    spectrum = ops._fft_r2c(x, [2, 3], 0, True)
    named("32x3x224x224", "_fft_c2r", spectrum, [2, 3], 2, 224)


def linear_algebra():
    for batch, n in (((64,), 32), ((8,), 128), ((), 1024)):
        a = randn(*batch, n, n)
        well = a + n * torch.eye(n, device="cuda")
        positive = a @ a.mT + n * torch.eye(n, device="cuda")
        b = randn(*batch, n, 16)
        tag = f"{[*batch, n, n]}"
        named(tag, "linalg_cholesky_ex", positive)
        factor = torch.linalg.cholesky(positive)
        same(tag, "cholesky_solve", b, factor, False)
        same(tag, "cholesky_inverse", factor, False)
        same(tag, "triangular_solve", b, factor, False, False, False)
        named(tag, "linalg_solve_triangular", factor, b, upper=False)
        named(tag, "linalg_lu_factor_ex", well)
        lu, pivots = torch.linalg.lu_factor(well)
        named(tag, "linalg_lu_solve", lu, pivots, b)
        same(tag, "lu_unpack", lu, pivots, True, True)
        named(tag, "_linalg_solve_ex", well, b)
        named(tag, "linalg_inv_ex", well)
        named(tag, "_linalg_det", well)
        same(tag, "geqrf", a)
        q, tau = torch.geqrf(a)
        same(tag, "ormqr", q, tau, b, True, True)
        named(tag, "linalg_qr", a)
        if n < 1000:
            named(tag, "_linalg_eigh", positive)
            named(tag, "_linalg_svd", a[..., :32, :])


def recurrent():
    for kind, mode, layers in (("LSTM", 2, 2), ("GRU", 3, 1)):
        model = getattr(torch.nn, kind)(512, 512, layers, device="cuda", dtype=half)
        weights = [w.detach() for w in model._flat_weights]
        x, hx = randn(64, 16, 512, dtype=half), randn(layers, 16, 512, dtype=half)
        cx = hx if mode == 2 else None
        row(f"_cudnn_rnn {kind} 64x16x512", "_cudnn_rnn",
            (x, weights, 4, None, hx, cx, mode, 512, 0, layers, False, 0.0, False, False, [], None),
            lambda: ops._cudnn_rnn(x, weights, 4, None, hx, cx, mode, 512, 0, layers, False, 0.0, False, False, [], None))
    gates, c = randn(1024, 2048), randn(1024, 512)
    same("1024x512", "_thnn_fused_lstm_cell", gates, gates, c, None, None)


def others():
    for last in (False, True):
        x, w = randn(16, 64, 56, 56, dtype=half), randn(64, 64, 3, 3, dtype=half)
        if last:
            x, w = (t.to(memory_format=torch.channels_last) for t in (x, w))
        tag = f"16x64x56x56 {'channels last' if last else ''}"
        arguments = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        same(tag, "convolution", x, w, None, *arguments)
        grad = torch.convolution(x, w, None, *arguments)
        for mask in ([True, False, False], [False, True, False], [False, False, True]):
            same(f"{tag} {mask}", "convolution_backward", grad, x, w, [64], *arguments, mask)
    x = randn(256, 4096)
    state = [torch.ones(1, device="cuda"), torch.ones(1, device="cuda")] + [torch.full((1,), v, device="cuda")
                                                                           for v in (-1.0, 2.5, 0.02)]
    state.append(torch.zeros(1, device="cuda", dtype=torch.int32))
    same("256x4096", "_fused_moving_avg_obs_fq_helper", x, *state, 0.01, -128, 127, 0, False, False)
    a, b, c = randn(64, 128), randn(32, 128, 64), randn(64, 64)
    same("64x128x64x32", "_trilinear", a, b, c, [1, 3], [0], [1, 2], [2, 3], 1)


def run():
    for family in (more_pooling, indexing, selection, embeddings, resampling, random, elementwise, parts, rows, products,
                   transforms, linear_algebra, recurrent, others):
        torch.manual_seed(0)
        try:
            family()
        except Exception as error:  # noqa: BLE001  (the next family must run)
            print(f"{family.__name__}: {type(error).__name__}: {str(error).splitlines()[0][:160]}", flush=True)
