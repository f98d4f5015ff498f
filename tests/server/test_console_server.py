"""The server's side of the console: its files, who may read what, and the streams that its page reads."""
import contextlib
import gzip
import http.client
import json
import math
import shutil
import socket
import threading
import urllib.parse

import pytest
from admin_server import FAKE, AdminServer
from serving import ROOT, HeldServer, raw_post, read_all, read_answer, threads, until
from weights_files import fake_weights

METRICS, ADMIN, INFER = "metrics-metrics-1", "admin-admin-admin-1", "infer-infer-infer-1"
PAGE = ROOT / "server/console/page"
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; form-action 'none'; "
          "frame-ancestors 'none'; base-uri 'none'")


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def token_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    path.write_text(f"metrics {METRICS}\nadmin {ADMIN}\ninfer {INFER}\n")
    return path


@pytest.fixture(scope="module")
def open_server():
    with AdminServer(f"fake={FAKE}") as running:
        yield running


@pytest.fixture(scope="module")
def closed_server(token_file):
    with AdminServer(f"fake={FAKE}", flags=["--token-file", str(token_file)]) as running:
        yield running


# The page.

def test_each_file_is_served_as_it_is_in_the_tree(closed_server):
    files = sorted(PAGE.iterdir())
    assert "index.html" in [f.name for f in files]
    for file in files:
        for headers in ({}, {"Accept-Encoding": "gzip"}, {"Accept-Encoding": "deflate"}, {"Accept-Encoding": "br, gzip;q=0.5"}):
            answer = closed_server.get(f"/console/{file.name}", port=closed_server.admin_port, headers=headers)
            packed = "gzip" in headers.get("Accept-Encoding", "")
            assert answer.status == 200 and (answer.headers["Content-Encoding"] == "gzip") == packed, file
            assert (gzip.decompress(answer.body) if packed else answer.body) == file.read_bytes(), file
            assert int(answer.headers["Content-Length"]) == len(answer.body)
    assert closed_server.get("/console", port=closed_server.admin_port).body == (PAGE / "index.html").read_bytes()


def test_what_a_browser_is_told(closed_server):
    types = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    for file in sorted(PAGE.iterdir()):
        headers = closed_server.get(f"/console/{file.name}", port=closed_server.admin_port).headers
        assert headers["Content-Type"].startswith(types[file.suffix])
        assert headers["Content-Security-Policy"] == POLICY
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-cache" and headers["Vary"] == "Accept-Encoding"


def test_a_browser_that_has_a_file_is_told_so(open_server):
    first = open_server.admin("GET", "/console")
    known = {"If-None-Match": first.headers["ETag"]}
    again = open_server.admin("GET", "/console", headers={**known, "Accept-Encoding": "gzip"})
    assert again.status == 304 and again.body == b"" and again.headers["ETag"] == first.headers["ETag"]
    assert "Content-Length" not in again.headers and "Content-Encoding" not in again.headers
    with open_server.connect_admin() as connection:  # which goes on
        for _ in range(2):
            connection.sendall(f"GET /console HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {known['If-None-Match']}\r\n\r\n".encode())
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            assert data.startswith(b"HTTP/1.1 304 ") and data.endswith(b"\r\n\r\n")
    assert open_server.admin("GET", "/console", headers={"If-None-Match": 'W/"0123"'}).status == 200
    head = open_server.admin("HEAD", "/console")
    assert head.status == 200 and head.body == b"" and int(head.headers["Content-Length"]) == len(first.body)


def test_there_is_nothing_but_the_files(open_server):
    for name in ("nothing.js", "..", "%2e%2e%2fmain.cpp", "index.html//", "INDEX.HTML", "index.html%00"):
        answer = open_server.admin("GET", f"/console/{name}")
        assert answer.status in (400, 404) and answer.json["error"], name
    for listener in ("inference", "metrics"):
        assert open_server.get("/console", port=open_server.ports[listener]).status == 404
    assert open_server.admin("POST", "/console", b"").status == 405


# Who may do what.

