"""A reader of the documents: a fresh clone, a few files of the reader's own, a shell, and servers."""
import contextlib
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import time

from documents import ROOT, TRACKED

sys.path.append(str(ROOT / "tests/server"))
from certificates import Authority

PROGRAM = pathlib.Path(os.environ.get("SCONCE_PROGRAM", ROOT / "build/release/server/sconce")).resolve()
BUILD = PROGRAM.parent.parent
NUMBERS = {"inference": "8000", "inference by gRPC": "8001", "metrics": "8002", "administration": "8003"}
ADDRESS = re.compile(r"\b(127\.0\.0\.1|localhost|[abc]):(800[0-3])\b")


def make_clone(folder):
    """Copies what git tracks, in its current state; nothing that was built is in it."""
    for name in TRACKED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder


def add_files_of_a_reader(folder):
    """Names that the documents use. Each package is that of examples/digits; build/release is the build."""
    digits = folder / "examples/digits"
    for name in ("model.pt2", "digits.pt2", "models/digits/1/model.pt2"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(digits / "digits.pt2", folder / name)
    shutil.copy(digits / "digits-v2.safetensors", folder)
    (folder / "image.json").write_text(json.dumps(json.loads((digits / "request.json").read_text())["args"][0]))
    (folder / "build").mkdir()
    (folder / "build/release").symlink_to(BUILD)
    clients, admins = (Authority(folder, name) for name in ("clients", "admins"))
    clients.issue("client")
    admins.issue("server")


def path_with(python):
    return f"{PROGRAM.parent}:{pathlib.Path(python).parent}:{os.environ['PATH']}"


class Reader:
    """Types what a page says. Ports are free ones in place of the page's."""

    def __init__(self, folder):
        self.folder, self.stack, self.servers = folder, contextlib.ExitStack(), {}
        self.environment = {**os.environ, "PATH": path_with(sys.executable), "PYTHONDONTWRITEBYTECODE": "1",
                            "SCONCE_HTTP": "127.0.0.1:0", "SCONCE_METRICS": "127.0.0.1:0", "SCONCE_ADMIN": "127.0.0.1:0",
                            "SCONCE_DRAIN_GRACE": "0"}

    def run(self, code, fails=False, timeout=120, **environment):
        """Returns the output of bash. A host that the code names and that has no server gets one of examples/digits."""
        for host in {match[1].replace("localhost", "127.0.0.1") for match in ADDRESS.finditer(code)} - self.servers.keys():
            self.serve("sconce serve examples/digits/digits.pt2", host)
        ours = ADDRESS.sub(lambda match: self.servers[match[1].replace("localhost", "127.0.0.1")][match[2]], code)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", ours], cwd=self.folder, capture_output=True, text=True,
                              env={**self.environment, **environment}, timeout=timeout, stdin=subprocess.DEVNULL)
        assert (done.returncode != 0) == fails, f"{ours}\nexit status {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def serve(self, line, host="127.0.0.1"):
        """Starts a server, in place of an earlier one, and waits until it is ready. It runs until the page ends."""
        self.servers[host] = self.stack.enter_context(self.running(line))

    @contextlib.contextmanager
    def running(self, line):
        """Yields the addresses of a server by the documented ports. SIGTERM must end it cleanly."""
        line = re.sub(r"(\d+\.0\.0\.\d):\d+", r"\1:0", line)
        process = subprocess.Popen(["bash", "-c", f"exec {line}"], cwd=self.folder, stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, env=self.environment, start_new_session=True)
        try:
            text, end = "", time.time() + 60
            while " info ready\n" not in text:
                assert time.time() < end, f"{line}: not ready: {text}"
                if select.select([process.stderr], [], [], 0.1)[0]:
                    piece = os.read(process.stderr.fileno(), 65536).decode()
                    assert piece, f"{line}: ended: {text}"
                    text += piece
            found = re.findall(r" info ([\w ]+) on \S+?(127\.0\.0\.1:\d+)$", text, re.MULTILINE)
            yield {NUMBERS[name]: address for name, address in found}
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            assert process.wait(30) == 0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.stderr.close()
            process.wait()
