"""README.md: from a PyTorch model to an answer over HTTP, where a Python with torch is at hand (SCONCE_TORCH_PYTHON)."""
import json
import re
import shlex
import subprocess

import pure
from test_export import ENVIRONMENT, FOLDER, PROGRAM, pytestmark, torch_python  # noqa: F401 (a fixture, and its reasons to skip)

README = (pure.ROOT / "README.md").read_text()


def test_the_lines_of_the_readme(torch_python, tmp_path):  # noqa: F811
    python, _ = torch_python
    block, = re.findall(r"^```python\n((?:.*\n)*?)^```$", README, re.MULTILINE)
    serve, = re.findall(r"^    sconce (serve linear\.pt2)$", README, re.MULTILINE)
    curl, = re.findall(r"^    (curl .*linear:call.*)$", README, re.MULTILINE)
    (tmp_path / "block.py").write_text(f"import sys\nsys.path.insert(0, {str(FOLDER)!r})\nimport pure\n{block}")
    done = subprocess.run([python, "block.py"], cwd=tmp_path, capture_output=True, text=True, env=ENVIRONMENT, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]

    server = subprocess.Popen([PROGRAM, *serve.split(), "--http", "127.0.0.1:0", "--metrics", "off", "--admin", "off"],
                              cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr:
            if port := re.search(r"127\.0\.0\.1:(\d+)", line):
                break
        program, *arguments = shlex.split(curl.replace("127.0.0.1:8000", f"127.0.0.1:{port[1]}"))
        asked = subprocess.run([program, "--retry", "20", "--retry-all-errors", "--retry-delay", "1", "--fail", *arguments],
                               capture_output=True, text=True, check=True)
        row, = json.loads(asked.stdout)
        assert len(row) == 2 and all(isinstance(value, float) for value in row), asked.stdout
    finally:
        server.terminate()
        server.communicate()
