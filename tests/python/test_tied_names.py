"""What sconce.export records of names that share one tensor (sconce._tied_names), in each Python with torch that
SCONCE_TORCH_PYTHON names, else in this one if it has torch. src/runner/constants/tied_names.h reads it."""
import functools
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import pure

FOLDER = pathlib.Path(__file__).resolve().parent
PYTHONS = [p for p in os.environ.get("SCONCE_TORCH_PYTHON", "").split(":") if p] or \
    ([sys.executable] if importlib.util.find_spec("torch") else [])
pytestmark = pytest.mark.skipif(not PYTHONS, reason="no torch in this Python, and SCONCE_TORCH_PYTHON names none")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(pure.ROOT / "python")}


@pytest.fixture(scope="module", params=PYTHONS or ["none"], ids=lambda p: pathlib.Path(p).parts[-3] if p.count("/") > 2 else p)
def cases(request):
    return all_of(request.param)


@functools.cache
def all_of(python):
    done = subprocess.run([python, FOLDER / "tied_cases.py", "COMPILE"], capture_output=True, text=True, env=ENVIRONMENT, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return {line["case"]: line for line in map(json.loads, done.stdout.splitlines())}


def recorded(cases, case):
    found = json.loads(cases[case]["text"])
    assert found["version"] == 1
    return found["names"]


def test_every_other_name_stands_for_one_that_the_graph_uses(cases):
    # torch.export keeps the last of the names.
    assert recorded(cases, "Tied") == {"a.weight": "b.weight"}
    names = recorded(cases, "Many")
    assert {key: value for key, value in names.items() if key.startswith(("a.", "b.", "c."))} in (
        {"a.weight": "c.weight", "b.weight": "c.weight", "a.bias": "c.bias"},)
    assert {key: value for key, value in names.items() if "." not in key} == {"table": "again"}


def test_names_of_no_constant_are_not_recorded(cases):
    assert cases["Unused"]["text"] is None
    assert cases["Apart"]["text"] is None


def test_the_package_has_the_text_and_the_constant(cases):
    assert json.loads(cases["Tied"]["recorded"]) == {"version": 1, "names": {"a.weight": "b.weight"}}
    fqns = set(re.findall(r'constants_info_\[\d+\]\.original_fqn = "([^"]*)"', cases["Tied"]["source"]))
    assert fqns == {"a.bias", "b.bias", "b.weight"}
