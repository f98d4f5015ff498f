"""What README.md tells a newcomer to type works."""
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time

import pytest
from clone import PROGRAM, Reader
from documents import ROOT

sys.path.append(str(ROOT / "tests/server"))
from ports import reserve_port

PRESET = PROGRAM.parent.parent.name
README = (ROOT / "README.md").read_text()


def test_dev_bench_reaches_its_script():
    told = subprocess.run(["./dev", "bench", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == 0 and "--rounds" in told.stdout, told.stderr


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


built_by_dev = pytest.mark.skipif(not PROGRAM.exists() or PROGRAM != ROOT / "build" / PRESET / "server/sconce",
                                  reason=f"not a program of ./dev build: {PROGRAM}")


@built_by_dev
def test_dev_serve_of_a_package(tmp_path):
    shutil.copy(ROOT / "examples/digits/digits.pt2", tmp_path / "model.pt2")
    reader = Reader(ROOT)
    with reader.running(f"env SCONCE_PRESET={PRESET} ./dev serve {tmp_path}/model.pt2") as server:
        assert json.loads(reader.run(f"curl -sf http://{server['8000']}/v1/models")) == {"models": ["model"]}


@built_by_dev
def test_dev_serve_and_its_curl_line():
    address = f"127.0.0.1:{reserve_port()}"
    environment = {**os.environ, "SCONCE_PRESET": PRESET, "SCONCE_HTTP": address, "SCONCE_METRICS": "off",
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
