"""Progress of long commands: a line on standard error where that is a terminal, and nothing elsewhere."""
import os
import pty
import re
import select
import subprocess

import pytest
from admin_server import GOOD, LARGE, AdminServer
from serving import PACKAGES, PROGRAM, ROOT, until
from weights_files import repeated, safetensors

DIGITS = ROOT / "examples/digits/digits.pt2"
LINE = re.compile(r"(check|push) \[[= ]+\] +\d+ %  [\d.]+ \w+ of [\d.]+ \w+")


class Terminal:
    """The program with a terminal as its standard error, and what that got."""

    def __init__(self, *command, environment=None):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen([PROGRAM, *map(str, command)], stdout=subprocess.PIPE, stderr=slave, text=True,
                                        env={**os.environ, "TERM": "xterm", **(environment or {})})
        os.close(slave)
        self.got = b""

    def read(self):
        try:
            while select.select([self.master], [], [], 0.05)[0]:
                self.got += os.read(self.master, 65536)
        except OSError:
            pass  # nobody has the terminal open any more
        return self.got.decode()


def on_terminal(*command, environment=None):
    """Runs it; returns status, standard output and what the terminal got."""
    terminal = Terminal(*command, environment=environment)
    until(lambda: terminal.read() is not None and terminal.process.poll() is not None)
    out = terminal.process.stdout.read()
    terminal.process.stdout.close()
    return terminal.process.wait(), out, terminal.read()


def test_check():
    status, out, err = on_terminal("check", DIGITS)
    assert (status, out) == (0, f"{DIGITS}: ok\n")
    assert LINE.search(err) and err.endswith("\r\x1b[K"), err
    assert on_terminal("check", DIGITS, environment={"TERM": "dumb"}) == (0, f"{DIGITS}: ok\n", "")
    done = subprocess.run([PROGRAM, "check", DIGITS], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_serve(tmp_path):
    """A line below the log while large packages are loaded, and gone when they are; small ones show none."""
    large = [LARGE, *(tmp_path / f"copy{i}.so" for i in range(4))]
    for path in large[1:]:
        path.write_bytes(LARGE.read_bytes() + bytes(20 << 20))
    for packages, shown in ((large, True), ([DIGITS], False)):
        terminal = Terminal("serve", *packages, "--http", "127.0.0.1:0", "--metrics", "off", "--admin", "off", "--drain-grace", "0")
        until(lambda: " ready\r\n" in terminal.read())
        terminal.process.terminate()
        until(lambda: terminal.read() and terminal.process.poll() is not None)
        assert terminal.process.wait() == 0
        text = terminal.read()
        assert bool(re.search(r"load [\w.]+ \(\d of 5\) ", text)) == shown, text
        # What stays on the screen are whole lines of the log.
        for line in text.split("\r\n")[:-1]:
            assert re.match(r"\d{4}-\d\d-\d\dT", line.rsplit("\r\x1b[K", 1)[-1]), line


def test_check_of_a_package_that_is_not_sound(tmp_path):
    data = bytearray(DIGITS.read_bytes())
    at = data.index(b"features.0.weight") if b"features.0.weight" in data else len(data) // 2
    data[at] ^= 1
    path = tmp_path / "bad.pt2"
    path.write_bytes(data)
    status, _, err = on_terminal("check", path)
    assert status == 2
    # The line is gone before the reason is said.
    assert re.search(r"(^|\r\x1b\[K|\n)sconce: ", err), err


@pytest.fixture(scope="module")
def server():
    with AdminServer(f"large={LARGE}", PACKAGES / "several.pt2") as running:
        yield running


def test_push(server, tmp_path):
    weights = tmp_path / "large.safetensors"
    weights.write_bytes(safetensors({"scale.w": repeated(8, 2097152), "scale.b": repeated(8, 2097152)}))
    to = f"http://127.0.0.1:{server.admin_port}"
    status, out, err = on_terminal("weights", "push", weights, "--model", "large", "--to", to)
    assert status == 0 and "serves" in out, (out, err)
    assert "\x1b" not in out and "[=" not in out
    assert LINE.search(err) and err.endswith("\r\x1b[K"), err
    done = subprocess.run([PROGRAM, "weights", "push", weights, "--model", "large", "--to", to], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_push_that_is_refused(server, tmp_path):
    weights = tmp_path / "wrong.safetensors"
    weights.write_bytes(GOOD)
    status, out, err = on_terminal("weights", "push", weights, "--model", "large", "--to", f"http://127.0.0.1:{server.admin_port}")
    assert status == 1 and "no server has changed" in out
    assert not err or err.endswith("\r\x1b[K")
