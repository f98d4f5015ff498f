"""Tensors from numbers: arange, range, linspace, logspace, eye, full, fill, windows, frequencies, triangular indices: src/cpu/random/ranges.cpp, fill.cpp,
factory.cpp, windows.cpp.

To the bit if values are integers or single; spaced floats near float64's, because ATen computes them from the first of each vector,
so their last bits depend on the machine. Limits: 32768 elements per thread, bytes that are all equal (memset) or not, dense or strided
(fill_bytes), 32 bytes at once (fill_run), halves from both ends (spaced).
"""
import torch

import case
from indexing import MOVED

DEVICES = ("cpu",)
FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
WRITABLE = ("packed", "permuted", "sliced", "offset", "padded", "channels_last")
SIZES = (2, 7, 8, 16, 31, 32, 33, 64, 256, 1000, 32768)


def half(dtype):
    return 2 ** 13 if dtype == torch.float16 else 2 ** 16 if dtype == torch.bfloat16 else 1


def draw_spaced(d):
    op = d.choice(("arange", "arange", "range", "linspace", "linspace", "logspace"))
    start = d.choice((0, 0, 1, -3, 7, 0.5, -2.25, 100))
    # The stable ABI passes numbers as floats; integers of an integer dtype stay exact.
    if op in ("arange", "range"):
        n = d.size(2, 8, 16, 64, 256, low=0, high=2000)
        step = d.choice((1, 1, 2, 3, -1, -2, 0.5, 0.1, 0.3, -0.7))
        end = start + step * n - (d.choice((0, 0, 0.25)) * (1 if step > 0 else -1) if op == "arange" else 0)
        if (end - start) * step < 0:
            end = start
        dtype = d.choice((None, torch.float32, torch.float64) + FLOATS + WHOLE)
        if dtype is not None and not dtype.is_floating_point:
            start, step = int(start), int(step) or 1
            end = start + step * min(n, 25 if dtype in (torch.int8, torch.uint8) else 2000)
            if dtype == torch.uint8:
                start, end, step = abs(start), abs(start) + abs(step) * min(n, 25), abs(step)
        result = dtype or torch.float32
        how = dict(both=True)
        if result.is_floating_point:
            how |= dict(error=4.0 * half(result), magnitude=torch.tensor(float(max(abs(start), abs(end), abs(step)))),
                        exact=lambda *a, dtype=None: None)
            numbers = (float(start), float(end), float(step))
        label = f"{start} {end} {step} {dtype}"
        if op == "arange":
            form = d.choice(("start_step", "start_step", "start", ""))
            if form == "":
                if end < 0:
                    return None
                made = case.named(f"{end} {dtype}", op, "", end, dtype=dtype, **how)
                numbers = (0.0, float(end), 1.0)
            elif form == "start":
                if end < start:
                    return None
                made = case.named(label, op, form, start, end, dtype=dtype, **how)
                numbers = (float(start), float(end), 1.0)
            else:
                made = case.named(label, op, form, start, end, step, dtype=dtype, **how)
        else:
            made = case.named(label, op, "step", start, end, step, dtype=dtype, **how)
        if made.error is not None:
            made.exact = lambda *v: numbers[0] + numbers[2] * torch.arange(made.torch(*v).numel(), dtype=torch.float64)
        return made
    steps = d.size(2, 3, 8, 16, 17, 64, 256, low=0, high=3000)
    end = d.choice((start, 0, 1, 5, -7.5, 100, 3.3))
    dtype = d.choice((None,) + FLOATS + (WHOLE[:-1] if op == "linspace" else ()))
    if op == "logspace":
        start, end = start % 3, end % 4 if abs(end) < 50 else 2
    overload = d.choice(("", "", "Tensor_Tensor", "Scalar_Tensor", "Tensor_Scalar"))
    one = torch.tensor(float(start), dtype=torch.float64) if overload.startswith("Tensor") else float(start)
    two = torch.tensor(float(end), dtype=torch.float64) if overload.endswith("Tensor") else float(end)
    result = dtype or torch.float32
    label = f"{start} {end} {steps} {dtype}"
    if op == "linspace":
        if not result.is_floating_point:
            # Half-way values fall to either side by the last bit of a float step.
            end = start = int(start)
            end = start + d.choice((1, 2, -1)) * max(steps - 1, 0)
            if dtype == torch.int8 and abs(end) > 120 or dtype == torch.int16 and abs(end) > 30000:
                return None
            return case.named(f"{start} {end} {steps} {dtype}", op, "", float(start), float(end), steps, dtype=dtype)
        return case.named(label, op, overload, one, two, steps, dtype=dtype, error=8.0 * half(result), slack=1.0,
                          magnitude=torch.tensor(float(max(abs(start), abs(end)))),
                          exact=lambda a, b, n: torch.linspace(float(start), float(end), n, dtype=torch.float64))
    base = d.choice((10.0, 2.0, 1.5))
    return case.named(f"{label} base {base}", op, overload, one, two, steps, base, dtype=dtype, error=32.0 * half(result), slack=1.0,
                      exact=lambda a, b, n, c: torch.logspace(float(start), float(end), n, c, dtype=torch.float64))


