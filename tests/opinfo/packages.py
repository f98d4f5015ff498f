"""Compiles many samples into one package and writes it as a conformance case."""
import json
import math
import pathlib
import re
import shutil
import sys
import tempfile
import time
import unittest.mock
import zipfile
import zlib

import torch
import torch._inductor
from torch import nn
from torch._inductor import lowering
from torch.utils import _pytree as pytree
from torch._inductor.codecache import AotCodeCompiler
from torch._inductor.codegen.cpp_wrapper_cpu import CppWrapperCpu
from torch._inductor.decomposition import select_decomp_table
from torchgen.aoti.fallback_ops import inductor_fallback_ops

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/data"))
from case_writer import DEFAULT_TOLERANCE, TOLERANCES, DataFile  # noqa: E402
from portable_package import make_portable  # noqa: E402

from samples import LeftOut, copy_of, same  # noqa: E402

MARCH = "x86-64-v3"
SEED = 7
# Nodes of the graph that call nothing by name.
COMPILED = {"aten.sym_size.int", "aten.sym_stride.int", "aten.sym_numel.default", "aten.sym_storage_offset.default",
            "aten._local_scalar_dense.default", "aten._assert_scalar.default", "aten.lift_fresh_copy.default"}
LITE = dict(torch._inductor.lite_mode_options) | {"use_dce": True}


def rows_by_name():
    """Operators that src/custom_ops answers by name."""
    text = "".join(path.read_text() for path in (ROOT / "src/custom_ops").glob("*.cpp"))
    names = (n.replace("::", ".") for n in re.findall(r'"((?:aten|prims)::[\w.]+)\(', text))
    return {name if name.count(".") > 1 else name + ".default" for name in names}


ROWS = rows_by_name()


# Operators whose lowering makes calls for some or all arguments.
EXTERN = {name.split(".")[1] for name in inductor_fallback_ops if name.startswith("aten.")} - {
    "abs", "add", "mul", "full", "fill_", "pad", "permute", "polar", "pow", "slice", "view_as_complex", "view_as_real",
    "view", "clone", "zeros", "hann_window", "triangular_solve", "to_sparse", "set_", "resize_", "resize_as_", "gcd"}
EXTERN |= {"scatter_add", "index_add", "dot", "linear"}


def without_input_checks(self):
    """Leaves out the checks of inputs, because compiling those of hundreds of inputs takes g++ longer than all the rest."""
    self.prefix.splice_aot("""
        static bool _check_aoti_runtime_check_inputs_env() { return false; }
        static void __check_inputs_outputs(AtenTensorHandle*, AtenTensorHandle*) {}
    """)


CppWrapperCpu.generate_input_output_runtime_checks = without_input_checks


def is_number(kind):
    if isinstance(kind, torch.OptionalType):
        kind = kind.getElementType()
    return isinstance(kind, torch.NumberType)


def by_name(node):
    """Whether the call has a number that the C ABI's double cannot hold. Then the operator is called by name."""
    integral = any(isinstance(a, torch.fx.Node) and isinstance(a.meta.get("val"), torch.Tensor) and
                   not a.meta["val"].is_floating_point() and not a.meta["val"].is_complex()
                   for a in [*node.args, *node.kwargs.values()])
    for i, argument in enumerate(node.target._schema.arguments):
        value = node.kwargs.get(argument.name, node.args[i] if i < len(node.args) else argument.default_value)
        if is_number(argument.real_type) and (type(value) is bool or (type(value) is int and integral)):
            return True
    return False


# Operators that write in place and whose functional form has another name than theirs without the underscore.
FUNCTIONAL = {"aten.normal_.default": "aten.normal_functional.default", "aten.transpose_.default": "aten.transpose.int",
              "aten.bernoulli_.float": "aten.bernoulli.p", "aten.t_.default": "aten.t.default",
              "aten.rrelu_with_noise.default": "aten.rrelu_with_noise_functional.default",
              "aten.rrelu_with_noise_.default": "aten.rrelu_with_noise_functional.default",
              "aten._native_batch_norm_legit.default": "aten._native_batch_norm_legit_functional.default",
              "aten._batch_norm_with_update.default": "aten._batch_norm_with_update_functional.default"}


def functional(target):
    """The name of the functional form, into which export turns operators that write in place."""
    name = str(target)
    return FUNCTIONAL.get(name) or (re.sub(r"_\.", ".", name) if target._schema.is_mutable else name)


def called(graph, lite, decompositions=()):
    """Returns the operators that the compiled package calls instead of generating code, and those of them without a row."""
    names, missing = set(), set()
    for node in graph.graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        name = functional(node.target)
        if name in COMPILED:
            continue
        decomposed = node.target in decompositions
        generated = not lite and (decomposed or (
            node.target in lowering.lowerings and node.target not in lowering.fallbacks
            and not lowering.fallback_node_due_to_unsupported_type(node)))
        if generated and (decomposed or name.split(".")[1] not in EXTERN):
            continue
        names.add(name)
        if not generated and name not in ROWS and (name not in inductor_fallback_ops or by_name(node)):
            missing.add(name)
    return names, missing


