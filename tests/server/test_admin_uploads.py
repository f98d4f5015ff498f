"""Weights that arrive, or fail to, while clients ask and the server unloads, drains and ends."""
import contextlib
import http.client
import pathlib
import re
import resource
import signal
import socket
import struct
import time

import pytest
from admin_server import (FAKE, GOOD, LARGE, LARGE_FEATURES, STORED, STREAM, UNKNOWN_NAME, WRONG_SHAPE, AdminServer, Clients,  # noqa: F401
                          chunks, expected, server, shared, wait_until_idle)
from serving import FAKE_MODELS, SANITIZED, read_answer, threads, until
from weights_files import content_digest, fake_weights, repeated, safetensors


# Uploads that do not arrive.

@pytest.mark.parametrize("share", [0.000001, 0.3, 0.999999])
@pytest.mark.parametrize("how", ["close", "reset", "half"])
def test_client_gone_midway(server, share, how):
    data = fake_weights(9, LARGE_FEATURES)
    before = server.sets("large")
    memory = server.memory_kb()
    with server.begin_push("large", data, max(4, int(len(data) * share)), "commit=true") as connection:
        until(server.running)
        assert server.push("large", b"x").status == 409
        if how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if how == "half":
            connection.shutdown(socket.SHUT_WR)
            status, _, body, _ = read_answer(connection)
            assert status == 400 and b"closed the connection" in body
    wait_until_idle(server)
    assert server.sets("large") == before
    last = server.admin("GET", "/v2/admin/operations").json["operations"][-1]
    assert last["state"] == "failed" and "closed the connection" in last["error"] and last["replicas"][0]["state"] == "unchanged"
    until(lambda: server.grown_kb(memory) < 4096)
    assert server.push("large", data, "dry_run=true").status == 200


@pytest.fixture(scope="module")
def hasty():
    with AdminServer(f"fake={FAKE}", flags=["--upload-timeout", "1s", "--upload-rate", "100"]) as server:
        yield server


def test_an_upload_that_stops_arriving(hasty):
    server = hasty
    before = server.ones()
    with server.begin_push("fake", GOOD, 50) as connection:
        status, _, body, _ = read_answer(connection)
        assert status == 408 and b"50 of" in body
    assert server.ones() == before
    # A slow upload may go on as long as bytes arrive.
    with server.begin_push("fake", GOOD, 0, "dry_run=true") as connection:
        for i in range(0, len(GOOD), 25):
            connection.sendall(GOOD[i:i + 25])
            time.sleep(0.15)
        assert read_answer(connection)[0] == 200


@pytest.mark.parametrize("begin", ["begin_push", "begin_chunks"])
def test_an_upload_that_hardly_arrives(hasty, begin):
    """The server ends it, because it would keep the model busy as long as its client likes."""
    server = hasty
    before = server.ones()
    data = GOOD if begin == "begin_push" else chunks(GOOD, 2)
    start = time.time()
    with (server.begin_push("fake", GOOD, 0) if begin == "begin_push" else server.begin_chunks("fake", b"")) as connection:
        connection.settimeout(0.05)
        answer = b""
        for i in range(0, len(data), 2):
            try:
                answer += connection.recv(1000)
                break
            except TimeoutError:
                connection.sendall(data[i:i + 2])
        assert b" 408 " in answer and b"upload_rate" in answer, answer
        assert time.time() - start < 20
    assert server.ones() == before


# Bodies in chunks: no length is known before the last one.

