"""HTTP itself: framing, limits, hostile clients."""
import concurrent.futures
import json
import os
import re
import select
import socket
import struct
import time

import pytest
from serving import FAKE_MODELS, HeldServer, Server, binary, fake_expected, read_all, read_answer, status, unread, until

BODY = b'{"inputs":[{"name":"INPUT__0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}]}'


def post(body=BODY, extra=b"", version=b"1.1", path=b"/v2/models/fake/infer", length=True):
    head = b"POST " + path + b" HTTP/" + version + b"\r\nHost: localhost\r\n" + extra
    if length:
        head += b"Content-Length: %d\r\n" % len(body)
    return head + b"\r\n" + body


def get(path=b"/v2/health/live", extra=b"", version=b"1.1"):
    return b"GET " + path + b" HTTP/" + version + b"\r\nHost: localhost\r\n" + extra + b"\r\n"


@pytest.fixture(scope="module")
def strict():
    """Short limits."""
    with Server(f"fake={FAKE_MODELS / 'fake_model.so'}",
                flags=["--header-timeout", "300ms", "--body-timeout", "300ms", "--idle-timeout", "600ms",
                       "--write-timeout", "500ms", "--max-body-bytes", "64K", "--max-header-bytes", "4K", "--min-rate",
                       "1M"]) as running:
        yield running


def test_keep_alive_and_pipelining(server):
    with server.connect() as connection:
        for _ in range(3):
            connection.sendall(post())
            code, head, body, rest = read_answer(connection)
            assert code == 200 and rest == b"" and b"Connection:" not in head
        requests = [get(), post(), get(b"/v2/nope"), post(b"{}"), get(b"/v2"), post()] * 30
        connection.sendall(b"".join(requests))
        data, codes = b"", []
        for _ in requests:
            code, _, _, data = read_answer(connection, data)
            codes.append(code)
        assert codes == [200, 200, 404, 400, 200, 200] * 30 and data == b""


def test_requests_in_pieces(server):
    request = post() + get()
    with server.connect() as connection:
        for i in range(len(request)):
            connection.sendall(request[i:i + 1])
        code, _, body, rest = read_answer(connection)
        assert code == 200 and json.loads(body)["outputs"][0]["data"] == fake_expected([1, 2, 3, 4])
        assert read_answer(connection, rest)[0] == 200


def test_http_1_0(server):
    data = server.raw(get(version=b"1.0"))
    assert status(data) == 200 and b"Connection: close" in data
    with server.connect() as connection:
        connection.sendall(get(version=b"1.0", extra=b"Connection: keep-alive\r\n"))
        code, head, _, _ = read_answer(connection)
        assert code == 200 and b"Connection: keep-alive" in head
    assert status(server.raw(b"GET /v2/health/live HTTP/1.0\r\n\r\n")) == 200


def test_connection_close(server):
    data = server.raw(get(extra=b"Connection: close\r\n"))
    assert status(data) == 200 and b"Connection: close" in data


def test_head(server):
    with server.connect() as connection:
        connection.sendall(b"HEAD /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n" + get())
        data = b""
        while data.count(b"\r\n\r\n") < 2:
            data += connection.recv(65536)
        first, rest = data.split(b"\r\n\r\n", 1)
        assert b"200 OK" in first and int(re.search(rb"Content-Length: (\d+)", first).group(1)) > 0
        assert rest.startswith(b"HTTP/1.1 200 OK")


def test_post_without_length_is_an_empty_body(server):
    with server.connect() as connection:
        connection.sendall(post(b"", path=b"/v2/repository/index", length=False))
        assert read_answer(connection)[0] == 200
        connection.sendall(post(b"", length=False))
        assert read_answer(connection)[0] == 400


def test_expect_100_continue(server):
    with server.connect() as connection:
        connection.sendall(post(extra=b"Expect: 100-continue\r\n")[:-len(BODY)])
        assert connection.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BODY)
        assert read_answer(connection)[0] == 200
        # If the body has arrived already, the server does not send 100.
        connection.sendall(post(extra=b"Expect: 100-continue\r\n"))
        assert read_answer(connection)[0] == 200
    assert status(server.raw(post(extra=b"Expect: 200-ok\r\n"))) == 417
    big = b"POST /v2/models/fake/infer HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n"
    assert status(server.raw(big)) == 413
    unknown = b"POST /v2/nope HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n"
    assert status(server.raw(unknown)) == 404


