"""Models of real size with random weights, in the fewest lines that give PyTorch's compiler the same operators and shapes
as the published ones. MODELS maps a name to a function that returns (module, inputs, options).

Options: `dtype` that the module and its floating inputs are converted to, `frozen` for Inductor's freezing, `quantise`: a
function that makes the module that is compiled of the module and its inputs.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

MODELS = {}


def model(name, **variants):
    """Registers a maker under NAME, and for each variant under NAME-VARIANT."""

    def register(make):
        MODELS[name] = lambda: (*make(), {})
        for variant, options in variants.items():
            MODELS[f"{name}-{variant}"] = lambda options=options: (*make(), options)
        return make

    return register


def static_int8(module, inputs):
    """Weights and activations in int8: PT2E, with a run over the inputs for the ranges."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(torch.export.export(module, inputs).module(), quantizer)
    prepared(*inputs)
    return convert_pt2e(prepared)


def weights_int8(module, inputs):
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    quantize_(module, Int8WeightOnlyConfig(set_inductor_config=False))
    return module


def weights_int4(module, inputs):
    from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig
    from torchao.quantization import quantize_

    quantize_(module, PrototypeInt4WeightOnlyConfig(group_size=32, set_inductor_config=False))
    return module


FROZEN = {"frozen": True}
BF16 = {"dtype": torch.bfloat16}
INT8 = {"frozen": True, "quantise": static_int8}
WEIGHTS_INT8 = {"dtype": torch.bfloat16, "frozen": True, "quantise": weights_int8}
WEIGHTS_INT4 = {"dtype": torch.bfloat16, "frozen": True, "quantise": weights_int4}


# Convolutional networks: one image of 224 x 224.


def conv(i, o, k=3, stride=1, groups=1, act=nn.ReLU):
    layers = [nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, act()) if act else nn.Sequential(*layers)


class Residual(nn.Module):
    def __init__(self, body, shortcut=None, act=None):
        super().__init__()
        self.body, self.shortcut, self.act = body, shortcut or nn.Identity(), act or nn.Identity()

    def forward(self, x):
        return self.act(self.shortcut(x) + self.body(x))


def classifier(channels):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def resnet(depths, bottleneck):
    layers = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    i = 64
    for stage, depth in enumerate(depths):
        for block in range(depth):
            c, stride = 64 << stage, 2 if stage and not block else 1
            o = c * 4 if bottleneck else c
            body = ([conv(i, c, 1), conv(c, c, 3, stride), conv(c, o, 1, act=None)] if bottleneck else
                    [conv(i, c, 3, stride), conv(c, o, 3, act=None)])
            shortcut = conv(i, o, 1, stride, act=None) if i != o or stride > 1 else None
            layers.append(Residual(nn.Sequential(*body), shortcut, nn.ReLU()))
            i = o
    return nn.Sequential(*layers, classifier(i)), (torch.randn(1, 3, 224, 224), )


@model("resnet18", bf16=BF16)
def resnet18():
    return resnet([2, 2, 2, 2], False)


@model("resnet50", frozen=FROZEN, int8=INT8)
def resnet50():
    return resnet([3, 4, 6, 3], True)


class Squeeze(nn.Module):
    def __init__(self, channels, squeezed):
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.up(F.silu(self.down(x.mean((2, 3), keepdim=True)))))


