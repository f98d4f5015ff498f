"""What sconce.export records of the inputs' sizes (sconce._export_sizes), in each Python with torch that SCONCE_TORCH_PYTHON
names, else in this one if it has torch. package_format/sizes/recorded_sizes.h reads it."""
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
def recorded(request):
    return all_of(request.param)


@functools.cache
def all_of(python):
    done = subprocess.run([python, FOLDER / "sizes_cases.py"], capture_output=True, text=True, env=ENVIRONMENT, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = map(json.loads, done.stdout.splitlines())
    return {line["case"]: line["text"] and json.loads(line["text"]) for line in lines}


def first_sizes(recorded, case):
    """The entries of the first dimensions; symbols by the order in which they occur: s0, s1."""
    assert recorded[case]["version"] == 1
    assert all(entry[1] == 4 and len(entry) == 2 for entry in recorded[case]["inputs"])
    names = {}
    text = json.dumps([entry[0] for entry in recorded[case]["inputs"]])
    text = re.sub(r"\bs\d+\b", lambda m: names.setdefault(m[0], f"s{len(names)}"), text)
    return [{**entry, "size": re.sub(r"[() ]", "", entry["size"])} for entry in json.loads(text)]


def test_expressions_and_declared_minima(recorded):
    assert first_sizes(recorded, "half") == [{"size": "2*s0", "min": 2, "max": 128}, {"size": "s0", "min": 1, "max": 64}]
    assert first_sizes(recorded, "from_zero") == [{"size": "s0", "min": 0, "max": 8}]
    assert first_sizes(recorded, "from_two") == [{"size": "s0", "min": 2, "max": 8}]


def test_constant_indices_need_as_many_rows(recorded):
    """torch.export lets x[1] through for a dimension that begins at 1; eager raises for one row."""
    least = {case: first_sizes(recorded, case)[0]["min"] for case in ("first", "last", "second", "last_but_one", "piece", "narrow")}
    assert least == {"first": 1, "last": 1, "second": 2, "last_but_one": 2, "piece": 2, "narrow": 2}


def test_sizes_that_only_a_guard_ties(recorded):
    assert [entry["size"] for entry in first_sizes(recorded, "guard")] == ["s0", "s0//2"]
    x, y, z = (entry["size"] for entry in first_sizes(recorded, "longer"))
    assert z in (f"Max{x},{y}", f"Max{y},{x}")
    past, new, mask = (entry["size"] for entry in first_sizes(recorded, "cat"))
    assert mask in (f"{past}+{new}", f"{new}+{past}")


def test_fixed_sizes_need_no_record(recorded):
    assert recorded["fixed"] is None
