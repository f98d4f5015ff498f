"""The server's side of the console: its files, who may read what, and the streams that its page reads."""
import gzip

import pytest
from admin_server import FAKE, AdminServer
from serving import ROOT

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
            connection.sendall(f"GET /console HTTP/1.1\r\nHost: x\r\nIf-None-Match: {known['If-None-Match']}\r\n\r\n".encode())
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            assert data.startswith(b"HTTP/1.1 304 ") and data.endswith(b"\r\n\r\n")
    assert open_server.admin("GET", "/console", headers={"If-None-Match": 'W/"0123"'}).status == 200
    head = open_server.admin("HEAD", "/console")
    assert head.status == 200 and head.body == b"" and int(head.headers["Content-Length"]) == len(first.body)


def test_there_is_nothing_but_the_files(open_server):
    for name in ("nothing.js", "..", "%2e%2e%2fmain.cpp", "index.html/", "INDEX.HTML", "index.html%00"):
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


GIVES_AWAY = ("/weights/active", "/recording", "/sets/{set}/weights", "/flush_cache")


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
