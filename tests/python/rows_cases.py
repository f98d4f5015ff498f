"""Models of which is known whether the rows of a batch influence each other, for test_rows.py: `python rows_cases.py` prints a line
of JSON for each. It runs in any Python with torch (SCONCE_TORCH_PYTHON), which need not have pytest.
"""
import json
import re
import sys
import traceback

import pure

import torch

from sconce import _rows

F = torch.nn.functional
CASES = {}


def independent(*inputs, **more):
    """inputs: shapes of floats; a tensor is taken as it is. The first dimension of each is the batch."""
    return added(None, inputs, **more)


def refused(operator, *inputs, **more):
    return added(operator, inputs, **more)


def added(operator, inputs, length=None):
    """length: dimension 1 of the inputs is dynamic too, at these inputs."""
    def kept(function):
        module = function() if isinstance(function, type) else Function(function)
        CASES[function.__name__] = module, [torch.rand(3, *one) if isinstance(one, tuple) else one for one in inputs], operator, length or ()
        return function
    return kept


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.weight = torch.nn.Parameter(torch.randn(8, 8))
        self.table = torch.nn.Parameter(torch.randn(50, 8))

    def forward(self, *given):
        return self.function(self, *given)


IDS = torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1], [7, 7, 0, 1]])
PLACES = torch.tensor([0, 2, 1])


@independent((8,))
def scores(m, x):
    return (x @ m.weight).softmax(1)


@independent((5, 8), length=(0,))
def tokens_of_any_length(m, x):
    """[B, T, 8] is a matrix of B * T rows while it is multiplied."""
    return torch.addmm(m.weight[0], x.reshape(-1, 8), m.weight).view(x.shape)


@independent((5, 8))
class attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x)[0]


@independent((5, 8))
class recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = torch.nn.GRU(8, 8, batch_first=True)
        self.lstm = torch.nn.LSTM(8, 8, bidirectional=True)

    def forward(self, x):
        return self.lstm(self.gru(x)[0].transpose(0, 1))[0].transpose(0, 1)


