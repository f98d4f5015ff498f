"""Writes tests/data/by_name.cases: PyTorch's results for the operators that make_aten_cases.py and
make_function_cases.py leave out.

    .venv/bin/python tests/custom_ops/make_by_name_cases.py      # torch 2.15
"""
import warnings

import torch

import lite_cases
from aten_cases import COMPLEX, F, FLOATS, GAPLESS, HALVES, INTS, SMALL, TIGHT, Atens, Samples, check_covered

warnings.filterwarnings("ignore")


def tensors(out, s):
    x = s.values(torch.float32, [2, 3])
    for name in ("_functional_sym_constrain_range", "_functional_sym_constrain_range_for_size"):
        out.add(name, 2, 0, 3, torch.ones(2))
        out.add(name, 2, None, None, torch.ones(2))
        out.add(name, 5, 0, 3, torch.ones(2), message="Invalid value range for 5 between [0, 3]")
    out.add("_functional_assert_scalar", 1, "no", torch.ones(2))
    out.add("_functional_assert_scalar", 0, "it is zero", torch.ones(2), message="it is zero")
    out.add("_assert_tensor_metadata", x, [2, 3], [3, 1], 6, None, None)
    out.add("_assert_tensor_metadata", x, None, None, None, None, None)
    for bad, text in (([2, 2], "Tensor sizes mismatch! Expected: [2, 2], Got: [2, 3]"), (None, "")):
        out.add("_assert_tensor_metadata", x, bad, None if bad else [2, 1], None, None, None,
                message=text or "Tensor strides mismatch! Expected: [2, 1], Got: [3, 1]")
    out.add("_assert_tensor_metadata", x, None, None, 1, None, None, message="Tensor dtype mismatch!")
    for dtype in FLOATS + [torch.complex64, torch.int32]:
        a = s.sample(dtype, [2, 3])
        out.add("_lazy_clone", a)
        out.add("_neg_view", a)
        out.add("_neg_view_copy", a)
        out.add("set", a)
        out.add("set.source_Tensor", a, torch.arange(12).to(dtype).view(3, 4).t())
        if not dtype.is_complex:
            out.add("dequantize.self", a)
    out.add("dequantize.self", s.values(torch.float16, [3]))
    out.add("_new_zeros_with_same_feature_meta", x, s.values(torch.float64, [4, 5]), 0)
    out.add("_new_zeros_with_same_feature_meta", x, s.values(torch.float32, [4, 5]), 1)
    # PyTorch leaves these undefined, or needs a GPU for them.
    out.define("_make_dep_token", lambda *_: (torch.zeros(()),), None, None, None, None, None)
    out.define("_pin_memory", lambda a, _: (a.clone(),), x, None)
    out.add("_print", "printed by a test")
    out.add("_reshape_alias_copy", x, [3, 2], [2, 1])
    out.add("_reshape_alias_copy", x, [3, 2], [1, 3])
    out.add("resize", x, [2, 2], None)
    out.add("resize", x.t(), [3, 2], None)
    out.add("resize", x, [1, 0], None)
    out.add("resize", s.values(torch.complex64, [2, 3]), [5], None)
    whole = torch.arange(12.0).view(3, 4)
    out.add("slice_inverse", whole[1:3], whole, 0, 1, 3, 1)
    for dtype in (None, 7, 5, 3):
        out.add("range", 0, 5, dtype, *F[1:])
        for step in (2, 1) + ((0.75,) if dtype != 3 else ()):
            out.add("range.step", 1, 6, step, dtype, *F[1:], tolerance=1e-6)
    out.add("range.step", 5, 0, -2, *F)
    out.add("range.step", 5, 0, 1, *F, message="upper bound and lower bound inconsistent with step sign")
    out.add("range.step", 0, 1, 0, *F, message="step must be nonzero")
    indices = [torch.tensor([1, 0]), torch.tensor([[2], [0]])]
    for accumulate in (False, True):
        out.add("_index_put_impl", x, indices, s.values(torch.float32, [2, 2]), accumulate, False, tolerance=1e-6)


