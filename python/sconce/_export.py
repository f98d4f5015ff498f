"""sconce.export: from a PyTorch model to a package that runs elsewhere, compared with the model before it is written."""
import collections
import contextlib
import copy
import dataclasses
import inspect
import os
import pathlib
import re
import shutil
import warnings

from sconce import _compare, _export_sizes, _index_bounds, _tied_names
from sconce._errors import InvalidArgument
from sconce._export_compile import Compiler, instruction_set, settings, version_of
from sconce._export_errors import CONTAINERS, ExportError, cured
from sconce._export_shapes import Batch
from sconce._stages import Stages

OLDEST, NEWEST = (2, 6), (2, 15)


class ExportMismatch(ExportError):
    """Sconce answers otherwise than the model: `comparisons` has every output. No package was written."""

    def __init__(self, text, comparisons):
        super().__init__(text, "If the difference is what the dtype explains, say so with tolerance=; a model that draws random "
                               "numbers cannot be compared: check=False.")
        self.comparisons = comparisons


@dataclasses.dataclass
class ModelReport:
    """One model of a package."""

    name: str
    comparisons: list
    constants: list  # names of what the package holds, as Sconce lists them
    unused: list     # names of state_dict() that the graph does not use; push weights with ignore= them
    inlined: list    # names of state_dict() that the graph uses, but that are in the code and cannot be replaced
    rows: object     # RowProof: whether requests may share runs; None: no input's first dimension is dynamic


@dataclasses.dataclass
class ExportReport:
    """What export() wrote. Printed, it is a table of how each output differs from the model's."""

    path: str
    bytes: int
    torch: str
    cpu: str
    models: dict
    checked: bool

    def __str__(self):
        lines = [f"{self.path}: {self.bytes:,} bytes, torch {self.torch}, {self.cpu}"]
        for model in self.models.values():
            lines.append(f"model {model.name}: {len(model.constants)} constants")
            if model.unused:
                lines.append(f"  not used by the graph: {', '.join(model.unused)}")
            if model.inlined:
                lines.append(f"  in the code, cannot be replaced: {', '.join(model.inlined)}")
            if model.rows is not None:
                lines.append(f"  {model.rows}")
            lines += [str(one) for one in model.comparisons]
        return "\n".join(lines + ([] if self.checked else ["not compared with the model"]))


