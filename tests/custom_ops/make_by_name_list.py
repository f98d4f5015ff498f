"""Writes tests/custom_ops/by_name.tsv: every ATen operator that a CPU package may call by name, and why.

    .venv/bin/python tests/custom_ops/make_by_name_list.py      # torch 2.15

With an earlier torch, adds what only that version calls by name to by_name_earlier.tsv instead.

Inductor compiles an operator, decomposes it, calls its C function, or calls it by name through the proxy executor. The
last happens if the operator runs on CPUs, has no decomposition, and either
  always   has no lowering that generates code for CPUs, and no C function
  complex  has a lowering, but takes or returns complex numbers, for which there is no code generation
  scalar   has a C function whose numbers are doubles, and was given a bool, a complex number or an integer
Operators that write their arguments are made functional first, so only the few that stay in place are listed.
"""
import itertools
import pathlib
import sys
import warnings

import torch
from torch._inductor import decomposition, lowering
from torch._inductor.codegen.common import pointwise_overrides_data
from torchgen.aoti.fallback_ops import inductor_fallback_ops

warnings.filterwarnings("ignore")
HERE = pathlib.Path(__file__).resolve().parent
DECOMPOSED = decomposition.select_decomp_table()
has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
# Lowerings that, always or sometimes, call the operator itself on CPUs.
CONDITIONAL = {"aten::median.dim", "aten::nextafter", "aten::embedding", "aten::slice_scatter", "aten::select_scatter",
               "aten::_unsafe_masked_index", "aten::_unsafe_masked_index_put_accumulate", "aten::index_add"}
# Operators that stay in place even in functional graphs.
MUTATING = {"aten::copy_", "aten::resize_", "aten::resize_as_", "aten::set_.source_Tensor", "aten::fill_.Scalar",
            "aten::index_put_"}


def operators():
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        if not name.startswith("aten::"):
            continue
        packet, _, overload = name[6:].partition(".")
        op = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
        runs = any(has_kernel(name, key) for key in ("CPU", "CompositeExplicitAutograd",
                                                     "CompositeExplicitAutogradNonFunctional"))
        named = op is not None and any("Dimname" in str(a.type) or a.name == "names" for a in op._schema.arguments)
        if op is not None and runs and not named:  # exported programs have no named dimensions
            yield name, op, f"aten.{packet}.{overload or 'default'}"


def inlined():
    """Operators whose elementwise function generated C++ contains, whatever Triton has."""
    for data in pointwise_overrides_data.values():
        if data.cpp is not None:
            packet = getattr(torch.ops.aten, data.name, None)
            if packet is not None:
                yield from (getattr(packet, overload) for overload in packet.overloads())


def takes_complex(op):
    """Whether the operator takes complex numbers: tries small tensors, all arguments of one kind."""
    fills = {"Tensor": lambda: torch.ones(2, 2, dtype=torch.complex64), "int": lambda: 0, "SymInt": lambda: 0,
             "number": lambda: 1, "float": lambda: 1.0, "bool": lambda: False, "str": lambda: "sum",
             "Device": lambda: None, "Layout": lambda: None, "Generator": lambda: None}
    choices = []
    for argument in op._schema.arguments:
        kind = str(argument.real_type)
        if argument.has_default_value():
            continue
        if kind.startswith("Optional"):
            values = [None]
        elif kind == "List[Tensor]":
            values = [[torch.ones(2, 2, dtype=torch.complex64)] * 2]
        elif kind.startswith("List[Optional[Tensor"):
            values = [[torch.zeros(2, dtype=torch.int64)]]
        elif kind.startswith("List"):
            values = [[0], [2, 2], [1, 1], []]
        elif argument.name in ("index", "indices", "mask", "condition"):
            values = [torch.zeros(2, 2, dtype=torch.int64), torch.ones(2, 2, dtype=torch.bool)]
        elif kind in fills:
            values = [fills[kind](), 1] if kind in ("int", "SymInt") else [fills[kind]()]
        else:
            return False
        choices.append((argument, values))
    for values in itertools.islice(itertools.product(*(v for _, v in choices)), 64):
        positional = [v for (a, _), v in zip(choices, values) if not a.kwarg_only]
        named = {a.name: v for (a, _), v in zip(choices, values) if a.kwarg_only}
        try:
            op(*positional, **named)
            return any(isinstance(v, torch.Tensor) or isinstance(v, list) and v and isinstance(v[0], torch.Tensor)
                       for v in values)
        except Exception:
            continue
    return False


def main():
    compiled_inline = set(inlined())
    lines = []
    for name, op, key in operators():
        schema = op._schema
        if schema.is_mutable and name not in MUTATING:
            continue
        numbers = any("number" in str(a.type).lower() for a in schema.arguments)
        lowered = op in lowering.lowerings and (op not in lowering.fallbacks or op in compiled_inline)
        if key in inductor_fallback_ops:
            why = "scalar" if numbers else None
        elif op in DECOMPOSED:
            why = None
        elif name in CONDITIONAL or not lowered:
            why = "always"
        else:
            why = "complex" if takes_complex(op) else None
        if why:
            lines.append(f"{name}\t{why}\n")
    version = ".".join(torch.__version__.split(".")[:2])
    current, earlier = HERE / "by_name.tsv", HERE / "by_name_earlier.tsv"
    if version == "2.15":
        current.write_text("# operator, why it is called by name; by make_by_name_list.py from torch "
                           f"{torch.__version__.split('+')[0]}\n" + "".join(lines))
    else:
        listed = {line.split("\t")[0] for line in current.read_text().splitlines()}
        known = earlier.read_text().splitlines()[1:] if earlier.exists() else []
        listed |= {line.split("\t")[0] for line in known}
        known += [f"{line.strip()}\t{version}" for line in lines if line.split("\t")[0] not in listed]
        earlier.write_text("# operator, why it is called by name, by which torch; by make_by_name_list.py\n" +
                           "".join(line + "\n" for line in sorted(known)))
    print(f"{len(lines)} operators", file=sys.stderr)


main()
