"""Layer, group, batch, root-mean-square norms, and the gradients: src/cpu/normalisation/normalization.cpp, src/cpu/normalisation/rms_norm.cpp.

Floats against float64. Limits: row_sums.h (32 floats or 16 doubles at once, 16 times that in the element's type), 16
lanes of rms_norm; threads take 32768 elements (16384 of rms_norm) and have their own sums for the parameters of layer
norms (slice_parts); runs of one element per channel.
"""
import torch

import case

FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
WIDTHS = (8, 16, 32, 64, 128, 256, 512, 1024)
LAYOUTS = ("packed", "packed", "permuted", "sliced", "offset", "padded", "channels_last", "channels_last")


def elements(d, shape, dtype, kind, layouts=LAYOUTS + ("expanded",)):
    if kind == "shifted":  # far from 0 compared with their spread
        return d.laid_out((d.values(torch.float64, shape) + d.choice((10, 300, -2000))).to(dtype), layouts)
    return d.tensor(dtype, shape, kind, layouts)


def parameter(d, n, dtype, p=0.7, kind="normal"):
    return d.tensor(dtype, n if isinstance(n, list) else [n], kind, ("packed", "permuted", "sliced", "offset")) if d.chance(p) else None


def parameters_dtype(d, dtype):
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) and d.chance(0.5) else dtype


def some_kind(d):
    return d.choice(("normal", "normal", "normal", "few", "wide", "shifted", "special", "zero"))


def of(v, default=1.0):
    return default if v is None else v.abs().double()


def finite(v):
    return v.nan_to_num(0, 0, 0)


def normal_size(x, dims, rstd, w, b):
    """The terms of (x - mean) * rstd * w + b before rounding; mean and deviation are sums too."""
    return finite((x.abs() + 2 * x.abs().mean(dims, True)) * rstd * of(w) + of(b, 0.0))


def own(dtype, terms):
    """float64 is compared with ATen's own sums."""
    return terms ** 0.5 if dtype == torch.float64 else 0


def means_apart(kind):
    """ATen's running mean of a row with an infinity is NaN or infinite, by its position; the result is NaN anyway."""
    return dict(skip=[1]) if kind == "special" else {}


def draw(d):
    return d.choice((layer_norm, layer_norm, layer_norm_backward, group_norm, group_norm, group_norm_backward, batch_norm, batch_norm,
                     batch_norm_variants, batch_norm_backward, rms_norm, rms_norm, weight_norm_backward))(d)


