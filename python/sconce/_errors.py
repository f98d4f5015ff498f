"""The exceptions of Sconce: one class for each code of the runtime."""


class Error(Exception):
    """An error of the runtime. `code` names its kind ("INVALID_ARGUMENT"), the text says what and why."""

    code = "INTERNAL"

    def __str__(self):
        # KeyError would quote the text, and OSError looks for an error number.
        return str(self.args[0]) if self.args else ""


class InvalidArgument(Error, ValueError):
    """An argument is not what the model, the weights or the settings allow; names it, what was expected and what came."""

    code = "INVALID_ARGUMENT"


class NotFound(Error, LookupError):
    """There is no model, constant or replica of that name; says which there are."""

    code = "NOT_FOUND"


class FileNotFound(NotFound, FileNotFoundError):
    """The package or weights file does not exist."""

    code = "NOT_FOUND"


class FailedPrecondition(Error, RuntimeError):
    """The call is not possible now: nothing is staged to commit, say, or the process was forked."""

    code = "FAILED_PRECONDITION"


class Busy(Error, RuntimeError):
    """Another weight update is under way; names it."""

    code = "BUSY"


class ModelFailed(Error, RuntimeError):
    """The model's own code failed; has its message."""

    code = "MODEL_FAILED"


class DeviceError(Error, RuntimeError):
    """A GPU failed."""

    code = "DEVICE"


class Unsupported(Error, NotImplementedError):
    """Sconce, or this form of it, cannot do that."""

    code = "UNSUPPORTED"


class Unavailable(Error, RuntimeError):
    """A library or device is missing, or the package's file was changed while it served."""

    code = "UNAVAILABLE"


class OutOfMemory(Error, MemoryError):
    """There is not enough memory; says for what."""

    code = "OUT_OF_MEMORY"


class CorruptPackage(Error, ValueError):
    """The package or weights file contradicts itself; names the part."""

    code = "CORRUPT_PACKAGE"


class Incompatible(Error, RuntimeError):
    """The package is sound but cannot run on this machine; has every reason."""

    code = "INCOMPATIBLE"


class InputOutputError(Error, OSError):
    """A file cannot be read or written."""

    code = "IO"


class DeadlineExceeded(Error, TimeoutError):
    """Something took longer than it may."""

    code = "DEADLINE_EXCEEDED"


class Cancelled(Error, RuntimeError):
    """Somebody stopped the work."""

    code = "CANCELLED"


_CLASSES = {c.code: c for c in (
    InvalidArgument, NotFound, FailedPrecondition, Busy, ModelFailed, DeviceError, Unsupported, Unavailable, OutOfMemory,
    CorruptPackage, Incompatible, InputOutputError, DeadlineExceeded, Cancelled)}
for _class in (Error, FileNotFound, *_CLASSES.values()):
    _class.__module__ = "sconce"


def make(code, text):
    """The exception for an error of the runtime. A code without a class of its own gives an Error with that code."""
    if code == "IO" and "No such file or directory" in text:
        return FileNotFound(text)
    known = _CLASSES.get(code)
    if known:
        return known(text)
    error = Error(text)
    error.code = code
    return error
