"""The models and the options of matrix.py."""
import tempfile

import torch
import torch._inductor
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

import recorder  # finds tests/data
from parts_module import Of

# What PyTorch's compiler can be told that changes what a package is, or what it calls.
OPTIONS = {
    "defaults": {},
    "folding": {"aot_inductor.use_runtime_constant_folding": True},
    "freezing": {"freezing": True},
    "freezing_folding": {"freezing": True, "aot_inductor.use_runtime_constant_folding": True},
    "constants_outside": {"aot_inductor.package_constants_in_so": False},
    "constants_blob": {"aot_inductor.package_constants_in_so": False,
                       "aot_inductor.package_constants_on_disk_format": "binary_blob"},
    "constants_pickle": {"aot_inductor.package_constants_in_so": False,
                         "aot_inductor.package_constants_on_disk_format": "pickle_weights"},
    "mmap": {"aot_inductor.force_mmap_weights": True},
    "mmap_folding": {"aot_inductor.force_mmap_weights": True, "aot_inductor.use_runtime_constant_folding": True},
    "no_asm": {"aot_inductor.use_consts_asm_build": False},
    "caching_allocator": {"aot_inductor.weight_use_caching_allocator": True},
    "stack": {"aot_inductor.allow_stack_allocation": True, "aot_inductor.compile_wrapper_opt_level": "O1"},
    "arrayref": {"aot_inductor.allow_stack_allocation": True, "aot_inductor.use_minimal_arrayref_interface": True},
    "standalone": {"aot_inductor_mode.compile_standalone": True},
    "static": {"aot_inductor.dynamic_linkage": False},
    "cpp_only": {"aot_inductor.package_cpp_only": True},
    "no_libtorch": {"aot_inductor.link_libtorch": False},
    "lto": {"aot_inductor.enable_lto": True},
    "debug_compile": {"aot_inductor.debug_compile": True},
    "debug_symbols": {"aot_inductor.debug_symbols": True},
    "O3": {"aot_inductor.compile_wrapper_opt_level": "O3"},
    "no_frames": {"aot_inductor.enable_frame_pointer": False, "aot_inductor.enable_line_tables": False},
    "no_precompiled": {"aot_inductor.precompile_headers": False},
    "names": {"aot_inductor.model_name_for_generated_files": "a_name", "aot_inductor.metadata": {"owner": "ö \"x\""}},
    "no_bounds": {"aot_inductor.check_lowerbound": False, "aot_inductor.check_upperbound": False},
    "printer_save": {"aot_inductor.debug_intermediate_value_printer": "1"},
    "printer": {"aot_inductor.debug_intermediate_value_printer": "2"},
    "printer_names": {"aot_inductor.debug_intermediate_value_printer": "3"},
    "profile": {"cpp.enable_kernel_profile": True, "cpp.descriptive_names": "original_aten"},
    "profiler_marks": {"profiler_mark_wrapper_call": True},
    "context_guard": {"cpp.enable_kernel_context_guard": True},
    "nan_asserts": {"nan_asserts": True},
    "no_asserts": {"size_asserts": False, "scalar_asserts": False, "alignment_asserts": False},
    "debug_index": {"debug_index_asserts": True},
    "fallback": {"fallback_by_default": True},
    "lite": dict(getattr(torch._inductor, "lite_mode_options", {"fallback_by_default": True})),
    "max_autotune": {"max_autotune": True, "max_autotune_gemm_backends": "CPP,ATEN"},
    "max_autotune_freezing": {"max_autotune": True, "max_autotune_gemm_backends": "CPP", "freezing": True},
    "grouped_gemm": {"max_autotune": True, "max_autotune_gemm_backends": "CPP", "freezing": True,
                     "cpp.enable_grouped_gemm_template": True, "cpp.enable_concat_linear": True},
    "memory_planning": {"memory_planning": True, "memory_pool": "combined"},
    "memory_planning_none": {"memory_planning": True, "memory_pool": "none"},
    "no_reuse": {"allow_buffer_reuse": False, "inplace_buffers": False},
    "intermediate_hooks": {"generate_intermediate_hooks": True},
    "fallback_random": {"fallback_random": True},
    "scalar": {"cpp.simdlen": 1},
    "avx2": {"cpp.simdlen": 256},
    "one_thread": {"cpp.threads": 1},
    "dynamic_threads": {"cpp.dynamic_threads": True},
    "unsafe_math": {"cpp.enable_unsafe_math_opt_flag": True, "cpp.enable_floating_point_contract_flag": "fast"},
    "fast_math": {"use_fast_math": True},
    "no_prepack": {"cpp.weight_prepack": False, "freezing": True},
    "always_keep": {"always_keep_tensor_constants": True},
    "no_layout": {"layout_optimization": False, "keep_output_stride": False},
    "force_layout": {"force_layout_optimization": True, "freezing": True},
    "padding": {"disable_padding_cpu": False, "pad_outputs": True, "force_shape_pad": True},
    "fusion": {"aggressive_fusion": True, "epilogue_fusion_first": True, "conv_1x1_as_mm": True,
               "loop_ordering_after_fusion": True},
    "no_passes": {"pattern_matcher": False, "use_pre_grad_passes": False, "use_post_grad_passes": False,
                  "use_joint_graph_passes": False},
    "deterministic": {"deterministic": True},
    "combo": {"combo_kernels": True},
    "precision_casts": {"emulate_precision_casts": True},
    "small_dequant": {"cpp.use_small_dequant_buffer": True},
    "autotune_at_compile_time": {"triton.autotune_at_compile_time": True},
    "int64_indexing": {"assume_32bit_indexing": False, "cpp.use_constexpr_for_int_array": False},
    "comments": {"comment_origin": True, "debug": True},
}

