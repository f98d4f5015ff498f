"""What is served, settings, start and shutdown."""
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import threading
import time
import zipfile

import pytest
from serving import (FAKE_MODELS, PACKAGES, PROGRAM, ROOT, SANITIZED, HeldServer, Server, numbers, raw_post, read_all,
                     read_answer, run_serve, threads, until)

def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


FAKE = FAKE_MODELS / "fake_model.so"
ZERO = {"INPUT__0": ("FP32", [1, 4], [0, 0, 0, 0])}
ROW = json.dumps(numbers([1, 2, 3, 4])).encode()


@pytest.fixture()
def repository(tmp_path):
    """a.so's copies as NAME.pt2 and NAME/VERSION/model.pt2, and what is to be passed over."""
    shutil.copy(PACKAGES / "several.pt2", tmp_path / "several.pt2")
    for version in ("1", "2", "10"):
        (tmp_path / "versioned" / version).mkdir(parents=True)
        shutil.copy(PACKAGES / "several.pt2", tmp_path / "versioned" / version / "model.pt2")
    (tmp_path / "versioned" / "011").mkdir()
    (tmp_path / "versioned" / "latest").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "bad name").mkdir()
    (tmp_path / "bad name.pt2").write_bytes(b"x")
    (tmp_path / "notes.txt").write_text("x")
    return tmp_path


def test_repository_serves_the_highest_version(repository):
    with Server(repository) as server:
        index = {(m["name"], m["version"]) for m in server.post("/v2/repository/index", b"").json}
        models = ("calls", "channels_last", "checked", "dtypes")
        assert index == {(f"several.{m}", "1") for m in models} | {(f"versioned.{m}", "10") for m in models}
        assert server.get("/v2/models/versioned.calls").json["versions"] == ["10"]
        assert server.get("/v2/models/versioned.calls/versions/2").status == 404
        assert server.stop() == 0
        log = "".join(server.log)
        assert "bad name" in log and "empty" in log and "hidden" not in log


def test_repository_serves_all_versions(repository):
    with Server(repository, flags=["--versions", "all"]) as server:
        assert server.get("/v2/models/versioned.calls").json["versions"] == ["1", "2", "10"]
        assert server.get("/v2/models/versioned.calls/versions/2").json["versions"] == ["2"]
        call = {"args": [[1, 2, 3], [0, 1]]}
        assert server.post("/v1/models/versioned.checked/versions/2:call", call).json == [1, 2]
        answer = server.infer("versioned.checked", {"ARGS[0]": ("FP32", [3], [1, 2, 3]), "ARGS[1]": ("INT64", [2], [0, 1])})
        assert answer.json["model_version"] == "10"


def test_names():
    with Server(f"x.y={FAKE}", flags=["--set", "x.y.replicas=2", "--set", "*.queue=7"]) as server:
        assert server.infer("x.y", ZERO).status == 200
        assert server.get("/v2/models/x.y/config").json["instance_group"][0]["count"] == 2


@pytest.mark.parametrize("arguments, text", [
    ([], "nothing to serve"),
    (["/nonexistent.pt2"], "no such package or repository: /nonexistent.pt2"),
    (["m=/nonexistent.pt2"], "no such package: /nonexistent.pt2"),
    ([f"a={FAKE}", f"a={FAKE}"], "two packages for model 'a' version 1"),
    ([f"a={FAKE}", "--set", "b.replicas=2"], "setting replicas for a model that is not served: 'b'"),
    ([f"a={FAKE}", "--set", "a.colour=red"], "unknown setting of a model: colour"),
    ([f"a={FAKE}", "--set", "replicas=2"], "expected MODEL.KEY=VALUE"),
    ([f"a={FAKE}", "--max-body-bytes", "lots"], "setting max_body_bytes: expected a size"),
    ([f"a={FAKE}", "--config", "/nonexistent.conf"], "configuration file cannot be read: /nonexistent.conf"),
    ([f"a={FAKE}", "--set", "a.devices=tpu"], "tpu"),
    ([f"a={FAKE}", "--set", "a.replicas=0"], "must be 1 or more"),
    ([__file__], "test_serve.py"),
])
def test_wrong_arguments_end_the_program_with_a_reason(arguments, text):
    status, output = run_serve(*arguments)
    assert status != 0
    assert text in output