def export(model, example_args=None, path=None, *, kwargs=None, batch=None, dynamic_shapes=None, device=None,
           cpu="x86-64-v3", weights="inside", updatable=True, dtype=None, threads=None, metadata=None, check=True,
           tolerance=None, strict=False, options=None, progress=None):
    """Compiles a model into a .pt2 package, runs it through Sconce, and compares the answers with the model's.

    model: a torch.nn.Module or a function of tensors. It is exported as in eval() mode. Or a dict: name of the model in the
        package -> (model, example_args) or (model, example_args, kwargs).
    example_args: a tuple of positional arguments (one tensor need not be in a tuple); kwargs: keyword arguments.
    path: the package to write, "name.pt2". It appears, or is replaced, only when it is whole and was compared.
    batch: (MIN, MAX) or MAX: the first dimension of all tensors with as many rows as the first one may have these sizes.
        None: all sizes are those of the example.
    dynamic_shapes: instead of batch, as torch.export.export takes it.
    device: "cpu" or "cuda"; None: where the model is. dtype: of parameters, buffers and arguments that are floating point.
        With either, a copy of the model is moved.
    cpu: the -march of the CPUs that are to run it: "x86-64-v3" (AVX2), "x86-64-v4" (AVX-512), another name of the C++
        compiler, or "native" for this machine's.
    weights: "inside" the code; "beside" it in the archive, so that they are mapped and not copied (torch 2.10 and later); or
        "none": the server gets them as an update.
    updatable: keeps every parameter and buffer under its name in state_dict(). False lets the compiler fold and pack them,
        which may make the model faster.
    threads: OpenMP threads of compiled loops; None: as many as this machine has cores. metadata: text to record, under keys
        that do not begin with "sconce_".
    check: runs the package and compares; at two batch sizes if there are two. tolerance: how far floating-point outputs may
        be off, as a share of the output's largest value; None: by dtype (float32 2e-4, float16 1e-2, bfloat16 4e-2).
    strict: torch.export's mode. options: AOTInductor settings to add. progress: a line on stderr that says what is under way
        and for how long; None: if stderr is a terminal.

    If the first dimension is dynamic, the export tries to prove that the rows of a batch do not influence each other. The package
    records the result, and a server lets requests share runs of the model only with a proof or by the user's order.

    Returns an ExportReport. Raises ExportError with the cure where one is known, ExportMismatch if the answers differ.
    """
    try:
        import torch
        import torch._inductor
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        oldest, newest = (".".join(map(str, version)) for version in (OLDEST, NEWEST))
        raise ModuleNotFoundError(f"sconce.export needs torch {oldest} to {newest}, which this Python lacks: "
                                  f"pip install torch=={newest}.0", name="torch") from None
    version = version_of(torch)
    if version < OLDEST:
        raise ExportError(f"torch {torch.__version__} is older than 2.6, whose packages Sconce cannot run",
                          "pip install 'torch>=2.6'")
    if version > NEWEST:
        warnings.warn(f"torch {torch.__version__} is newer than 2.15, the last that Sconce was tried with", stacklevel=2)
    check_device(torch, device)
    if isinstance(model, dict):
        if path is None:
            path, example_args = example_args, None
        if example_args is not None or kwargs is not None:
            raise TypeError("export(): with several models, each brings its arguments: {name: (model, args, kwargs)}")
        wanted = {name: (*given, None)[:3] for name, given in model.items()}
    else:
        wanted = {"model": (model, example_args, kwargs)}
    if path is None:
        raise TypeError("export(): path is missing")
    path = pathlib.Path(path)
    if path.suffix != ".pt2":
        raise InvalidArgument(f"path: expected NAME.pt2, got {str(path)!r}")
    for name in wanted:
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", str(name)):
            raise InvalidArgument(f"model {name!r}: names consist of letters, digits, '_', '-' and '.'")
    if batch is not None and dynamic_shapes is not None:
        raise TypeError("export(): batch and dynamic_shapes exclude each other")
    path.parent.mkdir(parents=True, exist_ok=True)
    patches = settings(torch, weights=weights, updatable=updatable, threads=threads, metadata=metadata, more=options or {})
    subjects, files = {}, {}
    with contextlib.ExitStack() as stack:
        stages = stack.enter_context(Stages("export", (3 if check else 2) * len(wanted) + 1, progress))
        compiler = stack.enter_context(Compiler(torch, cpu))
        width = stack.enter_context(instruction_set(torch, cpu))
        compiler.width = width
        if width:
            patches["cpp.simdlen"] = width
        for name, (given, args, more) in wanted.items():
            subject = subjects[name] = Subject(torch, name, given, args, more, device, dtype, batch, dynamic_shapes)
            stack.enter_context(subject.in_eval())
            subject.register_containers()
            stages.begin(f"torch traces model {name}")
            program = subject.export(strict)
            stages.begin(f"torch compiles model {name}")
            try:
                recorded = subject.with_tied_names(subject.with_rows(patches, program))
                recorded = with_sizes(subject.with_index_bounds(recorded, program), program)
                files[name] = compiler.compile(name, program, recorded)
            except ExportError:
                raise
            except Exception as error:  # noqa: BLE001  the compiler may fail in any way
                raise cured(error, f"torch cannot compile model {name!r}") from error
        stages.begin("the package is written")
        temporary = compiler.pack(path.absolute(), files)
        try:
            report = reported(torch, temporary, path, cpu, subjects, check, tolerance, weights, stages)
            os.replace(temporary, path)
        finally:
            shutil.rmtree(os.path.dirname(temporary), ignore_errors=True)
    return report