def functions(out, s):
    for dtype in FLOATS + HALVES + INTS:
        a, b = s.sample(dtype, [3, 5]), s.sample(dtype, [5])
        for alpha in (1, 2):
            if dtype in FLOATS + [torch.int64, torch.int32, torch.int8]:
                out.add("_add_relu.Tensor", a, b, alpha)
                out.add("_add_relu.Scalar", a, 2, alpha)
        special = s.sample(dtype, [4, 6], special=0.1 if dtype.is_floating_point else 0)
        out.add("_aminmax", special)
        for d in (0, -1):
            out.add("_aminmax.dim", special, d, False)
            out.add("_aminmax.dim", special, d, True)
        for inverse in (False, True):
            out.add("_unique", a, True, inverse)
        for dim, keep in (([], False), ([0], False), ([1, 0], True)):
            out.add("hash_tensor", a, dim, keep, 0)
    out.add("hash_tensor", torch.empty(0), [], False, 0, message="Expected reduction dim to be specified")
    out.add("_aminmax", torch.empty(0), message="an empty dimension as the operation has no identity")
    for dtype in FLOATS:  # PyTorch misreads complex coefficients
        out.add("_compute_linear_combination", s.sample(dtype, [3, 2, 2]), s.sample(dtype, [2, 3]), tolerance=TIGHT[dtype])
    for dtype in FLOATS + COMPLEX:
        t = {"tolerance": TIGHT[dtype]}
        out.add("_logcumsumexp", s.sample(dtype, [3, 4], low=-2, high=2), 1, **t)
    for dtype in FLOATS + HALVES + COMPLEX:
        t = {"tolerance": 10 * TIGHT[dtype]}
        a = s.sample(dtype, [3, 4], low=-2, high=2)
        for order in (2, 1, 3, 0, -1.5):
            out.add("linalg__powsum", a + (3 if order == -1.5 else 0), order, None, False, None, **t)
            out.add("linalg__powsum", a + 3, order, [1], True, None, **t)
    out.add("linalg__powsum", torch.ones(2, 2), 2, [0], False, 7)
    ends = torch.tensor([0.0, 0.25, 1.0, 1.5, 2.5, 9.0, 40.0, -0.5, -1.0, -7.5, float("nan"), float("inf")])
    for dtype in FLOATS:
        t = {"tolerance": 1e-10 if dtype == torch.float64 else 3e-5}
        e = ends.to(dtype)
        for name in ("special_log_ndtr", "special_erfcx", "special_i1", "i0"):
            out.add(name, e[:-1], **t)
        out.add("special_i1", s.sample(torch.int32, [3], low=-3, high=3), tolerance=3e-5)
        out.add("erfinv", torch.tensor([-1.0, -0.999, -0.25, 0.0, 0.5, 0.9, 1.0, 1.5]).to(dtype), **t)
        for q in (0.25, 1.0, 3.0, 12.5):
            out.add("special_zeta", e, torch.tensor(q).to(dtype), **t)
        out.add("special_zeta", torch.tensor([1.0, 2.0, 3.0, 2.5]).to(dtype), torch.tensor([[-1.0], [-0.5], [-2.5]]).to(dtype), **t)
        out.add("special_xlog1py", s.sample(dtype, [3, 4]), s.sample(dtype, [4], low=0), **t)
        for p in (1, 3):
            out.add("mvlgamma", s.sample(dtype, [3, 4], low=3), p, **t)
    out.add("special_zeta", torch.tensor([2, 3]), torch.tensor([1, 4], dtype=torch.int32), tolerance=3e-5)
    out.add("mvlgamma", torch.ones(2), 0, message="p has to be greater than or equal to 1")
    for dtype in FLOATS:
        shape = torch.tensor([0.1, 0.5, 1.0, 2.5, 7.0, 30.0, 100.0]).to(dtype)
        for scale in (0.1, 0.5, 1.0, 1.4):
            out.add("_standard_gamma_grad", shape, shape * scale, tolerance=4e-3)
        for x in (0.05, 0.3, 0.5, 0.8, 0.97):
            for rest in (0.5, 2.0, 9.0):
                out.add("_dirichlet_grad", torch.full_like(shape, x), shape, shape + rest, tolerance=1e-2)
    key = torch.tensor([12345678901234, 2**40 + 7], dtype=torch.int64).to(torch.uint64)
    keys = torch.arange(6).view(3, 2).to(torch.uint64)
    for n in (1, 3):
        out.add("_philox_key_split", key, n)
        out.add("_philox_key_split", keys, n)
    for data in (0, 5, -1):
        out.add("_philox_key_fold_in", keys, data)
    out.add("_philox_key_fold_in.Tensor", keys, torch.tensor(9, dtype=torch.int64).to(torch.uint64))
    batched = (key, keys.view(3, 1, 2), keys[:1].view(1, 1, 2))
    for dtype in FLOATS + HALVES:
        for k in batched:
            for low, high in ((0.0, 1.0), (-2.5, 3.0)):
                out.add("_philox_uniform", torch.zeros(3, 7, dtype=dtype), k, low, high)
            # Sines and cosines of floats: near their zeros only the absolute error counts.
            out.add("_philox_normal", torch.zeros(3, 7, dtype=dtype), k, 0.5, 2.0,
                    tolerance={torch.float32: 2e-5, torch.float64: 1e-12}.get(dtype, SMALL.get(dtype)))
    for dtype in INTS:
        for k in batched:
            for low, high in ((0, 100), (None, None), (None, 5), (-3, 4) if dtype.is_signed else (3, 70)):
                if dtype == torch.int32 and low is None and high == 5:
                    continue
                out.add("_philox_randint", torch.zeros(3, 7, dtype=dtype), k, low, high)
    out.add("_philox_uniform", torch.zeros(3, 2).t(), key, 0.0, 1.0)
    out.add("_philox_uniform", torch.zeros(2, 3, 4), keys.view(1, 3, 1, 2), 0.0, 1.0)
    out.add("_philox_uniform", torch.zeros(4), keys, 0.0, 1.0, message="is not broadcastable with output shape")
    out.add("_philox_uniform", torch.zeros(3, 4), keys, 0.0, 1.0, message="batched key must have ndim")
    out.add("_philox_key_split", key, 0, message="num_splits must be positive, got 0")
    out.add("_philox_key_split", key[:1], 1, message="key must have shape (*batch, 2), got shape [1]")
    out.add("_philox_randint", torch.zeros(3, dtype=torch.int32), key, 0, 2**30 + 1, message="does not divide 2^32 evenly")
    out.add("_philox_randint", torch.zeros(3, dtype=torch.int32), key, 5, 5, message="must be non-empty")


