"""Compiles models as packages and records what PyTorch's own loader does with them as conformance cases.

record() takes the place of torch.compile, AOTIRunnerUtil that of PyTorch's test helper of the same name: each model that
a test gives to either becomes a case. Values are the loader's on the same package, so that only the runtimes differ.
"""
import contextlib
import copy
import json
import pathlib
import re
import shutil
import sys
import tempfile
import types
import zipfile

import torch
from torch.export._tree_utils import reorder_kwargs
from torch.utils import _pytree as pytree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/data"))
from case_writer import DataFile, same_storage  # noqa: E402

SEED = 1234
MOST_BYTES = 48 << 20  # of a case's tensors
MOST_MODELS = 3  # of a test
# (rtol, atol): kernels that packages call out to add in other orders than PyTorch's.
TOLERANCES = {torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 2e-2), torch.float64: (1e-7, 1e-8)}
DEFAULT_TOLERANCE = (3e-4, 1e-4)


class Harvest:
    """What the tests of one worker have made. One test at a time."""

    def __init__(self, device):
        self.device = device
        self.begin()

    def begin(self):
        self.packages, self.notes, self.models = [], [], 0

    def write(self, folder, name):
        """Cases of what was run since begin(); their folders."""
        made = []
        for number, package in enumerate(self.packages):
            if package.steps and package.metadata.get("AOTI_DEVICE_KEY", self.device) == self.device:
                made.append(package.write(folder / f"{name}.{number}"))
        self.begin()
        return made


harvest = None  # set by the worker
compiling = False


def generator_states():
    states = [torch.get_rng_state()]
    return states + [torch.cuda.get_rng_state()] if harvest.device == "cuda" else states


def raw(tensor):
    return tensor.detach().cpu().contiguous().view(-1).view(torch.uint8) if tensor.numel() else torch.empty(0)