def test_access_says_what_a_token_allows(closed_server, open_server):
    admin = closed_server.admin("GET", "/v2/admin/access", headers=bearer(ADMIN)).json
    assert admin["scopes"] == ["admin", "metrics", "infer"] and admin["token_needed"] and not admin["read_only"]
    assert admin["http"] == f"http://127.0.0.1:{closed_server.port}" and admin["grpc"] is None
    metrics = closed_server.admin("GET", "/v2/admin/access", headers=bearer(METRICS)).json
    assert metrics == {**admin, "scopes": ["metrics"], "read_only": True}
    assert closed_server.admin("GET", "/v2/admin/access").status == 401
    assert closed_server.admin("GET", "/v2/admin/access", headers=bearer(INFER)).status == 403
    everybody = open_server.admin("GET", "/v2/admin/access").json
    assert everybody["scopes"] == ["admin", "metrics", "infer"] and not everybody["token_needed"] and not everybody["read_only"]
    assert everybody["instance"] != admin["instance"]


GIVES_AWAY = ("/weights/active", "/recording", "/sets/{set}/weights", "/flush_cache", "/get_weights_by_name")


def test_a_metrics_token_may_read_and_nothing_else(closed_server):
    """Every route of the listener, as its document has them."""
    document = closed_server.admin("GET", "/openapi.json", headers=bearer(METRICS)).json["paths"]
    read = refused = 0
    for path, methods in document.items():
        url = path.format(model="fake", version="1", set="s", number="7", file="index.html")
        for method in methods:
            if method == "parameters" or path.startswith("/v2/health") or path.endswith("/live"):
                continue
            answer = closed_server.admin(method.upper(), url, b"" if method != "get" else None, headers=bearer(METRICS))
            may = (method == "get" and not any(part in path for part in GIVES_AWAY)) or path == "/v2/repository/index"
            assert (answer.status != 403) == may, (method, path, answer.status, answer.body)
            read, refused = read + may, refused + (not may)
            if not may:
                assert "the token is good for other requests" in answer.json["error"]
    assert read > 30 and refused > 40


def test_a_metrics_token_alone_closes_nothing(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"metrics {METRICS}\n")
    with AdminServer(f"fake={FAKE}", flags=["--token-file", str(path)]) as server:
        for headers in ({}, bearer(METRICS)):
            access = server.admin("GET", "/v2/admin/access", headers=headers).json
            assert access["scopes"] == ["admin", "metrics", "infer"] and not access["token_needed"]
            assert server.admin("GET", "fake/weights", headers=headers).status == 200


def test_the_console_may_change_things_and_other_pages_may_not(open_server):
    def logging(origin, host):
        return open_server.admin("POST", "/v2/logging", b"{}", {"Origin": origin, "Host": host}).status

    port = open_server.admin_port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
        assert logging(f"http://{host}", host) == 200
    for origin, host in ((f"http://localhost:{port}", f"127.0.0.1:{port}"), ("http://evil.example", f"127.0.0.1:{port}"), ("null", f"127.0.0.1:{port}"),
                         (f"http://evil.example:{port}", f"evil.example:{port}"), (f"http://127.0.0.1:{open_server.port}", f"127.0.0.1:{port}")):
        assert logging(origin, host) == 403


# Streams.

class Stream:
    """An event stream of the admin port. Events are (name, id, data)."""

    def __init__(self, server, path="/v2/admin/live", headers=None, buffer=None, timeout=30):
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", server.admin_port))
        fields = "".join(f"{k}: {v}\r\n" for k, v in (headers or {}).items())
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode())
        self.response = http.client.HTTPResponse(self.socket)
        self.response.begin()

    @property
    def status(self):
        return self.response.status

    def event(self):
        """The next one; None at the end of the stream."""
        found = {}
        while True:
            line = self.response.readline().decode()
            if not line:
                return None
            key, _, value = line.rstrip("\n").partition(": ")
            if line == "\n" and "data" in found:
                return found.get("event"), found.get("id"), found["data"]
            if key and not line.startswith(":"):
                assert key in ("event", "id", "data"), line
                found[key] = value

    def overview(self):
        name, _, data = self.event()
        assert name == "overview"
        return json.loads(data)

    def lines(self, count):
        """The next lines of a log."""
        events = [self.event() for _ in range(count)]
        assert all(name == "line" and int(number) == json.loads(data)["seq"] for name, number, data in events)
        return [json.loads(data) for _, _, data in events]

    def to_the_end(self):
        events = []
        while event := self.event():
            events.append(event)
        return events

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.response.close()
        self.socket.close()


