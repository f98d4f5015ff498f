"""Triton's extensions: shared memory, classification, compression, trace and log settings; request ids and traces."""
import contextlib
import gzip
import http.client
import json
import os
import re
import struct
import subprocess
import time
import uuid
import zlib

import pytest
from serving import FAIL_INPUT, FAKE_MODELS, PACKAGES, PROGRAM, Server, no_descriptors, numbers, until

FAKE = f"fake={FAKE_MODELS / 'fake_model.so'}"
LAST = "several.channels_last"
IMAGE = [float(i) for i in range(60)]
BODY = {"inputs": [{"name": "INPUT__0", "datatype": "FP32", "shape": [1, 3, 4, 5], "data": IMAGE}]}


@pytest.fixture(scope="module")
def open_server(tmp_path_factory):
    """A server with the extensions that are off by default."""
    files = tmp_path_factory.mktemp("files")
    (files / "labels").write_text("".join(f"class {i}\n" for i in range(10)))
    with Server(FAKE, PACKAGES / "several.pt2",
                flags=["--allow-shared-memory", "true", "--http-admin", "true", "--compress-above", "64",
                       "--max-inflated-bytes", "1M", "--trace-file", files / "trace.json", "--set",
                       f"{LAST}.labels={files / 'labels'}"]) as running:
        running.files = files
        yield running


@pytest.mark.parametrize("labels, reason", [("/dev/zero", "not a regular file"), ("huge", "more than 16777216 bytes"),
                                            ("absent", "cannot open")])
