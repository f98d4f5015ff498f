"""Hostile and broken requests: each has its status, the server lives, and its memory does not grow.

Here are floods, and every rule for every datatype. test_http.py has errors in the framing of single connections.
"""
import concurrent.futures
import gzip
import http.client
import json
import random
import re
import socket
import struct
import threading
import time
import zipfile

import pytest
from serving import (ENDLESS, FAKE_MODELS, PACKAGES, PROGRAM, SLEEP_INPUT, Server, read_all, read_answer, threads, unread,
                     until)

DTYPES = [("BOOL", 1), ("UINT8", 1), ("INT8", 1), ("INT16", 2), ("INT32", 4), ("INT64", 8), ("FP16", 2), ("BF16", 2),
          ("FP32", 4), ("FP64", 8), ("FP32", 4), ("UINT8", 1)]  # the inputs of several.dtypes; [10] is complex64
LAST = "several.channels_last"
GROWTH_KB = 64 * 1024  # two segments, which the allocator may keep for a while


@pytest.fixture(scope="module")
def target():
    with Server(f"fake={FAKE_MODELS / 'fake_model.so'}", PACKAGES / "several.pt2",
                flags=["--set", "fake.queue=4", "--max-body-bytes", "8M", "--header-timeout", "700ms", "--max-inflated-bytes",
                       "1M", "--allow-shared-memory", "true"]) as running:
        for _ in range(20):  # memory that is taken once does not count
            valid(running)
        yield running


def valid(server):
    answer = server.infer(LAST, {"ARGS[0]": ("FP32", [1, 3, 4, 5], [1.5] * 60)})
    assert answer.status == 200
    return answer


@pytest.fixture(autouse=True)
def memory_and_life(target):
    """After each test the server still answers, with about the same memory."""
    before = target.memory_kb()
    yield
    valid(target)
    # Idle connections free their memory.
    until(lambda: target.grown_kb(before) < GROWTH_KB, why=lambda: f"grew by {target.grown_kb(before)} kB")
    assert target.process.poll() is None


def head(method=b"POST", path=b"/v2/models/fake/infer", extra=b""):
    return method + b" " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + extra


def statuses(data):
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) [A-Z]", data)]


# Floods.

def test_slow_headers_hold_up_nobody(target):
    """500 connections trickle bytes and get 408; others are answered meanwhile."""
    def late():
        return sum(count for name, count in target.metrics().items()
                   if name.startswith("sconce_http_responses_total") and 'code="408"' in name)

    before = late()
    slow = [target.connect() for _ in range(500)]
    text = head(b"GET", b"/v2")
    for i in range(6):
        for connection in slow:
            try:
                connection.sendall(text[i:i + 1])
            except OSError:
                pass  # the server refused it already, because this machine is slow
        valid(target)
        until(lambda: unread(slow[-1]) == 0)  # so that bytes come one by one
    for connection in slow:
        assert statuses(read_all(connection)) in ([408], [])
        connection.close()
    until(lambda: late() - before == 500, 60, lambda: f"{late() - before} of 500 were refused")


def test_chunk_floods(target):
    """One byte in each of 65,537 chunks, a hundred times."""
    before = target.memory_kb()
    flood = head(extra=b"Transfer-Encoding: chunked\r\n") + b"\r\n" + b"1\r\nx\r\n" * 65537 + b"0\r\n\r\n"
    for _ in range(100):
        data = target.raw(flood)
        assert statuses(data) in ([400], []), data[:200]
    assert target.grown_kb(before) < 16 * 1024  # 65 MiB would be used if they were kept


def test_header_floods(target):
    before = target.memory_kb()
    for extra in (b"X: " + b"a" * 2**20 + b"\r\n", b"X: y\r\n" * 100_000, b"X" * 2**20):
        for _ in range(20):
            assert statuses(target.raw(head(extra=extra) + b"\r\n")) in ([431], [400], [])
    assert target.grown_kb(before) < 16 * 1024  # 30 MiB would be used if they were kept


