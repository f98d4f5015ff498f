"""Models whose inputs' sizes are tied by random relations, run with right and wrong sizes, against eager PyTorch.

usage: relations.py LIBSCONCE FOLDER [--models N] [--relations N] [--draws N] [--seed N]

Each model has many relations at once: two to four symbols, and a vector whose length is a sum, product, multiple or
other expression of them. Half of the models declare relations as torch.export's Dim says them, the others are exported
with Dim.AUTO, which finds them. Some of these ("s // 3", "max(s, t)") stay guards of the export: the package does not have
them. Packages are compiled into FOLDER, where a later run finds them again.

Every request goes through the C API of LIBSCONCE. Each input lies at the end of memory behind which nothing may be read,
or at its beginning, so an access outside of the request's own tensors ends the process, which counts as a failure. An
answer must equal eager's; where eager raises, Sconce must refuse, or have been given a longer vector than a guard asks
for, of which it may take the first elements. Sconce may refuse what eager takes only where eager broadcasts a size of 1,
or where a symbol is below the minimum that it was exported with.
"""
import argparse
import ctypes
import importlib.util
import json
import math
import mmap
import multiprocessing
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples"))
import embed_ctypes as capi

PAGE = mmap.PAGESIZE


def relation(rng, declared):
    """(name, number of symbols, size of the tied vector from the symbols' sizes, a torch expression of its length)."""
    c, d = rng.randint(2, 5), rng.randint(1, 4)
    of_one = [
        (f"{c}*s", lambda s: c * s, lambda a: a.repeat(c), lambda dim: c * dim),
        (f"s + {d}", lambda s: s + d, lambda a: _pad(a, d), lambda dim: dim + d),
        (f"{c}*s + {d}", lambda s: c * s + d, lambda a: _pad(a.repeat(c), d), lambda dim: c * dim + d),
        (f"{c}*s - 1", lambda s: c * s - 1, lambda a: a.repeat(c)[1:], lambda dim: c * dim - 1),
        ("s", lambda s: s, lambda a: a * 2, lambda dim: dim),
    ]
    if declared:
        name, size, make, dim = rng.choice(of_one)
        return name, 1, size, make, dim
    of_more = [
        (f"s*s + {d}", 1, lambda s: s * s + d, lambda a: _pad((a[:, None] * a).reshape(-1), d)),
        ("s + t", 2, lambda s, t: s + t, lambda a, b: _cat(a, b)),
        (f"{c}*s + t", 2, lambda s, t: c * s + t, lambda a, b: _cat(a.repeat(c), b)),
        (f"s + {c}*t + {d}", 2, lambda s, t: s + c * t + d, lambda a, b: _pad(_cat(a, b.repeat(c)), d)),
        ("s*t", 2, lambda s, t: s * t, lambda a, b: (a[:, None] * b).reshape(-1)),
        (f"{c}*s*t", 2, lambda s, t: c * s * t, lambda a, b: (a[:, None] * b).reshape(-1).repeat(c)),
        (f"s*t + {d}", 2, lambda s, t: s * t + d, lambda a, b: _pad((a[:, None] * b).reshape(-1), d)),
        ("s + t + u", 3, lambda s, t, u: s + t + u, lambda a, b, e: _cat(a, b, e)),
        ("s*t + u", 3, lambda s, t, u: s * t + u, lambda a, b, e: _cat((a[:, None] * b).reshape(-1), e)),
        (f"s + {c}*t*u", 3, lambda s, t, u: s + c * t * u,
         lambda a, b, e: _cat(a, (b[:, None] * e).reshape(-1).repeat(c))),
        ("s*t*u", 3, lambda s, t, u: s * t * u, lambda a, b, e: (a[:, None, None] * b[:, None] * e).reshape(-1)),
        ("s + t + u + v", 4, lambda s, t, u, v: s + t + u + v, lambda a, b, e, f: _cat(a, b, e, f)),
        ("s*t + u*v", 4, lambda s, t, u, v: s * t + u * v,
         lambda a, b, e, f: _cat((a[:, None] * b).reshape(-1), (e[:, None] * f).reshape(-1))),
        ("s // 2", 1, lambda s: s // 2, lambda a: a[: a.shape[0] // 2]),
        (f"s*t // {c}", 2, lambda s, t: s * t // c,
         lambda a, b: (a[:, None] * b).reshape(-1)[: a.shape[0] * b.shape[0] // c]),
        ("max(s, t)", 2, max, lambda a, b: _cat(a, b)[: _larger(a.shape[0], b.shape[0])]),
        ("s + t // 2", 2, lambda s, t: s + t // 2, lambda a, b: _cat(a, b[: b.shape[0] // 2])),
    ] + [(name, 1, size, make) for name, size, make, _ in of_one]
    name, count, size, make = rng.choice(of_more)
    return name, count, size, make, None


def _pad(a, n):
    import torch
    return torch.nn.functional.pad(a, (0, n))


def _larger(a, b):
    import torch
    return torch.sym_max(a, b)  # Python's max would be a guard that one of both is larger


def _cat(*parts):
    import torch
    return torch.cat(parts)


class Plan:
    """One model's relations; the same for the same seed."""

    def __init__(self, seed, relations):
        rng = random.Random(seed)
        self.seed, self.declared = seed, seed % 2 == 0
        self.relations = []
        seen = set()
        while len(self.relations) < relations:
            name, count, size, make, dim = relation(rng, self.declared)
            most = rng.randint(6, 12)
            if (name, most) in seen:
                continue
            seen.add((name, most))
            self.relations.append((name, count, size, make, dim, most))

    def example(self, rng):
        # Different sizes, so that torch does not take two symbols for one.
        return [[n for n in rng.sample(range(4, most + 1), min(count, most - 3))] +
                [most + 1 + k for k in range(count - min(count, most - 3))]
                for _, count, _, _, _, most in self.relations]

    def lengths(self, symbols):
        """Of all inputs, right ones."""
        flat = []
        for (_, _, size, _, _, _), values in zip(self.relations, symbols):
            flat += [*values, size(*values)]
        return flat

    def module(self):
        import torch
        relations = self.relations

        class Related(torch.nn.Module):
            def forward(self, *inputs):
                results, at = [], 0
                for _, count, _, make, _, _ in relations:
                    results.append(make(*inputs[at:at + count]) + inputs[at + count])
                    at += count + 1
                return tuple(results)

        return Related()

    def shapes(self):
        from torch.export import Dim
        shapes = []
        for i, (_, count, _, _, dim, most) in enumerate(self.relations):
            if not self.declared:
                shapes += [{0: Dim.AUTO}] * (count + 1)
                continue
            symbol = Dim(f"s{i}", min=1, max=most)
            shapes += [{0: symbol}, {0: dim(symbol)}]
        return (tuple(shapes),)

    def compile(self, path):
        import torch
        rng = random.Random(self.seed + 1)
        args = tuple(torch.randn(n) for n in self.lengths(self.example(rng)))
        program = torch.export.export(self.module(), args, dynamic_shapes=self.shapes())
        torch._inductor.aoti_compile_and_package(program, package_path=str(path), inductor_configs={
            "aot_inductor.compile_wrapper_opt_level": "O0", "cpp.threads": 1, "compile_threads": 1})


class Guarded:
    """Floats in memory of their own between two pages that nobody may touch."""

    def __init__(self, values, at_end):
        size = len(values) * 4
        pages = max(1, math.ceil(size / PAGE))
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.libc, self.bytes = libc, (pages + 2) * PAGE
        self.base = libc.mmap(None, self.bytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        libc.mprotect(self.base, PAGE, 0)
        libc.mprotect(self.base + (pages + 1) * PAGE, PAGE, 0)
        self.address = self.base + PAGE + (pages * PAGE - size if at_end else 0)
        ctypes.memmove(self.address, values.ctypes.data, size)

    def free(self):
        self.libc.munmap(self.base, self.bytes)


def run(sconce, model, arrays, outputs, at_end):
    """The answers as arrays, or the text of the refusal."""
    import numpy
    kept = [Guarded(a, at_end) for a in arrays]
    tensors = [capi.Tensor(k.address, 1, 0, 1, capi.DType(2, 32, 1), (ctypes.c_int64 * 1)(len(a)), None, 0)
               for k, a in zip(kept, arrays)]
    given = (ctypes.POINTER(capi.Tensor) * len(tensors))(*map(ctypes.pointer, tensors))
    out = (ctypes.POINTER(capi.ManagedTensor) * outputs)()
    try:
        sconce.sconce_model_run(model, given, len(tensors), out, outputs, None, None)
    except RuntimeError as refusal:
        return str(refusal)
    finally:
        for one in kept:
            one.free()
    answers = []
    for one in out:
        tensor = one.contents.tensor
        n = tensor.shape[0]
        answers.append(numpy.ctypeslib.as_array(ctypes.cast(tensor.data, ctypes.POINTER(ctypes.c_float)), (n,)).copy()
                       if n else numpy.zeros(0, numpy.float32))
        sconce.sconce_tensor_free(one)
    return answers


def draw(rng, plan):
    """Lengths of all inputs, and what is done to them."""
    symbols = [[rng.choice([0, 1, 2, 2, 3, 4, 5, most - 1, most]) if rng.random() < 0.5 else rng.randint(2, most)
                for _ in range(count)] for _, count, _, _, _, most in plan.relations]
    lengths = plan.lengths(symbols)
    kind = rng.choice(["right", "right", "one", "one", "several", "beyond"])
    if kind == "one":
        i = rng.randrange(len(lengths))
        lengths[i] = max(0, lengths[i] + rng.choice([-3, -2, -1, 1, 2, 3, 7]))
    elif kind == "several":
        for _ in range(3):
            lengths[rng.randrange(len(lengths))] = rng.randint(0, 40)
    elif kind == "beyond":
        i = rng.randrange(len(lengths))
        lengths[i] = rng.choice([0, 1, 64, 1000])
    return lengths, [max(n, 0) for n in lengths]


def compare(arguments):
    """Runs one model's draws; in a process of its own, which an access outside of a tensor ends."""
    library, path, seed, relations, draws, results = arguments
    import numpy
    import torch
    plan = Plan(seed, relations)
    module = plan.module()
    sconce = capi.library(library)
    package, model = ctypes.c_void_p(), ctypes.c_void_p()
    sconce.sconce_package_open(str(path).encode(), ctypes.byref(package))
    sconce.sconce_model_load(package, None, ctypes.byref(model))
    rng = random.Random(seed + 2)
    counts = {"answered": 0, "refused": 0, "broadcast": 0, "below": 0, "beyond": 0, "longer": 0}
    for i in range(draws):
        _, lengths = draw(rng, plan)
        results.put(("try", seed, lengths))
        arrays = [numpy.random.default_rng(seed * 1000 + i + k).standard_normal(n, numpy.float32) for k, n in enumerate(lengths)]
        try:
            expected = [t.numpy() for t in module(*map(torch.from_numpy, arrays))]
        except (RuntimeError, IndexError):
            expected = None
        got = run(sconce, model, arrays, len(plan.relations), at_end=i % 2 == 0)
        if expected is None:
            if isinstance(got, str):
                counts["refused"] += 1
            elif longer_than_a_guard(plan, lengths):
                counts["longer"] += 1
            else:
                results.put(("failed", seed, f"eager refuses {lengths}, Sconce answers"))
            continue
        if isinstance(got, str):
            why = allowed(plan, lengths)
            if why is None:
                results.put(("failed", seed, f"eager answers {lengths}, Sconce: {got}"))
            else:
                counts[why] += 1
            continue
        for (name, *_), one, other in zip(plan.relations, expected, got):
            # Where the guard asks for one element, eager broadcasts it to a longer vector.
            if len(other) == 1 and len(one) > 1 and is_guard(name):
                counts["longer"] += 1
            elif one.shape != other.shape or not numpy.array_equal(one, other):
                results.put(("failed", seed, f"another answer of {name} for {lengths}"))
        counts["answered"] += 1
    results.put(("done", seed, counts))


def longer_than_a_guard(plan, lengths):
    """Whether all vectors that are too long or too short are too long, and only guards say so."""
    at = 0
    for name, count, size, _, _, _ in plan.relations:
        wanted, tied = size(*lengths[at:at + count]), lengths[at + count]
        at += count + 1
        if tied != wanted and (tied < wanted or not is_guard(name)):
            return False
    return True


def is_guard(name):
    """Whether the relation of this name is in no package."""
    return "//" in name or "max" in name


def allowed(plan, lengths):
    """Why Sconce may refuse what eager takes; None: it may not."""
    at = 0
    for name, count, size, _, _, most in plan.relations:
        values, tied = lengths[at:at + count], lengths[at + count]
        at += count + 1
        if size(*values) != tied and 1 in (size(*values), tied):
            return "broadcast"
        if plan.declared and values[0] > most:
            return "beyond"
        # Half of a size is not 0 or 1 either, where torch has it as a size.
        if min(values) < (1 if plan.declared else 4 if is_guard(name) else 2):
            return "below"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", type=int, default=24)
    parser.add_argument("--relations", type=int, default=24)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    if importlib.util.find_spec("torch") is None and not {"-h", "--help"}.intersection(sys.argv):
        sys.exit("relations.py: this Python has no torch: pip install torch==2.15.0 numpy")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    failures, totals, names, left_out = [], {}, set(), 0
    for seed in range(options.seed * 1000, options.seed * 1000 + options.models):
        plan = Plan(seed, options.relations)
        path = options.folder / f"relations_{seed}_{options.relations}.pt2"
        if not path.exists():
            try:
                plan.compile(path)
            except Exception as error:  # noqa: BLE001  torch cannot export or compile it
                print(f"{seed}: torch: {type(error).__name__}: {str(error)[:300]}", flush=True)
                left_out += 1
                continue
        names.update((name, most, seed) for name, *_, most in plan.relations)
        results = multiprocessing.Queue()
        process = multiprocessing.Process(
            target=compare, args=((options.library, path, seed, options.relations, options.draws, results),))
        process.start()
        last, done = None, False
        while not done:
            try:
                kind, _, what = results.get(timeout=1)
            except Exception:  # noqa: BLE001  nothing came; is the process alive?
                if process.is_alive():
                    continue
                failures.append(f"{seed}: the process ended with {process.exitcode} at {last}")
                break
            if kind == "try":
                last = what
            elif kind == "failed":
                failures.append(f"{seed}: {what}")
            else:
                done = True
                for key, count in what.items():
                    totals[key] = totals.get(key, 0) + count
        process.join()
        print(f"{seed}: {json.dumps(totals)}, {len(failures)} failures", flush=True)
    print("\n".join(failures[:40]))
    print(f"{len(names)} relations in {options.models - left_out} models, {sum(totals.values())} requests: "
          f"{json.dumps(totals)}; {len(failures)} failures")
    return 1 if failures or left_out else 0


if __name__ == "__main__":
    sys.exit(main())