def test_labels_that_are_no_file_or_too_large(tmp_path, labels, reason):
    """A device without end, or what somebody put into a bucket, takes no memory."""
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 40)
    ended = subprocess.run([PROGRAM, "serve", *(part for name in ("http", "metrics", "admin") for part in (f"--{name}", "127.0.0.1:0")),
                            "--set", f"{LAST}.labels={tmp_path / labels}",
                            str(PACKAGES / "several.pt2")], capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0 and reason in ended.stderr


class Region:
    """A POSIX shared-memory object."""

    def __init__(self, size):
        self.key = f"/sconce-test-{uuid.uuid4().hex}"
        self.path = "/dev/shm" + self.key
        with open(self.path, "wb") as file:
            file.truncate(size)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.unlink(self.path)

    def put(self, data, at=0):
        with open(self.path, "r+b") as file:
            file.seek(at)
            file.write(data)

    def bytes(self):
        with open(self.path, "rb") as file:
            return file.read()


def register(server, name, region, size, offset=0, key=None):
    body = {"key": key or region.key, "offset": offset, "byte_size": size}
    return server.post(f"/v2/systemsharedmemory/region/{name}/register", body)


def shared(name, size, offset=0):
    return {"shared_memory_region": name, "shared_memory_byte_size": size, "shared_memory_offset": offset}


def test_shared_memory_is_off_by_default(server):
    with Region(64) as region:
        answer = register(server, "r", region, 64)
        assert answer.status == 403 and "allow_shared_memory" in answer.json["error"]
    assert server.get("/v2/systemsharedmemory/status").json == []
    body = {"inputs": [{"name": "INPUT__0", "datatype": "FP32", "shape": [1, 4], "parameters": shared("r", 16)}]}
    assert server.post("/v2/models/fake/infer", body).status == 403
    assert "system_shared_memory" not in server.get("/v2").json["extensions"]
    for kind in ("systemsharedmemory", "cudasharedmemory"):
        for path in ("unregister", "region/r/unregister"):
            answer = server.post(f"/v2/{kind}/{path}", b"")
            assert (answer.status, answer.body) == (200, b"")


def test_tensors_in_shared_memory(open_server):
    server = open_server
    assert "system_shared_memory" in server.get("/v2").json["extensions"]
    with Region(1024) as region:
        region.put(struct.pack("<60f", *IMAGE), 16)
        assert register(server, "in", region, 256, 16).body == b""
        assert register(server, "out", region, 512, 512).status == 200
        names = {r["name"]: (r["offset"], r["byte_size"]) for r in server.get("/v2/systemsharedmemory/status").json}
        assert names == {"in": (16, 256), "out": (512, 512)}
        one = server.get("/v2/systemsharedmemory/region/in/status").json
        assert one == [{"name": "in", "key": region.key, "offset": 16, "byte_size": 256}]
        body = {"inputs": [{"name": "INPUT__0", "datatype": "FP32", "shape": [1, 3, 4, 5],
                            "parameters": shared("in", 240)}],
                "outputs": [{"name": "RESULT[1]", "parameters": shared("out", 300, 4)}, {"name": "RESULT[0]"}]}
        answer = server.post(f"/v2/models/{LAST}/infer", body)
        assert answer.status == 200, answer.body
        whole, plain = answer.json["outputs"]
        assert whole == {"name": "RESULT[1]", "datatype": "FP32", "shape": [1, 3, 4, 5]}
        assert len(plain["data"]) == 20
        assert struct.unpack("<60f", region.bytes()[516:756]) == tuple(2 * v for v in IMAGE)

        def refused(text, inputs=None, outputs=None):
            bad = {"inputs": [{**body["inputs"][0], **(inputs or {})}], "outputs": outputs or []}
            answer = server.post(f"/v2/models/{LAST}/infer", bad)
            assert answer.status in (400, 404) and text in answer.json["error"], answer.body

        refused("unexpected total byte size", {"parameters": shared("in", 236)})
        refused("invalid offset", {"parameters": shared("in", 240, 17)})
        refused("invalid offset", {"parameters": shared("in", 240, 2**64 - 1)})
        refused("Unable to find", {"parameters": shared("none", 240)})
        refused("byte_size", {"parameters": {"shared_memory_region": "in"}})
        refused("other data", {"data": IMAGE})
        refused("at least 240 bytes", outputs=[{"name": "RESULT[1]", "parameters": shared("out", 239)}])
        refused("neither", outputs=[{"name": "RESULT[1]", "parameters": {**shared("out", 240), "binary_data": True}}])
        # An owner that makes its object smaller gets an error, whichever way the bytes go.
        os.truncate(region.path, 100)
        refused("has become smaller")
        region.put(struct.pack("<60f", *IMAGE), 16)
        refused("has become smaller", outputs=[{"name": "RESULT[1]", "parameters": shared("out", 240)}])
        assert server.post("/v2/systemsharedmemory/region/in/unregister", b"").status == 200
        assert server.post("/v2/systemsharedmemory/unregister", b"").status == 200
        assert server.get("/v2/systemsharedmemory/status").json == []
        assert server.get("/v2/systemsharedmemory/region/in/status").status == 404


def test_bad_regions(open_server):
    server = open_server
    with Region(64) as region:
        assert register(server, "r", region, 64).status == 200
        again = register(server, "r", region, 64)
        assert again.status == 400 and "already in manager" in again.json["error"]
        for size, offset in ((65, 0), (64, 1), (1, 2**64 - 1), (2**64 - 1, 1), (0, 0)):
            assert register(server, "s", region, size, offset).status == 400
        for key in ("x", "/../x", "/a/b", "/", "/.hidden", "/nope-" + uuid.uuid4().hex, "/a\0b"):
            assert register(server, "s", region, 64, key=key).status == 400
        for body in (b"", b"[]", b'{"key":1}', b"[" * 60000, {"key": region.key}):
            assert server.post("/v2/systemsharedmemory/region/s/register", body).status == 400
        assert [r["name"] for r in server.get("/v2/systemsharedmemory/status").json] == ["r"]
        fds = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        for i in range(50):
            register(server, "s", region, 65)
        assert len(os.listdir(f"/proc/{server.process.pid}/fd")) <= fds + 2
        server.post("/v2/systemsharedmemory/unregister", b"")


def test_a_region_that_the_server_cannot_open_is_no_mistake_of_the_client(open_server):
    server = open_server
    with Region(64) as region:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.connect()

        def ask():
            body = json.dumps({"key": region.key, "offset": 0, "byte_size": 64})
            connection.request("POST", "/v2/systemsharedmemory/region/r/register", body)
            answer = connection.getresponse()
            return answer.status, answer.read()

        assert ask()[0] == 200
        server.post("/v2/systemsharedmemory/unregister", b"")
        with no_descriptors(server):
            status, text = ask()
            assert status == 500 and b"Too many open files" in text
        assert ask()[0] == 200
        server.post("/v2/systemsharedmemory/unregister", b"")
        connection.close()


def classify(server, outputs, rows=1, binary=False):
    outputs = [{"name": n, "parameters": {"classification": k, "binary_data": binary}} for n, k in outputs.items()]
    data = (IMAGE[::-1] * rows)[:60 * rows]
    return server.post(f"/v2/models/{LAST}/infer", {"inputs": [
        {"name": "INPUT__0", "datatype": "FP32", "shape": [rows, 3, 4, 5], "data": data}], "outputs": outputs})


def test_classification(open_server, server):
    output, = classify(server, {"RESULT[1]": 3}, rows=2).json["outputs"]
    assert output == {"name": "RESULT[1]", "datatype": "BYTES", "shape": [2, 3],
                      "data": ["118.000000:0", "116.000000:1", "114.000000:2"] * 2}
    output, = classify(open_server, {"RESULT[1]": 2}).json["outputs"]
    assert output["data"] == ["118.000000:0:class 0", "116.000000:1:class 1"]
    assert classify(server, {"RESULT[0]": 99}).json["outputs"][0]["shape"] == [1, 20]
    answer = classify(server, {"RESULT[1]": 1}, binary=True)
    length = int(answer.headers["Inference-Header-Content-Length"])
    assert json.loads(answer.body[:length])["outputs"][0]["parameters"] == {"binary_data_size": 16}
    assert answer.body[length:] == struct.pack("<I", 12) + b"118.000000:0"
    assert "data" in classify(server, {"RESULT[1]": 0}).json["outputs"][0]
    assert classify(server, {"RESULT[1]": -1}).status == 400


@pytest.mark.parametrize("coding, pack", [("gzip", gzip.compress), ("deflate", zlib.compress), ("x-gzip", gzip.compress)])
def test_compressed_requests(server, coding, pack):
    plain = server.post(f"/v2/models/{LAST}/infer", BODY).json
    packed = pack(json.dumps(BODY).encode())
    answer = server.post(f"/v2/models/{LAST}/infer", packed, {"Content-Encoding": coding})
    assert answer.json == plain and "Content-Encoding" not in answer.headers
    # The JSON's length is of the plain bytes.
    header = json.dumps({"inputs": [{"name": "INPUT__0", "shape": [1, 3, 4, 5], "datatype": "FP32",
                                     "parameters": {"binary_data_size": 240}}]}).encode()
    answer = server.post(f"/v2/models/{LAST}/infer", pack(header + struct.pack("<60f", *IMAGE)),
                         {"Content-Encoding": coding, "Inference-Header-Content-Length": str(len(header))})
    assert answer.json == plain
    for bad in (packed[:-1], packed[:10], packed + b"x", b"", b"no such thing", packed[:20] + b"\0" + packed[21:]):
        assert server.post(f"/v2/models/{LAST}/infer", bad, {"Content-Encoding": coding}).status == 400
    assert server.post(f"/v2/models/{LAST}/infer", packed, {"Content-Encoding": "br"}).status == 415
    assert server.post(f"/v2/models/{LAST}/infer", packed, {"Content-Encoding": "gzip, gzip"}).status == 415


def test_what_a_body_decompresses_to_is_limited(open_server):
    bombs = [gzip.compress(bytes(n)) for n in (2**20 + 1, 100 * 2**20)]
    before = open_server.memory_kb()
    for bomb in bombs * 50:
        answer = open_server.post("/v2/models/fake/infer", bomb, {"Content-Encoding": "gzip"})
        assert answer.status == 413 and "max_inflated_bytes" in answer.json["error"]
    assert open_server.grown_kb(before) < 64 * 1024  # 100 MiB would be used if they were kept
    fits = b'{"inputs":[{"name":"INPUT__0","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}]}'
    fits += b" " * (2**20 - len(fits))
    assert open_server.post("/v2/models/fake/infer", gzip.compress(fits), {"Content-Encoding": "gzip"}).status == 200


@pytest.mark.parametrize("accept, coding", [
    ("gzip", "gzip"), ("deflate", "deflate"), ("gzip, deflate", "gzip"), ("deflate;q=0.9, gzip;q=0.5", "deflate"),
    ("identity, gzip;q=0.5", None), ("*", None), ("br", None), ("gzip;q=0", None), ("gzip;q=x", None), ("", None)])
def test_compressed_answers(open_server, accept, coding):
    plain = open_server.post(f"/v2/models/{LAST}/infer", BODY).json
    answer = open_server.post(f"/v2/models/{LAST}/infer", BODY, {"Accept-Encoding": accept})
    assert answer.headers["Content-Encoding"] == coding
    body = {"gzip": gzip.decompress, "deflate": zlib.decompress, None: bytes}[coding](answer.body)
    assert json.loads(body) == plain
    assert "Content-Encoding" not in open_server.get("/v2", headers={"Accept-Encoding": "gzip"}).headers


def test_answers_are_not_compressed_unless_it_is_asked_for(server):
    answer = server.post(f"/v2/models/{LAST}/infer", BODY, {"Accept-Encoding": "gzip, deflate"})
    assert "Content-Encoding" not in answer.headers and answer.json


def test_control_routes_are_closed_on_the_public_listener(server):
    for path in ("/v2/trace/setting", "/v2/models/fake/trace/setting", "/v2/logging"):
        for answer in (server.get(path), server.post(path, {}), server.post(path, b"[")):
            assert answer.status == 403
        assert server.get(path, port=server.admin_port).status == 200
    for action in ("load", "unload"):
        assert server.post(f"/v2/repository/models/fake/{action}", b"").status == 403


def test_log_settings(open_server):
    expected = {"log_file": "", "log_info": True, "log_warning": True, "log_error": True, "log_verbose_level": 0,
                "log_format": "ISO8601"}
    assert open_server.get("/v2/logging").json == expected
    changed = open_server.post("/v2/logging", {"log_info": False, "log_verbose_level": 1, "log_format": "default"})
    assert changed.json == {**expected, "log_info": False, "log_verbose_level": 1, "log_format": "default"}
    for body, status in (({"log_file": "/tmp/x"}, 403), ({"log_info": "no"}, 400), ({"log_format": "x"}, 400),
                         ({"log_verbose_level": -1}, 400), ({"other": 1}, 400), ([], 400)):
        assert open_server.post("/v2/logging", body).status == status
    assert open_server.post("/v2/logging", expected | {"log_file": None}).status == 403
    del expected["log_file"]
    assert open_server.post("/v2/logging", expected).json == {"log_file": "", **expected}


def test_trace_settings(open_server):
    server = open_server
    start = {"trace_level": ["OFF"], "trace_rate": "1000", "trace_count": "-1", "log_frequency": "0",
             "trace_file": str(server.files / "trace.json"), "trace_mode": "triton"}
    assert server.get("/v2/trace/setting").json == start
    one = server.post("/v2/models/fake/trace/setting", {"trace_level": ["TIMESTAMPS"], "trace_rate": "7"}).json
    assert one == {**start, "trace_level": ["TIMESTAMPS"], "trace_rate": "7"}
    assert server.get("/v2/trace/setting").json == start
    assert server.post("/v2/trace/setting", {"trace_rate": "5", "trace_count": "10"}).json["trace_count"] == "10"
    assert server.get("/v2/models/fake/trace/setting").json["trace_count"] == "10"
    assert server.get("/v2/models/fake/trace/setting").json["trace_rate"] == "7"
    cleared = server.post("/v2/models/fake/trace/setting", {"trace_level": None, "trace_rate": None}).json
    assert cleared == server.get("/v2/trace/setting").json
    assert server.post("/v2/trace/setting", {"trace_rate": None, "trace_count": None}).json == start
    for body, status in (({"trace_file": "/tmp/x"}, 403), ({"trace_rate": "0"}, 400),
                         ({"trace_rate": 5}, 400), ({"trace_rate": "5x"}, 400), ({"trace_count": "-2"}, 400),
                         ({"trace_level": ["LOUD"]}, 400), ({"trace_mode": "opentelemetry"}, 403), ({"x": 1}, 400)):
        assert server.post("/v2/trace/setting", body).status == status, body
    assert server.get("/v2/models/nope/trace/setting").status == 404
    assert server.get("/v2/trace/setting").json == start


def read_trace(path):
    """Reads again while a record is only partly written."""
    def events():
        text = path.read_text()
        with contextlib.suppress(json.JSONDecodeError):
            return json.loads(text if text.endswith("]\n") else text + "]")

    return until(events, why=lambda: "no JSON: " + path.read_text()[-200:])


def test_traces_in_chrome_format(open_server):
    server = open_server
    server.post("/v2/trace/setting", {"trace_level": ["TIMESTAMPS"], "trace_rate": "3", "trace_count": "4"})
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for i in range(6):
        headers = {"X-Request-Id": f"r{i}"}
        if i == 1:
            headers["traceparent"] = parent
        if i == 2:
            headers["traceparent"] = parent[:-1] + "0"
        server.post(f"/v2/models/{LAST}/infer", BODY, headers)
    server.post(f"/v2/models/{LAST}/infer", b"{", {"traceparent": parent})
    server.post(f"/v2/models/{LAST}/infer", BODY, {"traceparent": parent})  # the fifth request is not traced, because trace_count is used up
    server.post("/v2/trace/setting", {"trace_level": ["OFF"], "trace_count": None, "trace_rate": None})
    until(lambda: sum(e["name"] == "request" for e in read_trace(server.files / "trace.json")) >= 4)
    events = read_trace(server.files / "trace.json")
    whole = sorted((e for e in events if e["name"] == "request"), key=lambda e: e["ts"])  # the file has them in the order in which they ended
    assert [e["args"]["id"] for e in whole][:3] == ["r0", "r1", "r3"] and len(whole) == 4
    assert whole[1]["args"]["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert whole[1]["args"]["parent_span_id"] == "00f067aa0ba902b7"
    assert whole[3]["args"]["status"] == 400
    first = {e["name"]: e for e in events if e["tid"] == whole[0]["tid"]}
    assert set(first) == {"request", "decode", "queue", "compute", "encode", "send"}
    assert abs(first["request"]["ts"] / 1e6 - time.time()) < 60
    assert all(e["ts"] >= first["request"]["ts"] - 0.01 and e["dur"] >= 0 for e in first.values())
    assert sum(e["dur"] for n, e in first.items() if n != "request") <= first["request"]["dur"] + 0.01


def test_tensors_in_traces(tmp_path):
    with Server(FAKE, PACKAGES / "several.pt2",
                flags=["--trace-file", tmp_path / "t", "--trace-rate", "1", "--http-admin", "true",
                       "--trace-tensor-elements", "6"]) as server:
        def infer(row):
            return server.post("/v2/models/fake/infer", numbers(row), {"X-Request-Id": f"n{len(row)}"})

        off = server.get("/v2/trace/setting").json
        one = server.post("/v2/models/fake/trace/setting", {"trace_level": ["TENSORS"]}).json
        assert one == {**off, "trace_level": ["TENSORS"]} and server.get("/v2/trace/setting").json == off
        assert infer([1, 2.5, -3, 1e20]).status == 200
        assert infer([0.0] * 3).status == 400
        both = server.post("/v2/trace/setting", {"trace_level": ["TIMESTAMPS", "TENSORS"]}).json
        assert both["trace_level"] == ["TIMESTAMPS", "TENSORS"]
        assert server.post("/v2/models/fake/trace/setting", {"trace_level": None}).json == both
        assert infer([1, 2, 3, 4] * 2).status == 200
        assert infer([1, 2, 3, float("nan")]).status == 200
        assert server.post(f"/v2/models/{LAST}/infer", BODY).status == 200  # other strides
        assert server.post("/v2/trace/setting", {"trace_level": "OFF"}).json["trace_level"] == ["OFF"]
        infer([1, 2, 3, 4] * 3)
        assert server.post("/v2/trace/setting", {"trace_file": "/tmp/x", "trace_level": ["TENSORS"]}).status == 403
        assert server.stop() == 0
    events = json.loads((tmp_path / "t").read_text())
    rows = {}
    for event in events:
        rows.setdefault(event["tid"], []).append(event)
    first, bad, long, odd, image = (rows[key] for key in sorted(rows))
    assert [e["name"] for e in first] == ["request", "TENSOR_QUEUE_INPUT", "TENSOR_BACKEND_OUTPUT"]
    assert first[1]["args"] == {"id": "n4", "tensor": {"name": "ARGS[0]", "data": "1.0,2.5,-3.0,1e+20", "shape": "1,4",
                                                        "dtype": "FP32"}}
    assert first[2]["args"]["tensor"]["data"].startswith("1.0,15.0,11.0,") and first[2]["ph"] == "i"
    assert [e["name"] for e in bad] == ["request"] and bad[0]["args"]["status"] == 400
    assert {e["name"] for e in long} >= {"request", "compute", "TENSOR_QUEUE_INPUT", "TENSOR_BACKEND_OUTPUT"}
    cut = [e["args"]["tensor"] for e in long if e["ph"] == "i"]
    assert cut[0] == {"name": "ARGS[0]", "data": "1.0,2.0,3.0,4.0,1.0,2.0", "shape": "2,4", "dtype": "FP32",
                      "truncated": True}
    assert cut[1]["data"] == "1.0,14.0,29.0,46.0,1.0,14.0"
    whole = next(e for e in long if e["name"] == "request")
    assert all(whole["ts"] <= e["ts"] <= whole["ts"] + whole["dur"] + 0.01 for e in long)
    assert [e["args"]["tensor"]["data"].split(",")[3] for e in odd if e["ph"] == "i"] == ["NaN"] * 2
    tensors = {e["args"]["tensor"]["name"]: e["args"]["tensor"] for e in image if e["ph"] == "i"}
    assert tensors["RESULT[1]"]["data"] == "0.0,2.0,4.0,6.0,8.0,10.0" and tensors["RESULT[1]"]["shape"] == "1,3,4,5"


def test_trace_files_of_so_many_records(tmp_path):
    with Server(FAKE, flags=["--trace-file", tmp_path / "t", "--trace-level", "timestamps", "--trace-rate", "1",
                             "--http-admin", "true"]) as server:
        server.post("/v2/models/fake/infer", BODY)
        assert server.post("/v2/models/fake/trace/setting", {"log_frequency": "2"}).status == 400
        assert server.post("/v2/trace/setting", {"log_frequency": "2"}).json["log_frequency"] == "2"
        for _ in range(5):
            server.post("/v2/models/fake/infer", BODY)
        assert server.stop() == 0
    counts = {path.name: sum(e["name"] == "request" for e in json.loads(path.read_text())) for path in tmp_path.iterdir()}
    first = counts.pop("t")  # the new setting may arrive before the first record was written
    assert first in (0, 1) and counts == ({"t.0": 2, "t.1": 2, "t.2": 1} if first else {"t.0": 2, "t.1": 2, "t.2": 2})


def test_traces_in_otlp_format(tmp_path):
    with Server(FAKE, flags=["--trace-file", tmp_path / "t", "--trace-format", "otlp", "--trace-level", "tensors",
                             "--trace-rate", "1", "--trace-tensor-elements", "3"]) as server:
        assert server.get("/v2/trace/setting", port=server.admin_port).json["trace_level"] == [
            "TIMESTAMPS", "TENSORS"]
        row = numbers([1, 2, 3, 4])
        assert server.post("/v2/models/fake/infer", row).status == 200
        traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
        assert server.post("/v2/models/fake/infer", row, {"traceparent": traceparent}).status == 200
        assert server.stop() == 0
    lines = [json.loads(line) for line in (tmp_path / "t").read_text().splitlines()]
    spans = [line["resourceSpans"][0]["scopeSpans"][0]["spans"] for line in lines]
    spans.sort(key=lambda list_of_spans: int(list_of_spans[0]["startTimeUnixNano"]))
    assert len(spans) == 2
    for list_of_spans in spans:
        root = list_of_spans[0]
        assert [s["name"] for s in list_of_spans] == ["POST /v2/models/{model}/infer", "decode", "queue", "compute", "encode", "send"]
        assert all(re.fullmatch("[0-9a-f]{16}", s["spanId"]) and s["traceId"] == root["traceId"] for s in list_of_spans)
        assert all(s["parentSpanId"] == root["spanId"] for s in list_of_spans[1:])
        assert all(int(s["startTimeUnixNano"]) <= int(s["endTimeUnixNano"]) for s in list_of_spans)
        attributes = [{a["key"]: a["value"] for a in event["attributes"]} for event in root["events"]]
        assert [event["name"] for event in root["events"]] == ["TENSOR_QUEUE_INPUT", "TENSOR_BACKEND_OUTPUT"]
        assert attributes[0] == {"tensor.name": {"stringValue": "ARGS[0]"}, "tensor.dtype": {"stringValue": "FP32"},
                                 "tensor.shape": {"stringValue": "1,4"}, "tensor.data": {"stringValue": "1.0,2.0,3.0"},
                                 "tensor.truncated": {"boolValue": True}}
    assert spans[1][0]["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert spans[1][0]["parentSpanId"] == "00f067aa0ba902b7" and spans[0][0]["parentSpanId"] == ""


@pytest.mark.parametrize("field", [
    "", "00", "00-0-0-01", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
    "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
    "0" * 5000])
def test_malformed_traceparents_count_as_absent(open_server, field):
    open_server.post("/v2/trace/setting", {"trace_level": ["TIMESTAMPS"], "trace_rate": "1000000"})
    answer = open_server.post(f"/v2/models/{LAST}/infer", BODY, {"traceparent": field})
    assert answer.status == 200
    open_server.post("/v2/trace/setting", {"trace_level": ["OFF"], "trace_rate": None})




@pytest.mark.parametrize("inline", ["200us", "0"])
def test_statistics_to_the_unit(inline):
    """Counts successes, failures of each kind and runs exactly, for runs on the I/O thread and through the queue."""
    with Server(f"m={FAKE_MODELS / 'fake_batched.pt2'}", flags=["--inline-below", inline]) as server:
        def infer(rows, first=1.0):
            return server.infer("m", {"INPUT__0": ("FP32", [rows, 4], [first, 2, 3, 4] * rows)}).status

        before = server.get("/v2/models/m/stats").json["model_stats"][0]
        assert [infer(3) for _ in range(10)] == [200] * 10
        assert [infer(0) for _ in range(4)] == [200] * 4
        assert [infer(1, FAIL_INPUT) for _ in range(3)] == [500] * 3
        for body in (b"{", b"", b'{"inputs":[]}', b"[]", b"null"):
            assert server.post("/v2/models/m/infer", body).status == 400
        for _ in range(2):
            assert server.post("/v2/models/none/infer", b"{}").status == 404
        after = server.get("/v2/models/m/stats").json["model_stats"][0]

        def grown(*path):
            old, new = before, after
            for key in path:
                old, new = old[key], new[key]
            return new - old

        assert grown("inference_count") == 30 and grown("execution_count") == 14
        for name in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
            assert grown("inference_stats", name, "count") == 14, name
        assert grown("inference_stats", "fail", "count") == 8
        batches = {b["batch_size"]: b["compute_infer"]["count"] for b in after["batch_stats"]}
        assert batches[3] == 10 and batches[0] == 4
        metrics = server.metrics()
        assert metrics['nv_inference_request_success{model="m",version="1"}'] == after["inference_stats"]["success"]["count"]
        assert metrics['nv_inference_request_failure{model="m",reason="BACKEND",version="1"}'] == 3
        assert metrics['nv_inference_request_failure{model="m",reason="OTHER",version="1"}'] == 5
        assert metrics['sconce_http_responses_total{code="500",route="/v2/models/{model}/infer"}'] == 3


def test_request_ids():
    with Server(FAKE, flags=["--access-log", "true"]) as server:
        answer = server.get("/v2", headers={"X-Request-Id": "mine-1"})
        assert answer.headers["X-Request-Id"] == "mine-1"
        assert "X-Request-Id" not in server.get("/v2").headers
        failed = server.get("/v2/nope").headers["X-Request-Id"]
        assert re.fullmatch("[0-9a-f]{16}", failed)
        for bad in ("a b", "x" * 129, "caf\u00e9"):
            answer = server.get("/v2", headers={"X-Request-Id": bad.encode("latin-1")})
            assert answer.status == 200 and "X-Request-Id" not in answer.headers
        load = server.post("/v2/repository/models/fake/load", b"", {"X-Request-Id": "load-7"},
                           port=server.admin_port)
        assert load.status == 200
        released = server.post("/v2/admin/models/fake/weights/release", b"", {"X-Request-Id": "admin-8"},
                               port=server.admin_port)
        assert released.status == 200
        server.stop()
        log = [line for line in server.log if "status=" in line or "load-7" in line or "admin-8" in line]
    assert any("GET /v2 status=200" in line and line.endswith(" id=mine-1\n") for line in log)
    assert any("GET /v2/nope status=404" in line and f"id={failed}" in line for line in log)
    assert all(" id=" in line for line in log)
    # Two lines each have the id: that of the access, and one of the thread that did the work.
    assert sum("id=load-7" in line for line in log) >= 2 and sum("id=admin-8" in line for line in log) >= 2


def test_log_as_json_lines():
    with Server(FAKE, flags=["--access-log", "true", "--log-format", "json"], wait=False) as server:
        server.wait_ready()
        with server.connect() as connection:
            connection.sendall(b"GET /v2/models/\"\\%22 HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a\"b\\c\r\n\r\n")
            connection.recv(4096)
        server.stop()
        lines = [json.loads(line) for line in server.log]
    assert all({"time", "level", "message"} <= set(line) for line in lines)
    access = [line for line in lines if "status" in line]
    assert all(isinstance(line["status"], int) and isinstance(line["us"], int) and line["id"] for line in access)
    assert any(line["id"] == 'a"b\\c' for line in access)


def test_openapi(server):
    document = server.get("/openapi.json").json
    assert document["openapi"].startswith("3.") and document["info"]["title"] == "Sconce"
    assert "post" in document["paths"]["/v2/models/{model}/infer"]
    assert "/v2/admin/models/{model}/weights" not in document["paths"]
    admin = server.get("/openapi.json", port=server.admin_port).json
    assert {"get", "post", "parameters"} == set(admin["paths"]["/v2/admin/models/{model}/weights"])
    text = json.dumps(document)
    for name in re.findall(r"#/components/schemas/(\w+)", text):
        assert name in document["components"]["schemas"]