def test_gzip_bombs(target):
    """A thousand to one, on many connections at once; and a hundred bodies that are damaged."""
    bomb = gzip.compress(bytes(64 * 2**20))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda _: target.post("/v2/models/fake/infer", bomb, {"Content-Encoding": "gzip"}), range(40))
        assert {a.status for a in answers} == {413}
    garbage = gzip.compress(random.Random(1).randbytes(2**20))
    for i in range(100):
        bad = garbage[:100 + i * 1000] + b"\0\0\0" + garbage[103 + i * 1000:]
        assert target.post("/v2/models/fake/infer", bad, {"Content-Encoding": "gzip"}).status == 400


ROUTES = ["/v2/models/fake/infer", "/v2/models/fake/generate", "/v1/models/fake:predict", "/v1/models/fake:call",
          "/v2/repository/index", "/v2/systemsharedmemory/region/r/register"]


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("body", [
    b"[" * 200_000, b"{\"a\":" * 200_000, b"{\"inputs\":" + b"[" * 200_000, b"{\"instances\":" + b"[" * 200_000,
    b"{\"parameters\":{\"x\":" + b"[" * 200_000, b"{\"args\":" + b"[{\"a\":" * 100_000, b"\"" + b"\\" * 200_000,
    b"{\"\\ud800\":1}", b"\xff\xfe", b"{\"a\":1e999999}", b"-", b"nul", b"{}x", b"{\"a\":1,}", b"\0", b"{\"a\":01}",
    b"{\"inputs\":{}}", b"{\"inputs\":[null]}", b"{\"inputs\":[[]]}", b"{\"key\":[],\"byte_size\":{}}"],
    ids=range(20))
def test_json_that_is_none(target, path, body):
    answer = target.post(path, body)
    if path.endswith("index") and body.startswith(b"{\"") and answer.status == 200:
        json.loads(body)  # valid JSON whose members the route does not know
        return
    # Other routes take 64 KiB at most.
    assert answer.status == (400 if "models" in path or len(body) <= 65536 else 413), answer.body
    assert answer.json["error"]


def test_many_of_everything(target):
    """A million dimensions, inputs, outputs, parameters."""
    one = {"name": "INPUT__0", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}
    many = 50_000
    for body in ({"inputs": [{**one, "shape": [1] * 10**6}]}, {"inputs": [one] * many},
                 {"inputs": [{"name": str(i), "shape": [], "datatype": "FP32", "data": [1]} for i in range(many)]},
                 {"inputs": [one], "outputs": [{"name": "OUTPUT__0"}] * many},
                 {"inputs": [{**one, "shape": [10**9, 10**9, 10**9]}]}):
        assert target.post("/v2/models/fake/infer", body).status in (400, 413)
    answer = target.post("/v2/models/fake/infer", {"inputs": [one], "parameters": {str(i): i for i in range(many)}})
    assert answer.status == 200


def test_overload_and_recovery(target):
    """At ten times its capacity, the server refuses at once, and recovers."""
    slow = {"INPUT__0": ("FP32", [1, 4], [SLEEP_INPUT, 0, 0, 0])}
    codes = []
    end = time.time() + 60

    def load():
        while codes.count(429) < 1000 and time.time() < end:
            codes.append(target.infer("fake", slow).status)

    with threads(*[load] * 50):
        pass
    assert set(codes) == {200, 429} and codes.count(429) > codes.count(200)
    assert target.infer("fake", {"INPUT__0": ("FP32", [1, 4], [0] * 4)}).status == 200


# Framing.

def test_smuggled_requests_are_not_answered(target):
    smuggled = b"GET /v2/models/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for extra in (b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n" % (len(smuggled) + 5),
                  b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
                  b"Transfer-Encoding: identity\r\nContent-Length: 0\r\n",
                  b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding: chunked, identity\r\n",
                  b"Content-Length: 0\r\nContent-Length: %d\r\n" % len(smuggled)):
        data = target.raw(head(extra=extra) + b"\r\n" + b"0\r\n\r\n" + smuggled)
        assert len(statuses(data)) == 1 and statuses(data)[0] == 400, (extra, data)


def test_pipelined_requests_are_all_answered(target):
    body = b'{"inputs":[{"name":"INPUT__0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}]}'
    one = head(extra=b"Content-Length: %d\r\n" % len(body)) + b"\r\n" + body
    with target.connect(30) as connection:
        sender = threading.Thread(target=lambda: connection.sendall(one * 2000))
        sender.start()
        data = b""
        for _ in range(2000):
            code, _, _, data = read_answer(connection, data)
            assert code == 200
        sender.join()
        assert data == b""


