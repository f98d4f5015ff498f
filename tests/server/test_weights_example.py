"""The commands of docs/weights.md, as they stand there, against a server on ports of its own."""
import os
import pty
import re
import shutil
import signal
import subprocess

import pytest
from listening import ports_of
from serving import PROGRAM, ROOT

BLOCKS = dict(re.findall(r"```sh (\w+)\n(.*?)```", (ROOT / "docs/weights.md").read_text(), re.DOTALL))


@pytest.mark.skipif(shutil.which("curl") is None, reason="the example uses curl")
def test_example():
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "SCONCE_HTTP": "127.0.0.1:0",
                   "SCONCE_METRICS": "off", "SCONCE_ADMIN": "127.0.0.1:0", "SCONCE_DRAIN_GRACE": "0"}
    ports = {}

    def shell(block, **more):
        text = BLOCKS[block]
        for default, what in (("8000", "inference"), ("8003", "administration")):
            if what in ports:
                text = text.replace("127.0.0.1:" + default, f"127.0.0.1:{ports[what]}")
        return subprocess.Popen(["sh", "-c", text], cwd=ROOT, env=environment, start_new_session=True, **more)

    with shell("serve", stderr=subprocess.PIPE, text=True) as server:
        try:
            ports.update(ports_of(server))
            assert len(ports) == 2
            terminal, end = pty.openpty()
            with shell("client", stdout=end, stderr=subprocess.DEVNULL) as client:
                os.close(end)
                lines = []

                def read_line():
                    text = b""
                    while not text.endswith(b"\n"):
                        text += os.read(terminal, 1)
                    lines.append(text.decode().strip())
                    return lines[-1]

                try:
                    first = read_line()
                    assert first.startswith('Sconce-Weight-Version: 1{"class":[9]')
                    push = shell("push", stdout=subprocess.PIPE, text=True)
                    output = push.communicate(timeout=30)[0]
                    assert push.returncode == 0 and '"result":"staged"' in output and '"weight_version":"v2"' in output
                    second = read_line()
                    assert second.startswith('Sconce-Weight-Version: 2{"class":[9]')
                    back = shell("rollback", stdout=subprocess.PIPE, text=True)
                    assert '"generation":3' in back.communicate(timeout=30)[0] and back.returncode == 0
                    third = read_line()
                    assert third.startswith("Sconce-Weight-Version: 3")
                    answer = [line.split("{", 1)[1] for line in lines]
                    assert answer[0] == answer[2] != answer[1]
                finally:
                    os.killpg(client.pid, signal.SIGKILL)
                    client.wait()
                    os.close(terminal)
        finally:
            os.killpg(server.pid, signal.SIGTERM)
    assert server.returncode in (0, -signal.SIGTERM)


def test_restart(tmp_path):
    """What was pushed is served again after the server was killed."""
    ports = {}

    def shell(block):
        text = BLOCKS[block].replace("kept-weights", str(tmp_path / "kept"))
        if ports:
            text = text.replace("127.0.0.1:8003", f"127.0.0.1:{ports['administration']}")
        environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "SCONCE_HTTP": "127.0.0.1:0",
                       "SCONCE_METRICS": "off", "SCONCE_ADMIN": "127.0.0.1:0"}
        return subprocess.Popen(["sh", "-c", text], cwd=ROOT, env=environment, start_new_session=True, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    for start in range(2):
        ports.clear()
        lines = []
        with shell("kept") as server:
            try:
                ports.update(ports_of(server, lines))
                assert len(ports) == 2
                if start == 0:
                    push = shell("keep")
                    output, problem = push.communicate(timeout=30)
                    assert push.returncode == 0 and re.search(r"active +2 .* v2\n", output), (output, problem)
                else:
                    assert any("serves the stored weights of weight version 2 ('v2')" in line for line in lines), lines
            finally:
                os.killpg(server.pid, signal.SIGKILL)