class Package:
    """A compiled package, open in PyTorch's loader. Has the methods of that loader and of older runners."""

    def __init__(self, path, model=None):
        self.path, self.data, self.steps, self.kept = pathlib.Path(path), DataFile(), [], []
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            models = [n.split("data/aotinductor/")[1].split("/")[0] for n in names if n.endswith(".so")]
            self.model = model or models[0]
            metadata = [n for n in names if n.endswith("wrapper_metadata.json") and f"/{self.model}/" in n]
            self.metadata = json.loads(archive.read(metadata[0])) if metadata else {}
        self.runner = self._loader()
        self.loader = self
        harvest.packages.append(self)

    def _loader(self):
        for more in ((False, 1, -1), (False,), ()):  # torch 2.8, 2.7, 2.6
            try:
                return torch._C._aoti.AOTIModelPackageLoader(str(self.path), self.model, *more)
            except TypeError:
                pass
        raise RuntimeError("a loader of another torch")

    def get_call_spec(self):
        return self.runner.get_call_spec()

    def get_constant_fqns(self):
        return list(self.runner.get_constant_fqns())

    def get_metadata(self):
        return self.metadata

    def __call__(self, *args, **kwargs):
        in_spec, out_spec = (pytree.treespec_loads(s) for s in self.get_call_spec())
        leaves = pytree.tree_leaves((args, reorder_kwargs(kwargs, in_spec)))
        return pytree.tree_unflatten(self.run([x for x in leaves if isinstance(x, torch.Tensor)]), out_spec)

    def boxed_run(self, tensors):
        return self.run(tensors)

    def run(self, tensors, *_):
        tensors = [t.detach() for t in tensors]
        before = [raw(t).clone() for t in tensors]
        step = {"do": "run", "inputs": self._inputs(tensors)}
        if harvest.device == "cuda":  # what the process was told about TF32 is no part of a package
            torch.backends.cuda.matmul.allow_tf32 = False
        torch.manual_seed(SEED)
        states = generator_states()
        try:
            got = self.runner.run(tensors)
        except Exception as error:
            self.steps.append(step | {"fails": True, "message": "", "note": str(error)[:300]})
            raise
        if any(not torch.equal(a, b) for a, b in zip(states, generator_states())):
            step["seed"] = SEED
        step |= {"compare": "value", "rtol": DEFAULT_TOLERANCE[0], "atol": DEFAULT_TOLERANCE[1]}
        step["outputs"] = [self._output(g, got[:i], tensors) for i, g in enumerate(got)]
        changed = [{"input": i, "after": self._add(t)}
                   for i, (t, b) in enumerate(zip(tensors, before)) if not torch.equal(raw(t), b)]
        self.steps.append(step | ({"mutated": changed} if changed else {}))
        return got

    def load_constants(self, constants, *flags, check_full_update=False, user_managed=False, use_inactive=False, **_):
        use_inactive, check_full_update = (*flags, use_inactive, check_full_update)[:2] if flags else (
            use_inactive, check_full_update)
        step = {"do": "update", "buffer": "inactive" if use_inactive else "active", "full": check_full_update,
                "user_managed": user_managed, "constants": {n: self._add(t.detach()) for n, t in constants.items()}}
        self.runner.load_constants(constants, use_inactive, check_full_update, user_managed)
        self.kept.append(constants)  # user-managed tensors outlive the model
        self.steps.append(step)

    def update_constant_buffer(self, constants, use_inactive, full, *_):
        names = {fqn.replace(".", "_"): fqn for fqn in self.get_constant_fqns()}
        plain = {n: n.replace("L__self___", "").replace(".", "_") for n in constants}
        self.load_constants({names.get(plain[n], n): t for n, t in constants.items()}, use_inactive, full)

    def swap_constant_buffer(self):
        self.runner.swap_constant_buffer()
        self.steps.append({"do": "swap"})

    def free_inactive_constant_buffer(self):
        self.runner.free_inactive_constant_buffer()
        self.steps.append({"do": "free_inactive"})

    def write(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.move(self.path, folder / "model.pt2")
        (folder / "data.bin").write_bytes(self.data.bytes)
        case = {"format": 1, "name": f"harvest/{folder.name}", "source": folder.name,
                "torch": re.match(r"[\d.]+", torch.__version__)[0], "device": harvest.device, "tags": [],
                "package": "model.pt2", "model": self.model,
                "metadata": {k: str(v) for k, v in self.metadata.items()}, "steps": self.steps}
        if harvest.device == "cuda":
            case["sm"] = "".join(map(str, torch.cuda.get_device_capability()))
        (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
        return folder

    def _add(self, tensor):
        if len(self.data.bytes) + tensor.untyped_storage().nbytes() > MOST_BYTES:
            raise RuntimeError("tensors too large for a case")
        return self.data.add(tensor)

    def _inputs(self, tensors):
        records = []
        for i, tensor in enumerate(tensors):
            first = next((j for j in range(i) if same_storage(tensors[j], tensor)), None)
            records.append(self._add(tensor) if first is None else
                           DataFile.describe(tensor, records[first]["at"]) | {"same_as": first})
        return records

    def _output(self, got, earlier, inputs):
        if not isinstance(got, torch.Tensor):
            return None
        if got.layout != torch.strided:
            return {"dtype": "opaque"}
        stored = torch.empty_strided(got.shape, got.stride(), dtype=got.dtype, device=got.device)
        # Each element once, where dimensions repeat the same memory.
        once = tuple(slice(0, 1) if s == 0 else slice(None) for s in got.stride())
        stored[once].copy_(got.resolve_conj().resolve_neg()[once])
        record = self._add(stored)
        if got.dtype in TOLERANCES:
            record["rtol"], record["atol"] = TOLERANCES[got.dtype]
        for kind, others in (("input", inputs), ("output", earlier)):
            for i, other in enumerate(others):
                if isinstance(other, torch.Tensor) and same_storage(got, other):
                    record.setdefault("alias", [kind, i])
        return record


class Call(torch.nn.Module):
    """A function as a module; a module among what it closes over keeps its parameters."""

    def __init__(self, function, module=None):
        super().__init__()
        self.function, self.module = function, module

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


@contextlib.contextmanager
def no_recording():
    global compiling
    before, compiling = compiling, True
    try:
        yield
    finally:
        compiling = before


def exported(model, args, kwargs=None, dynamic_shapes=None):
    """Both ways to export are tried."""
    for strict in (False, True):
        try:
            return torch.export.export(model, tuple(args), kwargs, dynamic_shapes=dynamic_shapes, strict=strict)
        except Exception as error:
            harvest.notes.append(f"export, strict {strict}: {type(error).__name__}: {error}"[:200])
            if strict:
                raise


def compile_package(model, args, kwargs=None, options=None, dynamic_shapes=None):
    """The path of a package."""
    if not isinstance(model, torch.nn.Module):
        if isinstance(dynamic_shapes, dict):
            dynamic_shapes = {"args": tuple(dynamic_shapes.values())}
        model = Call(model)
    options = {k: v for k, v in (options or {}).items()
               if k not in ("aot_inductor.output_path", "aot_inductor.package") and "cudagraph" not in k}
    with no_recording(), torch.no_grad():
        program = exported(model, args, kwargs, dynamic_shapes)
        path = tempfile.mktemp(suffix=".pt2")
        torch._inductor.aoti_compile_and_package(
            program, package_path=path,
            # Parameters are discarded by way of torch.compile's state, which an export does not have.
            inductor_configs={"aot_inductor.compile_wrapper_opt_level": "O0",
                              "freezing_discard_parameters": False} | options)
    return path


def any_size(tree):
    return pytree.tree_map(lambda x: [torch.export.Dim.AUTO] * x.dim() if isinstance(x, torch.Tensor) else None, tree)


def record(function, args, kwargs=None, options=None, dynamic=False):
    """What function returns, by way of a package where one can be made."""
    kwargs = dict(kwargs or {})
    if compiling or harvest.models >= MOST_MODELS:
        return function(*args, **kwargs)
    harvest.models += 1
    detach = lambda x: x.detach() if isinstance(x, torch.Tensor) else x
    leaves, spec = pytree.tree_flatten((tuple(args), kwargs))
    leaves = [detach(x) for x in leaves]
    model = function
    given_args, given_kwargs = pytree.tree_unflatten(leaves, spec)
    if any(not isinstance(x, (torch.Tensor, int, float, bool, str, type(None))) for x in leaves):
        # What export does not take as an input (dtypes, functions, masks of blocks) is part of the function.
        def bound(*tensors):
            tensors = iter(tensors)
            a, k = pytree.tree_unflatten([next(tensors) if isinstance(x, torch.Tensor) else x for x in leaves], spec)
            return function(*a, **k)
        model = Call(bound, function if isinstance(function, torch.nn.Module) else None)
        given_args, given_kwargs = tuple(x for x in leaves if isinstance(x, torch.Tensor)), {}
    shapes = None
    if dynamic and not isinstance(model, torch.nn.Module):
        shapes = {"args": any_size(given_args), "kwargs": any_size(given_kwargs)}
    try:
        package = Package(compile_package(model, given_args, given_kwargs, options, shapes))
        with torch.no_grad():
            return package(*given_args, **given_kwargs)
    except Exception as error:
        harvest.notes.append(f"{type(error).__name__}: {error}"[:300])
        return function(*args, **kwargs)


def in_place_of_compile(model=None, *, dynamic=None, mode=None, options=None, **_):
    if model is None:
        return lambda m: in_place_of_compile(m, dynamic=dynamic, mode=mode, options=options)
    options = dict(options or {}) | ({"max_autotune": True} if "max-autotune" in (mode or "") else {})
    call = lambda *args, **kwargs: record(model, args, kwargs, options, bool(dynamic))
    return Call(call, model) if isinstance(model, torch.nn.Module) else call


def to_device(value):
    """On the harvest's device, with the strides it has."""
    if not isinstance(value, torch.Tensor) or value.device.type == harvest.device or value.layout != torch.strided:
        return value
    if not value.numel():
        return value.to(harvest.device)
    extent = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride())) + 1
    flat = torch.as_strided(value.detach(), (extent,), (1,), value.storage_offset()).clone()
    return flat.to(harvest.device).as_strided(value.shape, value.stride(), 0)


