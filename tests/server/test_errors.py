"""Errors are short whatever the client sent, have the right status and give a reason."""
import gzip
import json
import re
import socket
import struct

import pytest
from admin_server import FAKE, AdminServer
from serving import ENDLESS, PACKAGES, read_all
from weights_files import content_digest, floats, repeated, safetensors

LONG = "k" * 3_000_000
PATH_LONG = "k" * 9_000
# An error quotes 200 bytes and marks the cut.
CUT = "k" * 150
MOST = 2048
OK = {"name": "INPUT__0", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}
STREAM = {"Content-Type": "application/octet-stream"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    (folder / "f.txt").write_text("nothing")
    (folder / "folder").mkdir()
    (folder / "secret.npz").write_bytes(b"PK")
    with AdminServer(f"fake={FAKE}", f"victim={FAKE}", PACKAGES / "several.pt2",
                     flags=["--weights-dir", folder, "--max-header-bytes", "16K"]) as running:
        yield running


def check(answer, *statuses):
    """A 4xx whose body is an error that explains and is short."""
    assert answer.status in (statuses or range(400, 500)), (answer.status, answer.body[:300])
    assert len(answer.body) <= MOST, len(answer.body)
    text = answer.json["error"]
    assert len(text) >= 8, text
    assert max(map(len, re.findall("[kK]+", text)), default=0) <= 200, text
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", text), text
    return text


def quoted(name):
    return json.dumps(name)


CLIENT_TEXTS = {
    "call: a key": ("/v1/models/fake:call", {LONG: 0}),
    "call: a key with escapes": ("/v1/models/fake:call", '{"\\u006b' + LONG + '":0}'),
    "call: a dtype": ("/v1/models/fake:call", {"args": [{"dtype": LONG, "shape": [1], "base64": ""}]}),
    "call: a member of a tensor": ("/v1/models/fake:call", {"args": [{LONG: 1}]}),
    "call: base64 of another length": ("/v1/models/fake:call", {"args": [{"dtype": "float32", "shape": [1], "base64": LONG}]}),
    "infer: an input": ("/v2/models/fake/infer", {"inputs": [{**OK, "name": LONG}]}),
    "infer: a datatype": ("/v2/models/fake/infer", {"inputs": [{**OK, "datatype": LONG}]}),
    "infer: an output": ("/v2/models/fake/infer", {"inputs": [OK], "outputs": [{"name": LONG}]}),
    "infer: a parameter": ("/v2/models/fake/infer", {"inputs": [OK], "parameters": {LONG: {}}}),
    "infer: a reserved parameter": ("/v2/models/fake/infer", {"inputs": [OK], "parameters": {"triton_" + LONG: 1}}),
    "infer: a shape": ("/v2/models/fake/infer", {"inputs": [{**OK, "shape": [2**62] * 60}]}),
    "generate: a parameter": ("/v2/models/fake/generate", {"parameters": {LONG: []}, "INPUT__0": [1, 2, 3, 4]}),
    "predict: an input": ("/v1/models/fake:predict", {"inputs": {LONG: 1}}),
    "predict: a signature": ("/v1/models/fake:predict", {"signature_name": LONG, "inputs": [1]}),
}
SMALL_TEXTS = {  # bodies for routes with small limits
    "load: a parameter": ("public", "/v2/repository/models/fake/load", {"parameters": {"k" * 60_000: 1}}, 403),
    "load: a parameter, admin": ("admin", "/v2/repository/models/fake/load", {"parameters": {"k" * 60_000: 1}}, 400),
    "load: a file": ("admin", "/v2/repository/models/fake/load", {"parameters": {"file:" + "k" * 60_000: 1}}, 400),
    "unload: a parameter": ("admin", "/v2/repository/models/fake/unload", {"parameters": {"k" * 60_000: 1}}, 400),
    "trace: a setting": ("admin", "/v2/trace/setting", {"k" * 60_000: 1}, 400),
    "trace: a number": ("admin", "/v2/trace/setting", {"trace_rate": "k" * 60_000}, 400),
    "trace: a level": ("admin", "/v2/trace/setting", {"trace_level": "k" * 60_000}, 400),
    "log: a setting": ("admin", "/v2/logging", {"k" * 60_000: 1}, 400),
    "log: a format": ("admin", "/v2/logging", {"log_format": "k" * 60_000}, 400),
    "replicas: a member": ("admin", "/v2/admin/models/fake/replicas", {"k" * 60_000: 1}, 400),
    "replicas: a device": ("admin", "/v2/admin/models/fake/replicas", {"device": "k" * 60_000}, 400),
    "replicas: cores": ("admin", "/v2/admin/models/fake/replicas", {"cpus": "k" * 60_000}, 400),
    "weights: a member": ("admin", "/v2/admin/models/fake/weights", {"k" * 60_000: 1}, 400),
    "weights: a format": ("admin", "/v2/admin/models/fake/weights", {"format": "k" * 60_000}, 400),
    "weights: a digest": ("admin", "/v2/admin/models/fake/weights", {"sha256": "k" * 60_000}, 400),
    "weights: a file": ("admin", "/v2/admin/models/fake/weights", {"file": "k" * 60_000}, 400),
    "weights: a deep file": ("admin", "/v2/admin/models/fake/weights", {"file": "kkk/" * 15_000}, 400),
    "weights: an npy file": ("admin", "/v2/admin/models/fake/weights", {"file": "k" * 200 + ".npy"}, 404),
}


@pytest.mark.parametrize("name", CLIENT_TEXTS)
@pytest.mark.parametrize("zipped", [False, True])
def test_errors_of_inference_are_short(server, name, zipped):
    path, body = CLIENT_TEXTS[name]
    data = (body if isinstance(body, str) else json.dumps(body)).encode()
    before = server.memory_kb()
    answer = server.post(path, gzip.compress(data) if zipped else data, {"Content-Encoding": "gzip"} if zipped else {})
    text = check(answer, 400)
    if name not in ("infer: a shape", "call: base64 of another length"):
        assert CUT in text and "\u2026" in text, text
    assert server.grown_kb(before) < 64 * 1024


@pytest.mark.parametrize("name", SMALL_TEXTS)
def test_errors_of_other_routes_are_short(server, name):
    listener, path, body, status = SMALL_TEXTS[name]
    port = server.ports["administration" if listener == "admin" else "inference"]
    check(server.post(path, body, JSON, port=port), status)


@pytest.mark.parametrize("path", [f"/v2/models/{PATH_LONG}", f"/v2/models/fake/versions/{'9' * 9000}", f"/v2/models/{PATH_LONG}/infer",
                                  f"/v1/models/{PATH_LONG}:call", f"/v1/models/fake:call?tensors={PATH_LONG}",
                                  f"/v2/repository/models/{PATH_LONG}/load", f"/v2/admin/models/{PATH_LONG}/weights",
                                  f"/v2/admin/models/fake/weights?{PATH_LONG}", f"/v2/admin/models/fake/weights?mode={PATH_LONG}",
                                  f"/v2/admin/models/fake/weights?dry_run={PATH_LONG}", f"/v2/admin/operations/{'9' * 9000}",
                                  f"/v2/admin/models/fake/replicas/{'9' * 9000}", f"/v2/systemsharedmemory/region/{PATH_LONG}/status",
                                  f"/v2/models/{PATH_LONG}/trace/setting", f"/{PATH_LONG}", f"/v2/models/%0a%1b{'%c3%a9' * 1000}"])
def test_errors_that_repeat_a_path_are_short(server, path):
    for port in server.ports.values():
        for method, body in (("GET", None), ("POST", b"{}"), ("DELETE", None)):
            answer = server.request(method, path, body, STREAM, port=port)
            if answer.status >= 400:
                check(answer)


def test_names_in_weights_are_cut(server):
    long = "k" * 100_000
    bad = {
        "unknown": safetensors({long: floats(1, 2)}), "twice": safetensors({"scale.w": repeated(1, 4), "scale.b": repeated(1, 4), long: floats(1)}),
        "dtype": safetensors({long: ("k" * 50_000, [4], bytes(16))}), "size": safetensors({long: ("F32", [5], bytes(16))}),
        "shape": safetensors({"scale.w": ("F32", [1] * 60 + [4], bytes(16)), "scale.b": repeated(1, 4)}),
    }
    for name, data in bad.items():
        check(server.push("fake", data), 404 if name in ("unknown", "twice") else 400)
    text = json.dumps({long: {long: 1}}).encode()
    check(server.push("fake", struct.pack("<Q", len(text)) + text), 400)
    for operation in server.admin("GET", "/v2/admin/operations").json["operations"]:
        assert len(operation.get("error") or "") <= MOST


@pytest.mark.parametrize("raw", ["\x00", "\n", "\r", "\x1b[31m", "\x7f", "\u0085", "\u009b31m"])
def test_control_characters_do_not_come_back(server, raw):
    name = f"a{raw}b"
    text = check(server.post("/v2/models/fake/infer", {"inputs": [{**OK, "name": name}]}), 400)
    assert ("a\\x" in text or "a\\0b" in text) and raw not in text
    text = check(server.post("/v1/models/fake:call", {name: 1}), 400)
    assert raw not in text
    assert name not in server.post("/v1/models/fake:call", "{" + quoted(name) + ":1}").body.decode()


def test_log_lines_of_requests_are_short(server):
    with AdminServer(f"fake={FAKE}", flags=["--access-log", "true", "--log-level", "trace"]) as running:
        running.get("/v2/models/" + "k" * 9000)
        running.get("/k?" + "k" * 9000)
        running.request("K" * 5000, "/v2")
        running.post("/v1/models/fake:call", {LONG: 0})
        running.push("fake", safetensors({"k" * 100_000: floats(1, 2)}), "label=" + "k" * 3000)
        running.push("fake", safetensors({"scale.w": repeated(1, 4), "scale.b": repeated(1, 4)}), "commit=true&label=" + "k" * 100)
        assert running.get("/v2").status == 200
        running.stop()
        assert sum("access" in line or "GET /v2" in line for line in running.log) > 0
        for line in running.log:
            assert len(line) < 3000, len(line)
            assert max(map(len, re.findall("[kK]+", line)), default=0) <= 200, line


# Mistakes of clients on every listener: the status is 4xx, and the error names the mistake.

NPY = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
F16 = {"name": "ARGS[6]", "datatype": "FP16", "shape": [3], "data": [1, 2, 3]}
SHARED = {"shared_memory_region": "r", "shared_memory_byte_size": 16}
HANDLE = {"raw_handle": {"b64": "A" * 88}, "device_id": 0, "byte_size": 16}
FAULTS = [
    # listener, method, path, headers, body, statuses, words of the reason
    ("inference", "POST", "/v2/models/fake/infer", {}, {"inputs": [{**OK, "data": None, "parameters": SHARED}]}, {400, 403}, ""),
    ("inference", "POST", "/v2/models/fake/infer", {}, {"inputs": [{k: v for k, v in OK.items() if k != "data"} | {"parameters": SHARED}]}, {403}, "allow_shared_memory"),
    ("inference", "POST", "/v2/models/fake/infer", {}, {"inputs": [OK], "outputs": [{"name": "OUTPUT__0", "parameters": SHARED}]}, {403}, "allow_shared_memory"),
    ("inference", "POST", "/v2/systemsharedmemory/region/r/register", {}, {"key": "/r", "byte_size": 16}, {403}, "allow_shared_memory"),
    ("inference", "POST", "/v2/cudasharedmemory/region/r/register", {}, HANDLE, {403}, "allow_shared_memory"),
    ("inference", "POST", "/v2/models/several.dtypes/infer", {}, {"inputs": [F16]}, {400}, ""),
    ("inference", "POST", "/v2/models/several.dtypes/infer", {}, {"inputs": [{**F16, "datatype": "FP8"}]}, {400}, ""),
    ("inference", "POST", "/v2/models/fake/infer", {"Content-Encoding": "br"}, {"inputs": [OK]}, {415}, "gzip"),
    ("inference", "POST", "/v2/models/fake/infer", {"Content-Encoding": "gzip"}, {"inputs": [OK]}, {400}, "compressed"),
    ("inference", "POST", "/v2/models/fake/infer", {"Expect": "miracles"}, {"inputs": [OK]}, {417}, "100-continue"),
    ("inference", "POST", "/v2/models/fake/infer", {"Transfer-Encoding": "gzip"}, None, {400}, "chunked"),
    ("inference", "POST", "/v2/models/fake/infer", {"Inference-Header-Content-Length": "99999"}, {"inputs": [OK]}, {400}, "larger than the body"),
    ("inference", "POST", "/v2/models/fake/versions/99999999999999999999/infer", {}, {"inputs": [OK]}, {404}, "is not found"),
    ("inference", "POST", "/v2/models/fake/infer", {}, {"inputs": [OK], "parameters": {"sequence_id": {}}}, {400}, "sequence_id"),
    ("inference", "POST", "/v2/models/fake/infer", {}, {"inputs": [OK], "parameters": {"timeout": 2**64 - 1}}, {400}, "timeout"),
    ("inference", "POST", "/v2/models/fake/infer", {}, {"inputs": [{**OK, "shape": [2**31, 2**31]}]}, {400}, "elements"),
    ("inference", "POST", "/v2/models/fake/infer", {}, {"inputs": [OK], "outputs": [{"name": "OUTPUT__0", "parameters": {"classification": 2**70}}]}, {400}, "classification"),
    ("inference", "POST", "/v2/repository/index", {}, {"ready": 1}, {400}, "ready"),
    ("inference", "POST", "/v2/repository/index", {}, "[" * 60_000, {400}, "object"),
    ("inference", "POST", "/v2/repository/index", {}, "{" + " " * 65_536 + "}", {413}, "65536"),
    ("inference", "POST", "/v2/logging", {}, {"log_file": "/tmp/x"}, {403}, "administration"),
    ("administration", "POST", "/v2/logging", {}, {"log_file": "/tmp/x"}, {403}, "log_file"),
    ("administration", "POST", "/v2/trace/setting", {}, {"trace_file": "/tmp/x"}, {403}, "trace_file"),
    ("administration", "POST", "/v2/trace/setting", {}, {"trace_mode": "opentelemetry"}, {403}, "trace_mode"),
    ("administration", "POST", "/v2/trace/setting", {}, {"trace_level": ["TENSOR"]}, {400}, "TENSOR"),
    ("administration", "POST", "/v2/models/fake/trace/setting", {}, {"log_frequency": "3"}, {400}, "log_frequency"),
    ("administration", "POST", "/v2/models/nobody/trace/setting", {}, {}, {404}, "nobody"),
    ("administration", "POST", "/v2/admin/models/fake/weights", STREAM, safetensors({"scale.w": ("I3", [4], bytes(16))}), {400}, "I3"),
    ("administration", "POST", "/v2/admin/models/fake/weights", STREAM, safetensors({"scale.w": ("F64", [4], bytes(32)), "scale.b": repeated(1, 4)}), {400}, "scale.w"),
    ("administration", "POST", "/v2/admin/models/fake/weights", STREAM, safetensors({"scale.w": ("F32", [1] * 70, bytes(4))}), {400}, "scale.w"),
    ("administration", "POST", "/v2/admin/models/fake/weights", STREAM, NPY + bytes(16), {400, 413}, ""),
    ("administration", "POST", "/v2/admin/models/fake/weights", STREAM, b"", {400}, ""),
    ("administration", "POST", "/v2/admin/models/fake/weights", {"Content-Type": "text/plain"}, b"x", {415}, "Content-Type"),
    ("administration", "POST", "/v2/admin/models/fake/weights", {**STREAM, "Content-Digest": content_digest(b"other")},
     safetensors({"scale.w": repeated(1, 4), "scale.b": repeated(1, 4)}), {400}, "SHA-256"),
    ("administration", "POST", "/v2/admin/models/fake/weights", {**STREAM, "Content-Digest": "md5=:AA==:"}, b"x", {400}, "sha-256"),
    ("administration", "POST", "/v2/admin/models/fake/weights", JSON, {"file": "nowhere.npz"}, {404}, "nowhere.npz"),
    ("administration", "POST", "/v2/admin/models/fake/weights", JSON, {"file": "n" * 300}, {400, 404}, "nnn"),
    ("administration", "POST", "/v2/admin/models/fake/weights", JSON, {"file": "../etc/passwd"}, {403}, "weights_dir"),
    ("administration", "POST", "/v2/admin/models/fake/weights", JSON, {"file": "/etc/passwd"}, {403}, "weights_dir"),
    ("administration", "POST", "/v2/admin/models/fake/weights", JSON, {"file": "folder"}, {400}, "folder"),
    ("administration", "POST", "/v2/admin/models/fake/weights", JSON, {"file": "f.txt"}, {400}, "f.txt"),
    ("administration", "POST", "/v2/admin/models/fake/weights", JSON, {"file": "f.txt", "format": "npz"}, {400}, "f.txt"),
    ("administration", "POST", "/v2/admin/models/fake/weights", JSON, {"file": "f.txt", "format": "package"}, {400}, "f.txt"),
    ("administration", "POST", "/v2/admin/models/fake/weights", JSON, {"file": "f.txt", "format": "blob"}, {400}, "f.txt"),
    ("administration", "POST", "/v2/admin/models/fake/weights", JSON, {"file": "secret.npz"}, {400}, "secret.npz"),
    ("administration", "POST", "/v2/admin/models/fake/weights", JSON, {"file": "f.txt/x"}, {404}, "f.txt"),
    ("administration", "POST", "/v2/admin/models/fake/weights", JSON, {"file": "a\0b"}, {400}, "a"),
    ("administration", "POST", "/v2/admin/models/fake/weights", JSON, {}, {400}, "file"),
    ("administration", "POST", "/v2/admin/models/fake/weights/commit", {}, b"", {400}, "staged"),
    ("administration", "POST", "/v2/admin/models/fake/weights/rollback", {}, b"", {400}, ""),
    ("administration", "POST", "/v2/admin/models/fake/weights/commit?x=1", {}, b"", {400}, "x"),
    ("administration", "GET", "/v2/admin/models/fake/weights?digest=perhaps", {}, None, {400}, "digest"),
    ("administration", "POST", "/v2/admin/models/fake/replicas", JSON, {"device": "cuda:99"}, {400}, "cuda"),
    ("administration", "POST", "/v2/admin/models/fake/replicas", JSON, {"device": "cuda"}, {400}, "cuda"),
    ("administration", "POST", "/v2/admin/models/fake/replicas", JSON, {"device": "meta"}, {400}, "meta"),
    ("administration", "POST", "/v2/admin/models/fake/replicas", JSON, {"cpus": [4095]}, {400}, ""),
    ("administration", "POST", "/v2/admin/models/fake/replicas", JSON, {"cpus": []}, {200, 400}, ""),
    ("administration", "DELETE", "/v2/admin/models/fake/replicas/77", {}, None, {400, 404}, "77"),
    ("administration", "GET", "/v2/admin/operations/99999999999999999999", {}, None, {404}, "999"),
    ("administration", "DELETE", "/v2/admin/operations/4242", {}, None, {404}, "4242"),
    ("administration", "POST", "/v2/repository/models/nobody/load", {}, b"", {404}, "nobody"),
    ("administration", "POST", "/v2/repository/models/nobody/unload", {}, b"", {404}, "nobody"),
    ("administration", "POST", "/v2/repository/models/fake/load", {}, {"parameters": {"config": "{}"}}, {400}, "config"),
    ("administration", "POST", "/v2/admin/models/fake/weights", {**JSON, "Content-Encoding": "gzip"}, b"x", {415}, "Content-Encoding"),
]


@pytest.mark.parametrize("i", range(len(FAULTS)))
def test_bad_input_is_the_clients_fault(server, i):
    listener, method, path, headers, body, statuses, words = FAULTS[i]
    data = body if isinstance(body, (bytes, type(None))) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    answer = server.request(method, path, data, headers, port=server.ports[listener])
    if answer.status == 200 and 200 in statuses:
        return
    assert words in check(answer, *statuses)
    assert server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [1, 2, 3, 4])}).status == 200


