"""A fresh clone of the repository, and a shell to run the documents' commands in."""
import contextlib
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import time

from documents import ROOT

PROGRAM = pathlib.Path(os.environ.get("SCONCE_PROGRAM", ROOT / "build/release/server/sconce")).resolve()


class Clone:
    """Copies what git tracks, in its current state, to a folder; nothing that was built is in it."""

    def __init__(self, folder):
        self.folder = folder
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():  # may be deleted but not committed
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        self.digits = folder / "examples/digits"
        self.environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1",
                            "SCONCE_HTTP": "127.0.0.1:0", "SCONCE_METRICS": "127.0.0.1:0", "SCONCE_ADMIN": "127.0.0.1:0",
                            "SCONCE_DRAIN_GRACE": "0"}

    def run(self, line, status=0, cwd=None, timeout=60, **environment):
        """Returns standard output, and standard error if the command is to fail."""
        done = subprocess.run(["bash", "-c", line], cwd=cwd or self.folder, env={**self.environment, **environment},
                              capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        assert done.returncode == status, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + (done.stderr if status else "")

    @contextlib.contextmanager
    def served(self, line, cwd=None, **environment):
        """Runs a line that starts a server until it is ready; yields its ports by name. SIGTERM must end it cleanly."""
        process = subprocess.Popen(["bash", "-c", f"exec {line}"], cwd=cwd or self.folder, stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, env={**self.environment, **environment},
                                   start_new_session=True)
        try:
            text, end = "", time.time() + 60
            while " info ready\n" not in text:
                assert time.time() < end, f"not ready: {text}"
                if select.select([process.stderr], [], [], 0.1)[0]:
                    piece = os.read(process.stderr.fileno(), 65536).decode()
                    assert piece, f"ended: {text}"
                    text += piece
            ports = dict(re.findall(r"(inference|metrics|administration) on https?://\S+:(\d+)", text))
            yield ports
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            assert process.wait(30) == 0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.stderr.close()
            process.wait()
