"""What Sconce's client raises: the runtime's exceptions, and those that only a network has."""
from sconce._errors import Error, Unavailable, make


class Forbidden(Error, PermissionError):
    """The server refuses the token, or the route is not open to it."""

    code = "FORBIDDEN"


class QueueFull(Error, RuntimeError):
    """More requests wait than the server admits, and went on doing so until the deadline."""

    code = "QUEUE_FULL"


class TooLarge(Error, ValueError):
    """The request or the weights are larger than the server admits."""

    code = "TOO_LARGE"


class ConnectionFailed(Unavailable, ConnectionError):
    """The server cannot be reached, or the connection ended before its answer did."""


class BadAnswer(Error, ValueError):
    """What came is not an answer of a model server; says what is wrong with it."""


class NotDelivered(Exception):
    """A kept connection turned out to be closed before a byte of the answer came: the request may be sent again."""


_OWN = {"FORBIDDEN": Forbidden, "QUEUE_FULL": QueueFull, "TOO_LARGE": TooLarge}
_CODES = {400: "INVALID_ARGUMENT", 401: "FORBIDDEN", 403: "FORBIDDEN", 404: "NOT_FOUND", 408: "DEADLINE_EXCEEDED",
          409: "BUSY", 413: "TOO_LARGE", 415: "UNSUPPORTED", 429: "QUEUE_FULL", 499: "CANCELLED", 500: "MODEL_FAILED",
          501: "UNSUPPORTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED", 507: "OUT_OF_MEMORY"}


def of_status(status, text):
    """The exception for an answer that is no success. It has the HTTP status as `status`."""
    code = _CODES.get(status, "INVALID_ARGUMENT" if 400 <= status < 500 else "INTERNAL")
    error = _OWN[code](text) if code in _OWN else make(code, text)
    error.status = status
    return error