def check_model(test, model, example_inputs, kwargs=None, *_, **__):
    """In place of test_torchinductor's: some tests in half precision as well."""
    kwargs = kwargs if isinstance(kwargs, dict) else {}
    if isinstance(model, torch.nn.Module):
        model = copy.deepcopy(model).to(harvest.device).eval()
    inputs = pytree.tree_map(to_device, tuple(example_inputs))
    dynamic = "Dynamic" in type(test).__name__
    record(model, inputs, kwargs, None, dynamic)
    halves = pytree.tree_map(
        lambda x: x.half() if isinstance(x, torch.Tensor) and x.dtype == torch.float32 else x, inputs)
    if harvest.device == "cuda" and len(test._testMethodName) % 3 == 0:
        record(model.half() if isinstance(model, torch.nn.Module) else model, halves, kwargs, None, dynamic)


class AOTIRunnerUtil:
    """test_aot_inductor_utils' helper, in its forms since torch 2.6."""

    @staticmethod
    def compile(model, example_inputs, options=None, inductor_configs=None, dynamic_shapes=None, **_):
        return compile_package(model, example_inputs, None, options or inductor_configs, dynamic_shapes)

    @staticmethod
    def load(_, path):
        return Package(path)

    @staticmethod
    def run(*args, **kwargs):
        model, inputs, *rest = [a for a in args if not isinstance(a, str)]
        kwargs = dict(zip(("options", "dynamic_shapes"), rest)) | kwargs
        return Package(AOTIRunnerUtil.compile(model, inputs, **kwargs))(*inputs)

    @staticmethod
    def run_multiple(*args, **kwargs):
        model, many, *rest = [a for a in args if not isinstance(a, str)]
        kwargs = dict(zip(("options", "dynamic_shapes"), rest)) | kwargs
        package = Package(AOTIRunnerUtil.compile(model, many[0], **kwargs))
        return [package(*inputs) for inputs in many]

    legacy_compile, legacy_load, legacy_run = compile, load, run
    load_runner = legacy_load_runner = load