def inverted(i, o, expand, k, stride, act, squeeze):
    c = i * expand
    body = ([conv(i, c, 1, act=act)] if expand > 1 else []) + [conv(c, c, k, stride, c, act)]
    body += ([Squeeze(c, i // 4)] if squeeze else []) + [conv(c, o, 1, act=None)]
    body = nn.Sequential(*body)
    return Residual(body) if stride == 1 and i == o else body


def inverted_network(rows, first, last, act, squeeze):
    layers, i = [conv(3, first, 3, 2, act=act)], first
    for expand, o, depth, k, stride in rows:
        for block in range(depth):
            layers.append(inverted(i, o, expand, k, 1 if block else stride, act, squeeze))
            i = o
    return nn.Sequential(*layers, conv(i, last, 1, act=act), classifier(last)), (torch.randn(1, 3, 224, 224), )


@model("mobilenet-v2", frozen=FROZEN, int8=INT8)
def mobilenet_v2():
    rows = [(1, 16, 1, 3, 1), (6, 24, 2, 3, 2), (6, 32, 3, 3, 2), (6, 64, 4, 3, 2), (6, 96, 3, 3, 1),
            (6, 160, 3, 3, 2), (6, 320, 1, 3, 1)]
    return inverted_network(rows, 32, 1280, nn.ReLU6, False)


@model("efficientnet-b0", frozen=FROZEN)
def efficientnet_b0():
    rows = [(1, 16, 1, 3, 1), (6, 24, 2, 3, 2), (6, 40, 2, 5, 2), (6, 80, 3, 3, 2), (6, 112, 3, 5, 1),
            (6, 192, 4, 5, 2), (6, 320, 1, 3, 1)]
    return inverted_network(rows, 32, 1280, nn.SiLU, True)


class ChannelNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels, 1e-6)

    def forward(self, x):
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c, 1e-6)
        self.up, self.down, self.scale = nn.Linear(c, 4 * c), nn.Linear(4 * c, c), nn.Parameter(torch.full((c, ), .1))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


@model("convnext-t")
def convnext_t():
    layers, i = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96)], 96
    for stage, depth in enumerate([3, 3, 9, 3]):
        if stage:
            layers += [ChannelNorm(i), nn.Conv2d(i, 2 * i, 2, 2)]
            i *= 2
        layers += [ConvNextBlock(i) for _ in range(depth)]
    return nn.Sequential(*layers, classifier(i)), (torch.randn(1, 3, 224, 224), )


class UNetBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(8, i), nn.GroupNorm(8, o)])
        self.convs = nn.ModuleList([nn.Conv2d(i, o, 3, padding=1), nn.Conv2d(o, o, 3, padding=1)])
        self.shortcut = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x):
        y = x
        for norm, layer in zip(self.norms, self.convs):
            y = layer(F.silu(norm(y)))
        return self.shortcut(x) + y


class UNet(nn.Module):
    def __init__(self, widths=(64, 128, 256)):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, widths[0], 3, padding=1), nn.Conv2d(widths[0], 3, 3, padding=1)
        pairs = list(zip(widths, widths[1:]))
        self.blocks = nn.ModuleList([UNetBlock(w, w) for w in widths])
        self.downs = nn.ModuleList([nn.Conv2d(i, o, 3, 2, 1) for i, o in pairs])
        self.ups = nn.ModuleList([UNetBlock(i + o, i) for i, o in reversed(pairs)])

    def forward(self, x):
        x, kept = self.first(x), []
        for block, down in zip(self.blocks, [*self.downs, None]):
            x = block(x)
            if down is not None:
                kept.append(x)
                x = down(x)
        for up in self.ups:
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = up(torch.cat([x, kept.pop()], 1))
        return self.last(F.silu(x))


@model("unet")
def unet():
    return UNet(), (torch.randn(1, 3, 96, 96), )