MODEL = {"name", "version", "state", "reason", "kind", "weight_version", "generation", "label", "staged", "sets", "weight_bytes", "set_bytes", "replicas",
         "devices", "queue", "success", "failures", "inferences", "executions", "total_ns", "queue_ns", "input_ns", "compute_ns",
         "output_ns", "latency", "batches", "rejected", "sequences", "loops", "tokens", "weights_problem"}


def test_the_overview_comes_at_once_and_then_each_second(open_server):
    with Stream(open_server) as stream:
        assert stream.status == 200 and stream.response.headers["Content-Type"].startswith("text/event-stream")
        assert stream.response.headers["Cache-Control"] == "no-cache"
        first = stream.overview()
        assert set(first) == {"time", "server", "gpus", "models", "latency_bounds_us", "operations", "alerts"}
        assert first["server"]["ready"] and first["server"]["consoles"] == 1 and first["server"]["resident_bytes"] > 2**20
        assert first["alerts"] == [] and first["gpus"] == []
        [model] = first["models"]
        assert set(model) == MODEL and (model["name"], model["state"], model["kind"], model["devices"]) == ("fake", "READY", "package", ["cpu"])
        assert len(model["latency"]) == len(first["latency_bounds_us"]) + 1
        for _ in range(3):
            open_server.ones()
        times = [first["time"]]
        while (now := stream.overview())["models"][0]["success"] < model["success"] + 3:
            times.append(now["time"])
        times.append(now["time"])
        after = now["models"][0]
        assert times == sorted(set(times))
        assert after["inferences"] == model["inferences"] + 3 and sum(after["latency"]) == sum(model["latency"]) + 3
        assert sum(rows * runs for rows, runs in after["batches"]) == after["inferences"]
        assert now["server"]["requests"] >= first["server"]["requests"] + 3


def test_all_readers_get_the_same(open_server):
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(Stream(open_server)) for _ in range(5)]
        events = [[stream.event()[2] for _ in range(4)] for stream in streams]
    common = set(events[0]).intersection(*events[1:])
    # Who came within one second got one event; from then on all get each.
    assert len(common) >= 3, [[json.loads(data)["time"] for data in one] for one in events]
    ordered = [data for data in events[0] if data in common]
    for one in events:
        first = one.index(ordered[0])
        assert one[first:first + len(ordered)] == ordered


def test_an_overview_for_a_hundred(token_file):
    with AdminServer(f"fake={FAKE}", flags=["--max-side-connections", "300", "--token-file", str(token_file)]) as server, \
            contextlib.ExitStack() as stack:
        streams = [stack.enter_context(Stream(server, headers=bearer(METRICS))) for _ in range(100)]
        while streams[-1].overview()["server"]["consoles"] != 100:
            pass
        last = streams[-1].overview()
        for stream in streams[:-1]:
            while (one := stream.overview())["time"] < last["time"]:
                pass
            assert one == last
        assert server.admin("GET", "fake/weights", headers=bearer(ADMIN)).status == 200
        stack.close()
        with Stream(server, headers=bearer(METRICS)) as stream:
            until(lambda: stream.overview()["server"]["consoles"] == 1)


def test_streams_of_other_forms(open_server):
    head = open_server.admin("HEAD", "/v2/admin/live")
    assert head.status == 200 and head.body == b"" and head.headers["Content-Type"].startswith("text/event-stream")
    with open_server.connect_admin() as connection:  # HTTP/1.0 has no chunks
        connection.sendall(b"GET /v2/admin/live HTTP/1.0\r\n\r\n")
        data = b""
        while data.count(b"event: overview\n") < 2:
            piece = connection.recv(65536)
            assert piece
            data += piece
        assert b"chunked" not in data and b"\r\n\r\nevent: overview\n" in data
    for path in ("/v2/admin/live?x=1", "/v2/admin/log?x=1", "/v2/admin/log?lines=many", "/v2/admin/log?level=loud", "/v2/admin/log/live?after=-1"):
        answer = open_server.admin("GET", path)
        assert answer.status == 400 and answer.json["error"], path


