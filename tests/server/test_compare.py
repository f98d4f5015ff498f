"""`sconce compare` starts the Python in PATH, which may or may not have Sconce's package."""
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest
from serving import PROGRAM, ROOT

HINT = "python3 -m sconce.compare"


@pytest.fixture
def python(tmp_path):
    """A function that makes PATH have a python3 with these modules (name -> source) and no others but Python's own."""
    def make(modules):
        bin, site = tmp_path / "bin", tmp_path / "site"
        bin.mkdir()
        for name, source in modules.items():
            file = site / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(source)
        (bin / "python3").write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(site))} exec {shlex.quote(sys.executable)} -S "$@"\n')
        (bin / "python3").chmod(0o755)
        return bin
    return make


def compare(path, *words, cwd, **environment):
    kept = {name: value for name, value in os.environ.items() if name not in ("SCONCE_PROGRAM", "PYTHONPATH")}
    return subprocess.run([PROGRAM, "compare", *words], capture_output=True, text=True, cwd=cwd,
                          env={**kept, "PATH": str(path), **environment})


def test_python_gets_the_arguments(python, tmp_path):
    program = "import os, sys\ndef main():\n    print(sys.argv[1:], os.environ['SCONCE_PROGRAM'])\n    return 1\n"
    path = python({"sconce/__init__.py": "", "sconce/compare.py": program})
    done = compare(path, "a b.pt2", "m.py:f", "--weights", "--tolerance", "0.5", cwd=tmp_path)
    assert done.stdout == f"['--tolerance', '0.5', '--weights', '--', 'a b.pt2', 'm.py:f'] {PROGRAM.resolve()}\n", done.stderr
    assert done.returncode == 1
    done = compare(path, "a.pt2", "m:f", cwd=tmp_path, SCONCE_PROGRAM="/another")
    assert done.stdout == "['--', 'a.pt2', 'm:f'] /another\n", done.stderr


def test_a_python_without_the_package(python, tmp_path):
    path = python({})
    done = compare(path, "a.pt2", "m:f", cwd=tmp_path)
    assert done.returncode == 2 and not done.stdout
    assert HINT in done.stderr and "Traceback" not in done.stderr, done.stderr
    # A folder of that name in the working directory is no package of ours.
    (tmp_path / "here/sconce").mkdir(parents=True)
    done = compare(path, "a.pt2", "m:f", cwd=tmp_path / "here")
    assert done.returncode == 2 and HINT in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_package_that_lacks_something_says_so_itself(python, tmp_path):
    path = python({"sconce/__init__.py": "import not_installed\n"})
    done = compare(path, "a.pt2", "m:f", cwd=tmp_path)
    assert done.returncode == 1 and "No module named 'not_installed'" in done.stderr, done.stderr


def test_no_python(tmp_path):
    done = compare(tmp_path, "a.pt2", "m:f", cwd=tmp_path)
    assert done.returncode == 2
    assert "no python3 on PATH" in done.stderr and HINT in done.stderr, done.stderr


def test_arguments_are_checked_first(tmp_path):
    done = compare(tmp_path, "a.pt2", cwd=tmp_path)
    assert done.returncode == 2 and "MODEL is required" in done.stderr, done.stderr


@pytest.mark.parametrize("words", [["a.pt2", "m:f"], ["a.pt2", "m:f", "--weights"], ["--tolerance", "0.5", "a.pt2", "m:f"]])
def test_the_former_command_names_the_present_one(words):
    done = subprocess.run([PROGRAM, "verify", *words], capture_output=True, text=True)
    assert done.returncode == 2 and "sconce compare" in done.stderr, done.stderr


def test_options_are_those_of_the_module(tmp_path):
    module = pathlib.Path(ROOT / "python/sconce/compare.py").read_text()
    here = compare(tmp_path, "--help", cwd=tmp_path).stdout
    assert set(re.findall(r"--[a-z]+", here)) - {"--help"} == set(re.findall(r'add_argument\("(--[a-z]+)"', module))
