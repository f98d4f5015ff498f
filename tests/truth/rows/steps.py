"""The kinds of steps that graphs are drawn from: each takes a Draw and returns (text, function of the tensors so far), or None."""
import torch

from rows.graphs import ROWS, kind

F = torch.nn.functional

UNARY = {
    "relu": torch.relu, "sin": torch.sin, "neg": torch.neg, "abs": torch.abs, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
    "floor": torch.floor, "sign": torch.sign, "square": torch.square, "atan": torch.atan, "gelu": F.gelu, "softplus": F.softplus,
    "exp": lambda a: a.clamp(-5, 5).exp(), "rsqrt": lambda a: (a.abs() + 1).rsqrt(), "nan_to_num": torch.nan_to_num,
    "above": lambda a: (a > 0.3).double(), "clone": torch.clone, "masked_fill": lambda a: a.masked_fill(a < 0, 0.25),
    "scaled": lambda a: a * 2 + 1, "clamp": lambda a: a.clamp(-1, 1), "where": lambda a: torch.where(a > 0, a, -0.5 * a),
    "elu": F.elu, "dropout": lambda a: F.dropout(a, 0.5, training=False), "hardswish": F.hardswish}
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum, "minimum": torch.minimum, "atan2": torch.atan2,
    "div": lambda a, b: a / (b.abs() + 1), "where": lambda a, b: torch.where(a > b, a, b * 0.5), "less": lambda a, b: (a < b).double(),
    "lerp": lambda a, b: torch.lerp(a, b, 0.3), "hypot": torch.hypot, "fmax": torch.fmax}
REDUCTIONS = {
    "sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "amin": torch.amin, "prod": lambda a, d, keepdim: a.clamp(-2, 2).prod(d, keepdim),
    "logsumexp": torch.logsumexp, "var": lambda a, d, keepdim: a.var(d, correction=0, keepdim=keepdim), "norm": lambda a, d, keepdim: a.norm(2, d, keepdim),
    "argmax": lambda a, d, keepdim: a.argmax(d, keepdim).double(), "median": lambda a, d, keepdim: a.contiguous().median(d, keepdim)[0],
    "any": lambda a, d, keepdim: (a > 1).any(d, keepdim).double(), "all": lambda a, d, keepdim: (a > -1).all(d, keepdim).double(),
    "max": lambda a, d, keepdim: a.max(d, keepdim)[0], "count": lambda a, d, keepdim: (a > 0).sum(d, keepdim).double(),
    "std": lambda a, d, keepdim: a.std(d, correction=0, keepdim=keepdim), "kthvalue": lambda a, d, keepdim: a.kthvalue(1, d, keepdim)[0]}
ALONG = {
    "softmax": torch.softmax, "log_softmax": torch.log_softmax, "cumsum": torch.cumsum, "sort": lambda a, d: a.sort(d)[0],
    "argsort": lambda a, d: a.argsort(d, stable=True).double(), "topk": lambda a, d: a.topk(2, d)[0], "flip": lambda a, d: a.flip(d),
    "roll": lambda a, d: a.roll(1, d), "cummax": lambda a, d: a.cummax(d)[0], "cumprod": lambda a, d: a.clamp(-1.5, 1.5).cumprod(d),
    "logcumsumexp": torch.logcumsumexp, "diff": lambda a, d: a.diff(dim=d), "normalize": lambda a, d: F.normalize(a, dim=d),
    "renorm": lambda a, d: a.renorm(2, d, 1.0), "glu": lambda a, d: F.glu(a, d), "unique_ranks": lambda a, d: a.sort(d)[1].double(),
    "fft": lambda a, d: torch.fft.rfft(a, dim=d).abs(), "softmin": lambda a, d: F.softmin(a, d), "every_second": lambda a, d: a.narrow(d, 0, 1),
    "centred": lambda a, d: a - a.mean(d, keepdim=True), "scored": lambda a, d: a * (a > a.mean(d, keepdim=True)),
    "flipped_half": lambda a, d: torch.cat([a.narrow(d, 1, 1), a], d), "selected": lambda a, d: a.select(d, 0), "last": lambda a, d: a.select(d, -1),
    "unbound": lambda a, d: torch.stack(a.unbind(d)[:2], d),
    "doubled": lambda a, d: torch.cat([a, a * 0.5], d), "halves": lambda a, d: a.tensor_split(2, d)[0],
    "interleaved": lambda a, d: a.repeat_interleave(2, d), "slid": lambda a, d: a.unfold(d, 2, 1), "picked": lambda a, d: a.index_select(d, torch.tensor([1, 0])),
    "padded": lambda a, d: F.pad(a, [0] * 2 * (a.dim() - 1 - d) + [1, 0])}