def chunked(pieces, extra=b""):
    body = b"".join(b"%x%s\r\n%s\r\n" % (len(p), extra, p) for p in pieces) + b"0\r\n\r\n"
    return post(extra=b"Transfer-Encoding: chunked\r\n", body=b"", length=False) + body


def test_chunked_bodies(server):
    with server.connect() as connection:
        for pieces in ([BODY], [BODY[:5], BODY[5:]], [BODY[i:i + 1] for i in range(len(BODY))]):
            connection.sendall(chunked(pieces))
            assert read_answer(connection)[0] == 200
        connection.sendall(chunked([BODY], b";name=value"))
        assert read_answer(connection)[0] == 200
        request = chunked([BODY[:5], BODY[5:]])
        for i in range(len(request)):
            connection.sendall(request[i:i + 1])
        assert read_answer(connection)[0] == 200
    large = b'{"inputs":[{"name":"INPUT__0","shape":[20000,4],"datatype":"FP32","data":[' + b",".join(
        [b"1"] * 80000) + b"]}]}"
    with server.connect() as connection:
        connection.sendall(chunked([large[i:i + 7000] for i in range(0, len(large), 7000)]) + get())
        code, _, _, rest = read_answer(connection)
        assert code == 200
        assert read_answer(connection, rest)[0] == 200


def test_chunked_binary_tensors_are_aligned(server):
    body, fields = binary(struct.pack("<4f", 1, 2, 3, 4))
    (name, length), = fields.items()
    for pieces in ([body], [body[:7], body[7:]]):
        request = chunked(pieces).replace(b"Transfer-Encoding", f"{name}: {length}\r\nTransfer-Encoding".encode())
        with server.connect() as connection:
            connection.sendall(request)
            code, _, answer, _ = read_answer(connection)
            assert code == 200 and json.loads(answer)["outputs"][0]["data"] == fake_expected([1, 2, 3, 4])


SMUGGLING = {
    "length and chunks": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "chunks and length": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6\r\n",
    "two equal lengths": b"Content-Length: 5\r\nContent-Length: 5\r\n",
    "list of lengths": b"Content-Length: 5, 5\r\n",
    "signed length": b"Content-Length: +5\r\n",
    "negative length": b"Content-Length: -5\r\n",
    "length with letters": b"Content-Length: 12abc\r\n",
    "hexadecimal length": b"Content-Length: 0x5\r\n",
    "overflowing length": b"Content-Length: 18446744073709551621\r\n",
    "empty length": b"Content-Length: \r\n",
    "unknown coding": b"Transfer-Encoding: gzip\r\n",
    "coding list": b"Transfer-Encoding: gzip, chunked\r\n",
    "chunked twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "chunked with a tab": b"Transfer-Encoding: \tchunked x\r\n",
    "not quite chunked": b"Transfer-Encoding: xchunked\r\n",
    "space before the colon": b"Content-Length : 5\r\n",
    "NUL in a field": b"X: a\0b\r\n",
    "bare CR": b"X: a\rb\r\n",
    "bare LF": b"X: a\nContent-Length: 5\r\n\r\n",
    "no colon": b"Nonsense\r\n",
    "two hosts": b"Host: y\r\n",
    "bad JSON length": b"Content-Length: 5\r\nInference-Header-Content-Length: x\r\n",
    "negative JSON length": b"Content-Length: 5\r\nInference-Header-Content-Length: -1\r\n",
    "huge JSON length": b"Content-Length: 5\r\nInference-Header-Content-Length: 99999999999999999999\r\n",
    "two JSON lengths": b"Inference-Header-Content-Length: 1\r\nInference-Header-Content-Length: 1\r\n",
    "unknown content coding": b"Content-Encoding: br\r\n",
    "folded coding": b"Transfer-Encoding:\r\n chunked\r\n",
    "folded length": b"Content-Length:\r\n\t5\r\n",
    "folded token": b"Authorization: Bearer\r\n  abcdefghijklmnop\r\n",
    "folded with nothing": b"X: a\r\n \r\n",
    "nothing folded": b"X:\r\n \r\n",
    "folded beyond Beast's room": b"X: a\r\n " + b"b" * 5000 + b"\r\n",
}


@pytest.mark.parametrize("name", ["Authorization", "Origin", "Content-Type", "Content-Digest", "traceparent", "X-Request-Id",
                                  "Accept", "Host", "X-Other"])