MODELS = {}


def model(make):
    """make() returns the module and its inputs, then perhaps the dynamic dimensions of each and more inputs."""
    MODELS[make.__name__] = make
    return make


def run(name, configs):
    """Into recorder.harvest: the package, and what PyTorch's loader makes of it."""
    module, inputs, *rest = MODELS[name]()
    dims, more = (rest + [None, ()][len(rest):])
    path = tempfile.mktemp(suffix=".pt2")
    with torch.no_grad():
        program = recorder.exported(module.eval(), inputs, dynamic_shapes=dims and {"args": tuple(dims)})
        quick = "aot_inductor.compile_wrapper_opt_level"
        quicker = {quick: "O0"} if quick in torch._inductor.config.get_config_copy() else {}
        torch._inductor.aoti_compile_and_package(program, package_path=path, inductor_configs=quicker | configs)
    package = recorder.Package(path)
    if configs.get("aot_inductor.package_constants_in_so") is False and len(configs) == 1:  # nothing else brings them
        held = dict(program.state_dict) | {n: c for n, c in program.constants.items() if isinstance(c, torch.Tensor)}
        package.load_constants({n: held[n] for n in package.get_constant_fqns() if n in held}, check_full_update=False)
    for tensors in (inputs, *more):
        package(*tensors)


@model
def mlp():
    net = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 32, bias=False), nn.LayerNorm(32), nn.Linear(32, 5))
    batch = Dim("batch", min=1, max=64)
    return Of(lambda m, x: m.net(x), net=net), (torch.randn(4, 16),), ({0: batch},), [(torch.randn(33, 16),)]


@model
def conv():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Conv2d(8, 8, 3, stride=2, groups=4), nn.SiLU(), nn.ConvTranspose2d(8, 4, 3),
                        nn.Conv2d(4, 8, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return net, (torch.randn(2, 3, 16, 16),)


@model
def lstm():
    return nn.LSTM(8, 12, num_layers=2, bidirectional=True, batch_first=True), (torch.randn(3, 5, 8),)


@model
def gru():
    return nn.GRU(8, 12), (torch.randn(3, 5, 8), torch.randn(1, 5, 12))


@model
def transformer():
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)
    return layer, (torch.randn(2, 7, 32),)


@model
def attention():
    def forward(m, x, mask):
        q, k, v = m.qkv(x).view(2, -1, 3, 4, 8).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask), F.scaled_dot_product_attention(
            q, k, v, is_causal=True)
    tokens = Dim("tokens", min=2, max=32)
    return (Of(forward, qkv=nn.Linear(32, 96)), (torch.randn(2, 7, 32), torch.randn(7, 7)),
            ({1: tokens}, {0: tokens, 1: tokens}), [(torch.randn(2, 20, 32), torch.randn(20, 20))])


@model
def embedding():
    def forward(m, ids, offsets):
        return m.bag(ids, offsets), m.table(ids.view(2, 4)), m.most(ids.view(2, 4))
    parts = {"bag": nn.EmbeddingBag(20, 6, mode="mean"), "table": nn.Embedding(20, 6, padding_idx=0),
             "most": nn.EmbeddingBag(20, 6, mode="max")}
    return Of(forward, **parts), (torch.randint(0, 20, (8,)), torch.tensor([0, 3, 3, 5]))