@independent((4, 6, 6))
class pictures(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(4, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.InstanceNorm2d(8, affine=True), torch.nn.GroupNorm(2, 8), torch.nn.Upsample(scale_factor=2),
            torch.nn.PixelShuffle(2), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())

    def forward(self, x):
        return self.layers(x)


@independent(IDS, PLACES)
def last_token(m, ids, last):
    """The number of a row takes the row itself."""
    return m.table[ids][torch.arange(ids.shape[0]), last]


@independent((4, 8), PLACES)
def one_written_place(m, x, at):
    x = x.clone()
    x[torch.arange(x.shape[0]), at] = 0
    return x


@independent((2, 6, 6), (3, 2, 3, 3))
def weights_of_each_row(m, x, w):
    """A convolution with a group for each row."""
    y = F.conv2d(x.reshape(1, -1, 6, 6), w.reshape(-1, 2, 3, 3), groups=x.shape[0])
    return y.view(x.shape[0], 3, 4, 4)


@independent((8,))
def with_and_without_guidance(m, x):
    """Two batches beside each other, as diffusion models take them."""
    both = torch.cat([x, torch.zeros_like(x)]) @ m.weight
    a, b = both[:x.shape[0]], both[x.shape[0]:]
    return b + 7.5 * (a - b)


@independent(IDS)
class bags(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = torch.nn.EmbeddingBag(50, 8, mode="sum")

    def forward(self, ids):
        return self.bag(ids)


@independent((4, 4))
def matrices(m, x):
    return torch.linalg.inv(x + 4 * torch.eye(4)), torch.linalg.eigh(x @ x.mT)[0]


@independent((5, 8))
def scans_within_rows(m, x):
    return x.cumsum(1), x.sort(2)[0].flip(1), x.topk(2, 1)[1]


@independent((8,))
def positions(m, x):
    return x + torch.zeros(x.shape[0], 1) + m.weight[:1].expand(x.shape[0], -1)


@independent((8,), None)
def without_an_option(m, x, mask):
    return x if mask is None else x * mask


@refused("aten.empty_permuted", (8,))
def unwritten_memory(m, x):
    return x + torch.empty_like(m.weight[0])


@independent((8,))
def quiet(m, x):
    with torch.no_grad():
        y = x * 2
    with torch.autocast("cpu", enabled=False):
        return y @ m.weight


@refused("aten.cumsum", (8,))
def router_with_capacity(m, x):
    """A switch router: which tokens are dropped depends on the rows before."""
    expert = F.one_hot((x @ m.weight).argmax(1), 8)
    place = expert.cumsum(0)
    return x * ((place <= 24) & (expert > 0)).any(1, keepdim=True)


@refused("aten.minimum", (4,), ())
def fast_nms(m, boxes, scores):
    """Every box is compared with every other."""
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    size = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    both = (high - low).clamp(min=0).prod(2)
    iou = both / (size[:, None] + size[None] - both)
    return scores * ~((iou > 0.7) & (scores[None] > scores[:, None])).any(1)


@refused("aten.mean", (8,))
def mean_of_all(m, x):
    return x - x.mean(0)


@refused("aten.sum", (8,))
def sum_of_everything(m, x):
    return x / x.sum()


@refused("aten.div", (8,))
def shared_by_the_rows(m, x):
    return x / x.shape[0]


@refused("aten.arange", (8,))
def counted_in_floats(m, x):
    return x + torch.arange(x.shape[0], dtype=torch.float32)[:, None]


@refused("aten.add", IDS)
def counted(m, x):
    return x + torch.arange(x.shape[0])[:, None]


@refused("aten._softmax", (8,))
def softmax_of_all(m, x):
    return x.softmax(0)


@refused("aten.sort", (8,))
def sorted_rows(m, x):
    return x.sort(0)[0]


@refused("aten.constant_pad_nd", (8,))
def neighbours(m, x):
    return x + F.pad(x, (0, 0, 1, 0))[:-1]


@refused("aten.slice", (8,))
def first_row(m, x):
    return x + x[:1]


@refused("aten.flip", (8,))
def turned(m, x):
    return x.flip(0)


@refused("aten.mm", (8,))
def gram(m, x):
    return x @ x.T


@refused("aten.mm", (8,))
def covariance(m, x):
    return x @ (x.T @ x)


@refused("aten._native_batch_norm_legit", (8,))
def normalized_by_the_batch(m, x):
    return F.batch_norm(x, None, None, training=True)


@refused("aten.view", (4, 8))
def rows_between(m, x):
    """A view that deals the rows out as cards."""
    return x.view(4 * x.shape[0], 8).view(2, 2 * x.shape[0], 8).sum(0).view(x.shape[0], 2, 8)


@refused("aten.index", (8,))
def picked(m, x):
    y = torch.zeros_like(x)
    y[:, 0] = x[x[:, 0] > 0.5].sum()
    return y


@refused("aten.index_put", (8,), PLACES)
def scattered(m, x, at):
    return torch.zeros_like(x).index_put((at,), x, accumulate=True)


@refused("aten.rand_like", (8,))
def noise(m, x):
    return x + torch.rand_like(x)


@refused("cond", (8,))
def branches(m, x):
    return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))


@refused("cond", (8,))
def branches_on_the_size(m, x):
    return torch.cond(x.shape[0] > 4, lambda y: y + 1, lambda y: y - 1, (x,))


@refused("aten.convolution", (4, 8))
def slid_along_the_batch(m, x):
    return F.conv1d(x.permute(1, 2, 0), m.weight[:, :, None].expand(8, 8, 3), padding=1).permute(2, 0, 1)


@refused("aten.index", IDS, (8,))
def other_rows(m, ids, x):
    return x[ids[:, 0] * 0]


@refused("aten.as_strided", (8,))
def memory(m, x):
    return torch.as_strided(x, (x.shape[0], 7), (8, 1))


@independent((4, 5, 5))
def pooled_to_one_element(m, x):
    """With channels last, which ends in as_strided()."""
    return F.adaptive_avg_pool2d(x.to(memory_format=torch.channels_last), 1)


@refused("", (8,))
def without_a_batch(m, x):
    return x * 2, m.weight.sum()


@refused("", (8,))
def number_of_a_row(m, x):
    return torch.arange(x.shape[0])


@refused("", (8,))
def batch_elsewhere(m, x):
    return x.T