@pytest.mark.parametrize("value", [b"aaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", b"\r\n\tcccccc", b"dd\r\n "])
def test_folded_lines_are_refused(server, name, value):
    """Answers contain nothing of the folded text, nor of memory beside it."""
    request = b"GET /v2 HTTP/1.1\r\n" + (b"" if name == "Host" else b"Host: localhost\r\n") + name.encode() + b": " + value + b"\r\n\r\n"
    for text in (request, request.replace(b"GET", b"POST").replace(b"/v2", b"/v2/models/fake/infer")):
        data = server.raw(text + get(b"/v2/models/smuggled"))
        assert status(data) == 400 and data.count(b"HTTP/1.1") == 1, data
        assert json.loads(data.split(b"\r\n\r\n", 1)[1])["error"] == "malformed request: a folded header line"
        request_id = re.search(rb"X-Request-Id: (\S+)\r\n", data)
        assert request_id and re.fullmatch(rb"[0-9a-f]{16}", request_id.group(1))


@pytest.mark.parametrize("name", SMUGGLING)
def test_what_could_be_read_in_two_ways_ends_the_connection(server, name):
    smuggled = get(b"/v2/models/smuggled")
    data = server.raw(b"POST /v2/models/fake/infer HTTP/1.1\r\nHost: localhost\r\n" + SMUGGLING[name] + b"\r\n" + smuggled)
    assert status(data) in (400, 413, 415), data
    assert data.count(b"HTTP/1.1") == 1 and b"Connection: close" in data
    assert json.loads(data.split(b"\r\n\r\n", 1)[1])["error"]


