"""One call of ours, and ATen's result for the same tensors.

    named(label, "topk", "", x, 3, -1, True)                 integers and positions: equal to the bit
    named(label, "sum", "dim_IntList", x, [1], error=terms)  floats: near ATen's result in float64
    shim(label, "mm_out", out, a, b, torch=..., written=[0], error=..., magnitude=...)

Near means |ours - exact| <= eps(dtype) * |exact| + error * eps(arithmetic) * magnitude, where half types compute in
float32, and magnitude is the sum of the terms' absolute values (a tensor, or a function of the arguments in float64;
default |exact|). Three times ATen's own error in the same dtype is allowed too: the oracle is ATen, not ideal
arithmetic.
"""
import dataclasses
import typing

import torch

import abi
from draw import copy_of

WIDE = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
        torch.complex64: torch.complex128, torch.complex32: torch.complex128,
        torch.float8_e4m3fn: torch.float64, torch.float8_e5m2: torch.float64}
SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
ARITHMETIC = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}


@dataclasses.dataclass
class Case:
    label: str                    # what was drawn, in words
    ours: typing.Callable         # arguments -> results
    torch: typing.Callable        # the same by ATen
    arguments: list
    written: typing.Sequence[int] = ()  # arguments that the operator writes: compared, with the memory around them
    error: float | None = None    # None: to the bit
    magnitude: typing.Any = None
    exact: typing.Callable | None = None  # arguments in float64 -> results, if not `torch` again
    strides: bool = True          # compare the strides of results
    skip: typing.Sequence[int] = ()  # results that are not compared
    same_nan: bool | None = True  # infinities and NaN as in ATen in the same dtype; None: where ATen has NaN,
                                  # in float64 too, ours may be a number
    slack: float = 3.0            # how many times ATen's own error is allowed
    results: bool = False         # if arguments are written: compare results too
    fails: str | None = None      # both must refuse; ours with this text
    both: bool = False            # ours must refuse what PyTorch refuses, except dtypes that ATen has no kernel for
    zeros: bool = False           # when comparing to the bit, compare the signs of zeros too
    bits: bool = False            # with error None: compare every bit of every byte
    each: bool = False            # elementwise: allow ATen's error of the same element, not of the worst
    known: str | None = None      # why a difference is deliberate (docs/correctness.md)


def named(label, name, overload, *arguments, proxied=False, lists=0, **options):
    """proxied: called as packages do, so numbers stay integer, bool or complex. lists: see abi.call_proxied."""
    fields = {f.name for f in dataclasses.fields(Case)}
    case = {k: options.pop(k) for k in list(options) if k in fields}
    namespace, _, short = name.rpartition("::")
    try:
        operator = getattr(getattr(getattr(torch.ops, namespace or "aten"), short), overload or "default")
    except AttributeError:
        raise abi.Missing(name) from None
    schema = operator._schema.arguments
    # torch's stable ABI passes numbers of unknown kind as floats.
    number = [("number" in str(a.type)) and not proxied for a in schema]
    given = [float(v) if n and isinstance(v, (int, float)) else v for v, n in zip(arguments, number)]
    count = sum(1 for a in schema if not a.kwarg_only)

    keywords = {k: (float(v) if not proxied and v is not None and any(a.name == k and "number" in str(a.type) for a in schema) else v)
                for k, v in options.items()}
    options = keywords

    def with_torch(*values, widely=False):
        positional, rest = values[:count], values[count:]
        extra = {a.name: v for a, v in zip([a for a in schema if a.kwarg_only], rest)}
        return operator(*positional, **extra, **{k: wide_type(v) if widely else v for k, v in options.items()})

    if any(isinstance(v, torch.dtype) for v in options.values()):
        case.setdefault("exact", lambda *values: with_torch(*values, widely=True))

    def with_ours(*values):
        if proxied:
            return abi.call_proxied(name, overload, *values, lists=lists, **keywords)
        return abi.call_named(name, overload, *values, **keywords)

    return Case(f"{name}.{overload} {label}" if overload else f"{name} {label}", with_ours, with_torch, given, **case)


def shim(label, name, *arguments, torch, **options):
    """torch: the same call by ATen. It gets the arguments and returns results, or writes those that `written` lists."""
    return Case(f"{name} {label}", lambda *values: abi.call(name, *values), torch, list(arguments), **options)


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    return []


def mapped(value, function):
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(v, function) for v in value)
    return value