def with_sizes(patches, program):
    """The compiler's settings with what the source will not say of the inputs' sizes in the package's metadata."""
    text = _export_sizes.recorded(program)
    if text is None:
        return patches
    known = patches.get("aot_inductor.metadata", {})
    return {**patches, "aot_inductor.metadata": {**known, _export_sizes.KEY: text}}


def check_device(torch, device):
    """Refuses what .to(device) would refuse in words that help nobody."""
    kind = "cpu" if device is None else torch.device(device).type
    if kind not in ("cpu", "cuda"):
        raise InvalidArgument(f"device: expected 'cpu' or 'cuda', got {str(device)!r}")
    if kind == "cpu" or torch.cuda.is_available():
        return
    why = "is built without CUDA" if torch.version.cuda is None else f"is built for CUDA {torch.version.cuda} and finds no GPU"
    raise ExportError(f"device={str(device)!r}: torch {torch.__version__} {why}",
                      "Make the package on a machine with an NVIDIA GPU and a torch for CUDA. The machines that serve it need the "
                      "GPU, but no torch.")


def is_on(tensor, device):
    """Whether the tensor is on that device; "cuda" is every GPU."""
    return tensor.device.type == device.type and device.index in (None, tensor.device.index)


def reported(torch, temporary, path, cpu, subjects, check, tolerance, weights, stages):
    models, checked = {}, bool(check)
    for name, subject in subjects.items():
        comparisons = []
        if check:
            stages.begin(f"Sconce and torch run model {name}")
            try:
                comparisons = subject.comparisons(temporary, tolerance, weights)
            except _compare.NoSconce as missing:
                warnings.warn(str(missing), stacklevel=3)
                checked = False
        models[name] = ModelReport(name, comparisons, *subject.names(temporary), subject.rows)
    wrong = [one for model in models.values() for one in model.comparisons if not one]
    if wrong:
        raise ExportMismatch("Sconce's answers differ from the model's:\n" + "\n".join(map(str, wrong)), wrong)
    return ExportReport(str(path), os.path.getsize(temporary), torch.__version__, cpu, models, checked)