def zip_without_package(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello", "world")


@pytest.mark.parametrize("make, text", [
    (lambda path: path.touch(), "file is empty: {}"),
    (zip_without_package, "archive is not an AOTInductor package: it has no member below data/aotinductor/: {}"),
    (lambda path: path.mkdir(), "directory is empty, not an AOTInductor package: {}"),
    (lambda path: shutil.copytree(ROOT / "conf", path),
     "directory is not an AOTInductor package: it has neither archive_format nor data/aotinductor/: {}"),
], ids=["empty", "zip", "empty folder", "folder"])
def test_a_path_without_a_package_ends_the_program_with_the_path_and_the_reason(tmp_path, make, text):
    path = tmp_path / "model.pt2"
    make(path)
    status, output = run_serve(f"m={path}")
    assert status != 0 and text.format(path) in output


@pytest.mark.parametrize("arguments", [["--set", "a.colour=red"], ["--set", "replicas=2"], ["--set", "a.replicas=few"],
                                       ["--max-body-bytes", "lots"]])
def test_a_setting_of_the_command_line_that_cannot_be_is_wrong_usage(arguments):
    assert run_serve(f"a={FAKE}", *arguments)[0] == 2
    # From the environment it is no usage of the command.
    if arguments[0] == "--set" and "." in arguments[1]:
        assert run_serve(f"a={FAKE}", environment={"SCONCE_SET": arguments[1]})[0] == 1


def test_a_stem_that_is_no_name(tmp_path):
    shutil.copy(FAKE, tmp_path / "my model.so")
    status, output = run_serve(tmp_path / "my model.so")
    assert status != 0 and "give another with NAME=" in output
    with Server(f"mine={tmp_path / 'my model.so'}") as server:
        assert server.get("/v2/models/mine").status == 200


def test_settings_from_file_and_environment(tmp_path):
    conf = tmp_path / "sconce.conf"
    conf.write_text(f"serve = a={FAKE}\nmax_body_bytes = 1K\na.queue = 5\n")
    with Server(flags=["--config", str(conf)], environment={"SCONCE_MAX_BODY_BYTES": "2K"}) as server:
        assert server.get("/v2/models/a").status == 200
        assert server.post("/v2/models/a/infer", b"x" * 2048).status == 400
        assert server.post("/v2/models/a/infer", b"x" * 2049).status == 413


def test_conf_file_is_what_the_program_prints():
    printed = subprocess.run([PROGRAM, "serve", "--print-config"], capture_output=True, check=True).stdout
    assert printed == (ROOT / "conf/sconce.conf").read_bytes()
    with Server(f"a={FAKE}", flags=["--config", str(ROOT / "conf/sconce.conf")]) as server:
        assert server.get("/v2/models/a").status == 200


def test_taken_port_is_named():
    with Server(f"a={FAKE}") as server:
        status, output = run_serve(f"a={FAKE}", "--http", f"127.0.0.1:{server.port}")
        assert status != 0 and f"cannot listen on 127.0.0.1:{server.port}" in output


def test_a_model_that_cannot_be_loaded(tmp_path):
    flags = ["--set", "bad.op_libraries=/nonexistent.so", "--set", "bad.replicas=0"]
    status, output = run_serve(f"good={FAKE}", f"bad={FAKE}", *flags)
    assert status != 0 and "bad" in output
    with Server(f"good={FAKE}", f"bad={FAKE}", flags=[*flags, "--exit-on-error", "false"], wait=False) as server:
        until(lambda: server.get("/v2/models/good/ready").status == 200)
        assert server.infer("good", ZERO).status == 200
        assert server.get("/v2/health/live").status == 200
        assert server.get("/v2/health/ready").status == 503
        assert server.get("/v2/models/bad/ready").status == 503
        for answer in (server.infer("bad", ZERO), server.get("/v2/models/bad"), server.get("/v2/models/bad/config"),
                       server.get("/v2/models/bad/stats")):
            assert answer.status == 503
            assert answer.json["error"].startswith("'bad' version 1 is not at ready state: ")
        index = {m["name"]: m for m in server.post("/v2/repository/index", b"").json}
        assert index["bad"]["state"] == "UNAVAILABLE" and index["bad"]["reason"]
        assert [m["name"] for m in server.post("/v2/repository/index", {"ready": True}).json] == ["good"]


def test_drain_readiness_first_then_no_answer_is_lost():
    """Clients that follow the protocol get every request answered, before and during the drain."""
    with Server(f"a={FAKE}", flags=["--drain-grace", "4s"]) as server:
        stop = threading.Event()
        problems, answered, closed_after = [], [0], [0]

        def client():
            connection = None
            while not stop.is_set():
                fresh = connection is None
                try:
                    connection = connection or server.connect()
                except (ConnectionRefusedError, ConnectionResetError):
                    return  # the listener is closed, or closed while the kernel made the connection
                try:
                    connection.sendall(raw_post(b"/v2/models/a/infer", ROW))
                    code, head, _, _ = read_answer(connection)
                except (OSError, AssertionError) as problem:
                    try:
                        server.connect().close()
                    except (ConnectionRefusedError, ConnectionResetError):
                        if fresh:
                            return  # the connection was not accepted before the listener closed, so the kernel reset it
                    problems.append(repr(problem))
                    return
                answered[0] += 1
                if code != 200:
                    problems.append(code)
                if b"Connection: close" in head:
                    closed_after[0] += 1
                    connection.close()
                    connection = None

        with threads(*[client] * 8, stop=stop):
            until(lambda: answered[0] > 50)
            idle = server.connect()
            begun = server.connect()
            begun.sendall(b"GET /v2/health/live HTT")
            server.process.send_signal(signal.SIGTERM)
            until(lambda: any("draining" in line for line in server.log))
            ready = until(lambda: (answer := server.get("/v2/health/ready")).status == 503 and answer)
            assert ready.headers["Connection"] == "close"
            assert server.get("/v2/health/live").status == 200
            assert server.infer("a", ZERO).status == 200
            begun.sendall(b"P/1.1\r\nHost: localhost\r\n\r\n")
            assert read_answer(begun)[0] == 200
            assert read_all(idle) == b""  # closed at the end of the grace
        assert server.process.wait(20) == 0
        assert not problems and closed_after[0] >= 8


def test_drain_waits_for_requests_under_way():
    with HeldServer(f"a={FAKE}") as server:
        server.hold()
        with server.connect() as connection:
            connection.sendall(raw_post(b"/v2/models/a/infer", ROW))
            replicas = "/v2/admin/models/a/replicas"
            until(lambda: server.get(replicas, port=server.admin_port).json["replicas"][0]["load"] == 1)
            server.process.send_signal(signal.SIGTERM)
            until(lambda: any("draining" in line for line in server.log))
            server.release()
            code, head, _, _ = read_answer(connection)
        assert code == 200 and b"Connection: close" in head
        assert server.process.wait(60) == 0


def test_second_signal_ends_at_once():
    with Server(f"a={FAKE}", flags=["--drain-grace", "300s"]) as server:
        server.process.send_signal(signal.SIGTERM)
        until(lambda: server.get("/v2/health/ready").status == 503)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 128 + signal.SIGTERM


def test_clients_that_stall_do_not_spoil_the_end():
    """When drain_timeout is over, stalled bodies, headers and answers are dropped; the rest ends in order."""
    head = b"POST /v2/models/a/infer HTTP/1.1\r\nHost: localhost\r\n"
    with Server(f"a={FAKE}", flags=["--drain-timeout", "300ms"]) as server, server.connect() as body, \
            server.connect() as chunks, server.connect() as header, server.connect() as silent:
        body.sendall(head + b"Content-Length: 10\r\nExpect: 100-continue\r\n\r\n")
        chunks.sendall(head + b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")
        for connection in (body, chunks):
            assert connection.recv(100).startswith(b"HTTP/1.1 100 ")  # the server has begun the request
        header.sendall(head)
        server.process.send_signal(signal.SIGINT)
        for connection in (body, chunks, header):
            answer = read_all(connection)
            assert answer.startswith(b"HTTP/1.1 503 ") and b"shutting down" in answer
        assert read_all(silent) == b""
        assert server.process.wait(60) == 0
        server.reader.join()
        assert "ended" in server.log[-1]


def test_a_run_that_never_ends_does_not_keep_the_process():
    with HeldServer(f"a={FAKE}", flags=["--drain-timeout", "300ms"]) as server, server.connect() as connection:
        server.hold()
        text = b'{"inputs":[{"name":"INPUT__0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}]}'
        connection.sendall(raw_post(b"/v2/models/a/infer", text))
        until(lambda: server.metrics()['sconce_http_inflight_body_bytes'] > 0)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 1
        server.reader.join()
        assert "requests still run" in server.log[-1]


def sockets(pid):
    found = 0
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed just now
            found += os.readlink(link).startswith("socket:")
    return found


@pytest.mark.skipif(SANITIZED, reason="UBSan opens a pipe to look at an object's type")
def test_running_out_of_descriptors_passes():
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    command = [str(PROGRAM), "serve", "--http", "127.0.0.1:0", "--metrics", "off", "--admin", "off", "--drain-grace", "0",
               f"a={FAKE}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=limit)
    try:
        port = None
        while port is None:
            line = process.stderr.readline()
            assert line
            found = re.search(r"inference on http://\S+:(\d+)", line)
            port = int(found.group(1)) if found else None
        server = Server.__new__(Server)
        server.process, server.port, server.log = process, port, []
        server.wait_ready()
        connections = [server.connect() for _ in range(100)]
        until(lambda: sockets(process.pid) == 24 + 1)  # max_connections, which it lowers itself, and the listener
        cpu = cpu_seconds(process.pid)
        time.sleep(0.5)  # what is measured is the use of the processor in a span of time
        assert cpu_seconds(process.pid) - cpu < 0.2  # the server sleeps instead of spinning
        for connection in connections:
            connection.close()
        assert server.get("/v2/health/live").status == 200
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_connection_limit_is_waited_out():
    with Server(f"a={FAKE}", flags=["--max-connections", "4"]) as server:
        held = [server.connect() for _ in range(4)]
        for connection in held:
            connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_answer(connection)[0] == 200
        waiting = [server.connect() for _ in range(3)]
        for connection in waiting:
            connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        server.metrics()  # answered after these came
        for connection in held:
            connection.close()
        for connection in waiting:
            assert read_answer(connection)[0] == 200


def test_access_log_escapes_what_clients_send():
    with Server(f"a={FAKE}", flags=["--access-log", "true"]) as server:
        with server.connect() as connection:
            connection.sendall(b"GET /v2/\x1b[31m HTTP/1.1\r\nHost: localhost\r\n\r\n")
            read_all(connection)
        assert server.get("/v2/x%0ay").status == 400
        assert server.get("/v2").status == 200
        server.stop()
        log = "".join(server.log)
        assert "GET /v2/x%0ay status=400" in log and "GET /v2 status=200" in log
        assert "\x1b" not in log
