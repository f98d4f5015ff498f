"""Stalled clients do not keep connections or time that others need."""
import contextlib
import resource
import socket
import struct
import time

import pytest
from serving import FAKE_MODELS, SANITIZED, Server, read_all, read_answer, status, unread, until

FAKE = FAKE_MODELS / "fake_model.so"
INPUT = {"INPUT__0": ("FP32", [1, 4], [1, 2, 3, 4])}
HEAD = b"POST /v2/models/fake/infer HTTP/1.1\r\nHost: localhost\r\n"
LIVE = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
LONG = 60  # seconds; longer than any successful step takes


@contextlib.contextmanager
def connections(server, count, port="inference", data=b""):
    opened = []
    try:
        for _ in range(count):
            opened.append(socket.create_connection(("127.0.0.1", server.ports[port]), timeout=LONG))
            opened[-1].sendall(data)
        yield opened
    finally:
        for connection in opened:
            connection.close()


# Deadlines depend on the bytes that were transferred.

PACE = ["--body-timeout", "300ms", "--write-timeout", "300ms", "--min-rate", "64K"]


@pytest.mark.parametrize("announced", [b"Content-Length: 268435456\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n"])
@pytest.mark.parametrize("sent", [0, 10, 200_000])
def test_a_long_body_has_no_more_time_than_what_came_of_it_earns(announced, sent):
    """Otherwise a client that announces 256 MB would have 69 minutes."""
    with Server(f"fake={FAKE}", flags=PACE) as server, server.connect(LONG) as connection:
        connection.sendall(HEAD + announced + b" " * sent)
        assert status(read_all(connection)) == 408


def test_a_body_that_trickles_is_not_waited_for():
    with Server(f"fake={FAKE}", flags=PACE) as server, server.connect(LONG) as connection:
        connection.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n")
        connection.settimeout(0.02)
        data, end = b"", time.time() + LONG
        while not data:
            assert time.time() < end
            connection.sendall(b" ")
            with contextlib.suppress(TimeoutError):
                data = connection.recv(4096)
        assert status(data) == 408


def test_an_answer_that_nobody_takes_is_given_up():
    """The time for an answer grows with the bytes that the client takes, not with its length."""
    rows = 2_000_000
    with Server(f"fake={FAKE}", flags=[*PACE, "--max-body-bytes", "64M", "--body-timeout", "30s"]) as server:
        head = (b'{"inputs":[{"name":"INPUT__0","shape":[%d,4],"datatype":"FP32","parameters":{"binary_data_size":%d}}],'
                b'"parameters":{"binary_data_output":true}}' % (rows, 16 * rows))
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(LONG)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(HEAD + b"Inference-Header-Content-Length: %d\r\nContent-Length: %d\r\n\r\n" %
                               (len(head), len(head) + 16 * rows) + head + bytes(16 * rows))
            assert connection.recv(10) == b"HTTP/1.1 2"
            # The probe of this loop is the only other connection.
            until(lambda: server.metrics()["sconce_http_connections"] == 1, LONG)


# Places.

PATIENT = ["--header-timeout", "300s", "--body-timeout", "300s"]

def test_stalled_sockets_do_not_starve_probes():
    with Server(f"fake={FAKE}", flags=[*PATIENT, "--max-connections", "50"]) as server, connections(server, 50, data=HEAD):
        for port in ("metrics", "administration"):
            assert server.get("/v2/health/live", port=server.ports[port], timeout=LONG).status == 200
            assert server.get("/v2/health/ready", port=server.ports[port], timeout=LONG).status == 200


def test_the_other_listeners_have_an_allowance_each():
    with Server(f"fake={FAKE}", flags=[*PATIENT, "--max-side-connections", "5"]) as server, \
            connections(server, 5, "metrics", HEAD), connections(server, 5, "administration", HEAD):
        assert server.infer("fake", INPUT).status == 200
        for port in ("metrics", "administration"):  # a stalled connection is closed to make room
            assert server.get("/v2/health/live", port=server.ports[port], timeout=LONG).status == 200


def test_the_idlest_connection_makes_room():
    with Server(f"fake={FAKE}", flags=[*PATIENT, "--max-connections", "3"]) as server:
        with connections(server, 3) as (first, second, third):
            third.sendall(HEAD)
            for connection in (second, first):  # so the second connection has been idle longer than the first
                connection.sendall(LIVE)
                assert read_answer(connection)[0] == 200
            with server.connect(LONG) as fourth:
                fourth.sendall(LIVE)
                assert read_answer(fourth)[0] == 200
                assert read_all(second) == b""
                first.sendall(LIVE)
                assert read_answer(first)[0] == 200
                third.sendall(b"Content-Length: 2\r\n\r\n{}")
                assert read_answer(third)[0] == 400


