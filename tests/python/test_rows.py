"""The proof that rows of a batch do not influence each other (sconce._rows), in each Python with torch that SCONCE_TORCH_PYTHON
names, else in this one if it has torch. rows_cases.py has the models."""
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
NAMES = re.findall(r"^@(independent|refused)\(.*\)\n(?:def|class) (\w+)", (FOLDER / "rows_cases.py").read_text(), re.MULTILINE)
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(pure.ROOT / "python")}


@pytest.fixture(scope="module", params=PYTHONS or ["none"], ids=lambda p: pathlib.Path(p).parts[-3] if p.count("/") > 2 else p)
def told(request):
    return all_of(request.param)


@functools.cache
def all_of(python):
    done = subprocess.run([python, FOLDER / "rows_cases.py"], capture_output=True, text=True, env=ENVIRONMENT, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return {line["case"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("verdict,name", NAMES)
def test_a_model(told, verdict, name):
    found = told[name]
    if told["decisions"]["torch"] == [2, 6] and "torch/_dynamo/" in found.get("failed", ""):
        pytest.skip("torch 2.6 cannot export it")
    assert "failed" not in found, found["failed"]
    assert found["independent"] == (verdict == "independent"), found["text"]
    assert found["operator"] == (found["wanted"] or ""), found["text"]
    metadata = json.loads(found["metadata"])
    assert metadata["version"] == 1 and metadata["independent"] == found["independent"]
    assert set(metadata) <= {"version", "independent", "reason", "operator", "at"} and bool(metadata.get("reason")) != found["independent"]


def test_the_line_is_the_users(told):
    if told["decisions"]["torch"] == [2, 8]:  # which records lines of forward() only
        assert told["router_with_capacity"]["at"].startswith("rows_cases.py:") and " in forward: " in told["router_with_capacity"]["at"]
        return
    assert re.fullmatch(r"rows_cases\.py:\d+ in router_with_capacity: place = expert\.cumsum\(0\)", told["router_with_capacity"]["at"])
    assert re.fullmatch(r"rows_cases\.py:\d+ in fast_nms: high = torch\.minimum\(.*\)", told["fast_nms"]["at"])
    assert told["router_with_capacity"]["text"].startswith("rows are not independent: aten.cumsum.default at rows_cases.py:")


def test_every_operator_has_a_decision(told):
    """A rule or a refusal: an operator that is new to the table is not unknown by oversight."""
    found = told["decisions"]
    assert found["count"] > 100 and found["rows"] > 150
    assert not found["core"] and not found["table"]


def test_random_graphs():
    """A sample of tests/truth/rows/compare.py, which docs/correctness.md runs with 20,000 graphs."""
    for python in PYTHONS:
        for manner, graphs in (("record", 300), ("export", 10)):
            done = subprocess.run([python, "-W", "ignore", pure.ROOT / "tests/truth/rows/compare.py", "--graphs", str(graphs), "--workers", "1",
                                   "--prove", manner], capture_output=True, text=True, env=ENVIRONMENT, timeout=900)
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
            counted = json.loads(done.stdout.splitlines()[-1])
            assert counted["wrong"] == [] and counted["graphs"] == graphs
            assert counted["proved"] >= 0.8 * counted["independent by trial"] > 0, counted
            assert manner == "export" or counted["independent by trial"] < 0.9 * graphs, counted
