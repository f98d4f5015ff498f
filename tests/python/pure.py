"""Makes the parts of the package `sconce` importable that are Python alone, whether or not the native module is built."""
import pathlib
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]

try:
    import sconce  # noqa: F401
except ImportError:
    for name in [n for n in sys.modules if n.partition(".")[0] == "sconce"]:
        del sys.modules[name]
    package = types.ModuleType("sconce")
    package.__path__ = [str(ROOT / "python/sconce")]
    sys.modules["sconce"] = package
    from sconce._lazy import find
    package.__getattr__ = find

sys.path.append(str(ROOT / "tests/server"))
