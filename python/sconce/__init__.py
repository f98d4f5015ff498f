"""Sconce runs PyTorch models that AOTInductor compiled (.pt2 packages), without PyTorch.

    import numpy as np, sconce
    model = sconce.load("model.pt2")
    result = model(np.zeros((1, 8, 8), np.float32))
"""
import atexit as _atexit
import os as _os
from collections.abc import Iterable as _Iterable
from collections.abc import Sequence as _Sequence
from operator import index as _index
from typing import IO as _IO
from typing import TypeAlias as _TypeAlias

from sconce import _host, _lazy
from sconce._errors import (Busy, Cancelled, CorruptPackage, DeadlineExceeded, DeviceError, Error, FailedPrecondition,
                            FileNotFound, Incompatible, InputOutputError, InvalidArgument, ModelFailed, NotFound,
                            OutOfMemory, Unavailable, Unsupported)

_host.require()
try:
    from sconce import _native
except ImportError as _error:
    _explained = _host.explain(_error)
    if _explained is _error:
        raise
    raise _explained from None

from sconce._description import (  # noqa: E402
    Constant, Constants, Dim, ModelInfo, PackageInfo, Replica, Signature, Structure, TensorInfo, WeightSet, package_of)
from sconce._model import Model  # noqa: E402
from sconce._native import Tensor, guard_package_faults, manual_seed, operators  # noqa: E402
from sconce._results import CheckResult, RunInfo  # noqa: E402

_Path: _TypeAlias = "str | _os.PathLike[str]"
_Source: _TypeAlias = "str | _os.PathLike[str] | bytes | bytearray | memoryview | _IO[bytes]"

__version__: str = _native.version()

__all__ = [
    "Busy", "Cancelled", "CheckResult", "Constant", "Constants", "CorruptPackage", "DeadlineExceeded", "DeviceError", "Dim",
    "Error", "FailedPrecondition", "FileNotFound", "Incompatible", "InputOutputError", "InvalidArgument", "Model",
    "ModelFailed", "ModelInfo", "NotFound", "OutOfMemory", "PackageInfo", "Replica", "RunInfo", "Signature", "Structure",
    "Tensor", "TensorInfo", "Unavailable", "Unsupported", "WeightSet", "check", "cmake_prefix", "guard_package_faults", "inspect", "load",
    "manual_seed", "operators"]

# Pending runs finish, and give their results, before the interpreter goes.
_atexit.register(_native._end)


def _paths_of(name: str, given: _Iterable[_Path]) -> list[str]:
    if isinstance(given, (str, bytes, _os.PathLike)) or not isinstance(given, _Iterable):
        raise InvalidArgument(f"{name}: expected a list of paths, got {given!r}")
    return [_os.fspath(path) for path in given]


def _cores_of(given: _Iterable[int]) -> list[int]:
    try:
        cores = [_index(core) for core in given]
    except TypeError:
        raise InvalidArgument(f"cpu_set: expected numbers of cores, got {given!r}") from None
    for core in cores:
        if not 0 <= core < 2**31:
            raise InvalidArgument(f"cpu_set: {core} is out of range")
    return cores


def _trial_program() -> str:
    """The program of this wheel, which tries made-up inputs in a child process; "" where the package is no wheel."""
    program = f"{_os.path.dirname(_os.path.abspath(__file__))}/bin/sconce"
    return program if _os.access(program, _os.X_OK) else ""


