"""What a reader who has just cloned the repository has, and a shell to type the documents' commands into."""
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
    """What git tracks, as it is now, in a folder of its own: nothing that was built or left lying about is there."""

    def __init__(self, folder):
        self.folder = folder
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():  # it may be deleted and not yet committed
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        self.digits = folder / "examples/digits"
        self.environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1",
                            "SCONCE_HTTP": "127.0.0.1:0", "SCONCE_METRICS": "127.0.0.1:0", "SCONCE_ADMIN": "127.0.0.1:0",
                            "SCONCE_DRAIN_GRACE": "0"}

    def run(self, line, status=0, cwd=None, timeout=60, **environment):
        """Standard output, of standard errors too where the command is to fail."""
        done = subprocess.run(["bash", "-c", line], cwd=cwd or self.folder, env={**self.environment, **environment},
                              capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        assert done.returncode == status, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + (done.stderr if status else "")

    @contextlib.contextmanager
    def served(self, line, cwd=None, **environment):
        """A line that starts a server, until it says that it is ready; its ports by their names. SIGTERM ends it well."""
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