@kind(5)
def unary(d):
    i, name = d.pick(), d.rng.choice(list(UNARY))
    return f"{name}(v{i})", lambda v: UNARY[name](v[i])


@kind(4)
def binary(d):
    name = d.rng.choice(list(BINARY))
    i = d.pick()
    a = d.values[i]

    def fits(b):
        return all(m == n or 1 in (m, n) for m, n in zip(reversed(a.shape), reversed(b.shape)))
    j = d.pick(fits)
    return f"{name}(v{i}, v{j})", lambda v: BINARY[name](v[i], v[j])


@kind(3)
def reduction(d):
    i, name, keep = d.pick(lambda t: t.dim() > 1), d.rng.choice(list(REDUCTIONS)), d.rng.random() < 0.5
    if i is None or (at := d.dim(d.values[i])) is None:
        return None
    return f"{name}(v{i}, {at}, keepdim={keep})", lambda v: REDUCTIONS[name](v[i], at, keepdim=keep)


@kind(5)
def along(d):
    i, name = d.pick(lambda t: t.dim() > 0), d.rng.choice(list(ALONG))
    if i is None or (at := d.dim(d.values[i])) is None:
        return None
    if name == "renorm":  # it joins all dimensions but one
        at = next((n for n, size in enumerate(d.values[i].shape) if size % ROWS == 0), at) if not d.hostile else at
    return f"{name}(v{i}, {at})", lambda v: ALONG[name](v[i], at)


@kind(4)
def view(d):
    i = d.pick(lambda t: t.dim() > 1)
    if i is None:
        return None
    shape = d.values[i].shape
    a, b = d.rng.sample(range(len(shape)), 2)
    low = d.rng.randrange(len(shape) - 1)
    found = d.rng.choice(["transpose", "unsqueeze", "flatten", "movedim", "expand", "back", "flat", "swap", "squeeze", "repeat"])
    at = d.rng.randrange(len(shape) + 1)
    counts = [1 if n != a else 2 for n in range(len(shape))]
    steps = {
        "transpose": lambda v: v[i].transpose(a, b), "unsqueeze": lambda v: v[i].unsqueeze(at), "flatten": lambda v: v[i].flatten(low, low + 1),
        "movedim": lambda v: v[i].movedim(a, b), "expand": lambda v: v[i].unsqueeze(at).expand(*v[i].shape[:at], 2, *v[i].shape[at:]),
        "back": lambda v: v[i].flatten(low, low + 1).mul(2).reshape(v[i].shape), "squeeze": lambda v: v[i].unsqueeze(at).squeeze(at),
        "flat": lambda v: v[i].reshape(v[i].shape[0], -1), "swap": lambda v: v[i].reshape(v[i].shape[1], v[i].shape[0], *v[i].shape[2:]),
        "repeat": lambda v: v[i].repeat(counts)}
    if found == "swap" and not d.hostile:
        return None
    return f"{found}(v{i}; {a}, {b}, {low}, {at})", steps[found]