@model
def bfloat16():
    net = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 32), nn.LayerNorm(32), nn.Softmax(-1))
    return net.bfloat16(), (torch.randn(4, 32).bfloat16(),)


@model
def float16():
    net = nn.Sequential(nn.Conv1d(4, 8, 3), nn.GELU(), nn.Flatten(), nn.Linear(64, 16))
    return net.half(), (torch.randn(2, 4, 10).half(),)


@model
def float64():
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).double(), (torch.randn(3, 8).double(),)


@model
def float8():
    def forward(m, x):
        return F.linear(x, m.weight.to(x.dtype) * m.scale), x.to(torch.float8_e5m2).float()
    weight = torch.randn(16, 8).to(torch.float8_e4m3fn)
    return Of(forward, weight=weight, scale=torch.rand(16, 1)), (torch.randn(3, 8),)


@model
def int8_weights():
    def forward(m, x):
        return torch.ops.aten._weight_int8pack_mm(x, m.weight, m.scales)
    return (Of(forward, weight=torch.randint(-128, 127, (32, 64), dtype=torch.int8), scales=torch.rand(32).bfloat16()),
            (torch.randn(4, 64).bfloat16(),))


@model
def int4_weights():
    def forward(m, x):
        return torch.ops.aten._weight_int4pack_mm_for_cpu(x, m.weight, 32, m.scales)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(torch.randint(0, 16, (32, 64), dtype=torch.int32), 1)
    return (Of(forward, weight=packed, scales=torch.rand(2, 32, 2).bfloat16()), (torch.randn(4, 64).bfloat16(),))


@model
def int8_products():
    def forward(m, x):
        scale = x.abs().amax(1, keepdim=True) / 127
        codes = (x / scale).round().to(torch.int8)
        return torch._int_mm(codes, m.weight.t()) * scale * m.scales
    return (Of(forward, weight=torch.randint(-128, 127, (32, 64), dtype=torch.int8), scales=torch.rand(32)),
            (torch.randn(20, 64),))


@model
def quantised():
    def forward(m, x):
        y = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255)
        y = torch.ops.quantized_decomposed.quantize_per_tensor(y, 0.05, 10, 0, 255, torch.uint8)
        return m.net(torch.ops.quantized_decomposed.dequantize_per_tensor(y, 0.05, 10, 0, 255, torch.uint8)), y
    import torch.ao.quantization.fx._decomposed
    return Of(forward, net=nn.Linear(8, 4)), (torch.randn(3, 8),)


@model
def dynamic():
    def forward(m, x, y):
        z = torch.cat([x, y], 0) @ m.weight
        return z.sort(0)[0], z[x.shape[0]:], z.mean(), x.new_zeros(x.shape[0] * 2, y.shape[0])
    rows, more = Dim("rows", min=1, max=50), Dim("more", min=1)
    return (Of(forward, weight=torch.randn(6, 3)), (torch.randn(4, 6), torch.randn(5, 6)), ({0: rows}, {0: more}),
            [(torch.randn(1, 6), torch.randn(70, 6))])


@model
def unbacked():
    def forward(m, x):
        found = (x > 0).nonzero()
        kept = torch.masked_select(x, x < 0.5)
        return found, kept * 2, x.flatten().unique()
    return Of(forward), (torch.randn(5, 4),), None, [(torch.ones(5, 4),)]


@model
def complex64():
    def forward(m, x):
        y = torch.fft.rfft(x)
        return y * m.phase, torch.view_as_real(y), (y * y.conj()).real, torch.fft.irfft(y)
    return Of(forward, phase=torch.randn(9, dtype=torch.complex64)), (torch.randn(3, 16),)


@model
def cond():
    def forward(m, x):
        return torch.cond(x.sum() > 0, lambda t: m.one(t).sin(), lambda t: m.other(t) - 1, (x,)), m.one(x)
    x = torch.rand(3, 8)
    return Of(forward, one=nn.Linear(8, 8), other=nn.Linear(8, 8)), (x,), None, [(-x,)]


@model
def while_loop():
    def forward(m, count, x):
        return torch._higher_order_ops.while_loop(
            lambda c, t: c < 4, lambda c, t: (c + 1, m.net(t).relu() + t), (count, x))
    inputs = lambda n: (torch.tensor(n), torch.randn(2, 4))
    return Of(forward, net=nn.Linear(4, 4)), inputs(0), None, [inputs(3)]


@model
def scan():
    def forward(m, start, xs):
        return torch._higher_order_ops.scan(lambda c, x: (c * 0.5 + x, (c + x).sin()), start, xs)
    return Of(forward), (torch.randn(4), torch.randn(6, 4))