def test_streams_end_when_the_server_does(tmp_path):
    with AdminServer(f"fake={FAKE}", flags=["--drain-timeout", "300s"]) as server, \
            Stream(server) as overview, Stream(server, "/v2/admin/log/live?after=0") as log:
        overview.overview()
        assert log.lines(1)[0]["seq"] == 1
        assert server.stop(timeout=60) == 0
        overview.to_the_end()  # a stream that is cut raises
        assert any("draining" in data for _, _, data in log.to_the_end())


def test_a_draining_server_says_so():
    with AdminServer(f"fake={FAKE}", flags=["--drain-grace", "5s"]) as server, Stream(server) as stream:
        assert not stream.overview()["server"]["draining"]
        server.process.terminate()
        while not (now := stream.overview())["server"]["draining"]:
            pass
        assert not now["server"]["ready"]
        assert now["alerts"] == [{"severity": "critical", "model": None, "text": "the server is shutting down"}]


def test_streams_give_way_to_other_connections():
    with AdminServer(f"fake={FAKE}", flags=["--max-side-connections", "4"]) as server, contextlib.ExitStack() as stack:
        streams = [stack.enter_context(Stream(server)) for _ in range(4)]
        for stream in streams:
            stream.overview()
        assert server.admin("GET", "fake/weights").status == 200
        ended = 0
        for stream in streams:
            try:
                for _ in range(3):
                    stream.overview()
            except (http.client.IncompleteRead, TypeError, ConnectionError):
                ended += 1
        assert ended >= 1


# The log.

def test_the_last_lines_of_the_log(open_server):
    log = open_server.admin("GET", "/v2/admin/log").json
    assert log["first"] == 1 and log["last"] >= len(log["lines"]) and log["lost"] == 0
    assert [line["seq"] for line in log["lines"]] == list(range(1, log["last"] + 1))
    assert set(log["lines"][0]) == {"seq", "time", "level", "message", "fields"}
    assert any(line["message"].startswith("administration on http://127.0.0.1:") and line["level"] == "info" for line in log["lines"])
    assert [line["seq"] for line in open_server.admin("GET", "/v2/admin/log?lines=2").json["lines"]] == [log["last"] - 1, log["last"]]
    assert open_server.admin("GET", "/v2/admin/log?level=error").json["lines"] == []


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_log_as_it_is_written(token_file, form):
    flags = ["--access-log", "true", "--log-format", form, "--token-file", str(token_file)]
    with AdminServer(f"fake={FAKE}", flags=flags) as server, \
            Stream(server, "/v2/admin/log/live", bearer(METRICS)) as stream, Stream(server, "/v2/admin/log/live?level=warn", bearer(METRICS)) as warnings:
        asked = server.get("/v2", headers={**bearer(INFER), "X-Request-Id": "who"})
        refused = server.get("/v2/models/%0a%22", headers={"X-Request-Id": "r2"})
        assert (asked.status, refused.status) == (200, 400)
        seen = []
        # Two I/O threads write the lines, in either order.
        while not {"who", "r2"} <= {line["fields"].get("id") for line in seen if "status" in line["fields"]}:
            seen += stream.lines(1)
        [line] = [line for line in seen if line["fields"].get("id") == "who"]
        assert line["message"] == "GET /v2" and line["fields"]["status"] == 200 and line["fields"]["peer"].startswith("127.0.0.1:")
        assert [line["seq"] for line in seen] == list(range(seen[0]["seq"], seen[-1]["seq"] + 1))
        for token in (METRICS, INFER):
            assert token not in json.dumps(seen)
        server.admin("POST", "/v2/admin/models/fake/weights", b"", bearer("nonsense-nonsense-1"))
        assert warnings.lines(1)[0]["level"] == "warn"
        with Stream(server, f"/v2/admin/log/live?after={seen[0]['seq'] - 1}", bearer(METRICS)) as again:
            assert again.lines(len(seen)) == seen


