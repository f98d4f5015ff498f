#!/usr/bin/env python3
"""Writes what PyTorch computes for the operators that random OpInfo samples call, one by one, without compiling anything.

    .venv/bin/python tests/opinfo/calls.py --samples 5000 --seed 1
    SCONCE_CASES=build/opinfo/calls.cases build/release/tests/custom_ops/test_custom_ops -tc="aten: what random*"

Each sample of samples.py is traced; every call in its graph of an operator that src/custom_ops has by name becomes a
case of tests/cpu/case_writer.py: arguments, results with their strides.
"""
import argparse
import collections
import importlib.util
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ops", default="", help="only operators whose name a regular expression finds something in")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/opinfo/calls.cases")
    options = parser.parse_args()
    if not importlib.util.find_spec("torch"):
        sys.exit("calls.py: this Python has no torch: pip install torch==2.15.0 numpy scipy expecttest")
    return options


OPTIONS = arguments()
import torch  # noqa: E402

sys.path += [str(HERE), str(ROOT / "tests/cpu")]
import samples as drawing  # noqa: E402
from case_writer import DTYPES, CaseWriter  # noqa: E402

FORMATS = [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d]
TOLERANCES = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float64: 1e-9, torch.complex128: 1e-9,
              torch.complex32: 1e-2}
INEXACT = {"aten::special_airy_ai": 1e-8}  # PyTorch's own error in double precision
MOST_BYTES = 1 << 16
RANDOM = torch.Tag.nondeterministic_seeded
# Left out: contents of fresh memory, and vectors that are unique only up to sign or phase.
UNDEFINED = re.compile(r"aten::((new_)?empty|_linalg_(eigh|svd)$|linalg_eig)")


def rows():
    text = "".join(path.read_text() for path in (ROOT / "src/custom_ops").glob("*.cpp"))
    return set(re.findall(r'\{"(\w+::[\w.]+)\(', text))


def name_of(target):
    return target._schema.name + ("." + target._schema.overload_name if target._schema.overload_name else "")


def plain(value):
    """The value in the form that a case can hold."""
    if isinstance(value, torch.dtype):
        return DTYPES[value]
    if isinstance(value, torch.layout):
        return 0
    if isinstance(value, torch.memory_format):
        return FORMATS.index(value)
    if isinstance(value, (torch.device, torch.Generator)):
        return None
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def tensors_of(value):
    return [t for t in torch.utils._pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]


def flat(results):
    return [r.resolve_conj().resolve_neg() if isinstance(r, torch.Tensor) else torch.tensor(r)
            for r in (results if isinstance(results, (list, tuple)) else [results]) if r is not None]


class Caller(torch.fx.Interpreter):
    def __init__(self, graph, writer, known, seen, counts):
        super().__init__(graph)
        self.writer, self.known, self.seen, self.counts = writer, known, seen, counts

    def call_function(self, target, args, kwargs):
        copies = torch.utils._pytree.tree_map(
            lambda t: drawing.copy_of(t) if isinstance(t, torch.Tensor) and not t.is_conj() and not t.is_neg() else t,
            (args, kwargs))
        result = super().call_function(target, args, kwargs)
        if isinstance(target, torch._ops.OpOverload) and name_of(target) in self.known:
            self.note(target, *copies, result)
        return result

    def note(self, target, args, kwargs, result):
        if target._schema.is_mutable or RANDOM in target.tags or UNDEFINED.match(name_of(target)):
            return
        given = []
        for i, argument in enumerate(target._schema.arguments):
            given.append(args[i] if i < len(args) else kwargs.get(argument.name, argument.default_value))
        if any(str(a.real_type) == "Tensor" and not isinstance(v, torch.Tensor)
               for a, v in zip(target._schema.arguments, given)):
            return  # a number was passed for a tensor
        operands = tensors_of(given)
        if any(t.is_conj() or t.is_neg() or t.layout != torch.strided for t in operands + tensors_of(result)):
            return
        if sum(t.untyped_storage().nbytes() for t in operands + tensors_of(result)) > MOST_BYTES:
            return
        key = (name_of(target), tuple((t.dtype, t.shape, t.stride()) for t in operands),
               repr([v for v in given if not tensors_of(v)]))
        if key in self.seen:
            return
        self.seen.add(key)
        results = flat(result)
        tolerance = max([0.0] + [TOLERANCES.get(r.dtype, 2e-4) for r in results
                                 if r.is_floating_point() or r.is_complex()])
        if tolerance:
            tolerance = max(tolerance, self.error(target, given, results), INEXACT.get(name_of(target), 0))
        self.writer.add(name_of(target), lambda *_: results, *(plain(v) for v in given), tolerance=min(tolerance, 1.0))
        self.counts[name_of(target)] += 1

    @staticmethod
    def error(target, given, results):
        """Three times PyTorch's own error, which is measured against the next wider dtype."""
        def wide(t):
            return t.to(drawing.WIDER.get(t.dtype, t.dtype)) if isinstance(t, torch.Tensor) else t

        try:
            named = {a.name: torch.utils._pytree.tree_map(wide, v)
                     for a, v in zip(target._schema.arguments, given) if a.kwarg_only}
            exact = flat(target(*(torch.utils._pytree.tree_map(wide, v)
                                  for a, v in zip(target._schema.arguments, given) if not a.kwarg_only), **named))
            found = 0.0
            for a, b in zip(results, exact):
                difference = ((a.to(b.dtype) - b).abs() / (1 + b.abs())).nan_to_num(0, 0, 0)
                found = max([found] + difference.flatten().tolist())
            return 3 * found
        except Exception:
            return 0.0


def main(options):
    torch.set_num_threads(1)
    operators = [name for name in drawing.OPERATORS if re.search(options.ops, name)]
    known, seen, counts, left_out = rows(), set(), collections.Counter(), collections.Counter()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    writer = CaseWriter(options.out)
    each, more = divmod(options.samples, len(operators))
    drawn = 0
    for i, operator in enumerate(operators):
        for name in drawing.draw_names(operator, each + (i < more), options.seed):
            drawn += 1
            try:
                sample = drawing.Sample(name)
                graph = sample.trace()
                torch.manual_seed(0)
                with torch.no_grad():
                    Caller(graph, writer, known, seen, counts).run(*map(drawing.copy_of, sample.tensors))
            except drawing.LeftOut as error:
                left_out[str(error)[:60]] += 1
            except Exception as error:
                left_out[f"{type(error).__name__}: {error}"[:60]] += 1
    writer.file.close()
    print(f"{drawn} samples: {sum(counts.values())} calls of {len(counts)} operators; "
          f"{sum(left_out.values())} samples left out")
    for reason, count in left_out.most_common(12):
        print(f"  {count:5} {reason}")


main(OPTIONS)