def rows(d):
    width = d.size(*WIDTHS, high=1100)
    if d.chance(0.85):
        return d.size(2, 4, 8, 32, high=40), width
    return max(1, 32768 // max(width, 1) + d.choice((-1, 0, 1))), width


def layer_shape(d):
    count, width = rows(d)
    shape = [count, width]
    if d.chance(0.3):
        shape = [count, *d.shape(2, max(width, 1), (2, 4, 8))]
    normalised = shape[1:] if d.chance(0.85) else shape
    if d.chance(0.4):
        shape = [d.size(2, 3, high=3), *shape]
    if len(normalised) == len(shape):
        normalised = list(shape)
    return shape, normalised


def small_eps(d, kind):
    return d.choice((1e-5, 1e-5, 1e-3, 1e-12) if kind in ("normal", "wide") else (1e-5, 1e-3))


def layer_norm(d):
    dtype, kind = d.choice(FLOATS), some_kind(d)
    shape, normalised = layer_shape(d)
    x, to = elements(d, shape, dtype, kind), parameters_dtype(d, dtype)
    w, b, eps = parameter(d, normalised, to), parameter(d, normalised, to), small_eps(d, kind)
    if to != dtype and d.chance(0.5):
        w, b = (w, b) if w is not None and b is not None else (None, None)
    dims = list(range(len(shape) - len(normalised), len(shape)))

    def magnitude(v, _, w, b, eps):
        mean, rstd = v.mean(dims, True), (v.var(dims, correction=0, keepdim=True) + eps).rsqrt()
        return [normal_size(v, dims, rstd, w, b), finite(v.abs()).mean(dims, True), finite(rstd * (1 + mean.abs() * rstd))]

    return case.named(f"{dtype} {shape} over {normalised} {x.stride()} {kind} parameters {to if w is not None else None} "
                      f"{to if b is not None else None} eps {eps}", "native_layer_norm", "", x, normalised, w, b, eps, error=16 + own(dtype, x.numel()),
                      magnitude=magnitude, **means_apart(kind))


def layer_norm_backward(d):
    dtype, kind = d.choice(FLOATS), d.choice(("normal", "few", "wide", "shifted"))
    shape, normalised = layer_shape(d)
    if 0 in shape:
        return None
    x, to = elements(d, shape, dtype, kind), parameters_dtype(d, dtype)
    g = d.tensor(dtype, shape, d.choice(("normal", "few", "wide")), LAYOUTS)
    w = parameter(d, normalised, to)
    b = d.tensor(to, normalised, "normal", ("packed",)) if w is not None and d.chance(0.7) else None
    if to != dtype and w is None:
        to = dtype
    dims = list(range(len(shape) - len(normalised), len(shape)))
    wide = x.double()
    kept_type = torch.float32 if to == torch.float32 else dtype
    mean = wide.mean(dims, True).to(kept_type)
    rstd = (wide.var(dims, correction=0, keepdim=True) + 1e-5).rsqrt().to(kept_type)
    mask = [d.chance(0.8) for _ in range(3)]
    outer = list(range(len(shape) - len(normalised)))

    def magnitude(g, v, _, mean, rstd, w, b, mask):
        hat = (v.abs() + mean.abs()) * rstd
        gw = g.abs() * of(w)
        dx = rstd * (gw + gw.mean(dims, True) + hat * (gw * hat).mean(dims, True))
        dw, db = (g.abs() * hat), g.abs()
        dw, db = (dw.sum(outer), db.sum(outer)) if outer else (dw, db)
        return [m for m, wanted in zip((dx, dw, db), mask) if wanted]

    # ATen's bias gradient has the weight's type, with or without a bias.
    terms = max(max(shape), 1)
    return case.named(f"{dtype} {shape} over {normalised} {x.stride()} {g.stride()} {kind} weight {w is not None} {to} mask {mask}",
                      "native_layer_norm_backward", "", g, x, normalised, mean, rstd, w, b, mask, error=16 + terms ** 0.5,
                      magnitude=magnitude)


def group_shape(d):
    groups, each = d.size(1, 2, 4, 8, low=1, high=9), d.size(1, 2, 3, 4, 8, low=1, high=9)
    n = d.size(2, 3, high=5)
    spatial = d.choice(([], [d.size(*WIDTHS, high=600)], [d.size(4, 8, high=20), d.size(4, 8, 16, high=20)],
                        [2, d.size(3, 4, high=6), d.size(3, 4, high=6)]))
    return [n, groups * each, *spatial], groups


def flat(v, groups):
    n, c = v.shape[:2]
    return v.reshape(n, groups, -1)


def group_norm(d):
    dtype, kind = d.choice(FLOATS), some_kind(d)
    shape, groups = group_shape(d)
    n, c = shape[:2]
    if 0 in shape:
        return None
    x, to = elements(d, shape, dtype, kind), parameters_dtype(d, dtype)
    w, b, eps = parameter(d, c, to), parameter(d, c, to), small_eps(d, kind)
    if to != dtype and (w is None or b is None):
        w = b = None
    places = x.numel() // (n * c)

    def magnitude(v, w, b, *_):
        f = flat(v, groups)
        mean, rstd = f.mean(-1), (f.var(-1, correction=0) + eps).rsqrt()
        each = [1, c] + [1] * (v.dim() - 2)
        size = (f.abs() + 2 * f.abs().mean(-1, True)) * rstd.unsqueeze(-1)
        out = size.reshape(v.shape) * (of(w).reshape(each) if w is not None else 1) + (of(b).reshape(each) if b is not None else 0)
        return [finite(out), finite(f.abs().nan_to_num(0, 0, 0).mean(-1)), finite(rstd * (1 + mean.abs() * rstd))]

    def exact(v, w, b, *_):
        # ATen's variance of channels-last images is a difference of two sums, which is inexact far from 0.
        f = flat(v, groups)
        mean, rstd = f.mean(-1), (f.var(-1, correction=0) + eps).rsqrt()
        each = [1, c] + [1] * (v.dim() - 2)
        out = ((f - mean.unsqueeze(-1)) * rstd.unsqueeze(-1)).reshape(v.shape)
        return [out * (w.reshape(each) if w is not None else 1) + (b.reshape(each) if b is not None else 0), mean, rstd]

    return case.named(f"{dtype} {shape} groups {groups} {x.stride()} {kind} parameters {w is not None} {b is not None} {to} eps {eps}",
                      "native_group_norm", "", x, w, b, n, c, places, groups, eps, error=16 + own(dtype, x.numel()), magnitude=magnitude,
                      exact=exact, **means_apart(kind))


def group_norm_backward(d):
    dtype, kind = d.choice(FLOATS), d.choice(("normal", "few", "wide", "shifted"))
    shape, groups = group_shape(d)
    if 0 in shape:
        return None
    n, c = shape[:2]
    x, to = elements(d, shape, dtype, kind, LAYOUTS), parameters_dtype(d, dtype)
    # ATen expects gradients in the input's memory order.
    g = d.values(dtype, shape, d.choice(("normal", "few", "wide")))
    g = d.laid_out(g, ("packed",)) if x.is_contiguous() or x.dim() not in (4, 5) else torch.empty_like(x).copy_(g)
    x = x if g.stride() == x.stride() else x.contiguous()
    g = g if g.stride() == x.stride() else g.contiguous()
    w = parameter(d, c, to)
    if w is None:
        to = dtype
    f = flat(x.double(), groups)
    mean = f.mean(-1).to(to)
    rstd = (f.var(-1, correction=0) + 1e-5).rsqrt().to(to)
    mask = [d.chance(0.8) for _ in range(3)]
    places = x.numel() // (n * c)

    def magnitude(g, v, mean, rstd, w, *_):
        hat = (flat(v.abs(), groups) + mean.abs().reshape(n, groups, 1)) * rstd.reshape(n, groups, 1)
        gw = flat(g.abs() * (of(w).reshape([1, c] + [1] * (g.dim() - 2)) if w is not None else 1), groups)
        dx = rstd.reshape(n, groups, 1) * (gw + gw.mean(-1, True) + hat * (gw * hat).mean(-1, True))
        by = [0] + list(range(2, g.dim()))
        dw, db = (g.abs() * hat.reshape(v.shape)).sum(by), g.abs().sum(by)
        return [m for m, wanted in zip((dx.reshape(v.shape), dw, db), mask) if wanted]

    return case.named(f"{dtype} {shape} groups {groups} {x.stride()} {g.stride()} {kind} weight {w is not None} {to} mask {mask}",
                      "native_group_norm_backward", "", g, x, mean, rstd, w, n, c, places, groups, mask,
                      error=16 + (n * places) ** 0.5, magnitude=magnitude)


def batch_shape(d):
    n, c = d.size(2, 3, 4, 8, high=9), d.size(2, 3, 8, 16, 32, high=40)
    if d.chance(0.25):
        return [d.size(2, 8, 32, 128, high=300), c]
    return [n, c, *d.choice(([d.size(*WIDTHS, high=600)], [d.size(4, 8, high=20), d.size(4, 8, 16, high=20)],
                             [2, d.size(3, 4, high=6), d.size(3, 4, high=6)]))]


def channel(v, like):
    return v.reshape([1, -1] + [1] * (like.dim() - 2))


def over(v):
    return [0] + list(range(2, v.dim()))


def batch_norm_operands(d):
    dtype, kind = d.choice(FLOATS), some_kind(d)
    shape = batch_shape(d)
    if 0 in shape:
        return None
    x, to = elements(d, shape, dtype, kind), parameters_dtype(d, dtype)
    c = shape[1]
    w, b = parameter(d, c, to), parameter(d, c, to)
    means, variances = d.tensor(to, [c], "normal", ("packed", "sliced")), d.tensor(to, [c], "positive", ("packed", "sliced"))
    return dtype, kind, shape, x, to, c, w, b, means, variances


def batch_sizes(v, w, b, means, variances, training, eps):
    v = v.double()
    if training:
        means, variances = v.mean(over(v)), v.var(over(v), correction=0)
    rstd = (variances + eps).rsqrt()
    out = (v.abs() + 2 * channel(v.abs().mean(over(v)) if training else means.abs(), v)) * channel(rstd, v)
    out = out * (channel(of(w), v) if w is not None else 1) + (channel(of(b), v) if b is not None else 0)
    mean_size = finite(v.abs()).mean(over(v)) if training else means.abs()
    return finite(out), finite(mean_size), finite(rstd * (1 + mean_size * rstd))


def batch_norm(d):
    made = batch_norm_operands(d)
    if made is None:
        return None
    dtype, kind, shape, x, to, c, w, b, means, variances = made
    training, momentum, eps = d.chance(0.6), d.choice((0.1, 0.0, 1.0, 0.3)), small_eps(d, kind)
    if training and x.numel() // c == 1:
        return None  # the unbiased variance of one element is NaN or infinite
    if training and d.chance(0.3):
        means = variances = None
    if to != dtype and not training and (w is None or b is None):
        w = b = None
    label = f"{dtype} {shape} {x.stride()} {kind} parameters {w is not None} {b is not None} {to} training {training} {momentum} eps {eps}"

    def magnitude(v, w, b, means, variances, *_):
        out, mean_size, rstd_size = batch_sizes(v, w, b, means, variances, training, eps)
        found = [out, mean_size, rstd_size] if training else [out, torch.zeros(0), torch.zeros(0)]
        if means is not None and training:
            spread = finite(v.abs() ** 2).mean(over(v)) + mean_size ** 2
            found += [finite(means.abs()) + mean_size, finite(variances.abs()) + 2 * spread]
        return found

    written = dict(written=[3, 4], results=True) if means is not None and training else {}
    return case.named(label, "native_batch_norm", "", x, w, b, means, variances, training, momentum, eps, error=16 + own(dtype, x.numel()), magnitude=magnitude,
                      **written)


def batch_norm_variants(d):
    made = batch_norm_operands(d)
    if made is None:
        return None
    dtype, kind, shape, x, to, c, w, b, means, variances = made
    momentum, eps = d.choice((0.1, 0.0, 1.0, 0.3)), small_eps(d, kind)
    name = d.choice(("no_stats", "functional", "no_training", "with_update", "no_update", "update_stats"))
    label = f"{dtype} {shape} {x.stride()} {kind} parameters {w is not None} {b is not None} {to} {momentum} eps {eps}"
    if x.numel() // c == 1:
        return None

    def sizes(training):
        def magnitude(v, w, b, means=None, variances=None, *_):
            means = means if isinstance(means, torch.Tensor) else None
            out, mean_size, rstd_size = batch_sizes(v, w, b, means, variances, training, eps)
            spread = finite(v.abs() ** 2).mean(over(v)) + mean_size ** 2
            running = [finite(means.abs()) + mean_size, finite(variances.abs()) + 2 * spread] if means is not None else []
            none = torch.zeros(0)
            return {"no_stats": [out, mean_size, rstd_size], "functional": [out, mean_size, rstd_size, *running],
                    "no_training": [out, none, none], "with_update": [out, mean_size, rstd_size, none, *running],
                    "no_update": [out, mean_size if training else none, rstd_size if training else none, none]}[name]
        return magnitude

    if name == "no_stats":
        return case.named(label, "_native_batch_norm_legit", "no_stats", x, w, b, True, momentum, eps, error=16 + own(dtype, x.numel()), magnitude=sizes(True))
    if name == "functional":
        return case.named(label, "_native_batch_norm_legit_functional", "", x, w, b, means, variances, True, momentum, eps, error=16 + own(dtype, x.numel()),
                          magnitude=sizes(True))
    if name == "no_training":
        return case.named(label, "_native_batch_norm_legit_no_training", "", x, w, b, means, variances, momentum, eps, error=16 + own(dtype, x.numel()),
                          magnitude=sizes(False))
    if name == "with_update":
        return case.named(label, "_batch_norm_with_update_functional", "", x, w, b, means, variances, momentum, eps, error=16 + own(dtype, x.numel()),
                          magnitude=sizes(True))
    if name == "no_update":
        return case.named(label, "_batch_norm_no_update", "", x, w, b, means, variances, momentum, eps, error=16 + own(dtype, x.numel()), magnitude=sizes(False))
    means, variances = (means, variances) if d.chance(0.7) else (None, None)

    def magnitude(v, means, *_):
        size = finite(v.abs()).mean(over(v))
        found = [size, finite(v.abs() ** 2).mean(over(v)) + size ** 2]
        return found + ([size + finite(means.abs()), 2 * found[1] + 1] if means is not None else [])

    return case.named(label, "batch_norm_update_stats", "", x, means, variances, momentum, error=16 + own(dtype, x.numel()), magnitude=magnitude,
                      **(dict(written=[1, 2], results=True) if means is not None else {}))


def batch_norm_backward(d):
    made = batch_norm_operands(d)
    if made is None:
        return None
    dtype, kind, shape, x, to, c, w, b, means, variances = made
    if kind == "special":
        return None
    train, eps = d.chance(0.6), d.choice((1e-5, 1e-3))
    # For channels-last inputs, which matrices are too, ATen reads them as packed.
    means, variances = means.contiguous(), variances.contiguous()
    w = w.contiguous() if w is not None else None
    g = d.tensor(dtype, shape, d.choice(("normal", "few", "wide")), LAYOUTS)
    # ATen confuses row-major and channels-last gradients if the input has the other format or a size is 1.
    if x.is_contiguous():
        g = g.contiguous()
    elif 1 in shape:
        g = torch.empty_like(x).copy_(g)
        x = torch.empty_like(x).copy_(x)
    if w is None and not train:
        to = dtype
        means, variances = means.to(dtype), variances.to(dtype)
    wide = x.double()
    save_mean = wide.mean(over(x)).to(to)
    save_rstd = (wide.var(over(x), correction=0) + eps).rsqrt().to(to)
    if not train and d.chance(0.5):
        save_mean = save_rstd = torch.empty(0, dtype=to)
    if train and d.chance(0.5):
        means = variances = None
    mask = [d.chance(0.8) for _ in range(3)]

    def magnitude(g, v, w, means, variances, save_mean, save_rstd, *_):
        mean, rstd = (save_mean, save_rstd) if train else (means, (variances + eps).rsqrt())
        hat = (v.abs() + channel(mean.abs(), v)) * channel(rstd, v)
        gm, gh = g.abs().mean(over(v)), (g.abs() * hat).mean(over(v))
        scale = channel(rstd * (of(w) if w is not None else 1), v)
        dx = scale * (g.abs() + (channel(gm, v) + hat * channel(gh, v) if train else 0))
        return [m for m, wanted in zip((dx, (g.abs() * hat).sum(over(v)), g.abs().sum(over(v))), mask) if wanted]

    return case.named(f"{dtype} {shape} {x.stride()} {g.stride()} {kind} weight {w is not None} {to} train {train} mask {mask}",
                      "native_batch_norm_backward", "", g, x, w, means, variances, save_mean, save_rstd, train, eps, mask,
                      error=16 + (x.numel() / c) ** 0.5, magnitude=magnitude)


def rms_norm(d):
    dtype = d.choice(FLOATS + (torch.complex64, torch.complex128))
    kind = d.choice(("normal", "normal", "few", "wide", "special", "zero"))
    if dtype.is_complex and kind == "special":
        kind = "normal"
    shape, normalised = layer_shape(d)
    x = d.tensor(dtype, shape, kind)
    w = parameter(d, normalised, d.choice((dtype, dtype, torch.float32)) if not dtype.is_complex else dtype)
    eps = d.choice((None, 1e-5, 1e-6))
    dims = list(range(len(shape) - len(normalised), len(shape)))

    def exact(v, _, w, given):
        least = given if given is not None else torch.finfo(torch.float64 if dtype in (torch.float64, torch.complex128) else
                                                            torch.float32).eps
        root = ((v * v).mean(dims, True) + least).rsqrt()
        out = v * root
        return [out * w if w is not None else out, root]

    def magnitude(v, _, w, given):
        out, root = exact(v, _, w, given)
        if v.is_complex():
            # Squares of complex numbers may cancel.
            least = given if given is not None else 1e-16
            share = ((v.abs() ** 2).mean(dims, True) + least) * root.abs() ** 2
            return [finite(out.abs() * (1 + share)), finite(root.abs() * (1 + share))]
        return [finite(out.abs()), finite(root.abs())]

    label = f"{dtype} {shape} over {normalised} {x.stride()} {kind} weight {w.dtype if w is not None else None} eps {eps}"
    if d.chance(0.5):
        return case.named(label, "_fused_rms_norm", "", x, normalised, w, eps, error=16 + 0.5 * (x.numel() or 1) ** 0.5, magnitude=magnitude,
                          exact=exact)
    return case.shim(label, "_fused_rms_norm", x, normalised, w, eps, torch=torch.ops.aten._fused_rms_norm,
                     error=16 + 0.5 * (x.numel() or 1) ** 0.5, magnitude=magnitude, exact=exact)


def weight_norm_backward(d):
    dtype = d.choice(FLOATS)
    shape = d.shape(d.choice((1, 2, 2, 3, 4)), 4096, (2, 3, 8, 16, 64), low=1)
    dim = d.choice((0, len(shape) - 1))
    others = [i for i in range(len(shape)) if i != dim]
    of_norm = [n if i == dim else 1 for i, n in enumerate(shape)]
    v, g = d.tensor(dtype, shape, "normal", ("packed",)), d.tensor(dtype, of_norm, "normal", ("packed",))
    to = torch.float32 if dtype in (torch.bfloat16,) else dtype
    norms = torch.linalg.vector_norm(v.double(), dim=others or None if others else [], keepdim=True) if others else v.double().abs()
    norms = norms.reshape(of_norm).to(to)
    grad = d.tensor(dtype, shape, "normal", ("packed",))

    def magnitude(grad, v, g, norms, _):
        along = (grad.abs() * v.abs())
        along = along.sum(others, True) if others else along
        return [g.abs() * (grad.abs() / norms + v.abs() * along / norms ** 3), along / norms]

    return case.named(f"{dtype} {shape} dim {dim}", "_weight_norm_interface_backward", "", grad, v, g, norms, dim,
                      error=24 + max(shape) ** 0.5, magnitude=magnitude)