class Subject:
    """A model with its example, on its device and in its dtype."""

    def __init__(self, torch, name, model, args, kwargs, device, dtype, batch, dynamic_shapes):
        from sconce import _rows  # imports sympy, which comes with torch
        self.prover = _rows
        self.torch, self.name = torch, name
        args = (args,) if isinstance(args, torch.Tensor) else tuple(args if args is not None else ())
        kwargs = dict(kwargs or {})
        if not isinstance(model, torch.nn.Module):
            if not callable(model):
                raise TypeError(f"model {name!r}: expected a torch.nn.Module or a function, got {type(model).__name__}")
            model = _module_of(torch, model)
        if device is not None or dtype is not None:
            model = self.moved(model, device, dtype)
            args, kwargs = self.moved_arguments((args, kwargs), device, dtype)
        self.model, self.args, self.kwargs = model, args, kwargs
        self.batch = None if batch is None else Batch(torch, args, kwargs, batch)
        self.dynamic_shapes = dynamic_shapes
        self.used = set()  # names of state_dict() that the exported graph reads
        self.rows = None   # the RowProof of a model with a dynamic first dimension

    def moved(self, model, device, dtype):
        tensors = [*model.parameters(), *model.buffers()]
        there = all((device is None or is_on(x, self.torch.device(device))) and
                    (dtype is None or not x.is_floating_point() or x.dtype == dtype) for x in tensors)
        if there:
            return model
        return copy.deepcopy(model).to(device=device, dtype=dtype)

    def moved_arguments(self, value, device, dtype):
        def one(x):
            if not isinstance(x, self.torch.Tensor):
                return x
            return x.to(device=device, dtype=dtype if x.is_floating_point() else None)
        return self.torch.utils._pytree.tree_map(one, value)

    def answer(self, args, kwargs):
        """What the model returns; its buffers are as before."""
        torch = self.torch
        buffers = {name: value.detach().clone() for name, value in self.model.named_buffers()}
        with torch.no_grad():
            result = self.model(*self.cloned(args), **self.cloned(kwargs))
            for name, value in self.model.named_buffers():
                value.copy_(buffers[name])
        return result

    def register_containers(self):
        """Packages record the names of namedtuples and dataclasses, which torch has to know."""
        try:
            result = self.answer(self.args, self.kwargs)
        except Exception as error:  # noqa: BLE001  the user's model may fail in any way
            raise ExportError(f"model {self.name!r} itself fails on its example: {type(error).__name__}: {error}",
                              "Call model(*example_args, **kwargs) until it works.") from error
        pytree = self.torch.utils._pytree

        def visit(value, path):
            kind = type(value)
            name = f"{kind.__module__}.{kind.__qualname__}"
            if isinstance(value, tuple) and hasattr(value, "_fields"):
                if getattr(pytree.SUPPORTED_SERIALIZED_TYPES.get(kind), "serialized_type_name", None) is None and \
                        kind not in pytree.SUPPORTED_NODES:
                    pytree._register_namedtuple(kind, serialized_type_name=name)
            elif dataclasses.is_dataclass(value) and not isinstance(value, (type, dict)) and kind not in pytree.SUPPORTED_NODES:
                self.torch.export.register_dataclass(kind, serialized_type_name=name)
            if isinstance(value, dict):
                children = value.items()
            elif isinstance(value, (list, tuple, collections.deque)):
                children = enumerate(value)
            elif dataclasses.is_dataclass(value) and not isinstance(value, type):
                children = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
            else:
                children = ()
                if path.startswith("RESULT") and kind not in pytree.SUPPORTED_NODES and \
                        not isinstance(value, (self.torch.Tensor, bool, int, float, complex, type(None))):
                    raise ExportError(f"model {self.name!r} returns {name} as {path}", CONTAINERS)
            for key, child in children:
                visit(child, f"{path}[{key}]")
        visit((self.args, self.kwargs), "ARGS")
        visit(result, "RESULT")

    @contextlib.contextmanager
    def in_eval(self):
        before = {module: module.training for module in self.model.modules()}
        self.model.eval()
        try:
            yield
        finally:
            for module, training in before.items():
                module.training = training

    def export(self, strict):
        torch, args, kwargs, shapes = self.torch, self.args, self.kwargs, self.dynamic_shapes
        if self.batch:
            args, kwargs = self.batch.resized((args, kwargs), self.batch.example_rows())
            # Sizes are looked up by the rows of what torch gets to see.
            shapes = Batch(torch, args, kwargs, (self.batch.low, self.batch.high)).dynamic_shapes(self.model, args, kwargs)
        args, kwargs = self.cloned((args, kwargs))
        if shapes is not None and self.batch:
            shapes = Batch(torch, args, kwargs, (self.batch.low, self.batch.high)).dynamic_shapes(self.model, args, kwargs)
        try:
            with torch.no_grad(), self.prover.traces.of_functions(torch):
                program = torch.export.export(self.model, args, kwargs, dynamic_shapes=shapes, strict=strict)
        except Exception as error:  # noqa: BLE001  torch has no common class for its refusals
            raise cured(error, f"torch cannot export model {self.name!r}") from error
        signature = program.graph_signature
        names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        self.used = {names[node.name] for node in program.graph.nodes if node.op == "placeholder" and node.name in names
                     and node.users}
        return program

    def with_rows(self, patches, program):
        """The compiler's settings with the proof of independent rows in the package's metadata."""
        if self.prover.has_batch(self.torch, program):
            self.rows = self.prover.prove(self.torch, program)
        self.prover.traces.shorten(program.graph_module)
        if self.rows is None:
            return patches
        known = patches.get("aot_inductor.metadata", {})
        return {**patches, "aot_inductor.metadata": {**known, self.prover.KEY: self.rows.metadata()}}

    def with_index_bounds(self, patches, program):
        """The compiler's settings with the bounds of inputs that are indices in the package's metadata."""
        text = _index_bounds.metadata(self.torch, program)
        if text is None:
            return patches
        return {**patches, "aot_inductor.metadata": {**patches.get("aot_inductor.metadata", {}), _index_bounds.KEY: text}}

    def with_tied_names(self, patches):
        """The compiler's settings with the names that share one tensor in the package's metadata."""
        text = _tied_names.metadata(self.torch, self.model, self.used)
        if text is None:
            return patches
        return {**patches, "aot_inductor.metadata": {**patches.get("aot_inductor.metadata", {}), _tied_names.KEY: text}}

    def cloned(self, value):
        """The model may write its arguments."""
        return self.torch.utils._pytree.tree_map(
            lambda x: x.detach().clone(memory_format=self.torch.preserve_format) if isinstance(x, self.torch.Tensor) else x, value)

    def comparisons(self, package, tolerance, weights):
        sizes = [None]
        if self.batch:
            sizes = [self.batch.rows] + [n for n in [self.batch.other_rows()] if n and n != self.batch.rows]
        return [self.compared(package, rows, tolerance, weights) for rows in sizes]

    def compared(self, package, rows, tolerance, weights):
        torch = self.torch
        args, kwargs = self.args, self.kwargs
        if rows:
            args, kwargs = self.batch.resized((args, kwargs), rows)
        call = f"model {self.name}" + (f", batch of {rows}" if rows else "")
        expected = _compare.expected_of(torch, self.answer(args, kwargs))
        try:
            got = _compare.run(package, self.name, self.cloned(args), self.cloned(kwargs),
                               self.weights_for(package) if weights == "none" else None)
        except (_compare.NoSconce, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001  whatever the run says
            raise ExportError(f"{call}: Sconce cannot run the package: {error}",
                              "`sconce check` names what it lacks; operators of your own are added with --op-library.") from error
        return _compare.Comparison(call, _compare.compare(expected, got, tolerance))

    def weights_for(self, package):
        """What the package has and the model knows, buffers that are not in state_dict() among it."""
        held = {**dict(self.model.named_buffers(remove_duplicate=False)), **self.model.state_dict()}
        return {name: held[name] for name in constants_of(package, self.name) if name in held}

    def names(self, package):
        """Constants as Sconce lists them; names of state_dict() that are not among them: unused, in the code."""
        constants = constants_of(package, self.name)
        missing = [name for name in self.model.state_dict() if name not in constants]
        if not missing:
            return constants, [], []
        tied = {name for group in _tied_names.groups(self.torch, self.model) if not set(group).isdisjoint(constants) for name in group}
        missing = [name for name in missing if name not in tied]
        return constants, [n for n in missing if n not in self.used], [n for n in missing if n in self.used]


def constants_of(package, model):
    sconce = _compare.native()
    if sconce:
        info = sconce.inspect(package)
        return list(info.models[model].constants)
    found = _compare.program()
    if not found:
        return []
    return [c["fqn"] or c["name"] for c in _compare.inspect(found, package, model)["constants"]]


def _module_of(torch, function):
    class Function(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return function(*args, **kwargs)
    try:
        signature = inspect.signature(function)
        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        given = [p.replace(kind=p.POSITIONAL_ONLY) if p.name == "self" else p for p in signature.parameters.values()]
        Function.forward.__signature__ = signature.replace(parameters=[itself, *given])
    except (TypeError, ValueError):
        pass
    return Function()