def test_a_stalled_request_makes_room_where_nobody_is_idle():
    with Server(f"fake={FAKE}", flags=[*PATIENT, "--max-connections", "4"]) as server:
        stalls = [HEAD, HEAD + b"Content-Length: 100\r\n\r\n{", HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"]
        with contextlib.ExitStack() as held:
            for data in [*stalls, stalls[0]]:
                held.enter_context(connections(server, 1, data=data))
            for _ in range(4):
                with server.connect(LONG) as connection:
                    connection.sendall(LIVE)
                    assert read_answer(connection)[0] == 200


def test_a_running_request_makes_room_for_nobody():
    from serving import HeldServer
    text = b'{"inputs":[{"name":"INPUT__0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}]}'
    with HeldServer(f"fake={FAKE}", flags=["--max-connections", "2"]) as server:
        server.hold()
        with connections(server, 2, data=HEAD + b"Content-Length: %d\r\n\r\n" % len(text) + text) as running:
            until(lambda: server.metrics()["sconce_http_inflight_body_bytes"] == 2 * len(text))
            with server.connect(LONG) as waiting:
                waiting.sendall(LIVE)
                for _ in range(20):  # by the threads that would close it wrongly
                    assert server.get("/v2/health/live", port=server.ports["metrics"]).status == 200
                assert unread(waiting) == len(LIVE)
                server.release()
                for connection in running:
                    assert read_answer(connection)[0] == 200
                assert read_answer(waiting)[0] == 200


# Errors of the system do not end the process.

def answers_again(server):
    def one():
        with contextlib.suppress(OSError):
            return server.infer("fake", INPUT).status == 200
    until(one, LONG)


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's shadow memory counts as address space")
@pytest.mark.parametrize("port", ["inference", "metrics", "administration"])
def test_running_out_of_memory_while_connections_come(port):
    """Limits memory to what is mapped now, then to a little more each time, so that every allocation fails once."""
    with Server(f"fake={FAKE}", flags=["--max-side-connections", "10000"]) as server:
        pid = server.process.pid
        with open(f"/proc/{pid}/statm") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
        for more in [0, 1 << 16, 1 << 18, 1 << 20, 1 << 22]:
            resource.prlimit(pid, resource.RLIMIT_AS, (mapped + more, resource.RLIM_INFINITY))
            with contextlib.ExitStack() as held:
                for _ in range(400):
                    connection = held.enter_context(
                        socket.create_connection(("127.0.0.1", server.ports[port]), timeout=LONG))
                    with contextlib.suppress(OSError):
                        connection.sendall(LIVE + HEAD + b"Content-Length: 1000000\r\n\r\n" + b" " * 100_000)
                assert server.process.poll() is None, more
                resource.prlimit(pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            answers_again(server)
            assert server.get("/v2/health/live", port=server.ports[port]).status == 200
        assert server.stop() == 0


@pytest.mark.skipif(SANITIZED, reason="UBSan opens a pipe to look at an object's type")
def test_running_out_of_descriptors_while_connections_come():
    with Server(f"fake={FAKE}") as server:
        pid = server.process.pid
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (60, resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]))
        with connections(server, 100, data=LIVE):
            until(lambda: any("connections wait to be accepted" in line for line in server.log))
            answers_again(server)  # idle connections are closed to make room
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (1024, 1024))
        answers_again(server)
        assert server.stop() == 0


def test_resets_while_connections_come():
    with Server(f"fake={FAKE}") as server:
        for _ in range(500):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=LONG)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        answers_again(server)
        until(lambda: server.metrics()["sconce_http_connections"] == 1)


def test_an_old_connection_ends_after_its_answer():
    request = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with Server(f"fake={FAKE}", flags=["--http-max-connection-age", "1us"]) as server:
        data = server.raw(request + request)
        assert data.count(b"HTTP/1.1 200 ") == 1 and b"Connection: close\r\n" in data
    with Server(f"fake={FAKE}", flags=["--http-max-connection-age", "60m"]) as server, server.connect() as connection:
        for _ in range(3):
            connection.sendall(request)
            code, head, _, _ = read_answer(connection)
            assert code == 200 and b"Connection: close" not in head


LIMITED = ["bash", "-c", 'ulimit -n 256; exec "$0" "$@"']


@pytest.mark.skipif(SANITIZED, reason="UBSan opens a pipe to look at an object's type")
def test_clients_of_the_public_listener_leave_descriptors_to_others():
    with Server(f"fake={FAKE}", prefix=LIMITED) as server:
        assert any("max_connections is 160 instead of 10000" in line for line in server.log)
        held = []
        for _ in range(300):
            connection = server.connect()
            connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nX-Drip: ")
            held.append(connection)
        # Probes, scrapes, and loads of the others have room.
        assert server.get("/v2/health/ready", port=server.ports["metrics"]).status == 200
        assert server.get("/metrics", port=server.ports["metrics"]).status == 200
        assert server.post("/v2/repository/models/fake/load", "{}", port=server.admin_port).status == 200
        for connection in held:
            connection.close()
