"""A large request does not hold up others of its I/O thread: what they get answered meanwhile is counted."""
import gzip
import json
import struct
import threading

import pytest
from serving import FAKE_MODELS, PACKAGES, SLEEP_INPUT, Server, read_answer, until

PROBE = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
ROWS = 1_000_000
NUMBERS = b",".join([b"1.25,-2.5e3,3,0.001"] * ROWS)


@pytest.fixture(scope="module")
def server():
    """One thread reads all requests. Runs are on the lane."""
    with Server(f"fake={FAKE_MODELS / 'fake_model.so'}", PACKAGES / "several.pt2",
                flags=["--io-threads", "1", "--inline-below", "0", "--busy-poll", "0", "--max-inflated-bytes", "128M"]) as running:
        yield running


def answered_meanwhile(server, request):
    """The answer to a request, and how many probes of another client were answered between its last byte and the first
    of its answer."""
    with server.connect(120) as large, server.connect(60) as other:
        other.sendall(PROBE)  # both are known to the thread
        read_answer(other)
        # All but the last byte has been read before anything is counted; metrics are answered by another thread.
        before = server.metrics()["sconce_http_received_bytes_total"]
        large.sendall(request[:-1])
        until(lambda: server.metrics()["sconce_http_received_bytes_total"] - before >= len(request) - 1)
        done, result = threading.Event(), []

        def wait():
            first = large.recv(1)
            done.set()
            result.append(read_answer(large, first))

        waiting = threading.Thread(target=wait)
        large.sendall(request[-1:])
        waiting.start()
        count = 0
        while True:
            other.sendall(PROBE)
            assert read_answer(other)[0] == 200
            if done.is_set():
                break
            count += 1
        waiting.join()
        return result[0], count


def post(path, body, extra=b""):
    return (b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n" % len(body) + extra + b"\r\n") + body


INFER = b"/v2/models/fake/infer"
KEYS = b'{"inputs":[],"x":[' + b",".join([b'{"\\u0061bcdefgh":"\\n"}'] * 1_500_000) + b"]}"
CASES = {
    "20 MB of numbers": (post(INFER, b'{"inputs":[{"name":"INPUT__0","shape":[%d,4],"datatype":"FP32","data":[' % ROWS + NUMBERS + b",true]}]}"), 400),
    "30 MB of a key": (post(b"/v1/models/fake:call", b'{"' + b"\\u006b" * 5_000_000 + b'":0}'), 400),
    "30 MB of keys": (post(INFER, KEYS), 400),
    "30 MB of strings and depth": (post(b"/v1/models/fake:predict", b'{"a":' + b"[" * 50 + b'"' + b"\\n" * 15_000_000 + b'"' + b"]" * 50 + b"}"), 400),
    "30 MB, compressed": (post(INFER, gzip.compress(KEYS, 1), b"Content-Encoding: gzip\r\n"), 400),
    "a bomb": (post(INFER, gzip.compress(b" " * 120_000_000, 1), b"Content-Encoding: gzip\r\n"), 400),
    "20 MB for generate": (post(b"/v2/models/fake/generate", b'{"INPUT__0":[' + NUMBERS + b",true]}"), 400),
}


@pytest.mark.parametrize("name", CASES)
def test_a_large_body_is_read_while_others_are_answered(server, name):
    request, status = CASES[name]
    (code, _, body, _), count = answered_meanwhile(server, request)
    assert code == status, body[:300]
    if code >= 400:
        assert len(body) <= 2048 and json.loads(body)["error"]
    assert count >= 5, count


def test_a_large_run_is_none_of_the_reading_threads(server):
    """Of a model whose runs have been quick enough to happen where requests are read."""
    with Server(f"fake={FAKE_MODELS / 'fake_model.so'}", flags=["--io-threads", "1", "--busy-poll", "0", "--inline-below", "10ms"]) as running:
        for _ in range(50):
            assert running.infer("fake", {"INPUT__0": ("FP32", [1, 4], [1, 2, 3, 4])}).status == 200
        rows = 4096
        head = json.dumps({"inputs": [{"name": "INPUT__0", "shape": [rows, 4], "datatype": "FP32", "parameters": {"binary_data_size": 16 * rows}}],
                           "parameters": {"binary_data_output": True}}).encode()
        data = struct.pack("<4f", SLEEP_INPUT, 2, 3, 4) + bytes(16 * (rows - 1))
        (code, _, _, _), count = answered_meanwhile(running, post(INFER, head + data, b"Inference-Header-Content-Length: %d\r\n" % len(head)))
        assert code == 200
        assert count >= 5, count


def test_a_large_answer_is_written_while_others_are_answered(server):
    head = json.dumps({"inputs": [{"name": "INPUT__0", "shape": [ROWS, 4], "datatype": "FP32",
                                   "parameters": {"binary_data_size": 16 * ROWS}}]}).encode()
    data = struct.pack("<4f", 1.25, -2500.123, 3, 0.001) * ROWS
    request = post(INFER, head + data, b"Inference-Header-Content-Length: %d\r\n" % len(head))
    (code, _, body, _), count = answered_meanwhile(server, request)
    assert code == 200
    assert len(json.loads(body)["outputs"][0]["data"]) == 4 * ROWS
    assert count >= 5, count


def test_many_large_requests_at_once_are_all_answered(server):
    """More than there are threads for them; connections that go meanwhile hurt nobody."""
    body = b'{"inputs":[{"name":"INPUT__0","shape":[%d,4],"datatype":"FP32","data":[' % ROWS + NUMBERS + b"]}]}"
    request = post(INFER, body)
    results, gone = [], []

    def ask():
        with server.connect(120) as connection:
            connection.sendall(request)
            results.append(read_answer(connection)[0])

    def leave():
        with server.connect(120) as connection:
            connection.sendall(request)
            gone.append(True)

    threads = [threading.Thread(target=ask if i % 2 else leave) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [200] * 4 and len(gone) == 4
    assert server.get("/v2/health/live").status == 200


def test_the_server_ends_in_order_while_a_large_body_is_read(server):
    request, _ = CASES["30 MB of keys"]
    with Server(f"fake={FAKE_MODELS / 'fake_model.so'}", flags=["--io-threads", "1"]) as running:
        with running.connect(60) as connection:
            connection.sendall(request)
            assert running.stop() == 0
            assert read_answer(connection)[0] == 400