def random(out, s):
    def add(name, *args, **options):
        torch.manual_seed(1234)  # as the test does before each call
        out.add(name, *args, **options)

    for dtype in FLOATS:
        for n in (0, 3, 50, 1000):
            p = torch.rand(3, 7, generator=s.g).to(dtype)
            add("binomial", torch.full((3, 7), float(n)).to(dtype), p, None)
        add("binomial", torch.tensor([10.0, 90.0]).to(dtype), torch.tensor([[0.2], [1.0], [0.0]]).to(dtype), None)
    like = torch.zeros(4, 5)
    for dtype in (None, 7, 3, 5):
        add("randint.low_generator", -3, 40, [3, 5], None, dtype or 4, None, None, None)
        add("randint_like.generator", like, 40, None, dtype, None, None, None, None)
        add("randint_like.low_generator_dtype", like, -3, 40, None, dtype, None, None, None, None)
        add("randint_like.Tensor", like, torch.tensor(40), dtype, None, None, None, None)
        add("randint_like.Tensor_generator", like, torch.tensor(40), None, dtype, None, None, None, None)
        add("randperm.generator", 11, None, dtype or 4, None, None, None)
    for dtype in FLOATS + HALVES + INTS + [torch.bool]:
        a = torch.zeros(3, 7, dtype=dtype)
        add("random", a, None)
        add("random.to", a, 2, None)
        if dtype != torch.bool:
            add("random.from", a, 3, 100, None)
            add("random.from", a, 3, None, None)
    add("random.from", torch.zeros(5, dtype=torch.int64), -2**63, None, None)