def load(package: _Source, *, model_name: str = "", device: str | _Sequence[str] | None = None, replicas: int = 1,
         threads: int = 0, cpu_set: _Iterable[int] = (), check_inputs: bool = True, verify: bool = False,
         warm_up: bool = True, outputs: str | None = None, cuda_graphs: int = 8, allow_tf32: bool = False,
         op_libraries: _Iterable[_Path] = ()) -> Model:
    """Loads a model and makes it ready to be called.

    package: the path of a .pt2 archive, of a model's .so or of a directory with an archive's layout; or an archive's
        content as bytes, bytearray, memoryview or a file object opened for bytes.
    model_name: which model of the archive; "" is the only one, or the one called "model".
    device: "cpu", "cuda", "cuda:1", or a list of these. None: what the model was compiled for.
    replicas: how many calls can run at the same time on each device. Weights are shared, but each replica has its own
        copy of buffers that the model writes.
    threads: OpenMP threads of operators outside compiled kernels; 0: as many as the package was compiled for.
    cpu_set: numbers of cores to pin replicas to.
    check_inputs: checks sizes, ranges and strides of inputs. Count, dtype and rank are always checked.
    verify: compares checksums of the weights, too.
    warm_up: does ahead what the first calls would wait for: loading runs a CPU model of at least 1 MiB of weights once, on
        made-up inputs and without a trace, and new weights are packed before they serve. A child process, the program
        that the wheel ships, makes that run first; without it, or if it fails there, loading runs nothing.
    outputs: "numpy", "dlpack" (sconce.Tensor, where the model put it) or "torch". None: "numpy" for models on the CPU,
        "dlpack" for others.
    cuda_graphs: how many CUDA graphs each replica keeps, one for each shape of inputs; 0: none.
    allow_tf32: lets float32 products on GPUs round to TF32, as torch.backends.cuda.matmul.allow_tf32 does.
    op_libraries: libraries of custom operators that the model calls.

    Raises FileNotFound, CorruptPackage, Unsupported for what is no package, Incompatible with every reason why the model
    cannot run here, NotFound if the archive has no such model, InvalidArgument, OutOfMemory. Loading a package runs its
    code: load only what you trust.
    """
    for name, value in (("replicas", replicas), ("threads", threads), ("cuda_graphs", cuda_graphs)):
        if not isinstance(value, int):
            raise InvalidArgument(f"{name}: expected a number, got {value!r}")
        if not -2**31 <= value < 2**31:
            raise InvalidArgument(f"{name}: {value} is out of range")
    for name, value in (("model_name", model_name), ("outputs", outputs or "")):
        if not isinstance(value, str):
            raise InvalidArgument(f"{name}: expected a text, got {value!r}")
    devices = [] if device is None else [device] if isinstance(device, str) else list(device)
    if device is not None and not devices:
        raise InvalidArgument("device: expected a device or a list of devices, got an empty list")
    return Model(package, model_name=model_name, devices=list(map(str, devices)), replicas=replicas, threads=threads,
                 cpu_set=_cores_of(cpu_set), check_inputs=bool(check_inputs), verify=bool(verify), warm_up=bool(warm_up),
                 outputs=outputs or "", cuda_graphs=cuda_graphs, allow_tf32=bool(allow_tf32),
                 op_libraries=_paths_of("op_libraries", op_libraries), trial_program=_trial_program() if warm_up else "")


def check(package: _Source, *, model_name: str = "", op_libraries: _Iterable[_Path] = ()) -> CheckResult:
    """Whether the package is sound and its models would run here; none of their code runs.

    package: as in load(). Returns a CheckResult, which is true if all would, and has the reasons if not.
    Raises CorruptPackage, InputOutputError, or Unsupported for a file of another kind if the package cannot be read.
    """
    return CheckResult(dict(_native.check(package, model_name, _paths_of("op_libraries", op_libraries))))


def inspect(package: _Source) -> PackageInfo:
    """What a package says about itself: models, signatures, constants. None of its code runs.

    package: as in load(). Returns a PackageInfo. Raises CorruptPackage, FileNotFound, Unsupported for a file of another kind.
    """
    return package_of(_native.inspect(package))


def cmake_prefix() -> str:
    """The folder to put into CMAKE_PREFIX_PATH, so that find_package(sconce) finds the headers and libsconce of a wheel."""
    prefix = _os.path.dirname(_os.path.abspath(__file__))
    if not _os.path.exists(f"{prefix}/lib/cmake/sconce/sconceConfig.cmake"):
        raise FileNotFound(f"{prefix} was not installed from a wheel: it has no CMake files")
    return prefix


def __getattr__(name: str) -> object:
    """sconce.export, sconce.Client and what belongs to them."""
    return _lazy.find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_lazy.PLACES})
