"""Memory of requests: one budget for all, no more for each than its route can use, nothing kept."""
import contextlib
import gzip
import json
import socket
import struct

import pytest
import serving
from serving import FAKE_MODELS, ROOT, SANITIZED, Server, read_all, read_answer, status, until

FAKE = f"fake={FAKE_MODELS / 'fake_model.so'}"
DIGITS = ROOT / "examples/digits/digits.pt2"
USED, LIMIT = "sconce_request_memory_bytes", "sconce_request_memory_limit_bytes"
LONG = 60


def head(path, *fields):
    return b"\r\n".join([b"POST " + path + b" HTTP/1.1", b"Host: localhost", *fields, b"", b""])


def length(bytes_):
    return b"Content-Length: %d" % bytes_


def binary(rows):
    """A request to `fake` whose body has 16 bytes for each row."""
    return serving.binary(struct.pack("<4f", 1, 2, 3, 4) * rows,
                          outputs=[{"name": "OUTPUT__0", "parameters": {"binary_data": True}}])


INFER = b"/v2/models/fake/infer"


@pytest.fixture(scope="module")
def digits():
    with Server(DIGITS) as server:
        yield server


@pytest.mark.parametrize("path", [b"/v2/models/digits/infer", b"/v1/models/digits:call", b"/v1/models/digits:predict",
                                  b"/v2/models/digits/generate"])
def test_bodies_that_no_input_can_need_are_refused_unread(digits, path):
    data = digits.raw(head(path, length(200 << 20)), LONG)
    assert status(data) == 413 and b"more than the model's inputs can need" in data
    with digits.connect(LONG) as connection:
        connection.sendall(head(path, b"Transfer-Encoding: chunked") + b"%x\r\n" % (2 << 20) + b" " * (2 << 20))
        assert status(read_all(connection)) == 413
    bomb = gzip.compress(b" " * (32 << 20))
    answer = digits.post(path.decode(), bomb, {"Content-Encoding": "gzip"})
    assert answer.status == 413 and "inputs can need" in answer.json["error"]


def test_what_the_inputs_can_need_is_taken(digits):
    request = json.loads((ROOT / "examples/digits/request.json").read_text())
    for text in (json.dumps(request), json.dumps(request, indent=8)):
        for headers, body in (({}, text.encode()), ({"Content-Encoding": "gzip"}, gzip.compress(text.encode()))):
            assert digits.post("/v1/models/digits:call", body, headers).json["class"] == [9]


def test_a_model_that_is_not_there_says_so_before_its_request_is_read(digits):
    assert status(digits.raw(head(b"/v2/models/none/infer", length(100 << 20)), LONG)) == 404


SMALL = [("inference", "GET", "/v2/health/live"), ("inference", "POST", "/v2/repository/index"), ("metrics", "GET", "/metrics"),
         ("administration", "GET", "/v2/admin/operations"), ("administration", "POST", "/v2/repository/models/none/load")]


@pytest.mark.parametrize("listener, method, path", SMALL)
def test_other_routes_take_little_and_no_coding(digits, listener, method, path):
    def ask(body, **headers):
        return digits.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()},
                              port=digits.ports[listener])

    coded = ask(gzip.compress(b"{}"), Content_Encoding="gzip")
    assert coded.status == 415 and "Content-Encoding" in coded.json["error"]
    bomb = ask(gzip.compress(b" " * (64 << 20)), Content_Encoding="gzip")
    assert bomb.status == 415
    assert ask(b" " * 65537).status == 413
    assert ask(b" " * 65536).status in (200, 400, 404)
    assert ask(b"").status in (200, 400, 404)


def test_the_default_is_a_share_of_the_memory(digits):
    with open("/proc/meminfo") as file:
        total = int(next(line for line in file if line.startswith("MemTotal:")).split()[1]) * 1024
    assert 0 < digits.metrics()[LIMIT] <= total / 4


@pytest.fixture()
def small():
    """Room for 4 MB."""
    with Server(FAKE, flags=["--request-memory", "4M", "--max-body-bytes", "64M"]) as server:
        yield server


def test_what_has_no_room_is_told_to_come_again(small):
    body, headers = binary(120_000)
    with small.connect(LONG) as connection:
        whole = 3_500_000
        connection.sendall(head(INFER, length(whole)) + b" " * (whole - 1000))
        until(lambda: small.metrics()[USED] > 3_000_000)
        answer = small.post(INFER.decode(), body, headers)
        assert answer.status == 503 and answer.headers["Retry-After"] == "1"
        assert "request_memory" in answer.json["error"]
        assert small.infer("fake", {"INPUT__0": ("FP32", [1, 4], [0] * 4)}).status == 200
        # The first request still has its memory and goes on.
        connection.sendall(b" " * 1000)
        assert read_answer(connection)[0] == 400
        until(lambda: small.metrics()[USED] < 1_000_000)
        assert small.post(INFER.decode(), body, headers).status == 200
    answer = small.post(INFER.decode(), b" " * 4_300_000)
    assert answer.status == 413 and "request_memory" in answer.json["error"]


def test_small_requests_have_room_of_their_own(small):
    with small.connect(LONG) as connection:
        whole = 4_150_000
        connection.sendall(head(INFER, length(whole)) + b" " * (whole - 1000))
        until(lambda: small.metrics()[USED] > 4_100_000)
        for _ in range(10):
            for listener in small.ports.values():
                assert small.get("/v2/health/ready", port=listener).status == 200
            assert small.get("/metrics", port=small.ports["metrics"]).status == 200
            assert small.post("/v2/repository/index", b"", port=small.ports["administration"]).status == 200
            assert small.infer("fake", {"INPUT__0": ("FP32", [1, 4], [0] * 4)}).status == 200