@pytest.mark.parametrize("request_bytes", [
    b"GET / HTTP/2.0\r\n\r\n", b"GET / HTTP/1.2\r\nHost: localhost\r\n\r\n", b"GET / HTTP/0.9\r\n\r\n", b"GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /\r\n\r\n",
    b"GET / FTP/1.1\r\n\r\n", b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"k" * 20000,
    b"GET /" + b"k" * 20000, b"K" * 20000])
def test_no_request_line_or_header_is_the_servers_fault(server, request_bytes):
    with server.connect() as connection:
        connection.sendall(request_bytes)
        connection.shutdown(socket.SHUT_WR)
        data = read_all(connection)
    assert 400 <= int(data.split()[1]) < 500 and json.loads(data.split(b"\r\n\r\n", 1)[1])["error"], data[:200]


BODIES = [b"", b"{", b"[]", b"null", b"7", b"\"x\"", b"\xff\xfe", b"{}x", b"{\"a\":}", b"{\"inputs\":7}", b"{\"inputs\":[{}]}",
          b"{\"inputs\":[{\"name\":\"INPUT__0\",\"shape\":[-1],\"datatype\":\"FP32\",\"data\":[]}]}", b"{\"parameters\":{\"x\":{}}}",
          b"{\"parameters\":[]}", b"{\"instances\":{}}", b"{\"args\":{}}", b"{\"args\":[],\"kwargs\":[]}", b"{\"count\":-1}", b"{\"count\":1e400}",
          b"{\"device\":7}", b"{\"file\":7}", b"{\"trace_rate\":{}}", b"{\"log_info\":\"x\"}", b"{\"key\":{},\"byte_size\":-1}", b"[" * 5000,
          b"{\"a\":" * 5000, b"\0" * 100, struct.pack("<Q", 2**63) + b"{", struct.pack("<Q", 8) + b"{\"a\":{}}" + bytes(100)]
