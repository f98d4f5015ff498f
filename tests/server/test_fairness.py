"""A large request does not delay other requests of its I/O thread. Tests count the answers that others get meanwhile."""
import gzip
import json
import select
import struct
import time

import pytest
from serving import FAKE_MODELS, SLEEP_INPUT, Server, binary, raw_post, read_answer, threads, until

PROBE = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
ROWS = 1_000_000
NUMBERS = b",".join([b"1.25,-2.5e3,3,0.001"] * ROWS)


@pytest.fixture(scope="module")
def server():
    """A server with one I/O thread, which performs no runs. The package of `recorded` says that its number of rows is not
    limited."""
    with Server(f"fake={FAKE_MODELS / 'fake_model.so'}", f"recorded={FAKE_MODELS / 'fake_batched.pt2'}",
                flags=["--io-threads", "1", "--inline-below", "0", "--busy-poll", "0", "--max-inflated-bytes", "128M"]) as running:
        yield running


def answered_meanwhile(server, request):
    """Sends a request, and probes from another client. Returns the answer, the number of probes that were answered between the
    request's last byte and the answer's first, and the longest probe as a share of that time."""
    with server.connect(120) as large, server.connect(60) as other:
        other.sendall(PROBE)  # now the I/O thread has accepted both
        read_answer(other)
        # All but the last byte has been read before anything is counted; metrics are answered by another thread.
        before = server.metrics()["sconce_http_received_bytes_total"]
        large.sendall(request[:-1])
        until(lambda: server.metrics()["sconce_http_received_bytes_total"] - before >= len(request) - 1)
        start = time.perf_counter()
        large.sendall(request[-1:])
        count, longest, answered = 0, 0.0, False
        while not answered:
            asked = time.perf_counter()
            other.sendall(PROBE)
            assert read_answer(other)[0] == 200
            now = time.perf_counter()
            longest = max(longest, now - asked)
            # If the large answer is there already, the probe had to wait for it and does not count.
            answered = bool(select.select([large], [], [], 0)[0])
            count += not answered
        return read_answer(large), count, longest / (now - start)


def assert_others_are_answered(server, request, check):
    """If the I/O thread worked on the request itself, others would wait for most of that time in every trial. On a busy machine
    that happens in some trials only."""
    seen = []
    while len(seen) < 10:
        answer, count, longest = answered_meanwhile(server, request)
        check(answer)
        if count >= 5 and longest < 0.5:
            return
        seen.append((count, longest))
    raise AssertionError(f"probes answered meanwhile, and the longest as a share of the time: {seen}")


INFER = b"/v2/models/fake/infer"


def post_binary(data, **more):
    body, fields = binary(data, **more)
    return raw_post(INFER, body, "".join(f"{key}: {value}\r\n" for key, value in fields.items()).encode())


KEYS = b'{"inputs":[],"x":[' + b",".join([b'{"\\u0061bcdefgh":"\\n"}'] * 1_500_000) + b"]}"
CASES = {
    "20 MB of numbers": (raw_post(INFER, b'{"inputs":[{"name":"INPUT__0","shape":[%d,4],"datatype":"FP32","data":[' % ROWS + NUMBERS + b",true]}]}"),
                         "more elements than the shape holds"),
    "30 MB of a key": (raw_post(b"/v1/models/fake:call", b'{"' + b"\\u006b" * 5_000_000 + b'":0}'), "got 'kkk"),
    "30 MB of keys": (raw_post(INFER, KEYS), "missing"),
    "30 MB of strings and depth": (raw_post(b"/v1/models/fake:predict", b'{"a":' + b"[" * 50 + b'"' + b"\\n" * 15_000_000 + b'"' + b"]" * 50 + b"}"),
                                   "neither 'instances' nor"),
    "30 MB, compressed": (raw_post(INFER, gzip.compress(KEYS, 1), b"Content-Encoding: gzip\r\n"), "missing"),
    "a bomb": (raw_post(INFER, gzip.compress(b" " * 120_000_000, 1), b"Content-Encoding: gzip\r\n"), "text ends at byte 120000000"),
    "20 MB for generate": (raw_post(b"/v2/models/recorded/generate", b'{"INPUT__0":[' + NUMBERS + b",true]}"), "expected a number at byte 200000"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_large_body_is_read_while_others_are_answered(server, name):
    request, reason = CASES[name]

    def check(answer):
        code, _, body, _ = answer
        assert code == 400 and len(body) <= 2048
        assert reason in json.loads(body)["error"]  # this error is found at the end of the body

    assert_others_are_answered(server, request, check)


def test_a_large_run_is_none_of_the_reading_threads(server):
    """The model's earlier runs were so quick that they happened on the I/O thread."""
    with Server(f"fake={FAKE_MODELS / 'fake_model.so'}", flags=["--io-threads", "1", "--busy-poll", "0", "--inline-below", "10ms"]) as running:
        for _ in range(50):
            assert running.infer("fake", {"INPUT__0": ("FP32", [1, 4], [1, 2, 3, 4])}).status == 200
        request = post_binary(struct.pack("<4f", SLEEP_INPUT, 2, 3, 4) + bytes(16 * 4095), parameters={"binary_data_output": True})

        def check(answer):
            assert answer[0] == 200

        assert_others_are_answered(running, request, check)


def test_a_large_answer_is_written_while_others_are_answered(server):
    request = post_binary(struct.pack("<4f", 1.25, -2500.123, 3, 0.001) * ROWS)

    def check(answer):
        code, _, body, _ = answer
        assert code == 200
        assert len(json.loads(body)["outputs"][0]["data"]) == 4 * ROWS

    assert_others_are_answered(server, request, check)


def test_many_large_requests_at_once_are_all_answered(server):
    """There are more requests than threads for them, and some clients disconnect meanwhile."""
    body = b'{"inputs":[{"name":"INPUT__0","shape":[%d,4],"datatype":"FP32","data":[' % ROWS + NUMBERS + b"]}]}"
    request = raw_post(INFER, body)
    results, gone = [], []

    def ask():
        with server.connect(120) as connection:
            connection.sendall(request)
            results.append(read_answer(connection)[0])

    def leave():
        with server.connect(120) as connection:
            connection.sendall(request)
            gone.append(True)

    with threads(*[ask, leave] * 4):
        pass
    assert results == [200] * 4 and len(gone) == 4
    assert server.get("/v2/health/live").status == 200


def test_the_server_ends_in_order_while_a_large_body_is_read(server):
    request, reason = CASES["30 MB of keys"]
    with Server(f"fake={FAKE_MODELS / 'fake_model.so'}", flags=["--io-threads", "1"]) as running:
        with running.connect(60) as connection:
            connection.sendall(request)
            assert running.stop() == 0
            code, _, body, _ = read_answer(connection)
            assert code == 400 and reason in json.loads(body)["error"]