def copies(arguments):
    """Copies that share storages like the originals."""
    storages = {}

    def copy(t):
        key = t.untyped_storage().data_ptr()
        if t.untyped_storage().nbytes() == 0:
            return copy_of(t)
        if key not in storages:
            storages[key] = t.untyped_storage().clone()
        return torch.empty(0, dtype=t.dtype, device=t.device).set_(storages[key], t.storage_offset(), t.shape, t.stride())

    return [mapped(a, copy) for a in arguments]


def wide_type(value):
    return WIDE.get(value, value) if isinstance(value, torch.dtype) else value


def widened(arguments):
    """Converted to float64 on the same device: a GPU is the faster oracle too."""
    return [wide_type(mapped(a, lambda t: t.to(WIDE.get(t.dtype, t.dtype), copy=True))) for a in arguments]


def flat(results):
    if results is None:
        return []
    return [r for r in (results if isinstance(results, (tuple, list)) else [results])
            if not isinstance(r, (tuple, list))] + [
                s for r in (results if isinstance(results, (tuple, list)) else []) if isinstance(r, (tuple, list)) for s in r]


def storage_bytes(t):
    return torch.empty(0, dtype=torch.uint8, device=t.device).set_(t.untyped_storage())


def real(t):
    if t.is_complex():
        return torch.view_as_real(t.resolve_conj().resolve_neg().to(torch.complex128))
    return t.double()


def shapes(got, expected, strides):
    if got.dtype != expected.dtype or list(got.shape) != list(expected.shape):
        return f"{got.dtype} {list(got.shape)} for {expected.dtype} {list(expected.shape)}"
    if strides and expected.numel():
        ours = [s for s, n in zip(got.stride(), got.shape) if n > 1]
        theirs = [s for s, n in zip(expected.stride(), expected.shape) if n > 1]
        if ours != theirs:
            return f"strides {tuple(got.stride())} for {tuple(expected.stride())} of {list(expected.shape)}"
    return None


def first_wrong(wrong, got, wanted, also=None):
    place = tuple(wrong.nonzero()[0].tolist())
    text = f"{int(wrong.sum())} of {wrong.numel()} differ, at {place}: {got[place].item()!r} for {wanted[place].item()!r}"
    return text + (f" (allowed {also[place].item():.3g})" if also is not None else "")


def to_the_bit(got, expected, zeros=False, bits=False):
    a, b = got.to(expected.device), expected
    if bits and a.numel():
        x, y = [torch.empty(t.shape, dtype=t.dtype).copy_(t).reshape(-1).view(torch.uint8) for t in (a, b)]
        if torch.equal(x, y):
            return None
        size = a.itemsize
        at = int((x != y).nonzero()[0]) // size
        u, v = [t.reshape(-1)[at].item() for t in (a, b)]
        place = slice(at * size, (at + 1) * size)
        return f"element {at}: {u!r} {bytes(x[place].tolist()).hex()} for {v!r} {bytes(y[place].tolist()).hex()}"
    if a.is_floating_point() or a.is_complex():
        a, b = real(a), real(b)
        wrong = ~((a == b) | (a.isnan() & b.isnan()))
        if zeros:
            wrong |= (a == b) & (a.signbit() != b.signbit())
    elif a.dtype in SIGNED:  # few operators take these
        a, b = a.contiguous().view(SIGNED[a.dtype]), b.contiguous().view(SIGNED[a.dtype])
        wrong = a != b
    else:
        wrong = a != b
    return first_wrong(wrong, a, b) if bool(wrong.any()) else None