@refused("", (8,), torch.zeros(3, 8))
class writes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(8))

    def forward(self, x, y):
        self.count += 1
        return x + y




def shapes_of(module, inputs, length):
    batch, size = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("length", min=2, max=64)
    shapes = tuple(one if one is None else {0: batch, **({1: size} if i in length else {})} for i, one in enumerate(inputs))
    return {"given": shapes} if isinstance(module, Function) else shapes


def told(name):
    module, inputs, operator, length = CASES[name]
    with torch.no_grad(), _rows.traces.of_functions(torch):
        program = torch.export.export(module.eval(), tuple(inputs), dynamic_shapes=shapes_of(module, inputs, length))
        proof = _rows.prove(torch, program)
    return {"case": name, "wanted": operator, "independent": bool(proof), "operator": ".".join(proof.operator.split(".")[:2]), "at": proof.at,
            "text": str(proof), "metadata": proof.metadata()}


def decisions():
    """Operators of ATen's core and of the C ABI for which there is neither a rule nor a refusal."""
    known = {*_rows.rules.RULES, *_rows.rules.REFUSED, *_rows.ASSERTIONS}
    core = {name_of(one) for packet in dir(torch.ops.aten) for one in overloads(torch.ops.aten, packet) if torch.Tag.core in one.tags}
    rows = re.findall(r"^SCONCE_(?:CPU_|CUDA_)?OP\((\w+),", (pure.ROOT / "src/operators/op_table.def").read_text(), re.MULTILINE)
    table = {row: packet_of(row) for row in rows}
    version = [int(part) for part in torch.__version__.split(".")[:2]]
    if version < [2, 15]:  # an earlier version lacks operators that later ones call
        table = {row: packet for row, packet in table.items() if hasattr(torch.ops.aten, packet.removeprefix("aten."))}
    return {"torch": version, "core": sorted(name for name in core - known if not name.startswith("aten.sym_")), "count": len(core),
            "table": sorted(f"{row}: {packet}" for row, packet in table.items() if packet not in known), "rows": len(rows)}


def name_of(overload):
    return overload._schema.name.replace("::", ".")


def overloads(namespace, packet):
    found = getattr(namespace, packet)
    return [getattr(found, one) for one in found.overloads()] if hasattr(found, "overloads") else []


# Shims whose names are no overload's: the compiler's own operators, and those that PyTorch wrote by hand.
SHIMS = {"mkldnn__convolution_pointwise": "mkldnn._convolution_pointwise",
         "mkldnn__convolution_transpose_pointwise": "mkldnn._convolution_transpose_pointwise", "_linear_pointwise": "mkldnn._linear_pointwise", "_mkl_linear": "mkl._mkl_linear",
         "_qlinear_pointwise": "onednn.qlinear_pointwise", "_qconv2d_pointwise": "onednn.qconv2d_pointwise",
         "_qconv_pointwise": "onednn.qconv_pointwise", "_wrapped_": "_quantized._wrapped_", "wrapped_fbgemm": "_quantized.wrapped_fbgemm",
         "mkldnn_rnn_layer": "aten.mkldnn_rnn_layer", "_weight_int4pack_mm_cpu_tensor": "aten._weight_int4pack_mm_for_cpu"}


def packet_of(row):
    """"aten.add" of add_Tensor: the longest packet of which the rest names an overload."""
    for start, packet in SHIMS.items():
        if row.startswith(start):
            rest = row[len(start):]
            return packet + rest if packet.endswith(("wrapped_", "fbgemm")) else packet
    for cut in [len(row), *(at.start() for at in reversed(list(re.finditer("_", row))))]:
        packet, rest = row[:cut], row[cut + 1:]
        found = getattr(torch.ops.aten, packet, None) if packet else None
        if found is not None and (not rest or rest in found.overloads()):
            return f"aten.{packet}"
    return row


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps({"case": "decisions", **decisions()}))
    for name in sys.argv[1:] or CASES:
        try:
            print(json.dumps(told(name)), flush=True)
        except Exception:  # noqa: BLE001  shown by the test
            print(json.dumps({"case": name, "failed": traceback.format_exc()[-3000:]}), flush=True)
