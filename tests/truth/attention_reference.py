"""Attention in float64 for the families cuda_attention.py and cuda_sequences.py: results, logsumexp, gradients, and how
much rounding may change each."""
import torch

EPS = 2.0 ** -23


def hidden(queries, keys, device, right=None, left=None, base=0):
    """[queries, keys]: query i sees keys i + base - left to i + base + right."""
    key = torch.arange(keys, device=device)
    place = torch.arange(queries, device=device)[:, None] + base
    mask = torch.zeros(queries, keys, dtype=torch.bool, device=device)
    if right is not None:
        mask |= key > place + right
    if left is not None:
        mask |= key < place - left
    return mask


def grouped(t, heads):
    return t if t.shape[1] == heads else t.repeat_interleave(heads // t.shape[1], 1)


class Attention:
    """q, k, v [B, H, T, D]; mask [Tq, Tk] is true where hidden; bias (what is added to scores) broadcasts."""

    def __init__(self, q, k, v, scale=None, mask=None, bias=None):
        self.given = k.shape[1]
        self.dtype = q.dtype
        self.q, self.k, self.v = (t.double() for t in (q, k, v))
        self.k, self.v = grouped(self.k, q.shape[1]), grouped(self.v, q.shape[1])
        self.scale = q.shape[-1] ** -0.5 if scale is None else scale
        self.scores = self.q @ self.k.mT * self.scale
        self.size = (self.q.abs() @ self.k.abs().mT * abs(self.scale))
        if bias is not None:
            self.scores = self.scores + bias.double()
            self.size = self.size + bias.double().abs().nan_to_num(0, 0, 0)
        if mask is not None:
            self.scores = self.scores.masked_fill(mask, -torch.inf)
            self.size = self.size.masked_fill(mask, 0)
        self.p = self.scores.softmax(-1).nan_to_num(0) if self.scores.shape[-1] else self.scores

    def out(self):
        return self.p @ self.v

    def sums(self, empty):
        """[B, H, Tq]"""
        if not self.scores.shape[-1]:
            return torch.full(self.scores.shape[:-1], empty, dtype=torch.float64, device=self.scores.device)
        sums = self.scores.logsumexp(-1)
        return sums.masked_fill(sums == -torch.inf, empty)

    def doubt(self):
        """[B, H, Tq, 1]: relative error of a probability, from the rounding of its score and, for halves, its own."""
        most = self.size.amax(-1, True) if self.size.shape[-1] else self.size.sum(-1, True)
        half = 1.5 * torch.finfo(self.dtype).eps / EPS if self.dtype.itemsize == 2 else 2 if self.dtype.itemsize == 1 else 0
        return half + 16 * (1 + most)

    def out_doubt(self):
        """In units of float32's eps."""
        return self.p @ self.v.abs() * self.doubt()

    def sums_doubt(self):
        return self.doubt().squeeze(-1) if self.dtype.itemsize > 2 else 12 * (1 + self.size.amax(-1)) if \
            self.size.shape[-1] else self.size.sum(-1)

    def gradients(self, grad, kept=None):
        """Gradients by q, k, v and the bias, and the doubt of each."""
        g = grad.double()
        dp = g @ self.v.mT
        row = (dp * self.p).sum(-1, True)
        ds = self.p * (dp - row)
        # Sums of absolute terms, before they cancel.
        sized = self.p * ((g.abs() @ self.v.abs().mT) + (dp.abs() * self.p).sum(-1, True))
        doubt = self.doubt() * 2
        parts = [ds @ self.k * self.scale, ds.mT @ self.q * self.scale, self.p.mT @ g]
        doubts = [(sized * doubt) @ self.k.abs() * abs(self.scale), (sized * doubt).mT @ self.q.abs() * abs(self.scale),
                  (self.p * doubt).mT @ g.abs()]
        for i in (1, 2):
            if self.given != parts[i].shape[1]:
                b, h = parts[i].shape[:2]
                parts[i], doubts[i] = (t.reshape(b, self.given, h // self.given, *t.shape[2:]).sum(2)
                                       for t in (parts[i], doubts[i]))
        return parts + [ds], doubts + [sized * doubt]