def aot_check_model(test, model, example_inputs, options=None, dynamic_shapes=None, *_, **kwargs):
    aot_check_model_with_multiple_inputs(test, model, [example_inputs], options or kwargs.get("inductor_configs"),
                                         dynamic_shapes)


def aot_check_model_with_multiple_inputs(test, model, list_example_inputs, options=None, dynamic_shapes=None, **_):
    with torch.no_grad():
        if not isinstance(model, types.FunctionType):
            model = model.to(harvest.device)
        path = compile_package(model, list_example_inputs[0], None, options, dynamic_shapes)
        package = Package(path)
        for inputs in list_example_inputs:
            package(*inputs)


def load_package(path, model_name="model", *_, **__):
    """In place of torch._inductor.package's, by which tests load what they have compiled themselves."""
    if hasattr(path, "read"):
        path.seek(0)
    with tempfile.NamedTemporaryFile(suffix=".pt2", delete=False) as copied:
        copied.write(path.read() if hasattr(path, "read") else pathlib.Path(path).read_bytes())
    return Package(copied.name, model_name)


def aot_test_utils():
    """A module in place of test_aot_inductor_utils."""
    module = types.ModuleType("test_aot_inductor_utils")
    module.AOTIRunnerUtil = AOTIRunnerUtil
    module.check_model = aot_check_model
    module.check_model_with_multiple_inputs = aot_check_model_with_multiple_inputs
    module.code_check_count = lambda *_, **__: None
    return module
