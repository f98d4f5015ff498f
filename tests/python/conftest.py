"""The Python package of the build: SCONCE_PROGRAM says which, as for the other tests. Run with the Python that it is
built for (cmake -DSCONCE_PYTHON=ON -DPython_EXECUTABLE=...), with NumPy.
"""
import importlib.machinery
import importlib.util
import os
import pathlib
import sys

import pytest
from where import BUILD, ROOT

# SCONCE_PYTHON_PACKAGE=installed tests the package that this Python has, a wheel's say.
INSTALLED = os.environ.get("SCONCE_PYTHON_PACKAGE") == "installed"
NATIVE = [BUILD / "python/sconce" / f"_native{suffix}" for suffix in importlib.machinery.EXTENSION_SUFFIXES]


def why_not():
    if not INSTALLED and not any(path.exists() for path in NATIVE):
        return f"sconce's Python package is not built for this Python: {NATIVE[0]} (cmake -DSCONCE_PYTHON=ON)"
    built = [path.read_bytes() for path in NATIVE if path.exists() and not INSTALLED]
    if any(b"libasan.so" in module for module in built) and "libasan.so" not in pathlib.Path("/proc/self/maps").read_text():
        return "the module is built with a sanitizer, which tests/sanitizers/apis.sh loads ahead of Python"
    if not importlib.util.find_spec("numpy"):
        return "this Python has no NumPy"
    return None


REASON = why_not()
if not INSTALLED and not REASON:
    sys.path.insert(0, str(BUILD / "python"))
# These need only what is Python alone (pure.py).
PURE = {"test_client.py", "test_client_weights.py", "test_first_answer.py", "test_export.py", "test_rows.py"}
collect_ignore = [p.name for p in (ROOT / "tests/python").glob("test_*.py") if p.name not in PURE] if REASON else []


def pytest_report_header():
    return f"tests/python left out, but for {', '.join(sorted(PURE))}: {REASON}" if REASON else None


@pytest.fixture(scope="session")
def child_env():
    """The environment of a Python that finds the same package."""
    paths = [str(ROOT / "tests/python")] + ([] if INSTALLED else [str(BUILD / "python")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}