def ask(server, times):
    """So many requests on one connection, each a line of the access log."""
    get = b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
    with server.connect(60) as connection:
        connection.sendall(get % b"" * (times - 1) + get % b"Connection: close\r\n")
        assert read_all(connection).count(b"HTTP/1.1 200 ") == times


def test_a_reader_that_is_slow_skips_what_is_old():
    """While it reads nothing, more lines come than are kept, and another reader gets its events."""
    with AdminServer(f"fake={FAKE}", flags=["--access-log", "true"]) as server, \
            Stream(server, "/v2/admin/log/live", buffer=4096) as slow, Stream(server) as other:
        for _ in range(10):
            ask(server, 2000)
            other.overview()
        last = server.admin("GET", "/v2/admin/log?lines=1").json["lines"][0]["seq"]
        numbers = []
        while not numbers or numbers[-1] < last:
            numbers.append(slow.lines(1)[0]["seq"])
        assert numbers == sorted(set(numbers)) and len(numbers) < last - 2000


def test_a_reader_that_takes_nothing_is_cut():
    with AdminServer(f"fake={FAKE}", flags=["--access-log", "true", "--write-timeout", "300ms"]) as server, \
            Stream(server, "/v2/admin/log/live", buffer=4096), Stream(server) as other:
        while other.overview()["server"]["connections"] > 1:
            ask(server, 2000)


# Trying a model out.

def test_a_model_answers_on_the_admin_port_as_on_its_own():
    with AdminServer(ROOT / "examples/digits/digits.pt2") as server:
        call = (ROOT / "examples/digits/request.json").read_bytes()
        metadata = server.get("/v2/models/digits").json
        shape = [1 if size < 0 else size for size in metadata["inputs"][0]["shape"]]
        infer = {"inputs": [{"name": metadata["inputs"][0]["name"], "datatype": "FP32", "shape": shape,
                             "data": [0.5] * math.prod(shape)}]}
        packed = gzip.compress(json.dumps(infer).encode())
        for path, body, headers in (("/v1/models/digits:call", call, {}), ("/v1/models/digits/versions/1:call", call, {}),
                                    ("/v2/models/digits/infer", infer, {}), ("/v2/models/digits/infer", packed, {"Content-Encoding": "gzip"})):
            there, here = server.post(path, body, headers), server.post(path, body, headers, port=server.admin_port)
            assert here.status == there.status == 200, (path, here.body, there.body)
            assert here.json == there.json and here.headers["Sconce-Weight-Version"] == there.headers["Sconce-Weight-Version"]
        with server.connect_admin() as connection:  # and the connection goes on
            for _ in range(3):
                connection.sendall(raw_post(b"/v1/models/digits:call", call))
                assert read_answer(connection)[0] == 200


def test_the_limits_of_inference_hold_there_too(open_server):
    ones = {"INPUT__0": ("FP32", [1, 4], [1, 1, 1, 1])}
    body = json.dumps({"inputs": [{"name": n, "datatype": d, "shape": s, "data": v} for n, (d, s, v) in ones.items()]})
    for port in (open_server.port, open_server.admin_port):
        assert open_server.post("/v2/models/fake/infer", body + " " * 100_000, port=port).status == 200  # more than other routes take
        assert open_server.post("/v2/models/nobody/infer", body, port=port).status == 404
        assert open_server.post("/v2/models/fake/infer", "{", port=port).status == 400
    with AdminServer(f"fake={FAKE}", flags=["--max-body-bytes", "100K"]) as server:
        for port in (server.port, server.admin_port):
            answer = server.post("/v2/models/fake/infer", body + " " * 200_000, port=port)
            assert answer.status == 413 and "max_body_bytes" in answer.json["error"], answer.body