class Vocoder(nn.Module):
    """HiFi-GAN's second generator: transposed convolutions, then residual blocks of dilated ones."""

    def __init__(self, c=128):
        super().__init__()
        self.first, self.ups, self.blocks = nn.Conv1d(80, c, 7, padding=3), nn.ModuleList(), nn.ModuleList()
        for k, stride in ((16, 8), (16, 8), (4, 2), (4, 2)):
            self.ups.append(nn.ConvTranspose1d(c, c // 2, k, stride, (k - stride) // 2))
            c //= 2
            self.blocks.append(
                nn.ModuleList([
                    nn.Sequential(*[
                        Residual(
                            nn.Sequential(nn.LeakyReLU(.1), nn.Conv1d(c, c, k, padding=d * (k // 2), dilation=d),
                                          nn.LeakyReLU(.1), nn.Conv1d(c, c, k, padding=k // 2))) for d in (1, 3, 5)
                    ]) for k in (3, 7, 11)
                ]))
        self.last = nn.Conv1d(c, 1, 7, padding=3)

    def forward(self, x):
        x = self.first(x)
        for up, blocks in zip(self.ups, self.blocks):
            x = up(F.leaky_relu(x, .1))
            x = sum(block(x) for block in blocks) / len(blocks)
        return torch.tanh(self.last(F.leaky_relu(x)))


@model("vocoder")
def vocoder():
    return Vocoder(), (torch.randn(1, 80, 64), )


# Transformers.


def heads(x, count):
    return x.unflatten(-1, (count, -1)).transpose(-3, -2)


class SelfAttention(nn.Module):
    def __init__(self, width, count, bias=True):
        super().__init__()
        self.count, self.qkv, self.out = count, nn.Linear(width, 3 * width, bias), nn.Linear(width, width, bias)

    def forward(self, x, mask=None, scale=None):
        q, k, v = (heads(part, self.count) for part in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
        return self.out(y.transpose(-3, -2).flatten(-2))


class Mlp(nn.Sequential):
    def __init__(self, width, inner):
        super().__init__(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))


class PreNorm(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention, self.mlp = SelfAttention(width, count), Mlp(width, 4 * width)

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class Vit(nn.Module):
    def __init__(self, width, count, depth=12):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token, self.places = nn.Parameter(torch.randn(1, 1, width)), nn.Parameter(torch.randn(1, 197, width))
        self.blocks = nn.Sequential(*[PreNorm(width, count) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


@model("vit-s16")
def vit_s16():
    return Vit(384, 6), (torch.randn(1, 3, 224, 224), )


@model("vit-b16")
def vit_b16():
    return Vit(768, 12), (torch.randn(1, 3, 224, 224), )


def windows(x, size):  # [B, H, W, C] to [B * windows, size * size, C]
    b, h, w, c = x.shape
    return x.view(b, h // size, size, w // size, size, c).transpose(2, 3).reshape(-1, size * size, c)


class SwinBlock(nn.Module):
    def __init__(self, width, count, side, shift, size=7):
        super().__init__()
        self.size, self.shift, self.side = size, shift if side > size else 0, side
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention, self.mlp = SelfAttention(width, count), Mlp(width, 4 * width)
        self.table = nn.Parameter(torch.randn((2 * size - 1)**2, count) * .02)
        y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        y, x = y.flatten(), x.flatten()
        self.register_buffer("index", (y[:, None] - y + size - 1) * (2 * size - 1) + x[:, None] - x + size - 1)
        part = torch.zeros(side)
        if self.shift:
            part[-size:], part[-self.shift:] = 1, 2
        ids = windows((part[:, None] * 3 + part)[None, :, :, None], size)[..., 0]
        self.register_buffer("mask", torch.where(ids[:, :, None] == ids[:, None], 0., -100.)[:, None])

    def forward(self, x):
        side, size = self.side, self.size
        y = self.norms[0](x).view(-1, side, side, x.shape[-1])
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        bias = self.table[self.index.flatten()].view(size**2, size**2, -1).permute(2, 0, 1)
        y = self.attention(windows(y, size), self.mask + bias)
        y = y.view(-1, side // size, side // size, size, size, x.shape[-1]).transpose(2, 3).reshape(-1, side, side,
                                                                                                    x.shape[-1])
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y.flatten(1, 2)
        return x + self.mlp(self.norms[1](x))


class Merge(nn.Module):
    def __init__(self, width, side):
        super().__init__()
        self.side, self.norm, self.reduce = side, nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x):
        x = x.view(-1, self.side // 2, 2, self.side // 2, 2, x.shape[-1]).permute(0, 1, 3, 4, 2, 5)
        return self.reduce(self.norm(x.flatten(3).flatten(1, 2)))


class Swin(nn.Module):
    def __init__(self, width=96, depths=(2, 2, 6, 2), side=56):
        super().__init__()
        self.patches, layers = nn.Conv2d(3, width, 4, 4), []
        for stage, depth in enumerate(depths):
            if stage:
                layers.append(Merge(width, side))
                width, side = 2 * width, side // 2
            layers += [SwinBlock(width, width // 32, side, 3 * (block % 2)) for block in range(depth)]
        self.first, self.blocks = nn.LayerNorm(self.patches.out_channels), nn.Sequential(*layers)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.blocks(self.first(self.patches(x).flatten(2).transpose(1, 2)))
        return self.head(self.norm(x).mean(1))


@model("swin-t")
def swin_t():
    return Swin(), (torch.randn(1, 3, 224, 224), )


class Bert(nn.Module):
    def __init__(self, depth, width=768, vocabulary=30522):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(512, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2 * depth + 1)])
        self.projections = nn.ModuleList([nn.Linear(width, width) for _ in range(4 * depth)])
        self.mlps = nn.ModuleList([Mlp(width, 4 * width) for _ in range(depth)])
        self.count = width // 64

    def forward(self, tokens, mask):
        x = self.norms[0](self.words(tokens) + self.places.weight[:tokens.shape[1]])
        mask = torch.where(mask[:, None, None] > 0, 0., -1e4).to(x.dtype)
        for i, mlp in enumerate(self.mlps):
            q, k, v, out = self.projections[4 * i:4 * i + 4]
            q, k, v = (heads(f(x), self.count) for f in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = self.norms[2 * i + 1](x + out(y.transpose(1, 2).flatten(2)))
            x = self.norms[2 * i + 2](x + mlp(x))
        return x


def tokens(count, vocabulary):
    return torch.randint(vocabulary, (1, count))


@model("bert-base", frozen=FROZEN, bf16=BF16)
def bert_base():
    return Bert(12), (tokens(128, 30522), torch.ones(1, 128, dtype=torch.int64))


@model("distilbert", int8=INT8)
def distilbert():
    return Bert(6), (tokens(128, 30522), torch.ones(1, 128, dtype=torch.int64))


class RowMajor(nn.Module):
    """GPT-2's linear layer, whose weight is [in, out]."""

    def __init__(self, i, o):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(i, o) * .02), nn.Parameter(torch.zeros(o))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


class Gpt2(nn.Module):
    def __init__(self, depth=12, width=768, vocabulary=50257):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2 * depth + 1)])
        shapes = ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))
        self.layers = nn.ModuleList([RowMajor(*shape) for _ in range(depth) for shape in shapes])
        self.count = width // 64

    def forward(self, ids):
        x = self.words(ids) + self.places.weight[:ids.shape[1]]
        for i in range(len(self.layers) // 4):
            qkv, out, up, down = self.layers[4 * i:4 * i + 4]
            q, k, v = (heads(part, self.count) for part in qkv(self.norms[2 * i](x)).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + out(y.transpose(1, 2).flatten(2))
            x = x + down(F.gelu(up(self.norms[2 * i + 1](x)), approximate="tanh"))
        return self.norms[-1](x) @ self.words.weight.t()


@model("gpt2")
def gpt2():
    return Gpt2(), (tokens(128, 50257), )


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.weight


class T5Encoder(nn.Module):
    def __init__(self, depth=12, width=768, inner=3072, vocabulary=32128):
        super().__init__()
        self.words, self.bias, self.count = nn.Embedding(vocabulary, width), nn.Embedding(32, width // 64), width // 64
        self.norms = nn.ModuleList([RmsNorm(width) for _ in range(2 * depth + 1)])
        self.projections = nn.ModuleList([nn.Linear(width, width, bias=False) for _ in range(4 * depth)])
        self.ups = nn.ModuleList([nn.Linear(width, inner, bias=False) for _ in range(depth)])
        self.downs = nn.ModuleList([nn.Linear(inner, width, bias=False) for _ in range(depth)])

    def buckets(self, n):
        distance = torch.arange(n)[None] - torch.arange(n)[:, None]
        far = 8 + (torch.log(distance.abs().clamp(min=1) / 8) / math.log(16) * 8).long()
        return torch.where(distance > 0, 16, 0) + torch.where(distance.abs() < 8, distance.abs(), far.clamp(max=15))

    def forward(self, ids):
        x = self.words(ids)
        bias = self.bias(self.buckets(ids.shape[1])).permute(2, 0, 1)[None]
        for i, (up, down) in enumerate(zip(self.ups, self.downs)):
            q, k, v, out = self.projections[4 * i:4 * i + 4]
            y = self.norms[2 * i](x)
            q, k, v = (heads(f(y), self.count) for f in (q, k, v))
            y = torch.softmax((q @ k.transpose(-1, -2)) + bias, -1) @ v
            x = x + out(y.transpose(1, 2).flatten(2))
            x = x + down(F.relu(up(self.norms[2 * i + 1](x))))
        return self.norms[-1](x)


@model("t5-encoder")
def t5_encoder():
    return T5Encoder(), (tokens(128, 32128), )


class Llama(nn.Module):
    """With `cache` positions held in buffers, or, without, over all tokens at once."""

    def __init__(self, cache=0, depth=6, width=1024, count=16, kv=8, inner=2816, vocabulary=32000):
        super().__init__()
        self.count, self.kv, self.cache, side = count, kv, cache, width // count
        self.words, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary, bias=False)
        self.norms = nn.ModuleList([RmsNorm(width) for _ in range(2 * depth + 1)])
        shapes = ((width, width), (width, kv * side), (width, kv * side), (width, width), (width, inner),
                  (width, inner), (inner, width))
        self.layers = nn.ModuleList([nn.Linear(*shape, bias=False) for _ in range(depth) for shape in shapes])
        angles = torch.arange(2048)[:, None] / 10000**(torch.arange(0, side, 2) / side)
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1))
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, -1))
        for i in range(depth if cache else 0):
            self.register_buffer(f"keys{i}", torch.randn(1, kv, cache, side))
            self.register_buffer(f"values{i}", torch.randn(1, kv, cache, side))

    def rotate(self, x, at):
        a, b = x.chunk(2, -1)
        return x * self.cos[at] + torch.cat([-b, a], -1) * self.sin[at]

    def forward(self, ids, at):
        x = self.words(ids)
        mask = (torch.arange(self.cache, device=at.device) <= at[:, None]) if self.cache else None
        for i in range(len(self.layers) // 7):
            q, k, v, out, gate, up, down = self.layers[7 * i:7 * i + 7]
            y = self.norms[2 * i](x)
            q = self.rotate(heads(q(y), self.count), at)
            k, v = self.rotate(heads(k(y), self.kv), at), heads(v(y), self.kv)
            if self.cache:
                keys, values = getattr(self, f"keys{i}"), getattr(self, f"values{i}")
                keys.index_copy_(2, at, k)
                values.index_copy_(2, at, v)
                k, v = keys, values
            k, v = (t.repeat_interleave(self.count // self.kv, 1) for t in (k, v))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
            x = x + out(y.transpose(1, 2).flatten(2))
            y = self.norms[2 * i + 1](x)
            x = x + down(F.silu(gate(y)) * up(y))
        return self.head(self.norms[-1](x))


@model("llama-prefill", bf16=BF16)
def llama_prefill():
    return Llama(), (tokens(128, 32000), torch.arange(128))


@model("llama-decode", bf16=BF16, w8=WEIGHTS_INT8, w4=WEIGHTS_INT4)
def llama_decode():
    return Llama(cache=512), (tokens(1, 32000), torch.tensor([500]))


# The rest.


def mlp(*widths):
    layers = [layer for i, o in zip(widths, widths[1:]) for layer in (nn.Linear(i, o), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


class Dlrm(nn.Module):
    def __init__(self, tables=26, rows=50000, width=64):
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables)])
        self.bottom, features = mlp(13, 512, 256, width), tables + 1
        self.top = mlp(features * (features - 1) // 2 + width, 512, 256, 1)
        self.register_buffer("pairs", torch.tril_indices(features, features, -1))

    def forward(self, dense, ids):
        x = F.relu(self.bottom(dense))
        features = torch.stack([x, *[table(ids[i]) for i, table in enumerate(self.tables)]], 1)
        products = torch.bmm(features, features.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return torch.sigmoid(self.top(torch.cat([x, products], 1)))


@model("dlrm")
def dlrm():
    return Dlrm(), (torch.randn(128, 13), torch.randint(50000, (26, 128, 4)))


class LstmLanguageModel(nn.Module):
    def __init__(self, width=512, vocabulary=10000):
        super().__init__()
        self.words, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.layers = nn.LSTM(width, width, 2, batch_first=True)

    def forward(self, ids):
        return self.head(self.layers(self.words(ids))[0])


@model("lstm-lm", frozen=FROZEN)
def lstm_lm():
    return LstmLanguageModel(), (tokens(64, 10000), )
