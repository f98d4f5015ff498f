"""The models of models.py: NAME -> a function that returns (module, inputs), inputs(batch) -> tensors whose first dimension is
the batch. Small, but with what decides between kernels: odd heads, split keys, groups, layouts, sorts, sums over and
beside the batch."""
import torch
import torch.nn.functional as F
from parts_module import Of
from torch import nn

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


def randn(*shape, dtype=torch.float32):
    return lambda b: [torch.randn(b, *shape).to(dtype)]


def heads(count, size, tokens, dtype=torch.float32, **options):
    """Attention over one packed projection, as in vision transformers."""
    width = count * size

    def forward(m, x):
        b = x.shape[0]
        q, k, v = m.qkv(x).view(b, tokens, 3, count, size).permute(2, 0, 3, 1, 4)
        return m.out(F.scaled_dot_product_attention(q, k, v, **options).transpose(1, 2).reshape(b, tokens, width))
    return Of(forward, qkv=nn.Linear(width, 3 * width), out=nn.Linear(width, width)).to(dtype), randn(tokens, width, dtype=dtype)


@model
def attention_keys_in_parts():
    return heads(3, 48, 730)


@model
def attention_odd_heads():
    return heads(5, 20, 33)


@model
def attention_causal_bfloat16():
    return heads(7, 24, 65, torch.bfloat16, is_causal=True)


@model
def attention_half_long():
    return heads(2, 64, 1100, torch.float16)


@model
def attention_wide_heads():
    return heads(2, 160, 129)


@model
def attention_mask():
    def forward(m, x, lengths):
        b = x.shape[0]
        q, k, v = m.qkv(x).view(b, 50, 3, 4, 16).permute(2, 0, 3, 1, 4)
        mask = (torch.arange(50, device=x.device) < lengths[:, None])[:, None, None]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)
    return Of(forward, qkv=nn.Linear(64, 192)), lambda b: [torch.randn(b, 50, 64), torch.randint(1, 51, (b,))]


@model
def attention_grouped_half():
    def forward(m, x, memory):
        b = x.shape[0]
        q = m.q(x).view(b, 1, 8, 64).transpose(1, 2)
        k, v = m.kv(memory).view(b, 700, 2, 2, 64).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True).flatten(1)
    net = Of(forward, q=nn.Linear(64, 512), kv=nn.Linear(64, 256)).half()
    return net, lambda b: [torch.randn(b, 1, 64).half(), torch.randn(b, 700, 64).half()]


@model
def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(48, 3, 96, batch_first=True, norm_first=True), 2, enable_nested_tensor=False), randn(37, 48)


@model
def embedding_transformer():
    def forward(m, ids):
        x = m.table(ids) + m.place(torch.arange(ids.shape[1], device=ids.device))
        return m.head(m.layer(x)).log_softmax(-1)
    net = Of(forward, table=nn.Embedding(500, 40), place=nn.Embedding(24, 40), layer=nn.TransformerEncoderLayer(40, 5, 80, batch_first=True), head=nn.Linear(40, 500))
    return net, lambda b: [torch.randint(0, 500, (b, 24))]


@model
def mlp():
    return nn.Sequential(nn.Linear(16, 129), nn.GELU(), nn.Linear(129, 32, bias=False), nn.LayerNorm(32), nn.Linear(32, 5), nn.Softmax(-1)), randn(16)


@model
def mlp_bfloat16():
    return nn.Sequential(nn.Linear(72, 200), nn.SiLU(), nn.Linear(200, 72), nn.LayerNorm(72)).bfloat16(), randn(72, dtype=torch.bfloat16)


@model
def mlp_float64():
    return nn.Sequential(nn.Linear(9, 33), nn.Tanh(), nn.Linear(33, 4)).double(), randn(9, dtype=torch.float64)


@model
def convnet():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, stride=2, groups=4), nn.SiLU(),
                         nn.ConvTranspose2d(8, 4, 3), nn.Conv2d(4, 8, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()), randn(3, 17, 19)


@model
def depthwise_half():
    return nn.Sequential(nn.Conv2d(12, 12, 5, padding=2, groups=12), nn.GELU(), nn.Conv2d(12, 24, 1), nn.GroupNorm(3, 24), nn.AvgPool2d(3, 2, 1)).half().to(
        memory_format=torch.channels_last), lambda b: [torch.randn(b, 12, 14, 14).half().to(memory_format=torch.channels_last)]


@model
def conv1d():
    return nn.Sequential(nn.Conv1d(4, 16, 5, padding=2, dilation=1), nn.ReLU(), nn.MaxPool1d(3, 2), nn.Conv1d(16, 8, 3, groups=2), nn.Flatten()), randn(4, 51)


@model
def conv3d():
    return nn.Sequential(nn.Conv3d(2, 6, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2), nn.ConvTranspose3d(6, 3, 2, stride=2)), randn(2, 6, 8, 10)


