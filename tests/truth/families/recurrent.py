"""Recurrent layers: mkldnn_rnn_layer (src/cpu/layers/rnn.cpp), one layer and direction of an LSTM.

By its C function and by name; weights plain, constant, packed by oneDNN. Compared with the recurrence in float64, with
an error that grows with the number of steps.
Limits: gates computed ahead up to 1 MiB, 200000 multiplications per step for another thread, tiles of 4 hidden channels
by the batch's rows; channel tiles as convolution's.
"""
import torch

import abi
import case

DEVICES = ("cpu",)


def lstm(x, w0, w1, b0, b1, h, c, reverse):
    h, c, out = h.reshape(-1, h.size(-1)), c.reshape(-1, c.size(-1)), [None] * x.size(0)
    for t in reversed(range(x.size(0))) if reverse else range(x.size(0)):
        gates = x[t] @ w0.mT + h @ w1.mT
        if b0 is not None:
            gates = gates + b0 + b1
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        out[t] = h
    return (torch.stack(out) if out else x.new_zeros(0, *h.shape)), h, c


def draw(d):
    steps, batch, inputs = d.size(1, 4, low=1, high=30), d.size(1, 4, 8, low=1, high=20), d.size(1, 8, 16, 64, low=1, high=130)
    hidden = d.size(2, 4, 8, 16, 32, 64, low=1, high=150)
    if d.chance(0.04):  # more gates than are computed ahead
        steps, batch, hidden = d.choice((33, 40)), d.choice((16, 17)), d.choice((128, 130))
    while steps * batch * hidden * (inputs + hidden) > 1 << 23:
        steps = (steps + 1) // 2
        batch = (batch + 1) // 2
        hidden = (hidden + 1) // 2
    dtype = d.choice((torch.float32, torch.float32, torch.float32, torch.bfloat16))
    kind = d.choice(("normal", "normal", "few"))
    x = d.tensor(dtype, (steps, batch, inputs), kind, ("packed", "permuted", "permuted", "sliced", "offset", "expanded"))
    part = 0.5 / max(hidden, inputs) ** 0.5
    w0, w1 = ((d.values(dtype, (4 * hidden, n), "normal") * part * d.choice((1, 1, 4))).to(dtype) for n in (inputs, hidden))
    biased, reverse, train = d.chance(0.6), d.chance(0.4), d.chance(0.3)
    b0, b1 = ((d.values(dtype, (4 * hidden,)), d.values(dtype, (4 * hidden,))) if biased else (torch.zeros(4 * hidden, dtype=dtype),) * 2)
    shape = d.choice(((1, batch, hidden), (batch, hidden)))
    h, c = (d.tensor(dtype, shape, "normal", ("packed", "packed", "sliced", "permuted")) for _ in range(2))
    way = d.choice(("plain", "constant", "packed"))
    hold = abi.Constant if way == "constant" else (lambda t: t)
    packed = None
    if way == "packed":
        with abi.packing():
            packed = torch.ops.mkldnn._reorder_mkldnn_rnn_layer_weight(w0, w1, hidden, reverse, biased, False, d.choice((None, [steps, batch, inputs])))
    if d.chance(0.3) and way != "packed":
        w0, w1 = d.laid_out(w0, ("permuted", "sliced")), d.laid_out(w1, ("permuted", "sliced"))
    by_name = d.chance(0.2)

    def ours(x, w0, w1, b0, b1, h, c):
        left, right = packed[:2] if packed is not None else (hold(w0), hold(w1))
        if by_name and packed is None:
            results = abi.call_named("mkldnn_rnn_layer", "", x, left, right, b0, b1, h, c, reverse, [], 2, hidden, 1, biased, False, False, train)
        else:
            results = abi.call("mkldnn_rnn_layer", x, left, right, b0, b1, h, c, reverse, [], 2, hidden, 1, biased, False, False, train)
        return results[:3]

    def formula(x, w0, w1, b0, b1, h, c):
        out, hn, cn = lstm(x, w0, w1, b0 if biased else None, b1, h, c, reverse)
        return out, hn.reshape(h.shape), cn.reshape(c.shape)

    def aten(x, w0, w1, b0, b1, h, c):
        return torch.ops.aten.mkldnn_rnn_layer(x, w0.contiguous(), w1.contiguous(), b0, b1, h.contiguous().reshape(1, batch, hidden),
                                               c.contiguous().reshape(1, batch, hidden), reverse, [], 2, hidden, 1, biased, False, False, False)[:3]

    def same(*v):
        if dtype == torch.bfloat16:
            return [t.to(dtype) for t in formula(*[t.float() for t in v])]
        out, hn, cn = aten(*v)
        return out, hn.reshape(shape), cn.reshape(shape)

    def size(x, w0, w1, b0, b1, h, c):
        terms = x.abs().amax() * w0.abs().sum(1).amax() + w1.abs().sum(1).amax() * max(1, h.abs().amax()) + b0.abs().amax() + b1.abs().amax()
        grown = (1 + terms) * (1 + c.abs().amax() + steps)
        return [torch.full((), float(grown), dtype=torch.float64)] * 3
    return case.Case(f"mkldnn_rnn_layer {dtype} steps {steps} batch {batch} inputs {inputs} hidden {hidden} {way} biases {biased} reverse {reverse} "
                     f"train {train} {'by name' if by_name else ''} strides {list(x.stride())} state {list(shape)} {list(h.stride())}", ours, same,
                     [x, w0, w1, b0, b1, h, c], exact=formula, error=4, magnitude=size, strides=False)