def lists(out, s):
    t = {"tolerance": 1e-5}
    for dtype in (torch.float32, torch.complex128, torch.int32):
        a, b, c = ([s.sample(dtype, shape, low=1, high=4, **GAPLESS) for shape in ([2, 3], [4], [])] for _ in range(3))
        numbers = torch.tensor([2, 3, 1] if dtype == torch.int32 else [2.5, -1.0, 3.0])
        out.add("_foreach_addcmul.Tensor", a, b, c, numbers, **t)
        if dtype != torch.int32:
            out.add("_foreach_addcdiv.Tensor", a, b, c, numbers, **t)
        out.add("_foreach_clone", a, None)
        out.add("_foreach_copy", a, b, False)
        if not dtype.is_complex:
            plain = [2, 3, 1] if dtype == torch.int32 else [2.5, 1.0, 3.0]
            for name in ("clamp_max", "clamp_min", "maximum", "minimum"):
                out.add(f"_foreach_{name}.ScalarList", a, plain)
                out.add(f"_foreach_{name}.Scalar", a, plain[0])
                out.add(f"_foreach_{name}.List", a, b)
            out.add("_foreach_max", a)
            out.add("_foreach_sign", a)
        if dtype != torch.int32:
            for order in (2, 1, float("inf")):
                out.add("_foreach_norm.Scalar", a, order, None, **t)
            out.add("_foreach_norm.Scalar", a, 2, 10 if dtype.is_complex else 7, **t)
            for order in (2, 3):
                out.add("_foreach_powsum.Scalar", a, order, None, **t)
        m = [s.sample(dtype, shape, low=-2, high=2) for shape in ([2, 3], [4, 2])]
        n = [s.sample(dtype, shape, low=-2, high=2) for shape in ([3, 4], [2, 1])]
        out.add("_foreach_mm", m, n, **t)


def linalg(out, s):
    for dtype in FLOATS + COMPLEX:
        t = {"tolerance": 2e-4 if dtype in (torch.float32, torch.complex64) else 1e-10}
        for batch in ((), (2,), (0,)):
            a = torch.randn(*batch, 4, 4, dtype=dtype, generator=s.g)
            definite = a @ a.mH + torch.eye(4, dtype=dtype)
            out.add("linalg_matrix_sqrth", definite, **t)
            out.add("linalg_polar", torch.randn(*batch, 5, 3, dtype=dtype, generator=s.g), **t)
            out.add("linalg_polar", a, **t)
            if batch != (0,):
                out.add("_cholesky_solve_helper", torch.randn(*batch, 4, 2, dtype=dtype, generator=s.g),
                        torch.linalg.cholesky(definite), False, **t)
    out.add("linalg_matrix_sqrth", torch.tensor([[1.0, 2.0], [2.0, 1.0]]), tolerance=1e-5)
    out.add("linalg_matrix_sqrth", torch.tensor([[4.0, 7.0], [0.0, 9.0]]), tolerance=1e-5)
    out.add("linalg_polar", torch.ones(2, 3), message="at least as many rows as columns, but got 2 by 3")