HEADERS = [{}, JSON, STREAM, {"Content-Encoding": "gzip"}, {"Content-Encoding": "deflate"}, {"Inference-Header-Content-Length": "1"},
           {"Inference-Header-Content-Length": "0"}, {**STREAM, "Content-Digest": "sha-256=:AA==:"}]
QUERIES = ["", "?", "?x", "?%zz", "?tensors=x", "?mode=x&mode=y", "?dry_run=maybe", "?a=%00"]


def test_every_route_with_every_bad_body(server):
    """The status is never 500, and each error gives a reason. Some routes unload the model victim and load it again."""
    document = {listener: server.get("/openapi.json", port=server.ports[listener]).json["paths"] for listener in ("inference", "administration")}
    document["metrics"] = {"/metrics": {"get": {}}, "/": {"get": {}}, "/v2/health/live": {"get": {}}}
    tried = 0
    for listener, paths in document.items():
        for path, methods in paths.items():
            model = "victim" if "/repository/" in path or "/replicas" in path else "fake"
            url = path.format(model=model, version="1", region="r", set="s", number="7", file="console.js")
            for method in methods:
                if method == "parameters" or path in ENDLESS:
                    continue
                cases = [(url + q, h, b) for q in QUERIES for h, b in (({}, BODIES[1]),)] + [(url, h, b) for h in HEADERS for b in BODIES]
                for target, headers, body in cases:
                    answer = server.request(method.upper(), target, body, headers, port=server.ports[listener])
                    tried += 1
                    if path.endswith("/ready") and answer.status == 503 or answer.status < 400:
                        continue
                    if model == "victim" and answer.status == 503 and "not at ready state" in answer.json["error"]:
                        continue  # the model is unloaded
                    assert answer.status < 500, (method, target, headers, body[:60], answer.status, answer.body)
                    check(answer)
    assert tried > 5000
    assert server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [1, 2, 3, 4])}).status == 200