@model
def indexing():
    def forward(m, x, i):
        y = x.scatter_add(0, i[:, None].expand(3, 4), x.index_select(0, i))
        values, where = x.topk(2, dim=1)
        x2 = x.clone()
        x2[i] = 1.5
        third = x.kthvalue(3).values
        return y, values, where, x.gather(0, i[:, None].expand(3, 4)), x2, x.cumsum(0), x.argmax(1), third
    return Of(forward), (torch.randn(6, 4), torch.tensor([4, 0, 2]))


@model
def functions():
    def forward(m, x):
        y = F.grid_sample(x[None, None], torch.tanh(x[None, :, :2, None].expand(1, 6, 2, 2)), align_corners=False)
        inverse = torch.linalg.inv(x[:4, :4] + 4 * torch.eye(4))
        return (F.interpolate(x[None], scale_factor=1.5, mode="linear"), y, inverse, F.pad(x, (1, 2)),
                torch.erfinv(x.tanh()), F.avg_pool2d(x[None, None], 3), torch.cdist(x, x), F.glu(x, -1), x.logsumexp(0))
    return Of(forward), (torch.randn(6, 4),)


@model
def random():
    def forward(m, x):
        return (F.dropout(x, 0.5, training=True), torch.randn_like(x), torch.randint(0, 9, (4,)),
                torch.bernoulli(x.sigmoid()))
    return Of(forward), (torch.randn(3, 40),)


@model
def mutation():
    def forward(m, x, y):
        m.count.add_(1)
        y.mul_(2)
        m.mean.lerp_(x.mean(0), 0.1)
        return x + m.mean, m.count * 2, y.view(-1)
    return (Of(forward, count=torch.zeros(()), mean=torch.randn(4)), (torch.randn(3, 4), torch.randn(2, 2)), None,
            [(torch.randn(3, 4), torch.randn(2, 2))])


@model
def views():
    def forward(m, x):
        return x, x.t(), x[1:], m.table[2:], m.table.t(), torch.empty(0, 3), x.new_tensor(3.5), None
    return Of(forward, table=torch.randn(5, 4)), (torch.randn(3, 4),)


@model
def tied():
    net = nn.Sequential(nn.Embedding(12, 8), nn.Linear(8, 12, bias=False))
    net[1].weight = net[0].weight

    def forward(m, i):
        return m.net(i), m.part + m.whole.sum(), torch.tensor([1, 2, 3]) + i[:3], m.seen & (m.part > 0)
    both = Of(forward, net=net)
    both.register_buffer("whole", torch.randn(6, 4))
    both.register_buffer("part", both.whole[2:, 1])
    both.register_buffer("seen", torch.tensor([True, False, True, True]))
    return both, (torch.randint(0, 12, (5,)),)


@model
def pytrees():
    def forward(m, pair, table):
        return {"sum": pair[0] + pair[1], "many": [table["a"] * 2, (table["b"].t(),)]}
    return Of(forward), ((torch.randn(2, 3), torch.randn(3)), {"a": torch.randn(4), "b": torch.randn(2, 2)})


@model
def everything():
    """One of each kind of constant and of call: what an option may treat apart."""
    def forward(m, image, ids):
        y = m.head(m.body(image).flatten(1)) + m.table(ids).mean(1) @ m.scale.exp()
        m.seen.add_(y.detach().mean(0))
        values, where = y.sort(1)
        wave = torch.fft.rfft(y).abs()
        return (F.linear(y, m.table.weight[:6]), values, where, wave, y * m.part[:6].to(y.dtype) + m.halves.float(),
                m.mask & (y > 0), F.softmax(y.bfloat16() @ m.brain, -1), m.seen * 2, torch.randn_like(y),
                m.count + ids.sum())
    parts = {"body": nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1)),
             "head": nn.Linear(36, 6), "table": nn.Embedding(30, 6), "scale": torch.randn(6, 6), "seen": torch.zeros(6),
             "halves": torch.randn(6).half(), "mask": torch.rand(6) > 0.5, "brain": torch.randn(6, 8).bfloat16(),
             "count": torch.tensor(7), "part": torch.arange(40)[3:30:2], "empty": torch.empty(0, 4)}
    batch = Dim("batch", min=2, max=16)
    inputs = lambda n: (torch.randn(n, 3, 5, 5), torch.randint(0, 30, (n, 4)))
    return Of(forward, **parts), inputs(3), ({0: batch}, {0: batch}), [inputs(3), inputs(7)]