@model
def lstm():
    return Of(lambda m, x: m.net(x)[0], net=nn.LSTM(8, 12, num_layers=2, bidirectional=True, batch_first=True)), randn(9, 8)


@model
def gru():
    return Of(lambda m, x: m.net(x)[0], net=nn.GRU(7, 16, batch_first=True)), randn(11, 7)


@model
def group_norm():
    return nn.Sequential(nn.GroupNorm(4, 12), nn.SiLU(), nn.Conv2d(12, 12, 3, padding=1), nn.InstanceNorm2d(12, affine=True), nn.GroupNorm(1, 12)), randn(12, 15, 13)


@model
def norms():
    def forward(m, x):
        return F.rms_norm(x, (65,), m.weight), F.layer_norm(x, (33, 65)), x.softmax(0), x.log_softmax(1), x.std(1), x.var(0, correction=0)
    return Of(forward, weight=torch.rand(65) + 0.5), randn(33, 65)


@model
def scatters():
    def forward(m, x, at):
        out = torch.zeros(x.shape[0], 20, device=x.device)
        return (out.scatter_add(1, at, x), out.scatter_reduce(1, at, x, "amax", include_self=False), out.scatter_reduce(1, at, x, "mean"),
                x.gather(1, at % 30), out.index_add(1, at[0] % 20, x), torch.index_put(x, (torch.arange(x.shape[0], device=x.device)[:, None], at), x, accumulate=True))
    return Of(forward), lambda b: [torch.randn(b, 30), torch.randint(0, 20, (b, 30))]


@model
def message_passing():
    def forward(m, nodes, edges):
        batch = nodes.shape[0]
        place = (edges + torch.arange(batch, device=edges.device)[:, None, None] * 25).flatten(0, 1)
        flat = m.up(nodes).flatten(0, 1)
        sums = torch.zeros_like(flat).index_add(0, place[:, 1], flat[place[:, 0]])
        most = torch.zeros_like(flat).scatter_reduce(0, place[:, 1:].expand(-1, 16), flat[place[:, 0]], "amax", include_self=False)
        return (sums + most).view(batch, 25, 16)
    return Of(forward, up=nn.Linear(6, 16)), lambda b: [torch.randn(b, 25, 6), torch.randint(0, 25, (b, 80, 2))]


@model
def top():
    def forward(m, x):
        values, at = x.topk(7, -1)
        less, where = x.topk(3, 1, largest=False)
        return values, at, less, where, x.argmax(-1), x.amin(1), x.flatten(1).topk(2)[0]
    return Of(forward), randn(11, 2500)


@model
def order():
    def forward(m, x):
        values, at = torch.sort(x, dim=-1, descending=True, stable=True)
        return values, at, torch.argsort(x, dim=1, stable=True), x.kthvalue(5, -1)[0], x.median(-1)[0], x.flatten().sort()[0]
    return Of(forward), randn(5, 1100)


@model
def scans():
    def forward(m, x):
        return x.cumsum(-1), x.cumsum(0), (1 + 0.01 * x).cumprod(1), x.cummax(-1)[0], x.cummin(1)[1], x.logcumsumexp(-1)
    return Of(forward), randn(40, 67)


@model
def long_scan():
    return Of(lambda m, x: (x.cumsum(-1), x.cummax(-1)[1])), randn(20000)


@model
def pools():
    def forward(m, x):
        y, at = F.max_pool2d(x, 2, return_indices=True)
        return (F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 1, 1), F.avg_pool2d(x, (2, 3), ceil_mode=True, count_include_pad=False), F.adaptive_avg_pool2d(x, (5, 7)),
                F.adaptive_max_pool2d(x, 3), F.max_unpool2d(y, at, 2, output_size=(18, 22)), F.lp_pool2d(x.abs() + 0.1, 2, 3))
    return Of(forward), randn(6, 18, 22)


@model
def resizes():
    def forward(m, x):
        return (F.interpolate(x, scale_factor=2), F.interpolate(x, (9, 31), mode="bilinear"), F.interpolate(x, (20, 20), mode="bicubic", align_corners=True),
                F.interpolate(x, (7, 5), mode="bilinear", antialias=True), F.interpolate(x, (5, 4), mode="area"))
    return Of(forward), randn(3, 14, 15)


@model
def grid_sample():
    return Of(lambda m, x, g: (F.grid_sample(x, g, align_corners=False), F.grid_sample(x, g, padding_mode="border", align_corners=True))), lambda b: [
        torch.randn(b, 3, 9, 11), torch.rand(b, 6, 5, 2) * 2.4 - 1.2]


@model
def int8_dynamic():
    """One scale per row."""
    def forward(m, x):
        scale = x.abs().amax(-1, True) / 127 + 1e-6
        whole = (x / scale).round().clamp(-127, 127)
        return (whole @ m.weight.float()) * scale * m.by
    return Of(forward, weight=torch.randint(-127, 128, (64, 48), dtype=torch.int8), by=torch.rand(48) * 0.01), randn(64)