def has_complex(graph):
    return any(isinstance(value, torch.Tensor) and value.is_complex()
               for node in graph.graph.nodes for value in pytree.tree_leaves(node.meta.get("val")))


def has_complex_number(graph):
    return any(isinstance(value, complex) for node in graph.graph.nodes
               for value in pytree.tree_leaves([node.args, node.kwargs]))


def adds_gapped_complex(node):
    """Complex additions on which Inductor fails: it views the operands as real numbers, which needs a last stride of 1."""
    operands = [a.meta["val"] for a in node.all_input_nodes if isinstance(a.meta.get("val"), torch.Tensor)]
    return node.target is torch.ops.aten.add.Tensor and any(
        t.is_complex() and t.dim() > 0 and t.stride(-1) != 1 for t in operands)


def draws(sample):
    """Whether results depend on the seed. An operator that can draw random numbers may get a dropout of 0."""
    results = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        with torch.no_grad():
            results.append(sample.graph(*map(copy_of, sample.tensors)))
    return not all(map(same, *results))


def infinite_by_name(graph, names):
    """One of these operators, if it is called by name with a number that PyTorch writes as text and cannot read again."""
    for node in graph.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            name = functional(node.target)
            if name in names and name not in inductor_fallback_ops and any(
                    isinstance(value, float) and not math.isfinite(value)
                    for value in pytree.tree_leaves([node.args, node.kwargs])):
                return name
    return None


def route(sample):
    """How the sample is compiled so that operators are called; LeftOut says what is missing."""
    graph = sample.graph = sample.trace()
    if has_complex_number(graph):
        raise LeftOut("PyTorch writes no complex number into a package")
    for node in graph.graph.nodes:
        if node.target is torch.ops.aten.masked_select.default and \
                node.args[0].meta["val"].shape != node.args[1].meta["val"].shape:
            raise LeftOut("PyTorch's package bounds masked_select wrongly")
    if any(torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) for node in graph.graph.nodes):
        sample.random |= draws(sample)
    sample.rounding = sample.errors()
    calls, missing = {}, {}
    calls["lite"], missing["lite"] = called(graph, lite=True)
    calls["default"], missing["default"] = called(graph, False, select_decomp_table())
    # The operators that an operator is decomposed to may be called themselves.
    fails = False
    if has_complex(graph) or missing["default"]:
        decomposed = sample.trace(select_decomp_table())
        calls["default"], missing["default"] = called(decomposed, lite=False)
        fails = has_complex_number(decomposed) or any(adds_gapped_complex(node) for node in decomposed.graph.nodes)
    sample.calls = {mode: sorted(names) for mode, names in calls.items()}
    if name := infinite_by_name(graph, calls["lite"] if missing["default"] else calls["default"] | calls["lite"]):
        raise LeftOut(f"PyTorch's loader does not read the infinite number that {name} is given")
    modes = [mode for mode in ("default", "lite") if sample.calls[mode] and not missing[mode]]
    if fails:
        modes = [mode for mode in modes if mode == "lite"]
    if any(node.op == "call_function" and not node.all_input_nodes for node in graph.graph.nodes):
        modes = [mode for mode in modes if mode == "default"]  # lite mode cannot compile calls without a tensor
    if any(node.target is torch.ops.aten.native_batch_norm_backward.default for node in graph.graph.nodes):
        modes = [mode for mode in modes if mode == "lite"]  # the default mode uses a call's missing result
    if modes:
        sample.mode = modes[zlib.crc32(sample.name.encode()) % len(modes)]
        return
    mode = "default" if missing["default"] else "lite"
    if fails and not missing[mode]:
        raise LeftOut("PyTorch does not compile it")
    if not missing[mode]:
        raise LeftOut("calls no operator")
    raise LeftOut(f"missing ({mode}): " + " ".join(sorted(missing[mode])))


class Bundle(nn.Module):
    def __init__(self, samples):
        super().__init__()
        self.graphs = [sample.graph for sample in samples]
        self.counts = [len(sample.tensors) for sample in samples]

    def forward(self, *tensors):
        results, at = [], 0
        for graph, count in zip(self.graphs, self.counts):
            results.extend(graph(*tensors[at:at + count]))
            at += count
        return tuple(results)


class Lowered(Exception):
    """Raised instead of running g++."""


def lowers(samples, mode):
    """Whether PyTorch compiles these samples, without g++."""
    def stop(*_, **__):
        raise Lowered

    with torch.no_grad(), unittest.mock.patch.object(AotCodeCompiler, "compile", stop):
        try:
            compile_package(samples, mode, None)
        except Exception as error:
            if "Lowered" in str(error) or isinstance(error, Lowered):
                return True
            print(f"{len(samples)} samples: {error}"[:400], flush=True)
    return False


def not_lowered(samples, mode):
    """The samples that PyTorch fails to compile."""
    if lowers(samples, mode):
        return []
    if len(samples) == 1:
        return samples
    middle = len(samples) // 2
    return not_lowered(samples[:middle], mode) + not_lowered(samples[middle:], mode)


