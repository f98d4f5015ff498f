"""Names of the package `sconce` that are imported when they are first used: `import sconce` needs neither sockets nor torch."""
import importlib

PLACES = {
    **dict.fromkeys(("Client", "AsyncClient", "BadAnswer", "ConnectionFailed", "Forbidden", "PushFailed", "QueueFull", "TooLarge"),
                    "sconce.client"),
    **dict.fromkeys(("export", "ExportError", "ExportMismatch", "ExportReport"), "sconce._export"),
}


def find(name):
    """What the package's __getattr__ returns."""
    if name not in PLACES:
        raise AttributeError(f"module 'sconce' has no attribute {name!r}")
    return getattr(importlib.import_module(PLACES[name]), name)
