"""Compiles a model, records what PyTorch does with it and writes a conformance case (case.json, model.pt2, data.bin).

Values come from eager PyTorch; shapes, strides and aliasing from PyTorch's own container runner, which must agree with
eager at the case's tolerance. Kernels are compiled for AVX2 (portable_cxx.sh), so that a case runs anywhere.
"""
import copy
import json
import pathlib
import re
import shutil
import tempfile
import zipfile

import torch
from torch.utils import _pytree as pytree

from portable_package import make_portable

ALIGNMENT = 64
# (rtol, atol) by dtype; integers compare exactly whatever these are.
TOLERANCES = {torch.float16: (2e-3, 2e-3), torch.bfloat16: (1.6e-2, 1e-2), torch.float64: (1e-7, 1e-8)}
DEFAULT_TOLERANCE = (1e-4, 2e-5)


def flat_tensors(args, kwargs=None):
    """Tensors in the package's flat order: numbers and None are dropped, as the package drops them."""
    return [leaf for leaf in pytree.tree_leaves((args, kwargs or {})) if isinstance(leaf, torch.Tensor)]


def flat_outputs(result):
    """Outputs as the package returns them: numbers are 0-dimensional tensors, None stays."""
    leaves = pytree.tree_leaves(result, is_leaf=lambda x: x is None)
    return [torch.tensor(leaf) if isinstance(leaf, (bool, int, float)) else leaf for leaf in leaves]


def same_storage(a, b):
    return (a.numel() > 0 and b.numel() > 0 and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr())


class DataFile:
    def __init__(self):
        self.bytes = bytearray()

    def add(self, tensor):
        """Appends the tensor's storage; its description."""
        self.bytes.extend(b"\0" * (-len(self.bytes) % ALIGNMENT))
        at = len(self.bytes)
        whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
        self.bytes.extend(whole.cpu().numpy().tobytes())
        return self.describe(tensor, at)

    @staticmethod
    def describe(tensor, at):
        return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape),
                "stride": list(tensor.stride()), "offset": tensor.storage_offset(), "device": tensor.device.type,
                "at": at, "bytes": tensor.untyped_storage().nbytes()}