@pytest.mark.parametrize("at", [1, 3, 4, 5, 20, 30, 40, 41, 42])
def test_request_line_in_two_segments(server, at):
    text = head(b"GET", b"/v2/health/live") + b"\r\n"
    with server.connect() as connection:
        connection.sendall(text[:at])
        until(lambda: unread(connection) == 0)
        connection.sendall(text[at:])
        assert read_answer(connection)[0] == 200


METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"]


def test_every_method_on_every_route(target):
    """A wrong method is 405 and names the right ones; none is a fault of the server."""
    for listener in ("inference", "administration", "metrics"):
        port = target.ports[listener]
        paths = ["/metrics", "/", "/v2/health/live"]
        if listener != "metrics":
            document = target.get("/openapi.json", port=port).json["paths"]
            paths = {p: {m.upper() for m in o} for p, o in document.items()}
        for path in paths:
            url = path.format(model="nope", version="1", region="r", set="s", number="7", file="console.js").replace("{model}", "nope")
            for method in METHODS:
                if path in ENDLESS and method == "GET":
                    continue
                answer = target.request(method, url, b"" if method in ("POST", "PUT", "PATCH") else None, port=port)
                assert answer.status < 500, (method, url, answer.body)
                if listener == "metrics":
                    continue
                known = paths[path] | ({"HEAD"} if "GET" in paths[path] else set())
                assert (answer.status == 405) == (method not in known), (method, url, answer.status)
                if answer.status == 405:
                    assert set(answer.headers["Allow"].split(", ")) == known - {"PARAMETERS"}


NAMES = ["..", ".", "%2e%2e", "..%2f..", "a%2fb", " ", "%00", "%0a", "-", "a" * 200, "..%5c", "%c0%ae%c0%ae", "a:b", "~",
         "%25", "\u00fc".encode().hex(), "con", "etc/passwd", "../../etc/passwd"]


@pytest.mark.parametrize("name", NAMES)
def test_names_in_the_control_routes(target, name):
    """A request that made Triton unready for good, and similar ones."""
    for action in ("load", "unload"):
        for port in (target.ports["administration"], target.port):
            answer = target.post(f"/v2/repository/models/{name.replace(' ', '%20')}/{action}", b"", port=port)
            assert answer.status in (400, 403, 404), (name, answer.status, answer.body)
    assert target.get("/v2/health/ready").status == 200


def test_paths_cannot_be_set(target):
    admin = target.ports["administration"]
    for path, body in (("/v2/trace/setting", {"trace_file": "/tmp/x"}), ("/v2/logging", {"log_file": "/tmp/x"})):
        assert target.post(path, body, port=admin).status == 403
    for parameters in ({"file:1/model.pt2": "AAAA"}, {"config": "{}"}, {"config": "{}", "file:../../x": "AAAA"}):
        answer = target.post("/v2/repository/models/fake/load", {"parameters": parameters}, port=admin)
        assert answer.status == 400


# Tensors: each rule for each datatype.

def tensor(i, shape=None, **more):
    return {"name": f"ARGS[{i}]", "datatype": DTYPES[i][0], "shape": shape if shape is not None else [3] + [2] * (i == 10),
            **more}


def refused(target, entry, words=None, extra=b"", more=()):
    body = json.dumps({"inputs": [entry, *more]}).encode()
    headers = {"Inference-Header-Content-Length": str(len(body))} if extra else {}
    answer = target.post("/v2/models/several.dtypes/infer", body + extra, headers)
    assert answer.status == 400, (entry, answer.status, answer.body)
    if words:
        assert words in answer.json["error"], (entry, answer.body)