def compile_package(samples, mode, path):
    inputs = tuple(copy_of(t) for sample in samples for t in sample.tensors)
    program = torch.export.export(Bundle(samples), inputs, strict=False)
    torch._inductor.aoti_compile_and_package(program, package_path=path,
                                             inductor_configs=LITE if mode == "lite" else None)


class Package:
    """Samples of one mode, compiled together. Raises what PyTorch raises."""

    def __init__(self, samples, mode):
        self.samples, self.mode = samples, mode
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.path = str(self.folder / "model.pt2")
        started = time.time()
        with torch.no_grad():
            compile_package(samples, mode, self.path)
        print(f"{len(samples)} samples: {time.time() - started:.1f} s to compile", flush=True)
        with zipfile.ZipFile(self.path) as archive:
            names = archive.namelist()
            self.metadata = json.loads(archive.read(next(n for n in names if n.endswith("wrapper_metadata.json"))))
            self.source = archive.read(next(n for n in names if n.endswith("wrapper.cpp"))).decode()

    def owner(self, line):
        """The sample whose call is in this line of the generated source, found by the inputs that the call depends on."""
        inputs = [i for i, sample in enumerate(self.samples) for _ in sample.tensors]
        owners = {f"arg{i}_1": sample for i, sample in enumerate(inputs)}
        for number, text in enumerate(self.source.split("\n"), 1):
            found = re.findall(r"\b(?:arg\d+_1|(?:buf|tmp_tensor_handle_|u)\d+)(?=\b|_handle)", text)
            known = [owners[name] for name in found if name in owners]
            if known:
                owners.update((name, known[0]) for name in found if name not in owners)
                if number >= line:
                    return self.samples[known[0]]
            if number > line + 3:
                return None
        return None

    def results(self):
        """The outputs from PyTorch's own loader, split by sample."""
        model = torch._inductor.aoti_load_package(self.path)
        torch.manual_seed(SEED)
        found = model.loader.run([copy_of(t) for sample in self.samples for t in sample.tensors])
        cut, at = [], 0
        for sample in self.samples:
            cut.append(found[at:at + len(sample.wanted)])
            at += len(sample.wanted)
        return cut

    def write(self, folder):
        """Writes the case. Samples whose results PyTorch's loader does not repeat are compared by shape only."""
        first, second = self.results(), self.results()
        data, step = DataFile(), {"do": "run", "seed": SEED, "inputs": [], "outputs": [], "compare": "value"}
        step["rtol"], step["atol"] = DEFAULT_TOLERANCE
        self.disagree, listed = {}, []
        for sample, got, again in zip(self.samples, first, second):
            step["inputs"] += [data.add(t) for t in sample.tensors]
            reason = None if sample.random else disagreement(got, sample.wanted)
            if reason is None and not all(same(g.resolve_conj().resolve_neg(), a.resolve_conj().resolve_neg())
                                          for g, a in zip(got, again)):
                reason = "PyTorch's package gives different results twice"
            if reason:
                self.disagree[sample.name] = reason
            listed.append({"name": sample.name, "outputs": len(got), "calls": sample.calls[self.mode]})
            for g, w, error in zip(got, sample.wanted, sample.rounding):
                step["outputs"].append(describe(data, g, g if sample.random else w, error))
        if self.disagree:
            return
        folder.mkdir(parents=True, exist_ok=True)
        make_portable(self.path, MARCH)
        shutil.copy(self.path, folder / "model.pt2")
        (folder / "data.bin").write_bytes(data.bytes)
        case = {"format": 1, "name": f"opinfo/{folder.name}", "source": "tests/opinfo/run.py",
                "torch": re.match(r"[\d.]+", torch.__version__)[0], "device": "cpu", "tags": [self.mode],
                "package": "model.pt2", "model": "model", "metadata": {k: str(v) for k, v in self.metadata.items()},
                "steps": [step], "samples": listed}
        (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def tolerance(dtype):
    return TOLERANCES.get(dtype, TOLERANCES[torch.float64] if dtype == torch.complex128 else DEFAULT_TOLERANCE)


def disagreement(got, wanted):
    for g, w in zip(got, wanted):
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"PyTorch's package gives {g.dtype} {list(g.shape)}, eager {w.dtype} {list(w.shape)}"
        rtol, atol = tolerance(w.dtype)
        narrow = w.element_size() == 1 and w.is_floating_point()
        try:
            torch.testing.assert_close(*(t.float() if narrow else t for t in (g, w)), rtol=rtol, atol=atol,
                                       equal_nan=True, check_stride=False)
        except Exception:
            return "PyTorch's package and eager differ"
    return None


def describe(data, got, wanted, error):
    """The wanted values in the layout that the package gives; the tolerance is no tighter than PyTorch's own error."""
    stored = torch.empty_strided(got.shape, got.stride(), dtype=got.dtype)
    once = tuple(slice(0, 1) if s == 0 else slice(None) for s in got.stride())
    stored[once].copy_(wanted[once])
    rtol, atol = tolerance(got.dtype)
    return data.add(stored) | {"rtol": rtol, "atol": max(atol, 3 * error)}