@kind(1.5)
def split(d):
    """A factor of a size, by itself."""
    i = d.pick(lambda t: any(size % 2 == 0 or size % 3 == 0 for size in t.shape))
    if i is None:
        return None
    shape = d.values[i].shape
    at = d.rng.choice([n for n, size in enumerate(shape) if size % 2 == 0 or size % 3 == 0])
    factor = 2 if shape[at] % 2 == 0 else 3
    first = d.rng.random() < 0.5
    if first:
        return f"v{i}.unflatten({at}, ({factor}, -1))", lambda v: v[i].unflatten(at, (factor, v[i].shape[at] // factor))
    return f"v{i}.unflatten({at}, (-1, {factor}))", lambda v: v[i].unflatten(at, (v[i].shape[at] // factor, factor))


@kind(3)
def weights(d):
    i = d.pick(lambda t: t.dim() > 1 and d.constant(t.shape[-1]) is not None)
    if i is None:
        return None
    n = d.values[i].shape[-1]
    w = d.constant(n)
    rank = d.values[i].dim()
    found = d.rng.choice(["linear", "matmul", "flat", "einsum", "left", "layer_norm", "affine"])
    steps = {
        "linear": lambda v: F.linear(v[i], w, w[0]), "matmul": lambda v: v[i] @ w, "flat": lambda v: (v[i].reshape(-1, n) @ w).view(v[i].shape),
        "einsum": lambda v: torch.einsum("...i,ij->...j", v[i], w), "left": lambda v: (w @ v[i].transpose(-1, -2)).transpose(-1, -2),
        "layer_norm": lambda v: F.layer_norm(v[i], (n,), w[0], w[1]), "affine": lambda v: torch.addmm(w[0], v[i].reshape(-1, n), w)}
    if d.values[i].shape[-1] % ROWS == 0 or (rank > 1 and found == "left" and rank < 2):
        return None
    return f"{found}(v{i}, constant {n})", steps[found]


@kind(2.5)
def within(d):
    """Products and attention within rows, or across them."""
    i = d.pick(lambda t: t.dim() == 3)
    if i is None:
        return None
    carrier = [n for n, size in enumerate(d.values[i].shape) if size % ROWS == 0]
    if not d.hostile and carrier != [0]:
        return None
    order = d.rng.choice([(0, 1, 2), (1, 0, 2), (1, 2, 0), (2, 1, 0)]) if d.hostile else (0, 1, 2)
    found = d.rng.choice(["gram", "attention", "heads", "cdist", "outer", "inverse", "cholesky", "det", "sdpa4", "bmm", "solve", "eig"])

    def spd(t):
        return t.clamp(-2, 2) @ t.clamp(-2, 2).mT + 3 * torch.eye(t.shape[1], dtype=torch.float64)
    steps = {
        "gram": lambda t: t @ t.mT, "attention": lambda t: F.scaled_dot_product_attention(t, t, t), "bmm": lambda t: torch.bmm(t.softmax(2), t.mT),
        "heads": lambda t: F.scaled_dot_product_attention(t.unsqueeze(1), t.unsqueeze(1), t.unsqueeze(1), is_causal=True).squeeze(1),
        "cdist": lambda t: torch.cdist(t, t.flip(1)), "outer": lambda t: torch.einsum("bi,bj->bij", t[:, 0], t[:, 1]),
        "inverse": lambda t: torch.linalg.inv(spd(t)), "cholesky": lambda t: torch.linalg.cholesky(spd(t)), "det": lambda t: torch.linalg.det(spd(t)),
        "solve": lambda t: torch.linalg.solve(spd(t), t), "eig": lambda t: torch.linalg.eigvalsh(spd(t)),
        "sdpa4": lambda t: F.scaled_dot_product_attention(t.unsqueeze(1), t.unsqueeze(1), t.unsqueeze(1), attn_mask=(t @ t.mT > 0).unsqueeze(1) | torch.eye(
            t.shape[1], dtype=torch.bool)).squeeze(1)}
    return f"{found}(v{i}.permute{order})", lambda v: steps[found](v[i].permute(order))


@kind(2.5)
def windows(d):
    i = d.pick(lambda t: t.dim() == 3 and d.constant(t.shape[1]) is not None)
    if i is None:
        return None
    w = d.constant(d.values[i].shape[1])
    n = w.shape[0]
    found = d.rng.choice(["conv", "pool", "avg", "adaptive", "resize", "group_norm", "batch_norm", "instance_norm", "by_row", "conv_transpose", "im2col", "linear_resize"])
    order = d.rng.choice([(0, 1, 2), (2, 1, 0)]) if d.hostile else (0, 1, 2)

    def by_row(t):
        """One group for each row."""
        return F.conv1d(t.reshape(1, -1, t.shape[2]), w[:, :, None].repeat(t.shape[0], 1, 1), groups=t.shape[0]).view(t.shape)
    steps = {
        "conv": lambda t: F.conv1d(t, w[:, :, None].expand(-1, -1, 2), padding=1), "pool": lambda t: F.max_pool1d(t, 2, 1),
        "avg": lambda t: F.avg_pool1d(t, 2, 1), "adaptive": lambda t: F.adaptive_avg_pool1d(t, 2), "resize": lambda t: F.interpolate(t, scale_factor=2),
        "linear_resize": lambda t: F.interpolate(t, size=4, mode="linear"), "group_norm": lambda t: F.group_norm(t, 1, w[0], w[0]),
        "batch_norm": lambda t: F.batch_norm(t, w[0], w[0].abs() + 1, w[0], w[0], training=d_hostile), "instance_norm": lambda t: F.instance_norm(t),
        "by_row": by_row, "conv_transpose": lambda t: F.conv_transpose1d(t, w[:, :, None].expand(-1, -1, 2)),
        "im2col": lambda t: F.unfold(t.unsqueeze(1), 2)}
    d_hostile = d.hostile
    return f"{found}(v{i}.permute{order}, constant {n}, training={d_hostile})", lambda v: steps[found](v[i].permute(order))


@kind(4)
def indices(d):
    """Reading and writing by the integers, by rows' numbers and by constants."""
    i = d.pick(lambda t: t.dim() >= 2 and t.shape[0] == ROWS)
    j = d.pick(lambda t: t.dim() == 1 and t.shape[0] == ROWS and not t.is_floating_point(), floats=False)
    if i is None or j is None:
        return None
    n = d.values[i].shape[1]
    w = d.constant(d.rng.choice([4, 5, 6]))
    safe = ["table", "own", "gather", "one_hot", "put", "scatter", "fill", "columns", "bucketize", "isin", "where", "index_add_columns", "put_mask", "pair", "both", "take_along"]
    bad = ["rows", "rows_by_size", "isin_all", "scatter_rows", "add_rows", "put_rows", "sorted_by", "first", "reversed", "mask_rows", "own_transposed", "searched", "last_own", "duplicates"]
    found = d.rng.choice(bad if d.hostile else safe)

    def expand(k, t):
        return k.view(-1, 1, *[1] * (t.dim() - 2)).expand(-1, 1, *t.shape[2:])
    steps = {
        "table": lambda t, k, r: w[k], "own": lambda t, k, r: t[r, k % n], "gather": lambda t, k, r: t.gather(1, expand(k % n, t)),
        "one_hot": lambda t, k, r: (k[:, None] == torch.arange(4)).double(), "put": lambda t, k, r: t.index_put((r, k % n), torch.tensor(0.5, dtype=torch.float64)),
        "scatter": lambda t, k, r: t.scatter(1, expand(k % n, t), 2.0), "fill": lambda t, k, r: t.index_fill(1, torch.tensor([0]), 1.0),
        "columns": lambda t, k, r: t[:, torch.tensor([1, 0, 1])], "bucketize": lambda t, k, r: torch.bucketize(t, w[0].sort()[0]).double(),
        "isin": lambda t, k, r: torch.isin(k, torch.tensor([1, 3])).double(), "where": lambda t, k, r: torch.where(expand(k, t) > 1, t, -t),
        "index_add_columns": lambda t, k, r: t.index_add(1, torch.tensor([0, 0]), t[:, :2]), "put_mask": lambda t, k, r: t.index_put((t > 0,), torch.tensor(9.0, dtype=torch.float64)),
        "pair": lambda t, k, r: t[r[:, None], torch.stack([k % n, (k + 1) % n], 1)], "both": lambda t, k, r: t[r, k % n] + t[r, (k + 1) % n],
        "take_along": lambda t, k, r: torch.take_along_dim(t, t.argsort(1, stable=True), 1),
        "rows": lambda t, k, r: t[k.clamp(max=t.shape[0] - 1)], "rows_by_size": lambda t, k, r: t[k % t.shape[0]],
        "isin_all": lambda t, k, r: torch.isin(k + 1, k).double(), "scatter_rows": lambda t, k, r: t.scatter(0, expand(k.clamp(max=t.shape[0] - 1), t)[:, :1], 3.0),
        "add_rows": lambda t, k, r: t.index_add(0, k.clamp(max=t.shape[0] - 1), t), "put_rows": lambda t, k, r: t.index_put((k.clamp(max=t.shape[0] - 1),), t * 2, accumulate=True),
        "sorted_by": lambda t, k, r: t[k.argsort(stable=True)], "first": lambda t, k, r: t + t[:1], "reversed": lambda t, k, r: t[t.shape[0] - 1 - r],
        "mask_rows": lambda t, k, r: t * (k == k.max()).double().view(-1, *[1] * (t.dim() - 1)), "own_transposed": lambda t, k, r: t.transpose(0, 1)[k % n, (r + 1) % t.shape[0]],
        "searched": lambda t, k, r: torch.searchsorted(t[:, 0].flatten().sort()[0], t.contiguous()).double(), "last_own": lambda t, k, r: t[-1:] * k.view(-1, *[1] * (t.dim() - 1)),
        "duplicates": lambda t, k, r: (k[:, None] == k[None, :]).sum(1).double()}
    if found in ("table", "one_hot", "isin", "isin_all", "duplicates"):
        return f"{found}(v{j}, constant {w.shape[0]})", lambda v: steps[found](None, v[j], None)
    return f"{found}(v{i}, v{j}, n={n}, constant {w.shape[0]})", lambda v: steps[found](v[i], v[j], torch.arange(v[i].shape[0]))


@kind(1)
def integers(d):
    """Integers of each row below 4."""
    i = d.pick(lambda t: t.dim() >= 2 and t.shape[0] == ROWS)
    if i is None:
        return None
    return f"v{i}.flatten(1).argmax(1) % 4", lambda v: v[i].flatten(1).argmax(1) % 4


@kind(2)
def sizes(d):
    """The batch's size: as a size, or as a value."""
    i = d.pick(lambda t: t.dim() >= 1 and t.shape[0] == ROWS)
    if i is None:
        return None
    t = d.values[i]
    ones = [1] * (t.dim() - 1)
    safe = ["zeros", "full", "ones_like", "expanded", "cat_columns", "new_ones", "beside"]
    bad = ["divided", "counted", "number", "linspace", "eye", "tril", "half", "odd", "full_size", "triangle", "last", "scaled_eye", "mean", "parity", "shift", "batch_matrix", "padded"]
    found = d.rng.choice(bad if d.hostile else safe)
    w = d.graph.constants[0]
    steps = {
        "zeros": lambda t, n: t + torch.zeros(n, *ones, dtype=t.dtype), "full": lambda t, n: torch.full((n, 3), 0.5, dtype=t.dtype), "ones_like": lambda t, n: torch.ones_like(t) - t,
        "expanded": lambda t, n: w.expand(n, 2, 2), "cat_columns": lambda t, n: torch.cat([t.flatten(1) if t.dim() > 1 else t[:, None], t.new_ones(n, 1)], 1),
        "new_ones": lambda t, n: t * t.new_ones(n, *ones), "beside": lambda t, n: torch.cat([t, torch.zeros_like(t)])[:n],
        "divided": lambda t, n: t / n, "counted": lambda t, n: t + torch.arange(n, dtype=t.dtype).view(-1, *ones), "number": lambda t, n: torch.arange(n).double(),
        "linspace": lambda t, n: t * torch.linspace(0, 1, n, dtype=t.dtype).view(-1, *ones), "eye": lambda t, n: torch.eye(n, dtype=t.dtype) @ t.reshape(n, -1),
        "tril": lambda t, n: torch.ones(n, n, dtype=t.dtype).tril() @ t.reshape(n, -1), "half": lambda t, n: torch.cat([t[:n // 2] * 2, t[n // 2:]]),
        "odd": lambda t, n: t + n % 2, "full_size": lambda t, n: t + torch.full((), n, dtype=t.dtype), "triangle": lambda t, n: t.reshape(n, -1).triu(),
        "last": lambda t, n: t - t[n - 1], "scaled_eye": lambda t, n: torch.eye(n, dtype=t.dtype).sum(1), "mean": lambda t, n: t - t.sum(0) / n,
        "parity": lambda t, n: t * (torch.arange(n) % 2).view(-1, *ones), "shift": lambda t, n: torch.cat([t[n - 1:], t[:n - 1]]),
        "batch_matrix": lambda t, n: torch.full((n, n), 0.5, dtype=t.dtype) @ t.reshape(n, -1), "padded": lambda t, n: F.pad(t, [0, 0] * (t.dim() - 1) + [1, 0])[:n]}
    return f"{found}(v{i})", lambda v: steps[found](v[i], v[i].shape[0])


@kind(0.5)
def meeting(d):
    """Rows that meet only past a threshold or a count: suppression, capacity, deduplication."""
    if not d.hostile and d.rng.random() < 0.6:
        return None
    i = d.pick(lambda t: t.dim() == 2 and t.shape[0] == ROWS)
    j = d.pick(lambda t: t.dim() == 1 and t.shape[0] == ROWS and not t.is_floating_point(), floats=False)
    if i is None or j is None:
        return None
    found = d.rng.choice(["nms", "capacity", "quantile", "crowd", "outlier", "nearest", "rank", "late", "duplicates"])
    steps = {
        "nms": lambda t, k: t * ~((t[:, None] - t[None]).abs().sum(2).lt(0.3) & (t[None, :, 0] > t[:, None, 0])).any(1, keepdim=True),
        "capacity": lambda t, k: t * ((k[:, None] % 4 == torch.arange(4)).long().cumsum(0).gather(1, (k % 4)[:, None]) <= 5), "quantile": lambda t, k: t * (t[:, :1] >= t[:, 0].median()),
        "crowd": lambda t, k: t * ((k[:, None] == k[None]).sum(1, keepdim=True) < 9), "outlier": lambda t, k: t.clamp(max=t.abs().amax().clamp(min=4)),
        "nearest": lambda t, k: t[torch.cdist(t, t).argmin(1)], "rank": lambda t, k: t * (t[:, 0].argsort().argsort() < 10)[:, None],
        "late": lambda t, k: t * (torch.arange(t.shape[0]) < 12)[:, None], "duplicates": lambda t, k: t * ((t[:, None] == t[None]).all(2).sum(1, keepdim=True) < 4)}
    return f"{found}(v{i}, v{j})", lambda v: steps[found](v[i], v[j])