@pytest.mark.parametrize("i", range(len(DTYPES)))
def test_every_rule_for_every_datatype(target, i):
    datatype, size = DTYPES[i]
    elements = 6 if i == 10 else 3
    name = f"ARGS[{i}]"
    number = True if datatype == "BOOL" else 1
    has_json = datatype not in ("FP16", "BF16")
    for shape in ([2**61 + 1, 8], [2**63, 1], [2**62, 2**62], [2**64], [-1], [3, -1], [1.5], ["3"], [None], [[3]], "3",
                  [10**30], 3, None, {}):
        refused(target, tensor(i, shape, data=[number] * elements) if shape is not None else
                {**tensor(i, data=[number]), "shape": None})
    refused(target, {k: v for k, v in tensor(i, data=[number]).items() if k != "shape"}, "no 'shape'")
    refused(target, {k: v for k, v in tensor(i, data=[number]).items() if k != "datatype"}, "no 'datatype'")
    refused(target, {k: v for k, v in tensor(i, data=[number]).items() if k != "name"}, "no 'name'")
    for other in {d for d, _ in DTYPES} | {"BYTES", "FP8", "", "fp32"}:
        if other != datatype:
            refused(target, {**tensor(i, data=[number] * elements), "datatype": other})
    # Data of no kind, of two kinds, and too little or too much of it.
    refused(target, tensor(i), "neither")
    refused(target, {**tensor(i, data=[number]), "parameters": {"binary_data_size": size}}, "both")
    for count in (0, 1, elements - 1, elements + 1, 1000):
        refused(target, tensor(i, data=[number] * count))
    for data in (number, "x", {}, None, True):
        refused(target, tensor(i, data=data))
    for value in ("1", None, {}, "NaN"):
        refused(target, tensor(i, data=[number] * (elements - 1) + [value]))
    if datatype == "BOOL":
        for value in (0, 1, 1.0, "true"):
            refused(target, tensor(i, data=[True, False, value]))
    else:
        refused(target, tensor(i, data=[1] * (elements - 1) + [True]))
    if "INT" in datatype:
        bits = size * 8
        low, high = (0, 2**bits) if datatype[0] == "U" else (-2**(bits - 1), 2**(bits - 1))
        for value in (low - 1, high, high + 1, 2**64, -2**64, 10**40, 1.5, 1e300, 256 * 2**bits + 44):
            refused(target, tensor(i, data=[1, 2, value]), name)
        for text in ("NaN", "Infinity", "1e0x", "+1", "0x1", ".5", "01"):
            body = json.dumps({"inputs": [tensor(i, data=[1, 2, 4242])]}).replace("4242", text)
            assert target.post("/v2/models/several.dtypes/infer", body).status == 400, text
    if datatype in ("FP32", "FP64"):
        for text in ("1e999", "-1e999", "nan", "inf", "+Infinity", "0x1p3", "1_0", "--1", "1e"):
            body = json.dumps({"inputs": [tensor(i, data=[1] * (elements - 1) + [4242])]}).replace("4242", text)
            assert target.post("/v2/models/several.dtypes/infer", body).status == 400, text
    if not has_json:
        refused(target, tensor(i, data=[1.0] * elements), "binary data format")
    # Binary: sizes that do not fit, and bytes that are not there or too many.
    good = size * elements
    for declared in (0, good - 1, good + 1, 2**40, 2**63, 2**64 - 1):
        refused(target, tensor(i, parameters={"binary_data_size": declared}), None, bytes(good))
    for declared in (-1, "12", 1.5, None, [], 2**64):
        refused(target, tensor(i, parameters={"binary_data_size": declared}), None, bytes(good))
    refused(target, tensor(i, parameters={"binary_data_size": good}), None, bytes(good - 1))
    refused(target, tensor(i, parameters={"binary_data_size": good}), None, bytes(good + 1))
    refused(target, tensor(i, parameters={"binary_data_size": good}), "twice", bytes(2 * good),
            [tensor(i, parameters={"binary_data_size": good})])


@pytest.mark.parametrize("length", ["-1", "99999999", "1e3", "0x10", "", "18446744073709551616", " 5 5", "2"])
def test_lengths_of_the_json(target, length):
    body = b'{"inputs":[{"name":"INPUT__0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}]}'
    assert target.post("/v2/models/fake/infer", body, {"Inference-Header-Content-Length": length}).status == 400