def resizing(out, s):
    shapes = {1: ([2, 3, 7], [1, 1, 4]), 2: ([2, 3, 6, 5], [1, 5, 4, 5]), 3: ([1, 2, 3, 4, 5], [2, 1, 4, 3, 2])}
    sizes = {1: ([4], [9], [7], [14]), 2: ([4, 3], [8, 9], [6, 5], [12, 10]), 3: ([2, 4, 7], [5, 2, 3], [3, 4, 5])}
    kinds = [("upsample_linear1d", 1, True), ("upsample_bilinear2d", 2, True), ("upsample_bicubic2d", 2, True),
             ("upsample_trilinear3d", 3, True)]
    kinds += [(f"{name}{n}d", n, False) for n in (1, 2, 3) for name in ("upsample_nearest", "_upsample_nearest_exact")]
    for name, dims, linear in kinds:
        for dtype in FLOATS + HALVES + ([torch.uint8] if dims == 2 or not linear else []):
            t = {"tolerance": {torch.float32: 2e-5, torch.float64: 1e-12}.get(dtype, SMALL.get(dtype, 0))}
            if name == "upsample_bicubic2d":  # negative weights: small results of large elements
                t["tolerance"] *= 10
            for shape in shapes[dims]:
                a = s.sample(dtype, shape, low=0, high=200, layouts=("packed", "sliced"))
                if dims == 2 and shape[1] > 1:
                    a = s.pick([a, a.contiguous(memory_format=torch.channels_last)])
                for size in sizes[dims]:
                    none = [None] * dims
                    for corners in (False, True) if linear else (None,):
                        flag = [] if corners is None else [corners]
                        out.add(name, a, size, *flag, *none, **t)
                        if dtype.is_floating_point and name not in ("upsample_linear1d", "upsample_bicubic2d",
                                                                    "upsample_trilinear3d"):
                            g = s.sample(dtype, shape[:2] + size, layouts=("packed", "sliced"))
                            tb = {"tolerance": {torch.float32: 2e-4, torch.float64: 1e-11, torch.float16: 1e-2,
                                                torch.bfloat16: 8e-2}[dtype]}
                            out.add(f"{name}_backward", g, size, shape, *flag, *none, **tb)
                if not linear or dims != 2 or dtype != torch.uint8:
                    scaled = [int(k * 1.5) for k in shape[2:]]
                    flag = [False] if linear else []
                    out.add(name, a, scaled, *flag, *[1.5] * dims, **t)
    out.add("upsample_bilinear2d", torch.ones(1, 1, 2, 2), [0, 2], False, None, None, message="should be greater than 0")
    for dtype in FLOATS:
        t = {"tolerance": 2e-4 if dtype == torch.float32 else 1e-10}
        g = s.sample(dtype, [2, 3, 4, 3], layouts=("packed",))
        out.add("_upsample_lanczos2d_aa_backward", g, [4, 3], [2, 3, 6, 5], False, None, None, **t)
        for padding in ([1, 2, 0, 1, 2, 0], [-1, 1, 0, 0, 1, -1]):
            a = s.sample(dtype, [1, 2, 3, 4, 5], layouts=("packed",))
            g = torch.nn.functional.pad(a, padding, mode="replicate")
            out.add("replication_pad3d_backward", s.sample(dtype, list(g.shape), layouts=("packed",)), a, padding, **t)