def near(case, got, same, exact, magnitude):
    dtype = same.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        return to_the_bit(got, same)
    arithmetic = ARITHMETIC.get(dtype, dtype)
    a, s, e = (real(t.to(same.device)) for t in (got, same, exact))
    m = e.abs() if magnitude is None else magnitude.to(same.device).double()
    if m.dim() < a.dim() and got.is_complex():
        m = m.unsqueeze(-1)
    m = m.expand(a.shape)
    least = torch.finfo(dtype).tiny * 8
    if case.each:
        m = torch.where(m.isfinite(), m, 4 * e.abs())
        least = torch.finfo(dtype).tiny * (torch.finfo(dtype).eps if dtype.itemsize == 2 else 8 if dtype.is_complex else 1)
    m = m.nan_to_num(0, 0, 0)
    allowed = (1 if case.each else 2) * torch.finfo(dtype).eps * e.abs() + case.error * torch.finfo(arithmetic).eps * m + least
    theirs = (s - e).abs().nan_to_num(0, 0, 0)
    if theirs.numel():
        allowed = allowed + case.slack * (theirs if case.each else theirs.max())
    if dtype == torch.float16:
        allowed = allowed + 6e-8
    fine = (a == e) | (a == s) | ((a - e).abs() <= allowed)
    beyond = e.abs() + allowed >= torch.finfo(dtype).max  # out of the dtype's range, though not of float64's
    fine = fine | (a.isinf() & beyond & (a.sign() == e.sign()))
    odd = ~s.isfinite() | ~e.isfinite() | ~a.isfinite()
    if case.same_nan is not False:
        fine = torch.where(odd, (a.isinf() & beyond & (a.sign() == e.sign())) | (a == s) | (a.isnan() & s.isnan()) | ((a - e).abs() <= allowed) |
                           (~s.isfinite() & ((a == e) | (a.isnan() & e.isnan()))), fine)
    else:
        fine = fine | odd
    if case.same_nan is None:
        fine = fine | (s.isnan() & e.isnan())
    return first_wrong(~fine, a, e, allowed.expand(a.shape)) if not bool(fine.all()) else None


def judge(case):
    """None, or a description of what is wrong."""
    theirs, ours, read = copies(case.arguments), copies(case.arguments), copies(case.arguments)
    refused = None
    try:
        same = flat(case.torch(*theirs))
    except (RuntimeError, IndexError, ValueError, NotImplementedError) as error:
        refused = error
    try:
        got = case.ours(*ours)
    except abi.Failed as error:
        if refused is None:
            return f"refused: {error}"
        return None if case.fails is None or case.fails in str(error) else f"refused in other words: {error}"
    if refused is not None:
        lacks = any(text in str(refused) for text in ("not implemented for", "only supports", "INTERNAL ASSERT"))
        return None if case.fails is None and (not case.both or lacks) else f"not refused, though PyTorch says: {str(refused)[:200]}"
    # Arguments that are only read must not change.
    written = {t.untyped_storage().data_ptr() for i in case.written for t in tensors_in(ours[i])}
    for t, before in zip(tensors_in(ours), tensors_in(read)):
        if t.untyped_storage().data_ptr() not in written and not torch.equal(storage_bytes(t), storage_bytes(before)):
            return f"an argument of {list(t.shape)} was written, which is only read"
    if case.written:
        got, same = ([], []) if not case.results else ([g for g in got if g is not None], [s for s in same if s is not None])
        for i in case.written:
            for t, expected in zip(tensors_in(ours[i]), tensors_in(theirs[i])):
                got.append(t)
                same.append(expected)
                if not around_is_same(t, expected):
                    return "memory around what is written has changed"
    same, got = [s for s in same if s is not None], [g for g in got if g is not None]
    if len(got) < len(same):
        return f"{len(got)} results for {len(same)}"
    exact = magnitude = None
    if case.error is not None:
        wide = widened(case.arguments)
        results = flat((case.exact or case.torch)(*wide))
        if case.written and case.exact is None:
            results = (results if case.results else []) + [t for i in case.written for t in tensors_in(wide[i])]
        exact = [r for r in results if r is not None]
        magnitude = case.magnitude(*widened(case.arguments)) if callable(case.magnitude) else case.magnitude
    for i, (g, s) in enumerate(zip(got, same)):
        if i in case.skip:
            continue
        if not isinstance(s, torch.Tensor):
            if g != s and not (isinstance(g, torch.Tensor) and g.item() == s):
                return f"result {i}: {g} for {s}"
            continue
        if g is None:
            return f"result {i}: None"
        if text := shapes(g, s, case.strides):
            return f"result {i}: {text}"
        if s.numel() == 0:
            continue
        if case.error is None:
            text = to_the_bit(g, s, case.zeros, case.bits)
        else:
            m = magnitude[i] if isinstance(magnitude, (list, tuple)) else magnitude
            text = near(case, g, s, exact[i], m)
        if text:
            return f"result {i}: {text}"
    return None


def around_is_same(ours, theirs):
    """Whether the storages are equal outside the elements of the views."""
    a, b = storage_bytes(ours).clone(), storage_bytes(theirs).clone()
    for bytes_, view in ((a, ours), (b, theirs)):
        torch.empty(0, dtype=view.dtype, device=view.device).set_(
            bytes_.untyped_storage(), view.storage_offset(), view.shape, view.stride()).zero_()
    return torch.equal(a, b)