def test_doubles_come_back_exact(target):
    """Random bit patterns through JSON both ways; the model doubles them."""
    source = random.Random(7)
    numbers = []
    while len(numbers) < 30_000:
        number, = struct.unpack("<d", source.randbytes(8))
        if abs(number) < 2.0**1022 and number == number:
            numbers.append(number)
    # The model takes three at a time: one long request would be refused, so several are under way.
    connection = http.client.HTTPConnection("127.0.0.1", target.port)
    for at in range(0, 3000, 3):
        three = numbers[at:at + 3]
        connection.request("POST", "/v1/models/several.dtypes:call", json.dumps({"args": [
            [True] * 3, [1] * 3, [1] * 3, [1] * 3, [1] * 3, [1] * 3, [1] * 3, [1] * 3, [1] * 3, three, [[1, 1]] * 3,
            [1] * 3]}))
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body
        assert [struct.pack("<d", float(v)) for v in json.loads(body)[9]] == [struct.pack("<d", 2 * v) for v in three]
    connection.close()


def test_64_bit_integers_come_back_exact(target):
    values = [-2**63, 2**63 - 2, 2**53 + 1, -2**53 - 1, 0, 10**18 + 7]
    for at in (0, 3):
        three = values[at:at + 3]
        args = [[True] * 3] + [[1] * 3] * 4 + [three] + [[1] * 3] * 4 + [[[1, 1]] * 3, [1] * 3]
        assert target.post("/v1/models/several.dtypes:call", {"args": args}).json[5] == [v + 1 for v in three]


def test_bytes_that_are_no_text(target):
    for body in (b'{"inputs":[{"name":"\xff\xfe","shape":[1],"datatype":"FP32","data":[1]}]}',
                 b'{"inputs":[{"name":"\\ud800","shape":[1],"datatype":"FP32","data":[1]}]}',
                 b'{"id":"\xff","inputs":[]}', b'{"inputs":[{"name":"a\\u0000b","shape":[1],"datatype":"FP32","data":[1]}]}'):
        answer = target.post("/v2/models/fake/infer", body)
        assert answer.status == 400 and answer.json["error"]
    for path in (b"/v2/models/\xff\xfe/infer", b"/v2/models/%ff%fe/infer"):
        data = target.raw(head(b"GET", path, b"Connection: close\r\n") + b"\r\n")
        assert statuses(data)[0] in (400, 404, 405)
        json.loads(data.split(b"\r\n\r\n", 1)[1])


def test_random_bytes(target):
    """A thousand connections that send noise, and a thousand that send a request with some bytes changed."""
    source = random.Random(11)
    body = b'{"inputs":[{"name":"INPUT__0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}]}'
    request = head(extra=b"Content-Length: %d\r\n" % len(body)) + b"\r\n" + body
    for i in range(600):
        data = bytearray(request)
        for _ in range(source.randint(1, 6)):
            data[source.randrange(len(data))] = source.randrange(256)
        if i % 3 == 0:
            data = source.randbytes(source.randint(1, 300))
        with target.connect() as connection:
            connection.sendall(bytes(data))
            connection.shutdown(socket.SHUT_WR)
            codes = statuses(read_all(connection))
        assert all(code < 500 for code in codes), (bytes(data), codes)


def test_a_package_without_source_takes_no_fewer_dimensions_than_its_code_reads(tmp_path):
    stripped = tmp_path / "mlp.pt2"
    with zipfile.ZipFile(PROGRAM.parent.parent / "tests/server/batching/mlp.pt2") as whole, \
            zipfile.ZipFile(stripped, "w") as left:
        for member in whole.infolist():
            if not member.filename.endswith(".cpp"):
                left.writestr(member, whole.read(member))
    with Server(stripped) as server:
        name = server.get("/v2/models/mlp").json["inputs"][0]["name"]
        for shape in ([3, 64], [1, 64]):
            assert server.infer("mlp", {name: ("FP32", shape, [0.5] * shape[0] * 64)}).status == 200
        for shape in ([64], [128]):
            answer = server.infer("mlp", {name: ("FP32", shape, [0.5] * shape[0])})
            assert answer.status == 400 and "expected at least 2 dimensions, got 1" in answer.json["error"], answer.body
        assert server.infer("mlp", {name: ("FP32", [2, 64], [0.5] * 128)}).status == 200
