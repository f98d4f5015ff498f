"""Bounds of inputs that are indices (sconce._index_bounds), in each Python with torch that SCONCE_TORCH_PYTHON names, else in this one
if it has torch. index_cases.py has the models; a value out of the bounds that it finds must make PyTorch fail too."""
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
NAMES = re.findall(r"^@case\(.*\)\ndef (\w+)", (FOLDER / "index_cases.py").read_text(), re.MULTILINE)


@functools.cache
def all_of(python):
    done = subprocess.run([python, FOLDER / "index_cases.py"], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "PYTHONPATH": str(pure.ROOT / "python")})
    if done.returncode != 0:
        return done.stderr[-3000:]
    return {line["case"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("python", PYTHONS or ["none"])
@pytest.mark.parametrize("name", NAMES)
def test_a_model(python, name):
    assert isinstance(all_of(python), dict), all_of(python)
    line = all_of(python)[name]
    assert line["found"] == line["wanted"]
    assert line["beyond"], "PyTorch takes a value that is out of these bounds"
    if line["wanted"]:
        said = json.loads(line["text"])
        assert said == {"version": 1, "bounds": [{"input": at, "low": low, "high": high} for at, (low, high) in line["wanted"]]}
    else:
        assert line["text"] is None
