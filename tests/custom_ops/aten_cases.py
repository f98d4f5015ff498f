"""Cases of operators that are called by name: what make_aten_cases.py and make_function_cases.py share."""
import pathlib
import re
import sys

import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cpu"))
from case_writer import CaseWriter, Samples  # noqa: E402, F401

FLOATS = [torch.float32, torch.float64]
HALVES = [torch.float16, torch.bfloat16]
INTS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
COMPLEX = [torch.complex64, torch.complex128]
NUMBERS = {v: k for k, v in enumerate([torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
                                       torch.float32, torch.float64])}
DTYPE_OF = {v: k for k, v in NUMBERS.items()} | {15: torch.bfloat16, 11: torch.bool, 9: torch.complex64,
                                              10: torch.complex128}
FORMATS = [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d]
SMALL = {torch.float16: 2e-3, torch.bfloat16: 2e-2}
TIGHT = {torch.float32: 1e-5, torch.float64: 1e-12, torch.complex64: 1e-5, torch.complex128: 1e-12} | SMALL
GAPLESS = {"layouts": ("packed", "permuted")}
F = (None, None, None, None)  # dtype, layout, device, pin_memory
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-10, torch.complex64: 2e-4, torch.complex128: 1e-10}


class Atens:
    covered = set()

    def __init__(self, name):
        self.out = CaseWriter(HERE.parent / "data" / name)

    def add(self, name, *args, **options):
        ns, _, operator = name.rpartition("::")
        ns = ns or "aten"
        packet, _, overload = operator.partition(".")
        op = getattr(getattr(getattr(torch.ops, ns), packet), overload or "default")
        schema = op._schema.arguments
        assert len(args) == len(schema), (name, len(schema))

        def call(*values):
            positional, named = [], {}
            for value, argument in zip(values, schema):
                kind = str(argument.real_type).replace("Optional[", "").rstrip("]")
                if value is not None and kind == "ScalarType":
                    value = DTYPE_OF[value]
                if value is not None and kind == "Layout":
                    value = torch.strided
                if value is not None and kind == "MemoryFormat":
                    value = FORMATS[value]
                if argument.kwarg_only:
                    named[argument.name] = value
                else:
                    positional.append(value)
            result = op(*positional, **named)
            flat = []
            for r in result if isinstance(result, (list, tuple)) else [result]:
                if r is None:
                    continue
                flat.append((r if isinstance(r, torch.Tensor) else torch.tensor(r)).resolve_conj().resolve_neg())
            return tuple(flat)

        qualified = f"{ns}::{operator}"
        self.covered.add(qualified)
        results = self.out.add(qualified, call, *args, **options)
        return results[0] if results is not None and len(results) == 1 else results

    def define(self, name, function, *args, **options):
        """Adds a case whose expected results come from a function instead of the operator."""
        self.covered.add("aten::" + name)
        self.out.add("aten::" + name, function, *args, **options)


def check_covered(*tables):
    """Fails if a row of src/custom_ops/aten/*.cpp has no case."""
    rows = set()
    for table in tables:
        source = HERE.parents[1] / f"src/custom_ops/aten/{table}.cpp"
        rows.update(re.findall(r'\{"(\w+::[\w.]+)\(', source.read_text()))
    assert rows <= Atens.covered, sorted(rows - Atens.covered)
