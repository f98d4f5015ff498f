"""`./dev test --long` and the folders of tests/long."""
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEV = (ROOT / "dev").read_text()
FOLDERS = sorted(path.parent.name for path in (ROOT / "tests/long").glob("*/run.sh"))


def test_each_folder_is_one_of_them():
    assert FOLDERS == sorted(path.name for path in (ROOT / "tests/long").iterdir() if path.is_dir() and path.name != "__pycache__")
    for name in FOLDERS:
        assert (ROOT / "tests/long" / name / "requirements.txt").exists()


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_run_with_the_program_and_its_packages(name, tmp_path):
    """dev's own function, with a run.sh that says what it was given. Without an argument, some print their help and end."""
    folder = tmp_path / "tests/long" / name
    folder.mkdir(parents=True)
    requirements = (ROOT / "tests/long" / name / "requirements.txt").read_bytes()
    (folder / "requirements.txt").write_bytes(requirements)
    (folder / "run.sh").write_text('echo "$1 $(command -v python)"\necho "3 passed, 1 failed"\nexit 1\n')
    number = subprocess.run(["cksum"], input=requirements, capture_output=True, check=True).stdout.split()[0].decode()
    packages = tmp_path / "build/long" / name
    (packages / "bin").mkdir(parents=True)
    (packages / f"installed-{number}").touch()
    (packages / "bin/python").write_text("#!/bin/sh\n")
    (packages / "bin/python").chmod(0o755)
    functions = [DEV[begin:DEV.index("\n}", begin) + 3] for begin in
                 (DEV.index(f"\n{function}() {{") for function in ("count_closing_line", "add", "try_script", "test_long"))]
    script = "\n".join(["set -euo pipefail; preset=release; passed=0; failed=0; started=0", *functions, f"test_long {name} .",
                        'echo "$passed passed, $failed failed"'])
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.endswith("3 passed, 1 failed\n") and done.returncode == 0, done
    said = (tmp_path / f"long_{name}.log").read_text().splitlines()[0]
    assert said == f"{tmp_path}/build/release/server/sconce {packages}/bin/python"
