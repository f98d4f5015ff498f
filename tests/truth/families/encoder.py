"""The fused layers of PyTorch's transformer encoder, called by name: src/cpu/layers/encoder.cpp over products, softmax, norms.

Compared with ATen's operators in float64; errors may grow with the scores. Varies masks (of positions, of keys, of both:
types 0, 1, 2), weights returned or averaged or not, norm first or last, gelu or relu.
"""
import torch

import abi
import case

DEVICES = ("cpu",)
LAYOUTS = ("packed", "packed", "permuted", "sliced", "offset", "padded")


def draw(d):
    dtype = d.choice((torch.float32, torch.float32, torch.float64, torch.bfloat16))
    heads, depth = d.choice((1, 2, 3, 4, 8)), d.size(1, 8, 16, 24, low=1, high=40)
    batch, tokens, width = d.size(1, 2, low=1, high=9), d.size(1, 8, 16, 64, low=1, high=80), heads * depth
    while batch * tokens * width * (width + tokens) > 1 << 22:
        tokens, batch = (tokens + 1) // 2, (batch + 1) // 2
        depth, width = max(1, depth // 2), heads * max(1, depth // 2)
    t = lambda *shape: d.tensor(dtype, shape, "normal", LAYOUTS)
    w = lambda *shape: d.laid_out((d.values(torch.float32, shape) / shape[-1] ** 0.5).to(dtype), ("packed", "packed", "permuted", "sliced"))
    op = d.choice(("rescale", "attention", "attention", "encoder"))
    label = f"{dtype} B {batch} T {tokens} H {heads} D {width}"
    if op == "rescale":
        qkv, bias = t(batch, tokens, 3 * width), t(3 * width)
        return case.named(label, "_transform_bias_rescale_qkv", "", qkv, bias, heads, error=4,
                          magnitude=lambda q, b, h: [p.abs() for p in torch.ops.aten._transform_bias_rescale_qkv(q.abs(), b.abs(), h)])
    mask = kind = None
    if d.chance(0.5):
        kind = d.choice((0, 1, 2))
        shape = {0: (tokens, tokens), 1: (batch, tokens), 2: (batch, heads, tokens, tokens)}[kind]
        hidden = torch.rand(shape, generator=d.torch) < d.choice((0.1, 0.5))
        hidden[..., d.randrange(tokens)] = False  # at least one is visible
        mask = hidden
    weights = [w(3 * width, width), t(3 * width), w(width, width), t(width)]
    if op == "attention":
        x = t(batch, tokens, width)
        same = d.chance(0.5)
        k, v = (x, x) if same else (t(batch, tokens, width), t(batch, tokens, width))
        need, average = d.chance(0.5), d.chance(0.5)
        arguments = [x, k, v, width, heads, *weights, mask, need, average, kind]
        name, wanted = "_native_multi_head_attention", 2 if need else 1
    else:
        inner = d.size(8, 32, low=1, high=100)
        norms = [t(width), t(width), t(width), t(width)]
        arguments = [t(batch, tokens, width), width, heads, *weights, d.chance(0.5), d.chance(0.5), 1e-5, *norms, w(inner, width), t(inner),
                     w(width, inner), t(width), mask, kind]
        name, wanted = "_transformer_encoder_layer_fwd", 1
    operator = getattr(torch.ops.aten, name)

    def run(*v):
        results = operator(*v)
        return list(results[:wanted]) if isinstance(results, tuple) else [results]
    # Unit vectors and weights of unit rows give scores that are nearly normal; norms and products keep that size. Left
    # out: layer norms of one or two features, which divide by their difference, however small it is.
    if op == "encoder" and width < 4:
        return None
    size = (1 + tokens ** 0.5) * (30 if op == "encoder" else 8)
    return case.Case(f"{name} {label} mask {kind} {[a for a in arguments if isinstance(a, bool)]}",
                     lambda *v: abi.call_named(name, "", *v)[:wanted], run, arguments, error=8 + width ** 0.5, strides=False, slack=6,
                     magnitude=lambda *v: [torch.full((), size, dtype=torch.float64)] * wanted)