@model
def int8_of_all():
    """One scale for the batch, so rows change each other's results, as in PyTorch."""
    def forward(m, x):
        scale = x.abs().amax() / 127
        return ((x / scale).round() @ m.weight) * scale
    return Of(forward, weight=torch.randn(64, 16).round()), randn(64)


@model
def transforms():
    def forward(m, x):
        z = torch.fft.rfft(x, dim=-1)
        w = torch.fft.fft2(torch.complex(x, x.flip(-1)))
        return torch.view_as_real(z), torch.fft.irfft(z * m.filter, n=60), w.abs(), torch.fft.ifft(w, dim=1).imag
    return Of(forward, filter=torch.rand(31)), randn(9, 60)


@model
def complex_numbers():
    def forward(m, x):
        z = torch.view_as_complex(x)
        y = z * m.by + z.conj()
        return torch.view_as_real(y @ m.turn), y.abs(), torch.polar(y.abs(), y.angle()).real
    return Of(forward, by=torch.randn(6, dtype=torch.complex64), turn=torch.randn(6, 4, dtype=torch.complex64)), randn(5, 6, 2)


@model
def branches():
    def forward(m, x):
        return torch.cond(x.mean() > 0, lambda v: m.up(v), lambda v: m.down(v) * 2, (x,))
    return Of(forward, up=nn.Linear(8, 8), down=nn.Linear(8, 8)), randn(8)


@model
def algebra():
    def forward(m, x):
        s = x @ x.mT + 4 * torch.eye(6, device=x.device, dtype=x.dtype)
        return torch.linalg.cholesky(s), torch.linalg.solve(s, x), torch.linalg.inv(s), torch.linalg.det(s / 8), torch.linalg.eigvalsh(s)
    return Of(forward), randn(6, 6)


@model
def bags():
    def forward(m, ids):
        flat, cuts = ids.flatten(), torch.arange(0, ids.shape[0] * ids.shape[1], ids.shape[1], device=ids.device)
        return m.sums(flat, cuts), m.most(ids), m.mean(ids), m.table(ids)
    return Of(forward, sums=nn.EmbeddingBag(60, 33, mode="sum"), most=nn.EmbeddingBag(60, 8, mode="max"), mean=nn.EmbeddingBag(60, 8, mode="mean", padding_idx=3),
              table=nn.Embedding(60, 5, padding_idx=0)), lambda b: [torch.randint(0, 60, (b, 12))]


@model
def searches():
    def forward(m, x):
        return torch.searchsorted(m.edges, x), torch.bucketize(x, m.edges, right=True), torch.histc(x, 20, -3, 3), (x > 0).sum(0), torch.where(x > 1, x, -x)
    return Of(forward, edges=torch.linspace(-3, 3, 41)), randn(13, 30)


@model
def distances():
    return Of(lambda m, x: (torch.cdist(x, m.others), torch.cdist(x, x, p=1.0)), others=torch.randn(1, 20, 7)), randn(31, 7)


@model
def products():
    def forward(m, x, y):
        return torch.einsum("bij,bkj->bik", x, y), torch.bmm(x, y.mT), torch.baddbmm(m.bias, x, y.mT, beta=0.5, alpha=2), x.flatten(1) @ m.weight
    return Of(forward, bias=torch.randn(9, 12), weight=torch.randn(9 * 17, 31)), lambda b: [torch.randn(b, 9, 17), torch.randn(b, 12, 17)]


@model
def moves():
    def forward(m, x):
        return (x.roll((1, -2), (0, 2)), x.flip(0, 1), torch.cat([x, x.transpose(1, 2).reshape(x.shape)], 0), F.pad(x, (1, 2, 3, 0), mode="reflect"), F.pad(x, (2, 1), value=3.0),
                F.unfold(x[:, None], 3), x.repeat_interleave(2, 1), x.repeat(2, 1, 3), torch.stack([x, -x], 1), x.tril(), torch.nn.functional.one_hot(x.argmax(-1), 10))
    return Of(forward), randn(8, 10)


@model
def rounded():
    def forward(m, x):
        grid = ((x / m.scale[:, None]).round() + m.zero[:, None]).clamp(-128, 127)
        return (grid.to(torch.int8), (grid - m.zero[:, None]) * m.scale[:, None], x.round(decimals=1),
                x.half().float(), x.to(torch.int32), (x * 30).to(torch.int8))
    return Of(forward, scale=torch.rand(6) * 0.1 + 0.01, zero=torch.zeros(6, dtype=torch.int32)), randn(6, 20)


@model
def batch_norm_of_batch():
    """Statistics of the batch."""
    return Of(lambda m, x: F.batch_norm(x, None, None, m.weight, None, training=True), weight=torch.rand(7) + 0.5), randn(7, 9, 5)