# Parameters.

@pytest.mark.parametrize("value", [{}, {"a": 1}, [], [1], [[]]])
def test_a_parameter_that_is_no_plain_value_is_refused(server, value):
    for body in ({"inputs": [OK], "parameters": {"x": value}}, {"inputs": [{**OK, "parameters": {"x": value}}]},
                 {"inputs": [OK], "outputs": [{"name": "OUTPUT__0", "parameters": {"x": value}}]}):
        assert "parameter 'x' must be" in check(server.post("/v2/models/fake/infer", body), 400)
    assert "parameter 'x' must be" in check(server.post("/v2/models/fake/generate", {"parameters": {"x": value}, "INPUT__0": [1, 2, 3, 4]}), 400)
    assert "parameter 'x' must be" in check(server.post("/v1/models/fake:predict", {"inputs": [[1, 2, 3, 4]], "parameters": {"x": value}}), 400)


@pytest.mark.parametrize("value", ["x", "", 1, -1.5, 1e300, True, False, None])
def test_plain_parameters_that_mean_nothing_are_taken(server, value):
    for body in ({"inputs": [OK], "parameters": {"x": value}}, {"inputs": [{**OK, "parameters": {"x": value}}]},
                 {"inputs": [OK], "outputs": [{"name": "OUTPUT__0", "parameters": {"x": value}}]}):
        assert server.post("/v2/models/fake/infer", body).status == 200