def test_what_a_body_decompresses_to_counts(small):
    bomb = gzip.compress(b" " * (8 << 20))
    assert small.post(INFER.decode(), bomb, {"Content-Encoding": "gzip"}).status in (413, 503)
    until(lambda: small.metrics()[USED] < 500_000)


def test_chunks_count(small):
    with small.connect(LONG) as connection:
        connection.sendall(head(INFER, b"Transfer-Encoding: chunked"))
        with contextlib.suppress(OSError):
            for _ in range(70):
                connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
            connection.sendall(b"0\r\n\r\n")
        assert status(read_all(connection)) in (413, 503)
    until(lambda: small.metrics()[USED] < 500_000)


def test_what_was_announced_takes_no_room(small):
    with contextlib.ExitStack() as held:
        for _ in range(20):
            held.enter_context(small.connect(LONG)).sendall(head(INFER, length(3_000_000)) + b"{")
        until(lambda: small.metrics()["sconce_http_connections"] == 21)
        assert small.metrics()[USED] < 2_000_000
        body, headers = binary(30_000)
        assert small.post(INFER.decode(), body, headers).status == 200


def test_a_second_request_that_stalls_does_not_keep_the_bytes_of_the_first(small):
    with small.connect(LONG) as connection:
        first = head(INFER, length(2_000_000)) + b" " * 2_000_000
        connection.sendall(first + head(INFER, length(1000)) + b"{")
        assert read_answer(connection)[0] == 400
        until(lambda: small.metrics()[USED] < 600_000)


def test_idle_connections_keep_nothing_that_others_need(small):
    body, headers = binary(14_000)  # 224 KB, in a block that the server keeps for the next request if the budget allows
    request = head(INFER, length(len(body)), b"Inference-Header-Content-Length: " +
                   headers["Inference-Header-Content-Length"].encode()) + body
    with contextlib.ExitStack() as held:
        def answered():
            connection = held.enter_context(small.connect(LONG))
            with contextlib.suppress(OSError):
                connection.sendall(request)
            code, _, _, _ = read_answer(connection)
            assert code in (200, 503)
            return code == 200

        for _ in range(60):
            until(answered, LONG)


# The memory of the process, as the kernel counts it.

def test_bombs_and_stalls_behind_them_keep_no_memory():
    """A stalled request behind a compressed one must not keep the memory of the inflated body."""
    bomb = gzip.compress(b" " * (60 << 20))
    request = head(INFER, length(len(bomb)), b"Content-Encoding: gzip") + bomb + head(INFER, length(1000)) + b"{"
    with Server(FAKE) as server, contextlib.ExitStack() as held:
        before = server.memory_kb()
        for _ in range(8):
            connection = held.enter_context(server.connect(LONG))
            connection.sendall(request)
            assert read_answer(connection)[0] == 400
        until(lambda: server.grown_kb(before) < 24 * 1024, why=lambda: f"{server.grown_kb(before)} kB are kept")
        assert server.metrics()["sconce_http_connections"] == 9  # none was closed


@pytest.mark.skipif(SANITIZED, reason="shadow memory counts")
def test_uploads_take_no_more_than_the_budget():
    """Uploads larger than the budget do not make the process larger than the budget allows."""
    with Server(FAKE, flags=["--request-memory", "64M"]) as server, contextlib.ExitStack() as held:
        before, piece = server.memory_kb(), b" " * (1 << 20)
        connections = [held.enter_context(server.connect(LONG)) for _ in range(9)]
        for connection in connections:
            connection.sendall(head(INFER, length(40 << 20)))
        refused = set()
        for _ in range(39):
            for connection in connections:
                try:
                    connection.sendall(piece)
                except OSError:
                    refused.add(connection)
        peak = int(next(line for line in open(f"/proc/{server.process.pid}/status") if line.startswith("VmHWM")).split()[1])
        assert peak - before < (64 + 32) * 1024
        assert len(refused) >= 7
        assert server.get("/v2/health/ready").status == 200


def test_answers_that_nobody_takes_count():
    body, headers = binary(11_000_000 // 16)
    large = head(INFER, length(len(body)), b"Inference-Header-Content-Length: " + headers["Inference-Header-Content-Length"].encode())
    with Server(FAKE, flags=["--request-memory", "64M"]) as server:
        before = server.memory_kb()
        with contextlib.ExitStack() as held:
            statuses = []
            for _ in range(8):
                connection = held.enter_context(socket.socket())
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.settimeout(LONG)
                connection.connect(("127.0.0.1", server.port))
                with contextlib.suppress(OSError):
                    connection.sendall(large + body)
                statuses.append(status(connection.recv(15)))
            # Each request that is answered holds its body and its answer: three fit.
            assert statuses[:2] == [200, 200] and set(statuses) == {200, 503} and statuses.count(200) <= 3
            assert server.metrics()[USED] >= 4 * 11_000_000 - 100_000
            assert server.grown_kb(before) < 2 * 64 * 1024
            assert server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [0] * 4)}).status == 200
        until(lambda: server.metrics()[USED] < 1_000_000)
        answer = server.post(INFER.decode(), body, headers)
        assert answer.status == 200 and len(answer.body) > 11_000_000