def draw_fill(d):
    op = d.choice(("fill_", "fill_", "zero_", "fill", "full", "full_like", "zeros", "ones", "zeros_like", "ones_like", "new_full", "new_zeros", "new_ones",
                   "eye", "eye_m", "scalar_tensor", "tril_indices", "triu_indices", "empty", "zero"))
    dtype = d.choice(MOVED[:-3])
    shape = d.shape(d.choice((0, 1, 2, 3, 4)), d.choice((30, 1000, 5000, 70000)), SIZES, low=0 if d.chance(0.05) else 1)
    floats = dtype.is_floating_point or dtype.is_complex
    number = d.choice((0, 1, 7, 100, True) if not floats else (0, 1, -0.5, 0.1, float("inf"), float("nan"), -0.0, 60000.0, 1e-7))
    exact = dict(zeros=True, both=True)
    label = f"{dtype} {shape} {number}"
    if op == "fill_":
        x = d.tensor(dtype, shape, "normal", WRITABLE)
        if d.chance(0.5):
            return case.shim(f"{label} {x.stride()}", "fill__Scalar", x, number, torch=lambda a, v: a.fill_(v), written=[0], **exact)
        return case.named(f"{label} {x.stride()}", "fill_", "Scalar", x, number, written=[0], **exact)
    if op == "zero_":
        x = d.tensor(dtype, shape, "normal", WRITABLE)
        return case.named(f"{label} {x.stride()}", "zero_", "", x, written=[0], **exact)
    x = d.tensor(dtype, shape, "normal")
    to = d.choice((None, None, torch.float32, torch.int64, torch.bool, torch.bfloat16)) if number == number and abs(number) < 300 else None
    if op in ("fill",):
        return case.named(f"{label} {x.stride()}", op, "Scalar", x, number, **exact)
    if op == "zero":
        return case.named(f"{label} {x.stride()}", op, "", x, **exact)
    if op == "full":
        return case.named(label, op, "", shape, number, dtype=dtype, **exact)
    if op == "full_like":
        return case.named(f"{label} {x.stride()}", op, "", x, number, dtype=to, **exact)
    if op in ("zeros", "ones"):
        return case.named(label, op, "", shape, dtype=dtype, **exact)
    if op in ("zeros_like", "ones_like"):
        return case.named(f"{label} {x.stride()}", op, "", x, dtype=to, **exact)
    if op == "new_full":
        return case.named(label, op, "", x, shape[:2], number, dtype=to, **exact)
    if op in ("new_zeros", "new_ones"):
        return case.named(label, op, "", x, shape[:2], dtype=to, **exact)
    if op == "eye":
        return case.named(label, op, "", d.size(2, 8, 32, low=0, high=200), dtype=dtype, **exact)
    if op == "eye_m":
        return case.named(label, "eye", "m", d.size(2, 8, 32, low=0, high=200), d.size(2, 8, 32, low=0, high=200), dtype=dtype, **exact)
    if op == "scalar_tensor":
        return case.named(label, op, "", number, dtype=dtype, **exact)
    if op == "empty":
        made = case.named(label, "empty_strided" if d.chance(0.5) else "new_empty_strided", "", *([x] if False else []), shape, list(
            torch.empty(shape).stride()), dtype=dtype, skip=(0,)) if False else case.named(f"{label} {x.stride()}", "empty_like", "", x, dtype=to)
        made.error, made.magnitude, made.same_nan = 0.0, torch.tensor(float("inf")), False
        other = made.torch
        made.torch = lambda *v: other(*v).zero_()
        mine = made.ours
        made.ours = lambda *v: [r.zero_() for r in mine(*v)]
        return made
    rows, columns = d.size(2, 8, low=0, high=60), d.size(2, 8, low=0, high=60)
    return case.named(f"{rows} {columns}", op, "", rows, columns, d.choice((0, 1, -1, 5, -20, 200)), dtype=d.choice((torch.int64, torch.int32)), **exact)


def draw_window(d):
    name = d.choice(("hann_window", "hann_window.periodic", "hamming_window", "hamming_window.periodic", "hamming_window.periodic_alpha",
                     "hamming_window.periodic_alpha_beta", "blackman_window", "blackman_window.periodic", "bartlett_window",
                     "bartlett_window.periodic", "kaiser_window", "kaiser_window.periodic", "kaiser_window.beta", "fft_fftfreq", "fft_rfftfreq"))
    dtype = d.choice((None,) + FLOATS)
    n = d.size(2, 3, 8, 16, 64, 400, 1024, low=0, high=2000)
    op, _, overload = name.partition(".")
    label = f"{n} {dtype}"
    # ATen takes sines of float32 angles.
    how = dict(error=(64.0 + n ** 0.5) * half(dtype), magnitude=torch.tensor(1.0), slack=1.0)
    if op.startswith("fft"):
        if not n:
            return None
        made = case.named(label, op, "", n, d.choice((1.0, 0.5, 3.0)), dtype=dtype, **how)
        made.magnitude = None
        made.error = 16.0
    else:
        arguments = [n] + ([d.chance(0.5)] if "periodic" in overload or overload == "beta" else []) + (
            [0.54] if "alpha" in overload else []) + ([0.46] if overload.endswith("alpha_beta") else []) + ([d.choice((12.0, 5.0, 1.0))] if overload == "beta" else [])
        made = case.named(f"{label} {arguments}", op, overload, *arguments, dtype=dtype, **how)
    operator = getattr(getattr(torch.ops.aten, op), overload or "default")
    made.exact = lambda *v: operator(*v, dtype=torch.float64)
    return made


def draw(d):
    way = d.random()
    return draw_spaced(d) if way < 0.35 else draw_fill(d) if way < 0.8 else draw_window(d)
