"""Draws operator samples from PyTorch's OpInfo database and traces them.

A sample is named OPERATOR:DTYPE:NUMBER:LAYOUT:DIRECTION and can be made again from its name alone. OpInfo's error_inputs are
not drawn, because they fail during tracing, so no package can contain them.
"""
import functools
import itertools
import random
import zlib

import numpy
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

# Left out by name, each for the reason given.
UNDEFINED = {name: "contents of fresh memory" for name in (
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_",
    "resize_as_")}
UNDEFINED |= {name: "CUDA's just-in-time kernels" for name in (
    "jiterator_unary", "jiterator_binary", "jiterator_4inputs_with_extra_args", "jiterator_binary_return_by_ref",
    "jiterator_2inputs_2outputs")}
UNDEFINED |= {name: "sparse tensors" for name in ("to_sparse", "sparse.sampled_addmm", "sparse.mm.reduce")}
UNDEFINED |= {name: "vectors up to sign or phase" for name in (
    "svd_lowrank", "pca_lowrank", "linalg.eig", "linalg.eigh", "linalg.svd", "svd")}

# By layout and a part of the operator's name: samples that are not drawn, and why.
NOT_DRAWN = {("special", "conv"): "whether the padding's zeros meet infinity is up to the algorithm",
             ("special", "attention"): "whether NaN in a row reaches the result depends on PyTorch's vector width",
             ("transposed", "_scaled_dot_product_flash_attention_for_cpu"):
                 "PyTorch's kernel takes the last dimension for contiguous and reads other memory",
             ("special", "_scaled_mm"): "where infinite scales meet sums is up to the kernel",
             ("special", "linalg"): "how far NaN and infinity spread is up to the LAPACK library",
             ("special", "cholesky"): "how far NaN and infinity spread is up to the LAPACK library",
             ("special", "fft"): "how far NaN and infinity spread is up to the algorithm",
             ("special", "layer_norm"): "whether infinity makes a mean NaN depends on its place among PyTorch's vectors",
             ("special", "group_norm"): "whether infinity makes a mean NaN depends on its place among PyTorch's vectors",
             ("expanded", "median"): "PyTorch sorts the elements in place, where they overlap"}

LAYOUTS = ["plain", "plain", "strided", "transposed", "offset", "expanded", "empty", "special"]
WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float64,
         torch.complex64: torch.complex128, torch.complex32: torch.complex64}
MOST_BYTES = 1 << 20
MOST_PER_DTYPE = 80