def layers(out, s):
    for dtype in FLOATS:
        t = {"tolerance": 2e-4 if dtype == torch.float32 else 1e-10}
        r = lambda *shape: torch.randn(shape, dtype=dtype, generator=s.g)
        for bias in (None, r(4)):
            out.add("_slow_conv2d_forward", r(2, 3, 6, 7), r(4, 3, 3, 2), [3, 2], bias, [2, 1], [1, 1], **t)
            out.add("slow_conv_dilated2d", r(2, 3, 6, 7), r(4, 3, 3, 2), [3, 2], bias, [1, 1], [1, 0], [2, 1], **t)
            out.add("slow_conv_transpose2d", r(2, 3, 6, 7), r(3, 4, 3, 2), [3, 2], bias, [2, 1], [1, 0], [1, 0], [1, 1], **t)
            out.add("slow_conv3d_forward", r(1, 3, 4, 6, 5), r(4, 3, 3, 2, 2), [3, 2, 2], bias, [1, 2, 1], [1, 0, 1], **t)
            out.add("slow_conv_dilated3d", r(1, 3, 6, 6, 5), r(4, 3, 3, 2, 2), [3, 2, 2], bias, [1, 1, 1], [0, 0, 1], [2, 1, 1], **t)
            out.add("slow_conv_transpose3d", r(1, 3, 4, 3, 2), r(3, 4, 3, 2, 2), [3, 2, 2], bias, [2, 1, 1], [0, 0, 1], [1, 0, 0], [1, 1, 1], **t)
            if dtype == torch.float32:
                out.add("mkldnn_convolution", r(2, 4, 6, 7), r(4, 2, 3, 2), bias, [1, 0], [1, 2], [1, 1], 2, **t)
        out.add("slow_conv_dilated2d", r(3, 6, 7), r(4, 3, 3, 2), [3, 2], None, [1, 1], [0, 0], [1, 1], **t)
        out.add("slow_conv_transpose2d", r(3, 6, 7), r(3, 4, 3, 2), [3, 2], None, [1, 1], [0, 0], [0, 0], [1, 1], **t)
        out.add("conv_tbc", r(5, 2, 3), r(2, 3, 4), r(4), 1, **t)
        for mask in ([True, True, True], [True, False, False]):
            out.add("_slow_conv2d_backward.output_mask", r(2, 4, 6, 8), r(2, 3, 6, 7), r(4, 3, 3, 2), [3, 2], [1, 1],
                    [1, 1], mask, **t)
        for mode in (0, 1, 2):
            for padding in (0, 1, 2):
                for corners in (False, True):
                    image, grid = r(2, 3, 5, 4), torch.rand(2, 3, 2, 2, dtype=dtype, generator=s.g) * 3 - 1.5
                    if mode == 2:
                        out.add("grid_sampler_2d", image, grid, mode, padding, corners, **t)
                    else:
                        out.add("grid_sampler_2d", image, grid, mode, padding, corners, **t)
                    if mode < 2 and dtype == torch.float32:
                        out.add("_grid_sampler_2d_cpu_fallback", image, grid, mode, padding, corners, **t)
                        out.add("_grid_sampler_2d_cpu_fallback_backward", r(2, 3, 3, 2), image, grid, mode, padding,
                                corners, **t)
        masks = ((None, None), (torch.tensor([[False, True, False], [True, False, False]]), 1),
                 (torch.tensor([[False, True, True], [False, False, True], [False, False, False]]), 0))
        x = r(2, 3, 4)
        for mask, kind in masks:
            for weights, average in ((True, True), (True, False), (False, True)):
                out.add("_native_multi_head_attention", x, x, x, 4, 2, r(12, 4), r(12), r(4, 4), r(4), mask, weights,
                        average, kind, **t)
            for first in (False, True):
                out.add("_transformer_encoder_layer_fwd", x, 4, 2, r(12, 4), r(12), r(4, 4), r(4), first, first, 1e-5,
                        r(4), r(4), r(4), r(4), r(6, 4), r(6), r(4, 6), r(4), mask, kind, **t)
            if mask is not None:
                scores = r(2, 2, 3, 3)
                y = torch.ops.aten._masked_softmax(scores, mask, 3, kind)
                out.add("_masked_softmax", scores, mask, 3, kind, **t)
                out.add("_masked_softmax", scores, mask, None, kind, **t)
                full = (mask[:, None, None] if kind == 1 else mask).expand(2, 2, 3, 3)
                out.add("_masked_softmax", scores, full, 1, 2, **t)
                out.add("_masked_softmax_backward", r(2, 2, 3, 3), y, full, 3, **t)
        out.add("_masked_softmax", r(1, 1, 2, 2), torch.ones(1, 2).bool(), 3, 1)
        out.add("_native_multi_head_attention", x, r(2, 3, 4), r(2, 3, 4), 4, 2, r(12, 4), r(12), r(4, 4), r(4), None,
                True, True, None, **t)
        out.add("_transform_bias_rescale_qkv", r(2, 3, 12), r(12), 2, **t)
        for shape in ([2, 3], [2, 3, 4], [2, 3, 2, 3]):
            out.add("batch_norm_update_stats", r(*shape), None, None, 0.1, **t)
            out.add("batch_norm_update_stats", r(*shape), r(3), torch.ones(3, dtype=dtype), 0.1, **t)
            out.add("batch_norm_update_stats", r(*shape), torch.zeros(3, dtype=dtype), torch.ones(3, dtype=dtype), 0.1,
                    written=[1, 2], **t)
    out.add("_masked_softmax", torch.ones(1, 1, 2, 2), torch.ones(2, 2), 3, 0, message="Mask should be a boolean tensor")
    out.add("_masked_softmax", torch.ones(1, 1, 2, 2), torch.ones(2, 2).bool(), 3, None, message="Mask Type should be defined")
    out.add("_native_multi_head_attention", torch.ones(2, 3, 4), torch.ones(2, 2, 4), torch.ones(2, 3, 4), 4, 2,
            torch.ones(12, 4), torch.ones(12), torch.ones(4, 4), torch.ones(4), None, True, True, None,
            message="shapes to match")
    # A weight of so few columns is packed in the same way for every instruction set.
    out.add("_convert_weight_to_int4pack_for_cpu", s.values(torch.int32, [16, 32], 0, 15), 1)
    for dtype in FLOATS + HALVES:
        t = {"tolerance": {torch.float32: 2e-5, torch.float64: 1e-11}.get(dtype, SMALL.get(dtype))}
        for shape in ([3, 5], [2, 3, 4], [], [0, 3]):
            a = s.sample(dtype, shape, low=-3, high=3)
            for d in (0, -1):
                out.add("_softmax", a, d, False, **t)
                out.add("_log_softmax", a, d, False, **t)
                out.add("_safe_softmax", a, d, None, **t)
                y, z = torch.softmax(a, d), torch.log_softmax(a, d)
                g = s.sample(dtype, shape, low=-3, high=3)
                out.add("_softmax_backward_data", g, y, d, {v: k for k, v in NUMBERED.items()}[dtype],
                        tolerance=4 * t["tolerance"])
                out.add("_log_softmax_backward_data", g, z, d, {v: k for k, v in NUMBERED.items()}[dtype],
                        tolerance=4 * t["tolerance"])
        a = s.sample(dtype, [2, 4, 3, 2], low=-3, high=3)
        t = {"tolerance": {torch.float32: 2e-4, torch.float64: 1e-10, torch.float16: 1e-2, torch.bfloat16: 6e-2}[dtype]}
        w, b = s.values(dtype, [4], -2, 2), s.values(dtype, [4], -2, 2)
        for weight, bias in ((None, None), (w, None), (w, b)):
            for memory in (torch.contiguous_format, torch.channels_last):
                x = a.contiguous(memory_format=memory)
                out.add("native_batch_norm", x, weight, bias, None, None, True, 0.1, 1e-5, **t)
                rm, rv = s.values(dtype, [4], -1, 1), s.values(dtype, [4], 1, 3)
                out.add("native_batch_norm", x, weight, bias, rm, rv, False, 0.1, 1e-5, **t)
                g = s.sample(dtype, [2, 4, 3, 2], low=-2, high=2, layouts=("packed",))
                _, mean, rstd = torch.ops.aten.native_batch_norm(x, weight, bias, None, None, True, 0.1, 1e-5)
                if dtype in FLOATS:
                    for training in (True, False):
                        out.add("native_batch_norm_backward", g, x, weight, rm, rv, mean, rstd, training, 1e-5,
                                [True, True, True], **t)
            for groups in (1, 2, 4):
                out.add("native_group_norm", a.contiguous(), weight, bias, 2, 4, 6, groups, 1e-5, **t)
                if dtype in FLOATS:
                    _, mean, rstd = torch.ops.aten.native_group_norm(a.contiguous(), weight, bias, 2, 4, 6, groups, 1e-5)
                    out.add("native_group_norm_backward", g, a.contiguous(), mean, rstd, weight, 2, 4, 6, groups,
                            [True, weight is not None, bias is not None], **t)
            x = s.sample(dtype, [3, 2, 4], low=-3, high=3)
            out.add("native_layer_norm", x, [4], weight, bias, 1e-5, **t)
            out.add("native_layer_norm", x, [2, 4], None, None, 1e-5, **t)
            _, mean, rstd = torch.ops.aten.native_layer_norm(x, [4], weight, bias, 1e-5)
            out.add("native_layer_norm_backward", s.sample(dtype, [3, 2, 4], low=-2, high=2), x, [4], mean, rstd, weight,
                    bias, [True, weight is not None, bias is not None], **t)
    rm, rv = torch.zeros(3), torch.ones(3)
    out.add("native_batch_norm", s.values(torch.float32, [4, 3]), None, None, rm, rv, True, 0.3, 1e-5, written=[3, 4],
            tolerance=1e-5)
    for dim, shape in ((0, [3, 1, 1]), (2, [1, 1, 5])):
        for dtype in FLOATS:
            v, g = s.values(dtype, [3, 4, 5]), s.values(dtype, shape, 1, 3)
            _, norms = torch.ops.aten._weight_norm_interface(v, g, dim)
            out.add("_weight_norm_interface_backward", s.values(dtype, [3, 4, 5], -2, 2), v, g, norms, dim,
                    tolerance=1e-4 if dtype == torch.float32 else 1e-11)