@pytest.mark.parametrize("size", [1, 7, 500, 100_000])
def test_chunks_of_any_size(server, size):
    with server.begin_chunks("fake", chunks(fake_weights(5), size), "commit=true") as connection:
        status, _, body, rest = read_answer(connection)
        assert status == 200 and rest == b"", body
        assert server.ones()[0] == expected(5)
        # The connection stays usable, also after bytes that came with the last chunk.
        connection.sendall(b"GET /v2/admin/models/fake/weights HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_answer(connection)[0] == 200
    pipelined = chunks(GOOD, size) + b"GET /v2/admin/models/fake/constants HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with server.begin_chunks("fake", pipelined, "dry_run=true") as connection:
        status, _, _, rest = read_answer(connection)
        assert status == 200
        status, _, body, _ = read_answer(connection, rest)
        assert status == 200 and b"scale.w" in body


def test_chunks_through_a_client(server):
    data = fake_weights(11, LARGE_FEATURES)
    answer = server.push("large", iter([data[i:i + 50_000] for i in range(0, len(data), 50_000)]), "commit=true",
                         {"Content-Digest": content_digest(data)})
    assert answer.status == 200 and answer.json["bytes"] == answer.json["total_bytes"] == len(data), answer.body
    wrong = server.push("large", iter([data]), "commit=true", {"Content-Digest": content_digest(data[:-1])})
    assert wrong.status == 400 and "SHA-256" in wrong.json["error"]
    with server.begin_chunks("fake", b"", "dry_run=true", "Expect: 100-continue\r\n") as connection:
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(chunks(GOOD, 100, b"0\r\nTrailer: x\r\n\r\n"))
        assert read_answer(connection)[0] == 200


BAD_CHUNKS = {
    "not a number": b"zz\r\n", "negative": b"-5\r\n", "no end of line": b"5" * 20_000, "too long": b"F" * 17 + b"\r\n",
    "data behind a chunk": b"3\r\nabcdef\r\n", "extensions": b"1;" + b"x" * 15_000 + b"\r\n",
    "trailer": b"0\r\n" + b"x: y\r\n" * 5_000,
}


@pytest.mark.parametrize("kind", BAD_CHUNKS)
@pytest.mark.parametrize("begun", [0, 60])
def test_malformed_chunks(server, kind, begun):
    before = server.ones(), server.sets()
    with server.begin_chunks("fake", chunks(GOOD[:begun], 100, b"") + BAD_CHUNKS[kind], "commit=true") as connection:
        if kind == "extensions":  # legal, but too long
            connection.sendall((b"1\r\n" if begun else b"") + b"x\r\n" + b"1;" + b"x" * 15_000 + b"\r\n")
        status, _, body, rest = read_answer(connection)
        assert status == 400, body
        assert rest == b"" and connection.recv(100) == b""  # the server does not read what follows as a request
    wait_until_idle(server)
    assert (server.ones(), server.sets()) == before


@pytest.mark.parametrize("how", ["within a chunk", "behind a chunk", "within a size", "all but the last"])
def test_truncated_chunks(server, how):
    before = server.ones(), server.sets()
    sent = {"within a chunk": chunks(GOOD, 100)[:150], "behind a chunk": chunks(GOOD[:100], 100, b""),
            "within a size": chunks(GOOD[:100], 100, b"6"), "all but the last": chunks(GOOD, 100, b"")}[how]
    with server.begin_chunks("fake", sent, "commit=true") as connection:
        connection.shutdown(socket.SHUT_WR)
        status, _, body, _ = read_answer(connection)
        assert status == 400 and b"closed the connection" in body
    wait_until_idle(server)
    assert (server.ones(), server.sets()) == before


def test_chunks_that_end_too_early_or_go_on(server):
    before = server.ones(), server.sets()
    for data in (b"", GOOD[:-1], GOOD[:4], GOOD + b"x", GOOD + bytes(200_000)):
        with server.begin_chunks("fake", chunks(data, 1000), "commit=true") as connection:
            status, _, body, _ = read_answer(connection)
            assert status == 400, body
    wait_until_idle(server)
    assert (server.ones(), server.sets()) == before


def test_chunks_that_stop_arriving(hasty):
    server = hasty
    before = server.ones()
    with server.begin_chunks("fake", chunks(GOOD[:50], 10, b"")) as connection:
        status, _, body, _ = read_answer(connection)
        assert status == 408 and b"after 50 bytes" in body
    assert server.ones() == before


def test_chunks_have_the_limit_of_weights():
    with AdminServer(f"fake={FAKE}", f"large={LARGE}", flags=["--weights-limit", "1K"]) as server:
        before = server.ones()
        data = fake_weights(1, LARGE_FEATURES)
        with server.begin_chunks("large", chunks(data[:100_000], 10_000, b""), "commit=true") as connection:
            status, _, body, _ = read_answer(connection)
            assert status == 413 and b"weights_limit" in body
        with server.begin_chunks("fake", chunks(GOOD, 50), "dry_run=true") as connection:
            assert read_answer(connection)[0] == 200
        assert server.ones() == before


def test_two_requests_in_the_words_of_one(server):
    """A length beside chunks could be read in two ways."""
    with server.begin_chunks("fake", chunks(GOOD, 50), "commit=true", "Content-Length: 5\r\n") as connection:
        assert read_answer(connection)[0] == 400


def test_a_fold_that_fails():
    with AdminServer(f"folded={FAKE_MODELS / 'fake_folded.so'}", environment={"FAKE_MODEL_FAIL_IN_FOLDS": "2"}) as server:
        before = server.ones("folded")
        answer = server.push("folded", fake_weights(3), "commit=true&async=1")
        operation = server.wait_operation(answer.json["operation"])
        assert operation["state"] == "failed" and operation["status"] == 500 and "folding" in operation["error"]
        assert server.ones("folded") == before
        assert set(server.sets("folded")) == {"active"}
        assert server.push("folded", fake_weights(3), "commit=true").status == 200
        assert server.ones("folded") == ([9] * 4, 2)
        metrics = server.metrics()
        assert metrics['sconce_weight_updates_total{state="failed"}'] == 1
        assert metrics['sconce_weight_updates_total{state="done"}'] == 1
        assert metrics['sconce_model_weight_generation{model="folded",version="1"}'] == 2


def test_a_slow_upload_holds_up_nobody(server):
    data = fake_weights(6, LARGE_FEATURES)
    with server.begin_push("large", data, len(data) // 2):
        assert server.admin("GET", "fake/weights").status == 200
        assert server.push("fake", fake_weights(4), "commit=true").status == 200
        assert server.ones()[0] == expected(4)
        assert server.get("/metrics", port=server.ports["metrics"]).status == 200
        assert server.running()
    wait_until_idle(server)


def test_requests_of_one_connection(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.admin_port, timeout=20)
    own = connection
    own.connect()
    first = own.sock
    for i in range(3):
        for method, path, body, status in [("POST", "/v2/admin/models/fake/weights?dry_run=true", GOOD, 200),
                                           ("POST", "/v2/admin/models/fake/weights", UNKNOWN_NAME, 404),
                                           ("GET", "/v2/admin/models/fake/weights", None, 200)]:
            own.request(method, path, body, STREAM if body else {})
            answer = own.getresponse()
            answer.read()
            assert answer.status == status
            assert own.sock is first  # the server read the refused body to its end, so the connection stays usable
    own.close()
    # A request is pipelined behind an upload.
    with server.begin_push("fake", GOOD, len(GOOD), "dry_run=true") as connection:
        connection.sendall(b"GET /v2/admin/models/fake/constants HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status, _, _, rest = read_answer(connection)
        assert status == 200
        assert read_answer(connection, rest)[0] == 200


def test_expect_continue(server):
    with server.begin_push("fake", GOOD, 0, "dry_run=true", "Expect: 100-continue\r\n") as connection:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(1000)
        assert data == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(GOOD)
        assert read_answer(connection)[0] == 200
    # If the upload is refused, the server does not ask for its body.
    with server.begin_push("nobody", GOOD, 0, "", "Expect: 100-continue\r\n") as connection:
        assert b" 404 " in connection.recv(1000).split(b"\r\n")[0]


# No memory.

@pytest.mark.skipif(SANITIZED, reason="sanitizers end the process where there is no memory")
def test_no_memory():
    """Memory limits from no memory at all up to enough for an update."""
    with AdminServer(f"large={LARGE}", f"fake={FAKE}", environment={"MALLOC_ARENA_MAX": "1"}) as server:
        data = fake_weights(9, LARGE_FEATURES)
        process = server.process.pid

        def limit(extra):
            used = int(re.search(r"VmSize:\s+(\d+)", pathlib.Path(f"/proc/{process}/status").read_text()).group(1)) * 1024
            resource.prlimit(process, resource.RLIMIT_AS, (used + extra if extra is not None else resource.RLIM_INFINITY,
                                                           resource.RLIM_INFINITY))

        assert server.push("large", data, "dry_run=true").status == 200
        before = server.ones(), server.sets("large", "digest=true"), server.sets()
        seen = set()
        for extra in range(0, 40 << 20, 1 << 20):
            limit(extra)
            try:
                for body in (data, iter([data[i:i + 100_000] for i in range(0, len(data), 100_000)])):
                    answer = server.push("large", body)
                    seen.add(answer.status)
                    if answer.status == 200:
                        limit(None)
                        assert server.admin("POST", "large/weights/abort").status == 200
                    else:
                        # There is no memory for the request's thread or for the new set.
                        assert answer.status in (503, 507) and answer.json["error"], answer.body
            except (ConnectionError, http.client.HTTPException):
                seen.add("closed")
            finally:
                limit(None)
            assert (server.ones(), server.sets("large", "digest=true"), server.sets()) == before
        assert {200, 507} <= seen, seen
        assert server.push("large", data, "commit=true").status == 200
        assert server.stop() == 0


# Under load.

def test_pushes_under_load():
    """Each answer comes from one published set, which its header names; none fails."""
    with AdminServer(f"fake={FAKE}", flags=["--set", "fake.replicas=3"]) as server:
        server.push("fake", fake_weights(1), "commit=true&label=1")
        with Clients(server) as clients:
            published = {}
            for i in range(2, 80):
                kind = i % 5
                if kind == 0:
                    b = safetensors({"scale.w": repeated(i, 4), "scale.b": repeated(i, 4)})
                    answer = server.push("fake", b, f"mode=partial&label={i}&commit=true")
                    published[answer.json["generation"]] = (2 * i, str(i))
                elif kind == 1:
                    assert server.push("fake", WRONG_SHAPE, "commit=true").status == 400
                elif kind == 2 and i > 2:
                    weight_version = server.admin("POST", "fake/weights/rollback").json["generation"]
                    published[weight_version] = None
                else:
                    assert server.push("fake", fake_weights(i), f"label={i}").status == 200
                    weight_version = server.admin("POST", "fake/weights/commit").json["generation"]
                    published[weight_version] = (2 * i, str(i))
        assert not clients.problems, clients.problems[:5]
        assert clients.answers > 200 and len(clients.weight_versions) > 10
        for weight_version, answer in clients.weight_versions.items():
            if published.get(weight_version):
                assert answer == published[weight_version]
        assert server.stop() == 0


def test_replicas_come_and_go_under_load():
    with AdminServer(f"fake={FAKE}") as server:
        server.push("fake", fake_weights(1), "commit=true")
        with Clients(server) as clients:
            for i in range(20):
                assert server.admin("POST", "fake/replicas", {"count": 2}).status == 200
                assert server.push("fake", fake_weights(i), "commit=true").status == 200
                assert server.admin("DELETE", "fake/replicas").status == 200
                assert server.admin("DELETE", "fake/replicas/0" if i % 2 else "fake/replicas").status in (200, 404)
                while server.admin("GET", "fake/replicas").json["count"] > 1:
                    assert server.admin("DELETE", "fake/replicas").status == 200
        assert not clients.problems, clients.problems[:5]


# Unloading, draining, ending.

def test_unload_and_reload_during_an_upload(tmp_path):
    with AdminServer(f"large={LARGE}", f"fake={FAKE}") as server:
        data = fake_weights(9, LARGE_FEATURES)
        for control in ("unload", "load"):
            with server.begin_push("large", data, len(data) // 2, "commit=true") as connection:
                until(server.running)
                answer = server.admin("POST", f"/v2/repository/models/large/{control}", b"")
                assert answer.status == 200, answer.body
                status, _, body, _ = read_answer(connection)
                assert status in (404, 503), body
            assert server.admin("POST", "/v2/repository/models/large/load", b"").status == 200
            assert server.sets("large")["active"]["weight_version"] == 1
        assert server.ones()[0] == STORED
        assert server.stop() == 0


@pytest.mark.parametrize("sent", [0, 0.5])
def test_shutdown_during_an_upload(sent):
    with AdminServer(f"large={LARGE}") as server:
        data = fake_weights(9, LARGE_FEATURES)
        with server.begin_push("large", data, int(len(data) * sent), "commit=true") as connection:
            until(server.running)
            server.process.send_signal(signal.SIGTERM)
            status, _, body, _ = read_answer(connection)
            assert status == 503 and b"shutting down" in body
            assert server.process.wait(30) == 0


def test_drain_refuses_what_begins_and_serves_the_old_weights():
    with AdminServer(f"fake={FAKE}", flags=["--drain-grace", "2s"]) as server:
        server.process.send_signal(signal.SIGTERM)
        until(lambda: server.get("/v2/health/ready").status == 503)
        answer = server.push("fake", GOOD, "commit=true")
        assert answer.status == 503
        assert server.ones() == (STORED, 1)
        assert server.process.wait(30) == 0


def test_pushes_until_the_end():
    """A server that is stopped during updates exits with 0, and cuts no answer short."""
    with AdminServer(f"fake={FAKE}", flags=["--drain-grace", "100ms"]) as server:
        statuses = []

        def push():
            with contextlib.suppress(ConnectionError, http.client.HTTPException):
                while True:
                    statuses.append(server.push("fake", GOOD, "commit=true&async=1").status)
                    assert statuses[-1] in (200, 202, 409, 503)

        with threads(*[push] * 3):
            until(lambda: statuses.count(202) > 20)
            assert server.stop() == 0