@pytest.mark.parametrize("request_bytes, codes", [
    (b"\r\n\r\n", {400}),
    (b"GET\r\n\r\n", {400}),
    (b"GET / HTTP/2.0\r\n\r\n", {400}),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400}),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100), {400}),
    (b"GET / HTTP/1.1\r\n\r\n", {400}),  # no Host
    (b"G\0T / HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    (b"GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    (b"GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    (b"GET / HTTP/1.1 \r\nHost: localhost\r\n\r\n", {400}),
    (b"\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    (b"\rGET / HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", {400}),
    (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", {400}),
    (b"GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", {400}),
    (b"GET / HTTP/1.1\r\nHost: \xe9\r\n\r\n", {400}),
])
def test_malformed_requests(server, request_bytes, codes):
    with server.connect() as connection:
        connection.sendall(request_bytes)
        connection.shutdown(socket.SHUT_WR)
        data = read_all(connection)
    assert status(data) in codes, data
    assert b"Connection: close" in data


@pytest.mark.parametrize("path, code", [
    (b"//v2", 400), (b"/v2/../admin", 400), (b"/v2/%2e%2e/x", 400), (b"/v2%2fhealth%2flive", 400), (b"/v2/a%00", 400),
    (b"/v2/%zz", 400), (b"/v2/health/live?x=%00", 200), (b"http://other/v2/health/live", 200), (b"*", 400),
    (b"https://other:1/v2/health/live", 200), (b"http://other", 200), (b"http://user@other/v2/health/live", 400),
    (b"http://user:word@other/v2/health/live", 400), (b"ftp://other/v2/health/live", 400), (b"other:80", 400),
    (b"http:/v2/health/live", 400), (b"/v2/health/liv%65", 200), (b"/v2/models/f%61ke/ready", 200),
    (b"/v2/models/%2566ake", 404), (b"/v2/health/live#x", 400), (b"/v2/models/" + b"a" * 3000, 404), (b"/V2", 404),
])
def test_paths(server, path, code):
    with server.connect() as connection:
        connection.sendall(get(path))
        answer, _, body, _ = read_answer(connection)
        assert answer == code, body
        connection.sendall(get())  # the connection is still usable
        assert read_answer(connection)[0] == 200


def test_an_empty_line_before_a_request_is_ignored(server):
    """Some clients send an empty line after a body. One is ignored, whole or in pieces."""
    with server.connect() as connection:
        for text in (b"\r\n" + get(), get() + b"\r\n", get()):
            connection.sendall(text)
        for piece in (b"\r", b"\n", b"G", get()[1:]):
            connection.sendall(piece)
            until(lambda: unread(connection) == 0)
        data = b""
        for _ in range(4):
            code, _, _, data = read_answer(connection, data)
            assert code == 200


def test_pipelined_errors_are_answered_in_their_order(server):
    bad = post(BODY.replace(b"INPUT__0", b"nothing"))
    requests = [(post(), 200), (bad, 400), (get(b"/nope"), 404), (b"DELETE /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
                (post(b"{"), 400), (get(b"/v2//x"), 400), (get(b"/v2/models/none"), 404), (post(), 200),
                (b"OPTIONS /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n", 405), (post(extra=b"Content-Encoding: gzip\r\n"), 400),
                (post(), 200), (b"NO\r\n\r\n", 400)]
    # After a request that cannot be parsed, no later request is answered.
    data = server.raw(b"".join(text for text, _ in requests) + post() + get())
    assert [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", data)] == [code for _, code in requests]


@pytest.mark.parametrize("line", [b'1;a="\n"\r\n', b'1;a="\r"\r\n', b'1;a="\0"\r\n', b'1;a="\\\n"\r\n', b'1;a="b\nc"\r\n', b'1;a="\r\n"\r\n', b"1\n",
                                  b"1;a\n", b"1;a=b\n", b"1;a=b\r", b"1\rX", b"1;a\0b\r\n", b"1;a=\"\x1b\"\r\n", b"00000000000000001\r\n",
                                  b"1 \r\n", b"+1\r\n", b"0x1\r\n", b"1;\r\n", b"1;a=\r\n"])
def test_what_might_end_a_line_of_a_chunk_is_refused(server, line):
    """An extension that another server reads as the end of its line would hide a request from one of the two."""
    start = post(extra=b"Transfer-Encoding: chunked\r\n", body=b"", length=False)
    data = server.raw(start + line + b"x\r\n0\r\n\r\n" + get(b"/v2/models/smuggled"))
    assert status(data) == 400 and data.count(b"HTTP/1.1") == 1, data
    assert b"Connection: close" in data and json.loads(data.split(b"\r\n\r\n", 1)[1])["error"]


@pytest.mark.parametrize("end", [b"0\n\r\n", b"0\r\n\n", b"0\r\nX: y\n\r\n", b"0\r\nX: y\rz\r\n\r\n", b"0\r\nX: \0\r\n\r\n", b"0\r\nX: y\r\n z\r\n\r\n",
                                 b"0\r\n X: y\r\n\r\n", b"0\r\nX y\r\n\r\n", b"0\r\n\rX"])
def test_trailers_are_as_strict(server, end):
    start = post(extra=b"Transfer-Encoding: chunked\r\n", body=b"", length=False)
    data = server.raw(start + b"%x\r\n%b\r\n" % (len(BODY), BODY) + end + get(b"/v2/models/smuggled"))
    assert status(data) == 400 and data.count(b"HTTP/1.1") == 1, data


def test_extensions_and_trailers_that_are_right_are_ignored(server):
    start = post(extra=b"Transfer-Encoding: chunked\r\n", body=b"", length=False)
    body = b"%x;a;b=c;d=\"e\\\"f\"\r\n%b\r\n0;g\r\nX: y\r\nContent-Length: 7\r\n\r\n" % (len(BODY), BODY)
    with server.connect() as connection:
        connection.sendall(start + body + get())
        code, _, _, rest = read_answer(connection)
        assert code == 200
        assert read_answer(connection, rest)[0] == 200


def test_bad_chunks(server):
    start = post(extra=b"Transfer-Encoding: chunked\r\n", body=b"", length=False)
    for body in (b"xyz\r\n", b"-1\r\n", b"5\r\nabc\r\n0\r\n\r\n", b"5\r\nabcdeX0\r\n\r\n", b"ffffffffffffffffff\r\n",
                 b"fffffffff\r\n", b"1;" + b"e" * 20000 + b"\r\na\r\n0\r\n\r\n"):
        data = server.raw(start + body + get(b"/v2/models/smuggled"))
        assert status(data) in (400, 413), (body[:20], data)
        assert data.count(b"HTTP/1.1") == 1
    many = b"1\r\nx\r\n" * 65537 + b"0\r\n\r\n"
    data = server.raw(start + many)
    assert status(data) == 400 and b"too many chunks" in data


def test_limits(strict):
    assert status(strict.raw(get(extra=b"X: " + b"a" * 5000 + b"\r\n"))) == 431
    assert status(strict.raw(get(extra=b"X: y\r\n" * 2000))) == 431
    assert status(strict.raw(b"GET /" + b"a" * 5000)) == 431
    exact = BODY[:-1] + b" " * (65536 - len(BODY)) + b"}"
    with strict.connect() as connection:
        connection.sendall(post(exact))
        assert read_answer(connection)[0] == 200
    assert status(strict.raw(post(exact[:-1] + b" }"))) == 413
    data = strict.raw(chunked([b" " * 60000, b" " * 5537]))
    assert status(data) == 413
    # An answer comes even while the client goes on sending.
    with strict.connect() as connection:
        connection.sendall(b"POST /v2/models/fake/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n")
        connection.sendall(b"x" * 3000000)
        assert status(read_all(connection)) == 413


def test_header_timeout(strict):
    with strict.connect() as connection:
        # A byte every 50 ms, until the server answers what is not complete yet.
        begin = get()[:-1]
        for at in range(len(begin)):
            connection.sendall(begin[at:at + 1])
            if select.select([connection], [], [], 0.05)[0]:
                break
        assert status(read_all(connection)) == 408


def test_body_timeout(strict):
    with strict.connect() as connection:
        start = time.time()
        connection.sendall(post()[:-10])
        data = read_all(connection)
        assert status(data) == 408 and 0.2 < time.time() - start < 20
    with strict.connect() as connection:
        connection.sendall(chunked([BODY])[:-10])
        assert status(read_all(connection)) == 408


def test_idle_timeout(strict):
    with strict.connect() as connection:
        start = time.time()
        connection.sendall(get())
        assert read_answer(connection)[0] == 200
        assert read_all(connection) == b"" and 0.4 < time.time() - start < 20
    with strict.connect() as connection:
        assert read_all(connection) == b""


def test_write_timeout(strict):
    """The server closes the connection of a client that does not read its answers, and frees them."""
    with strict.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(0.2)
        body = b'{"inputs":[{"name":"INPUT__0","shape":[4000,4],"datatype":"FP32","data":[' + b",".join(
            [b"1"] * 16000) + b"]}]}"
        end = time.time() + 20
        try:
            while time.time() < end:
                connection.sendall(post(body))
        except TimeoutError:
            pass  # unread answers fill the buffers
        except OSError:
            return

        def closed():
            try:
                connection.sendall(b"x")
            except TimeoutError:
                return False
            except OSError:
                return True

        until(closed, why="still connected")


def test_hostile_json_does_not_grow_the_server(server):
    before = server.memory_kb()
    big = b"[" * 50_000_000
    assert server.post("/v2/models/fake/infer", big).status == 400
    assert server.post("/v2/models/fake/infer", b'{"inputs":' + big).status == 400
    # This model's inputs are bounded, so the server reads no larger body.
    assert server.post("/v1/models/several.calls:call", b'{"args":' + big[:60_000]).status == 400
    for _ in range(20):
        shape = {"INPUT__0": ("FP32", [10**12, 4], [1])}
        assert server.infer("fake", shape).status == 400
    until(lambda: server.grown_kb(before) < 32 * 1024)


def test_bodies_of_many_sizes_and_memory_comes_back(server):
    before = server.memory_kb()
    for rows in (1, 100, 10_000, 1_000_000):
        answer = server.post("/v2/models/fake/infer", *binary(
            struct.pack("<4f", 1, 2, 3, 4) * rows, outputs=[{"name": "OUTPUT__0", "parameters": {"binary_data": True}}]))
        assert answer.status == 200
        length = int(answer.headers["Inference-Header-Content-Length"])
        assert answer.body[length:] == struct.pack("<4f", *fake_expected([1, 2, 3, 4])) * rows
    until(lambda: server.grown_kb(before) < 64 * 1024)


def test_many_connections(server):
    connections = [server.connect() for _ in range(500)]
    for connection in connections:
        connection.sendall(post())
    for connection in connections:
        assert read_answer(connection)[0] in (200, 429)
        connection.close()


def test_full_queue_is_429():
    """One replica is held; four may wait."""
    with HeldServer(f"fake={FAKE_MODELS / 'fake_model.so'}", flags=["--set", "fake.queue=4"]) as server:
        def one(_):
            return server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [0] * 4)})

        server.hold()
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            answers = [pool.submit(one, i) for i in range(20)]
            try:
                until(lambda: sum(a.done() for a in answers) >= 15)
            finally:
                server.release()
            answers = [a.result() for a in answers]
        assert one(0).status == 200
    codes = [a.status for a in answers]
    # The fifth is refused if it comes before the replica has taken the first.
    assert codes.count(200) in (4, 5) and set(codes) == {200, 429}
    refused = answers[codes.index(429)]
    assert refused.headers["Retry-After"] == "1" and "Exceeds maximum queue size" in refused.json["error"]


def test_clients_that_vanish(server):
    before = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    slow = post(BODY.replace(b"[1,2,3,4]", b"[-2e30,2,3,4]"))
    for i in range(200):
        connection = server.connect()
        connection.sendall((slow if i % 20 == 0 else post())[:i + 1 if i % 3 else None])
        if i % 2:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        connection.close()
    until(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) <= before)
    # The last of the slow ones may still run.
    until(lambda: server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [0] * 4)}).status == 200)
