"""What README.md tells a newcomer to type works."""
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import time

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "server"))
from ports import reserve_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("SCONCE_PROGRAM", ROOT / "build/release/server/sconce"))
README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "src/README.md",
             ROOT / "server/README.md", ROOT / "tests/README.md"]


def commands_named(program):
    """First words after `program` in code spans and code blocks of the documents."""
    found = {}
    for document in DOCUMENTS:
        text = document.read_text()
        code = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^    (?:\$ )?(.*)$", text, re.MULTILINE)
        for fenced in re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            code += fenced.splitlines()
        for span in code:
            for command in re.findall(rf"(?:^|[\s;|&]){re.escape(program)} ([a-z][a-z-]*)\b", span):
                found.setdefault(command, document.name)
    return found


def test_commands_of_dev_exist():
    help_text = subprocess.run(["./dev", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"^  ([a-z]+) ", help_text, re.MULTILINE))
    named = commands_named("./dev")
    assert {"serve", "test"} <= named.keys()
    assert {c: d for c, d in named.items() if c not in known} == {}
    unknown = subprocess.run(["./dev", "nonsense"], cwd=ROOT, capture_output=True, text=True)
    assert unknown.returncode != 0 and "no command 'nonsense'" in unknown.stderr


def test_files_that_scripts_and_documents_name_exist():
    """Paths of this repository in documents, ./dev and CI, except built ones below build/ or dist/."""
    tracked = set(subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())
    folders = {str(parent) for name in tracked for parent in pathlib.PurePath(name).parents}
    tops = {name.split("/")[0] for name in tracked if "/" in name}
    missing = {}
    for document in [*DOCUMENTS, ROOT / "dev", ROOT / ".ci/run", ROOT / "package_format/FORMAT.md"]:
        for path in re.findall(r"(?<![\w./*-])((?:%s)/[\w./-]*\w)" % "|".join(map(re.escape, tops)), document.read_text()):
            if path not in tracked | folders and not list(ROOT.glob(path + ".*")):
                missing.setdefault(str(document.relative_to(ROOT)), []).append(path)
    assert missing == {}


def test_dev_bench_reaches_its_script():
    told = subprocess.run(["./dev", "bench", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == 0 and "--rounds" in told.stdout, told.stderr


def test_commands_of_the_program_exist():
    if not PROGRAM.exists():
        pytest.skip(f"the program is not built: {PROGRAM} (./dev build)")
    named = commands_named("sconce")
    assert {"serve", "inspect", "check", "run", "bench", "ops", "pack"} <= named.keys()
    # In prose, "sconce serves" is no command; here only code counts.
    for command, document in named.items():
        result = subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True)
        assert result.returncode == 0, f"{document}: sconce {command}: {result.stderr}"


def read_until(process, pattern, seconds):
    """Lines of output and errors up to the first that matches."""
    text, end = "", time.time() + seconds
    while not re.search(pattern, text):
        assert time.time() < end, f"no {pattern!r} in: {text}"
        ready, _, _ = select.select([process.stdout], [], [], 0.1)
        if ready:
            piece = os.read(process.stdout.fileno(), 65536).decode()
            assert piece, f"ended: {text}"
            text += piece
    return text


def test_dev_serve_and_its_curl_line():
    preset = PROGRAM.parent.parent.name
    if not PROGRAM.exists() or PROGRAM != ROOT / "build" / preset / "server/sconce":
        pytest.skip(f"not a program of ./dev build: {PROGRAM}")
    address = f"127.0.0.1:{reserve_port()}"
    environment = {**os.environ, "SCONCE_PRESET": preset, "SCONCE_HTTP": address, "SCONCE_METRICS": "off",
                   "SCONCE_ADMIN": "off", "SCONCE_DRAIN_GRACE": "0"}
    process = subprocess.Popen(["./dev", "serve"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env=environment, start_new_session=True)
    try:
        text = read_until(process, r" info ready\n", 300)
        line = re.search(r"^ *(curl .*)$", text, re.MULTILINE).group(1)
        # This is the README's line with its usual address.
        assert f"$ {line.replace(address, '127.0.0.1:8000')}\n" in README
        answer = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert answer.returncode == 0, answer.stderr
        told = re.search(r'^ *\{"class":(\[\d\])', README, re.MULTILINE).group(1)
        assert json.loads(answer.stdout)["class"] == json.loads(told)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
