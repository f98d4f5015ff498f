"""Signals while the program starts, loads, drains and ends (server/support/process/end_signals.h)."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading

import pytest
from serving import FAKE_MODELS, PROGRAM, Server, until

BATCHED = FAKE_MODELS / "fake_batched.pt2"
FAKE = FAKE_MODELS / "fake_model.so"
# A process that is the first of its namespace, for which the kernel ignores default actions.
AS_FIRST = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
CAN_UNSHARE = subprocess.run([*AS_FIRST, "true"], capture_output=True).returncode == 0

# By the handler alone while nothing serves yet, else after a drain.
ENDED = (0, 128 + signal.SIGTERM)


class Silent:
    """A server that takes connections and never answers."""

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections, self.asked = [], threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections.append(connection)
                connection.recv(1)
                self.asked.set()

    def __exit__(self, *_):
        self.listener.close()
        for connection in self.connections:
            connection.close()


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def repository(folder, warm_up, values="zero_data: true"):
    (folder / "m/1").mkdir(parents=True)
    shutil.copy(BATCHED, folder / "m/1/model.pt2")
    (folder / "m/config.pbtxt").write_text(
        'model_warmup { name: "w" batch_size: 1 count: %d '
        'inputs { key: "INPUT__0" value { data_type: TYPE_FP32 dims: 4 %s } } }' % (warm_up, values))
    return folder


def writer_of(pipe):
    """None while nobody reads the pipe."""
    with contextlib.suppress(OSError):
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)


@contextlib.contextmanager
def held_load(folder, *flags):
    """A server whose load cannot be stopped: it reads values from a pipe that has none."""
    pipe = repository(folder, 1, 'input_data_file: "row"') / "m/warmup/row"
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    with Server(folder, wait=False, flags=["--set", "*.trial_timeout=0", *flags]) as server:
        writer = until(lambda: writer_of(pipe))
        try:
            yield server
        finally:
            os.close(writer)


@pytest.mark.parametrize("prefix", [[], AS_FIRST], ids=["child", "first process"])
def test_a_signal_ends_the_first_look_at_a_store(tmp_path, prefix):
    if prefix and not CAN_UNSHARE:
        pytest.skip("no PID namespaces here")
    with Silent() as store:
        environment = {**os.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{store.port}", "AWS_ACCESS_KEY_ID": "a",
                       "AWS_SECRET_ACCESS_KEY": "b", "SCONCE_REMOTE_CACHE": str(tmp_path)}
        process = subprocess.Popen([*prefix, PROGRAM, "serve", "s3://models/repo", "--http", "127.0.0.1:0", "--drain-grace", "0"],
                                   stderr=subprocess.PIPE, text=True, env=environment)
        try:
            assert store.asked.wait(30)
            os.kill(children(process.pid)[0] if prefix else process.pid, signal.SIGTERM)
            assert process.wait(20) in ENDED
        finally:
            process.kill()
            process.wait()
            process.stderr.close()


@pytest.mark.skipif(not CAN_UNSHARE, reason="no PID namespaces here")
def test_a_signal_ends_any_command_that_is_the_first_process(tmp_path):
    with Silent() as store:
        process = subprocess.Popen([*AS_FIRST, PROGRAM, "pull", f"http://127.0.0.1:{store.port}/m.pt2", "--cache", tmp_path],
                                   stderr=subprocess.PIPE, text=True)
        try:
            assert store.asked.wait(30), process.stderr.read()
            os.kill(children(process.pid)[0], signal.SIGTERM)
            assert process.wait(20) == 128 + signal.SIGTERM
        finally:
            process.kill()
            process.wait()
            process.stderr.close()


def test_the_first_signal_ends_a_load_that_asks_a_silent_peer():
    with Silent() as peer, Server(f"fake={FAKE}", wait=False, flags=[
            "--set", f"fake.weights_from=http://127.0.0.1:{peer.port}", "--drain-timeout", "300s"]) as server:
        assert peer.asked.wait(30)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        server.reader.join()
        assert not any(line.rstrip().endswith("info ready") for line in server.log)
        assert any("stopped" in line or "the server is ending" in line for line in server.log), server.log


def test_the_first_signal_ends_warm_up_requests(tmp_path):
    with Server(repository(tmp_path, warm_up=10 ** 9), wait=False, flags=["--drain-timeout", "300s"]) as server:
        assert server.get("/v2/health/ready").status == 503
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        server.reader.join()
        assert "ended" in server.log[-1]
        assert not any(line.rstrip().endswith("info ready") or "is ready" in line for line in server.log)


def test_a_load_that_cannot_be_stopped_is_cut_off(tmp_path):
    with held_load(tmp_path, "--drain-timeout", "200ms") as server:
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        server.reader.join()
        assert any("a load still runs" in line for line in server.log) and "ended" in server.log[-1]


@pytest.mark.parametrize("json_lines", [False, True])
def test_a_second_signal_ends_a_load_that_cannot_be_stopped(tmp_path, json_lines):
    with held_load(tmp_path, "--drain-timeout", "300s", "--drain-grace", "300s",
                   "--log-format", "json" if json_lines else "text") as server:
        server.process.send_signal(signal.SIGINT)
        until(lambda: any("draining" in line for line in server.log))
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 128 + signal.SIGTERM
        server.reader.join()
        last = server.log[-1]
        assert "second signal: ending at once" in last
        if json_lines:
            first, last = json.loads(server.log[0]), json.loads(last)
            assert last["level"] == "warning" and len(last["time"]) == len(first["time"])
        else:
            assert last.split()[1] == "warning" and len(last.split()[0]) == len(server.log[0].split()[0])


def test_a_hangup_while_the_program_starts_is_no_end(tmp_path):
    with Silent() as store:
        environment = {**os.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{store.port}", "AWS_ACCESS_KEY_ID": "a",
                       "AWS_SECRET_ACCESS_KEY": "b", "SCONCE_REMOTE_CACHE": str(tmp_path)}
        process = subprocess.Popen([PROGRAM, "serve", "s3://models/repo", "--http", "127.0.0.1:0", "--drain-grace", "0"],
                                   stderr=subprocess.PIPE, text=True, env=environment)
        try:
            assert store.asked.wait(30)
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) in ENDED
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