def full_name(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


OPERATORS = {full_name(op): op for op in op_db if op.dtypes and full_name(op) not in UNDEFINED}


class LeftOut(Exception):
    """PyTorch itself cannot make or compile this sample."""


def seed_all(text):
    seed = zlib.crc32(text.encode())
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    random.seed(seed)
    return random.Random(seed)


def draw_names(operator, count, seed):
    """COUNT names of samples of one operator."""
    op = OPERATORS[operator]
    rng = random.Random(f"{operator} {seed}")
    dtypes = sorted(op.dtypes - {getattr(torch, "bcomplex32", None)}, key=str)  # the C ABI has no number for it
    names = set()
    for _ in range(count):
        dtype = rng.choice(dtypes)
        directions = ["forward"] * 3
        if op.supports_autograd and dtype in op.backward_dtypes and (dtype.is_floating_point or dtype.is_complex):
            directions.append("backward")
        names.add(":".join((operator, str(dtype).removeprefix("torch."), str(rng.randrange(MOST_PER_DTYPE)),
                            rng.choice(LAYOUTS), rng.choice(directions))))
    return sorted(names)


def relayout(tensor, layout, rng):
    """The same values, or other ones of the same shape ("expanded", "special"), or fewer ("empty")."""
    if layout == "strided" and tensor.dim() > 0:
        wide = torch.zeros(*tensor.shape[:-1], 2 * tensor.shape[-1], dtype=tensor.dtype)
        wide[..., ::2] = tensor
        return wide[..., ::2]
    if layout == "transposed" and tensor.dim() > 1:
        return tensor.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "offset":
        flat = torch.zeros(tensor.numel() + 3, dtype=tensor.dtype)
        flat[3:] = tensor.reshape(-1)
        return flat[3:].view(tensor.shape)
    if layout == "expanded" and tensor.dim() > 0 and tensor.shape[0] > 1:
        return tensor[:1].contiguous().expand(tensor.shape)
    if layout == "empty" and tensor.dim() > 0:
        return tensor[:0].contiguous()
    if layout == "special" and tensor.numel() > 0 and tensor.is_floating_point() and tensor.element_size() > 1:
        flat = tensor.contiguous().clone().reshape(-1)
        # Huge numbers are left out, because whether their sums overflow depends on the order of additions.
        for value in (float("nan"), float("inf"), -float("inf"), -0.0, torch.finfo(tensor.dtype).tiny):
            flat[rng.randrange(flat.numel())] = value
        return flat.view(tensor.shape)
    return tensor


@functools.lru_cache(maxsize=2)
def inputs_of(operator, dtype):
    seed_all(f"{operator} {dtype}")
    return list(itertools.islice(OPERATORS[operator].sample_inputs("cpu", dtype, requires_grad=False), MOST_PER_DTYPE))


class Sample:
    """One call of an operator: its tensors, and a function of them alone."""

    def __init__(self, name):
        self.name = name
        operator, dtype, number, layout, direction = name.rsplit(":", 4)
        dtype, self.backward = getattr(torch, dtype), direction == "backward"
        self.op = OPERATORS[operator]
        self.random = False
        found = inputs_of(operator, dtype)
        if not found:
            raise LeftOut("the database has no sample")
        drawn = found[int(number) % len(found)]
        rng = seed_all(name)
        leaves, self.spec = pytree.tree_flatten((drawn.input, drawn.args, drawn.kwargs))
        self.leaves, self.tensors = [], []
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                if leaf.layout != torch.strided or leaf.is_quantized or leaf.device.type != "cpu":
                    raise LeftOut("a tensor that is not strided")
                self.tensors.append(relayout(leaf.detach().resolve_conj().resolve_neg(), layout, rng))
            self.leaves.append(None if isinstance(leaf, torch.Tensor) else leaf)
        self.is_tensor = [isinstance(leaf, torch.Tensor) for leaf in leaves]
        for (not_drawn, word), reason in NOT_DRAWN.items():
            if layout == not_drawn and word in operator:
                raise LeftOut(reason)
        if sum(t.untyped_storage().nbytes() for t in self.tensors) > MOST_BYTES:
            raise LeftOut("too large")
        self.operand_count = len(self.tensors)
        self.prepare()

    def forward(self, *tensors):
        given = iter(tensors)
        leaves = [next(given) if place else leaf for leaf, place in zip(self.leaves, self.is_tensor)]
        first, args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return [r for r in pytree.tree_leaves(self.op(first, *args, **kwargs)) if isinstance(r, torch.Tensor)]

    def gradients(self, *tensors):
        """Of the floating operands, for cotangents that follow the operands."""
        operands = [t.detach().requires_grad_(t.is_floating_point() or t.is_complex())
                    for t in tensors[:self.operand_count]]
        with torch.enable_grad():
            results = [r for r in self.forward(*operands) if r.requires_grad]
            wanted = [t for t in operands if t.requires_grad]
            found = torch.autograd.grad(results, wanted, list(tensors[self.operand_count:]), allow_unused=True)
        return [g for g in found if g is not None]

    def function(self, *tensors):
        if self.writes:
            tensors = [t.clone() for t in tensors]
        return self.gradients(*tensors) if self.backward else self.forward(*tensors)

    def prepare(self):
        """Makes the cotangents; runs eagerly, which must succeed and give the same twice."""
        self.writes = False  # whether it writes its operands, which are then copied
        try:
            if self.backward:
                with torch.enable_grad():
                    results = self.forward(*[t.clone().requires_grad_(t.is_floating_point() or t.is_complex())
                                             for t in self.tensors])
                self.tensors += [torch.randn(r.shape, dtype=r.dtype) for r in results if r.requires_grad]
            self.wanted = self.eager()
            again = self.eager(seed=1)
        except Exception as error:
            raise LeftOut("eager refuses: " + str(error).split("\n")[0][:100]) from None
        if not self.wanted:
            raise LeftOut("no tensor comes out")
        if any(w.layout != torch.strided or w.is_quantized or w.device.type != "cpu" for w in self.wanted):
            raise LeftOut("a result that is not strided")
        if sum(w.numel() * w.element_size() for w in self.wanted) > MOST_BYTES:
            raise LeftOut("too large")
        self.random = False
        if not all(map(same, self.wanted, again)):
            self.random = True
            if not all(map(same, self.wanted, self.eager())):
                raise LeftOut("eager gives different results twice")

    def eager(self, seed=0):
        torch.manual_seed(seed)
        with torch.no_grad():
            copies = [copy_of(t) for t in self.tensors]
            results = [r.detach().resolve_conj().resolve_neg().clone() for r in self.function(*copies)]
        self.writes = self.writes or not all(map(same, copies, self.tensors))
        return results

    def errors(self):
        """For each result, PyTorch's own largest error in this dtype, measured against the next wider one."""
        try:
            torch.manual_seed(0)
            with torch.no_grad():
                exact = self.function(*(t.to(WIDER.get(t.dtype, t.dtype)) for t in self.tensors))
        except Exception:
            return [0.0] * len(self.wanted)
        found = []
        for wanted, wide in zip(self.wanted, exact):
            if wanted.shape != wide.shape or wanted.dtype not in WIDER or self.random:
                found.append(0.0)
                continue
            difference = (wanted.to(wide.dtype) - wide).abs()
            if bool((wanted.isnan() & wide.isfinite()).any()):
                raise LeftOut("PyTorch's own rounding makes NaN")
            difference = difference[difference.isfinite()]
            largest = wide[wide.isfinite()].abs()
            found.append(float(difference.max()) if difference.numel() else 0.0)
            if largest.numel() and found[-1] > 0.1 * float(largest.max()) and wanted.isfinite().all():
                raise LeftOut("PyTorch's own result is wrong by a tenth")
        return found

    def trace(self, decompositions=None):
        """The graph of ATen operators that the compiler sees, with or without its decompositions."""
        try:
            with torch.no_grad():
                graph = make_fx(lambda *t: tuple(self.function(*t)), decomposition_table=decompositions or {},
                                tracing_mode="fake")(*self.tensors)
        except Exception as error:
            raise LeftOut("not traceable: " + type(error).__name__) from None
        graph.graph.eliminate_dead_code()
        graph.recompile()
        return graph


def copy_of(tensor):
    """Copies the whole storage, so that strides and overlaps stay."""
    return torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage().clone(), tensor.storage_offset(),
                                                   tensor.shape, tensor.stride())


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(bits(a), bits(b))


def bits(tensor):
    return torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.reshape(-1)).view(torch.uint8)