class Recorder:
    """One case: compiles the model once and appends steps."""

    def __init__(self, name, model, args, kwargs=None, dynamic_shapes=None, config=None, tags=(), by_name=False):
        """by_name: the package calls operators by name, which only PyTorch's package loader can answer."""
        self.name, self.model, self.tags = name, model.eval(), list(tags)
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.data, self.steps, self.kept = DataFile(), [], []
        self.package = str(self.folder / "model.pt2")
        with torch.no_grad():
            program = torch.export.export(copy.deepcopy(self.model), args, kwargs, dynamic_shapes=dynamic_shapes)
            torch._inductor.aoti_compile_and_package(program, package_path=self.package, inductor_configs=config)
        with zipfile.ZipFile(self.package) as archive:
            member = next(n for n in archive.namelist() if n.endswith(".so"))
            self.library = archive.extract(member, self.folder / "library")
            # Of torch 2.6 there is one, whatever its name.
            names = [n for n in archive.namelist() if n.endswith("_metadata.json")]
            metadata = next((n for n in names if n.endswith("wrapper_metadata.json")), names[0])
            self.metadata = json.loads(archive.read(metadata))
        self.runner = torch._C._aoti.AOTIModelContainerRunnerCpu(self.library, 1)
        self.loaded = torch._inductor.aoti_load_package(self.package).loader if by_name else self.runner
        self.fqns = self.runner.get_constant_names_to_original_fqns()
        self.constants = [{"name": name, "fqn": fqn} for name, fqn in sorted(self.fqns.items())]

    def _inputs(self, tensors):
        records = []
        for i, tensor in enumerate(tensors):
            first = next((j for j in range(i) if same_storage(tensors[j], tensor)), None)
            if first is None:
                records.append(self.data.add(tensor))
            else:
                records.append(DataFile.describe(tensor, records[first]["at"]) | {"same_as": first})
        return records

    def run(self, *args, seed=None, compare="value", tolerance=None, **kwargs):
        """Runs eager and the package, and records inputs, outputs, changes and aliases."""
        eager_args, eager_kwargs = copy.deepcopy((args, kwargs))
        package_args, package_kwargs = copy.deepcopy((args, kwargs))
        inputs, eager_inputs = flat_tensors(package_args, package_kwargs), flat_tensors(eager_args, eager_kwargs)
        step = {"do": "run", "inputs": self._inputs(inputs)}
        if seed is not None:
            step["seed"] = seed
            torch.manual_seed(seed)
        with torch.no_grad():
            wanted = flat_outputs(self.model(*eager_args, **eager_kwargs))
        if seed is not None:
            torch.manual_seed(seed)
        got = self.loaded.run(inputs)
        if seed is not None and compare == "value":
            wanted = got  # fused kernels draw in their own order; the generator is PyTorch's
        assert len(got) == len(wanted), (self.name, len(got), len(wanted))
        step["outputs"] = []
        for i, (g, w) in enumerate(zip(got, wanted)):
            step["outputs"].append(self._output(g, w, i, got, inputs, compare, tolerance))
        changed = [(i, w) for i, (w, before) in enumerate(zip(eager_inputs, flat_tensors(args, kwargs)))
                   if not torch.equal(w, before)]
        if changed:
            step["mutated"] = [{"input": i, "after": self.data.add(w)} for i, w in changed]
            for i, w in changed:
                torch.testing.assert_close(inputs[i], w, rtol=1e-4, atol=2e-5)
        step["rtol"], step["atol"] = tolerance or DEFAULT_TOLERANCE
        step["compare"] = compare
        self.steps.append(step)

    def _output(self, got, wanted, index, outputs, inputs, compare, tolerance):
        if got is None or not isinstance(got, torch.Tensor):
            return None
        rtol, atol = tolerance or TOLERANCES.get(got.dtype, DEFAULT_TOLERANCE)
        if compare == "value":
            # float8 through float: assert_close takes no tolerance for it.
            torch.testing.assert_close(*(t.float() if t.element_size() == 1 and t.is_floating_point() else t
                                         for t in (got, wanted)), rtol=rtol, atol=atol, equal_nan=True,
                                       check_stride=False)
        # Eager's values in the layout that the package gives.
        stored = torch.empty_strided(got.shape, got.stride(), dtype=got.dtype)
        # Each element once, where dimensions repeat the same memory.
        once = tuple(slice(0, 1) if s == 0 else slice(None) for s in got.stride())
        stored[once].copy_((wanted if compare == "value" else got)[once])
        record = self.data.add(stored)
        if got.dtype in TOLERANCES and tolerance is None:
            record |= {"rtol": rtol, "atol": atol}
        for kind, others in (("input", inputs), ("output", outputs[:index])):
            for i, other in enumerate(others):
                if isinstance(other, torch.Tensor) and same_storage(got, other) and "alias" not in record:
                    record["alias"] = [kind, i]
        return record

    def fails(self, message, *args, checks=False, **kwargs):
        """A run that must fail. `checks`: through the package's input checks, which PyTorch has off by default."""
        inputs = flat_tensors(args, kwargs)
        if not checks:
            try:
                self.loaded.run(copy.deepcopy(inputs))
            except RuntimeError:
                pass  # the message goes to stderr in PyTorch
            else:
                raise AssertionError(f"{self.name}: did not fail")
        step = {"do": "run", "inputs": self._inputs(inputs), "fails": True, "message": message}
        self.steps.append(step | ({"checks": True} if checks else {}))

    def update(self, constants, buffer="active", full=False, user_managed=False):
        names = {fqn: name for name, fqn in self.fqns.items()}
        self.runner.update_constant_buffer({names[fqn]: t for fqn, t in constants.items()}, buffer == "inactive", full,
                                           user_managed)
        self.kept.append(constants)  # user-managed tensors outlive the model
        self.steps.append({"do": "update", "buffer": buffer, "full": full, "user_managed": user_managed,
                           "constants": {fqn: self.data.add(t) for fqn, t in constants.items()}})

    def swap(self):
        self.runner.swap_constant_buffer()
        self.steps.append({"do": "swap"})

    def free_inactive(self):
        self.runner.free_inactive_constant_buffer()
        self.steps.append({"do": "free_inactive"})

    def extract(self, buffer="active"):
        found = self.runner.extract_constants_map(buffer == "inactive")
        found = {self.fqns.get(name, name): tensor for name, tensor in found.items()}
        assert found, self.name
        self.steps.append({"do": "extract", "buffer": buffer,
                           "constants": {fqn: self.data.add(t.clone()) for fqn, t in sorted(found.items())}})

    def write(self, suite, march):
        folder = pathlib.Path(suite) / self.name
        folder.mkdir(parents=True)
        make_portable(self.package, march)
        shutil.move(self.package, folder / "model.pt2")
        (folder / "data.bin").write_bytes(self.data.bytes)
        case = {"format": 1, "name": f"{pathlib.Path(suite).name}/{self.name}",
                "source": "tests/data/make_cases.py", "torch": re.match(r"[\d.]+", torch.__version__)[0],
                "device": "cpu", "tags": self.tags, "package": "model.pt2", "model": "model",
                "metadata": {k: str(v) for k, v in self.metadata.items()}, "constants": self.constants,
                "steps": self.steps}
        (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
        shutil.rmtree(self.folder)