NUMBERED = {5: torch.float16, 6: torch.float32, 7: torch.float64, 15: torch.bfloat16}


def losses(out, s):
    for dtype in FLOATS:
        t = {"tolerance": 2e-5 if dtype == torch.float32 else 1e-11}
        x, target = s.values(dtype, [4, 3], -2, 2), torch.tensor([0, 2, 1, 1])
        weight = s.values(dtype, [3], 1, 3)
        for reduction in (0, 1, 2):
            for w in (None, weight):
                for p in (1, 2):
                    loss = out.add("multi_margin_loss", x, target, p, 1.5, w, reduction, **t)
                    g = torch.ones_like(loss) * 1.5
                    out.add("multi_margin_loss_backward", g, x, target, p, 1.5, w, reduction, **t)
                loss, total = out.add("nll_loss_forward", x, target, w, reduction, 1, **t)
                out.add("nll_loss_backward", torch.ones_like(loss) * 0.5, x, target, w, reduction, 1, total, **t)
                image, labels = s.values(dtype, [2, 3, 2, 2], -2, 2), torch.tensor([[[0, 1], [2, 2]], [[1, 0], [0, 2]]])
                loss, total = out.add("nll_loss2d_forward", image, labels, w, reduction, 1, **t)
                out.add("nll_loss2d_backward", torch.ones_like(loss) * 0.5, image, labels, w, reduction, 1, total, **t)
            labels = torch.tensor([[0, 2, -1], [1, -1, 0], [-1, 0, 0], [2, 1, 0]])
            loss, is_target = out.add("multilabel_margin_loss_forward", x, labels, reduction, **t)
            out.add("multilabel_margin_loss_backward", torch.ones_like(loss) * 2, x, labels, reduction, is_target, **t)
            y = s.values(dtype, [4, 3], -2, 2)
            for name, extra in (("mse_loss", ()), ("smooth_l1_loss", (0.75,)), ("huber_loss", (1.25,)),
                                ("soft_margin_loss", ())):
                loss = out.add(name, x, y, reduction, *extra, **t)
                if name != "soft_margin_loss":
                    out.add(name + "_backward", torch.ones_like(loss) * 1.5, x, y, reduction, *extra, **t)
            p, q = torch.rand(4, 3, dtype=dtype, generator=s.g), torch.rand(4, 3, dtype=dtype, generator=s.g)
            for w in (None, weight):
                loss = out.add("binary_cross_entropy", p, q, w, reduction, **t)
                out.add("binary_cross_entropy_backward", torch.ones_like(loss) * 1.5, p, q, w, reduction, **t)
                for pos in (None, weight):
                    out.add("binary_cross_entropy_with_logits", x, q, w, pos, reduction, **t)
        g, i = s.values(dtype, [2, 3, 4]), torch.tensor([[0, 4, 4], [1, 2, 0]])
        for padding, scale in ((-1, False), (4, False), (0, True)):
            out.add("embedding_dense_backward", g, i, 5, padding, scale, **t)
        bags, offsets = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 2])
        for mode in (0, 1, 2):
            i, w = torch.tensor([3, 1, 0, 3]), s.values(dtype, [4, 2])
            _, bag, size, most = torch.ops.aten._embedding_bag(w, i, offsets, False, mode, False, None, False, -1)
            out.add("_embedding_bag_backward", s.values(dtype, [2, 2]), i, offsets, bags if mode == 0 else bag, size, most,
                    4, False, mode, False, None, -1, **t)


def main():
    torch.set_num_threads(1)
    out = Atens("by_name.cases")
    s = Samples(15)
    for part in PARTS:
        part(out, s)
    out.out.close()
    check_covered("layers", "gradients", "elementwise", "reductions")


PARTS = [tensors, functions, random, lists, linalg, resizing, layers, losses, *lite_cases.PARTS]
main()