def test_who_may_try_a_model(closed_server, open_server):
    body = '{"inputs": [{"name": "INPUT__0", "shape": [1, 4], "datatype": "FP32", "data": [1, 1, 1, 1]}]}'
    for token, status in ((ADMIN, 200), (METRICS, 403), (INFER, 403)):
        assert closed_server.admin("POST", "/v2/models/fake/infer", body, bearer(token)).status == status
    assert closed_server.admin("POST", "/v2/models/fake/infer", body).status == 401
    assert open_server.admin("POST", "/v2/models/fake/infer", body, {"Origin": "http://evil.example"}).status == 403
    own = f"127.0.0.1:{open_server.admin_port}"
    assert open_server.admin("POST", "/v2/models/fake/infer", body, {"Origin": f"http://{own}", "Host": own}).status == 200


# What somebody should look at.

def alerts(stream, wanted):
    """Reads until an alert has this text."""
    while True:
        now = stream.overview()
        for alert in now["alerts"]:
            if wanted in alert["text"]:
                return alert, now


def test_a_model_that_refuses():
    with HeldServer(f"fake={FAKE}", flags=["--set", "fake.queue=1"]) as server, Stream(server) as stream:
        assert stream.overview()["alerts"] == []
        server.hold()
        stop = threading.Event()

        def load():
            while not stop.is_set():
                server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [1, 1, 1, 1])})

        with threads(*[load] * 6, stop=stop):
            try:
                alert, now = alerts(stream, "refuses requests")
            finally:
                stop.set()
                server.release()
        assert alert["severity"] == "warning" and alert["model"] == "fake" and now["models"][0]["rejected"] > 0


def test_models_that_are_not_ready(tmp_path):
    for name in ("good", "bad"):
        (tmp_path / name / "1").mkdir(parents=True)
    shutil.copy(ROOT / "examples/digits/digits.pt2", tmp_path / "good/1/model.pt2")
    (tmp_path / "bad/1/model.pt2").write_bytes(b"no package")
    with AdminServer(tmp_path, flags=["--exit-on-error", "false"], wait=False) as server, Stream(server) as stream:
        alert, now = alerts(stream, "bad version 1 is not ready: ")
        assert alert["severity"] == "critical" and alert["model"] == "bad" and not now["server"]["ready"]
        states = {m["name"]: m["state"] for m in now["models"]}
        assert states["bad"] == "UNAVAILABLE"
        assert server.admin("POST", "/v2/repository/models/bad/unload", b"").status == 200
        while any(a["model"] == "bad" for a in stream.overview()["alerts"]):
            pass


def test_operations_are_shown_while_they_run_and_a_while_after(open_server):
    with Stream(open_server) as stream:
        stream.overview()
        assert open_server.push("fake", fake_weights(3), "label=three&commit=true").status == 200
        while not (now := stream.overview())["operations"]:
            pass
        [operation] = now["operations"][-1:]
        assert (operation["model"], operation["state"], operation["label"]) == ("fake", "done", "three")
        assert set(operation) == {"id", "model", "version", "state", "phase", "bytes", "total", "seconds", "label"}
        assert now["models"][0]["label"] == "three" and now["models"][0]["weight_version"] == 2
        assert open_server.admin("POST", "fake/weights/rollback", b"").status == 200


def test_a_server_of_a_push_that_serves_something_else():
    allow = ["--weights-peers", "127.0.0.1"]
    with AdminServer(f"fake={FAKE}", flags=allow) as one, AdminServer(f"fake={FAKE}", flags=allow) as other:
        urls = [f"http://127.0.0.1:{server.admin_port}" for server in (one, other)]
        members = urllib.parse.quote(",".join(urls), safe="")
        for i, server in enumerate((one, other)):
            assert server.push("fake", fake_weights(3), f"push=p1&members={members}&member={i}&label=three").status == 200
        for action in ("prepare", "commit"):
            for server in (one, other):
                assert server.admin("POST", f"fake/weights/{action}?push=p1", b"").status == 200
        assert other.push("fake", fake_weights(4), "label=four&commit=true").status == 200
        with Stream(one) as stream:
            alert, _ = alerts(stream, urls[1])
            assert alert == {"severity": "warning", "model": "fake", "text":
                             f"fake version 1: {urls[1]} serves four (weight version 3), this server three (weight version 2)"}
